"""A live session as its users hold it: what they tell it, what it decides, what it packs.

A session lives where it was given a budget (`l0_tokens_max`); one that was recorded has none, and
says so when it is told to act.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from vmstore.core.clock import within
from vmstore.live.runtime import Act, Runtime
from vmstore.live.shorter import Shorter
from vmstore.store.namespace import Namespace
from vmstore.views.lane import Lane

T = TypeVar("T")


class Acting:
    """The acts of one live session; each is one durable commit."""

    def __init__(self, namespace: Namespace, key: int, name: str) -> None:
        self._ns = namespace
        self._key = key
        self.name = name
        self.runtime = Runtime(namespace.engine, Lane(namespace.views, key), Shorter())

    def act(self, do: Callable[[Act], T], at: int | None) -> T:
        """Does something as one commit, decided anew where another process was first."""
        within("at", at)
        happened = self._ns.clock.now() if at is None else at
        return self._ns.retried(lambda: self.runtime.act(do, happened))
