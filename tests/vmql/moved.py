"""MOVES as the facts say it."""

from __future__ import annotations

from typing import Any

from vmstore.core import mutation as m


def moves(naive: Any, session: str, position: int) -> list[dict[str, Any]]:
    """Each change of the prompt, read from the contexts of one call after another."""
    contents = {c.position: c for listed in naive.model.versions(session, position).values() for c in listed}
    here: dict[int, Any] = {}
    found: list[dict[str, Any]] = []
    for number, call in naive.model.calls(session, position).items():
        now = {shown.page: shown for shown in naive.model.context(session, call.position)}
        gone = [(page, here[page], None) for page in sorted(here.keys() - now.keys())]
        came = [(page, here.get(page), now[page]) for page in sorted(now)]
        for page, before, after in gone + came:
            if before and after and (before.content, before.rank) == (after.content, after.rank):
                continue
            cause, reason = _shown_by(naive, session, page, call.position, left=after is None)
            found.append(
                {
                    "position": call.position,
                    "session": naive.writer(session, call.position),
                    "turn": call.turn,
                    "call": number,
                    "page": f"p{page}",
                    "tier_before": 2 if before is None else 0,
                    "tier_after": 2 if after is None else 0,
                    "level_before": None if before is None else before.level,
                    "level_after": None if after is None else after.level,
                    "tokens": contents[(after or before).content].told.tokens,
                    "cause": cause,
                    "reason": reason,
                }
            )
        here = now
    return found


def _shown_by(naive: Any, session: str, page: int, pack: int, *, left: bool) -> tuple[int | None, str | None]:
    """The last decision about a page's place since the pack before, where the pack shows what it says."""
    found: tuple[int | None, str | None] = None, None
    for fact in naive.model.seen(session, pack - 1):
        match fact.mutation:
            case m.Pack():
                found = None, None
            case m.FaultIn(page=moved) | m.Prefetch(page=moved) | m.Evict(page=moved) as told if moved == page:
                gone = isinstance(told, m.Evict) and told.level is None
                reason = naive._reason(session, told)
                said = told.kind if reason is None else f"{told.kind}: {reason}"
                found = (fact.position, said) if gone == left else (None, None)
    return found
