"""A client of both providers' attribute shape, and a store that keeps, fails or hangs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace as Space
from typing import Any

from vmstore.capture.client.wrap import wrap
from vmstore.core.clock import ManualClock

AT = 1_795_301_701_000_007  # 2026-11-21T22:55:01.000007Z
HELLO = {"role": "user", "content": "hello"}
CHUNKS = [{"choices": [{"delta": {"content": text}}]} for text in ("a", "b", "c")]


class Obj(Space):
    """An SDK's object: attributes, and `model_dump`."""

    def model_dump(self, **options: Any) -> dict[str, Any]:
        return {key: item.model_dump() if isinstance(item, Obj) else item for key, item in vars(self).items()}


class Store:
    """A store that keeps what it is given, unless it is told to fail or to hang."""

    def __init__(self) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.fails: BaseException | None = None
        self.goes = threading.Event()
        self.goes.set()

    def record(
        self, session: Any, request: dict[str, Any], response: Any, *, at: int | None, latency: int | None
    ) -> None:
        self.goes.wait()
        if self.fails:
            raise self.fails
        self.log.append((session, request, response, at, latency))

    def record_gap(self, session: Any, reason: str) -> None:
        if self.fails:
            raise self.fails
        self.log.append(("gap", reason))

    def asked(self) -> list[Any]:
        return ["gap" if entry[0] == "gap" else entry[1]["n"] for entry in self.log]


class Parts:
    """An SDK's stream: chunks one by one, closed by hand or by `with`."""

    def __init__(self, parts: list[Any]) -> None:
        self.left = list(parts)
        self.closed = False
        self.response = "http"

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self.left:
            raise StopIteration
        part = self.left.pop(0)
        if isinstance(part, BaseException):
            raise part
        return part

    def __enter__(self) -> Parts:
        return self

    def __exit__(self, *raised: Any) -> None:
        self.close()

    def close(self) -> None:
        self.closed = True

    @property
    def text_stream(self) -> Iterator[str]:
        return (part.delta.text for part in self if part.type == "content_block_delta")

    def get_final_message(self) -> str:
        assert not list(self), "the SDK reads what is left"
        return "final"


class AsyncParts(Parts):
    """The same, async."""

    def __aiter__(self) -> AsyncIterator[Any]:
        return self  # type: ignore[return-value]

    async def __anext__(self) -> Any:
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> AsyncParts:
        return self

    async def __aexit__(self, *raised: Any) -> None:
        Parts.close(self)

    async def close(self) -> None:  # type: ignore[override]
        Parts.close(self)


class Completions:
    """The methods that ask a model; `answers` holds what they return or raise."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers = answers
        self.with_raw_response = self

    def create(self, **request: Any) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    stream = parse = create

    def list(self) -> str:
        return "not a question"


class AsyncCompletions(Completions):
    """The same, async; `create` is no coroutine function, as behind the SDKs' decorators."""

    def create(self, **request: Any) -> Any:
        async def answer() -> Any:
            await asyncio.sleep(0)
            return Completions.create(self, **request)

        return answer()


class Client:
    """A client of both providers' attribute shape."""

    def __init__(self, *answers: Any, kind: type[Completions] = Completions) -> None:
        self.answers, self.kind = list(answers), kind
        self.messages = self.responses = resource = kind(self.answers)
        self.chat = Space(completions=resource)
        self.api_key = "key"
        self.embeddings = Space(create=lambda **_: "vector")

    def with_options(self, **options: Any) -> Client:
        return Client(*self.answers, kind=self.kind)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *raised: Any) -> None:
        self.api_key = "closed"


def wrapped(store: Any, *answers: Any, **options: Any) -> Any:
    """A wrapped client that gives these answers, on a clock that stands at AT."""
    kind = options.pop("kind", Completions)
    return wrap(Client(*answers, kind=kind), store, "s", clock=ManualClock(AT), **options)


def recorded(client: Any, store: Store) -> tuple[Any, Any]:
    """The request and response of the one call in the store."""
    assert client.vmstore.flush(5), client.vmstore.problems
    ((_, request, response, _, _),) = store.log
    return request, response
