"""A client of OpenAI's own package on a loopback, and a store that keeps, fails or hangs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai

from tests.sdk.provider import Provider, serving
from vmstore.capture.client.wrap import wrap
from vmstore.core.clock import ManualClock

AT = 1_795_301_701_000_007  # 2026-11-21T22:55:01.000007Z
HELLO = {"role": "user", "content": "hello"}


class Store:
    """A store that keeps what it is given, unless it is told to fail or to hang."""

    def __init__(self) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.fails: BaseException | None = None
        self.goes = threading.Event()
        self.goes.set()

    def record(
        self, session: Any, request: dict[str, Any], response: Any, *, at_us: int | None, latency_us: int | None
    ) -> None:
        self.goes.wait()
        if self.fails:
            raise self.fails
        self.log.append((session, request, response, at_us, latency_us))

    @property
    def admin(self) -> Store:
        """What takes gaps."""
        return self

    def record_gap(self, session: Any, reason: str) -> None:
        self.goes.wait()
        if self.fails:
            raise self.fails
        self.log.append(("gap", reason))

    def asked(self) -> list[Any]:
        """What each recorded call asked, or that it is a gap."""
        return ["gap" if entry[0] == "gap" else entry[1]["messages"][-1]["content"] for entry in self.log]


class Client:
    """A wrapped client; calling it asks, and gives back the text of the answer."""

    def __init__(self, provider: Provider, store: Any, session: Any = "s", **options: Any) -> None:
        self.raw = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="sk-none", max_retries=0)
        options.setdefault("clock", ManualClock(AT))
        self.sdk: Any = wrap(self.raw, store, session, **options)
        self.recorder = self.sdk.vmstore

    def __call__(self, *texts: Any, model: str = "m", **request: Any) -> str:
        """Asks with messages that take turns, the first a user's."""
        records = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
        answer = self.sdk.chat.completions.create(model=model, messages=records, **request)
        return str(answer.choices[0].message.content)


@contextmanager
def client(store: Any, session: Any = "s", **options: Any) -> Iterator[Client]:
    """A wrapped client of a provider that answers until the end of the block."""
    with serving() as provider:
        yield Client(provider, store, session, **options)
