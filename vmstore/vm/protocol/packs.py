"""Packs kept for the next call: a short turn that changes no page need not be packed again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

import msgspec

from vmstore.vm.protocol.leaf import Leaf

ENTRIES_MAX = 32
Pack = TypeVar("Pack")


class PackKey(NamedTuple):
    """What a pack was made for; the same key gives the same pack, so none is ever out of date."""

    session: str
    model: str
    token_budget: int
    working_set_hash: str


class PackCache(Generic[Pack]):
    """The packs used last; the one used longest ago is dropped first."""

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        assert entries_max > 0, "a cache holds something"
        self._entries_max = entries_max
        self._packs: dict[PackKey, Pack] = {}  # in order of use: dicts keep the order of writing
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._packs)

    def get(self, key: PackKey) -> Pack | None:
        """The pack for a key, which then counts as used; None where it is not kept."""
        pack = self._packs.pop(key, None)
        if pack is None:
            self.misses += 1
            return None
        self.hits += 1
        self._packs[key] = pack
        return pack

    def put(self, key: PackKey, pack: Pack) -> None:
        """Keeps a pack, and drops the one used longest ago where there are too many."""
        self._packs.pop(key, None)
        self._packs[key] = pack
        if len(self._packs) > self._entries_max:
            del self._packs[next(iter(self._packs))]


def working_set_hash(leaves: Iterable[Leaf]) -> str:
    """What a working set is known by: its pages in their order, their versions, all that packing weighs.

    Contents are left out: name, version and level say which they are.
    """
    digest = hashlib.sha256()
    for leaf in leaves:
        forms = [(form.level, form.tokens, form.mime) for form in leaf.forms]
        bare = msgspec.structs.replace(leaf, content=None, others=())
        digest.update(msgspec.msgpack.encode((bare, forms)))
    return digest.hexdigest()
