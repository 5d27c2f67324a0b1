"""Sessions decided again under another policy or budget, each in a store in memory: the log on disk is not touched."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from vmstore.debug.session_data import WhatIfRow
from vmstore.errors import InputError
from vmstore.store.live.live_session import Live
from vmstore.store.replay_sweep import replays, run_values, what_ifs
from vmstore.store.session import Session
from vmstore.store.store import Store, memory_store
from vmstore.transfer.sessions import take_over

SCRATCHES_MAX = 4  # sessions, each as it stood at one position, with all that was decided of it


class WhatIfSource(NamedTuple):
    """A session to be asked of, where it lies, and what was changed where it is a what-if."""

    store: Store
    session: Session
    whatif: WhatIfRow | None = None


class Scratch:
    """A copy of one session in memory, and what it would have been."""

    def __init__(self, source: Store, name: str) -> None:
        self.store = memory_store()
        self.name = name
        self.lock = threading.Lock()
        self._made: dict[WhatIfRow, str] = {}
        take_over(self.store._ns, source._ns, name)

    def session(self, asked: WhatIfRow) -> Session:
        """The session as it would have been, decided when it is first asked for."""
        with self.lock:
            if asked not in self._made:
                self._made[asked] = self._decided(asked)
            return self.store.session(self._made[asked])

    def _decided(self, asked: WhatIfRow) -> str:
        session = self.store.session(self.name)
        name = f"{self.name[:400]} what-if {len(self._made) + 1}"
        if isinstance(session, Live):
            session.debug.replay(policy=asked.policy, budget=asked.budget, keep=name)
        else:
            self.store.admin.redrive(self.name, name, **settings_of(self.name, asked))
        return name


class WhatIfs:
    """The what-ifs of a store: computed once for each session as it stands and each change of settings."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self.progress: dict[str, dict[str, int]] = {}
        """Of each session whose what-ifs are being decided, how many of them are."""
        self._scratches: OrderedDict[tuple[str, int], Scratch] = OrderedDict()

    def chosen(self, name: str, policy: str | None, budget: int | None) -> WhatIfSource:
        """A session as it is, or, where a policy or a budget is given, as it would have been."""
        session = self._store.session(name)
        if policy is None and budget is None:
            return WhatIfSource(self._store, session)
        asked = WhatIfRow(policy, budget, name)
        scratch = self._scratch(session)
        return WhatIfSource(scratch.store, scratch.session(asked), asked)

    def sweep(self, name: str, policies: list[str], budgets: list[int], check: Callable[[], None]) -> dict[str, Any]:
        """Every policy with every budget, and the run as it was, with their numbers, as `vmstore replay --json` prints.

        A recorded session is first redriven into a memory of the first budget, which then
        stands for the run as it was. `check` raises where nobody waits for the answer any more.
        """

        def run(done: int, total: int) -> None:
            self.progress[name] = {"done": done, "of": total}
            check()

        session = self._store.session(name)
        changes = [change for change in what_ifs(policies, budgets) if change]
        try:
            run(0, len(changes) + 1)
            if isinstance(session, Live):
                return run_values(name, replays(self._store, [name], changes, workers=1, progress=run)[name])
            scratch = self._scratch(session)
            first = WhatIfRow(policies[0] if policies else None, budgets[0] if budgets else None, name)
            driven = scratch.session(first).name
            found = run_values(name, replays(scratch.store, [driven], changes, workers=1, progress=run)[driven])
            return {**found, "redriven": True}
        finally:
            self.progress.pop(name, None)

    def forget(self) -> None:
        """Drops every copy: something was erased, and they may hold it."""
        with self._lock:
            self._scratches.clear()

    def _scratch(self, session: Session) -> Scratch:
        key = session.name, session.info().position
        with self._lock:
            if key not in self._scratches:
                self._scratches[key] = Scratch(self._store, session.name)
                if len(self._scratches) > SCRATCHES_MAX:
                    self._scratches.popitem(last=False)
            self._scratches.move_to_end(key)
            return self._scratches[key]


def settings_of(name: str, asked: WhatIfRow) -> dict[str, Any]:
    """The settings by which a recorded session is redriven."""
    if asked.budget is None:
        raise InputError(
            f"session {name!r} was recorded as it was and never had a budget; give one, like budget=16000, "
            "to say it again to a memory that manages itself"
        )
    return {"l0_tokens_max": asked.budget} | ({} if asked.policy is None else {"policy": asked.policy})
