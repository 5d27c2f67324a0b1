"""Notes out: a folder brought to what the store says now, file by file, and what somebody edited there left alone."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec

from vmstore.errors import UnknownError
from vmstore.store.host import StoreHost
from vmstore.store.notes.folder import begun, removed, written
from vmstore.store.notes.folder_notes import log_uid, read_notes
from vmstore.store.notes.note import resolved
from vmstore.store.notes.pages import STATE, stored_notes


class NotesExport(msgspec.Struct, frozen=True):
    """Result of writing notes: how many there are, how many files were written and removed, and what was not done.

    `conflicts` are files that somebody edited and that are not taken in: they stay as they are. `left_out` counts pages
    that are no note: erased, no text, or never held by their source; `masked` what was masked, by kind.
    """

    notes: int
    written: int
    removed: int
    conflicts: list[str]
    left_out: int
    masked: dict[str, int]


def export_notes(
    store: StoreHost,
    folder: Path,
    *,
    sessions: Collection[str] | None = None,
    types: Collection[str] | None = None,
    redact: bool = True,
    overwrite: bool = False,
) -> NotesExport:
    """Writes the pages of a store as notes into a folder, made where there is none.

    Only files that say something else are written, and notes of pages that are there no more are removed. A file that
    was edited and not taken in stays, and is named, unless `overwrite`. Raises StoreError where the folder is of
    something else, InputError where a file in it cannot be read.
    """
    stored = stored_notes(store, sessions, types, redact=redact)
    uid = log_uid(store)
    if uid is None:
        raise UnknownError("the store holds no session yet; record or import one", code="nothing-to-export")
    begun(folder, uid)
    known = stored.by_file() | stored.by_target()
    found, broken = read_notes(folder)

    def is_kept(path: str) -> bool:
        """Whether a file says what nobody has taken in."""
        note = found.get(path)
        if overwrite or note is None:
            return not overwrite and path in broken
        if note.hash is not None and note.state() == note.hash:
            return False
        here = known.get(note.target if note.id else ("", path))
        state = resolved(note, known).state()
        return here is None or state not in (here.note.state(), here.page.anchors.get(STATE))

    texts = dict(stored.printed())
    conflicts = [path for path in texts if is_kept(path)]
    changed = sum(written(folder, path, text) for path, text in texts.items() if path not in conflicts)
    gone = 0
    for path, note in found.items():
        if path in texts or note.hash is None:
            continue  # a new file stays
        if is_kept(path):
            conflicts.append(path)
        else:
            removed(folder, path)
            gone += 1
    return NotesExport(len(texts), changed, gone, sorted(conflicts), stored.left_out, stored.masked)
