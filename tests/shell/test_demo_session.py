"""The session that ships: it is what its generator writes, and it holds what it promises."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
GENERATOR = ROOT / "tools" / "make_demo.py"
SHIPPED = ROOT / "vmstore" / "shell" / "demo.jsonl"
LINES: list[dict[str, Any]] = [json.loads(line) for line in SHIPPED.read_text("utf-8").splitlines()]
MESSAGES = LINES[1:]
PLACE = {message["vm"]["id"]: place for place, message in enumerate(MESSAGES)}
COMPACTION = next(place for place, m in enumerate(MESSAGES) if m["vm"].get("type") == "summary")
KEPT_FROM = PLACE[MESSAGES[COMPACTION]["vm"]["keeps_from"]]


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_demo", GENERATOR)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def calls() -> list[dict[str, Any]]:
    return [m for m in MESSAGES if m["role"] == "assistant"]


def claims() -> dict[str, dict[str, Any]]:
    return {m["vm"]["id"]: m for m in MESSAGES if m["vm"].get("type") == "claim"}


def turns() -> list[list[dict[str, Any]]]:
    """The messages of each turn, the summary left out."""
    records: list[list[dict[str, Any]]] = []
    for place, message in enumerate(MESSAGES):
        if message["role"] == "user" and place != COMPACTION:
            records.append([])
        if records and place != COMPACTION:
            records[-1].append(message)
    return records


def chars(message: dict[str, Any]) -> int:
    asked = [call["function"] for call in message.get("tool_calls", [])]
    return len(message["content"] or "") + sum(len(f["name"]) + len(f["arguments"]) for f in asked)


def test_shipped_file_is_what_the_generator_writes() -> None:
    """Running the generator in another process gives the shipped bytes."""
    done = subprocess.run([sys.executable, str(GENERATOR), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_check_notices_one_changed_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shipped file that differs in one byte fails the check, and writing it again repairs it."""
    module, copy = generator(), tmp_path / "demo.jsonl"
    copy.write_bytes(SHIPPED.read_bytes().replace(b"Morning", b"morning", 1))
    monkeypatch.setattr(module, "TARGET", copy)
    assert module.main(["--check"]) == 1
    assert module.main([]) == 0
    assert copy.read_bytes() == SHIPPED.read_bytes()


def test_size_turns_and_calls() -> None:
    """The session has 220 turns and 500 to 600 calls in 450 to 700 KB, and each turn ends in an answer."""
    assert 450_000 <= SHIPPED.stat().st_size <= 700_000
    assert len(turns()) == 220
    assert 500 <= len(calls()) <= 600
    assert all(turn[-1]["role"] == "assistant" and "tool_calls" not in turn[-1] for turn in turns())


def test_header_names_the_session() -> None:
    """The first line has no role and names session, title, agent and user; the system message follows."""
    header = LINES[0]["vm"]
    assert "role" not in LINES[0] and header["title"]
    assert (header["session"], header["agent"], header["user"]) == ("planning-220", "planner", "dana")
    assert [m["role"] for m in MESSAGES].index("system") == 0


def test_sixty_decisions_of_which_twenty_are_reversed() -> None:
    """Each of five topics has twelve decisions, and twenty in all are superseded once, by a later one."""
    decided = claims()
    assert set(Counter(name.split("_")[1] for name in decided).values()) == {12}
    reversals = [(name, old) for name, m in decided.items() for old in m["vm"].get("supersedes", [])]
    assert len(decided) == 60 and len({old for _, old in reversals}) == len(reversals) == 20
    for name, old in reversals:
        assert old in decided and PLACE[old] < PLACE[name] and old.split("_")[1] == name.split("_")[1]


def test_links_name_earlier_messages() -> None:
    """Ids are unique, and whatever a message derives from, supersedes or refers to came before it."""
    assert len(PLACE) == len(MESSAGES)
    for place, message in enumerate(MESSAGES):
        vm = message["vm"]
        named = [*vm.get("derives", []), *vm.get("supersedes", []), *vm.get("references", [])]
        assert all(PLACE[name] < place for name in named), vm["id"]
        assert len(named) == len(set(named))


def test_every_decision_has_provenance() -> None:
    """Every decision derives from a human message, and three in four from a tool's result as well."""
    roles = [{MESSAGES[PLACE[n]]["role"] for n in m["vm"]["derives"] if n[:3] == "msg"} for m in claims().values()]
    assert all("user" in role for role in roles)
    assert sum("tool" in role for role in roles) >= 45


def test_every_tool_call_is_answered() -> None:
    """The results right after a request for tools answer its calls, in order."""
    for place, message in enumerate(MESSAGES):
        asked = [call["id"] for call in message.get("tool_calls", [])]
        results = MESSAGES[place + 1 : place + 1 + len(asked)]
        assert [result.get("tool_call_id") for result in results] == asked
    assert sum("tool_call_id" in m for m in MESSAGES) == sum(len(m.get("tool_calls", [])) for m in MESSAGES)


def test_compaction_two_thirds_in_keeps_twelve_turns() -> None:
    """The summary stands two thirds into the session and keeps the last twelve turns before it."""
    before = sum(m["role"] == "assistant" for m in MESSAGES[:COMPACTION])
    assert 0.6 < before / len(calls()) < 0.73
    assert sum(m["vm"].get("type") == "summary" for m in MESSAGES) == 1
    assert sum(m["role"] == "user" for m in MESSAGES[KEPT_FROM:COMPACTION]) == 12
    assert MESSAGES[KEPT_FROM]["role"] == "user"


def test_summary_names_the_decisions_standing() -> None:
    """The summary quotes every decision that stands at that moment and none that was reversed."""
    recorded = [(n, m["vm"].get("supersedes", [])) for n, m in claims().items() if PLACE[n] < COMPACTION]
    gone = {old for _, replaced in recorded for old in replaced}
    for name, _ in recorded:
        line = f"- {name.removeprefix('claim_').replace('_', '/')}: "
        assert (line in MESSAGES[COMPACTION]["content"]) == (name not in gone), name


def test_a_decision_out_of_context_is_quoted() -> None:
    """After the compaction an answer quotes, word by word, a decision whose message left the context."""
    quoted = []
    for answer in MESSAGES[COMPACTION:]:
        for name in answer["vm"].get("references", []):
            text = MESSAGES[PLACE[name]]["content"].split(": ", 2)[2].split(". Because ")[0]
            if PLACE[name] < KEPT_FROM and answer["role"] == "assistant" and f'"{text}"' in answer["content"]:
                quoted.append(name)
    assert {"claim_storage_4", "claim_storage_6"} <= set(quoted)


def test_usage_follows_the_context() -> None:
    """Tokens in are the context's characters by 3.6 plus 1,850, and most of them come from the cache."""
    context: list[int] = []
    for place, message in enumerate(MESSAGES):
        if place == COMPACTION:
            context = [chars(m) for m in MESSAGES[KEPT_FROM:COMPACTION]]
        if message["role"] == "assistant":
            usage = message["vm"]["usage"]
            assert abs(usage["tokens_in"] - sum(context) / 3.6 - 1850) <= 1, message["vm"]["id"]
            assert 0 <= usage["tokens_cached"] <= usage["tokens_in"] and usage["tokens_out"] > 0
            assert message["vm"]["latency_ms"] > 0 and message["vm"]["cost_usd"] > 0 and message["vm"]["model"]
        if message["role"] != "system":
            context.append(chars(message))
    totals = [m["vm"]["usage"] for m in calls()]
    assert sum(u["tokens_cached"] for u in totals) > 0.9 * sum(u["tokens_in"] for u in totals)


def test_clock_runs_backwards_twice() -> None:
    """Times begin on 2 March, run backwards by seconds at two places, and pause for days between sittings."""
    times = [datetime.strptime(m["vm"]["at"], "%Y-%m-%dT%H:%M:%SZ") for m in MESSAGES]
    steps = [(after - before).total_seconds() for before, after in pairwise(times)]
    assert MESSAGES[0]["vm"]["at"] == "2026-03-02T09:00:00Z"
    assert len([s for s in steps if s < 0]) == 2 and min(steps) > -60
    assert sum(s > 2 * 86_400 for s in steps) >= 2


def test_rare_things_occur() -> None:
    """There are a parallel pair in each ten turns, a failed tool, a 20 KB result and a Japanese address."""
    paired = {n // 10 for n, turn in enumerate(turns()) if any(len(m.get("tool_calls", [])) == 2 for m in turn)}
    assert paired == set(range(22))
    results = [m["content"] for m in MESSAGES if m["role"] == "tool"]
    assert any(text.startswith("error: ") for text in results)
    assert [len(text) for text in results if len(text) > 10_000] == [pytest.approx(20_000, abs=1_000)]
    assert any("神奈川県横浜市" in text for text in results)


def test_nothing_is_said_twice() -> None:
    """No final answer repeats another, and only short replies of the human ever recur."""
    answers = [turn[-1]["content"] for turn in turns()]
    assert sum(count - 1 for count in Counter(answers).values()) <= 8
    assert all(len(text) < 60 for text, count in Counter(answers).items() if count > 1)
    counts = Counter(turn[0]["content"] for turn in turns())
    assert all(len(text) < 40 for text, count in counts.items() if count > 1) and len(counts) > 210
