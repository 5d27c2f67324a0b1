"""The tools a model recalls with: what they answer, what they cost, and that they leave the prompt as it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

import vmstore
from vmstore.core.clock import ManualClock
from vmstore.core.decision import Recaller
from vmstore.core.times import microseconds
from vmstore.errors import InputError

NOW = microseconds(datetime(2026, 11, 23, 9, tzinfo=UTC))
DAY = 86_400_000_000
STORES: list[vmstore.Store] = []
DECISIONS = frozenset(["fault_in", "fault_denied", "prefetch", "evict", "compress", "pressure"])


def talk(**settings: Any) -> vmstore.Live:
    """A live session in which a few things were said over some days."""
    store = vmstore.memory_store(clock=ManualClock(NOW, 0))
    STORES.append(store)
    live = store.live_session("talk", l0_tokens_max=8_000, **{"recall_tools": True, **settings})
    for days, asked, answered in (
        (20, "Which database shall we take?", "I propose Postgres for its partitions."),
        (9, "The archive timed out last night.", "I raised its timeout to 30 seconds."),
        (1, "Did the nightly run pass?", "Yes, in 41 seconds."),
    ):
        live.user(asked, at_us=NOW - days * DAY)
        live.pack(at_us=NOW - days * DAY)
        live.assistant(answered, at_us=NOW - days * DAY)
    live.user("What did we say of the timeout?", at_us=NOW)
    return live


def calling(calls: Sequence[tuple[str, dict[str, Any]]], requests: list[Any]) -> Any:
    """A model that makes calls, one a round, and then answers."""
    left = [*calls]

    def model(request: dict[str, Any]) -> dict[str, Any]:
        requests.append(request)
        if not left:
            return {"choices": [{"message": {"role": "assistant", "content": "Thirty seconds."}}]}
        name, arguments = left.pop(0)
        call = {
            "id": f"c{len(left)}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}}]}

    return model


def answers(request: dict[str, Any]) -> list[dict[str, Any]]:
    """What the tools of a request answered."""
    contents = [message["content"] for message in request["messages"] if message["role"] == "tool"]
    return [json.loads(text[text.index("{") :]) for text in contents]


def searches() -> list[Any]:
    """The searches in the log of the session made last."""
    return [entry.mutation for entry in STORES[-1].tail(limit=10_000) if entry.kind == "search"]


def names(request: dict[str, Any]) -> list[str]:
    """The tools that a request offers."""
    return [tool["function"]["name"] for tool in request["tools"]]


def test_the_tools_are_offered_where_the_setting_says_so() -> None:
    """A session offers its model the tools that only read where `recall_tools` says so, and else the two of before."""
    paging, reading = ["page_fault", "search_pages"], ["find_quote", "remember_when", "recall_all"]
    for is_on, wanted in ((True, paging + reading), (False, paging)):
        requests: list[Any] = []
        talk(recall_tools=is_on).run(calling([], requests))
        assert names(requests[0]) == wanted


@pytest.mark.parametrize(
    ("tool", "fields", "place", "holds"),
    [
        ("find_quote", {"text": "timeout to 30"}, "quotes", "I raised its timeout to 30 seconds."),
        (
            "remember_when",
            {"preset": "between_dates", "start": "2026-11-13", "end": "2026-11-15"},
            "passages",
            "30 sec",
        ),
        ("remember_when", {"query": "database", "preset": "in November"}, "passages", "Postgres"),
        ("recall_all", {}, "topics", "Which database"),
    ],
)
def test_a_tool_answers_and_tells_the_rounds(tool: str, fields: dict[str, Any], place: str, holds: str) -> None:
    """A reading tool answers with what was said and how many rounds are left."""
    requests: list[Any] = []
    result = talk().run(calling([(tool, fields)], requests), rounds_max=4)
    (answer,) = answers(requests[1])
    assert holds in json.dumps(answer[place])
    assert answer["total_available"] >= len(answer[place]) > 0
    assert answer["budget"]["rounds_left"] == 3
    assert (result.text, result.rounds) == ("Thirty seconds.", 1)


def test_a_reading_tool_leaves_the_prompt_as_it_is() -> None:
    """Between a call that recalls and the next nothing is decided: what was shown stands, and the answer with it."""
    live = talk()
    requests: list[Any] = []
    live.run(calling([("find_quote", {"text": "timeout"}), ("recall_all", {})], requests))
    calls = [call.call for call in live.calls()][-3:]
    shown = [live.context(call=call).page_ids for call in calls]
    assert set(shown[0]) <= set(shown[1]) <= set(shown[2])
    entries = list(STORES[-1].tail(limit=10_000))
    first = [place for place, entry in enumerate(entries) if entry.kind == "pack"][-3]
    kinds = {entry.kind for entry in entries[first + 1 :]}
    assert kinds & {"search", "pack"} == {"search", "pack"}
    assert not kinds & DECISIONS
    assert requests[2]["messages"][: len(requests[1]["messages"])] == requests[1]["messages"]


def test_each_recall_is_logged() -> None:
    """Whatever a live session asks of what it remembers now is a search in its log: how, what was found, how long."""
    live = talk()
    memory = live.memory
    recall = memory.recall("timeout")
    memory.search_pages("timeout")
    memory.find_quote("timeout")
    memory.remember_when(preset="last_week")
    overview = memory.recall_all()
    before = searches()
    assert [search["recaller"] for search in before] == [
        Recaller.RECALL, Recaller.SEARCH_PAGES, Recaller.FIND_QUOTE, Recaller.REMEMBER_WHEN, Recaller.RECALL_ALL
    ]  # fmt: skip
    assert (before[0]["tokens"], before[0]["total"]) == (recall.tokens, recall.total_available)
    assert before[4]["tokens"] == overview.tokens
    assert {f"p{page}" for page in before[0]["found"]} == {
        text.page for passage in recall.passages for text in passage.texts if text.found
    }
    memory.recall("timeout", call=2)
    assert len(searches()) == len(before)


def test_what_was_recalled_is_not_found_again() -> None:
    """What a tool of the memory answered is told by none of them later, however well it fits."""
    live = talk()
    live.run(calling([("find_quote", {"text": "timeout to 30"})] * 2, []))
    quotes = live.memory.find_quote("timeout to 30")
    assert [quote.role for quote in quotes.quotes if quote.match == "exact"] == ["assistant"]
    assert all("quotes" not in quote.excerpt for quote in quotes.quotes)


def test_what_was_taken_back_is_not_told() -> None:
    """A retracted page is in no answer, and where nothing else is the answer says why."""
    live = talk()
    live.claim("The timeout is 30 minutes for zebras.", name="zebra")
    assert live.memory.find_quote("zebras").quotes
    vmstore.retract(STORES[-1], page="talk/zebra")
    quotes = live.memory.find_quote("zebras")
    assert (quotes.quotes, quotes.total_available) == ([], 0)
    assert "taken back" in quotes.note


def test_a_search_tells_how_many_there_are() -> None:
    """search_pages gives as many as are asked for, and tells how many more there are."""
    live = talk()
    for number in range(12):
        live.user(f"Lamp {number} is broken.")
    requests: list[Any] = []
    live.run(calling([("search_pages", {"query": "lamp", "limit": 2})], requests))
    (answer,) = answers(requests[1])
    assert (len(answer["results"]), answer["total_available"]) == (2, 12)


@pytest.mark.parametrize(
    ("tool", "fields", "text"),
    [
        ("find_quote", {}, "find_quote: no text; give one like"),
        ("find_quote", {"text": " "}, "the query is empty"),
        ("remember_when", {"preset": "last_weak"}, "did you mean 'last_week'"),
        ("remember_when", {"start": "2026-11-02", "end": "2026-11-01"}, "turn them round"),
        ("remember_when", {"tokens": 0}, "give 1 to 8000"),
        ("recall_all", {"tokens": "many"}, "tokens is no integer"),
    ],
)
def test_a_wrong_call_is_told_what_is_wrong(tool: str, fields: dict[str, Any], text: str) -> None:
    """A call that cannot be answered is told what is wrong with it, and the run goes on."""
    requests: list[Any] = []
    result = talk().run(calling([(tool, fields)], requests))
    (answer,) = answers(requests[1])
    assert answer["error"]["code"] == "bad_arguments"
    assert text in answer["error"]["message"]
    assert result.text == "Thirty seconds."


def test_an_older_log_offers_what_it_did() -> None:
    """A log whose settings do not tell of reading tools packs its calls without them."""
    from vmstore.vm.kernel.settings import decoded

    assert decoded(None, b"{}").recall_tools is False


def test_what_recall_was_worth() -> None:
    """A recall is worth what the answers of its turn or the next used of it, and costs the tokens that it gave."""
    live = talk()
    quote = live.memory.find_quote("raised its timeout to 30 seconds").quotes[0]
    live.memory.recall("database")
    assert [(worth.recaller, worth.searches, worth.used, worth.helped) for worth in live.memory.worth()] == [
        ("recall", 1, 0, 0),
        ("find_quote", 1, 0, 0),
    ]
    live.pack()
    live.assistant(f"It was 30 seconds [ref: {quote.page}].")
    recalled, quoted = live.memory.worth()
    assert (quoted.used, quoted.helped, quoted.tokens) == (1, 1, 0)
    assert recalled.used == 0 < recalled.tokens
    assert live.memory.worth(call=2) == []
    late = talk()
    late.memory.find_quote("raised its timeout to 30 seconds")
    for _ in range(2):
        late.pack()
        late.assistant("Let me see.")
        late.user("And?")
    late.pack()
    late.assistant(f"It was 30 seconds [ref: {quote.page}].")
    assert [item.used for item in late.memory.worth()] == [0]


def test_days_are_those_of_the_session() -> None:
    """What was said late in the evening in Tokyo was said yesterday for a model there, and today by UTC."""
    late = NOW // DAY * DAY - 3_600_000_000  # 08:00 of that day in Tokyo, and 23:00 of the day before by UTC
    fields = {}
    for zone in ("UTC", "Asia/Tokyo"):
        store = vmstore.memory_store(clock=ManualClock(late + 2 * 3_600_000_000, 0))
        STORES.append(store)
        live = store.live_session("talk", l0_tokens_max=8_000, recall_tools=True, zone=zone)
        live.user("The archive timed out.", at_us=late)
        requests: list[Any] = []
        live.run(calling([("remember_when", {"preset": "today"})], requests))
        (answer,) = answers(requests[-1])
        fields[zone] = "timed out" in json.dumps(answer), live.memory.remember_when(preset="today").zone
        assert live.memory.remember_when(preset="today", zone="UTC").zone == "UTC"
    assert fields == {"UTC": (False, "UTC"), "Asia/Tokyo": (True, "Asia/Tokyo")}
    with pytest.raises(InputError):
        live.configure(zone="Asia/Tokio")
    assert live.settings.zone == "Asia/Tokyo"
