"""The import command: files in, sessions out, and the tail of a file that still grows."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING

import vmstore
from vmstore.errors import ConflictError, InputError, RefusedError
from vmstore.shell.commands.arguments import STORE_HELP, Command, Parser
from vmstore.shell.open_store import exists, open_to_import
from vmstore.shell.terminal import format_session
from vmstore.shell.terminal.confirm import asker
from vmstore.shell.terminal.exit_codes import INTERRUPTED
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.namespace.reports import ImportReport

POLL_S = 0.5
SUFFIXES = (".jsonl", ".json", ".traj", ".af", ".zst")  # what is looked for in a folder
PROBLEMS_SHOWN = 20  # on a terminal; a pipe gets them all

Stamp = tuple[int, int] | None


def import_files(arguments: argparse.Namespace, screen: Screen) -> int:
    """Imports files in order; one that is refused is named, and the others are taken in.

    With --discover they are those of this machine, which are imported only with --all.
    """
    from vmstore.namespace.namespace import session_name
    from vmstore.shell.commands.data.discover import discover
    from vmstore.shell.commands.data.notes import import_notes, note_folders
    from vmstore.shell.commands.data.redrive import redriven, settings_of

    if arguments.discover:
        arguments.files = discover(arguments, screen)
        arguments.format = None
        if not arguments.all or not arguments.files:
            return 0
    if folders := note_folders(arguments):
        return import_notes(arguments, folders, screen)
    if arguments.by or arguments.overwrite:
        raise InputError("--by and --overwrite are of a folder of notes; leave them out")
    if arguments.session is not None:
        session_name(arguments.session)
    settings = None if arguments.vm is None else settings_of(arguments.vm)
    files = [file for word in arguments.files for file in _files_in(Path(word))]
    stamps = {file: _stamp(file) for file in files}
    readable = files
    if not exists(arguments):  # no store is made for files that none can be taken from
        readable = list(dropwhile(lambda file: not _is_readable(file, arguments, screen), files))
    if not readable:
        return 1
    with open_to_import(arguments) as store:
        reports, stopped = _import_all(store, readable, arguments, screen)
        if reports:
            _show_reports(reports, arguments, screen)
        redriven_all = settings is None or redriven(
            store, [s for report in reports for s in report.sessions], settings, screen
        )
        if arguments.follow and reports:
            _follow(store, stamps, arguments, screen)
    if stopped:
        return INTERRUPTED
    return 0 if redriven_all and len(reports) == len(files) else 1


def _import_all(
    store: vmstore.Store, files: Sequence[Path], arguments: argparse.Namespace, screen: Screen
) -> tuple[list[ImportReport], bool]:
    """Imports files in order; what was imported, and whether somebody stopped it."""
    reports: list[ImportReport] = []
    for number, file in enumerate(files):
        try:
            report = _import(store, file, arguments, screen)
        except KeyboardInterrupt:
            rest = f"; {count(len(files) - number - 1, 'file')} after it not begun" if number + 1 < len(files) else ""
            screen.warn(f"stopped in {file}, which is half in{rest}; run the same command again to go on")
            return reports, True
        if report is not None:
            reports.append(report)
    return reports, False


def _files_in(path: Path) -> list[Path]:
    """A file, or the session files of a folder by name; raises InputError where a folder has none."""
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if not found:
        raise InputError(
            f"{path} holds no session file ({', '.join(SUFFIXES)}); name a file, or another folder", code="empty-folder"
        )
    return found


def _is_readable(file: Path, arguments: argparse.Namespace, screen: Screen) -> bool:
    """Returns whether a file can be read; checked before a store is created for it."""
    from vmstore.capture.importers.formats import read
    from vmstore.capture.redaction import reading_of
    from vmstore.core.redaction import Redaction
    from vmstore.transfer.bundle_import import check_bundle, is_bundle
    from vmstore.transfer.sessions import BUNDLE

    try:
        if arguments.format == BUNDLE or (arguments.format is None and is_bundle(file)):
            check_bundle(file)
        else:
            reading = read(file, arguments.format)
            if arguments.redact == "refuse":
                reading_of(reading, Redaction.REFUSE)
    except (InputError, RefusedError) as error:
        screen.warn(str(error))
        return False
    return True


def _import(store: vmstore.Store, file: Path, arguments: argparse.Namespace, screen: Screen) -> ImportReport | None:
    """Imports one file and prints its problems; None if it is refused."""
    try:
        with screen.progress(f"importing {file.name}") as tell:
            options = {"session": arguments.session, "format": arguments.format, "exact": arguments.exact}
            options["redaction"], options["agreed"] = arguments.redact, asker(arguments)
            options["uses"] = arguments.uses
            report = store.import_file(file, **options, progress=tell)
    except (InputError, ConflictError, RefusedError) as error:
        screen.warn(str(error))
        return None
    problems = report.problems[:PROBLEMS_SHOWN] if sys.stderr.isatty() else report.problems
    for problem in problems:
        screen.warn(f"{file}:{problem.line}: {problem.reason}; kept as is")
    if len(problems) < len(report.problems):
        screen.warn(f"{file}: {len(report.problems) - len(problems)} more lines could not be read and are kept")
    if report.torn is not None and not arguments.follow:
        screen.warn(f"{file}:{report.torn}: the last line is torn; it is left for the next import")
    return report


def _show_reports(reports: Sequence[ImportReport], arguments: argparse.Namespace, screen: Screen) -> None:
    sessions = [session for report in reports for session in report.sessions]
    if arguments.json:
        findings = {
            "suspects": _sum_counts(report.suspects for report in reports),
            "masked": _sum_counts(report.masked for report in reports),
        }
        pages = [page for report in reports for page in report.suspect_pages]
        hidden = {**findings, "suspect_pages": pages} if pages or findings["masked"] else {}
        effects = [effect for report in reports for effect in report.effects]
        done = {"effects": effects} if effects else {}
        screen.json({"sessions": sessions, **hidden, **done}, one_line=arguments.follow)
    elif not screen.quiet:
        screen.show(format_session.imported(sessions))
    new = sum(report.new for report in reports)
    screen.note(f"imported {count(new, 'record')}" if new else "nothing new: every record was there already")
    for effect in (effect for report in reports for effect in report.effects):
        screen.note(f"done here: {effect}")
    for line in _redaction_notes(reports, arguments):
        screen.note(line)


def _sum_counts(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for counter in counts:
        total.update(counter)
    return dict(sorted(total.items()))


def _redaction_notes(reports: Sequence[ImportReport], arguments: argparse.Namespace) -> Iterator[str]:
    """Summarises what was masked, and what looks like a secret: counts by kind, never a value."""
    masked, suspects = (
        _sum_counts(report.masked for report in reports),
        _sum_counts(report.suspects for report in reports),
    )
    if masked:
        yield "masked: " + ", ".join(f"{kind} {times}" for kind, times in masked.items())
    if suspects:
        pages = [page for report in reports for page in report.suspect_pages]
        listed = ", ".join(count(number, kind.replace("_", " ")) for kind, number in suspects.items())
        session, _, page = pages[0].rpartition("/")
        look = f"vmstore page {shlex.quote(str(arguments.store))} {shlex.quote(session)} {page}"
        yield f"possible secrets: {listed}, in {count(len(pages), 'page')}; look: {look}"
        yield "import with --redact mask to keep them out of a store"


def _follow(store: vmstore.Store, stamps: dict[Path, Stamp], arguments: argparse.Namespace, screen: Screen) -> None:
    """Imports again what grows, until Ctrl-C."""
    screen.note("following; Ctrl-C ends it")
    sys.stdout.flush()
    try:
        while True:
            time.sleep(POLL_S)
            for file, seen in stamps.items():
                now = _stamp(file)
                if now == seen or now is None:
                    continue
                stamps[file] = now
                _show_addition(_import(store, file, arguments, screen), arguments, screen)
    except KeyboardInterrupt:
        screen.note("")


def _show_addition(report: ImportReport | None, arguments: argparse.Namespace, screen: Screen) -> None:
    """Prints what one more import added, if anything."""
    if report is None or not report.new:
        return
    if arguments.json:
        screen.json({"sessions": report.sessions}, one_line=True)
    else:
        main = report.sessions[0]
        place = f"turn {main.turns}, call {main.calls}, position {main.position}"
        screen.show(f"{main.session}: {count(report.new, 'record')} more; now at {place}")
    sys.stdout.flush()


def _stamp(file: Path) -> Stamp:
    """Returns size and modification time of a file, None if it is missing."""
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns


def _add_import(parser: Parser) -> None:
    parser.add_argument("store", metavar="STORE", nargs="?", help=STORE_HELP)
    parser.add_argument("files", metavar="FILE", nargs="*", help="a session file, or a folder of them")
    found = parser.add_argument_group("sessions on this machine")
    found.add_argument(
        "--discover", action="store_true", help="list those of Claude Code, Codex and pi, newest first; needs no STORE"
    )
    found.add_argument("--all", action="store_true", help="with --discover and a STORE: import them all")
    parser.wrong = _misuse_of_import
    parser.add_argument("--session", metavar="NAME", help="call the session NAME, not by its own id or the file")
    parser.add_argument(
        "--format",
        metavar="F",
        help="pi, claude-code, codex, swe-agent, tau-bench, letta, locomo, otlp, responses, anthropic, gemini, "
        "chat-completions, bundle, notes (default: auto-detect)",
    )
    parser.add_argument(
        "--exact", action="store_true", help="of a bundle: the very same commits, salts and hashes, under their names"
    )
    parser.add_argument(
        "--yes", action="store_true", help="let erasures and settings in an exact bundle take effect here"
    )
    parser.add_argument(
        "--vm",
        metavar="budget=N,…",
        help="also replay each session as NAME-vm, with vmstore managing the context: budget=8000,policy=lru",
    )
    parser.add_argument(
        "--redact",
        choices=("off", "mask", "refuse"),
        metavar="off|mask|refuse",
        help="what to do with secrets and personal data (default: as the session has it; off for a new one)",
    )
    parser.add_argument("--uses", action="store_true", help="log what each call used of the pages, and topics: slower")
    notes = parser.add_argument_group("notes, a folder of `vmstore export --format notes`")
    notes.add_argument("--by", metavar="NAME", help="who wrote what is new in it")
    notes.add_argument("--overwrite", action="store_true", help="take what was edited over what the store changed too")
    parser.add_argument("--follow", action="store_true", help="go on importing as the files grow, until Ctrl-C")


def _misuse_of_import(arguments: argparse.Namespace) -> str | None:
    """Returns the message for arguments of `import` that exclude each other."""
    if arguments.all and not arguments.discover:
        return "--all goes with --discover"
    if not arguments.discover:
        missing = [word for word, given in (("STORE", arguments.store), ("FILE", arguments.files)) if not given]
        return f"the following arguments are required: {', '.join(missing)}" if missing else None
    if arguments.files:
        return "--discover finds files itself; leave FILE out, or --discover"
    return "--all needs a STORE to import into" if arguments.all and arguments.store is None else None


COMMANDS = (
    Command(
        "import",
        "import",
        "take session files into a store, which is made where there is none",
        "Takes session files into a store: those of pi, Claude Code, Codex, Letta, SWE-agent and tau-bench,\n"
        "LoCoMo, traces of OpenTelemetry, messages as the providers' APIs write them, and bundles of\n"
        "`vmstore export`, recognised by their content. The same file again changes nothing, a grown one\n"
        "adds its new part. What cannot be read is kept as it stands, counted and named. --discover lists the\n"
        "sessions on this machine.",
        (
            "vmstore import --discover",
            "vmstore import agent.vms live.jsonl --session today --follow",
            "vmstore import agent.vms session.jsonl --vm budget=64000,policy=default",
        ),
        import_files,
        (_add_import,),
    ),
)
