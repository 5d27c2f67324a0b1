"""Tries mutants: which tests reach a line, and what they say when it is changed.

Everything runs in forks of a process that has the tests collected already, so a mutant costs the
tests that reach it and nothing else. The code of its functions is put in the place of theirs; what
a module does when it is imported is changed in a fork that has not imported it yet.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import shutil
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, settings
from mutation.change import Mutant

QUIET = ("-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain", "--no-header", "--no-summary")
MEMORY_MAX = 8 << 30  # of a trial
CPU_S = 2.0  # what a test may take beyond four times what it took
WALL_S = 60.0  # what it may wait beyond twenty times that
IMPORT = "import"  # what sees a mutant that cannot even be imported
FREED, HELD, BROKEN = 0, 1, 2  # how a trial ends by itself: no test said no, one did, pytest could not run


class Reach(NamedTuple):
    """What a test took, and the lines of each room that it ran."""

    cpu_s: float
    lines: dict[str, list[int]]


class Outcome(NamedTuple):
    """What became of a mutant, and which test saw it."""

    status: str
    test: str | None
    cpu_s: float


def forked(work: Callable[[], int]) -> tuple[int, float]:
    """Does work in a fork that prints nothing: the code or the negative signal it ended with, and its CPU seconds."""
    child = os.fork()
    if not child:
        code = BROKEN
        try:
            os.setsid()
            nowhere = os.open(os.devnull, os.O_RDWR)
            for handle in (0, 1, 2):
                os.dup2(nowhere, handle)
            code = work()
        finally:
            os._exit(code)
    _, status, used = os.wait4(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what its tests left behind
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime


class Session:
    """A pytest plug-in that runs what it is given instead of all tests, with hypothesis drawing but not shrinking."""

    def __init__(self, work: Callable[[dict[str, pytest.Item]], int]) -> None:
        self._work = work
        self.code = BROKEN

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Tests made from now on look for one counterexample and leave it as it is."""
        settings.register_profile("mutants", phases=(Phase.explicit, Phase.generate), report_multiple_bugs=False)
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Does the work on the tests that were collected."""
        if session.testsfailed:
            raise session.Interrupted("the tests cannot be collected")
        self.code = self._work({item.nodeid: item for item in session.items})
        return True


def with_tests(root: Path, tests: Iterable[str], place: Path, work: Callable[[dict[str, pytest.Item]], int]) -> int:
    """Collects tests and does work on them; the code of the work, BROKEN where they cannot be collected."""
    plugin = Session(work)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        pytest.main([*QUIET, f"--rootdir={root}", f"--basetemp={place}", *tests], plugins=[plugin])
    return plugin.code


# ---- which tests reach which lines


def watched(root: Path, rooms: Sequence[str]) -> Any:
    """A watch over the lines of some files, begun."""
    import coverage

    watch = coverage.Coverage(data_file=None, include=[str(root / room) for room in rooms], messages=False)
    watch.start()
    return watch


def lines(watch: Any, root: Path, rooms: Sequence[str]) -> dict[str, dict[str, list[int]]]:
    """What a watch saw: lines by room, by what was running."""
    watch.stop()
    fields: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for room in rooms:
        for line, names in watch.get_data().contexts_by_lineno(str(root / room)).items():
            for name in names:
                fields[name][room].append(line)
    return fields


def imported(root: Path, rooms: Sequence[str], to: Path) -> int:
    """Writes down which lines the import of each room runs."""
    watch = watched(root, rooms)
    for room in rooms:
        importlib.import_module(room.removesuffix(".py").replace("/", "."))
    to.write_text(json.dumps(lines(watch, root, rooms)[""]))
    return FREED


def reach(root: Path, rooms: Sequence[str], tests: Sequence[str], place: Path, to: Path) -> int:
    """Runs tests under watch and writes down what each took and reached, or the one that fails as it is."""
    watch = watched(root, rooms)
    took: dict[str, float] = {}

    def run(items: dict[str, pytest.Item]) -> int:
        other_items = list(items.values())
        for item, after in zip(other_items, [*other_items[1:], None], strict=True):
            watch.switch_context(item.nodeid)
            started = _cpu()
            if not _passes(item, after):
                to.write_text(json.dumps({"failed": item.nodeid}))
                return HELD
            took[item.nodeid] = _cpu() - started
        return FREED

    code = with_tests(root, tests, place / "tests", run)
    actual_lines = lines(watch, root, rooms)
    if code == FREED:
        to.write_text(json.dumps({name: Reach(cpu_s, actual_lines.get(name, {})) for name, cpu_s in took.items()}))
    return code


def _cpu() -> float:
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


class _Verdict:
    """Hears what pytest says of a test."""

    failed = False

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Takes one report in."""
        self.failed = self.failed or report.failed


def _passes(item: pytest.Item, after: pytest.Item | None) -> bool:
    verdict = _Verdict()
    item.config.pluginmanager.register(verdict)
    try:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
    finally:
        item.config.pluginmanager.unregister(verdict)
    return not verdict.failed


# ---- what they say of a mutant


class Order:
    """Which tests are asked about a mutant, and in which order: those that saw others near it, then the short ones."""

    def __init__(self, reached: Mapping[str, Reach], budget_s: float) -> None:
        self._reached = reached
        self._budget_s = budget_s
        self._saw: dict[str, Counter[str]] = defaultdict(Counter)

    def of(self, mutant: Mutant) -> list[str]:
        """The tests that reach a mutant, as many as the budget has room for."""
        span = set(mutant.span)
        here = [
            (test, reach.cpu_s)
            for test, reach in self._reached.items()
            if test and mutant.room in reach.lines and (mutant.fresh or span.intersection(reach.lines[mutant.room]))
        ]
        near, room = self._saw[_place(mutant)], self._saw[mutant.room]
        here.sort(key=lambda row: (-near[row[0]], -room[row[0]] if row[1] < 0.5 else 0, row[1]))
        wanted, left = [], self._budget_s
        for test, cpu_s in here:
            if not wanted or cpu_s <= left:
                wanted.append(test)
                left -= cpu_s
        return wanted

    def limits(self, test: str) -> tuple[float, float]:
        """How many seconds a test may work and wait before it is said to hang."""
        took = self._reached[test].cpu_s
        return CPU_S + 4 * took, WALL_S + 20 * took

    def note(self, mutant: Mutant, test: str | None) -> None:
        """Remembers which test saw a mutant."""
        if test is not None:
            self._saw[_place(mutant)][test] += 1
            self._saw[mutant.room][test] += 1


def _place(mutant: Mutant) -> str:
    return mutant.name.partition(": ")[0]


class Trials:
    """Tries mutants, one after the other; `told` hears what became of each."""

    def __init__(self, root: Path, place: Path, order: Order, act: Callable[[Mutant, Outcome], None]) -> None:
        self._root = root
        self._place = place
        self._note = place / "test"
        self._order = order
        self._told = act

    def fresh(self, mutants: Iterable[Mutant]) -> None:
        """Tries mutants of what imports do, each in a fork that has not imported anything of it."""
        for mutant in mutants:
            names = self._order.of(mutant)
            files = sorted({name.partition("::")[0] for name in names})

            def work(mutant: Mutant = mutant, names: list[str] = names, files: list[str] = files) -> int:
                _limit()
                self._note.write_text(IMPORT)
                _plant(str(self._root / mutant.room), mutant)
                code = with_tests(self._root, files, self._place / "tests", lambda items: self._ask(names, items))
                return HELD if code == BROKEN else code  # it cannot even be imported

            self._try(mutant, names, work)

    def swapped(self, mutants: Sequence[Mutant], tests: Sequence[str]) -> int:
        """Tries mutants of functions, in forks of this process, which collects the tests for them; FREED if it can."""

        def all_of_them(items: dict[str, pytest.Item]) -> int:
            functions = _functions({str(self._root / mutant.room) for mutant in mutants})
            gc.freeze()
            for mutant in mutants:
                names = self._order.of(mutant)

                def work(mutant: Mutant = mutant, names: list[str] = names) -> int:
                    _limit()
                    _swap(str(self._root / mutant.room), mutant, functions)
                    return self._ask(names, items)

                self._try(mutant, names, work)
            return FREED

        return with_tests(self._root, tests, self._place / "tests", all_of_them)

    def _ask(self, names: Sequence[str], items: Mapping[str, pytest.Item]) -> int:
        """Runs tests up to the first that fails; each is written down before, for the parent process."""
        other_items = [items[name] for name in names]
        for item, after in zip(other_items, [*other_items[1:], None], strict=True):
            self._note.write_text(item.nodeid)
            cpu_s, wall_s = self._order.limits(item.nodeid)
            signal.setitimer(signal.ITIMER_PROF, cpu_s)
            signal.setitimer(signal.ITIMER_REAL, wall_s)
            if not _passes(item, after):
                return HELD
        return FREED

    def _try(self, mutant: Mutant, names: Sequence[str], work: Callable[[], int]) -> None:
        if not names:
            self._told(mutant, Outcome("survived", None, 0.0))
            return
        shutil.rmtree(self._place, ignore_errors=True)
        self._place.mkdir()
        code, cpu_s = forked(work)
        test = self._note.read_text() if self._note.exists() else None
        late = code in (-signal.SIGPROF, -signal.SIGALRM)
        outcome = Outcome("survived" if code == FREED else "timed out" if late else "killed", test, cpu_s)
        if code == FREED:
            outcome = outcome._replace(test=None)
        self._order.note(mutant, outcome.test)
        self._told(mutant, outcome)


def _limit() -> None:
    """What waits or grows for ever ends: the timers' signals end the process, whatever it does."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    for alarm in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(alarm, signal.SIG_DFL)


def _plant(path: str, mutant: Mutant) -> None:
    """Lets a file be imported with its change."""
    mutant.make()
    plain = SourceFileLoader.get_code

    def get_code(loader: Any, name: str) -> CodeType | None:
        return compile(mutant.tree, path, "exec") if loader.path == path else plain(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


def _functions(paths: set[str]) -> list[FunctionType]:
    """The functions of some files, wherever they are known."""
    gc.unfreeze()  # collecting tests froze them, and what is frozen is not listed
    get_objects = (value for value in gc.get_objects() if isinstance(value, FunctionType))
    return [function for function in get_objects if function.__code__.co_filename in paths]


def _swap(path: str, mutant: Mutant, functions: Sequence[FunctionType]) -> None:
    """Puts the code of a changed file into the functions that were made of it."""
    mutant.make()
    new = dict(_codes(compile(mutant.tree, path, "exec")))
    for function in functions:
        code = function.__code__
        if code.co_filename == path and (code.co_qualname, code.co_firstlineno) in new:
            function.__code__ = new[code.co_qualname, code.co_firstlineno]


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """The code of each function that has a name, by its name and its line."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if not inner.co_name.startswith("<"):
                yield (inner.co_qualname, inner.co_firstlineno), inner
            yield from _codes(inner)
