"""LangGraph's long-term memory: an item is a page of one session, each change a version of it."""

from __future__ import annotations

import json
from asyncio import to_thread
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from threading import RLock
from typing import Any, NamedTuple

import msgspec
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from vmstore.core.clock import Clock, SystemClock
from vmstore.core.mutation import Create, Delete, Update
from vmstore.core.page import Mime, Modality, PageType, Role
from vmstore.core.text.token_estimate import estimate
from vmstore.engine.batch import HandBatch
from vmstore.errors import ErasedError, InputError, OvertakenError
from vmstore.integrations.items import as_json
from vmstore.integrations.langgraph.pages import hint_of, named
from vmstore.store.session import Session
from vmstore.store.store import Store

SESSION = "langgraph-memory"
TRIES = 5
Place = tuple[tuple[str, ...], str]
"""An item's namespace and key."""


class ItemPage(NamedTuple):
    """The page of an item: its number, its version, and whether searches find it."""

    page: int
    version: int
    is_searched: bool


class VmstoreMemory(BaseStore):
    """Keeps a graph's items in a session of a store, sync and async; any thread may use it.

    A search with a query is the session's own search: by words, and by closeness where the store has an embedder. What
    is deleted is gone from every answer but those about the past; to destroy it, erase its page.
    """

    def __init__(self, store: Store, *, session: str = SESSION, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or SystemClock()
        self._lock = RLock()
        self._session: Session = store.session(session, create=True, agent="langgraph")
        self._position = 0
        self._items: dict[Place, ItemPage] = {}

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answers what is asked as it stood before, then writes what is put as one commit."""
        asked = list(ops)
        with self._lock:
            self._refresh()
            answers = [self._answer(op) for op in asked]
            puts = {(op.namespace, op.key): op for op in asked if isinstance(op, PutOp)}
            if puts:
                self._write(list(puts.values()))
        return answers

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """See `batch`."""
        return await to_thread(self.batch, list(ops))

    def page_of(self, namespace: tuple[str, ...], key: str) -> str | None:
        """The page of an item, for its history, its past and its erasure; None where there is none."""
        with self._lock:
            self._refresh()
            found = self._items.get((namespace, key))
            return None if found is None else f"p{found.page}"

    @property
    def session(self) -> Session:
        """The session that holds the items."""
        return self._session

    def _answer(self, op: Op) -> Result:
        match op:
            case GetOp():
                return self._item((op.namespace, op.key))
            case SearchOp():
                return self._search(op)
            case ListNamespacesOp():
                return self._namespaces(op)
            case PutOp():
                return None
        raise InputError(f"{type(op).__name__} is no operation of this store")

    # ---- reading

    def _item(self, place: Place) -> Item | None:
        content = self._content(place)
        return None if content is None else Item(namespace=place[0], key=place[1], **content)

    def _content(self, place: Place) -> dict[str, Any] | None:
        """An item's value and times as they stand in its page; None where there is none or it was erased."""
        found = self._items.get(place)
        if found is None:
            return None
        try:
            content: dict[str, Any] = json.loads(self._session.content(found.page))
        except ErasedError:
            del self._items[place]
            return None
        return content

    def _search(self, op: SearchOp) -> list[SearchItem]:
        """The items under a prefix that fit, the best first where there is a query, else the newest."""
        prefix = op.namespace_prefix
        places = [place for place in self._items if place[0][: len(prefix)] == prefix]
        scores: dict[Place, float] = {}
        if op.query is not None:
            scores = self._scores(op.query, {self._items[place].page: place for place in places})
            places = sorted(scores, key=lambda place: -scores[place])
        contents = [(place, content) for place in places if (content := self._content(place)) is not None]
        if op.query is None:
            contents.sort(key=lambda item: item[1]["updated_at"], reverse=True)
        fitting = [(place, content) for place, content in contents if _fits(content["value"], op.filter or {})]
        return [
            SearchItem(*place, **content, score=scores.get(place))
            for place, content in fitting[op.offset : op.offset + op.limit]
        ]

    def _scores(self, query: str, places: dict[int, Place]) -> dict[Place, float]:
        """How well items answer a query, 1 the best; those that do not are not in it."""
        if not query.strip():
            return dict.fromkeys(places.values(), 0.0)
        hits = [(int(hit.page[1:]), hit.score) for hit in self._session.search(query, limit=None)]
        best = max((score for _, score in hits), default=1.0) or 1.0
        return {
            places[page]: round(score / best, 6)
            for page, score in hits
            if page in places and self._items[places[page]].is_searched
        }

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        found = {
            namespace if op.max_depth is None else namespace[: op.max_depth]
            for namespace, _ in self._items
            if all(_matches(condition, namespace) for condition in conditions)
        }
        return sorted(found)[op.offset : op.offset + op.limit]

    # ---- writing

    def _write(self, puts: Sequence[PutOp]) -> None:
        for attempt in range(TRIES):
            now = datetime.fromtimestamp(self._clock.now() / 1e6, UTC).isoformat()
            changed: dict[Place, ItemPage | None] = {}
            try:
                with self._session.batch() as batch:
                    if batch.position != self._position + 1:
                        raise OvertakenError("another process wrote to the memory meanwhile; decide again")
                    for op in puts:
                        self._put(batch, op, now, changed)
                    position = batch.position - 1
            except OvertakenError:
                if attempt == TRIES - 1:
                    raise
                self._refresh()
                continue
            for place, page in changed.items():
                if page is None:
                    self._items.pop(place, None)
                else:
                    self._items[place] = page
            self._position = position
            return

    def _put(self, batch: HandBatch, op: PutOp, now: str, changed: dict[Place, ItemPage | None]) -> None:
        place = op.namespace, op.key
        found = self._items.get(place)
        if op.value is None:
            if found is not None:
                batch.add(Delete(found.page))
                changed[place] = None
            return
        before = self._content(place)
        created = now if before is None else before["created_at"]
        content = as_json({"value": dict(op.value), "created_at": created, "updated_at": now})
        tokens = estimate(content, Modality.STRUCTURED)
        is_searched = op.index is not False
        if found is not None and found.is_searched == is_searched:
            batch.add(Update(found.page, found.version + 1, batch.cell(content), len(content), tokens))
            changed[place] = found._replace(version=found.version + 1)
            return
        if found is not None:
            batch.add(Delete(found.page))
        hint = hint_of("item" if is_searched else "unsearched", op.key, *op.namespace)
        labels = batch.cell(msgspec.json.encode({"hint": hint, "actor": "langgraph"}))
        sealed = batch.cell(content)
        kind = (PageType.VALUE, Modality.STRUCTURED, Role.OTHER)
        page = batch.add(Create(*kind, 0, 0, sealed, len(content), tokens, Mime.JSON, (), labels))
        changed[place] = ItemPage(page, 1, is_searched)

    def _refresh(self) -> None:
        """Takes in what others wrote since."""
        head = self._store.admin.log.head(self._session._key)
        if head is not None and head.position == self._position:
            return
        self._items = {}
        for page, version, hint in list(self._store.query(_PAGES, session=self._session.name)):
            kind, names = named(hint or "")
            if kind in ("item", "unsearched"):
                self._items[tuple(names[1:]), names[0]] = ItemPage(int(page[1:]), version, kind == "item")
        self._position = self._session.info().position


_PAGES = "PAGES page, version, hint WHERE type = value AND status IS NULL ORDER BY position"


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    """Whether a namespace begins or ends as a condition says; `*` stands for any part."""
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", name) for wanted, name in zip(path, part, strict=True))


def _fits(value: Any, wanted: Any) -> bool:
    """Whether a value has what a filter says: equal parts, or operators like `$gte`."""
    if isinstance(wanted, dict):
        if any(name.startswith("$") for name in wanted):
            return all(_compared(value, operator, bound) for operator, bound in wanted.items())
        return isinstance(value, dict) and all(_fits(value.get(name), part) for name, part in wanted.items())
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(wanted)
            and all(_fits(part, each) for part, each in zip(value, wanted, strict=True))
        )
    return bool(value == wanted)


def _compared(value: Any, operator: str, bound: Any) -> bool:
    match operator:
        case "$eq":
            return bool(value == bound)
        case "$ne":
            return bool(value != bound)
        case "$gt" | "$gte" | "$lt" | "$lte":
            if not isinstance(value, int | float) or not isinstance(bound, int | float):
                return False
            order = (value > bound) - (value < bound)
            return {"$gt": order > 0, "$gte": order >= 0, "$lt": order < 0, "$lte": order <= 0}[operator]
    raise InputError(f"{operator!r:.20} is no operator; there are $eq, $ne, $gt, $gte, $lt, $lte")
