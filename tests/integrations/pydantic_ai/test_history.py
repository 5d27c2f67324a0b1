"""The message history of Pydantic AI, with its agents against a provider of our own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="runs in the lane of tools/integrations.py")

from pydantic_ai import Agent
from pydantic_ai.messages import BinaryContent, ModelMessagesTypeAdapter, ModelRequest, UserPromptPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.integrations.provider import Provider
from vmstore.integrations.pydantic_ai import VmstoreHistory
from vmstore.store.store import Store


def agent(provider: Provider, **options: Any) -> Any:
    """An agent whose model is the provider's."""
    return Agent(OpenAIChatModel("m-1", provider=OpenAIProvider(base_url=provider.url, api_key="none")), **options)


def as_json(result: Any) -> Any:
    """A run's messages as Pydantic AI reads back what it wrote of them as JSON."""
    return ModelMessagesTypeAdapter.validate_json(result.all_messages_json())


def test_an_agent_goes_on_from_it(store: Store, provider: Provider) -> None:
    """A second run sends what was said in the first, and the history is the run's messages as JSON keeps them."""
    provider.says[:] = ["In Japan.", "In autumn."]
    guide, history = agent(provider, instructions="Be brief."), VmstoreHistory(store, "trip")
    for text in ("Where is Kyoto?", "And when to go?"):
        result = guide.run_sync(text, message_history=history.messages())
        history.save(result)
    assert VmstoreHistory(store, "trip").messages() == as_json(result)
    assert [message["content"] for message in provider.asked[1]["messages"] if message["role"] != "system"] == [
        "Where is Kyoto?", "In Japan.", "And when to go?"
    ]  # fmt: skip


def test_calls_of_tools_are_kept(store: Store, provider: Provider) -> None:
    """A call of a tool and its return are messages, each by who said it, and found by their words."""
    provider.says[:] = [("weather", {"city": "Bergen"}), "It rains."]
    guide, history = agent(provider), VmstoreHistory(store, "trip")

    @guide.tool_plain  # type: ignore[untyped-decorator]
    def weather(city: str) -> str:
        """The weather."""
        return f"Rain in {city}"

    history.save(guide.run_sync("Weather?"))
    assert [page.role for page in history.session.pages()] == ["user", "assistant", "tool", "assistant"]
    assert store.memory.find_quote("Rain in Bergen").quotes[0].match == "exact"


def test_it_is_awaited(store: Store, provider: Provider) -> None:
    """The async methods keep and give the same."""
    provider.says[:] = ["Hello."]

    async def main() -> Any:
        history = VmstoreHistory(store, "trip")
        result = await agent(provider).run("Hi", message_history=await history.amessages())
        await history.asave(result)
        return await history.amessages() == as_json(result)

    assert asyncio.run(main())


def test_bytes_come_back(store: Store) -> None:
    """Contents that are bytes, as an image, are read back equal."""
    message = ModelRequest([UserPromptPart(["look", BinaryContent(data=b"\x89PNG\xff\x00", media_type="image/png")])])
    history = VmstoreHistory(store, "trip")
    history.add([message])
    (read,) = VmstoreHistory(store, "trip").messages()
    (text, image) = read.parts[0].content
    assert (text, image.data, image.media_type) == ("look", b"\x89PNG\xff\x00", "image/png")


def test_what_is_taken_away_stays_in_the_past(store: Store, provider: Provider) -> None:
    """Popping and clearing take messages from the history; a limit gives the last."""
    provider.says[:] = ["Hello."]
    history = VmstoreHistory(store, "trip")
    result = agent(provider).run_sync("Hi")
    history.save(result)
    assert history.messages(1) == as_json(result)[-1:]
    assert history.pop() == as_json(result)[-1]
    history.clear()
    assert (history.messages(), history.pop()) == ([], None)
    assert len(history.session.pages()) == 2


def test_theirs_reads_it(store: Store, provider: Provider) -> None:
    """The pages hold the JSON that Pydantic AI itself writes and reads."""
    provider.says[:] = ["Hello."]
    history, result = VmstoreHistory(store, "trip"), agent(provider).run_sync("Hi")
    history.save(result)
    pages = b",".join(history.session.content(page.page) for page in history.session.pages())
    assert ModelMessagesTypeAdapter.validate_json(b"[" + pages + b"]") == as_json(result)
