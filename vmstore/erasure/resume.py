"""Opens a namespace whole: an erasure that a kill interrupted is finished before anybody reads."""

from __future__ import annotations

from vmstore.core.clock import Clock, IdSource
from vmstore.core.system.waits import WAIT_S
from vmstore.namespace.backends.address import Address
from vmstore.namespace.backends.port import Backend
from vmstore.namespace.encryption import Key
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.open import attach

CLEARED = "cleared"  # a file that names the last erasure whose contents are out of the cache


def open_namespace(
    address: Address | Backend, mode: str, name: str, clock: Clock, ids: IdSource, key: Key | None = None,
    wait_s: float | None = WAIT_S, *, believed: bool = True,
) -> Namespace:  # fmt: skip
    """Opens a namespace as `vmstore.namespace.open.attach` does, and finishes an erasure that was interrupted."""
    namespace = attach(address, mode, name, clock, ids, key, wait_s, believed=believed)
    if not namespace.readonly and namespace.place is not None and namespace.place.marked():
        from vmstore.erasure.erase import finish

        finish(namespace)
    if namespace.place is not None and namespace.place.directory is None and not namespace.readonly:
        _clear_cache(namespace)
    return namespace


def _clear_cache(ns: Namespace) -> None:
    """Takes out of the cache of this machine what was erased on another one since it was last opened here."""
    assert ns.cache is not None, "what lies in a database has a cache"
    ns.follow()
    cleared, last = ns.cache / CLEARED, ns.projection.last_erasure
    if last and not (cleared.is_file() and cleared.read_text() == str(last)):
        from vmstore.erasure.erase import forget_erased

        forget_erased(ns)
        cleared.write_text(str(last))
