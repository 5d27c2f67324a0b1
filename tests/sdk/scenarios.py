"""What a scenario is: a client of some SDK, what is asked through it, and what its record must hold."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import vmstore
from tests.sdk.provider import Provider, Seen, serving
from vmstore.capture.client.body import Endpoint, endpoint

SCENARIOS: dict[str, Scenario] = {}


class Scenario(NamedTuple):
    """One way to ask: `ask(client)`, or `ask(wrap, provider)` where it makes its own client."""

    name: str
    make: Callable[[Provider], Any] | None
    ask: Callable[..., Any]
    statuses: tuple[str, ...]  # of the recorded calls
    gaps: int


class Watched:
    """A store that also keeps what it was handed, as the recorder read it."""

    def __init__(self) -> None:
        self.store = vmstore.memory_store()
        self.handed: list[tuple[str, Any, Any]] = []
        self.gaps: list[str] = []

    def record(self, session: str, request: Any, response: Any, **fields: Any) -> Any:
        written = self.store.record(session, request, response, **fields)
        self.handed.append((session, request, response))
        return written

    @property
    def admin(self) -> Any:
        """What takes gaps."""
        return self

    def record_gap(self, session: str, reason: str, **fields: Any) -> Any:
        self.gaps.append(reason)
        return self.store.admin.record_gap(session, reason, **fields)


def scenario(
    *makes: Callable[[Provider], Any], statuses: tuple[str, ...] = ("ok",), gaps: int = 0, own: bool = False
) -> Callable[[Any], Any]:
    """Enters a function in the table, once for each kind of client; `own` where it makes its clients itself."""

    def entered(ask: Any) -> Any:
        for make in makes or (None,):
            name = ask.__name__ if make is None else f"{make.__name__}-{ask.__name__}"
            assert name not in SCENARIOS, name
            SCENARIOS[name] = Scenario(name, None if own else make, ask, statuses, gaps)
        return ask

    return entered


async def resolved(value: Any) -> Any:
    """A value, awaited where it has to be: one scenario serves sync and async clients."""
    return await value if inspect.isawaitable(value) else value


async def each(values: Any) -> AsyncIterator[Any]:
    """The items of what is iterable in either way."""
    if hasattr(values, "__aiter__"):
        async for value in values:
            yield value
    else:
        for value in values:
            yield value


@asynccontextmanager
async def within(block: Any) -> AsyncIterator[Any]:
    """Enters what is a context manager in either way."""
    if hasattr(block, "__aenter__"):
        async with block as value:
            yield value
    else:
        with block as value:
            yield value


def play(scenario: Scenario) -> None:
    """Plays a scenario and holds its record against what the provider saw."""
    store = Watched()
    recorders: list[Any] = []

    def wrap(client: Any, session: Any = None) -> Any:
        client = vmstore.wrap(client, store, session)  # type: ignore[arg-type]
        recorders.append(client.vmstore)
        return client

    with serving() as provider:

        async def asked() -> None:
            if scenario.make is None:
                await resolved(scenario.ask(wrap, provider))
            else:
                arguments = scenario.make(provider)
                client = wrap(arguments)
                assert isinstance(client, type(arguments))
                await resolved(scenario.ask(client))

        asyncio.run(asked())
        assert recorders, "a scenario wraps a client"
        for recorder in recorders:
            assert recorder.flush(10), recorder.problems
        compare(scenario, store, provider.seen)


def compare(scenario: Scenario, store: Watched, seen: list[Seen]) -> None:
    """What was sent, and answered, is what is recorded; handed to the store in the order of its keys."""
    calls = [each_seen for each_seen in seen if endpoint("POST", each_seen.path) is Endpoint.CALL]
    sent = sorted(json.dumps(call.body) for call in calls)
    assert sent == sorted(json.dumps(request) for _, request, _ in store.handed), "requests"
    alike = sorted(json.dumps(call.body, sort_keys=True) for call in calls)
    assert alike == sorted(_texts(store.store)), "requests given back"
    assert len(store.gaps) == scenario.gaps, store.gaps
    statuses = [call.status for name in _names(store.store) for call in store.store.session(name).calls()]
    wanted = [*scenario.statuses, *["gap"] * scenario.gaps]
    assert sorted(statuses) == sorted(wanted), (statuses, wanted)
    whole = [call.answer for call in calls if call.answer is not None]
    for _, _, response in store.handed:
        if not isinstance(response, BaseException) and response is not None:
            if isinstance(response, list):
                parts = [part for part in response if not isinstance(part, BaseException)]
                assert any(isinstance(answer, list) and answer[: len(parts)] == parts for answer in whole), parts
            else:
                assert response in whole


def _names(store: Any) -> list[str]:
    return [info.session for info in store.sessions()]


def _texts(store: Any) -> list[str]:
    """Every request of a store, as it gives them back."""
    return [
        json.dumps(store.session(name).wire.request(call=call.call), sort_keys=True)
        for name in _names(store)
        for call in store.session(name).calls()
        if call.fidelity == "recorded"
    ]
