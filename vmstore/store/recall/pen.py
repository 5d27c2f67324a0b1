"""Writes pages and mutations, in a live session and in one that was recorded alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from vmstore.capture.conversation.create_page import born
from vmstore.core.clock import within
from vmstore.core.draft import Draft, Part
from vmstore.core.mutation import CellRef
from vmstore.core.page import Mime, Modality, PageType, Role
from vmstore.engine.batch import Batch
from vmstore.namespace.group_commit import WriteDecision
from vmstore.store.host import SessionHost

T = TypeVar("T")
ACTOR = "work@1"


class Pen(NamedTuple):
    """A writer of pages, cells and mutations; `act` is the act of a live session."""

    page: Callable[[Draft, list[tuple[int, int]]], int]
    cell: Callable[[bytes], CellRef]
    add: Callable[[Any], int]
    act: Any = None

    def procedure(
        self,
        content: bytes,
        *,
        name: str,
        tags: Iterable[str],
        links: list[tuple[int, int]],
        structured: bool = False,
    ) -> int:
        """Writes a page of type procedure; its number."""
        modality, mime = (Modality.STRUCTURED, Mime.JSON) if structured else (Modality.TEXT, Mime.TEXT)
        part = Part(content, modality, mime, PageType.PROCEDURE)
        return self.page(Draft(Role.SYSTEM, b"", (part,), hint=name, tags=tuple(tags), actor=ACTOR), links)


def write(session: SessionHost, do: Callable[[Pen], T], at_us: int | None = None) -> T:
    """Does something as one commit; what it answers. With nothing written there is no commit."""
    act: Callable[..., T] | None = getattr(session, "_act", None)
    if act is not None:
        from vmstore.live.messages import alone

        return act(lambda live: do(Pen(partial(alone, live), live.cell, live.tell, live)), at_us)
    ns, happened = session._ns, within("at", at_us)
    answers: list[T] = []

    def decide() -> Batch:
        batch = ns.engine.batch(session._key)

        def page(draft: Draft, links: list[tuple[int, int]]) -> int:
            return batch.add(born(draft, 0, 0, batch.cell, links))

        answers[:] = [do(Pen(page, batch.cell, batch.add))]
        if not batch.empty:
            batch.close(ns.clock.now() if happened is None else happened)
        return batch

    ns.group_commit.write(session.name, WriteDecision(decide, lambda commits: None, lambda: None))
    return answers[0]
