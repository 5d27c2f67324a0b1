"""The interface of a store and of a session that their parts use; a part never imports the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from vmstore.core.asof import AsOf
from vmstore.core.decision import Recaller
from vmstore.maintenance.columns import ColumnStore
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.results import SessionInfo
from vmstore.views.branch import Branch
from vmstore.views.reads.resolve_asof import ResolvedMoment

if TYPE_CHECKING:
    from vmstore.capture.facts import FactAnswer
    from vmstore.facts.addition import Addition
    from vmstore.store.reads.context import Context
    from vmstore.store.recorder import CallRecorder
    from vmstore.views.reads.spoken_turns import SpokenMessage
    from vmstore.vmql.execution.engine import QueryEngine


class StoreHost(Protocol):
    """A store as its parts use it."""

    _ns: Namespace
    _columns: ColumnStore
    _asker: QueryEngine | None

    @property
    def folder(self) -> Path | None:
        """The namespace's directory; None in memory."""
        ...

    @property
    def _recording(self) -> CallRecorder: ...

    def session(self, name: str) -> Any:
        """The session of a name."""
        ...

    def sessions(self) -> list[SessionInfo]:
        """Every session by name."""
        ...

    @property
    def search(self) -> Callable[..., Any]:
        """Finds pages of all sessions by words."""
        ...

    @property
    def query(self) -> Callable[..., Any]:
        """Answers a VMQL statement."""
        ...


class SessionHost(Protocol):
    """A session as its parts use it."""

    _ns: Namespace
    _key: int
    name: str

    def info(self) -> SessionInfo:
        """Its counts and origin."""
        ...

    @property
    def context(self) -> Callable[..., Context]:
        """The context of a call."""
        ...

    def _lane(self) -> Branch: ...

    def _searched(
        self,
        recaller: Recaller,
        query: str,
        pages: Sequence[int],
        total: int,
        tokens: int,
        scores: Sequence[float] = (),
    ) -> None: ...

    def _add_facts(
        self, added: Sequence[Addition], at: int | None = None, answer: FactAnswer | None = None
    ) -> list[int]: ...

    def _zone(self) -> str: ...

    def _untold(self, pages: Sequence[int]) -> frozenset[int]: ...

    def _spoken_values(self, spoken: Sequence[SpokenMessage], position: int) -> tuple[str, dict[int, list[Any]]]: ...

    def _resolve(self, lane: Branch, reference: str | int, when: AsOf) -> tuple[int, ResolvedMoment]: ...
