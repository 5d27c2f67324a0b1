"""The catalog: a session's pages chosen and ordered by what is known of them, and those that came back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from vmstore.core.page import Modality, PageType, Role, Tier, Word
from vmstore.core.reference import page_name
from vmstore.errors import UnknownError
from vmstore.store.answers import Fault, Page
from vmstore.views.context import contents
from vmstore.views.lane import Lane
from vmstore.views.lineage import outdated
from vmstore.views.moment import moment_at
from vmstore.views.residency import last_entries, returns

WORDS: dict[str, type[Word]] = {"type": PageType, "role": Role, "modality": Modality, "tier": Tier}
ORDERS = ("position", "importance", "tokens", "recency")


class Wanted(NamedTuple):
    """Which pages are asked for, None where any; and their order, greatest first but by position."""

    type: str | None = None
    role: str | None = None
    modality: str | None = None
    tier: int | str | None = None
    importance_min: float | None = None
    dirty: bool | None = None
    order_by: str = "position"


def chosen(lane: Lane, position: int, pages: list[Page], wanted: Wanted) -> list[Page]:
    """The pages that are wanted, in the order that is; raises UnknownError for a word that is none."""
    if wanted.order_by not in ORDERS:
        raise UnknownError(f"pages have no order {wanted.order_by!r}; the orders are {', '.join(ORDERS)}")
    for field in WORDS:
        value = getattr(wanted, field)
        if value is not None:
            value = _value(field, value)
            pages = [page for page in pages if getattr(page, field) == value]
    if wanted.importance_min is not None:
        pages = [page for page in pages if page.importance >= wanted.importance_min]
    if wanted.dirty is not None:
        stale = outdated(lane, position)
        pages = [page for page in pages if (page.position in stale) == wanted.dirty]
    return sorted(pages, key=_order(lane, position, wanted.order_by))


def _value(field: str, value: Any) -> str | int:
    """A word of a closed vocabulary as pages tell it: tiers by number, the others by name."""
    words = WORDS[field]
    found = words.of(value) if isinstance(value, str) else next((word for word in words if word == value), None)
    if found is None:
        raise UnknownError(f"{value!r} is no {field}; there are {', '.join(word.word for word in words)}")
    return int(found) if field == "tier" else found.word


def _order(lane: Lane, position: int, order_by: str) -> Callable[[Page], Any]:
    if order_by == "position":
        return lambda page: page.position
    if order_by == "recency":
        entered = last_entries(lane, position)
        return lambda page: (-entered.get(page.position, 0), -page.position)
    return lambda page: (-getattr(page, order_by), page.position)


def faults_at(lane: Lane, position: int) -> list[Fault]:
    """Every time a page came back to L0 after it had left, up to a position."""
    came = returns(lane, position)
    what = contents(lane, [one.content for one in came])
    found = []
    for one in came:
        turn, call = moment_at(lane, one.position)
        *_, tokens, _, _, _ = what[one.content]
        found.append(Fault(page_name(one.page), one.position, turn, call, one.out_since, tokens))
    return found
