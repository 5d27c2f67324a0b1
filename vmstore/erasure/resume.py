"""Opens a namespace whole: an erasure that a kill interrupted is finished before anybody reads."""

from __future__ import annotations

from vmstore.core.clock import Clock, IdSource
from vmstore.core.system.waits import WAIT_S
from vmstore.namespace.backends.address import Address
from vmstore.namespace.backends.port import Backend
from vmstore.namespace.encryption import Key
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.open import attach


def open_namespace(
    address: Address | Backend, mode: str, name: str, clock: Clock, ids: IdSource, key: Key | None = None,
    wait_s: float | None = WAIT_S, *, believed: bool = True,
) -> Namespace:  # fmt: skip
    """Opens a namespace as `vmstore.namespace.open.attach` does, and finishes an erasure that was interrupted."""
    namespace = attach(address, mode, name, clock, ids, key, wait_s, believed=believed)
    if not namespace.readonly and namespace.place is not None and namespace.place.marked():
        from vmstore.erasure.erase import finish

        finish(namespace)
    return namespace
