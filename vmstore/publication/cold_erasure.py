"""Takes what was erased out of a cold tier: archives that hold it are written again, and all former objects deleted."""

from __future__ import annotations

from typing import Any

from vmstore.cold.manifest import PublishedSession
from vmstore.cold.place import cold_address
from vmstore.namespace.cold_tiers import StatedTier, state_tier, stated_tiers
from vmstore.namespace.namespace import Namespace
from vmstore.publication.publish import Publication, Standing

ANY_AGE = 1 << 62


def clear_tiers(ns: Namespace) -> int:
    """Takes everything that is recorded as erased out of all tiers; how many objects were deleted.

    Raises StoreError where a tier cannot be reached: it stays named as one that holds what was erased.
    """
    return sum(_cleared(ns, tier) for tier in stated_tiers(ns))


def name_tiers(ns: Namespace) -> list[str]:
    """Says of every tier, durable, that it may hold what is about to be erased; their addresses."""
    tiers = stated_tiers(ns)
    for tier in tiers:
        state_tier(ns, tier._replace(erasing=True))
    return [tier.address for tier in tiers]


def _cleared(ns: Namespace, stated: StatedTier) -> int:
    address = cold_address(stated.address)
    tier = address.tier(ns.name)
    found = tier.newest()
    deleted = 0
    if found is not None:
        work = Publication(ns, tier)
        with ns.asking():
            stale = _stale(ns, work, {session.uid: session for session in found.manifest.sessions})
        if stale:
            work.publish(stale)
        for stray in list(tier.strays(ANY_AGE)):
            deleted += tier.objects.delete(stray.name)
        newest = tier.manifest().manifest
        address.copies(tier.objects, ns.name).keep_only({stored.sha256 for stored in newest.objects}, erasing=True)
    state_tier(ns, stated._replace(erasing=False))
    return deleted


def _stale(ns: Namespace, work: Publication, there: dict[str, PublishedSession]) -> list[Standing]:
    """The sessions here of which a tier has more than is left of them."""
    rows: Any = ns.views.execute("SELECT session, uid FROM sessions").fetchall()
    keys = {key for key, uid in rows if bytes(uid).hex() in there}
    found = [(there.get(one.entry.uid), one) for one in work.standing(keys)]
    return [one for before, one in found if before is not None and before.erased < one.entry.erased]
