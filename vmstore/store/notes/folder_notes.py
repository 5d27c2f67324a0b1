"""The notes of a folder as they stand in it, their links resolved to pages."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from vmstore.errors import InputError
from vmstore.seals.seal import uid_of
from vmstore.store.host import StoreHost
from vmstore.store.notes.folder import NoteFile, files, leads_to
from vmstore.store.notes.front_matter import parsed
from vmstore.store.notes.note import Note, Target, note_of


class FolderNotes(NamedTuple):
    """The notes of a folder by path, and why a file is none."""

    notes: dict[str, Note]
    broken: dict[str, InputError]


def log_uid(store: StoreHost) -> str | None:
    """The uid of the namespace whose notes a folder holds; None of one that holds nothing."""
    log = store._ns.log
    return uid_of(log) if log.ordinal else None


def read_notes(folder: Path) -> FolderNotes:
    """Reads all of a folder; InputError where something in it could lead elsewhere, or is no text."""
    read = list(files(folder))
    targets = {file.path: _target(file) for file in read}
    notes, broken = dict[str, Note](), dict[str, InputError]()
    for file in read:
        try:
            notes[file.path] = _note(file, targets)
        except InputError as error:
            broken[file.path] = error
    return FolderNotes(notes, broken)


def _target(file: NoteFile) -> Target:
    """The page that a file is, as far as its front matter can be read; a new file by its path."""
    try:
        fields, _ = parsed(file.text, file.path)
    except InputError:
        return ("", file.path)
    uid, id = fields.get("uid"), fields.get("id")
    return (uid, id) if isinstance(uid, str) and isinstance(id, str) and uid and id else ("", file.path)


def _note(file: NoteFile, targets: dict[str, Target]) -> Note:
    def target_of(path: str, line: int) -> Target:
        place = leads_to(file.path, path)
        if place not in targets:
            raise InputError(
                f"{file.path}:{line}: there is no note {place}; take the link out, or add the note",
                code="not-a-note",
            )
        return targets[place]

    return note_of(file.text, file.path, target_of)
