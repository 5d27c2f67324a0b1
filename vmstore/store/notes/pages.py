"""The notes that a store's pages are, as of now: which pages, at which paths, with which links."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from vmstore.core.address import page_name
from vmstore.core.page import LinkKind, Modality
from vmstore.core.text.page_line import page_line
from vmstore.core.times import iso
from vmstore.errors import ErasedError, UnknownError
from vmstore.namespace.results import Page
from vmstore.redact.mask import Mask
from vmstore.redact.span import HANDED_OUT
from vmstore.store.host import StoreHost
from vmstore.store.notes.folder import SUFFIX, is_own, slug
from vmstore.store.notes.note import Note, NoteLink, Target
from vmstore.views.projectors.lineage import held

UNTAGGED = "untagged"
FILE, STATE = "note", "note_state"  # anchors of a page that came from a folder: its path, and how it was taken in
WORDS = (Modality.TEXT.word, Modality.STRUCTURED.word)


class StoredNote(NamedTuple):
    """A page as a note, at the path that it has in a folder, and what it is called in lists."""

    path: str
    note: Note
    line: str
    page: Page
    is_fact: bool


class StoredNotes(NamedTuple):
    """The notes of a store, and how many pages are none: erased, no text, or never held by their source."""

    notes: list[StoredNote]
    left_out: int
    masked: dict[str, int]

    def by_target(self) -> dict[Target, StoredNote]:
        """The notes by the pages that they are."""
        return {stored.note.target: stored for stored in self.notes}

    def by_file(self) -> dict[Target, StoredNote]:
        """The notes that came from a folder, by their path there as links to new files have it."""
        return {("", path): stored for stored in self.notes if isinstance(path := stored.page.anchors.get(FILE), str)}

    def printed(self) -> Iterator[tuple[str, str]]:
        """Path and text of each file."""
        paths = {stored.note.target: stored.path for stored in self.notes}
        lines = {stored.note.target: stored.line for stored in self.notes}
        for stored in self.notes:
            yield stored.path, stored.note.printed(stored.path, paths, lines)


def stored_notes(
    store: StoreHost, sessions: Collection[str] | None, types: Collection[str] | None, *, redact: bool
) -> StoredNotes:
    """The pages of sessions, all by default, as notes; of some types where those are named."""
    ns = store._ns
    with ns.asking():
        names = [info.session for info in store.sessions()] if sessions is None else list(sessions)
        drafts, left_out = list[StoredNote](), 0
        for name in names:
            for stored in _of_session(store, name, types):
                if stored is None:
                    left_out += 1
                else:
                    drafts.append(stored)
    there = {stored.note.target for stored in drafts}
    notes = [_with_links(stored, there) for stored in _placed(drafts)]
    return _masked(notes, left_out) if redact else StoredNotes(notes, left_out, {})


def _of_session(store: StoreHost, name: str, types: Collection[str] | None) -> Iterator[StoredNote | None]:
    """Each page that a session made; None for one that is no text or is gone."""
    session = store.session(name)
    ns, key = store._ns, session._key
    uid: str = bytes(ns.views.execute("SELECT uid FROM sessions WHERE session = ?", (key,)).get).hex()
    facts = {row[0]: row[1:] for row in store.query("FACTS page, subject, verb, what ALL", session=name)}
    links: dict[int, list[NoteLink]] = {}
    lane = session._lane()
    for source, target, kind in held(lane, session.info().position):
        links.setdefault(source, []).append(NoteLink(LinkKind(kind).word, (uid, page_name(target))))
    for page in session.pages():
        if page.session != name or (types is not None and page.type not in types):
            continue
        try:
            text = _text(session.content(page.page)) if page.modality in WORDS else None
        except (ErasedError, UnknownError):
            text = None
        if text is None:
            yield None
            continue
        information = {"role": page.role, "actor": page.actor, "created": iso(page.created_at)}
        information["version"] = str(page.version)
        if page.page in facts:
            information["fact"] = " | ".join(facts[page.page])
        note = Note(
            text=text,
            id=page.page,
            uid=uid,
            session=name,
            type=page.type,
            tags=tuple(sorted(page.tags)),
            status=page.status,
            valid_from=page.valid_from,
            valid_to=page.valid_to,
            links=tuple(sorted(links.get(page.position, ()))),
            information=information,
        )
        line = page_line(text.encode("utf-8", "surrogatepass"), Modality.TEXT)
        yield StoredNote("", note, f"{page.page} {line[:60]}".strip(), page, page.page in facts)


def _text(content: bytes) -> str | None:
    """A content as a file can hold it and give it back; None where it cannot: lone carriage returns, no UTF-8."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\r" in text or "\0" in text else text


def _placed(drafts: Iterable[StoredNote]) -> Iterator[StoredNote]:
    """The notes with their paths: where they came from, else by their first tag, session and page."""
    taken: set[str] = set()
    for stored in drafts:
        came_from = stored.page.anchors.get(FILE)
        path = came_from if isinstance(came_from, str) and is_own(came_from) else None
        if path is None or path.lower() in taken:
            folder = slug(stored.note.tags[0]) if stored.note.tags else UNTAGGED
            path = f"{folder}/{slug(stored.note.session or '')}.{stored.note.id}{SUFFIX}"
        taken.add(path.lower())
        yield stored._replace(path=path)


def _with_links(stored: StoredNote, there: Collection[Target]) -> StoredNote:
    """The note without links to pages that are none of the folder's."""
    links = tuple(link for link in stored.note.links if link.target in there)
    return stored._replace(note=msgspec.structs.replace(stored.note, links=links))


def _masked(notes: list[StoredNote], left_out: int) -> StoredNotes:
    """The notes with placeholders, numbered in each file by itself, so that one more secret changes one file."""
    first = Mask(HANDED_OUT)
    for stored in notes:
        first.learn(stored.note.text)
    total: dict[str, int] = {}
    found = []
    for stored in notes:
        mask = Mask(HANDED_OUT)
        mask.trust(first)
        note = stored.note

        def hidden(text: str, mask: Mask = mask) -> str:
            return str(mask.value(text, "a note"))

        text, information = hidden(note.text), {name: hidden(value) for name, value in note.information.items()}
        session, tags = hidden(note.session or ""), tuple(sorted({hidden(tag) for tag in note.tags}))
        changed: Mapping[str, Any] = {"text": text, "session": session, "tags": tags, "information": information}
        for kind, times in mask.counts.items():
            total[kind] = total.get(kind, 0) + times
        masks = bool(mask.counts)
        masked_note = msgspec.structs.replace(note, masked=masks, **changed)
        path = hidden(stored.path)
        if path != stored.path:
            path = f"{slug(tags[0]) if tags else UNTAGGED}/{slug(session)}-{note.target[0][:8]}.{note.id}{SUFFIX}"
        found.append(stored._replace(note=masked_note, line=hidden(stored.line), path=path))
    return StoredNotes(found, left_out, dict(sorted(total.items())))
