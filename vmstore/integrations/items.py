"""A conversation that a framework keeps as a list of JSON items, each a page of a session, in the order they came."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

from vmstore.core.mutation import Create, Delete
from vmstore.core.page import Mime, Modality, PageType, Role
from vmstore.core.text.token_estimate import estimate
from vmstore.engine.batch import HandBatch
from vmstore.errors import ErasedError, InputError, OvertakenError
from vmstore.store.session import Session
from vmstore.store.store import Store

TRIES = 5  # where other processes write to the same session


def as_json(value: Any) -> bytes:
    """The JSON of a value, which is read back equal; InputError where it would not be."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:  # half a character of UTF-16, as a model cuts one: JSON writes it in ASCII
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{value!r:.80} is nothing that JSON can hold ({error}); give texts, numbers, lists and dicts"
        ) from error


class ItemLog:
    """The items of one session; any thread may use it. What is taken away stays in the past of the session."""

    def __init__(self, store: Store, name: str, agent: str) -> None:
        self._store = store
        self._lock = RLock()
        self.session: Session = store.session(name, create=True, agent=agent)
        self._position = 0
        self._items: list[tuple[int, bytes]] = []

    def items(self, limit: int | None = None) -> list[Any]:
        """The items, oldest first; of them the last `limit` where that is not negative."""
        with self._lock:
            self._refresh()
            wanted = self._items
            if limit is not None and limit >= 0:
                wanted = wanted[max(0, len(wanted) - limit) :]
            return [json.loads(content) for _, content in wanted]

    def add(self, items: Sequence[tuple[Role, bytes]]) -> None:
        """Adds items, each a role and its JSON, as one commit."""
        if not items:
            return

        def add(batch: HandBatch) -> list[tuple[int, bytes]]:
            return [*self._items, *((_add(batch, role, content), content) for role, content in items)]

        self._commit(add)

    def pop(self) -> Any:
        """Takes the last item away; it, or None where there is none."""
        taken: list[Any] = [None]

        def take(batch: HandBatch) -> list[tuple[int, bytes]]:
            if not self._items:
                return []
            page, content = self._items[-1]
            batch.add(Delete(page))
            taken[0] = json.loads(content)
            return self._items[:-1]

        self._commit(take)
        return taken[0]

    def clear(self) -> None:
        """Takes all items away, as one commit."""

        def clear(batch: HandBatch) -> list[tuple[int, bytes]]:
            for page, _ in self._items:
                batch.add(Delete(page))
            return []

        self._commit(clear)

    def _commit(self, change: Callable[[HandBatch], list[tuple[int, bytes]]]) -> None:
        """Writes what a change makes of the items; again where another process was faster."""
        with self._lock:
            for attempt in range(TRIES):
                self._refresh()
                try:
                    with self.session.batch() as batch:
                        if batch.position != self._position + 1:
                            raise OvertakenError(f"another process wrote to {self.session.name!r}; decide again")
                        items = change(batch)
                        position = batch.position - 1
                except OvertakenError:
                    if attempt == TRIES - 1:
                        raise
                    continue
                self._items, self._position = items, position
                return

    def _refresh(self) -> None:
        """Takes in what others wrote since."""
        head = self._store.admin.log.head(self.session._key)
        if head is not None and head.position == self._position:
            return
        position = self.session.info().position  # first: what others write from here on is read by the next look
        rows = self._store.query(_PAGES, session=self.session.name, params={"upto": position})
        contents = [(int(page[1:]), self._content(page)) for (page,) in list(rows)]
        self._items = [(page, content) for page, content in contents if content is not None]
        self._position = position

    def _content(self, page: str) -> bytes | None:
        """An item's bytes; None where they were erased."""
        try:
            return self.session.content(page)
        except ErasedError:
            return None


def _add(batch: HandBatch, role: Role, content: bytes) -> int:
    tokens = estimate(content, Modality.STRUCTURED)
    kind = (PageType.TRANSCRIPT, Modality.STRUCTURED, role)
    return batch.add(Create(*kind, 0, 0, batch.cell(content), len(content), tokens, Mime.JSON))


_PAGES = "PAGES page AS OF POSITION $upto WHERE type = transcript AND status IS NULL ORDER BY position"
