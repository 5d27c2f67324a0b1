"""The transcript of a live session: messages and their parts, tool calls by id, names of pages.

Folded from the same mutations as the kernel's state, it holds what the kernel must not know:
words, ids and names.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from vmstore.capture.thought_parts import thoughts
from vmstore.core import mutation as m
from vmstore.core.address import page_position
from vmstore.core.decision import Cause
from vmstore.core.erasure import ErasedContent
from vmstore.core.page import LinkKind, PageType, Role, Slot, Standing
from vmstore.core.text.skeleton import loads
from vmstore.views.projectors.pages import born_tags, object_of
from vmstore.vm.claims.claims import KnownClaim as Claim
from vmstore.vm.claims.claims import topic_of


class PageLabels(msgspec.Struct, frozen=True, omit_defaults=True):
    """The labels of a page."""

    name: str | None = msgspec.field(default=None, name="hint")
    call_id: str | None = msgspec.field(default=None, name="asks")
    answers: str | None = None
    tags: tuple[str, ...] = ()
    mime: str | None = None
    origin: str | None = None


def known(labels: bytes) -> PageLabels:
    """Reads the labels of a page."""
    try:
        return _READ(labels)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # they hold what is no character
        labels_object = object_of(labels)
        hint, asks, answers, mime = (labels_object.get(name) for name in ("hint", "asks", "answers", "mime"))
        origin = _text(labels_object.get("origin"))
        return PageLabels(
            _text(hint), _text(asks), _text(answers), tuple(born_tags(labels_object)), _text(mime), origin
        )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


_READ = msgspec.json.Decoder(PageLabels).decode


def _places(note: bytes) -> list[tuple[int, int]]:
    """The pages and levels of a mark; none where somebody wrote something else."""
    try:
        return [(int(page), int(level)) for page, level in loads(note)]
    except (ValueError, TypeError):
        return []


KEPT = "kept:"  # before the name of a value that a program keeps
Read = Callable[[int, m.CellRef], bytes]


class TranscriptMessage(msgspec.Struct, array_like=True):
    """A message: who said it, the page of each of its parts, and which parts a model thought."""

    message: int
    role: Role
    slot: Slot
    parts: list[int] = []
    thinking: tuple[int, ...] = ()


class Transcript:
    """The words and names of one session."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self.messages: dict[int, TranscriptMessage] = {}
        self.known: dict[int, PageLabels] = {}
        self.pages: dict[int, None] = {}
        self.thoughts: dict[int, None] = {}  # pages a model thought
        self.sources: dict[int, tuple[int, ...]] = {}  # what pages were made from
        self._made: dict[int, dict[int, None]] = {}  # of each such page what was made from it
        self.calls: dict[str, int] = {}  # tool call id -> its page
        self.named: dict[str, int] = {}  # a page's own name -> the last page of that name
        self.renamed = 0  # how often a page that was there got other names, sources or thoughts
        self.values: dict[str, int] = {}  # what a program keeps: a value's name -> its page
        self.claims: dict[str, Claim] = {}  # that hold, by name
        self._claimed: dict[str, int] = {}  # their pages: another page may take a claim's name
        self._held = 0  # how often a claim came to hold
        self._holds: dict[int, int] = {}  # of each claim the number of the last time that it did
        self._stated: dict[int, Claim] = {}  # every claim there was, by its page
        self.summaries: list[int] = []  # of the segments
        self._summed: dict[int, None] = {}  # every summary there was
        self.origins: dict[str, int] = {}  # of copies, by where they come from
        self.past: dict[int, None] = {}  # pages that hold no more
        self._newer: dict[int, int] = {}  # of a claim the one that took its place
        self._after: dict[int, int] = {}  # of what a claim was found in, that claim
        self.updated: list[int] = []  # pages that say something else now, or answer another call, in order
        self.marks: dict[str, list[tuple[int, int]]] = {}
        self.checkpoints: list[tuple[int, str]] = []  # where marks stand, in order, and what they are called
        self._backs: list[tuple[int, int]] = []  # where it was set back, and to which position
        self._undone: list[tuple[int, int]] = []  # what came between two positions was undone, as it stands now
        self._lost: dict[int, TranscriptMessage] = {}  # messages that were undone
        self._asked: list[tuple[str, int]] = []  # every call, by its id
        self.tags: dict[int, dict[str, int]] = {}  # of pages, by a mutation of each, with the method that found it
        self.aliases: dict[str, str | None] = {}  # what names count as; None as themselves again
        self.tagged: list[int] = []  # pages in the order they were given tags or lost some
        self.realiased = 0  # how often a name came to count as another, or as itself
        self.final = True  # the next human message opens a turn
        self._finals: list[tuple[int, bool]] = []  # from which position on that was so
        self.answered = 0  # the last call that was answered
        self._packed = 0  # the last call
        self.model: str | None = None  # of the last call

    def apply(self, position: int, mutation: m.AnyMutation) -> None:
        """Folds the mutation at a position."""
        before = self.final
        self._apply(position, mutation)
        if self.final is not before:
            self._finals.append((position, self.final))

    def _apply(self, position: int, mutation: m.AnyMutation) -> None:
        match mutation:
            case m.Message():
                message = TranscriptMessage(position, Role(mutation.role), Slot(mutation.slot))
                if message.role is Role.ASSISTANT:
                    message.thinking = thoughts(self._read(position, mutation.envelope))
                self.messages[position] = message
                if mutation.human:
                    self.final = False
                elif mutation.role == Role.ASSISTANT and mutation.reply_to is None:
                    self.final = True
            case m.Create():
                self._create(position, mutation)
            case m.Link() if mutation.link == LinkKind.DERIVES:
                self.renamed += 1
                self._derived(mutation.source, mutation.target)
            case m.Link() if mutation.link == LinkKind.CAUSED_BY:
                self.updated.append(mutation.source)
            case m.Link() if mutation.link == LinkKind.SUPERSEDES:
                self._newer[mutation.target] = mutation.source
                for source in self.sources.get(mutation.target, ()):
                    self._after[source] = mutation.target
            case m.Evict() if mutation.cause == Cause.THOUGHT:
                self.renamed += 1
                self.thoughts[mutation.page] = None
            case m.Update():
                self.updated.append(mutation.page)
                if mutation.page in self._stated:
                    self._state(mutation.page, self._stated[mutation.page].name, self._read(position, mutation.content))
            case m.Unlink():
                self._unlink(mutation)
            case m.Delete():
                self._pass(mutation.page)
            case m.Annotate() if mutation.status in (Standing.ABANDONED, Standing.SUPERSEDED):
                self._pass(mutation.page)
            case m.Annotate() if mutation.status is not None and mutation.page in self.past:
                del self.past[mutation.page]
                if (claim := self._stated.get(mutation.page)) is not None:
                    self._hold(mutation.page, claim)
            case m.Tag():
                self._tag(mutation, self._word(position, mutation.tag))
            case m.Alias():
                self._alias(position, mutation)
            case m.Reply():
                self.final, self.answered = bool(mutation.final), mutation.call
            case m.Pack():
                self._packed = mutation.call
                if mutation.rest is not None:
                    model = object_of(self._read(position, mutation.rest)).get("model")
                    self.model = model if isinstance(model, str) else None
            case m.Mark() if mutation.reason == m.Mark.NAMED and mutation.name is not None:
                name = self._read(position, mutation.name).decode("utf-8", "replace")
                self.marks[name] = [] if mutation.note is None else _places(self._read(position, mutation.note))
                if mutation.back_to:
                    self._back(position, mutation.back_to)
                else:
                    self.checkpoints.append((position, name))

    def _word(self, position: int, ref: m.CellRef) -> str | None:
        """A name in a cell; None where it was erased."""
        content = self._read(position, ref)
        return None if isinstance(content, ErasedContent) else content.decode("utf-8", "replace")

    def _alias(self, position: int, said: m.Alias) -> None:
        """Has a name count as another."""
        alias = self._word(position, said.alias)
        if alias is not None:
            self.aliases[alias] = None if said.canonical is None else self._word(position, said.canonical)
            self.realiased += 1

    def _tag(self, given: m.Tag, name: str | None) -> None:
        """Gives a page a tag, or takes it away."""
        if name is None:
            return
        self.tagged.append(given.page)
        tags = self.tags.setdefault(given.page, {})
        if given.held:
            tags[name] = given.method
        else:
            tags.pop(name, None)

    @property
    def rewinds(self) -> int:
        """How often the session was set back."""
        return len(self._backs)

    def _pass(self, page: int) -> None:
        """Lets a page hold no more, nor the claim in it."""
        self.past[page] = None
        for name in [name for name in self.claims if self._claimed[name] == page]:
            del self.claims[name]

    def _unlink(self, ends: m.Unlink) -> None:
        """Forgets what a page was made from, or replaced."""
        self.renamed += 1
        source, target = ends.source, ends.target
        if ends.link == LinkKind.DERIVES and source in self.sources:
            self.sources[source] = tuple(page for page in self.sources[source] if page != target)
            self._made.get(target, {}).pop(source, None)
        elif ends.link == LinkKind.SUPERSEDES and self._newer.get(target) == source:
            del self._newer[target]
            for page in [page for page, after in self._after.items() if after == target]:
                del self._after[page]

    def undone(self, position: int) -> bool:
        """Whether what came at a position was undone: the session was set back to before it."""
        return any(low < position < high for low, high in self._undone)

    def _back(self, position: int, to: int) -> None:
        """Restores what was said and named up to a moment that the session is rewound to."""
        self.renamed += 1
        self._backs.append((position, to))
        self._undone = self._between(position)
        heard = dict(sorted({**self._lost, **self.messages}.items()))
        self._lost = {number: message for number, message in heard.items() if self.undone(number)}
        self.messages = {number: message for number, message in heard.items() if number not in self._lost}
        self.calls = {call: page for call, page in self._asked if not self.undone(page)}
        made = [page for page in self.pages if not self.undone(page)]
        self.summaries = [page for page in made if page in self._summed]
        self.named, self.values, self.claims = {}, {}, {}
        for page in made:
            if page in self.known and (name := self.known[page].name):
                self._call(page, name)
            if page in self._stated and page not in self.past:
                self._hold(page, self._stated[page])
        self.final = next((final for at, final in reversed(self._finals) if at <= to), True)
        self.answered = max(self.answered, self._packed)  # no answer comes for a call that was undone

    def _between(self, position: int) -> list[tuple[int, int]]:
        """Ranges undone at a position, as pairs of positions."""
        last = next((back for back in reversed(self._backs) if back[0] <= position), None)
        return [] if last is None else [*self._between(last[1]), (last[1], last[0])]

    def _create(self, position: int, made: m.Create) -> None:
        self.pages[position] = None
        if made.message:
            message = self.messages[made.message]
            if len(message.parts) in message.thinking:
                self.thoughts[position] = None
            message.parts.append(position)
        for kind, source in made.links:
            if kind == LinkKind.DERIVES:
                self._derived(position, source)
        if made.labels is None:
            return
        labels = self.known[position] = known(self._read(position, made.labels))
        if labels.origin:
            self.origins[labels.origin] = position
        if labels.call_id:
            self.calls[labels.call_id] = position
            self._asked.append((labels.call_id, position))
            self.final = False
        if labels.name:
            self._call(position, labels.name)
        if made.type == PageType.SUMMARY:
            self.summaries.append(position)
            self._summed[position] = None
        if made.type == PageType.CLAIM and labels.name in self.named and made.content is not None:
            self._hold(position, self._state(position, labels.name, self._read(position, made.content)))

    def _call(self, page: int, name: str) -> None:
        """Lets a name stand for a page; what looks like a page's number names no other page."""
        if name.startswith(KEPT):
            self.values[name.removeprefix(KEPT)] = page
        elif page_position(name) is None:
            self.renamed += name in self.named
            self.named[name] = page

    def _state(self, page: int, name: str, content: bytes) -> Claim:
        """Keeps what a claim says."""
        text = "" if isinstance(content, ErasedContent) else content.decode("utf-8", "replace")
        claim = self._stated[page] = Claim(name, topic_of(name), text)
        if self._claimed.get(name) == page and name in self.claims:
            self.claims[name] = claim
        return claim

    def _hold(self, page: int, claim: Claim) -> None:
        """Lets a claim hold, as the last of its name."""
        self.claims.pop(claim.name, None)
        self._claimed[claim.name] = page
        self.claims[claim.name] = claim
        self._held += 1
        self._holds[page] = self._held

    def _derived(self, page: int, source: int) -> None:
        self.sources[page] = (*self.sources.get(page, ()), source)
        self._made.setdefault(source, {})[page] = None

    def successors(self, page: int) -> tuple[int, ...]:
        """The claim that holds in the place of a page, or of the claim that was found in it; nothing where it holds."""
        found, seen = self._newer.get(self._after.get(page, page), 0), {page}
        while found in self._newer and found not in seen:
            seen.add(found)
            found = self._newer[found]
        return (found,) if found and found not in self.past and not self.undone(found) else ()

    def topic(self, page: int) -> str:
        """The topic of a valid claim, or of a page that one was found in; empty for others."""
        claim = page if self._is_held(page) else next(iter(self.claims_of(page)), None)
        return "" if claim is None else self._stated[claim].topic

    def claimed(self, page: int) -> bool:
        """Whether some claim was found in a page, whether it holds or not."""
        return any(made in self._stated for made in self._made.get(page, ()))

    def claims_of(self, page: int) -> list[int]:
        """The claims that hold and were found in a page, in the order they came to hold."""
        return sorted(filter(self._is_held, self._made.get(page, ())), key=self._holds.__getitem__)

    def _is_held(self, page: int) -> bool:
        """Whether a page is a claim that holds."""
        claim = self._stated.get(page)
        return claim is not None and claim.name in self.claims and self._claimed[claim.name] == page

    def number(self, name: str) -> int | None:
        """The page of a name or of a number like `p17`; None where there is none."""
        found = self.named.get(name)
        if found is None and (position := page_position(name)) in self.pages:
            return position
        return found
