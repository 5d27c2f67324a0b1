"""Notes in: what somebody wrote or edited in a folder becomes mutations; what both sides changed is named and stays.

Everything is read and checked before anything is written; each session gets one commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from vmstore.core.address import page_name
from vmstore.core.draft import Draft, Part
from vmstore.core.mutation import Annotate, Link, Unlink, Update
from vmstore.core.page import LinkKind, Mime, Modality, PageType, Role, Standing
from vmstore.core.text.token_estimate import estimate
from vmstore.errors import InputError, RefusedError
from vmstore.store.host import StoreHost
from vmstore.store.live import edits
from vmstore.store.notes.folder import commit_of, mark_of
from vmstore.store.notes.folder_notes import log_uid, read_notes
from vmstore.store.notes.note import Note, NoteLink, Target, resolved
from vmstore.store.notes.pages import FILE, STATE, StoredNote, stored_notes
from vmstore.store.reads.annotations import tag_text
from vmstore.store.recall.pen import Pen, write

SESSION = "notes"  # of new files that name none
COMMIT, BY = "note_commit", "note_by"  # anchors: which commit was checked out, and who took it in
ACTOR = "file"


class NotesImport(msgspec.Struct, frozen=True):
    """Result of taking notes in: how many are new, changed, and as they were.

    `conflicts` are files that were edited while their page changed too, or is there no more; nothing of them was taken.
    `missing` are notes of the store that are no longer in the folder, and stay in the store.
    """

    added: int
    changed: int
    unchanged: int
    conflicts: list[str]
    missing: list[str]
    sessions: list[str]


class NoteChange(NamedTuple):
    """A note to be taken in, and the page that it is of, if there is one."""

    path: str
    note: Note
    stored: StoredNote | None


def import_notes(store: StoreHost, folder: Path, *, by: str | None = None, overwrite: bool = False) -> NotesImport:
    """Takes in what is new or edited in a folder of notes; with `overwrite` also over what changed in the store.

    InputError names the file and the line of what cannot be read, RefusedError the file of what cannot be changed so;
    nothing is written then.
    """
    notes, broken = read_notes(folder)
    if broken:
        raise next(iter(broken.values()))
    _check_once(notes)
    mark = mark_of(folder)
    is_ours = mark is not None and mark.uid == log_uid(store)
    paths = {note.target if note.id else ("", path): path for path, note in notes.items()}
    if not is_ours:
        notes = {path: _own(note, paths) for path, note in notes.items()}
        paths = {("", path): path for path in notes}
    stored = stored_notes(store, None, None, redact=False)
    known = stored.by_file() | (stored.by_target() if is_ours else {})
    changes, conflicts = list[NoteChange](), list[str]()
    for path, note in notes.items():
        here = known.get(note.target if note.id else ("", path))
        change = NoteChange(path, resolved(note, known), here)
        outcome = _outcome(change, note, is_page=note.id is not None, overwrite=overwrite)
        if outcome is not None:
            (changes.append(change) if outcome else conflicts.append(path))
    sessions = _grouped(changes)
    for name, its in sessions.items():
        _check(name, its, known, paths)
    provenance = {key: value for key, value in ((COMMIT, commit_of(folder)), (BY, by)) if value}
    for name, its in sessions.items():
        _write(store, name, its, known, provenance)
    there = {note.target for note in notes.values()}
    missing = [one.path for one in stored.notes if one.note.target not in there and one.path not in notes]
    added = sum(change.stored is None for change in changes)
    return NotesImport(
        added=added,
        changed=len(changes) - added,
        unchanged=len(notes) - len(changes) - len(conflicts),
        conflicts=sorted(conflicts),
        missing=missing if is_ours else [],
        sessions=sorted(sessions),
    )


def _own(note: Note, paths: Mapping[Target, str]) -> Note:
    """A note of another store as one that somebody wrote here: it is no page yet, and links by path."""
    links = sorted({NoteLink(link.kind, ("", paths[link.target])) for link in note.links})
    return msgspec.structs.replace(note, id=None, uid=None, hash=None, masked=False, links=tuple(links))


def _check_once(notes: Mapping[str, Note]) -> None:
    """Raises InputError where two files say that they are the same page."""
    seen: dict[Target, str] = {}
    for path, note in notes.items():
        if not note.id:
            continue
        if (other := seen.setdefault(note.target, path)) != path:
            raise InputError(
                f"{path} and {other} are both {note.id} of {note.session}; keep one, or take id, uid and hash out of "
                "the copy, which makes it a note of its own",
                code="note-twice",
            )


def _outcome(change: NoteChange, written: Note, *, is_page: bool, overwrite: bool) -> bool | None:
    """True to take a note in, None where there is nothing to take, False where both sides changed.

    `written` is the note as its file has it, whose links may lead to files that have become pages since.
    """
    path, note, here = change
    if is_page and written.state() == note.hash:
        return None
    if here is None:
        return not is_page
    state, stands = note.state(), here.note.state()
    taken_as = here.page.anchors.get(STATE)
    if state in (stands, taken_as):
        return None
    if note.masked:
        raise RefusedError(
            f"{path} was edited and some of its text is masked, so that the page would lose it; export with "
            "--no-redact and edit that",
            code="masked-note",
        )
    return overwrite or stands == taken_as or (is_page and stands == note.hash)


def _grouped(changes: Iterable[NoteChange]) -> dict[str, list[NoteChange]]:
    found: dict[str, list[NoteChange]] = {}
    for change in changes:
        name = change.stored.page.session if change.stored is not None else change.note.session or SESSION
        found.setdefault(name, []).append(change)
    return found


def _check(
    name: str, changes: Iterable[NoteChange], known: Mapping[Target, StoredNote], paths: Mapping[Target, str]
) -> None:
    """Raises where a change cannot be made, before any is."""
    new = {target for change in changes if change.stored is None for target in (("", change.path), change.note.target)}
    for path, note, stored in changes:
        for tag in note.tags:
            tag_text(tag)
        if not note.text.strip():
            raise InputError(f"{path} says nothing; write its text, or erase its page", code="not-a-note")
        if note.valid_from is not None and note.valid_to is not None and note.valid_from > note.valid_to:
            raise InputError(f"{path}: valid_to is before valid_from; swap the two", code="ends-before-it-begins")
        for link in note.links:
            other = known.get(link.target)
            is_here = link.target in new or (other is not None and other.page.session == name)
            if not is_here or (
                link.kind == LinkKind.CAUSED_BY.word and (stored is None or link not in stored.note.links)
            ):
                raise InputError(
                    f"{path}: a link {link.kind} to {paths.get(link.target, link.target[1])} cannot be made: links "
                    "hold within a session, and caused_by is made by tools alone",
                    code="link-not-by-hand",
                )
        if stored is not None:
            _check_edit(path, note, stored)


def _check_edit(path: str, note: Note, stored: StoredNote) -> None:
    before = stored.note
    if note.text != before.text and (stored.page.message is not None or stored.is_fact):
        why = (
            "was said in a message, and what was said stays" if stored.page.message else "is a fact, whose fields stay"
        )
        raise RefusedError(
            f"{path}: {before.id} {why}; put the text back, and write a new note that links to it with supersedes",
            code="said-stays",
        )
    for name in ("status", "valid_from", "valid_to"):
        if getattr(note, name) is None and getattr(before, name) is not None:
            raise RefusedError(f"{path}: {name} cannot be taken away, only changed; put it back", code="stays-set")


def _write(
    store: StoreHost,
    name: str,
    changes: Iterable[NoteChange],
    known: Mapping[Target, StoredNote],
    provenance: Mapping[str, str],
) -> None:
    """Writes the changes of a session as one commit."""

    session: Any = store
    into = session.session(name, create=True)
    uid: str = bytes(store._ns.views.execute("SELECT uid FROM sessions WHERE session = ?", (into._key,)).get).hex()

    def do(pen: Pen) -> None:
        numbers = {target: one.page.position for target, one in known.items()}
        for path, note, stored in changes:
            number = _created(pen, note, provenance) if stored is None else stored.page.position
            numbers["", path] = number
            if note.id:
                numbers[note.target] = number
        for path, note, stored in changes:
            number = numbers["", path]
            if stored is not None and note.text != stored.note.text:
                _rewrite(pen, number, stored.page.version, note.text)
            ends = {(link.kind, numbers[link.target]) for link in note.links}
            links = sorted(NoteLink(kind, (uid, page_name(end))) for kind, end in ends)
            state = msgspec.structs.replace(note, links=tuple(links)).state()
            pen.add(_annotation(pen, number, note, stored, {FILE: path, STATE: state, **provenance}))
            before = set() if stored is None else {(link.kind, numbers[link.target]) for link in stored.note.links}
            for kind, end in sorted(ends - before):
                pen.add(Link(number, end, int(LinkKind[kind.upper()])))
            for kind, end in sorted(before - ends):
                pen.add(Unlink(number, end, int(LinkKind[kind.upper()])))

    write(into, do)


def _created(pen: Pen, note: Note, provenance: Mapping[str, str]) -> int:
    part = Part(note.text.encode(), Modality.TEXT, Mime.TEXT, PageType[note.type.upper()])
    return pen.page(Draft(Role.USER, b"", (part,), actor=provenance.get(BY, ACTOR)), [])


def _rewrite(pen: Pen, number: int, version: int, text: str) -> None:
    content = text.encode()
    if pen.act is not None:
        edits.update(pen.act, number, content)
        return
    tokens = estimate(content, Modality.TEXT)
    pen.add(Update(number, version + 1, pen.cell(content), len(content), tokens))


def _annotation(pen: Pen, number: int, note: Note, stored: StoredNote | None, anchors: Mapping[str, str]) -> Annotate:
    """The annotation for what changed of a page beside its text, and for where it came from."""
    had = set() if stored is None else set(stored.note.tags)

    def sealed(value: Any) -> Any:
        return pen.cell(msgspec.json.encode(value)) if value else None

    def changed(name: str) -> Any:
        value = getattr(note, name)
        return None if stored is not None and value == getattr(stored.note, name) else value

    status = changed("status")
    return Annotate(
        page=number,
        status=None if status is None else int(Standing[status.upper()]),
        valid_from=changed("valid_from"),
        valid_to=changed("valid_to"),
        tags=sealed(sorted(set(note.tags) - had)),
        untags=sealed(sorted(had - set(note.tags))),
        anchors=sealed(dict(anchors)),
    )
