"""OpenAI's agents, given a wrapped client."""

from __future__ import annotations

from typing import Any

import agents

from tests.sdk.openai_scenarios import Place, asynchronous
from tests.sdk.scenarios import scenario

agents.set_tracing_disabled(True)
MODELS = (agents.OpenAIChatCompletionsModel, agents.OpenAIResponsesModel)


@agents.function_tool
def look(n: int, word: str) -> str:
    """Looks."""
    return f"{n} {word}"


def agent(client: Any, model: Any, **fields: Any) -> Any:
    return agents.Agent(name="a", instructions="Be brief.", model=model(model="m", openai_client=client), **fields)


async def run(client: Any, model: Any, **fields: Any) -> Any:
    return (await agents.Runner.run(agent(client, model, **fields), "Where is Kyoto?")).final_output


async def streamed(client: Any, model: Any) -> None:
    result = agents.Runner.run_streamed(agent(client, model), "Where is Kyoto?")
    async for _ in result.stream_events():
        pass
    assert result.final_output == "In Japan."


@scenario(asynchronous)
async def agents_chat(client: Any) -> None:
    assert await run(client, MODELS[0]) == "In Japan."


@scenario(asynchronous)
async def agents_responses(client: Any) -> None:
    assert await run(client, MODELS[1]) == "In Japan."


@scenario(asynchronous, statuses=("ok", "ok"))
async def agents_chat_tools(client: Any) -> None:
    await run(client, MODELS[0], tools=[look])


@scenario(asynchronous, statuses=("ok", "ok"))
async def agents_responses_tools(client: Any) -> None:
    await run(client, MODELS[1], tools=[look])


@scenario(asynchronous)
async def agents_responses_class(client: Any) -> None:
    assert (await run(client, MODELS[1], output_type=Place)).word == "Kyoto"


@scenario(asynchronous)
async def agents_chat_streamed(client: Any) -> None:
    await streamed(client, MODELS[0])


@scenario(asynchronous)
async def agents_responses_streamed(client: Any) -> None:
    await streamed(client, MODELS[1])
