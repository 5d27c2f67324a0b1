"""Bytes of the log file change on disk: never a crash, and never another content in silence."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.engine.stories import LOG, edit, tell
from vmstore.cells.cell import Cell
from vmstore.errors import CorruptError, VmstoreError
from vmstore.log.commit import Commit
from vmstore.log.sqlite import SqliteLog

SAMPLES = 300
HEADER = range(100)
SCHEMA = range(3_500, 4_096)  # the tables' own text, at the end of the first page

LogContents = tuple[list[Commit], dict[int, Cell]]


@pytest.fixture(scope="module")
def store_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with sessions and forks, closed, its views deleted so that each open folds the log."""
    path = tmp_path_factory.mktemp("told") / "a.vms"
    tell(path)
    for file in (path / "default").glob("views-*"):
        file.unlink()
    return path


def log_contents(path: Path) -> LogContents:
    """Every commit and cell of a log."""
    log = SqliteLog(path / LOG, readonly=True)
    try:
        return log.tail(0, 99), log.cells(range(200))
    finally:
        log.close()


class Outcome:
    """What came of one flipped byte."""

    def __init__(self, path: Path, mode: str) -> None:
        self.noticed = False
        self.foreign: dict[str, str] = {}  # at which step an error came out that is not ours
        store = self._step("open", lambda: vmstore.open(path, mode))
        if store is not None:
            self._step("ask", lambda: ask(store))
            verdict = self._step("verify", store.verify)
            self.noticed |= verdict is not None and not verdict.ok
            self._step("close", store.close)

    def _step(self, name: str, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except VmstoreError:
            self.noticed = True
        except Exception as error:  # what must never reach a caller
            self.foreign[name] = f"{type(error).__name__}: {error}"[:100]
        return None


Outcomes = dict[tuple[int, int], tuple[Outcome, bool]]


def ask(store: vmstore.Store) -> None:
    """Asks a store everything."""
    for info in store.sessions():
        session = store.session(info.session)
        session.pages()
        for call in session.calls():
            session.wire.messages(call=call.call)
    list(store.tail())


def offsets(size: int) -> list[tuple[int, int]]:
    """Where to flip and which bits: header, schema, then anywhere, always the same places."""
    chance = random.Random(20261121)
    places = [*chance.sample(HEADER, 40), *chance.sample(SCHEMA, 60)]
    places += [chance.randrange(4_096, size) for _ in range(SAMPLES - len(places))]
    return [(place, chance.choice((1, 1 << chance.randrange(8), chance.randrange(1, 256)))) for place in places]


@pytest.fixture(scope="module")
def outcomes(store_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Of every byte flipped, one at a time: what came of it, and whether the log still holds the same."""
    sound, expected = (store_folder / LOG).read_bytes(), log_contents(store_folder)
    fields = {}
    for number, (offset, bits) in enumerate(offsets(len(sound))):
        path = shutil.copytree(store_folder, tmp_path_factory.mktemp("flipped") / "a.vms")
        flipped = bytearray(sound)
        flipped[offset] ^= bits
        (path / LOG).write_bytes(flipped)
        outcome = Outcome(path, "r" if number % 10 else "rw")
        silent = not outcome.noticed and not outcome.foreign
        fields[offset, bits] = outcome, silent and log_contents(path) == expected
        shutil.rmtree(path)
    return fields


def test_what_verify_calls_sound_is_unchanged(outcomes: Outcomes) -> None:
    """Where a flipped byte is not noticed, every commit and cell reads as before."""
    assert [at for at, (o, same) in outcomes.items() if not (o.noticed or o.foreign or same)] == []


def test_opening_and_verifying_raise_our_errors_only(outcomes: Outcomes) -> None:
    """Whichever byte is flipped, opening and verifying end with an answer or an error of ours."""
    assert {at: o.foreign for at, (o, _) in outcomes.items() if o.foreign.keys() & {"open", "verify", "close"}} == {}


def test_asking_raises_our_errors_only(outcomes: Outcomes) -> None:
    """Whichever byte is flipped, a question ends with an answer or an error of ours."""
    assert {at: o.foreign for at, (o, _) in outcomes.items() if "ask" in o.foreign} == {}


def test_many_flips_are_noticed(outcomes: Outcomes) -> None:
    """The tests above see something: of the bytes flipped more than one in ten mattered."""
    assert sum(outcome.noticed for outcome, _ in outcomes.values()) > SAMPLES // 10


def test_a_cut_file_is_a_problem(store_folder: Path, tmp_path: Path) -> None:
    """A log file that ends early, at any page or within one, is named damaged and never taken as shorter."""
    sound = (store_folder / LOG).read_bytes()
    for number, size in enumerate([*range(0, len(sound), 4096), len(sound) - 1, 100, 99, 5_000]):
        path = shutil.copytree(store_folder, tmp_path / str(number))
        (path / LOG).write_bytes(sound[:size])
        outcome = Outcome(path, "rw")
        assert outcome.noticed and not outcome.foreign, f"cut to {size} of {len(sound)} bytes"


def test_changed_content_is_never_answered(store_folder: Path, tmp_path: Path) -> None:
    """A message whose cell was changed is an error that names it, never other words."""
    path = shutil.copytree(store_folder, tmp_path / "a.vms")
    with vmstore.open(path) as store:
        sound = words(store)
    edit(path, "UPDATE frames SET content = CAST(replace(content, 'North', 'South') AS BLOB)")
    with vmstore.open(path) as store:
        for key, messages in sound.items():
            try:
                assert store.session(key[0]).wire.messages(call=key[1]) == messages
            except CorruptError as error:
                assert "North" in str(messages)
                assert "cell" in str(error)


def words(store: vmstore.Store) -> dict[tuple[str, int], list[object]]:
    """The messages of every call."""
    sessions = [store.session(info.session) for info in store.sessions()]
    return {(s.name, call.call): s.wire.messages(call=call.call) for s in sessions for call in s.calls()}
