"""The catalog: pages chosen and ordered by what is known of them at a moment, and those that came back.

A choice that an index answers (a tag, an importance, a tier, a level, dirty, entered since) is asked
first and gives a set of pages; only those are then looked at, or left out. Without one the pages of
the lane are gone through, by type where one is given. Whatever is asked, only the pages that come
out of it are made into answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from heapq import nsmallest
from itertools import islice
from typing import Any, NamedTuple

from vmstore.core.address import page_name
from vmstore.core.asof import AsOf, LoggedTime, Time
from vmstore.core.decision import Denial
from vmstore.core.page import IMPORTANCE, Modality, PageType, Role, Tier, WordEnum
from vmstore.errors import InputError, UnknownError
from vmstore.namespace.page_rows import actor
from vmstore.namespace.results import Fault
from vmstore.views.branch import Branch
from vmstore.views.projectors.lineage import outdated
from vmstore.views.projectors.pages import TYPED
from vmstore.views.projectors.residency import entered_after, last_entries, resident_at
from vmstore.views.reads.annotations import importances, tagged, weighing
from vmstore.views.reads.faults import faults_at
from vmstore.views.reads.reasons import use_of, word_of
from vmstore.views.reads.resolve_asof import basis, moment_at

ORDERS = ("position", "importance", "tokens", "recency")
EVER = 1 << 62


class PageQuery(NamedTuple):
    """A page query: filters, None for any; order, greatest first but by position; limit, and the page to start after.

    A page that has the actor `actor` is one whose labels name it, or whose role it is.
    """

    type: str | None = None
    role: str | None = None
    modality: str | None = None
    tier: int | str | None = None
    level: int | None = None
    tag: str | None = None
    actor: str | None = None
    importance_min: float | None = None
    dirty: bool | None = None
    created_since: AsOf | None = None
    entered_since: AsOf | None = None
    order_by: str = "position"
    limit: int | None = None


class SelectedPage(NamedTuple):
    """A page that was chosen and its place in the order: smaller comes first."""

    key: int
    tie: int
    page: int


def chosen(lane: Branch, position: int, wanted: PageQuery, after: int | None = None) -> list[SelectedPage]:
    """The pages that are wanted at a position, in the order that is, those after a page where one is given.

    Raises UnknownError for a word that is none.
    """
    _check(wanted)
    keep, drop = _sets(lane, position, wanted)
    if keep is not None and not keep:
        return []
    start = None if after is None else place_of(lane, position, wanted.order_by, after)
    if wanted.order_by == "position":
        rows = _rows(lane, position, wanted, keep, after)
        return list(islice((SelectedPage(page, 0, page) for page, *_ in rows if page not in drop), wanted.limit))
    found = (row for row in _rows(lane, position, wanted, keep) if row[0] not in drop)
    ordered = _keyed(lane, position, wanted.order_by, found)
    later = ordered if start is None else (number for number in ordered if number > start)
    return sorted(later) if wanted.limit is None else nsmallest(wanted.limit, later)


def _check(wanted: PageQuery) -> None:
    if wanted.order_by not in ORDERS:
        raise UnknownError(
            f"pages have no order {wanted.order_by!r}; the orders are {', '.join(ORDERS)}", code="no-order"
        )
    if wanted.level is not None and wanted.level not in range(4):
        raise UnknownError(f"{wanted.level!r} is no level; there are 0, 1, 2 and 3", code="no-level")
    if wanted.limit is not None and (type(wanted.limit) is not int or wanted.limit < 0):
        raise InputError(f"limit {wanted.limit!r} is no number of pages from 0 up", code="not-a-limit")


def value(field: str, words: type[WordEnum], value: Any) -> int | None:
    """A word of a closed vocabulary, or its number, as the number it is."""
    if value is None:
        return None
    found = words.of(value) if isinstance(value, str) else next((word for word in words if word == value), None)
    if found is None:
        raise UnknownError(
            f"{value!r} is no {field}; there are {', '.join(word.word for word in words)}", code="no-tier"
        )
    return int(found)


# ---- what indexes answer


def _sets(lane: Branch, position: int, wanted: PageQuery) -> tuple[set[int] | None, set[int]]:
    """The pages that can be wanted, None where any can, and those that are not."""
    keeps = list(_keeps(lane, position, wanted))
    drop: set[int] = set()
    tier = value("tier", Tier, wanted.tier)
    if tier is not None or wanted.level is not None:
        levels = {r.page: r.level for r in resident_at(lane, position)}
        if tier == Tier.L2:
            drop |= levels.keys()
        elif tier is not None:
            keeps.append(set(levels) if tier == Tier.L0 else set())
        if wanted.level == 0:
            drop |= {page for page, level in levels.items() if level}
        elif wanted.level is not None:
            keeps.append({page for page, level in levels.items() if level == wanted.level})
    if wanted.importance_min is not None:
        least = round(wanted.importance_min * 1_000_000)
        if least > IMPORTANCE:
            keeps.append(weighing(lane, position, least, EVER))
        else:
            drop |= weighing(lane, position, -EVER, least)
    if wanted.dirty is False:
        drop |= outdated(lane, position)
    return set.intersection(*keeps) if keeps else None, drop


def _keeps(lane: Branch, position: int, wanted: PageQuery) -> Iterator[set[int]]:
    if wanted.tag is not None:
        yield tagged(lane, position, wanted.tag)
    if wanted.dirty:
        yield outdated(lane, position)
    if wanted.entered_since is not None:
        yield entered_after(lane, position, _since(lane, wanted.entered_since))


def _since(lane: Branch, moment: AsOf) -> int:
    """The last position of a moment; before all of a session that had not begun at a time."""
    try:
        return basis(lane, moment).position
    except UnknownError:
        if isinstance(moment, Time | LoggedTime):
            return 0
        raise


# ---- what the pages themselves say


def _rows(
    lane: Branch, position: int, wanted: PageQuery, keep: set[int] | None, after: int | None = None
) -> Iterator[tuple[int, int, int]]:
    """Page, first tokens and first importance of the pages that can be wanted, in order of position."""
    conditions_of_rows: dict[str, Any] = {
        "type": value("type", PageType, wanted.type),
        "role": value("role", Role, wanted.role),
        "modality": value("modality", Modality, wanted.modality),
        "after": max(after or 0, 0 if wanted.created_since is None else _since(lane, wanted.created_since)),
    }
    if keep is not None:
        conditions_of_rows["pages"] = json.dumps(sorted(keep))
    sql = statement(conditions_of_rows)
    for stretch in reversed(lane.upto(position)):
        bounds = {
            "session": stretch.session,
            "low": max(stretch.low, conditions_of_rows["after"]),
            "high": stretch.high,
        }
        for page, tokens, importance, role, labels in lane.db.execute(sql, {**conditions_of_rows, **bounds}):
            if wanted.actor is None or actor(labels, role) == wanted.actor:
                yield page, tokens, importance


def statement(bounds: dict[str, Any]) -> str:
    """The query for the pages of one stretch that meet the conditions."""
    by_type = bounds["type"] not in (None, int(PageType.TRANSCRIPT))
    conditions = [f"p.{field} = :{field}" for field in ("type", "role", "modality") if bounds[field] is not None]
    within = "p.session = :session AND p.page > :low AND p.page <= :high"
    if "pages" in bounds:
        source = f"json_each(:pages) one CROSS JOIN pages p ON p.page = one.value AND {within}"
    else:
        source = "pages p" + (" INDEXED BY pages_type" if by_type else "")
        conditions = [within, *([f"p.{TYPED}"] if by_type else []), *conditions]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT p.page, p.tokens, p.importance, p.role, p.labels FROM {source}{where} ORDER BY p.page"


# ---- the order


def place_of(lane: Branch, position: int, order_by: str, page: int) -> SelectedPage:
    """The place of a page in an order."""
    rows = [row for row in lane.rows(_ONE, [page]) if page <= position]
    if not rows:
        raise UnknownError(
            f"there is no page {page_name(page)} at that moment; go on after the last one you got", code="no-page"
        )
    return next(_keyed(lane, position, order_by, rows))


def _keyed(lane: Branch, position: int, order_by: str, rows: Iterable[Any]) -> Iterator[SelectedPage]:
    """Pages with their places in an order: the greatest first, of equals the first made, or by recency the last."""
    if order_by == "position":
        return (SelectedPage(page, 0, page) for page, _, _ in rows)
    if order_by == "recency":
        entries = last_entries(lane, position)
        return (SelectedPage(-entries.get(page, 0), -page, page) for page, _, _ in rows)
    if order_by == "importance":
        noted = importances(lane, position)
        return (SelectedPage(-noted.get(page, importance), page, page) for page, _, importance in rows)
    sizes = _sizes(lane, position)
    return (SelectedPage(-sizes.get(page, tokens), page, page) for page, tokens, _ in rows)


def _sizes(lane: Branch, position: int) -> dict[int, int]:
    """The tokens of pages that count otherwise than when they were made."""
    found: dict[int, int] = {}
    for stretch in reversed(lane.upto(position)):
        found.update(lane.db.execute(_CHANGED, (stretch.session, stretch.high)))
    shown = {r.content: r.page for r in resident_at(lane, position)}
    found.update((shown[content], tokens) for content, tokens in lane.rows(_TOKENS, shown))
    return found


def faults_of(lane: Branch, position: int) -> list[Fault]:
    """Every fault up to a position: what a kernel was asked for, or what came back without one."""
    found = []
    for fault in faults_at(lane, position):
        asked = fault.asked
        found.append(
            Fault(
                page_name(fault.page) if fault.page else None,
                fault.position,
                *moment_at(lane, fault.position),
                fault.out_since,
                fault.tokens,
                granted=fault.denied is None,
                denied_because=word_of(Denial, fault.denied),
                reason=None if asked is None else use_of(asked.word, asked.reason, asked.signal),
                level_asked=None if asked is None else asked.level,
                level_served=fault.level,
                from_tier=fault.tier,
            )
        )
    return found


_ONE = "SELECT page, tokens, importance FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"
_CHANGED = """SELECT page, tokens FROM changes INDEXED BY changes_page
  WHERE session = ? AND position <= ? AND level = 0 ORDER BY page, position"""
_TOKENS = "SELECT position, tokens FROM versions WHERE session = ? AND position IN (SELECT value FROM json_each(?))"
