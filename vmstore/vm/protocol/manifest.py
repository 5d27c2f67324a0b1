"""VM:MANIFEST_JSON: what is mapped and what could be, in bounds; hints help to find, they are no evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from vmstore.core.page import Modality, Tier
from vmstore.core.text.token_estimate import estimate
from vmstore.errors import InputError
from vmstore.vm.protocol.abi import UPGRADE_TOKENS, WEIGHTS_PPM
from vmstore.vm.protocol.escape import dumps, loads, printed
from vmstore.vm.protocol.prompt_page import PromptPage

ENTRIES_MAX = 64
TOKENS_MAX = 2_048
FAULTS = 3


class Policies(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the model's requests in a turn; `prefer_levels` begins with the level to try first."""

    faults_allowed: bool = True
    max_faults_per_turn: int = FAULTS
    upgrade_budget_tokens: int = UPGRADE_TOKENS
    prefer_levels: tuple[int, ...] = (2, 1, 0)

    def __post_init__(self) -> None:
        if not self.prefer_levels or any(level not in range(4) for level in self.prefer_levels):
            raise InputError(
                f"levels to prefer: {self.prefer_levels}; give some of 0 to 3, the first to try first",
                code="not-a-level",
            )
        if self.max_faults_per_turn < 0 or self.upgrade_budget_tokens < 0:
            raise InputError(
                "a turn's faults and tokens are counted from 0; to allow none, say faults_allowed=False",
                code="not-a-limit",
            )


def manifest(
    session: str,
    mapped: Sequence[PromptPage],
    available: Sequence[PromptPage],
    policies: Policies,
    *,
    entries_max: int = ENTRIES_MAX,
    tokens_max: int = TOKENS_MAX,
) -> dict[str, Any]:
    """The manifest of the pages in the prompt and of those that can be loaded, by the published schema.

    At most `entries_max` pages stand in it and its JSON is at most `tokens_max` tokens, the most
    important pages of both lists first; `more` says how many there is no room for.
    """
    if len(mapped) + len(available) <= entries_max:
        whole = _manifest(session, mapped, available, policies)
        if _tokens(whole) <= tokens_max:
            return whole
    # What the lists may take: everything but their entries, with the longest `more` there can be.
    bare = {**_manifest(session, [], [], policies), "more": _more(len(mapped), len(available))}
    room = tokens_max - _tokens(bare)
    kept: tuple[list[int], list[int]] = ([], [])
    for list_at, leaf_at, entry in _by_turns(mapped, available):
        cost = _tokens(entry) + 1  # and the comma
        if len(kept[0]) + len(kept[1]) >= entries_max or cost > room:
            break
        kept[list_at].append(leaf_at)
        room -= cost
    chosen = [mapped[at] for at in sorted(kept[0])], [available[at] for at in sorted(kept[1])]
    short = _manifest(session, *chosen, policies)
    left = len(mapped) - len(kept[0]), len(available) - len(kept[1])
    return {**short, "more": _more(*left)} if any(left) else short


def manifest_json(found: dict[str, Any]) -> str:
    """The manifest as one line of JSON, which is read back to see that it is JSON."""
    text = dumps(found)
    assert isinstance(loads(text), dict), "what was written reads as JSON"
    return text


def _manifest(
    session: str, mapped: Sequence[PromptPage], available: Sequence[PromptPage], policies: Policies
) -> dict[str, Any]:
    return {
        "session_id": session,
        "working_set": [_mapped(leaf) for leaf in mapped],
        "available_pages": [_available(leaf) for leaf in available],
        "policies": {**msgspec.structs.asdict(policies), "prefer_levels": list(policies.prefer_levels)},
    }


def _mapped(leaf: PromptPage) -> dict[str, Any]:
    return {
        "page_id": printed(leaf.name),
        "modality": leaf.modality.word,
        "level": leaf.level,
        "tokens_est": leaf.tokens,
        "importance": leaf.importance / 1_000_000,
    }


def _available(leaf: PromptPage) -> dict[str, Any]:
    return {
        "page_id": printed(leaf.name),
        "modality": leaf.modality.word,
        "tier": max(leaf.tier, Tier.L2).name,  # nearer tiers hold copies
        "levels": leaf.levels[::-1],
        "hint": leaf.about,
    }


def _by_turns(
    mapped: Sequence[PromptPage], available: Sequence[PromptPage]
) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The entries of both lists, one of each in turn, of each the most important and newest first."""
    ranked = [sorted(range(len(leaves)), key=_by_weight(leaves)) for leaves in (mapped, available)]
    for first, second in zip_longest(*ranked):
        if second is not None:
            yield 1, second, _available(available[second])
        if first is not None:
            yield 0, first, _mapped(mapped[first])


def _by_weight(leaves: Sequence[PromptPage]) -> Any:
    newest = max((leaf.turn for leaf in leaves), default=0)

    def weight(at: int) -> tuple[int, int]:
        leaf = leaves[at]
        weighed = leaf.importance * WEIGHTS_PPM[leaf.modality] // 1_000_000
        return -(weighed // (1 + newest - leaf.turn)), -at

    return weight


def _more(mapped: int, available: int) -> dict[str, int]:
    return {"working_set": mapped, "available_pages": available}


def _tokens(value: Any) -> int:
    return estimate(dumps(value).encode(), Modality.STRUCTURED)
