"""What a call is sent of L0: the rules that make it feel like a conversation, in a live session."""

from __future__ import annotations

from typing import Any

import pytest

import vmstore
from tests import refusals
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.core.mutation import Link
from vmstore.core.page import LinkKind
from vmstore.errors import InputError
from vmstore.store.live.live_session import Live
from vmstore.testing.simulate_live import picture
from vmstore.vm.assembly.choice import NO_ROOM
from vmstore.vm.protocol.select import SAME_ORIGIN, SUMMARISED

START = 1_795_301_701_000_000


def live(**fields: Any) -> Live:
    """A session with room for all that is said in a test."""
    store = vmstore.memory_store(clock=ManualClock(START), ids=SeededIds(3))
    return store.live_session("s", **{"l0_tokens_max": 20_000, "system": "Be brief.", "rules": "passive", **fields})


def talk(session: Live, turns: int, words: int = 60) -> list[str]:
    """So many turns of one question and one answer; the questions' pages."""
    asked = []
    for turn in range(turns):
        asked += session.user(f"Question {turn}. " + "word " * words)
        session.assistant(f"Answer {turn}. " + "word " * words)
    return asked


def number(session: Live, name: str) -> int:
    """The position of a page."""
    return session.lineage.position_of(name)


def same_as_read(session: Live, packed: Any) -> None:
    """What a pack said it sent is what its call is known by, and its text is what is rendered of it."""
    context = session.context()
    assert [number(session, name) for name in packed.pages] == context.page_ids
    assert context.tokens == packed.tokens and context.text() == packed.text
    assert session.debug.check().ok


# ---- the last turns, at level 0 until the budget is hit


def test_the_last_turns_are_sent_as_they_were_said() -> None:
    """In a window of three turns the three newest are sent in full, older ones not, and L0 keeps them all."""
    session = live()
    asked = talk(session, 8)
    used, budget = session.stats().l0_tokens, session.settings.l0_tokens_max
    packed = session.pack(window_tokens_max=660)
    assert packed.tokens <= 660
    assert set(asked[-3:]) <= set(packed.pages) and not set(asked[:4]) & set(packed.pages)
    assert {item.why for item in packed.left} == {NO_ROOM} and {item.name for item in packed.left} >= set(asked[:4])
    assert (session.stats().l0_tokens, session.settings.l0_tokens_max) == (used, budget)
    assert session.lineage.history(asked[0])[-1].event != "evict"
    same_as_read(session, packed)


def test_a_page_falls_back_a_level_before_it_is_left_out() -> None:
    """A long answer that was shortened once is sent so where it does not fit in full."""
    session = live()
    session.user("Tell me.")
    (long,) = session.assistant("The harbour has nine cranes. Each crane lifts forty tonnes. " * 60)
    session.compress(long, 2)
    session.page_fault(long, 0)
    whole = session.pack()
    assert whole.lowered == ()
    packed = session.pack(window_tokens_max=350)
    assert [(page.name, page.level_before, page.level) for page in packed.lowered] == [(long, 0, 2)]
    same_as_read(session, packed)


def test_the_next_window_is_its_own() -> None:
    """A wider window sends what a smaller one left out, and none sends all of L0 again."""
    session = live()
    talk(session, 8)
    small = session.pack(window_tokens_max=400, model="small")
    wide = session.pack(window_tokens_max=900)
    whole = session.pack(window_tokens_max=None, model="large")
    assert len(small.pages) < len(wide.pages) < len(whole.pages) and whole.left == ()
    assert whole.tokens > session.stats().l0_tokens > wide.tokens
    assert [call.model for call in session.calls()] == ["small", "small", "large"]
    same_as_read(session, whole)


# ---- older segments


def test_an_older_segment_is_its_one_summary() -> None:
    """Where not all fits an older segment is its summary, which is told as a summary and instructs nobody."""
    session = live(pinned_turns=1)
    asked = talk(session, 4)
    summary = session.segment("Cranes", summary="They counted the cranes.")
    later = talk(session, 3)
    session.page_fault(asked[0], 0)
    packed = session.pack(window_tokens_max=420)
    assert summary in [f"p{number(session, name)}" for name in packed.pages] and later[-1] in packed.pages
    first, content, *_ = (message["content"] for message in packed.request["messages"])
    assert first == "Be brief."
    assert 'S (summary_1): "They counted the cranes."' in content and content.startswith("<VM:CONTEXT>")
    same_as_read(session, packed)


# ---- all else is in the manifest, and can be loaded


def test_what_is_left_out_stands_in_the_manifest() -> None:
    """A page that a window leaves out is one that can be loaded, and page_fault gives its exact bytes."""
    session = live()
    asked = talk(session, 8)
    packed = session.pack(window_tokens_max=400)
    listed = {entry["page_id"] for entry in packed.manifest["available_pages"]}
    assert {item.name for item in packed.left} <= listed
    answer = session.page_fault(asked[0], by_model=True)
    assert answer.granted and answer.content == session.content(asked[0])


# ---- media


def test_a_picture_is_told_by_its_caption_once_its_turn_is_over() -> None:
    """A picture is a picture in the turn it came in, its caption after that, and a picture again when asked for."""
    session = live()
    session.user("Here.")
    name = session.attach(picture(300), "image/png", name="harbour.png", words="The harbour from above.")
    (page,) = (page.page for page in session.pages(type="artifact"))
    first = session.pack()
    assert _pictures(first) == 1 and first.lowered == ()
    session.assistant("I see.")
    session.user("And now?")
    second = session.pack()
    assert _pictures(second) == 0 and 'I (harbour.png, abstract): [IMAGE: "The harbour from above."]' in second.text
    assert second.tokens < first.tokens + 10
    same_as_read(session, second)
    session.page_fault(name, 0)
    third = session.pack()
    assert _pictures(third) == 1 and '[IMAGE: "The harbour from above.", 400x640]' in third.text
    same_as_read(session, third)
    assert page == name


def _pictures(packed: Any) -> int:
    """How many images a request holds."""
    blocks = [block for message in packed.messages().request["messages"] for block in _blocks(message)]
    return sum(block["type"] == "image_url" for block in blocks)


def _blocks(message: dict[str, Any]) -> list[Any]:
    return message["content"] if isinstance(message["content"], list) else []


def test_a_thumbnail_makes_room() -> None:
    """A file is shown by its thumbnail, which costs less than the picture; the picture is whole in the store."""
    session = live()
    data = picture(400)
    page = session.attach(data, "image/png")
    shown = session.page(page)
    assert session.stats().l0_tokens < shown.tokens and session.content(page) == data


# ---- a page and what stands for it


@pytest.mark.parametrize("kind", [LinkKind.REPRESENTS, LinkKind.HAS_CAPTION])
def test_a_page_and_its_stand_in_are_not_both_sent(kind: LinkKind) -> None:
    """Of a page and one that was written to stand for it one is sent: the page in its turn, then the stand-in."""
    session = live()
    (value,) = session.user("A very long story. " * 40)
    written = session.claim("It was about the sea.", name="story")
    ends = (number(session, written), number(session, value))
    with session.batch() as batch:
        batch.add(Link(*(ends if kind is LinkKind.REPRESENTS else ends[::-1]), kind))
    first = session.pack()
    assert value in first.pages and [(page.name, page.why, page.instead) for page in first.left] == [
        ("story", SAME_ORIGIN, value)
    ]
    session.assistant("Yes.")
    session.user("Go on.")
    second = session.pack()
    assert "story" in second.pages and [(page.name, page.instead) for page in second.left] == [(value, "story")]
    same_as_read(session, second)


def test_an_older_log_keeps_what_it_said() -> None:
    """Where a log's first settings know nothing of the rules, its calls were sent all of L0, and are so in a replay."""
    session = live(conversation=False)
    (value,) = session.user("A very long story. " * 40)
    written = session.claim("It was about the sea.", name="story")
    with session.batch() as batch:
        batch.add(Link(number(session, written), number(session, value), LinkKind.REPRESENTS))
    packed = session.pack()
    assert {value, "story"} <= set(packed.pages) and packed.left == ()
    same_as_read(session, packed)


# ---- thoughts


def test_thinking_is_not_sent_back() -> None:
    """What a model thought leaves the prompt as it comes, is in no request, takes no room, and is in the store."""
    session = live()
    session.user("Which one?")
    session.pack()
    thought, value = session.assistant(
        {"role": "assistant", "content": "The first.", "reasoning_content": "We decided to use the second for ships."}
    )
    session.user("Good.")
    packed = session.pack()
    assert value in packed.pages and thought not in packed.pages and "second" not in str(packed.messages().request)
    assert session.content(thought).startswith(b"We decided")
    assert session.pages(type="claim") == [] and session.stats().evictions == 0
    assert session.lineage.history(thought)[-1].detail == "thought"
    session.page_fault(thought, 0)
    assert (thought, "a thought is not sent back") in session.pack().messages().left
    same_as_read(session, session.pack())


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "thinking", "thinking": "Hm, a secret.", "signature": "x"}, {"type": "text", "text": "Yes."}],
        [{"type": "redacted_thinking", "data": "c2VjcmV0"}, {"type": "text", "text": "Yes."}],
    ],
    ids=["thinking", "redacted"],
)
def test_any_providers_thoughts_are_known(content: list[Any]) -> None:
    """Thinking is known in the words of any provider, sealed thinking too; what is said beside it is sent."""
    session = live()
    session.user("Well?")
    session.pack()
    session.assistant({"role": "assistant", "content": content})
    packed = session.pack()
    assert "Yes." in packed.text and "secret" not in packed.text and "c2VjcmV0" not in packed.text


# ---- what is told of it


def test_a_leaf_says_what_its_page_is() -> None:
    """The plan is known as the task, a claim by what it came from, and neither may be taken for talk."""
    session = live()
    (value,) = session.user("We sail at noon.")
    session.claim("They sail at noon.", name="sailing", sources=[value])
    (plan,) = session.user("The plan: sail.")
    session.pin(plan, plan=True)
    packed = session.pack()
    pages = {page.page_id: page for page in packed.abi.pages}
    assert pages["sailing"].provenance == (value,) and not pages[plan].can_evict
    tight = session.pack(window_tokens_max=packed.tokens - 3)
    assert plan in tight.pages


def test_why_a_page_is_not_in_a_window() -> None:
    """WHY NOT says that the page is in L0 and the window left it out; once it is back, that none does any more."""
    store = vmstore.memory_store(clock=ManualClock(START), ids=SeededIds(3))
    session = store.live_session("s", l0_tokens_max=20_000, rules="passive")
    asked = talk(session, 8)
    session.pack()
    session.pack(window_tokens_max=400)
    session.pack(window_tokens_max=None)
    (out, *_) = store.query(f"WHY NOT {asked[0]} IN CONTEXT AT CALL 2").to_dicts()
    assert out["event"] == "out" and "it is in L0, and a window of 400 tokens left it out" in out["reason"]
    rows = store.query(f"WHY {asked[0]} IN CONTEXT AT CALL 3").to_dicts()
    assert any("no window left it out any more" in row["reason"] for row in rows)
    assert not any("does not say why" in row["reason"] for row in rows)


def test_a_window_too_small_is_refused() -> None:
    """A window that cannot hold what may not be left out is refused, and nothing is written."""
    session = live(system="Be brief. " * 30)
    session.user("Hello.")
    before = session.info().position
    with refusals.refused("over-budget", InputError):
        session.pack(window_tokens_max=20)
    with refusals.refused("not-a-setting", InputError):
        session.pack(window_tokens_max=0)
    assert session.info().position == before and session.pack().tokens > 20


@pytest.mark.parametrize("mime", ["application/pdf", "image/png", "audio/wav"])
def test_a_file_with_words_is_decided_again_as_it_was(mime: str) -> None:
    """What was handed in about a file is its shorter form: no other is made beside it that no decision needs."""
    session = live()
    (page, *_) = [session.attach(b"%PDF-1.7 " * 400, mime, words="The plan of the harbour.")]
    session.user("What does it show?")
    session.pack()
    assert (
        sum(event.event == "compress" for event in session.lineage.history(page)) <= 2
    )  # the form, and that it is shown
    assert session.debug.check().ok


def test_a_window_is_refused_for_what_it_must_hold_alone() -> None:
    """Labels of pages that a window leaves out do not count: it is used down to what rules and tools take."""
    session = live(rules="relaxed")
    for n in range(60):
        session.user(f"Question {n}.")
        session.assistant(f"Answer {n}.")
    whole = session.pack()
    beside = whole.tokens - session.stats().l0_tokens
    with refusals.refused("over-budget", InputError) as refused:
        session.pack(window_tokens_max=300)
    front = int(str(refused.value).partition("which take ")[2].partition(";")[0].replace(",", ""))
    small = session.pack(window_tokens_max=front + 100)
    assert front + 100 < beside and len(small.pages) > 2 and small.tokens <= front + 100
    assert session.wire.request() == small.request and session.debug.check().ok
    again = session.pack(window_tokens_max=None)
    assert len(again.pages) == 121 and again.tokens == whole.tokens and session.debug.check().ok


def test_a_segment_is_not_sent_beside_its_summary() -> None:
    """Of what a segment's summary stands for nothing is sent beside it where room is short."""
    session = live(pinned_turns=1)
    asked = talk(session, 3)
    session.segment("One", summary="All about one.")
    talk(session, 2, words=20)
    for page in asked:
        session.page_fault(page, 0)
    talk(session, 1, words=20)
    for _ in range(4):
        talk(session, 1, words=5)
    packed = session.pack(window_tokens_max=320)
    left = {page.name: page.why for page in packed.left}
    assert all(left[page] == SUMMARISED for page in asked if page in left) and set(asked) & set(left)
