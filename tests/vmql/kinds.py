"""What a mutation says of a page: the columns of MUTATIONS, kind by kind."""

from __future__ import annotations

from typing import Any

from vmstore.core import mutation as m
from vmstore.core.decision import FaultReason, Signal, Use


def about(fact: Any) -> str | None:
    """The page it is about."""
    match fact.mutation:
        case m.Create():
            return f"p{fact.position}"
        case m.Link(source=page) | m.Segment(summary=page):
            return f"p{page}" if page else None
        case m.ToolRun(call=page) | m.GuardTrip(warning=page):
            return f"p{page}" if page else None
    page = getattr(fact.mutation, "page", 0)
    return f"p{page}" if page else None


def cause_of(value: Any) -> int | None:
    """The position that brought it about."""
    match value:
        case m.ToolRun(result=result):
            return result or None
        case m.GuardTrip(calls=calls):
            return calls[-1] if calls else None
    by = value.by if isinstance(value, m.Cite) else None
    return getattr(value, "reference", None) or getattr(value, "first", None) or by


def tiers_of(value: Any) -> tuple[int | None, int | None]:
    """The tiers of its page before and after."""
    match value:
        case m.Create():
            return None, 2
        case m.FaultIn(tier=tier):
            return tier, 0
        case m.Prefetch():
            return 2, 0
        case m.Evict(level=level):
            return 0, 2 if level is None else 0
    return None, None


def versions_of(value: Any) -> tuple[int | None, int | None]:
    """The versions of its page before and after."""
    match value:
        case m.Create():
            return None, 1
        case m.Update(version=version):
            return version - 1, version
        case m.Compress(version=version):
            return version, version
    return None, None


def level_of(value: Any) -> int | None:
    """The level of the content it brings."""
    shows = m.Compress | m.FaultIn | m.Prefetch | m.Evict
    return 0 if isinstance(value, m.Create | m.Update) else value.level if isinstance(value, shows) else None


def use_of(asked: Any) -> str:
    """Why a page was wanted, or what it was used for."""
    if asked.use in (Use.FAULT, Use.ASKED):
        return FaultReason(asked.reason).word
    return Signal(asked.signal).word if asked.use == Use.SIGNAL else Use(asked.use).word
