"""A note: a page as a Markdown file, with its front matter, its text, and its links as a list at the end."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from vmstore.core.page import LinkKind, PageType, Standing
from vmstore.core.times import iso, microseconds
from vmstore.errors import InputError
from vmstore.store.notes.front_matter import Value, parsed, printed

LINKS = "<!-- links -->"
HASH_CHARS = 32
FIELDS = (
    *("id", "uid", "session", "type", "role", "actor", "created", "version", "fact", "tags", "status"),
    *("valid_from", "valid_to", "masked", "hash"),
)
"""All fields, in the order they are written."""
_LINK = re.compile(r"- ([a-z_]+) \[(?:[^\]\\]|\\.)*\]\(([^()\s]+)\)")

Target = tuple[str, str]
"""A page by the uid of the session that made it and its name; a new file by "" and its path."""


class NoteLink(msgspec.Struct, frozen=True, order=True):
    """A link of a note to another: its kind, and the page it leads to."""

    kind: str
    target: Target


class Note(msgspec.Struct, frozen=True):
    """One note. What a person may change is the text, the tags, the status, the validity and the links.

    `information` are the fields that tell of the page and are not read back; times are in microseconds since 1970.
    """

    text: str
    id: str | None = None
    uid: str | None = None
    session: str | None = None
    type: str = PageType.CLAIM.word
    tags: tuple[str, ...] = ()
    status: str | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    links: tuple[NoteLink, ...] = ()
    masked: bool = False
    hash: str | None = None
    information: Mapping[str, str] = {}

    @property
    def target(self) -> Target:
        """The page it is, as links name it."""
        return (self.uid or "", self.id or "")

    def state(self) -> str:
        """A digest of what a person may change: equal where two notes say the same."""
        said = [sorted(self.tags), self.status, self.valid_from, self.valid_to, sorted(self.links), self.text]
        return hashlib.sha256(msgspec.json.encode(said)).hexdigest()[:HASH_CHARS]

    def printed(self, path: str, path_of: Mapping[Target, str], line_of: Mapping[Target, str]) -> str:
        """The file's text, at a path; links lead to the paths of other notes."""
        fields: dict[str, Value] = {"id": self.id or "", "uid": self.uid or "", "session": self.session or ""}
        fields |= {"type": self.type, **self.information, "tags": sorted(self.tags)}
        fields |= {} if self.status is None else {"status": self.status}
        times = {"valid_from": self.valid_from, "valid_to": self.valid_to}
        fields |= {name: iso(at) for name, at in times.items() if at is not None}
        fields |= {"masked": "some of the text"} if self.masked else {}
        fields["hash"] = self.state()
        ordered = {name: fields[name] for name in FIELDS if name in fields}
        text = f"{printed(ordered)}\n{self.text}\n"
        if self.links:
            lines = [_link_line(link, path, path_of, line_of) for link in sorted(self.links)]
            text += f"\n{LINKS}\n\n" + "\n".join(lines) + "\n"
        return text


def _link_line(link: NoteLink, path: str, path_of: Mapping[Target, str], line_of: Mapping[Target, str]) -> str:
    """A link as an item of a list, relative to the file it stands in."""
    relative = posixpath.relpath(path_of[link.target], posixpath.dirname(path) or ".")
    shown = re.sub(r"([\[\]\\])", r"\\\1", line_of[link.target])
    return f"- {link.kind} [{shown}]({quote(relative, safe='/._-')})"


def resolved(note: Note, known: Mapping[Target, Any]) -> Note:
    """The note with its links by the pages they lead to, where those are known; `known` has a `note` by target."""
    by_page = {target: stored.note.target for target, stored in known.items()}
    links = {NoteLink(link.kind, by_page.get(link.target, link.target)) for link in note.links}
    return msgspec.structs.replace(note, links=tuple(sorted(links)))


def note_of(text: str, place: str, target_of: Callable[[str, int], Target]) -> Note:
    """The note that a file's text is; `target_of` gives the page that a path of a link leads to, at a line.

    InputError names the place and the line of what cannot be read.
    """
    fields, body = parsed(text, place)
    if unknown := [name for name in fields if name not in FIELDS]:
        raise _error(place, f"there is no field {unknown[0]!r}; put it into the text, or take it out")
    words: dict[str, Any] = {}
    for name, value in fields.items():
        if (name == "tags") != isinstance(value, list) and not (name == "tags" and isinstance(value, str)):
            raise _error(place, f"the field {name} is {'a list' if name == 'tags' else 'one text'}; write it so")
        words[name] = value
    tags = words.get("tags") or []
    body, links = _split(body.removeprefix("\n"), place, text.count("\n") - body.count("\n") + 1, target_of)
    return Note(
        text=body,
        id=words.get("id"),
        uid=words.get("uid"),
        session=words.get("session"),
        type=_word(PageType, words.get("type") or PageType.CLAIM.word, "type", place),
        tags=tuple(sorted({tags} if isinstance(tags, str) else set(tags))),
        status=None if "status" not in words else _word(Standing, words["status"], "status", place),
        valid_from=_time(words.get("valid_from"), "valid_from", place),
        valid_to=_time(words.get("valid_to"), "valid_to", place),
        links=tuple(links),
        masked="masked" in words,
        hash=words.get("hash"),
    )


def _split(
    body: str, place: str, first: int, target_of: Callable[[str, int], Target]
) -> tuple[str, Iterable[NoteLink]]:
    """The text of a note without the list of links at its end, and these."""
    head, mark, tail = body.rpartition(f"\n{LINKS}\n")
    if not mark:
        return body.removesuffix("\n"), ()
    links = set()
    begins = first + head.count("\n") + 2
    for number, line in enumerate(tail.split("\n"), begins):
        if not line.strip():
            continue
        matched = _LINK.fullmatch(line.strip())
        if matched is None:
            raise _error(place, "after the mark of links stands one a line: - KIND [text](path)", number)
        if LinkKind.of(matched[1]) is None:
            raise _error(place, f"there is no kind of link {matched[1]!r}; there are {_words(LinkKind)}", number)
        links.add(NoteLink(matched[1], target_of(unquote(matched[2]), number)))
    return head.removesuffix("\n"), sorted(links)


def _word(words: Any, value: Any, name: str, place: str) -> str:
    if not isinstance(value, str) or words.of(value) is None:
        raise _error(place, f"{value!r:.40} is no {name}; there are {_words(words)}")
    return value


def _words(words: Any) -> str:
    return ", ".join(word.word for word in words)


def _time(value: Any, name: str, place: str) -> int | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
        return microseconds(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (TypeError, ValueError, OverflowError) as error:
        raise _error(place, f"{name} {value!r:.40} is no time; write it like 2026-11-27T10:00:00Z") from error


def _error(place: str, what: str, line: int | None = None) -> InputError:
    return InputError(f"{place}{'' if line is None else f':{line}'}: {what}", code="not-a-note")
