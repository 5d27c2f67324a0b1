"""MOVES and COMPACTIONS as the facts say them."""

from __future__ import annotations

from typing import Any

from tests.vmql import known
from vmstore.core import mutation as m
from vmstore.core.page import LinkKind, PageType

MADE_FROM = (LinkKind.DERIVES, LinkKind.REPRESENTS)


def moves(naive: Any, session: str, position: int) -> list[dict[str, Any]]:
    """Each change of the prompt, read from the contexts of one call after another."""
    contents = {c.position: c for listed in naive.model.versions(session, position).values() for c in listed}
    here: dict[int, Any] = {}
    records: list[dict[str, Any]] = []
    tools, out = known.of_tools(naive, session, position), dict[int, int]()
    for number, call in naive.model.calls(session, position).items():
        now = {shown.page: shown for shown in naive.model.context(session, call.position)}
        gone = [(page, here[page], None) for page in sorted(here.keys() - now.keys())]
        came = [(page, here.get(page), now[page]) for page in sorted(now)]
        for page, before, after in gone + came:
            if before and after and (before.content, before.rank) == (after.content, after.rank):
                continue
            away = number - out.pop(page) if before is None and page in out else None
            if after is None:
                out[page] = number
            cause, reason = _shown_by(naive, session, page, call.position, left=after is None)
            records.append(
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
                    "tool": tools.get(page, known.BARE)["tool"],
                    "away_calls": away,
                }
            )
        here = now
    return records


def _shown_by(naive: Any, session: str, page: int, pack: int, *, left: bool) -> tuple[int | None, str | None]:
    """The last decision about a page's place since the pack before, where the pack shows what it says."""
    row: tuple[int | None, str | None] = None, None
    for fact in naive.model.seen(session, pack - 1):
        match fact.mutation:
            case m.Pack():
                row = None, None
            case m.FaultIn(page=moved) | m.Prefetch(page=moved) | m.Evict(page=moved) as move if moved == page:
                gone = isinstance(move, m.Evict) and move.level is None
                reason = naive._reason(session, move)
                kind = move.kind if reason is None else f"{move.kind}: {reason}"
                row = (fact.position, kind) if gone == left else (None, None)
    return row


def compactions(naive: Any, session: str, position: int) -> list[dict[str, Any]]:
    """Each summary at the pack that first shows it, where pages that it was made from are gone then."""
    model = naive.model
    contents = {c.position: c for listed in model.versions(session, position).values() for c in listed}
    summaries = {page.page for page in model.pages(session, position) if page.born.type == PageType.SUMMARY}
    packs = [
        (call, {shown.page: shown for shown in model.context(session, call[1].position)})
        for call in model.calls(session, position).items()
    ]
    records: list[dict[str, Any]] = []
    before: dict[int, Any] = {}
    for at, ((number, call), now) in enumerate(packs):
        for summary in sorted(now.keys() & summaries):
            summaries.discard(summary)
            links = [e for e in model.links(session, call.position) if e.source == summary and e.kind in MADE_FROM]
            left = sorted({e.target for e in links} & before.keys() - now.keys())
            if left:
                back = {page for _, later in packs[at + 1 :] for page in left if page in later}
                records.append(
                    {
                        "session": naive.writer(session, call.position),
                        "call": number,
                        "turn": call.turn,
                        "position": call.position,
                        "pages": len(left),
                        "tokens": sum(contents[before[page].content].told.tokens for page in left),
                        "summary": f"p{summary}",
                        "summary_tokens": contents[now[summary].content].told.tokens,
                        "returned": len(back),
                        "left": [f"p{page}" for page in left],
                    }
                )
        before = now
    return records
