"""instructor, patched onto a wrapped client."""

from __future__ import annotations

from typing import Any

import instructor

from tests.sdk.anthropic_scenarios import async_claude, claude
from tests.sdk.openai_scenarios import BOTH, HELLO, Place, sync
from tests.sdk.scenarios import each, resolved, scenario


def ask(made: Any, **request: Any) -> Any:
    return made.chat.completions.create(model="m", messages=[HELLO], response_model=Place, **request)


@scenario(*BOTH)
async def instructor_create(client: Any) -> None:
    assert (await resolved(ask(instructor.from_openai(client)))).word == "Kyoto"


@scenario(*BOTH)
async def instructor_json_schema(client: Any) -> None:
    assert (await resolved(ask(instructor.from_openai(client, mode=instructor.Mode.JSON_SCHEMA)))).word == "Kyoto"


@scenario(*BOTH)
async def instructor_partial(client: Any) -> None:
    made = instructor.from_openai(client)
    stream = made.chat.completions.create_partial(model="m", messages=[HELLO], response_model=Place)
    assert [place async for place in each(await resolved(stream))][-1].word == "Kyoto"


@scenario(sync)
async def instructor_patch(client: Any) -> None:
    assert ask(instructor.patch(client)).word == "Kyoto"


@scenario(claude, async_claude)
async def instructor_anthropic(client: Any) -> None:
    assert (await resolved(ask(instructor.from_anthropic(client), max_tokens=99))).word == "Kyoto"
