"""The benches keep their contract, measure what they say, and show a contender that was slowed."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bench
import pytest
from benches.memory import CACHED, Watch
from benches.parts import peers, records, rounds, stores, story, text
from benches.parts.tale import Question, Statement, Tale
from browser import browser

import vmstore
from tests.test_house import WALL

PI = bench.ROOT.parent / "shared" / "data" / "pi" / "before-compaction.jsonl"
DEFLATED = {1: 2.41, 16: 3.96}  # how much smaller zlib makes the pages of the pi session, by groups of so many
SLOWED = {"lineage": "vmstore=0.1", "append": "vmstore=0.08", "verify": "vmstore=0.2", "vmql": "vmstore=0.2"}
# Rows of another contender, or of commits so long that the disk's own moods weigh as much as the burden.
UNMOVED = {
    "lineage": ("from disk",),
    "append": ("log append", "in-place"),
    "verify": ("with views",),
    "vmql": ("again", "above idle"),
}

# The benches whose quick run takes some seconds of CPU; the others run by night, and when they are named.
BY_DAY = {"append", "evict", "lineage", "redact", "verify", "wrap"}


def measured(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """What a quick run tells as JSON."""
    assert bench.main([*arguments, "--quick", "--json"]) == 0
    fields: dict[str, Any] = json.loads(capsys.readouterr().out)
    return fields


@pytest.mark.parametrize(
    "name", [name if name in BY_DAY else pytest.param(name, marks=pytest.mark.nightly) for name in bench.NAMES]
)
def test_a_bench_keeps_its_contract(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A quick run gives the rows of its goals, finite and ordered, and says that it was quick."""
    if name == "page" and browser() is None:
        pytest.skip("no Chromium on this machine: python3 tools/browser.py")
    if name == "langgraph" and not (bench.ROOT / ".venv-integrations").exists():
        pytest.skip("no environment of the integrations: python3 tools/integrations.py makes it")
    if name == "scale" and not (bench.ROOT / ".venv-postgres").exists():
        pytest.skip("no environment of the tests in PostgreSQL: python3 tools/postgres.py makes it")
    fields = measured(capsys, name)
    assert set(fields) == {"bench", "machine", "rows"}
    assert fields["bench"] == name
    assert "not for quoting" in fields["machine"]["sizes"]
    names = [row["name"] for row in fields["rows"]]
    wanted = [figure for of, figure in bench.goals() if of == name]
    absent = ("chuk", "Ray", "pi")  # what may not be on this machine
    optional = [figure for figure in wanted if any(word in figure for word in absent) or figure.startswith("--")]
    assert [figure for figure in wanted if figure in names] == names
    assert set(wanted) - set(names) <= set(optional)
    for row in fields["rows"]:
        assert list(row) == ["name", "figure", "low", "high", "goal", "better", "ok"]
        assert -math.inf < row["low"] <= row["figure"] <= row["high"] < math.inf
        assert row["better"] in ("higher", "lower")
        if not isinstance(row["goal"], str):
            better = row["figure"] >= row["goal"] if row["better"] == "higher" else row["figure"] <= row["goal"]
            assert row["ok"] is better


@pytest.mark.nightly  # it measures, and that takes a machine with nobody else on it
@pytest.mark.parametrize("name", SLOWED)
def test_a_slowed_contender_shows(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Time laid on vmstore alone makes the figures taken of it worse by far."""
    plain, slowed = measured(capsys, name), measured(capsys, name, "--slow", SLOWED[name])
    for before, after in zip(plain["rows"], slowed["rows"], strict=True):
        factor = after["figure"] / before["figure"]
        worse = 1 / factor if before["better"] == "higher" else factor
        assert worse > 1.5 or any(words in before["name"] for words in UNMOVED[name]), (before, after)


def test_without_a_name_it_lists_the_benches(capsys: pytest.CaptureFixture[str]) -> None:
    """Every bench is listed with what it is about."""
    assert bench.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(bench.NAMES)
    files = {file.stem for file in (bench.ROOT / "tools" / "benches").glob("*.py")} - {"__init__"}
    assert files == set(bench.NAMES)


def test_plain_output_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    """A reader sees each figure with its goal and whether it holds."""
    assert bench.main(["storage", "--quick"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["storage", "figure", "low", "high", "goal"]
    assert all(line.endswith((" held", " MISSED")) for line in lines[2:6])
    assert "not for quoting" in lines[6]


def walled(arguments: list[str], *missing: str) -> subprocess.CompletedProcess[str]:
    """Runs the tool, quick, where some packages are not there."""
    tool = f"sys.path[:0] = {[str(bench.ROOT), str(bench.ROOT / 'tools')]!r}; import bench, bootstrap; "
    run = f"bootstrap.entry(lambda _: bench.main({[*arguments, '--quick']!r}))"
    command = [sys.executable, "-c", WALL + tool + run, *missing]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "missing", "words"),
    [
        (["nothing"], [], "invalid choice: 'nothing'"),
        (["storage", "--slow", "vmstore"], [], "no CONTENDER=SECONDS"),
        (["storage"], ["eventsourcing"], "pip install 'eventsourcing>=9.5'"),
        (["page"], ["playwright"], "pip install 'playwright>=1.50'"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments: list[str], missing: list[str], words: str) -> None:
    """A wrong argument and a missing peer end it with a code that is not 0 and a line that says what to do."""
    done = walled(arguments, *missing)
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_browser_the_page_is_not_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where there is no Chromium the bench of the page says so, and what finds one."""
    monkeypatch.delenv("VMSTORE_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(bench.RefusedError, match=r"no Chromium on this machine; run: python3 tools/browser\.py"):
        bench.main(["page", "--quick"])


def test_a_peer_that_developers_need_not_have_is_left_out() -> None:
    """Without chuk its row is missing, the pip line is told, and the rest is measured."""
    done = walled(["append", "--json"], "chuk_ai_session_manager")
    assert done.returncode == 0, done.stderr
    names = [row["name"] for row in json.loads(done.stdout)["rows"]]
    wanted = [figure for of, figure in bench.goals() if of == "append"]
    assert set(wanted) - set(names) == {figure for figure in wanted if "chuk" in figure}
    assert "pip install --no-deps chuk-ai-session-manager" in done.stderr


# ---- what it measures with


@pytest.mark.parametrize("size", [1, 20, 1000])
def test_the_story_obeys_the_rules(tmp_path: Path, size: int) -> None:
    """A store with the workload verifies, and holds as many mutations as were told."""
    stores.tell(tmp_path / "agent.vms", 1000, size)
    with vmstore.open(tmp_path / "agent.vms", "r") as store:
        verdict = store.verify()
        assert verdict.ok, verdict.problems
        assert verdict.mutations == 1001
        assert store.session(stores.SESSION).context().shown


@pytest.mark.parametrize("size", [1, 20, 1000])
def test_the_story_has_the_shares_it_says(size: int) -> None:
    """However long the commits, a quarter is messages, a third pages, an eighth replies."""
    kinds = Counter(type(deed) for commit in story.deeds_of(1, 20_000, size, content=False) for deed in commit)
    pages = kinds[story.Made] + kinds[story.Changed] + kinds[story.Shortened]
    shares = {"messages": kinds[story.Utterance], "pages": pages, "replies": kinds[story.Replied]}
    assert {name: round(count / 20_000, 1) for name, count in shares.items()} == {
        "messages": 0.2,
        "pages": 0.3,
        "replies": 0.1,
    }
    packs = kinds[story.Packed] / 20_000
    assert packs == pytest.approx(min(0.125, 1 / size), rel=0.1)


def test_a_seed_tells_the_same_story() -> None:
    """The same seed gives the same deeds, another seed others."""
    first, again, other = (story.deeds_of(seed, 500, 20) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_text_is_as_compressible_as_real_pages() -> None:
    """Contents deflate like the pages of an imported session, alone and by sixteens, within a sixth."""
    ours = list(itertools.islice(text.Texts(1), 574))
    assert 900 <= sum(map(len, ours)) / len(ours) <= 1_100
    for group, real in DEFLATED.items():
        assert _deflated(ours, group) == pytest.approx(real, rel=1 / 6)
    if PI.is_file():
        with vmstore.memory_store() as store:
            store.import_file(PI, session="pi")
            session = store.session("pi")
            pages = [session.content(page.page) for page in session.pages() if 200 <= page.bytes <= 4_096]
        assert {group: _deflated(pages, group) for group in DEFLATED} == pytest.approx(DEFLATED, rel=0.01)


def _deflated(contents: list[bytes], group: int) -> float:
    joined = [b"".join(contents[n : n + group]) for n in range(0, len(contents), group)]
    return sum(map(len, contents)) / sum(len(zlib.compress(item)) for item in joined)


def test_a_miss_is_charged_what_it_takes_on_top() -> None:
    """A request that is sent because one missed counts for the call that missed, and not as a call of its own."""
    question = Question("?", "a", Statement("b", ("b",)), None, (), True, "plain")
    watches = [Watch(1_000, Tale([], [question])) for _ in range(2)]
    for again, watch in enumerate(watches):
        for number in range(3):
            watch.sees({"messages": [{"role": "user", "content": f"{number} " * 90}]}, again=bool(again) and number > 0)
    plain, missed = (watch.score() for watch in watches)
    assert plain.charged == plain.cost == missed.cost
    assert missed.charged == pytest.approx(3 * missed.cost)
    rival = Watch(1_000, Tale([], [question]))
    unsent = rival.rival(Silent())
    assert unsent.charged == pytest.approx(unsent.cost + CACHED * unsent.tokens)


class Silent:
    """A contender that shows nothing of what was said."""

    def user(self, text: str) -> None:
        """Hears what is asked."""

    def assistant(self, text: str) -> None:
        """Hears the answer."""

    def tools(self, texts: Sequence[str]) -> None:
        """Hears what tools printed."""

    def request(self) -> dict[str, Any]:
        """A request without a word of it."""
        return {"messages": [{"role": "user", "content": "?"}]}


def test_the_regime_decides_the_goal() -> None:
    """Flushes over a millisecond are slow, and a row holds what its regime asks for."""
    run = rounds.Bench(Path(), Path(), Path())
    assert run.flushes([0.002, 0.004, 0.0001])
    assert run.regime.startswith("slow")
    assert not run.flushes([0.0002])
    goal = rounds.Goal("a", "0.7 or 0.9", rounds.HIGHER)
    assert rounds.row(goal, [0.8, 0.7, 0.9], 0.7) == ("a", 0.8, 0.7, 0.9, 0.7, "higher", True)
    assert not rounds.row(goal, [0.8, 0.7, 0.9], 0.9).ok
    assert not rounds.row(rounds.Goal("b", 2, rounds.LOWER), [2.1]).ok


def test_contenders_take_turns() -> None:
    """In each round every contender acts once, in order, with what it needs done before and after."""
    seen: list[str] = []
    run = rounds.Bench(Path(), Path(), Path(), say=lambda _: None)
    act = rounds.Act(lambda: seen.append("b"), lambda: seen.append("("), lambda: seen.append(")"))
    times = run.race({"a": lambda: seen.append("a"), "b": act}, 2)
    assert "".join(seen) == "a(b)a(b)" and {name: len(taken) for name, taken in times.items()} == {"a": 2, "b": 2}
    assert len(run.race({"a": lambda: None}, 9, budget_s=0)["a"]) == rounds.ROUNDS_MIN


def test_a_burden_is_laid_on_one_contender_alone() -> None:
    """By a clock that only work moves, the burdened contender takes its own time and the burden, the other its own."""
    now = [0.0]

    def clock() -> float:
        now[0] += 0.001  # looking at it moves it, so that waiting ends
        return now[0]

    def work(seconds: float) -> Callable[[], None]:
        return lambda: now.__setitem__(0, now[0] + seconds)

    run = rounds.Bench(Path(), Path(), Path(), burdens={"vmstore": 0.5, "child": 0.5}, say=lambda _: None)
    contenders: dict[str, Any] = {"vmstore": work(2), "peer": work(2), "child": lambda: 2.0}
    times = run.race(contenders, 2, clock=clock)
    assert times["peer"] == pytest.approx([2, 2], abs=0.01)
    assert times["vmstore"] == pytest.approx([2.5, 2.5], abs=0.01)
    assert times["child"] == [2.5, 2.5]


def test_the_contenders_hold_what_was_told(tmp_path: Path) -> None:
    """Every deed becomes a record that decodes to itself, and sqlite3 holds a row for each."""
    deeds = [deed for commit in story.deeds_of(1, 200, 20) for deed in commit]
    calls = [records.record(deed, content=True) for deed in deeds]
    assert [records.decode(records.encode(call)) for call in calls] == calls
    rows = peers.Rows(tmp_path / "rows.db")
    rows.append(calls)
    assert rows.close() > sum(len(records.encode(call)) for call in calls)
