"""Sub-agents: a session begins another, and what that came to comes back with where it comes from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

import vmstore
import vmstore.aio
from tests.refusals import refused
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import ConflictError, InputError, UnknownError
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store

BUDGET: dict[str, Any] = {"l0_tokens_max": 6_000, "rules": "short", "policy": "lru", "model": "m-1"}


@pytest.fixture
def store() -> Store:
    """A store in memory whose runs are alike."""
    return vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000), ids=SeededIds(5))


def says(text: str) -> dict[str, Any]:
    """A model's answer."""
    return {"choices": [{"message": {"role": "assistant", "content": text}}]}


def asks(tool: str, *arguments: str) -> dict[str, Any]:
    """A model's calls of a tool, by their JSON."""
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": tool, "arguments": argument}}
        for n, argument in enumerate(arguments, 1)
    ]
    return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": calls}}]}


def scripted(*answers: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A model that gives its answers in order."""
    left = list(answers)
    return lambda request: left.pop(0)


def test_a_child_has_its_parents_settings_and_user(store: Store) -> None:
    """It begins with them but for those told, sees nothing of its parent, and both say whose it is."""
    session = store.live_session("s", user="ann", system="You plan.", **BUDGET)
    session.user("The word is zanzibar.")
    child = session.child("s/research", l0_tokens_max=3_000, system="You search.")
    assert (child.settings.l0_tokens_max, child.settings.policy, child.settings.model) == (3_000, "lru@1", "m-1")
    info = child.info()
    assert (info.user, info.origin, info.parent) == ("ann", "spawn", "s")
    assert [info.session for info in session.children()] == ["s/research"]
    child.user("Find the port.")
    request = json.dumps(child.pack().request)
    assert "You search." in request and "zanzibar" not in request and "You plan." not in request
    assert session.child("s/research").info().position == child.info().position
    assert session.settings.l0_tokens_max == 6_000
    assert store.verify().ok


def test_a_result_comes_back_as_a_page(store: Store) -> None:
    """Without a call it is a page of its own in the next prompt, without the child's citations, with its origin."""
    session = store.live_session("s", **BUDGET)
    session.user("Which port?")
    child = session.child("r1")
    (asked,) = child.user("Find the port.")
    child.run(scripted(says(f"It is 5432 [ref: {asked}].")))
    (page,) = session.join(child)
    assert session.content(page) == b"It is 5432."
    origin = vmstore.origin(session, page)
    assert origin is not None and origin.startswith("vm://default/r1/p")
    actual_session, name = store.catalog.find_page(origin.partition("@")[0])
    assert actual_session.name == "r1" and b"It is 5432" in actual_session.content(name)
    assert session.page(page).actor == "r1"
    messages = json.dumps(session.pack().request["messages"][1:])
    assert "It is 5432." in messages and "[ref:" not in messages
    (again,) = session.join("r1", text="Rather 5433.")
    assert session.content(again) == b"Rather 5433."
    assert store.verify().ok and session.debug.check().ok


def test_a_tool_gives_its_child(store: Store) -> None:
    """A tool that returns the child answers with what that came to; parallel ones each know their call."""
    session = store.live_session("s", **BUDGET)
    session.user("Compare both.")

    def research(topic: str) -> Live:
        """Looks into a topic."""
        child = session.child(f"s/{topic}")
        child.user(topic)
        child.run(scripted(asks("look", '{"at": "x"}'), says(f"{topic} is fine [ref: p1]")), tools={"look": str})
        return child

    requests: list[dict[str, Any]] = []
    answers = [asks("research", '{"topic": "comet"}', '{"topic": "heron"}'), says("Both are fine.")]

    def model(request: dict[str, Any]) -> dict[str, Any]:
        requests.append(request)
        return answers[len(requests) - 1]

    ran = session.run(model, tools={"research": research})
    assert ran.text == "Both are fine."
    results = session.pages(role="tool")
    assert [session.content(page.page) for page in results] == [b"comet is fine", b"heron is fine"]
    for page, topic in zip(results, ("comet", "heron"), strict=True):
        assert (vmstore.origin(session, page.page) or "").startswith(f"vm://default/s%2F{topic}/p")
        call = session.lineage.ancestors(page.page)[0].target
        assert topic.encode() in session.content(call)
    spawned = store.admin.views.execute(
        "SELECT spawned_by FROM sessions WHERE parent IS NOT NULL ORDER BY name"
    ).fetchall()
    calls = [session.lineage.position_of(session.lineage.ancestors(page.page)[0].target) for page in results]
    assert [page for (page,) in spawned] == calls
    assert store.verify().ok and session.debug.check().ok


def test_a_child_answers_the_call_that_began_it(store: Store) -> None:
    """Where the host answers calls itself, the child is begun for a call, and its result answers that."""
    session = store.live_session("s", **BUDGET)
    session.user("Look into it.")
    session.pack()
    session.assistant(asks("research", "{}")["choices"][0]["message"])
    child = session.child("r", call="c1")
    child.user("Look.")
    child.run(scripted(says("Found.")))
    (page,) = session.join(child)
    assert session.page(page).role == "tool" and session.content(page) == b"Found."
    (more,) = session.join(child, text="And more.")
    assert session.page(more).role == "assistant"  # the call has its answer
    with refused("no-tool-call", InputError, "'c9'"):
        session.child("other", call="c9")


def test_a_result_that_falls_falls_in_its_parent(store: Store) -> None:
    """Retracting what a child said marks the result its parent has of it."""
    session = store.live_session("s", **BUDGET)
    session.user("Look into it.")
    session.pack()
    session.assistant(asks("research", "{}")["choices"][0]["message"])
    child = session.child("r", call="c1")
    child.user("Look.")
    child.run(scripted(says("It is 5432.")))
    (page,) = session.join(child)
    other_page = child.pages(role="assistant")[-1].page
    vmstore.retract(store, page=f"vm://default/r/{other_page}")
    assert session.page(page).status == "superseded"


def test_what_is_no_child_is_refused(store: Store) -> None:
    """Another's session, one that said nothing, and one that is not there: each is named with what to do."""
    session, other = store.live_session("s", **BUDGET), store.live_session("t", **BUDGET)
    with refused("no-child", ConflictError, "'t'", "'s'"):
        session.child("t")
    with refused("no-child", ConflictError, "'s'"):
        session.join(other)
    with refused("no-session", UnknownError, "'r7'"):
        session.child("r1")
        session.join("r7")
    with refused("nothing-said", InputError):
        session.join("r1")
    position = session.info().position
    assert store.session("s").info().position == position


def test_a_child_keeps_its_parents_secrets_masked() -> None:
    """What its parent masks a child masks too."""
    store = vmstore.memory_store()
    session = store.live_session("s", redaction="mask", **BUDGET)
    child = session.child("r")
    child.user("password: hunter2hunter2")
    assert child.info().redaction == "mask"
    assert b"hunter2" not in b"".join(child.content(page.page) for page in child.pages())


def test_async_children_join() -> None:
    """Tasks begin children of their own calls on the twin, and return them."""

    async def go() -> None:
        async with vmstore.aio.memory_store() as store:
            session = await store.live_session("s", **BUDGET)
            await session.user("Compare both.")

            async def research(topic: str) -> Any:
                child = await session.child(topic)
                await child.user(topic)
                await child.run(scripted(says(f"{topic} is fine.")))
                return child

            model = scripted(asks("research", '{"topic": "comet"}', '{"topic": "heron"}'), says("Both."))
            ran = await session.run(model, tools={"research": research})
            pages = await session.pages(role="tool")
            assert [await session.content(page.page) for page in pages] == [b"comet is fine.", b"heron is fine."]
            assert [info.session for info in await session.children()] == ["comet", "heron"] and ran.text == "Both."
            child = await session.child("alone")
            await child.user("And this?")
            await child.run(scripted(says("Fine.")))
            assert len(await session.join(child)) == 1

    asyncio.run(go())
