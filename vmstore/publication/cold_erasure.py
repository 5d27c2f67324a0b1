"""Takes what was erased out of a cold tier: archives that hold it are written again, and all former objects deleted."""

from __future__ import annotations

from typing import Any, NamedTuple

from vmstore.cold.manifest import PublishedSession
from vmstore.cold.place import cold_address
from vmstore.core.system.logger import notices
from vmstore.errors import StoreError
from vmstore.namespace.cold_tiers import StatedTier, state_tier, stated_tiers
from vmstore.namespace.namespace import Namespace
from vmstore.publication.publish import Publication, SessionStanding

ANY_AGE = 1 << 62


class ClearedTiers(NamedTuple):
    """The tiers, by their addresses: those in which nothing of it is left, and those that could not be reached."""

    cleared: list[str]
    left: list[str]


def clear_tiers(ns: Namespace) -> ClearedTiers:
    """Takes everything that is recorded as erased out of all tiers; one out of reach is named as that in the log."""
    cleared, left = [], []
    for tier in stated_tiers(ns):
        try:
            _clear(ns, tier)
        except StoreError as error:
            notices().warning("what was erased may still be there: %s", error)
            left.append(tier.address)
        else:
            cleared.append(tier.address)
        state_tier(ns, tier._replace(erasing=tier.address in left))
    return ClearedTiers(cleared, left)


def left_in_tiers(ns: Namespace) -> list[str]:
    """The addresses of tiers that may still hold what was erased."""
    return [tier.address for tier in stated_tiers(ns) if tier.erasing]


def objects_of(ns: Namespace, uids: set[str]) -> list[str]:
    """The objects in all tiers that hold cells of sessions, by the sessions' uids; a tier out of reach by its address.

    An archive of a fork holds what it inherited.
    """
    found = []
    for stated in stated_tiers(ns):
        tier = cold_address(stated.address).tier(ns.name)
        try:
            newest = tier.newest()
        except StoreError:
            found.append(f"{tier.address}, which cannot be reached")
            continue
        for session in () if newest is None else newest.manifest.sessions:
            if uids & {session.uid, *session.past}:
                found.append(f"{tier.address}/{session.archive.name}")
    return found


def _clear(ns: Namespace, stated: StatedTier) -> None:
    """Writes what holds erased cells again without them, and deletes all that the newest manifest does not name."""
    address = cold_address(stated.address)
    tier = address.tier(ns.name)
    found = tier.newest()
    if found is None:
        return
    work = Publication(ns, tier)
    with ns.asking():
        stale = _stale(ns, work, {session.uid: session for session in found.manifest.sessions})
    if stale:
        work.publish(stale)
    for stray in list(tier.strays(ANY_AGE)):
        tier.objects.delete(stray.name)
    address.copies(tier.objects, ns.name).keep_only(tier.manifest(), erasing=True)


def _stale(ns: Namespace, work: Publication, there: dict[str, PublishedSession]) -> list[SessionStanding]:
    """The sessions here of which a tier has more than is left of them."""
    rows: Any = ns.views.execute("SELECT session, uid FROM sessions").fetchall()
    keys = {key for key, uid in rows if bytes(uid).hex() in there}
    found = [(there.get(one.entry.uid), one) for one in work.standing(keys)]
    return [one for before, one in found if before is not None and before.erased < one.entry.erased]
