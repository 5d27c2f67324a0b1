"""The session of OpenAI's Agents SDK, run by its runner against a provider of our own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents.memory", reason="runs in the lane of tools/integrations.py")

from agents import Agent, OpenAIResponsesModel, Runner, SQLiteSession, function_tool, set_tracing_disabled
from agents.memory import Session, SessionSettings
from openai import AsyncOpenAI

import vmstore
from tests.integrations.provider import Provider
from tests.refusals import refused
from vmstore.errors import InputError
from vmstore.integrations.agents import VmstoreSession
from vmstore.store.store import Store

set_tracing_disabled(True)
ITEMS: list[Any] = [
    {"role": "user", "content": "Where is Kyoto? — 京都"},
    {"type": "function_call", "call_id": "c", "name": "look", "arguments": '{"q": "Kyoto"}'},
    {"type": "function_call_output", "call_id": "c", "output": "In Japan."},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "In Japan."}]},
]


def agent(provider: Provider, **options: Any) -> Any:
    """An agent whose model is the provider's."""
    client = AsyncOpenAI(base_url=provider.url, api_key="none")
    return Agent(name="guide", model=OpenAIResponsesModel("m-1", client), **options)


def test_it_is_a_session_of_theirs(store: Store) -> None:
    """The SDK takes it for a session by its protocol."""
    assert isinstance(VmstoreSession("trip", store), Session)


def test_a_runner_goes_on_from_it(store: Store, provider: Provider) -> None:
    """The second run of a session sends what was said in the first, as it does with the SDK's own session."""

    async def talk(session: Any) -> list[Any]:
        provider.says[:] = ["In Japan.", "In autumn."]
        provider.asked.clear()
        for text in ("Where is Kyoto?", "And when to go?"):
            await Runner.run(agent(provider), text, session=session)
        return [asked["input"] for asked in provider.asked]

    ours = asyncio.run(talk(VmstoreSession("trip", store)))
    assert ours == asyncio.run(talk(SQLiteSession("trip")))
    assert [len(sent) for sent in ours] == [1, 3]


def test_a_tool_call_and_its_answer_are_kept(store: Store, provider: Provider) -> None:
    """A call of a tool, its output and the answer are items, each by who said it."""

    @function_tool
    def weather(city: str) -> str:
        """The weather."""
        return f"Rain in {city}"

    provider.says[:] = [("weather", {"city": "Bergen"}), "It rains."]
    session = VmstoreSession("trip", store)
    asyncio.run(Runner.run(agent(provider, tools=[weather]), "Weather?", session=session))
    assert [page.role for page in session.session.pages()] == ["user", "assistant", "tool", "assistant"]
    assert store.memory.find_quote("Rain in Bergen").quotes[0].match == "exact"


@pytest.mark.parametrize("limit", [None, 0, 1, 3, 4, 9, -1])
def test_items_come_back_as_the_reference_gives_them(store: Store, limit: int | None) -> None:
    """Items are equal in every field and in order, of them the last so many, as the SDK's own session gives them."""

    async def kept(session: Any) -> Any:
        await session.add_items(ITEMS)
        await session.add_items([])
        return await session.get_items(limit)

    assert asyncio.run(kept(VmstoreSession("trip", store))) == asyncio.run(kept(SQLiteSession("trip")))


@pytest.mark.parametrize("content", ["cut \ud83d", "\x00", 2**80, 1e300])
def test_what_a_model_may_say_comes_back(store: Store, content: Any) -> None:
    """Half a character, control characters and great numbers come back as the SDK's own session gives them."""

    async def kept(session: Any) -> Any:
        await session.add_items([{"role": "user", "content": content}])
        return await session.get_items()

    assert asyncio.run(kept(VmstoreSession("trip", store))) == asyncio.run(kept(SQLiteSession("trip")))


@pytest.mark.parametrize("content", [float("nan"), object(), {1, 2}], ids=["number", "object", "set"])
def test_what_json_cannot_hold_is_refused(store: Store, content: Any) -> None:
    """A value that would not come back equal is refused by name, and nothing of its list is kept."""
    session = VmstoreSession("trip", store)
    with refused("input", InputError, "JSON"):
        asyncio.run(session.add_items([*ITEMS, {"role": "user", "content": content}]))
    assert asyncio.run(session.get_items()) == []


def test_the_limit_of_the_settings_holds(store: Store) -> None:
    """Without a limit of its own a question takes that of the settings."""

    async def kept() -> Any:
        session = VmstoreSession("trip", store, session_settings=SessionSettings(limit=2))
        await session.add_items(ITEMS)
        return await session.get_items(), await session.get_items(3)

    assert asyncio.run(kept()) == (ITEMS[-2:], ITEMS[-3:])


def test_what_is_popped_stays_in_the_past(store: Store) -> None:
    """Popping and clearing take items from the conversation, and the past still answers with them."""

    async def main() -> None:
        session = VmstoreSession("trip", store)
        await session.add_items(ITEMS)
        then = session.session.info().position
        assert await session.pop_item() == ITEMS[-1]
        assert await session.get_items() == ITEMS[:-1]
        await session.clear_session()
        assert (await session.get_items(), await session.pop_item()) == ([], None)
        past = f"PAGES page IN SESSION 'agents/trip' AS OF POSITION {then} WHERE status IS NULL"
        assert len(list(store.query(past))) == len(ITEMS)
        await session.add_items(ITEMS[:1])
        assert await VmstoreSession("trip", store).get_items() == ITEMS[:1]

    asyncio.run(main())


def test_two_processes_share_a_session(tmp_path: Path) -> None:
    """Two handles on one store's files see each other's items in order."""

    async def main() -> None:
        with vmstore.open(tmp_path / "agent.vms") as first, vmstore.open(tmp_path / "agent.vms") as two:
            sessions = VmstoreSession("trip", first), VmstoreSession("trip", two)
            for number in range(6):
                await sessions[number % 2].add_items([{"role": "user", "content": str(number)}])
            assert [item["content"] for item in await sessions[0].get_items()] == list("012345")

    asyncio.run(main())


def test_a_fork_goes_its_own_way(store: Store) -> None:
    """A fork of the store's session is a session of the SDK that begins with what was said, and leaves the first."""

    async def main() -> None:
        first = VmstoreSession("trip", store)
        await first.add_items(ITEMS[:2])
        first.session.fork("agents/other")
        other = VmstoreSession("other", store)
        await other.add_items(ITEMS[2:3])
        assert (await other.get_items(), await first.get_items()) == (ITEMS[:3], ITEMS[:2])

    asyncio.run(main())
