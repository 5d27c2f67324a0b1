"""The command that keeps a store up to date with sessions while their agents write them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import vmstore
from vmstore.core.clock import SystemClock
from vmstore.errors import ConflictError, InputError, LockedError, RefusedError, StoreError
from vmstore.shell.commands.arguments import Command, Parser, add_store
from vmstore.shell.commands.data.hooks import configurations, file_of
from vmstore.shell.commands.data.import_files import SUFFIXES
from vmstore.shell.open_store import open_to_import
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.namespace.reports import ImportReport

POLL_S = 0.5  # between two looks at the files that are known
SEEK_S = 2.0  # between two looks for new ones
SINCE_H = 24.0  # sessions that changed in the last hours are taken in at the start
ONCE_LOOKS = 10  # at most, where one is asked for and the store is busy
SHARE = 4  # a file is read again after so many times as long as reading it took
HOUR_US = 3_600_000_000


class FileStamp(NamedTuple):
    """The size and the time of the last change (ns) of a file."""

    size: int
    changed_ns: int


class WatchedFile:
    """One file: as it stood when it was taken in, when it may be read again (µs), and what was wrong with it."""

    def __init__(self) -> None:
        self.taken: FileStamp | None = None
        self.due = 0
        self.problem = ""
        self.refused = False


def watch(arguments: argparse.Namespace, screen: Screen) -> int:
    """Imports what grows until Ctrl-C; prints or runs hooks of agents instead, where that is asked."""
    if arguments.hooks:
        return _show_hooks(arguments, screen)
    if arguments.hook:
        arguments.files, arguments.once = [file_of(arguments.files[0] if arguments.files else sys.stdin.read())], True
    watcher = Watcher(arguments, screen)
    try:
        watcher.run(once=arguments.once)
    except KeyboardInterrupt:
        screen.note("")
    finally:
        watcher.close()
    return 1 if arguments.once and watcher.failed else 0


class Watcher:
    """The files that are watched, and the store they are taken into."""

    def __init__(self, arguments: argparse.Namespace, screen: Screen) -> None:
        self.failed = False  # at the last look
        self._waiting = False  # for what another attempt may mend
        self._arguments = arguments
        self._screen = screen
        self._clock = SystemClock()
        self._files: dict[Path, WatchedFile] = {}
        self._store: vmstore.Store | None = None
        self._sought = -SEEK_S * 1e6

    def run(self, *, once: bool) -> None:
        """Looks again and again; once where that is asked."""
        self._opened()  # a store that cannot be had is said at once
        self._seek(first=True)
        self._say_missing(once)
        if not once:
            self._screen.note(f"watching {count(len(self._files), 'file')}; Ctrl-C ends it")
        left = ONCE_LOOKS
        while True:
            self._look()
            left -= 1
            if once and (left == 0 or not self._waiting):
                return
            time.sleep(POLL_S)
            if self._clock.ticks() - self._sought > SEEK_S * 1e6:
                self._seek()

    def _say_missing(self, once: bool) -> None:
        """Names the files that are not there; a look that is not repeated is refused them, a hook's is not."""
        for path in (Path(word) for word in self._arguments.files):
            if not path.exists():
                if once and not self._arguments.hook:
                    raise InputError(f"there is no file {path}; name one that is there, or watch without --once")
                self._screen.note(f"{path} is not there yet; it is taken in once it is")

    def close(self) -> None:
        """Closes the store."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def _seek(self, *, first: bool = False) -> None:
        """Adds the files that are there now; of those that were there at the start only what changed lately."""
        since = self._clock.now() - round(self._arguments.since * HOUR_US)
        for path in _named(self._arguments):
            if path in self._files or (stamp := _stamp(path)) is None:
                continue
            self._files[path] = WatchedFile()
            if first and self._arguments.discover and not self._arguments.all and stamp.changed_ns // 1000 < since:
                self._files[path].taken = stamp
        self._sought = self._clock.ticks()

    def _look(self) -> None:
        """Takes in every file that changed and is due."""
        self.failed = self._waiting = False
        for path, file in self._files.items():
            stamp = _stamp(path)
            self.failed |= file.refused
            if stamp is None or stamp == file.taken or self._clock.ticks() < file.due:
                continue
            began = self._clock.ticks()
            try:
                report = self._opened().import_file(
                    path, format=self._arguments.format, redaction=self._arguments.redact
                )
            except (ConflictError, LockedError, OSError, StoreError) as error:  # another attempt may mend it
                self._waiting = True
                self._trouble(path, file, error)
                self.close()
            except (InputError, RefusedError) as error:
                file.taken, file.refused = stamp, not _begins(error)  # it is as it is until it changes
                if file.refused:
                    self._trouble(path, file, error)
            else:
                file.taken, file.problem, file.refused = stamp, "", False
                self._show(path, report)
            file.due = self._clock.ticks() + SHARE * (self._clock.ticks() - began)

    def _opened(self) -> vmstore.Store:
        if self._store is None:
            self._store = open_to_import(self._arguments)
        return self._store

    def _trouble(self, path: Path, file: WatchedFile, error: Exception) -> None:
        """Says what is wrong with a file, once until it is another thing."""
        self.failed = True
        if str(error) != file.problem:
            file.problem = str(error)
            self._screen.warn(str(error) if str(path) in str(error) else f"{path}: {error}")

    def _show(self, path: Path, report: ImportReport) -> None:
        """Prints what came of a file, if anything."""
        for problem in report.problems:
            self._screen.warn(f"{path}:{problem.line}: {problem.reason}; kept as is")
        if not report.new:
            return
        if self._arguments.json:
            self._screen.json({"file": str(path), "new": report.new, "sessions": report.sessions}, one_line=True)
        else:
            main = report.sessions[0]
            place = f"turn {main.turns}, call {main.calls}, position {main.position}"
            self._screen.show(f"{main.session} ({main.format}): {count(report.new, 'record')} more; now at {place}")
        self._screen.out.flush()


def _begins(error: Exception) -> bool:
    """Whether a file only begins: nothing is in it yet, or nothing that tells what it will be."""
    return getattr(error, "code", None) in ("empty-file", "unrecognised-format")


def _named(arguments: argparse.Namespace) -> Iterable[Path]:
    """The files there are: those of agents on this machine, or those that are named and in folders that are."""
    if arguments.discover:
        from vmstore.shell.commands.data.discover import files_of

        yield from files_of(arguments.format)
    for word in arguments.files:
        path = Path(word)
        if path.is_dir():
            yield from sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
        else:
            yield path


def _stamp(path: Path) -> FileStamp | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return FileStamp(about.st_size, about.st_mtime_ns)


def _show_hooks(arguments: argparse.Namespace, screen: Screen) -> int:
    texts = configurations(Path(arguments.store))
    if arguments.json:
        screen.json({"hooks": [text._asdict() for text in texts]})
    else:
        for text in texts:
            screen.show(f"{text.agent}: {text.about}", *text.text.splitlines(), "")
    return 0


def _hours(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of hours")
    return value


def _add_watch(parser: Parser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="*", help="a session file, or a folder of them")
    parser.add_argument(
        "--discover", action="store_true", help="watch the sessions of Claude Code, Codex and pi on this machine"
    )
    parser.add_argument(
        "--since", type=_hours, metavar="HOURS", default=SINCE_H,
        help="with --discover: take in at the start what changed in the last hours (default: 24)",
    )  # fmt: skip
    parser.add_argument("--all", action="store_true", help="with --discover: take in every session at the start")
    parser.add_argument("--once", action="store_true", help="look once, then leave: 1 where a file was refused")
    parser.add_argument("--format", metavar="F", help="only sessions of this format (default: auto-detect)")
    parser.add_argument(
        "--redact",
        choices=("off", "mask", "refuse"),
        metavar="off|mask|refuse",
        help="what to do with secrets and personal data (default: as the session has it; off for a new one)",
    )
    hooks = parser.add_argument_group("hooks of agents")
    hooks.add_argument("--hooks", action="store_true", help="print what to put into the settings of each agent")
    hooks.add_argument("--hook", action="store_true", help="take in the session that an agent's hook tells of")
    parser.wrong = _misuse


def _misuse(arguments: argparse.Namespace) -> str | None:
    if arguments.hooks or arguments.hook:
        return "--hook and --hooks go without --discover" if arguments.discover else None
    if not arguments.discover and not arguments.files:
        return "name FILE, or find the sessions of this machine with --discover"
    return None


COMMANDS = (
    Command(
        "watch",
        "import",
        "keep a store up to date with sessions while agents write them",
        "Takes in what agents write, as they write it: the sessions of Claude Code, Codex and pi on this machine,\n"
        "or files and folders that are named. Each addition is a line. It may be stopped and started again at any\n"
        "time. --hooks prints settings with which an agent tells of its sessions itself.",
        (
            "vmstore watch agent.vms --discover",
            "vmstore watch agent.vms logs/ --redact mask",
            "vmstore watch agent.vms --hooks",
        ),
        watch,
        (add_store, _add_watch),
    ),
)
