"""The cold tiers that a namespace was published to, remembered in its own session, so that an erasure finds them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from vmstore.core.mutation import NamespacePolicy
from vmstore.core.namespace_policy import PolicySubject
from vmstore.engine.batch import Batch
from vmstore.errors import ErasedError
from vmstore.namespace import system_session
from vmstore.namespace.namespace import Namespace


class StatedTier(NamedTuple):
    """A cold tier by its address; `erasing` while something that was erased here may still be there."""

    address: str
    erasing: bool


class _Value(msgspec.Struct, frozen=True):
    erasing: bool = False


def stated_tiers(ns: Namespace) -> list[StatedTier]:
    """The cold tiers of a namespace, in the order they were first published to."""
    found: dict[str, StatedTier] = {}
    for entry in system_session.entries(ns):
        mutation = entry.mutation
        if isinstance(mutation, NamespacePolicy) and mutation.subject == PolicySubject.COLD:
            try:
                address, value = entry.text(mutation.name) or "", entry.text(mutation.value)
            except ErasedError:
                continue
            erasing = value is not None and msgspec.json.decode(value, type=_Value).erasing
            found[address] = StatedTier(address, erasing)
    return list(found.values())


def state_tier(ns: Namespace, tier: StatedTier) -> None:
    """Remembers a cold tier, and whether an erasure is under way there; says nothing twice."""
    ns.follow()
    if tier in stated_tiers(ns):
        return

    def write(batch: Batch) -> None:
        value = batch.cell(msgspec.json.encode(_Value(tier.erasing)))
        batch.add(NamespacePolicy(PolicySubject.COLD, batch.cell(tier.address.encode()), value))

    system_session.append(ns, write)
