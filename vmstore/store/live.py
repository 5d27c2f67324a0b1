"""A live session as its users hold it: what they tell it, what it decides of that, what it packs.

Each call is one durable commit: what happened, then the kernel's decisions with their reasons.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from vmstore.core.asof import AsOf
from vmstore.core.clock import within
from vmstore.core.decision import FaultReason, Use
from vmstore.core.draft import Usage
from vmstore.core.mutation import Cite, FaultDenied, Recall, Reference, Search
from vmstore.core.mutation import Settings as SettingsTold
from vmstore.core.page import Level, LinkKind, Mime, Modality, PageType, Role
from vmstore.core.reference import page_name, parse
from vmstore.errors import InputError, RefusedError, UnknownError
from vmstore.live import paging, remembering, saying
from vmstore.live.leaves import Leaves
from vmstore.live.packing import pack
from vmstore.live.runtime import Act, Runtime
from vmstore.live.saying import Spoke
from vmstore.store.namespace import Namespace
from vmstore.store.packed import Packed
from vmstore.store.session import Session
from vmstore.vm.settings import Settings, changed, encoded

if TYPE_CHECKING:
    from vmstore.store.recording import Recording

T = TypeVar("T")


class Live(Session):
    """A session with a budget: its memory is managed, and every decision can be asked for its reasons."""

    def __init__(self, namespace: Namespace, recording: Callable[[], Recording], key: int, name: str) -> None:
        super().__init__(namespace, recording, key, name)
        self._beside = 0  # estimated tokens beside the pages, as last packed

    def _runtime(self) -> Runtime:
        from vmstore.live.shorter import Shorter

        runtimes = self._ns.live
        if self._key not in runtimes:
            self._ns.follow()
            runtimes[self._key] = Runtime(self._ns.engine, self._lane(), Shorter())
        return runtimes[self._key]

    def _act(self, do: Callable[[Act], T], at: int | None = None) -> T:
        """Does something as one commit; decided anew where another process was first."""
        within("at", at)
        with self._ns.lock:
            happened = self._ns.clock.now() if at is None else at
            runtime = self._runtime()
            return self._ns.retried(lambda: runtime.act(do, happened))
