"""More of the hundred questions, each held against a plain count over the log, over Python's answers or over a file."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import vmstore
from tests.vmql import test_questions as page
from tests.vmql.test_questions import LIVE, NAME, answered
from vmstore.core import mutation as m
from vmstore.core.mutation import decode
from vmstore.store.store import Store

store = page.store  # the fixture
Prompts = dict[int, dict[str, int]]
WEEK = 1_773_360_000_000_000  # the parameter $week


def mutations(store: Store, name: str) -> Iterator[tuple[int, Any]]:
    """What a session wrote, by position."""
    (key,) = store.admin.views.execute("SELECT session FROM sessions WHERE name = ?", (name,)).fetchone()
    for commit in store.admin.log.tail(0, 1 << 30):
        if commit.session == key:
            yield from enumerate(decode(commit.body), commit.first)


@pytest.fixture(scope="module")
def prompts(store: Store) -> Prompts:
    """By call the pages of its request, each with the call since when it is there, read pack by pack."""
    here: dict[str, int] = {}
    fields: Prompts = {}
    for _, state in mutations(store, NAME):
        if isinstance(state, m.Pack):
            for gone in state.left:
                del here[f"p{gone}"]
            for entered, *_ in state.entered:
                here.setdefault(f"p{entered}", state.call)
            fields[state.call] = dict(here)
    return fields


def pages_of(store: Store, columns: str, name: str = NAME) -> list[dict[str, Any]]:
    """Columns of a session's pages."""
    return store.query(f"PAGES {columns}", session=name).to_dicts()


def test_a_page_in_the_prompt(store: Store, prompts: Prompts) -> None:
    """When a page came, how long it stayed and which share of calls saw it is what going through the packs shows."""
    session = store.session(NAME)
    for number in ("p10", "p76", "p143"):
        saw = [call for call, here in prompts.items() if number in here]
        gone = [b for a, b in pairwise(saw) if b - a > 1]
        assert [row[0] for row in answered(store, 6, page=number)] == [saw[0], *gone]
        moved = [row[0] for row in answered(store, 3, page=number)]
        left = min((call for call in prompts if call > saw[-1]), default=None)
        assert moved == [saw[0], *([left] if left else [])]
        created = session.page(number).created_call
        assert answered(store, 4, page=number) == [(pytest.approx(len(saw) / (max(prompts) - created)),)]
        events = session.lineage.history(number)
        assert [(row[0], row[2], row[3]) for row in answered(store, 1, page=number)] == [
            (event.position, event.call, event.event) for event in events
        ]
        versions = session.lineage.versions(number)
        assert [row[:2] for row in answered(store, 2, page=number)] == [
            (each.version, each.tokens) for each in versions
        ]


def test_two_prompts(store: Store, prompts: Prompts) -> None:
    """What differs between two calls, what is oldest, pinned and never seen is what the packs hold."""
    before, after = prompts[90], prompts[101]
    assert {row[0] for row in answered(store, 16)} == before.keys() ^ after.keys()
    aged = sorted(after.items(), key=lambda item: (item[1], int(item[0][1:])))
    assert [since for _, since in aged[:10]] == [row[1] for row in answered(store, 12)]
    pinned = [entry.page for entry in store.session(NAME).context(call=101).pages if entry.pinned]
    assert [row[0] for row in answered(store, 14)] == pinned
    shown = {
        page["message"] for page in pages_of(store, "page, message") if any(page["page"] in h for h in prompts.values())
    }
    asked = [row[0] for row in store.query("MESSAGES message WHERE role = user", session=NAME)]
    assert [row[0] for row in answered(store, 96)] == [message for message in asked if message not in shown]


def test_what_left_the_prompt(store: Store, prompts: Prompts) -> None:
    """Who evicted, what a compaction took, and what was never used while it was there is what packs and links hold."""
    tokens = {row["page"]: row["tokens"] for row in pages_of(store, "page, tokens")}
    links = store.query("LINKS source, target, kind, position", session=NAME).to_dicts()
    summaries = {row["page"] for row in pages_of(store, "page, type") if row["type"] == "summary"}
    summed = {link["target"] for link in links if link["kind"] == "derives" and link["source"] in summaries}
    taken: dict[int, int] = {}
    for (_, was), (call, now) in pairwise(sorted(prompts.items())):
        if gone := (was.keys() - now.keys()) & summed:
            taken[call] = sum(tokens[each] for each in gone)
    assert {row[0]: row[1] for row in answered(store, 58)} == taken != {}
    evicted = Counter(isinstance(mutation, m.Evict) for _, mutation in mutations(store, NAME))[True]
    assert sum(row[-1] for row in answered(store, 87)) == evicted
    cited: dict[str, list[int]] = defaultdict(list)
    calls = {call.position: call.call for call in store.session(NAME).calls()}
    for link in links:
        if link["kind"] == "references":
            cited[link["target"]].append(link["position"])
    positions = {number: position for position, number in calls.items()}
    unused = set()
    for stay in store.query("RESIDENCIES page, from_call, to_call WHERE to_call IS NOT NULL", session=NAME):
        within = range(positions[stay[1]], positions[stay[2]])
        if not any(position in within for position in cited[stay[0]]):
            unused.add(stay)
    assert set(answered(store, 51)) == unused


def test_costs_and_caches(store: Store) -> None:
    """Shares, ratios, drops and pauses are what loops over the calls give."""
    calls = store.session(NAME).calls()
    across = own_calls(store)
    drops = [
        b.call
        for a, b in pairwise(calls)
        if None not in (a.tokens_cached, b.tokens_cached) and b.tokens_cached < a.tokens_cached / 2
    ]  # type: ignore[operator]
    assert [row[0] for row in answered(store, 28)] == drops != []
    other_calls = [call for call in calls if call.tokens_reported is not None]
    share = sum(call.tokens_cached or 0 for call in calls) / sum(call.tokens_reported or 0 for call in other_calls)
    assert dict(answered(store, 27))[NAME] == pytest.approx(share)
    pauses = [(b.at - a.at, b.call) for a, b in pairwise(calls)]
    (pause,) = answered(store, 89)
    assert pause[2] == pytest.approx(max(pauses)[0] / 1e6) and pause[0] in [c for p, c in pauses if p == max(pauses)[0]]
    hours = Counter(at // 3_600_000_000 % 24 for at in (call.at for call in across) if at > WEEK)
    assert dict(answered(store, 85)) == hours != {}
    by_model: dict[str | None, list[Any]] = defaultdict(list)
    for call in across:
        by_model[call.model].append(call)
    for model, ratio, count in answered(store, 31):
        out, total = (
            sum(getattr(call, name) or 0 for call in by_model[model]) for name in ("tokens_out", "tokens_reported")
        )
        assert count == len(by_model[model]) and (ratio or 0) == pytest.approx(out / total if total else 0)
    failed = [call.cost for call in across if call.status in ("failed", "aborted")]
    assert answered(store, 30) == [(pytest.approx(sum(cost or 0 for cost in failed)) if any(failed) else None,)]
    days: dict[str, float] = defaultdict(float)
    for call in calls:
        days[day_of(call.at)] += call.cost or 0
    assert {row[0]: pytest.approx(row[1] or 0) for row in answered(store, 86)} == days
    open_ = [call.call for call in calls if call.status == "open"]
    assert [row[1] for row in answered(store, 94) if row[0] == NAME] == open_
    silent = Counter(
        call.model for call in across if call.status == "ok" and (call.tokens_reported is None or call.cost is None)
    )
    assert dict(answered(store, 98)) == silent
    full = [call.call for call in calls if call.budget and call.tokens > 0.9 * call.budget]
    assert [row[0] for row in answered(store, 15)] == full
    last = {call.call: call for call in calls}
    failing = [call.call for call in calls if call.status == "failed"]
    assert [(row[0], row[1]) for row in answered(store, 99)] == [(call, last[call].tokens) for call in failing]


def own_calls(store: Store) -> list[Any]:
    """The calls that each session made itself."""
    return [
        call
        for info in store.sessions()
        for call in store.session(info.session).calls()
        if call.position > (info.fork_position or 0)
    ]


def day_of(at: int) -> str:
    """The day of a time."""
    return datetime.fromtimestamp(at / 1e6, UTC).date().isoformat()


def test_lineage_of_pages(store: Store) -> None:
    """What came of a page, what it goes back to and how far is what a walk by hand over the links finds."""
    made_of: dict[str, set[str]] = defaultdict(set)
    links = store.query("LINKS source, target, kind", session=NAME).to_dicts()
    for link in links:
        if link["kind"] == "derives":
            made_of[link["source"]].add(link["target"])

    def depth(of: str) -> int:
        return 1 + max(map(depth, made_of[of])) if made_of.get(of) else 0

    summaries = [row["page"] for row in pages_of(store, "page, type") if row["type"] == "summary"]
    assert answered(store, 49) == [(each, depth(each)) for each in summaries] != []
    params = page.params(store)
    up: set[tuple[str, str, str]] = set()
    front = {params["summary"]}
    while front:
        met = {(link["source"], link["target"], link["kind"]) for link in links if link["source"] in front}
        front = {target for _, target, _ in met} - {each[1] for each in up}
        up |= met
    assert {(row[1], row[3], row[2]) for row in answered(store, 43)} == up
    down: set[tuple[str, str, str]] = set()
    front = {params["source"]}
    while front:
        met = {(link["source"], link["target"], link["kind"]) for link in links if link["target"] in front}
        front = {source for source, _, _ in met} - {each[0] for each in down} - {params["source"]}
        down |= met
    assert {(row[1], row[3], row[2]) for row in answered(store, 42)} == down
    superseded = {link["target"] for link in links if link["kind"] == "supersedes"}
    assert set(answered(store, 46)) == {
        (link["source"], link["target"])
        for link in links
        if link["kind"] == "references" and link["target"] in superseded
    }
    in_prompt = {entry.page for entry in store.session(NAME).context(call=101).pages}
    assert {row[0] for row in answered(store, 53)} == superseded & in_prompt
    assert answered(store, 47) == [], "no tool of this session says how it ended"


def test_sessions_and_their_users(store: Store) -> None:
    """Forks, users, models and quiet sessions are what the sessions say one by one."""
    infos = store.sessions()
    forks = [(info.session, info.fork_position, info.status) for info in infos if info.parent == NAME]
    assert answered(store, 22) == forks != []
    counted: Counter[Any] = Counter()
    for info in infos:
        own = [c for c in store.session(info.session).calls() if c.at > WEEK and c.position > (info.fork_position or 0)]
        counted[info.user] += len(own)
    assert {row[0]: row[2] for row in answered(store, 61)} == {user: count for user, count in counted.items() if count}
    newest = sorted(infos, key=lambda info: info.opened_at, reverse=True)
    mine = [info.session for info in newest if info.user == "dana"]
    assert [row[0] for row in answered(store, 59)] == mine
    models = []
    for info in infos:
        pairs = [
            (a, b) for a, b in pairwise(store.session(info.session).calls()) if b.position > (info.fork_position or 0)
        ]
        models += [(info.session, b.call) for a, b in pairs if a.model and b.model and a.model != b.model]
    assert [row[:2] for row in answered(store, 63)] == models != [], "a fork goes on with another model"


def test_words_and_tags(store: Store) -> None:
    """Tags, tagged pages and messages with a word are what loops over pages and messages find."""
    rows = pages_of(store, "page, tags, tokens")
    assert [row[0] for row in answered(store, 79)] == [row["page"] for row in rows if "planning" in row["tags"]]
    tagged: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        for tag in row["tags"]:
            tagged[tag].append(row["tokens"])
    assert {row[0]: (row[1], row[2]) for row in answered(store, 80)} == {t: (len(n), sum(n)) for t, n in tagged.items()}
    wanted = [r["page"] for r in rows if {"planning", "budget"} <= {*r["tags"]} and "travel" not in r["tags"]]
    assert [row[0] for row in answered(store, 81)] == wanted
    other_rows = store.query("MESSAGES message, text", session=NAME).to_dicts()
    words = [r["message"] for r in other_rows if "budget" in re.findall(r"[a-z0-9]+", (r["text"] or "").lower())]
    assert [row[0] for row in answered(store, 90)] == words != []
    people = store.query("MESSAGES session, message, role, at ACROSS SESSIONS").to_dicts()
    spoke = [
        r["message"]
        for r in people
        if r["session"] == NAME and r["role"] == "user" and "2026-03-04T00:00:00Z" <= r["at"] <= "2026-03-13T00:00:00Z"
    ]
    assert [row[0] for row in answered(store, 84)] == spoke != []


def test_what_the_agent_asked_its_memory(store: Store) -> None:
    """Searches, their hits and what came of them are what the log's search mutations say."""
    asked = [(at, mutation) for at, mutation in mutations(store, LIVE) if isinstance(mutation, m.Search)]
    assert [(row[0], row[2]) for row in answered(store, 66)] == [(at, item.total) for at, item in asked] != []
    assert sum(count for _, count in answered(store, 67)) == sum(not item.found for _, item in asked) == 1
    assert answered(store, 71) == [], "each was asked once"
    turns = dict(store.query("MUTATIONS position, turn", session=LIVE))
    came, here = set(), set[int]()
    for position, pack in mutations(store, LIVE):
        if isinstance(pack, m.Pack):
            new = {entered[0] for entered in pack.entered} - here
            here = (here | new) - {*pack.left}
            came |= {
                (at, f"p{each}")
                for at, item in asked
                for each in new & {*item.found}
                if at < position and turns[at] == turns[position]
            }
    queries = {row[0]: row[1] for row in answered(store, 66)}
    assert sorted(answered(store, 69)) == sorted((queries[at], each) for at, each in came)
    denied = [at for at, mutation in mutations(store, LIVE) if isinstance(mutation, m.FaultDenied)]
    assert len(answered(store, 56)) == len(denied)
    calls = dict(store.query("MUTATIONS position, call", session=LIVE))
    soon = [row for row in store.query("FAULTS position, out_since", session=LIVE) if row[1]]
    assert len(answered(store, 50)) == sum(calls[at] - calls[since] <= 5 for at, since in soon)


# ---- tools


@pytest.fixture(scope="module")
def coding(data: Path) -> Iterator[tuple[Store, list[dict[str, Any]]]]:
    """A coding agent's session under the name that questions ask, and its tool calls as its file has them."""
    file = data / "pi" / "before-compaction.jsonl"
    with vmstore.memory_store() as made:
        made.import_file(file, session=NAME)
        records = [json.loads(line)["message"] for line in file.read_text("utf-8").splitlines() if '"message"' in line]
        yield made, [message for message in records if isinstance(message, dict)]


def calls_of(messages: list[dict[str, Any]]) -> list[tuple[str, Any, dict[str, Any] | None]]:
    """Each call that ran: tool, arguments, and the message that answers it."""
    results = {message["toolCallId"]: message for message in messages if "toolCallId" in message}
    return [
        (block["name"], block["arguments"], results.get(block["id"]))
        for message in messages
        if message.get("role") == "assistant" and message.get("stopReason") not in ("aborted", "error")
        for block in message["content"]
        if block["type"] == "toolCall"
    ]


@pytest.mark.parametrize("number", [33, 34, 35, 37, 38, 39, 40, 95])
@pytest.mark.parametrize("tool", ["bash", "read"])
def test_both_languages_count_tools_alike(coding: tuple[Store, list[dict[str, Any]]], number: int, tool: str) -> None:
    """Questions about tools have the same answers in both languages on a session that calls many."""
    vmql, sql = page.in_both(coding[0], page.QUESTIONS[number - 1], tool=tool, call=200)
    assert sql == vmql


def test_tools_are_counted_as_the_file_has_them(coding: tuple[Store, list[dict[str, Any]]]) -> None:
    """Calls by tool and status, repeated calls, the largest results and open calls are what the file says."""
    store, messages = coding
    calls = calls_of(messages)
    status = Counter(
        (tool, "open" if result is None else "failed" if result.get("isError") else "ok") for tool, _, result in calls
    )
    assert {row[:2]: row[2] for row in answered(store, 33)} == status
    again = Counter((tool, json.dumps(arguments, sort_keys=True)) for tool, arguments, _ in calls)
    other_times = {
        (tool, json.dumps(arguments, sort_keys=True)): times for tool, arguments, times in answered(store, 35)
    }
    assert other_times == {key: times for key, times in again.items() if times > 1}
    assert len(answered(store, 95)) == sum(result is None for _, _, result in calls)
    tokens = sorted((row[0] for row in store.query("PAGES tokens WHERE role = tool")), reverse=True)
    largest = [row[3] for row in answered(store, 34)]
    assert largest == sorted(largest, reverse=True) and len(largest) == min(20, len(calls)) and largest[0] >= tokens[0]


def test_tools_one_after_another(coding: tuple[Store, list[dict[str, Any]]]) -> None:
    """What follows a failure, what was tried again with success and what was never used is what loops find."""
    store, _ = coding
    rows = store.query("TOOLS page, tool, status, call, path, result, duration_ms").to_dicts()
    after = Counter(b["tool"] for a, b in pairwise(rows) if (a["tool"], a["status"]) == ("bash", "failed"))
    assert dict(answered(store, 40, tool="bash")) == after
    tried = {
        (a["page"], b["page"])
        for a in rows
        for b in rows
        if a["status"] == "failed" and b["status"] == "ok" and a["tool"] == b["tool"] and 0 < b["call"] - a["call"] <= 3
    }
    assert set(answered(store, 36)) == tried
    times: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["duration_ms"] is not None:
            times[row["tool"]].append(row["duration_ms"])
    other_rows = {row[0]: row[1:] for row in answered(store, 38)}
    assert {tool: other_rows[tool] for tool in times} == {
        t: (pytest.approx(fmean(n)), max(n)) for t, n in times.items()
    }
    used = {row[0] for row in store.query("LINKS target WHERE kind IN (derives, references)")}
    wanted = [row["result"] for row in rows if row["tool"] == "read" and row["result"] and row["result"] not in used]
    assert {row[0] for row in answered(store, 37, tool="read")} == {*wanted}
    call = max(row["call"] for row in rows) // 2
    tokens = {entry.page: entry.tokens for entry in store.session(NAME).context(call=call).pages}
    results = {row["result"] for row in rows if row["tool"] == "read"}
    assert answered(store, 39, tool="read", call=call) == [
        (sum(tokens[each] for each in tokens.keys() & results) or None,)
    ]
    often = Counter(row["path"] for row in rows if row["tool"] == "read" and row["path"]).most_common(1)
    path = often[0][0] if often else "none"
    reads = [row for row in rows if (row["tool"], row["path"]) == ("read", path)]
    twice = set()
    for at, row in enumerate(reads):
        here = {entry.page for entry in store.session(NAME).context(call=row["call"]).pages}
        twice |= {(row["page"], first["page"]) for first in reads[:at] if first["result"] in here}
    assert set(answered(store, 41, file=path)) == twice
