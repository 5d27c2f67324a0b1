"""Notes out and in, as parts of `vmstore export` and `vmstore import`: a folder of Markdown that git follows."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vmstore.errors import InputError
from vmstore.shell.open_store import open_to_ask, open_to_import
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import StyledText
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

NOTES = "notes"
NAMED_MAX = 20


def export_notes(arguments: argparse.Namespace, screen: Screen) -> int:
    """Brings a folder of notes to what the store says; 1 where edited files were left as they are."""
    from vmstore.core.asof import Head
    from vmstore.shell.open_store import moment_of

    if arguments.out == "-" or arguments.exact:
        raise InputError("notes are a folder of files, never exact; name the folder with --out", code="no-stream")
    if moment_of(arguments) != Head():
        raise InputError("notes say what the store says now; leave the moment out, and ask git for what they said")
    types = None if arguments.only is None else [word.strip() for word in arguments.only.split(",")]
    with open_to_ask(arguments) as store, screen.progress("exporting"):
        options = {"types": types, "redact": not arguments.no_redact, "overwrite": arguments.overwrite}
        report = store.export_notes(arguments.out, arguments.sessions or None, **options)
    if arguments.no_redact:
        screen.warn("nothing is masked: whatever secrets and personal data the sessions hold are in the notes")
    _name_conflicts(report.conflicts, "edited and not taken in; it stays", screen)
    done = f": {count(report.notes, 'note')} in {arguments.out}, {report.written} written, {report.removed} removed"
    left = f"; {count(report.left_out, 'page')} left out that are no text" if report.left_out else ""
    masked = "; masked: " + ", ".join(f"{kind} {n}" for kind, n in report.masked.items()) if report.masked else ""
    screen.answer(arguments, report, (StyledText("exported", "good"), f"{done}{left}{masked}"))
    return 1 if report.conflicts else 0


def import_notes(arguments: argparse.Namespace, folders: Sequence[Path], screen: Screen) -> int:
    """Takes in what is new or edited in folders of notes; 1 where something was changed on both sides."""
    if arguments.session or arguments.exact or arguments.vm or arguments.redact or arguments.follow or arguments.uses:
        raise InputError("a folder of notes takes --by and --overwrite; leave the other options out")
    conflicts = False
    with open_to_import(arguments) as store:
        for folder in folders:
            with screen.progress(f"importing {folder}"):
                report = store.import_notes(folder, by=arguments.by, overwrite=arguments.overwrite)
            _name_conflicts(report.conflicts, "changed here and in the store; not taken in", screen)
            if report.missing:
                screen.note(f"{count(len(report.missing), 'note')} not in {folder} any more; the store keeps the pages")
            done = f": {report.added} new, {report.changed} changed, {report.unchanged} as they were"
            screen.answer(arguments, report, (StyledText("imported", "good"), f"{done}, of {folder}"))
            conflicts |= bool(report.conflicts)
    return 1 if conflicts else 0


def note_folders(arguments: argparse.Namespace) -> list[Path]:
    """The folders of notes among what is to be imported; InputError where there are other things too."""
    from vmstore.store.notes.folder import MARK

    paths = [Path(word) for word in arguments.files]
    found = [path for path in paths if arguments.format == NOTES or (path / MARK).is_file()]
    if found and len(found) < len(paths):
        raise InputError(f"{found[0]} is a folder of notes and others are not; import them one by one")
    if missing := [path for path in found if not path.is_dir()]:
        raise InputError(f"{missing[0]} is no folder, and notes are one", code="not-notes")
    return found


def _name_conflicts(paths: Sequence[str], why: str, screen: Screen) -> None:
    for path in paths[:NAMED_MAX]:
        screen.warn(f"{path}: {why} (--overwrite takes the other side)")
    if len(paths) > NAMED_MAX:
        screen.warn(f"and {len(paths) - NAMED_MAX:,} more; --json names all")
