"""Small webs of pages over sessions, forks and spawned sessions, made through the gate; and who falls in them."""

from __future__ import annotations

from typing import NamedTuple

import vmstore
from vmstore.core.mutation import Cite, Create, Link
from vmstore.core.page import LinkKind, Modality, Origin, PageType, Role
from vmstore.engine.head import NewSession
from vmstore.store.store import Store

CARRYING = (LinkKind.DERIVES, LinkKind.REPRESENTS, LinkKind.CAUSED_BY, LinkKind.PART_OF)
CITE = -1


class Line(NamedTuple):
    """A relation that was said in a session: `near` relates to `far` by a kind of link, or cites it."""

    session: str
    near: int
    far: int
    kind: int


class Web:
    """A store in memory, and beside it plain lists of what was told."""

    def __init__(self) -> None:
        self.store: Store = vmstore.memory_store()
        self.pages: dict[str, list[int]] = {}  # what each session sees
        self.lines: dict[str, list[Line]] = {}
        self.forks: list[tuple[str, str]] = []
        self.shared: dict[str, set[int]] = {}  # what a fork has of its parent; its own may have the same numbers
        self.spawned: list[tuple[str, str, int]] = []

    def session(self, name: str) -> None:
        """Opens a session."""
        self.store.session(name, create=True)
        self.pages[name], self.lines[name] = [], []

    def page(self, session: str, *links: tuple[int, int], type_: PageType = PageType.TRANSCRIPT) -> int:
        """Makes a page with links it is born with."""
        with self.store.session(session).batch() as batch:
            number = batch.position
            text = f"page {number} of {session}".encode()
            made = Create(type_, Modality.TEXT, Role.ASSISTANT, 0, 0, batch.cell(text), len(text), 4, links=links)
            batch.add(made)
        self.pages[session].append(number)
        self.lines[session] += [Line(session, number, far, kind) for kind, far in links]
        return number

    def relate(self, session: str, near: int, far: int, kind: int) -> None:
        """Says a relation later."""
        with self.store.session(session).batch() as batch:
            batch.add(Cite(far, near) if kind == CITE else Link(near, far, kind))
        self.lines[session].append(Line(session, near, far, kind))

    def fork(self, parent: str, name: str) -> None:
        """Forks a session where it stands."""
        self.store.session(parent).fork(name)
        self.pages[name], self.lines[name] = list(self.pages[parent]), list(self.lines[parent])
        self.forks.append((parent, name))
        self.shared[name] = set(self.pages[parent])

    def spawn(self, parent: str, call: int, name: str) -> None:
        """Opens a session that a page of another spawned."""
        ns = self.store._ns
        now, key = ns.clock.now(), ns.key(parent)
        assert key is not None
        session = NewSession(name, origin=Origin.SPAWN, parent=key, parent_position=call, spawned_by=call)
        ns.begin(session, now).commit(now)
        self.pages[name], self.lines[name] = [], []
        self.spawned.append((parent, name, call))

    def fallen(self, roots: dict[str, set[int]]) -> dict[str, set[int]]:
        """What falls in each session, by going over all lines again until nothing is added."""
        begun = {name: set(roots.get(name, ())) for name in self.pages}
        while True:
            before = {name: set(pages) for name, pages in begun.items()}
            numbers = {name: self._closed(name, pages) for name, pages in begun.items()}
            for parent, fork in self.forks:
                begun[fork] |= begun[parent] & self.shared[fork]
            for parent, name, call in self.spawned:
                if call in numbers[parent]:
                    begun[name] |= set(self.pages[name])
            if begun == before:
                return {name: pages for name, pages in numbers.items() if pages}

    def _closed(self, session: str, roots: set[int]) -> set[int]:
        actual_roots = set(roots)
        for _ in self.pages[session]:
            for _, near, far, kind in self.lines[session]:
                if kind == LinkKind.HAS_CAPTION and near in actual_roots:
                    actual_roots.add(far)
                elif (kind in CARRYING or kind == CITE) and far in actual_roots:
                    actual_roots.add(near)
        return actual_roots


def superseded(store: Store, session: str) -> set[int]:
    """The pages of a session that are marked."""
    return {page.position for page in store.session(session).pages() if page.status == "superseded"}
