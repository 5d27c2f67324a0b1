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

from vmstore.capture.importers.formats import read
from vmstore.capture.redaction import reading_of
from vmstore.core.redaction import Redaction
from vmstore.errors import ConflictError, InputError, RefusedError
from vmstore.namespace.namespace import session_name
from vmstore.namespace.reports import Import
from vmstore.namespace.results import to_json
from vmstore.shell.commands.data.discover import discover
from vmstore.shell.commands.data.redrive import redriven, settings_of
from vmstore.shell.open_store import exists, open_to_import
from vmstore.shell.terminal import format_session
from vmstore.shell.terminal.confirm import asker
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.render import Screen
from vmstore.store.store import Store
from vmstore.transfer.bundle_import import check_bundle, is_bundle
from vmstore.transfer.sessions import BUNDLE

POLL_S = 0.5
PROBLEMS_SHOWN = 20  # on a terminal; a pipe gets them all

Stamp = tuple[int, int] | None


def import_files(arguments: argparse.Namespace, screen: Screen) -> int:
    """Imports files in order; one that is refused is named, and the others are taken in.

    With --discover they are those of this machine, which are imported only where told --all.
    """
    if arguments.discover:
        arguments.files = discover(arguments, screen)
        arguments.format = None
        if not arguments.all or not arguments.files:
            return 0
    if arguments.session is not None:
        session_name(arguments.session)
    settings = None if arguments.vm is None else settings_of(arguments.vm)
    files = [Path(file) for file in arguments.files]
    stamps = {file: _stamp(file) for file in files}
    readable = files
    if not exists(arguments):  # no store is made for files that none can be taken from
        readable = list(dropwhile(lambda file: not _reads(file, arguments, screen), files))
    if not readable:
        return 1
    with open_to_import(arguments) as store:
        taken = [one for file in readable if (one := _import(store, file, arguments, screen)) is not None]
        if taken:
            _report(taken, arguments, screen)
        again = settings is None or redriven(store, [s for one in taken for s in one.sessions], settings, screen)
        if arguments.follow and taken:
            _follow(store, stamps, arguments, screen)
    return 0 if again and len(taken) == len(files) else 1


def _reads(file: Path, arguments: argparse.Namespace, screen: Screen) -> bool:
    """Whether a file can be read at all, asked before a store is made for it."""
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


def _import(store: Store, file: Path, arguments: argparse.Namespace, screen: Screen) -> Import | None:
    """Imports one file and names what was odd about it; None where it is refused."""
    try:
        with screen.progress(f"importing {file.name}") as tell:
            told = {"session": arguments.session, "format": arguments.format, "exact": arguments.exact}
            told["redaction"], told["agreed"] = arguments.redact, asker(arguments)
            told["uses"] = arguments.uses
            found = store.import_file(file, **told, progress=tell)
    except (InputError, ConflictError, RefusedError) as error:
        screen.warn(str(error))
        return None
    shown = found.problems[:PROBLEMS_SHOWN] if sys.stderr.isatty() else found.problems
    for problem in shown:
        screen.warn(f"{file}:{problem.line}: {problem.reason}; kept as it stands")
    if len(shown) < len(found.problems):
        screen.warn(f"{file}: {len(found.problems) - len(shown)} more lines could not be read and are kept")
    if found.torn is not None and not arguments.follow:
        screen.warn(f"{file}:{found.torn}: the last line is torn; it is left for the next import")
    return found


def _report(taken: Sequence[Import], arguments: argparse.Namespace, screen: Screen) -> None:
    sessions = [session for one in taken for session in one.sessions]
    if arguments.json:
        told = {"suspects": _together(one.suspects for one in taken), "masked": _together(one.masked for one in taken)}
        pages = [page for one in taken for page in one.suspect_pages]
        hidden = {**told, "suspect_pages": pages} if pages or told["masked"] else {}
        effects = [effect for one in taken for effect in one.effects]
        done = {"effects": effects} if effects else {}
        screen.json({"sessions": to_json(sessions), **hidden, **done}, one_line=arguments.follow)
    elif not screen.quiet:
        screen.show(format_session.imported(sessions))
    new = sum(one.new for one in taken)
    screen.note(f"{count(new, 'record')} taken in" if new else "nothing new: every record was there already")
    for effect in (effect for one in taken for effect in one.effects):
        screen.note(f"done here: {effect}")
    for line in _hidden(taken, arguments):
        screen.note(line)


def _together(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for one in counts:
        found.update(one)
    return dict(sorted(found.items()))


def _hidden(taken: Sequence[Import], arguments: argparse.Namespace) -> Iterator[str]:
    """What was masked, or could have been: kinds and how many, never a value."""
    masked, suspects = _together(one.masked for one in taken), _together(one.suspects for one in taken)
    if masked:
        yield "masked: " + ", ".join(f"{kind} {times}" for kind, times in masked.items())
    if suspects:
        pages = [page for one in taken for page in one.suspect_pages]
        listed = ", ".join(count(number, kind.replace("_", " ")) for kind, number in suspects.items())
        session, _, page = pages[0].rpartition("/")
        query = f"HISTORY OF {page} IN SESSION '{session}'"
        asked = shlex.quote(query) if set(query) & set('"$`\\!') else f'"{query}"'
        look = f"vmql {shlex.quote(str(arguments.store))} {asked}"
        yield f"suspects: {listed} in {count(len(pages), 'page')}; import with --redact mask, or look: {look}"


def _follow(store: Store, stamps: dict[Path, Stamp], arguments: argparse.Namespace, screen: Screen) -> None:
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
                _addition(_import(store, file, arguments, screen), arguments, screen)
    except KeyboardInterrupt:
        screen.note("")


def _addition(found: Import | None, arguments: argparse.Namespace, screen: Screen) -> None:
    """Prints what one more import added, if anything."""
    if found is None or not found.new:
        return
    if arguments.json:
        screen.json({"sessions": to_json(found.sessions)}, one_line=True)
    else:
        main = found.sessions[0]
        place = f"turn {main.turns}, call {main.calls}, position {main.position}"
        screen.show(f"{main.session}: {count(found.new, 'record')} more; now at {place}")
    sys.stdout.flush()


def _stamp(file: Path) -> Stamp:
    """What changes when a file does; None where it is not there."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
