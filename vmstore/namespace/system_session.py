"""The namespace's own session, its charter: what belongs to the namespace and to no session of a user's.

One session, hidden for good, opened with the first mutation for it, through the gate
like every other. It is appended to and folded here, and nothing else is done with it: nobody
records to it, forks it, exports it or takes it in with a bundle. It is called `vmstore`; where a
session of that name was there before, `vmstore-2`, and so on. Who names it may read it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vmstore.core.grants import CHARTER_NAME
from vmstore.core.mutation import Open
from vmstore.engine.batch import Batch
from vmstore.engine.head import NewSession
from vmstore.errors import OvertakenError, RefusedError
from vmstore.views.reads.system_entries import SystemEntry, entries_of

if TYPE_CHECKING:
    from vmstore.namespace.namespace import Namespace


def key_of(ns: Namespace) -> int | None:
    """The charter's key in the log; None where nothing was logged in one yet."""
    ns.reader.follow()
    found: Any = ns.views.execute(_KEY, (CHARTER_NAME, CHARTER_NAME + "\U0010ffff", Open.CHARTER)).get
    return None if found is None else int(found)


def append(ns: Namespace, write: Callable[[Batch], object], *, at: int | None = None) -> int:
    """Logs what `write` adds to a batch, as one commit that happened `at`, by default now; its last position.

    `write` is called again where another process was first, so that it decides on what holds. What
    it adds must be of the kinds of `engine.apart`. Where there is no charter, the commit opens it.
    """

    def decided() -> int:
        now = ns.clock.now() if at is None else at
        key = key_of(ns)
        batch = _begun(ns, now) if key is None else ns.engine.batch(key)
        opened = batch.position
        write(batch)
        if batch.position > opened:
            batch.commit(now)
            ns.follow()
        return batch.position - 1

    return ns.retried(decided)


def _begun(ns: Namespace, now: int) -> Batch:
    """A batch that opens the charter, under the first of its names that is free."""
    name, count = CHARTER_NAME, 1
    while ns.views.execute("SELECT 1 FROM sessions WHERE name = ?", (name,)).fetchone() is not None:
        count += 1
        name = f"{CHARTER_NAME}-{count}"
    try:
        return ns.engine.begin(NewSession(name, hidden=Open.CHARTER), now)
    except RefusedError as error:
        if key_of(ns) is None:
            raise
        raise OvertakenError("the namespace's own session was opened meanwhile; decide again") from error


def entries(ns: Namespace, after: int = 0) -> list[SystemEntry]:
    """All that was logged in the charter beyond an ordinal of the log, in order; its `open` is left out.

    Asking writes nothing, and of a namespace without a charter there is nothing to tell.
    """
    with ns.views_lock:
        return entries_of(ns.log, ns.views, key_of(ns) or 0, after)


_KEY = "SELECT session FROM sessions WHERE name >= ? AND name < ? AND hidden = ? ORDER BY session LIMIT 1"
