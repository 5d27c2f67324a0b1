"""Writes single mutations through the gate, for tests of one view at a time."""

from __future__ import annotations

from collections.abc import Sequence

from tests.engine.author import engine_over
from vmstore.core.mutation import Create, Link, Message, Pack, Turn, Update
from vmstore.core.page import LinkKind, Modality, PageType, Role, Slot
from vmstore.engine.head import NewSession
from vmstore.log.port import Log
from vmstore.views.branch import Branch


class Pen:
    """One session under the hand; each call is a commit of its own."""

    def __init__(self, log: Log | None = None) -> None:
        self.engine = engine_over(log)
        self.session = self.engine.begin(NewSession("s"), 0).commit(0)[-1].session

    @property
    def lane(self) -> Branch:
        """What the session under the hand sees."""
        self.engine.follow()
        return Branch(self.engine.projection.db, self.session)

    def turn(self, at: int = 0) -> int:
        """Opens the next turn; its position."""
        batch = self.engine.batch(self.session)
        position = batch.add(Turn(batch.head.turn + 1))
        batch.commit(at)
        return position

    def page(self, text: str, *, links: Sequence[tuple[LinkKind, int]] = (), at: int = 0) -> int:
        """A message of one page; the page."""
        batch = self.engine.batch(self.session)
        message = batch.add(Message(Role.USER, Slot.MESSAGES, batch.cell(b'{"\\u0000t":0}')))
        content = text.encode()
        page = batch.add(
            Create(
                PageType.TRANSCRIPT,
                Modality.TEXT,
                Role.USER,
                message,
                0,
                batch.cell(content),
                len(content),
                len(content),
                links=tuple((int(kind), target) for kind, target in links),
            )
        )
        batch.commit(at)
        return page

    def update(self, page: int, text: str) -> int:
        """Another version of a page; its position."""
        batch = self.engine.batch(self.session)
        content = text.encode()
        version = (batch.head.version(page) or 0) + 1
        position = batch.add(Update(page, version, batch.cell(content), len(content), len(content)))
        batch.commit(0)
        return position

    def link(self, source: int, kind: LinkKind, target: int) -> int:
        """A link; its position."""
        batch = self.engine.batch(self.session)
        position = batch.add(Link(source, target, kind))
        batch.commit(0)
        return position

    def pack(self, *pages: int, showing: dict[int, int] | None = None, fixed: bool = False, at: int = 0) -> int:
        """A call that sees these pages in this order, of some the content made at a position; its position.

        Where `fixed`, a page's rank is its own, so that it stays when others come and go.
        """
        batch = self.engine.batch(self.session)
        ranks = pages if fixed else range(10, 10 * len(pages) + 10, 10)
        wanted = [(page, (showing or {}).get(page, page), 0, rank) for page, rank in zip(pages, ranks, strict=True)]
        entered = tuple(new for new in wanted if batch.head.residence(new[0]) != new)
        left = tuple(old[0] for old in batch.head.order if old[0] not in pages)
        totals = batch.head.copy().enter(entered, left)
        position = batch.add(Pack(batch.head.call + 1, 0, *totals, entered, left))
        batch.commit(at)
        return position

    def fork(self, position: int) -> int:
        """Forks the session at a commit end and takes the fork in hand; the parent."""
        parent = self.session
        name = f"s{self.engine.log.ordinal}"
        self.session = self.engine.fork(parent, position, name, 0)
        return parent
