"""Atoms of a session: pages that say one thing of the work, by kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import msgspec

from vmstore.core.address import page_position
from vmstore.core.asof import Head, Moment, When, one_moment
from vmstore.core.decision import Cause
from vmstore.core.draft import Draft, Part
from vmstore.core.erasure import is_gone
from vmstore.core.mutation import Annotate, Evict, Link
from vmstore.core.page import LinkKind, PageType, Role, Standing
from vmstore.core.work.atom import ATOM, AtomKind
from vmstore.errors import InputError, UnknownError
from vmstore.store.host import SessionHost
from vmstore.store.recall.fact_reads import asked_at
from vmstore.store.recall.pen import Pen, write
from vmstore.store.work.plans import Plans

TEXT_CHARS_MAX = 1_000
IMPORTANCE = 950_000  # parts per million
_NAMES = ("page", "session", "kind", "text", "task", "status", "tags", "tokens", "at")
_HOLDS_NO_MORE = (Standing.ABANDONED.word, Standing.SUPERSEDED.word)


class AtomInfo(msgspec.Struct, frozen=True):
    """A page that says one thing: a fact, decision, constraint, question or insight, with the task it is a part of."""

    page: str
    session: str
    kind: str
    text: str | None
    task: str | None
    status: str
    tags: list[str]
    tokens: int
    at: str


class Atoms:
    """The atoms of a session: `session.work.atoms`.

    Claims and decisions, facts, warnings and skills are atoms by what they are; `add` states others.
    """

    def __init__(self, session: SessionHost) -> None:
        self._session = session

    def all(
        self,
        at: When | None = None,
        *,
        kind: str | None = None,
        task: str | int | None = None,
        ever: bool = False,
        **moment: Unpack[Moment],
    ) -> list[AtomInfo]:
        """The atoms that hold now or at a moment, oldest first, of a kind or a task; where `ever` the others too."""
        known = None if kind is None else _kind(kind).word
        part = None if task is None else Plans(self._session).get(task, at, **moment).page
        rows = asked_at(self._session, f"ATOMS {', '.join(_NAMES)}", one_moment(at, moment))
        found = [AtomInfo(**dict(zip(_NAMES, row, strict=True))) for row in rows]
        return [
            atom
            for atom in found
            if known in (None, atom.kind)
            and part in (None, atom.task)
            and not is_gone(atom.text or "")
            and (ever or atom.status not in _HOLDS_NO_MORE)
        ]

    def add(
        self,
        kind: str,
        text: str,
        *,
        task: str | int | None = None,
        sources: Iterable[str | int] = (),
        replaces: str | int | None = None,
        at_us: int | None = None,
    ) -> str:
        """States an atom: a claim's page with its kind, the pages it was made from and the task it is a part of.

        What it `replaces`, as the question that it answers, holds no more. The name of its page.
        """
        word = _kind(kind).word
        if not isinstance(text, str) or not 0 < len(text.strip()) <= TEXT_CHARS_MAX:
            raise InputError(
                f"an atom is a text of 1 to {TEXT_CHARS_MAX} characters, not {text!r:.60}", code="not-a-text"
            )
        part = None if task is None else page_position(Plans(self._session).get(task).page)
        links = [(int(LinkKind.DERIVES), page) for page in self._numbers(sources)]
        links += [] if part is None else [(int(LinkKind.PART_OF), part)]
        old = None if replaces is None else self._old(replaces)
        content = text.strip().encode("utf-8", "backslashreplace")

        def do(pen: Pen) -> int:
            """Adds the page, and says that the one it replaces holds no more."""
            draft = Draft(
                Role.ASSISTANT,
                b"",
                (Part(content, type=PageType.CLAIM),),
                tags=(f"{ATOM}{word}",),
                importance=IMPORTANCE,
            )
            page = pen.page(draft, links)
            if old is not None:
                pen.add(Link(page, old, int(LinkKind.SUPERSEDES)))
                pen.add(Annotate(old, status=Standing.ABANDONED, importance=0))
                here: Any = None if pen.act is None else pen.act.state.here.get(old)
                if here is not None and not here.pinned:  # two that say different things of one subject mislead
                    pen.add(Evict(old, Cause.ASKED, here.tokens))
            return page

        return f"p{write(self._session, do, at_us)}"

    def _old(self, page: str | int) -> int:
        """The page of an atom that holds."""
        (number,) = self._numbers([page])
        if number not in {page_position(atom.page) for atom in self.all()}:
            raise InputError(f"{page!r:.40} is no atom that holds, so nothing can take its place", code="not-a-claim")
        return number

    def _numbers(self, pages: Iterable[str | int]) -> list[int]:
        listed = [pages] if isinstance(pages, str | int) else list(pages)
        with self._session._ns.asking():
            lane = self._session._lane()
            return [self._session._resolve(lane, page, Head())[0] for page in listed]


def _kind(word: str) -> AtomKind:
    known = AtomKind.of(word) if isinstance(word, str) else None
    if known is None:
        words = ", ".join(kind.word for kind in AtomKind)
        raise UnknownError(f"{word!r:.40} is no kind of atom; there are {words}", code="no-kind")
    return AtomKind(known)
