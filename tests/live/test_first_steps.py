"""What somebody new to live sessions gets wrong is answered with what to do, before anything of it is logged."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import vmstore
import vmstore.aio
from tests.refusals import refused
from vmstore.errors import InputError


def answers(request: dict[str, Any]) -> dict[str, Any]:
    """A model that says hello."""
    return {"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}


def read(path: str) -> str:
    """Reads a file."""
    return path


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"l0_token_max": 8_000}, "there is no setting 'l0_token_max'; did you mean l0_tokens_max"),
        ({"l0_tokens_max": "32k"}, "l0_tokens_max cannot be '32k'"),
        ({"l0_tokens_max": 8_000, "shape": "openai"}, "it is one of chat, chat-system, responses, anthropic, gemini"),
        ({"l0_tokens_max": 8_000, "rules": "none"}, "it is one of strict, relaxed, passive, short"),
        ({"l0_tokens_max": 8_000, "parameters": {"half": "x"}}, "parameters cannot be"),
    ],
)
def test_a_wrong_setting_is_named(fields: dict[str, Any], says: str) -> None:
    """A setting that is none, or cannot be what it is told, is named with what it may be."""
    with vmstore.memory_store() as store:
        with pytest.raises(InputError, match=says):
            store.live_session("s", **fields)
        assert not store.sessions()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"model_call": "gpt"}, "give a function that takes a request"),
    ({"tools": [read]}, "give a function by its name: {'read': read}"),
    ({"tools": None}, "functions by name"),
    ({"tools": "read"}, "functions by name"),
    ({"rounds_max": -1}, "from 0 up"),
    ({"rounds_max": "3"}, "from 0 up"),
    ({"on_text": 3}, "give a function that takes a text"),
]


@pytest.mark.parametrize(("fields", "says"), WRONG)
@pytest.mark.parametrize("awaited", [False, True])
def test_a_run_that_cannot_be_is_refused_first(fields: dict[str, Any], says: str, awaited: bool) -> None:
    """What is no model, tool, number of rounds or listener is refused before a call is packed, awaited or not."""
    fields = {"model_call": answers, **fields}

    async def run() -> None:
        async with vmstore.aio.memory_store() as store:
            session = await store.live_session("s", l0_tokens_max=8_000)
            await session.user("Hello?")
            with pytest.raises(InputError, match=says):
                await session.run(**fields)
            assert not await session.calls() and (await session.run(answers)).text == "Hello."

    if awaited:
        asyncio.run(run())
        return
    with vmstore.memory_store() as store:
        session = store.live_session("s", l0_tokens_max=8_000)
        session.user("Hello?")
        with pytest.raises(InputError, match=says):
            session.run(**fields)
        assert not session.calls() and session.run(answers).text == "Hello."


def test_a_list_of_messages_is_no_message() -> None:
    """A conversation handed in as what a person says is refused, and the way to say it told."""
    with vmstore.memory_store() as store:
        session = store.live_session("s", l0_tokens_max=8_000)
        with refused("several-messages", InputError):
            session.user([{"role": "user", "content": "Hello?"}])
        assert not session.pages(role="user")


def test_a_providers_error_is_told_in_its_words() -> None:
    """A body that is an error raises what the provider said, and its call is failed."""
    with vmstore.memory_store() as store:
        session = store.live_session("s", l0_tokens_max=8_000)
        session.user("Hello?")
        with refused("provider-error", InputError):
            session.run(lambda request: {"error": {"message": "rate limit"}})
        assert [call.status for call in session.calls()] == ["failed"]
