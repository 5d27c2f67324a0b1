"""Archives that lie in a cold tier: fetched into the cache of this machine when something in one is read."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import NamedTuple

from vmstore.cold.cache import ObjectCache
from vmstore.cold.manifest import PublishedSession
from vmstore.cold.place import cold_address
from vmstore.cold.tier import ColdTier
from vmstore.errors import CorruptError


class _Tier(NamedTuple):
    """A tier with the manifest that was read last."""

    tier: ColdTier
    copies: ObjectCache
    sessions: dict[str, PublishedSession]


class OutsideArchives:
    """The archives of a namespace in cold tiers, by the newest manifest of each. Any thread may use it."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._tiers: dict[str, _Tier] = {}
        self._reading = threading.Lock()

    def fetch(self, uid: bytes, address: str, *, newest: bool) -> Path:
        """A copy of a session's archive; StoreError where the tier is out of reach, CorruptError where it lacks it.

        By the manifest that was read last, or by the `newest`.
        """
        with self._reading:
            if newest:
                self._tiers.pop(address, None)
            known = address in self._tiers
            try:
                return self._copy(uid, address)
            except CorruptError:
                if not known:
                    raise
            del self._tiers[address]  # it was published again since, and what it named is gone
            return self._copy(uid, address)

    def _copy(self, uid: bytes, address: str) -> Path:
        tier = self._tiers.get(address)
        if tier is None:
            tier = self._tiers[address] = self._read(address)
        session = tier.sessions.get(uid.hex())
        if session is None:
            raise CorruptError(
                f"{tier.tier.address} does not hold session {uid.hex()}, whose contents were left there alone: put its "
                "manifests back",
                code="cold-missing",
            )
        return tier.copies.path(session.archive)

    def _read(self, address: str) -> _Tier:
        parts = cold_address(address)
        tier = parts.tier(self._namespace)
        sessions = {session.uid: session for session in tier.manifest().manifest.sessions}
        return _Tier(tier, parts.copies(tier.objects, self._namespace), sessions)
