"""What was said in a live session: messages and their parts, tool calls by id, names of pages.

Folded from the same mutations as the kernel's state, it holds what the kernel must not know:
words, ids and names.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from vmstore.capture.skeleton import loads
from vmstore.capture.thoughts import thoughts
from vmstore.core import mutation as m
from vmstore.core.decision import Cause
from vmstore.core.erasure import Gone
from vmstore.core.page import LinkKind, PageType, Role, Slot, Standing
from vmstore.core.reference import page_position
from vmstore.live.labels import Known
from vmstore.live.labels import known as read
from vmstore.views.pages import object_of
from vmstore.vm.claims import Known as Claim
from vmstore.vm.claims import topic_of


def _places(note: bytes) -> list[tuple[int, int]]:
    """The pages and levels of a mark; none where somebody wrote something else."""
    try:
        return [(int(page), int(level)) for page, level in loads(note)]
    except (ValueError, TypeError):
        return []


Read = Callable[[int, m.CellRef], bytes]


class Said(msgspec.Struct):
    """A message: who said it, the page of each of its parts, and which parts a model thought."""

    message: int
    role: Role
    slot: Slot
    parts: list[int] = []
    thinking: tuple[int, ...] = ()


class Spoken:
    """The words and names of one session."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self.messages: dict[int, Said] = {}
        self.known: dict[int, Known] = {}
        self.pages: dict[int, None] = {}
        self.thoughts: dict[int, None] = {}  # pages a model thought
        self.sources: dict[int, tuple[int, ...]] = {}  # what pages were made from
        self.calls: dict[str, int] = {}  # tool call id -> its page
        self.named: dict[str, int] = {}  # a page's own name -> the last page of that name
        self.claims: dict[str, Claim] = {}  # that hold, by name
        self._claimed: dict[str, int] = {}  # their pages: another page may take a claim's name
        self.summaries: list[int] = []  # of the segments
        self.past: dict[int, None] = {}  # pages that hold no more
        self.updated: list[int] = []  # pages that changed, in order
        self.marks: dict[str, list[tuple[int, int]]] = {}
        self.final = True  # the next human message opens a turn
        self.answered = 0  # the last call that was answered
        self.model: str | None = None  # of the last call

    def apply(self, position: int, mutation: m.AnyMutation) -> None:
        """Folds the mutation at a position."""
        match mutation:
            case m.Message():
                said = Said(position, Role(mutation.role), Slot(mutation.slot))
                if said.role is Role.ASSISTANT:
                    said.thinking = thoughts(self._read(position, mutation.envelope))
                self.messages[position] = said
                if mutation.human:
                    self.final = False
                elif mutation.role == Role.ASSISTANT and mutation.reply_to is None:
                    self.final = True
            case m.Create():
                self._create(position, mutation)
            case m.Link() if mutation.link == LinkKind.DERIVES:
                self._derived(mutation.source, mutation.target)
            case m.Evict() if mutation.cause == Cause.THOUGHT:
                self.thoughts[mutation.page] = None
            case m.Update():
                self.updated.append(mutation.page)
            case m.Annotate() if mutation.status in (Standing.ABANDONED, Standing.SUPERSEDED):
                self.past[mutation.page] = None
                for name in [name for name in self.claims if self._claimed[name] == mutation.page]:
                    del self.claims[name]
            case m.Annotate() if mutation.status is not None:
                self.past.pop(mutation.page, None)
            case m.Reply():
                self.final, self.answered = bool(mutation.final), mutation.call
            case m.Pack():
                if mutation.rest is not None:
                    model = object_of(self._read(position, mutation.rest)).get("model")
                    self.model = model if isinstance(model, str) else None
            case m.Mark() if mutation.reason == m.Mark.NAMED and mutation.name is not None:
                name = self._read(position, mutation.name).decode("utf-8", "replace")
                self.marks[name] = [] if mutation.note is None else _places(self._read(position, mutation.note))

    def _create(self, position: int, made: m.Create) -> None:
        self.pages[position] = None
        if made.message:
            said = self.messages[made.message]
            if len(said.parts) in said.thinking:
                self.thoughts[position] = None
            said.parts.append(position)
        for kind, source in made.links:
            if kind == LinkKind.DERIVES:
                self._derived(position, source)
        if made.labels is None:
            return
        known = self.known[position] = read(self._read(position, made.labels))
        if known.call_id:
            self.calls[known.call_id] = position
            self.final = False
        if known.name and page_position(known.name) is None:  # what looks like a page's number names no other page
            self.named[known.name] = position
        if made.type == PageType.SUMMARY:
            self.summaries.append(position)
        if made.type == PageType.CLAIM and known.name in self.named and made.content is not None:
            content = self._read(position, made.content)
            text = "" if isinstance(content, Gone) else content.decode("utf-8", "replace")
            self.claims.pop(known.name, None)
            self._claimed[known.name] = position
            self.claims[known.name] = Claim(known.name, topic_of(known.name), text)

    def _derived(self, page: int, source: int) -> None:
        self.sources[page] = (*self.sources.get(page, ()), source)

    def claims_of(self, page: int) -> list[int]:
        """The claims that hold and were found in a page."""
        return [number for name in self.claims if page in self.sources.get(number := self._claimed[name], ())]

    def number(self, name: str) -> int | None:
        """The page of a name or of a number like `p17`; None where there is none."""
        found = self.named.get(name)
        if found is None and (position := page_position(name)) in self.pages:
            return position
        return found
