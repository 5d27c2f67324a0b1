"""Needs that tools declare of a prompt, and the order of several by what they cost and the room that is left."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from vmstore.errors import InputError

LARGE_TOKENS = 10_000  # of pages that are said to be large, where no number is given
_TOKENS = re.compile(r"(\d[\d,_]*(?:\.\d+)?)\s*([kKmM]?)\s*tokens?\b")
_LARGE = re.compile(r"\b(?:creates|makes|gives)\s+large\s+pages?\b", re.IGNORECASE)
_SCALE = {"": 1, "k": 1_000, "m": 1_000_000}


class ToolNeed(NamedTuple):
    """The tokens a tool says it needs in the prompt, and whether it makes large pages; 0 where it says nothing."""

    tokens: int = 0
    large_pages: bool = False


NOTHING = ToolNeed()


def need(declared: str) -> ToolNeed:
    """A declared need, like "10K tokens" or "creates large pages"; InputError where it says neither."""
    found = _TOKENS.search(declared) if isinstance(declared, str) else None
    large = isinstance(declared, str) and _LARGE.search(declared) is not None
    if found is None and not large:
        raise InputError(
            f"{declared!r:.60} is no need of a tool; write '10K tokens' or 'creates large pages'", code="no-tool-need"
        )
    number = 0.0 if found is None else float(found[1].replace(",", "").replace("_", ""))
    tokens = round(number * (1 if found is None else _SCALE[found[2].lower()]))
    return ToolNeed(tokens or LARGE_TOKENS * large, large)


def cheapest(needs: Mapping[str, ToolNeed], room: int, used: Mapping[str, float] | None = None) -> list[str]:
    """Tools by what they cost: those that fit in the room first, of these the cheapest; `used` are measured tokens.

    What was measured counts where it is more than what was declared.
    """
    costs = {tool: max(declared.tokens, (used or {}).get(tool, 0)) for tool, declared in needs.items()}
    return sorted(costs, key=lambda tool: (costs[tool] > room, costs[tool], tool))
