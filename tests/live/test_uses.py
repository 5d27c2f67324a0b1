"""What an answer used of the pages its call was sent is told to the log as it is taken in, and counted from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vmstore
from vmstore.core.decision import Signal, Use
from vmstore.core.mutation import Cite, FaultDenied, FaultIn, Reference
from vmstore.live.session_log import SessionLog
from vmstore.store.live.live_session import Live
from vmstore.testing.live_laws import mutations

RUN = "the contract of last year says in its third clause"
FILE = "src/app/main.py"


def begun(store: vmstore.Store, **settings: Any) -> Live:
    """A live session with a file, a claim and an order, whose first call is packed."""
    live = store.live_session("s", l0_tokens_max=8_000, system="The manual is at /usr/share/doc/help.txt.", **settings)
    live.attach(b"def main():\n    return answer_of_all()\n", "text/x-python", name=FILE)
    live.claim("Decision: use Postgres for the billing service", name="claim_billing")
    live.user(f"Order ORD-77123 costs 1,482.50 as {RUN}.")
    live.pack()
    return live


def uses(live: Live) -> list[tuple[str, str, str]]:
    """Each page that was used, how, and the words that show it, in order."""
    live._ns.follow()
    facts, rows = SessionLog(live._ns.log, live._lane()), []
    for commit in facts.after(0):
        for position, page in commit.mutations:
            if isinstance(page, Reference) and page.use != Use.SIGNAL:
                assert page.evidence is not None
                words = facts.cell(position, page.evidence).decode()
                rows.append((live.page(f"p{page.page}").hint or f"p{page.page}", Use(page.use).word, words))
    return rows


def called(live: Live, number: int, tool: str, arguments: str) -> None:
    """The model calls a tool."""
    asked = {"id": f"c{number}", "type": "function", "function": {"name": tool, "arguments": arguments}}
    live.assistant({"role": "assistant", "content": None, "tool_calls": [asked]})


def test_words_that_come_back_are_a_quotation() -> None:
    """Eight words in a row, or all the words of a short claim, show that a page was used, whatever their case."""
    with vmstore.memory_store() as store:
        live = begun(store)
        live.assistant(f"{RUN.upper()} so, yes. We use Postgres for the billing service.")
        fields = {page: (use, words) for page, use, words in uses(live)}
        assert fields.pop("claim_billing") == ("quote", "use postgres for the billing service")
        ((use, words),) = fields.values()
        assert use == "quote" and words in RUN and len(words.split()) == 8


def test_a_name_or_a_number_that_comes_back_is_reuse() -> None:
    """An order's number and an amount are evidence; what stands before every conversation is none."""
    with vmstore.memory_store() as store:
        live = store.live_session("s", l0_tokens_max=8_000, system="The manual is at /usr/share/doc/help.txt.")
        (page,) = live.user("Where is ORD-77123?")
        (other,) = live.user("And what of 1,482.50?")
        live.pack()
        live.assistant("ORD-77123 is on its way and cost 1,482.50; see /usr/share/doc/help.txt and 2,000.00.")
        assert uses(live) == [(page, "reuse", "ORD-77123"), (other, "reuse", "1,482.50")]


def test_a_tool_reads_what_a_page_holds() -> None:
    """A call that names a file taken in uses its page, one that repeats an earlier call's path that call's result."""
    with vmstore.memory_store() as store:
        live = begun(store)
        called(live, 1, "read_file", f'{{"path": "{FILE}"}}')
        assert uses(live) == [(FILE, "tool", FILE)]
        live.tool("c1", "nothing of note")
        live.pack()
        called(live, 2, "read_file", '{"path": "docs/other.md"}')
        (result,) = live.tool("c2", "a text of its own")
        live.pack()
        called(live, 3, "grep", '{"in": "docs/other.md"}')
        assert uses(live)[1:] == [(result, "tool", "docs/other.md")]


def test_a_page_is_told_once_an_answer() -> None:
    """Cited ten times a page is cited once, and what it says as well is no second use."""
    with vmstore.memory_store() as store:
        live = begun(store)
        live.assistant("We use Postgres for the billing service [ref: claim_billing]. " * 10)
        value = [mutation for _, mutation in mutations(live)]
        assert len([item for item in value if isinstance(item, Cite)]) == 1 and uses(live) == []


def test_nothing_is_used_that_no_call_was_sent() -> None:
    """Words of a page that had left, and an answer nobody asked for, are no use of a page."""
    with vmstore.memory_store() as store:
        live = begun(store)
        live.assistant("Fine.")
        live.assistant(f"Said by itself: {RUN}.")
        live.user("Go on.")
        live.evict("claim_billing")
        live.pack()
        live.assistant("We use Postgres for the billing service.")
        assert "claim_billing" not in {page for page, *_ in uses(live)}


def test_what_many_pages_hold_says_nothing() -> None:
    """Words that five pages hold are evidence of none, those that four hold of the newest."""
    with vmstore.memory_store() as store:
        live = store.live_session("s", l0_tokens_max=8_000)
        pages = [live.user(f"Line {n} of JOB-12345.")[0] for n in range(4)]
        live.pack()
        live.assistant("JOB-12345 runs.")
        assert uses(live) == [(pages[3], "reuse", "JOB-12345")]
        live.user("Go on.")
        live.pack()
        live.assistant("JOB-12345 still runs.")
        assert len(uses(live)) == 1


def test_the_memory_s_own_calls_use_nothing() -> None:
    """What the model asks its memory is a fault or a search, told as that; the answers are no pages to be quoted."""
    with vmstore.memory_store() as store:
        live = begun(store)
        called(live, 1, "search_pages", f'{{"query": "ORD-77123 {RUN}"}}')
        live.tool("c1", f'{{"results": [{{"page_id": "p9", "hint": "{RUN} of old JOB-99999"}}]}}', name="search_pages")
        live.pack()
        live.assistant("It is about JOB-99999.")
        assert uses(live) == []


def test_a_use_decides_nothing_and_counts() -> None:
    """It is a hit at the level the page was shown at; a page brought in before somebody asked is right by it."""
    with vmstore.memory_store() as store:
        live = begun(store)
        live.assistant("Noted.")
        for n in range(50):
            live.user(f"Station {n}? " + "tracks " * 60)
            live.pack()
            live.assistant("platform " * 200)
        for page in live.pages(tier="L0"):
            if page.type == "transcript" and page.created_turn == 1 and page.role != "system":
                live.evict(page.page)
        live.user("What did the contract of last year say in its third clause?")
        live.pack()
        before = live.stats()
        at = mutations(live)[-1][0]
        live.assistant(f"Order ORD-77123, as {RUN}.")
        after = live.stats()
        value = [mutation for position, mutation in mutations(live) if position > at]
        assert not any(isinstance(item, FaultIn | FaultDenied) for item in value)
        assert any(isinstance(item, Reference) for item in value)
        assert after.hits > before.hits and after.faults == before.faults and after.hit_rate == 1.0
        assert after.prefetch_hits == before.prefetch_hits + 1 and (after.effective or 0) > 0


def test_another_process_reads_the_same(tmp_path: Path) -> None:
    """Opened again before the answer, a session tells the same uses as one that stayed open."""
    other_uses = []
    for again in (False, True):
        path = tmp_path / str(again)
        with vmstore.open(path) as store:
            live = begun(store)
            if not again:
                live.assistant(f"As {RUN}: ORD-77123.")
        with vmstore.open(path) as store:
            live = store.session("s")
            if again:
                live.assistant(f"As {RUN}: ORD-77123.")
            other_uses.append(uses(live))
            assert live.debug.check().ok and store.verify().ok
    assert other_uses[0] == other_uses[1] != []


@pytest.mark.parametrize("answer", ['{"a": 1e400}', "[" * 9_000, "\ud800 ORD-77123", "ORD-77123 " * 20_000])
def test_any_answer_is_read(answer: str) -> None:
    """What no parser takes, half a character and a long row of one name are read as any answer."""
    with vmstore.memory_store() as store:
        live = begun(store)
        called(live, 1, "read_file", answer)
        live.tool("c1", answer)
        live.pack()
        live.assistant(answer)
        assert store.verify().ok


def test_a_re_driven_answer_counts_at_its_own_call() -> None:
    """A use that is known before its call is packed is of the tokens that this call is sent, not of the one before."""
    with vmstore.memory_store() as store:
        first = [{"role": "user", "content": "Order ORD-77123, please."}]
        store.record("s", {"model": "m", "messages": first}, _reply("It is ORD-77123."))
        live = store.admin.redrive("s", "again", l0_tokens_max=8_000)
        assert live.stats().references == 1
        assert live.stats().effective == pytest.approx(7 / live.context(call=1).tokens, rel=0.2)


def test_thrash_is_of_a_topic() -> None:
    """Pages of one topic that are missed one after another are thrash, those of many are none, by either count."""
    items = []
    for words in (["turbine"] * 3, ["turbine", "pension", "orchard"]):
        with vmstore.memory_store() as store:
            live = store.live_session("s", l0_tokens_max=8_000, pinned_turns=0, recall_share=0.0)
            pages = [live.user(f"{word} {word} {word} number{n}")[0] for n, word in enumerate(words)]
            for page in pages:
                live.evict(page)
                live.page_fault(page, by_model=True)
            items.append(live.stats().thrash_now)
            (row,) = store.query("METRICS value WHERE metric = 'thrash_now'", session="s").to_dicts()
            assert row["value"] == live.stats().thrash_now == live.debug.replay().measures.thrash_now
    assert items == [2.0, 0.0]


def _reply(text: str) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}


def test_each_wish_says_its_signal() -> None:
    """A claim, what belongs to a page that was found, a file that a call names and a summary are told as such."""
    with vmstore.memory_store() as store:
        live = store.live_session("s", l0_tokens_max=4_000)
        live.attach(b"def turbine(): pass\n" * 20, "text/x-python", name=FILE)
        live.user("Which store do we want for the sessions of the turbine?")
        live.pack()
        live.assistant("Dragonfly would keep the sessions of the turbine well.")
        live.user("hm, ok then")
        live.pack()
        live.assistant("Fine.")
        live.claim("Decision: the turbine sessions go to Dragonfly", name="claim_turbine")
        live.segment("turbines")
        for n in range(50):
            live.user(f"Station {n}? " + "tracks " * 60)
            live.pack()
            live.assistant("platform " * 100)
        for name in ("summary_1", "claim_turbine", FILE):
            if name in live.pack().pages:
                live.evict(name)
        live.user("Zebra quagga okapi.")
        live.user("Remind me where the sessions of the turbine are kept.")
        if FILE in live.pack().pages:
            live.evict(FILE)
        called(live, 1, "edit", f'{{"path": "{FILE}"}}')
        signals = {
            Signal(mutation.signal)
            for _, mutation in mutations(live)
            if isinstance(mutation, Reference) and mutation.use == Use.SIGNAL
        }
        assert signals >= {Signal.CLAIM, Signal.TOOL, Signal.SUMMARY}
        assert signals & {Signal.NEIGHBOUR, Signal.NEXT} and signals & {Signal.RECALL, Signal.TOPIC}


def test_a_re_driven_page_says_what_it_is_about() -> None:
    """Its pages have the topics that they would have had, had they been said to the memory in the first place."""
    with vmstore.memory_store() as store:
        text = "The turbine needs a new bearing before the turbine can start."
        store.record("s", {"model": "m", "messages": [{"role": "user", "content": text}]}, _reply("Fine."))
        live = store.live_session("own", l0_tokens_max=8_000)
        (own,) = live.user(text)
        again = store.admin.redrive("s", "again", l0_tokens_max=8_000)
        (page,) = again.pages(role="user")
        assert page.tags == live.page(own).tags != [] and again.debug.check().ok
