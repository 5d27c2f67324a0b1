"""A short form of every campaign, and the runner that repeats, adds up and refuses to be deaf."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import campaign
import pytest
from campaigns import (
    asking,
    chores,
    flips,
    forks,
    full,
    gate,
    kill,
    live,
    loop,
    outside,
    power,
    soak,
    stop,
    sweep,
    tamper,
    writers,
)
from campaigns.crew import LoggedCall, Reading, Slots, start
from campaigns.crew import kill as killed
from campaigns.cut import SECTOR, World
from campaigns.disk import IO, Event, Fault, disk
from campaigns.held import Broken
from campaigns.script import script

from vmstore.testing.simulate_live import LiveRun
from vmstore.vm.kernel.decide import DecisionRun

TOOLS = Path(campaign.__file__).parent
Short = Callable[[Path], Counter[str]]

SHORT: dict[str, tuple[Any, Short, set[str]]] = {
    "sweep": (sweep, lambda folder: sweep.batch(1, folder, 6, 11), {"again"}),
    "power": (power, lambda folder: power.batch(1, folder, 400), set()),
    "kill": (kill, lambda folder: kill.batch(3, folder, 24), set()),
    "forks": (forks, lambda folder: forks.batch(1, folder, 40), set()),
    "stop": (stop, lambda folder: stop.batch(4, folder, 8), {"in the views", "anywhere", "timed"}),
    "live": (live, lambda folder: live.batch(2, folder, 8), {"holding", "flushing", "folding"}),
    "full": (full, lambda folder: full.batch(1, folder, 2, 2), set()),
    "flips": (flips, lambda folder: flipped(folder), {"swapped", "zeroed"}),
    "writers": (writers, lambda folder: writers.batch(1, folder, 1.0, math.inf), {"others went on"}),
    "tamper": (tamper, lambda folder: tamper.batch(1, folder, 300), set()),
    "chores": (chores, lambda folder: chores.batch(1, folder, 1), {"left beside"}),
    "asking": (asking, lambda folder: asking.batch(1, folder, 2.0), {"of a live session"}),
    "outside": (outside, lambda folder: outside.batch(1, folder, 23), set()),
    "gate": (gate, lambda folder: gate.batch(6, folder, 260), set()),
    "soak": (soak, lambda folder: soak.batch(1, folder, 3.0), {"faults", "pins"}),
    "loop": (loop, lambda folder: loop.batch(9, folder, 16), {"errors", "reopened", "settings changed"}),
}


def flipped(folder: Path) -> Counter[str]:
    """Damages of a store that was closed, and of one as it lies while it is open."""
    for name in ("closed", "open"):
        (folder / name).mkdir()
    return flips.batch(1, folder / "closed", 120) + flips.batch(3, folder / "open", 80)


@pytest.fixture
def folder() -> Any:
    """A folder in memory, where a flush costs nothing."""
    with TemporaryDirectory(dir=campaign.MEMORY if campaign.MEMORY.is_dir() else None) as place:
        yield Path(place)


@pytest.mark.parametrize("name", SHORT)
def test_a_campaign_finds_nothing_and_is_not_deaf(name: str, folder: Path) -> None:
    """A short run of a campaign breaks no invariant and meets the faults it is there for."""
    module, run, rare = SHORT[name]
    number = run(folder)
    missing = {kind for kind in module.NEEDED - rare if not number[kind] and not number[f"skipped {kind}"]}
    assert not missing


def test_connections_that_children_share_are_seen(folder: Path) -> None:
    """Where forked processes share connections with their parent, calls that were acknowledged are missed."""
    with pytest.raises(Broken, match=r"'lost': [1-9]"):
        for seed in range(1, 9):
            (folder / str(seed)).mkdir()
            forks.batch(seed, folder / str(seed), 12, "shared")


def test_a_killed_session_over_its_budget_is_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody makes room any more, the campaign of live sessions ends with the law that is broken."""
    monkeypatch.setattr(DecisionRun, "settle", lambda self, cause: None)
    with pytest.raises(Broken, match="within_budget"):
        live.batch(1, folder, 20)


def test_a_request_that_is_not_the_logged_one_is_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the provider is sent one field more than was packed, the campaign of the loop names the call."""
    post = loop.post
    monkeypatch.setattr(loop, "post", lambda address, request: post(address, {**request, "temperature": 1}))
    with pytest.raises(Broken, match=r"differs: call 1: the session says"):
        loop.batch(0, folder, 2)


def test_a_life_goes_on_as_it_was_configured(folder: Path) -> None:
    """Resuming a killed session whose pins have outgrown its first budget leaves it the budget it has."""
    life = LiveRun(folder / "a.vms", calm=True)
    life.session.configure(l0_tokens_max=20_000)
    for n in range(8):
        (page, *_) = life.session.user(f"The tide of day {n} turns at nine. " * 100)
        life.session.pin(page)
    life.close()
    life = LiveRun(folder / "a.vms", calm=True, seed=2)
    assert life.runtime.state.settings.l0_tokens_max == 20_000
    life.close()


def test_a_seed_cuts_the_same_points(folder: Path) -> None:
    """A batch repeated with its seed plays the same script and meets the same faults."""
    batches = []
    for name in ("first", "second"):
        (folder / name).mkdir()
        batches.append(power.batch(5, folder / name, 120))
    assert batches[0] == batches[1]
    assert script(5) == script(5) != script(6)


# ---- the runner


def run(*arguments: str) -> int:
    """Runs the tool."""
    return campaign.main(["power", *arguments])


@pytest.fixture
def stubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A campaign whose batches take no time, meet what they must, and break at seed 8."""

    def batch(seed: int, folder: Path) -> Counter[str]:
        assert folder.is_dir()
        if seed == 8:
            raise Broken("lost", "an append is not there")
        return Counter({"points": 10, "worst wait": 10 - seed, **dict.fromkeys(power.NEEDED, 1)})

    monkeypatch.setattr(power, "batch", batch)


def test_totals_grow_with_every_run(stubbed: None, tmp_path: Path) -> None:
    """What each run did is added to the sums of its campaign in the file, with its seeds; the worst of both stays."""
    totals = tmp_path / "deep" / "totals.json"
    for seed in ("1", "4"):
        assert run("--seed", seed, "--batches", "2", "--totals", str(totals)) == 0
    other_power = json.loads(totals.read_text())["power"]
    assert (other_power["sums"]["points"], other_power["sums"]["runs"], other_power["sums"]["failures"]) == (40, 2, 0)
    assert other_power["seeds"] == [[1, 2], [4, 5]] and other_power["sums"]["worst wait"] == 9


def test_a_broken_invariant_ends_with_the_command_that_repeats_it(
    stubbed: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first failure ends the run with exit code 1, counted by its kind, its seed and commit in the last line."""
    totals = tmp_path / "totals.json"
    assert run("--seed", "7", "--batches", "9", "--totals", str(totals)) == 1
    output = capsys.readouterr()
    last = output.out.splitlines()[-1]
    assert last.endswith("python tools/campaign.py power --seed 8 --batches 1") and "git checkout " in last
    assert "an append is not there" in output.err
    sums = json.loads(totals.read_text())["power"]["sums"]
    assert (sums["failures"], sums["lost"], sums["batches"]) == (1, 1, 2)


def test_json_is_one_object(stubbed: None, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json the run says one object: its seeds, its counts, its problem."""
    assert run("--seed", "8", "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["campaign"], document["seeds"], document["found"]["lost"]) == ("power", [8, 8], 1)
    assert "--seed 8" in document["problem"]


def test_a_deaf_campaign_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A run in which a kind of fault never came fails, however few invariants broke."""
    monkeypatch.setattr(power, "batch", lambda seed, folder: Counter(points=10, torn=3))
    assert run("--batches", "1") == 1
    assert "never met again, dropped" in capsys.readouterr().out


def test_a_shim_that_never_fires_is_deaf(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no operation is written down there is nothing to cut, and the campaign says so."""
    monkeypatch.setattr(power.Disk, "note", lambda *_, **__: None)
    assert campaign.deaf(power, power.batch(1, folder, 5)) is not None


# ---- the pieces


def world(*events: Event) -> World:
    """A world after some events."""
    made = World(events, Path("/r"))
    made.advance(len(events))
    return made


def left(made: World, mode: str) -> bytes | None:
    """What a cut leaves of the one file."""
    import random

    return made.image({"/r/f": mode}, 99, random.Random(1)).get("f")


def test_a_cut_keeps_what_was_flushed_and_no_more_than_was_written() -> None:
    """Flushed bytes stay; of those written since none, all, some sectors or later ones only are there."""
    flushed = [
        Event("make", "/r/f"),
        Event("write", "/r/f", 0, b"a" * 1024),
        Event("sync", "/r/f"),
        Event("flush", "/r"),
    ]
    made = world(*flushed, Event("write", "/r/f", 0, b"b" * 1024), Event("write", "/r/f", 1024, b"c" * 1024))
    assert left(made, "dropped") == b"a" * 1024
    assert left(made, "kept") == b"b" * 1024 + b"c" * 1024
    assert left(made, "torn 1") == b"b" * 1024 + b"c" * SECTOR
    assert left(made, "reordered") in (b"a" * 1024 + b"c" * 1024, b"b" * 1024 + b"c" * 1024)
    made = world(*flushed, Event("write", "/r/f", 0, b"b" * 1024), Event("unsynced", "/r/f"), Event("sync", "/r/f"))
    assert left(made, "kept") == b"a" * 1024, "a flush that failed loses its writes for good"


def test_a_cut_keeps_names_in_the_order_they_were_made() -> None:
    """A name is sure once its folder is flushed; before that a file may be missing, or stand under its old name."""
    made = world(
        Event("mkdir", "/r/new"),
        Event("make", "/r/new/f"),
        Event("write", "/r/new/f", 0, b"x"),
        Event("sync", "/r/new/f"),
        Event("flush", "/r/new"),
        Event("rename", "/r/new", 0, ("/r/old", None)),
    )
    assert set(made.names(0)) == {"/r/new", "/r/new/f"}
    assert set(made.names(1)) == {"/r/old", "/r/old/f"}
    made = world(Event("make", "/r/f"), Event("write", "/r/f", 0, b"x"), Event("sync", "/r/f"))
    assert made.names(0) == {}, "the file was flushed, its name was not"


def test_plain_files_are_on_the_disk_too(tmp_path: Path) -> None:
    """What is done to a plain file through `os` is written down, and fails when told."""
    with disk(tmp_path) as made:
        handle = os.open(tmp_path / "f", os.O_CREAT | os.O_WRONLY)
        os.write(handle, b"all of it")
        os.fsync(handle)
        os.close(handle)
        os.rename(tmp_path / "f", tmp_path / "g")
        made.fault = Fault(1, IO, touches=lambda kind, path: kind == "rename")
        with pytest.raises(OSError, match="Input/output error"):
            os.rename(tmp_path / "g", tmp_path / "h")
    assert [event.kind for event in made.events] == ["make", "sync", "rename"]
    assert made.events[1].data == b"all of it"
    assert (tmp_path / "g").exists()


def test_an_order_that_time_forbids_is_found() -> None:
    """A call acknowledged before another was asked for must stand before it."""
    first, other = LoggedCall(1, 0, 1), LoggedCall(2, 1, 1)
    assert writers.check_order([first, other], {(0, 1): [0, 5], (1, 1): [6, 9]}) == 2
    assert writers.check_order([other, first], {(0, 1): [0, 7], (1, 1): [6, 9]}) == 2
    with pytest.raises(Broken, match="order"):
        writers.check_order([other, first], {(0, 1): [0, 5], (1, 1): [6, 9]})


def test_a_wait_too_long_is_found() -> None:
    """One wait of more medians of its kind than allowed is starvation."""
    assert writers.check_waits("a call", [10] * 9, 50) == 1
    with pytest.raises(Broken, match="starved: a call waited 60 medians"):
        writers.check_waits("a call", [10] * 9 + [600], 50)
    assert writers.check_waits("a call", [], 50) == 0


def test_a_call_waits_anew_where_its_process_died(tmp_path: Path) -> None:
    """A wait is from what a process asked to what the same one was told; a dead one's call is not waited for."""
    (tmp_path / "dead").write_text("ask 0 1 10\nack 0 1 15\nask 0 2 20\n")
    (tmp_path / "next").write_text("ask 0 2 900\nack 0 2 908\nask 0 3 910\nack 0 3 917\nask 0 4 920\nack 0 4 921\n")
    assert writers.read_waits(tmp_path) == writers.Waits(first=[5, 8, 7], later=[1]), "one tried again may read nothing"
    assert writers.read_histories(tmp_path)[0, 2] == [20, 908]


@pytest.mark.parametrize("kind, numbers, asked, acked", [
    ("doubled", [1, 2, 2], 3, 2),
    ("lost", [1, 3], 3, 1),
    ("lost", [1, 2], 3, 3),
    ("foreign", [1, 2, 3], 2, 2),
])  # fmt: skip
def test_what_a_log_must_not_hold_is_found(
    kind: str, numbers: list[int], asked: int, acked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call recorded twice, lost, or never asked for is named after a kill."""
    slots, reading = Slots(1), Reading(Path("unread"))
    monkeypatch.setattr(reading, "read", lambda: None)
    reading.calls = [LoggedCall(n, 0, number) for n, number in enumerate(numbers, 1)]
    slots.ask(0, asked)
    slots.ack(0, acked)
    with pytest.raises(Broken) as raised:
        reading.check(slots, 1)
    assert raised.value.kind == kind


def test_a_process_that_fails_by_itself_is_no_kill() -> None:
    """A writer that ended with an error is a failure of the campaign, not one of its victims."""
    pid = start(lambda: os._exit(3))
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        pass
    with pytest.raises(Broken, match="ended with 3"):
        killed(pid)


def test_a_started_process_never_goes_on_in_its_parents_code() -> None:
    """Where stderr is no file, as under some runners, a child does its work and ends, and so does one that fails."""
    code = """
import io, os, sys
sys.stderr = sys.__stderr__ = io.StringIO()
from campaigns.crew import start
def fails():
    raise ValueError
for work, status in ((lambda: print("works", flush=True), 0), (fails, 1)):
    assert os.waitstatus_to_exitcode(os.waitpid(start(work), 0)[1]) == status
print("parent", flush=True)
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=TOOLS, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["works", "parent"]
