"""The namespaces of a store, each opened when it is first asked for and kept open."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from starlette.applications import Starlette

from vmstore.core.text.prometheus import PrometheusFigure, label, labelled
from vmstore.debug.api import DebugApi
from vmstore.debug.app import SlowAnswers, pages
from vmstore.debug.assets import Assets
from vmstore.debug.json_bytes import masked
from vmstore.debug.overview import figures, sizes
from vmstore.namespace.backends.port import Backend
from vmstore.store.store import Store


class Answering(NamedTuple):
    """The answers about a namespace: plain values, and the debugger's pages over them."""

    api: DebugApi
    pages: Starlette


class OpenNamespace:
    """A namespace that is open, and what answers about it: with secrets masked, and as it is."""

    def __init__(self, name: str, store: Store, policy: str, answering: Callable[[bool], Answering]) -> None:
        self.name = name
        self.store = store
        self.policy = policy  # what a browser may run of its pages
        self.masked, self.plain = answering(True), answering(False)
        self._figures: tuple[tuple[int, int], list[PrometheusFigure]] | None = None

    def figures(self) -> list[PrometheusFigure]:
        """Its figures for Prometheus; what is counted in the log is counted again only where that has grown."""
        ns = self.store._ns
        with ns.views_lock:
            end, folded = self.store.admin.log.ordinal, ns.projection.ordinal
        stands = (end, ns.erased)
        if self._figures is None or self._figures[0] != stands:
            self._figures = stands, figures(self.store)
        lag = max(end - folded, 0)
        own = [
            PrometheusFigure("vmstore_log_ordinal", False, "commits of the log up to its head", {"": end}),
            PrometheusFigure("vmstore_fold_lag", False, "commits that the views had not folded yet", {"": lag}),
        ]
        return list(labelled(label("namespace", self.name), [*own, sizes(self.store), *self._figures[1]]))


class Namespaces:
    """The namespaces of a store that a server answers about; any thread may ask."""

    def __init__(
        self,
        backend: Backend,
        opened: Callable[[str], Store],
        assets: Assets,
        stopped: Callable[[], bool],
        on_refusal: Callable[[str, Exception], None],
        only: frozenset[str] | None = None,
    ) -> None:
        self._backend = backend
        self._opened = opened
        self._assets = assets
        self._stopped = stopped
        self._on_refusal = on_refusal
        self._only = only
        self._slow = SlowAnswers()  # one for all: they share the threads
        self._lock = threading.Lock()
        self._open: dict[str, OpenNamespace] = {}

    def names(self) -> list[str]:
        """The names of all that may be asked, as the store has them now."""
        return [name for name in self._backend.namespaces() if self._only is None or name in self._only]

    def get(self, name: str) -> OpenNamespace:
        """A namespace, opened where it is not yet; StoreError where it cannot be."""
        with self._lock:
            if name not in self._open:
                store = self._opened(name)
                self._open[name] = self._made(name, store)
            return self._open[name]

    def _made(self, name: str, store: Store) -> OpenNamespace:
        return OpenNamespace(name, store, self._assets.policy, lambda masks: self._answering(name, store, masks))

    def check(self) -> None:
        """Raises where the store does not answer: its list of namespaces, or the log of one that is open."""
        self._backend.check()
        self._backend.namespaces()
        for namespace in list(self._open.values()):
            _ = namespace.store.admin.log.ordinal

    def close(self) -> None:
        """Closes them all."""
        for namespace in self._open.values():
            namespace.store.close()

    def _answering(self, name: str, store: Store, masks: bool) -> Answering:
        api = DebugApi(store, self._backend.address, name, masked if masks else None)

        def count(error: Exception) -> None:
            self._on_refusal(name, error)

        return Answering(api, pages(store, api, self._assets, self._stopped, self._slow, count))

    @property
    def slow(self) -> SlowAnswers:
        """Answers that may take long, so many at once."""
        return self._slow
