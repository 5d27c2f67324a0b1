"""Values beside the conversation, checkpoints, and a session that goes back to one and on from there."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import vmstore
import vmstore.aio
from tests.refusals import refused
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import InputError, RefusedError, UnknownError
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store, open_store

BUDGET: dict[str, Any] = {"l0_tokens_max": 6_000, "rules": "short"}


@pytest.fixture
def store() -> Store:
    """A store in memory whose runs are alike."""
    return vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000), ids=SeededIds(5))


@pytest.fixture
def session(store: Store) -> Live:
    """A session that said something, with a plan and a claim."""
    session = store.live_session("s", system="You plan journeys.", **BUDGET)
    session.user("Which operator should we use for the night train, Comet or Heron?")
    session.pack()
    session.assistant("Let's go with Heron for the night train.")
    session.keep("state", {"step": 1, "todo": ["book"]})
    return session


def sent(session: Live) -> str:
    """What the next call is sent."""
    packed = session.pack()
    assert packed.request == session.wire.request()
    return json.dumps(packed.request)


def sound(store: Store, session: Live) -> None:
    """The log verifies, and decided again it gives the same."""
    assert store.verify().ok
    assert session.debug.check().ok


def test_a_value_is_kept(store: Store, session: Live) -> None:
    """It comes back as it was, is a version each time it changes, and what is the same is not written again."""
    position = session.info().position
    session.keep("state", {"step": 1, "todo": ["book"]})
    assert session.info().position == position
    before = session.checkpoint("before")
    page = session.keep("state", {"step": 2, "todo": []})
    session.keep("none", None)
    assert session.kept("state") == {"step": 2, "todo": []}
    assert session.kept("state", before) == {"step": 1, "todo": ["book"]}
    assert session.values() == {"state": {"step": 2, "todo": []}, "none": None}
    assert session.values(position=before.number) == {"state": {"step": 1, "todo": ["book"]}}
    assert [version.version for version in session.lineage.versions(page)] == [1, 2]
    with refused("no-value", UnknownError, "'stat'"):
        session.kept("stat")
    with refused("no-value", UnknownError, "'none'"):
        session.kept("none", before)
    for nonsense in (object(), float("nan"), {1: 2}):
        with pytest.raises(InputError):
            session.keep("state", nonsense)
    sound(store, session)


def test_a_value_is_never_in_a_prompt(store: Store, session: Live) -> None:
    """Neither pack nor manifest, search, fault, pin or wish brings a value to the model."""
    page = session.keep("secret plan", {"word": "zanzibar"})
    session.user("What about zanzibar, the secret plan, as we said before?")
    packed = session.pack()
    assert "zanzibar" not in json.dumps(packed.manifest) and page not in packed.pages
    assert json.dumps(packed.request).count("zanzibar") == 1
    for name in (page, "secret plan", "kept:secret plan"):
        assert session.page_fault(name, by_model=True).denied_because == "no_page"
        assert session.page_fault(name).granted is False
    with pytest.raises(RefusedError):
        session.pin(page)
    assert page not in session.pack().pages
    texts: list[str] = []
    asks = ['{"query": "zanzibar"}', '{"query": "zanzibar", "modality": "structured"}']

    def model(request: dict[str, Any]) -> dict[str, Any]:
        texts.append(json.dumps(request["messages"][-1]))
        called = [{"name": "search_pages", "arguments": arguments} for arguments in asks[len(texts) - 1 :][:1]]
        calls = [{"id": "c", "type": "function", "function": function} for function in called]
        return {"choices": [{"message": {"role": "assistant", "content": "No.", "tool_calls": calls}}]}

    session.run(model)
    assert len(texts) == 3 and f'"{page}"' not in "".join(texts).replace("\\", "")
    sound(store, session)


def test_values_survive(store_path: Any) -> None:
    """Another handle, a fork and a recorded moment have them as they were."""
    with open_store(store_path) as store:
        session = store.live_session("s", **BUDGET)
        session.keep("n", 1)
        here = session.checkpoint("here")
        session.keep("n", 2)
    with open_store(store_path) as store:
        session = store.session("s")
        assert isinstance(session, Live)
        assert (session.kept("n"), session.kept("n", here)) == (2, 1)
        other = session.fork("other", here)
        assert other.kept("n") == 1
        other.keep("n", 3)
        assert (session.kept("n"), other.kept("n"), other.kept("n", here)) == (2, 3, 1)
        assert [point.name for point in other.checkpoints()] == ["here"]


def test_checkpoints_are_listed(session: Live) -> None:
    """Each says where it stands; a fork begins there, and the last of a name is the one that is meant."""
    first = session.checkpoint("a")
    session.user("And the ferry?")
    session.pack()
    second = session.checkpoint("a")
    assert session.checkpoints() == [first, second]
    assert (first.turn, first.call, second.turn, second.call) == (1, 1, 2, 2)
    assert "ferry" not in sent(session.fork("x", first))
    assert "ferry" in sent(session.fork("y", second))
    session.user("And the tram?")
    session.rewind("a")
    assert "ferry" in sent(session) and "tram" not in sent(session)


def test_a_session_goes_back(store: Store, session: Live) -> None:
    """What came after is in no request and no search, claims, contents, pins and values are as they were."""
    session.claim("The cabin is booked.", name="cabin")
    point = session.checkpoint("before")
    pages = sorted(session.pack().pages)
    session.user("Let's go with Comet for the night train instead.")
    session.pack()
    session.assistant("Comet it is. The harbour is closed.")
    session.claim("The cabin is cancelled.", name="cabin", supersedes="cabin")
    session.keep("state", {"step": 9})
    session.keep("later", True)
    session.annotate("p9", tags=["wrong"], importance=0.1)
    session.pin("p9")
    store.live_session("s", system="You are rude.", l0_tokens_max=4_000)
    assert "You are rude." in sent(session)
    session.rewind(point)
    assert sorted(session.pack().pages) == pages
    assert session.settings.l0_tokens_max == 6_000
    assert session.values() == {"state": {"step": 1, "todo": ["book"]}}
    page = session.page("p9")
    assert (page.tags, page.importance, page.pinned) == (session.page("p9", point).tags, 0.5, False)
    session.user("Which operator did we choose for the night train, what of the cabin and the harbour?")
    other_sent = sent(session)
    assert "Heron" in other_sent and "The cabin is booked." in other_sent
    assert "Comet it is" not in other_sent and "cancelled" not in other_sent and "is closed" not in other_sent
    assert session.page_fault("cabin", by_model=True).content == b"The cabin is booked."
    assert session.keep("later", 1) != "later" and session.kept("later") == 1
    sound(store, session)


def test_links_are_as_they_were(store: Store, session: Live) -> None:
    """A link that was ended since holds again, with its validity; one that was made since, or changed, does no more."""
    claims = [session.claim(f"Train {n} leaves at {n}.", name=f"train_{n}") for n in range(3)]
    session.link(claims[0], claims[1], "derives")
    session.link(claims[1], claims[2], "related_to", valid_from_us=7, valid_to_us=9)
    session.link(claims[0], claims[2], "represents")

    def stand() -> tuple[object, ...]:
        walked = [
            (source.source, source.kind, source.target)
            for claim in claims
            for source in session.lineage.ancestors(claim)
        ]
        sources = session.look(
            lambda runtime: {page: source for page, source in runtime.spoken.sources.items() if source}
        )
        origins = session.look(lambda runtime: [page.origin for page in runtime.state.pages.values() if page.origin])
        rows = store.query("LINKS source, target, kind, valid_from, valid_to", session="s").to_dicts()
        return sorted(walked), sources, origins, sorted(map(str, rows))

    before = session.checkpoint("before")
    stood = stand()
    session.unlink(claims[0], claims[1], "derives")
    session.unlink(claims[1], claims[2])
    session.link(claims[1], claims[2], valid_from_us=8)
    session.unlink(claims[0], claims[2], "represents")
    session.link(claims[2], claims[0], "derives")
    assert stand() != stood
    session.rewind(before)
    assert stand() == stood
    sound(store, session)


def test_the_log_keeps_what_was_undone(session: Live) -> None:
    """Every moment answers as ever, and turns and calls count on."""
    point = session.checkpoint("before")
    session.user("And the ferry?")
    session.pack()
    undone = session.wire.request(call=2)
    session.assistant("By noon.")
    session.rewind("before")
    assert session.wire.request(call=2) == undone
    assert [session.content(page.page) for page in session.pages(turn=2)][-1] == b"By noon."
    session.user("And the bus?")
    assert "ferry" not in sent(session)
    assert [(call.call, call.turn, call.status) for call in session.calls()] == [
        (1, 1, "ok"),
        (2, 2, "ok"),
        (3, 3, "open"),
    ]
    assert "ferry" in sent(session.fork("beside", call=2))
    assert session.checkpoints() == [point]


def test_a_session_goes_back_and_forth(store: Store, session: Live) -> None:
    """After going back to one checkpoint a later one, undone meanwhile, can be gone to again."""
    first = session.checkpoint("first")
    session.user("And the ferry?")
    session.pack()
    session.assistant("It leaves by noon.")
    session.keep("state", 2)
    second = session.checkpoint("second")
    there = json.loads(sent(session))["messages"]
    session.rewind(first)
    assert "ferry" not in sent(session) and session.kept("state") == {"step": 1, "todo": ["book"]}
    session.user("And the bus?")
    session.pack()
    session.assistant("At eight.")
    session.rewind(second)
    assert json.loads(sent(session))["messages"] == there
    assert session.kept("state") == 2
    session.rewind("first")
    assert "ferry" not in sent(session) and "bus" not in sent(session)
    sound(store, session)


def test_a_tool_call_can_be_undone(store: Store, session: Live) -> None:
    """Going back into the middle of a turn takes a call and its result away; the model is asked again."""
    session.user("Look it up.")
    point = session.checkpoint("asked")
    session.pack()
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    session.assistant({"role": "assistant", "content": None, "tool_calls": [call]})
    session.tool("c1", "nothing there")
    session.pack()
    session.rewind(point)
    with refused("no-tool-call", InputError, "'c1'"):
        session.tool("c1", "again")
    request = session.pack().request
    assert request["messages"][-1]["role"] == "user" and "Look it up." in request["messages"][-1]["content"]
    session.assistant("Found.")
    session.user("Thanks.")
    assert session.info().turns == 3
    sound(store, session)


def test_a_segment_is_open_again(store: Store, session: Live) -> None:
    """A segment that ended after the checkpoint is under way again: its pages come back, its summary goes."""
    for n in range(6):
        session.user(f"What of stop {n} of the line?")
        session.pack()
        session.assistant(f"Stop {n} has a bridge.")
    point = session.checkpoint("before")
    session.segment("The line")
    assert "bridge" in sent(session)
    session.rewind(point)
    assert "summary_1" not in session.pack().pages and "What of stop 0" in sent(session)
    again = session.segment("The line")
    assert b"bridge" in session.content(again)
    assert len(session.lineage.ancestors(again, kinds=["derives"])) >= 12
    sound(store, session)


def test_a_page_names_a_moment(session: Live) -> None:
    """`moment_of` is where a fork can begin, after a page or before it; within a commit there is none."""
    (page,) = session.user("And the ferry?")
    session.pack()
    session.assistant("By noon.")
    assert "ferry" in sent(session.fork("with", session.lineage.moment_of(page)))
    assert "ferry" not in sent(session.fork("without", session.lineage.moment_of(page, before=True)))
    with refused("within-a-commit", InputError):
        session.rewind(vmstore.Position(session.lineage.position_of(page) - 1))
    session.rewind(session.lineage.moment_of(page, before=True))
    assert "ferry" not in sent(session)


def test_what_cannot_be_gone_back_to_is_named(store: Store, session: Live) -> None:
    """No such checkpoint, a moment before the budget, a run under way: each says what to do, and writes nothing."""
    session.checkpoint("before")
    position = session.info().position
    with refused("no-checkpoint", UnknownError, "'befor'"):
        session.rewind("befor")
    with pytest.raises(UnknownError):
        session.rewind(vmstore.Position(10_000))

    def model(request: dict[str, Any]) -> Any:
        with refused("running-already"):
            session.rewind("before")
        return {"choices": [{"message": {"role": "assistant", "content": "Hi."}}]}

    assert session.info().position == position
    session.run(model)
    with refused("commands_write_it"), session.batch() as batch:
        batch.add(vmstore_mark())


def vmstore_mark() -> Any:
    """A mark that says a session was set back, which only going back writes."""
    from vmstore.core.mutation import Mark

    return Mark(Mark.NAMED, back_to=3)


def test_reopened_it_is_as_it_was(store_path: Any) -> None:
    """Another process that folds the log has the same prompt, names and values."""
    with open_store(store_path) as store:
        session = store.live_session("s", **BUDGET)
        session.user("One.")
        session.keep("n", 1)
        session.checkpoint("one")
        session.user("Two.")
        session.keep("n", 2)
        session.rewind("one")
        messages = session.pack().request["messages"]
    with open_store(store_path) as store:
        session = store.session("s")
        assert isinstance(session, Live)
        assert session.pack().request["messages"] == messages
        assert session.kept("n") == 1
        session.user("Three.")
        assert "Two." not in sent(session)
        session.debug.replay(policy="lru", keep="what-if")
        other = store.session("what-if")
        assert isinstance(other, Live) and other.kept("n") == 1
        assert "Two." not in sent(other) and "Three." in sent(other)
        assert store.verify().ok


def test_the_async_twin_goes_back() -> None:
    """The same on the twin, awaited."""

    async def go() -> None:
        async with vmstore.aio.memory_store() as store:
            session = await store.live_session("s", **BUDGET)
            await session.user("One.")
            await session.keep("n", [1])
            point = await session.checkpoint("one")
            (page,) = await session.user("Two.")
            await session.keep("n", [2])
            assert (await session.kept("n", point), await session.values()) == ([1], {"n": [2]})
            fork = await session.fork("beside", await session.lineage.moment_of(page, before=True))
            assert "Two." not in json.dumps((await fork.pack()).request)
            await session.rewind("one")
            assert "Two." not in json.dumps((await session.pack()).request)
            assert [checkpoint.name for checkpoint in await session.checkpoints()] == ["one"]

    asyncio.run(go())
