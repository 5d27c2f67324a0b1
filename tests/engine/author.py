"""Writes any story the rules allow: hypothesis draws numbers, the author makes valid mutations of them."""

from __future__ import annotations

import copy
from typing import NamedTuple

import apsw
from hypothesis import strategies as st

from vmstore.core.clock import ManualClock, SeededIds
from vmstore.core.decision import Cause, Denial, FaultReason, Holder, Load, PromptContest, Signal, Use, Why
from vmstore.core.mutation import (
    Alias,
    Annotate,
    Cite,
    Close,
    Compress,
    Configure,
    Create,
    Delete,
    Depth,
    Embed,
    Evict,
    Fact,
    FaultDenied,
    FaultIn,
    Flush,
    GuardTrip,
    Link,
    Mark,
    Message,
    Pack,
    Pin,
    Prefetch,
    Pressure,
    Promote,
    Recall,
    Reference,
    Reply,
    Search,
    Segment,
    Settings,
    Tag,
    ToolRun,
    Turn,
    Unlink,
    Unpin,
    Update,
)
from vmstore.core.page import LinkKind, Mime, Modality, PageType, Role, Slot, Standing, Status, Tier
from vmstore.core.redaction import Approve, HiddenKind, Redact
from vmstore.core.tags import TagMethod
from vmstore.core.vectors import Quantisation, vector_bytes
from vmstore.engine.batch import Batch
from vmstore.engine.engine import Engine
from vmstore.engine.head import NewSession
from vmstore.log.memory import MemoryLog
from vmstore.log.port import Log
from vmstore.views.projection import Projection

NUMBER = st.integers(0, 63)
DEEDS = (
    "turn",
    "say",
    "update",
    "annotate",
    "compress",
    "link",
    "pack",
    "reply",
    "mark",
    "configure",
    "settings",
    "use",
    "fault",
    "evict",
    "pin",
    "hand",
    "embed",
    "fact",
    "tag",
    "alias",
    "depth",
    "end",
    "fork",
    "switch",
)


class Deed(NamedTuple):
    """One thing to do, and four numbers that say how."""

    what: str
    a: int = 0
    b: int = 0
    c: int = 0
    d: int = 0


STORIES = st.lists(st.builds(Deed, st.sampled_from(DEEDS), NUMBER, NUMBER, NUMBER, NUMBER), max_size=30)


class Known:
    """What the author knows of a session: its messages, pages and contents, and what is in context."""

    def __init__(self) -> None:
        self.messages: list[int] = []
        self.pages: dict[int, list[tuple[int, int]]] = {}  # page -> (position, level) of its contents
        self.versions: dict[int, int] = {}
        self.ranks: dict[int, int] = {}
        self.opaque: dict[int, bool] = {}  # whether a page began without content
        self.segments = 0


def engine_over(log: Log | None = None, seed: int = 0) -> Engine:
    """An engine over a log, with views in memory and a clock and ids that repeat."""
    log = log or MemoryLog()
    return Engine(log, Projection(log, apsw.Connection(":memory:")), ManualClock(1_000, 7), SeededIds(seed))


class Author:
    """Writes sessions through the gate and remembers what it wrote."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.known: dict[int, Known] = {}
        self.ends: list[tuple[int, int, Known]] = []  # session, position of a commit end, known there
        self.batch: Batch = engine.begin(NewSession("s0"), 0)
        self.now = Known()
        self.names = 1
        self.commit()

    def write(self, story: list[Deed]) -> None:
        """Does every deed of a story and commits the last batch."""
        for deed in story:
            getattr(self, "do_" + deed.what)(deed)
        self.commit()

    def commit(self) -> None:
        """Commits the batch under way, if any, and begins another of the same session."""
        session = self.batch.head.session
        if not self.batch.empty:
            session = self.batch.commit(self.engine.clock.now())[-1].session
            self.known[session] = self.now
            self.ends.append((session, self.batch.head.position, copy.deepcopy(self.now)))
        self.open(session)

    def open(self, session: int) -> None:
        """Begins a batch of a session."""
        self.batch = self.engine.batch(session)
        self.now = copy.deepcopy(self.known[session])

    def do_turn(self, deed: Deed) -> None:
        """Opens a turn, in a commit of its own beginning."""
        self.batch.end(deed.a)
        self.batch.add(Turn(self.batch.head.turn + 1))

    def do_say(self, deed: Deed) -> None:
        """A message with up to three pages, some opaque, some made from others."""
        batch = self.batch
        role, slot = list(Role)[deed.a % 6], list(Slot)[deed.b % 3]
        message = batch.add(Message(role, slot, batch.cell(b"[%d]" % deed.a), deed.c % 2))
        self.now.messages.append(message)
        for part in range(deed.d % 4):
            links = self._links(deed)
            content = None if deed.b % 7 == 0 else batch.cell(b"text %d" % (deed.c + part))
            create = Create(
                type=list(PageType)[deed.b % 7],
                modality=list(Modality)[deed.c % 5],
                role=role,
                message=message,
                part=part,
                content=content,
                size=deed.c,
                tokens=deed.d,
                mime=list(Mime)[deed.a % 10],
                links=links,
                labels=batch.cell(b'{"hint":"h%d","tags":["t%d"]}' % (deed.a, deed.d % 5)) if deed.d % 2 else None,
                importance=(500_000, 800_000)[deed.c % 7 == 3],
            )
            page = batch.add(create)
            self.now.pages[page], self.now.versions[page] = [(page, 0)], 1
            self.now.opaque[page] = content is None

    def _links(self, deed: Deed) -> tuple[tuple[int, int], ...]:
        pages = list(self.now.pages)
        if not pages or deed.a % 3:
            return ()
        return ((list(LinkKind)[deed.b % 10], pages[deed.c % len(pages)]),)

    def _page(self, number: int) -> int | None:
        pages = list(self.now.pages)
        return pages[number % len(pages)] if pages else None

    def do_update(self, deed: Deed) -> None:
        """A page's content changes."""
        page = self._page(deed.a)
        if page is not None:
            version = self.now.versions[page] + 1
            content = self.batch.cell(b"text %d" % deed.b)
            position = self.batch.add(Update(page, version, content, deed.b, deed.c))
            self.now.pages[page].append((position, 0))
            self.now.versions[page] = version

    def do_annotate(self, deed: Deed) -> None:
        """Something is said of a page, some of it taken back."""
        page = self._page(deed.a)
        if page is not None:
            gained, lost = (self.batch.cell(b'["t%d","t%d"]' % (n % 3, n % 5)) for n in (deed.b, deed.c))
            anchors = self.batch.cell(b'{"name":%s,"n%d":"v"}' % ((b"null", b'"x"', b'"y"')[deed.d % 3], deed.d % 2))
            self.batch.add(
                Annotate(
                    page,
                    importance=(None, 0, 400_000, 900_000, 1_000_000)[deed.b % 5],
                    status=(None, *Standing)[deed.c % 7],
                    valid_from=deed.c or None,
                    valid_to=deed.d or None,
                    tags=gained if deed.b % 2 else None,
                    untags=lost if deed.c % 4 else None,
                    anchors=anchors if deed.d % 4 else None,
                )
                if deed.b or deed.c or deed.d
                else Annotate(page, importance=500_000)
            )

    def do_compress(self, deed: Deed) -> None:
        """A page gains a shorter content."""
        page = self._page(deed.a)
        if page is not None:
            level, content = deed.b % 3 + 1, self.batch.cell(b"short %d" % deed.b)
            compress = Compress(page, self.now.versions[page], level, 0, 1, content, deed.c, deed.d)
            self.now.pages[page].append((self.batch.add(compress), level))

    def do_link(self, deed: Deed) -> None:
        """Two pages are related."""
        source, target = self._page(deed.a), self._page(deed.b)
        if source is not None and target is not None and source != target:
            self.batch.add(Link(source, target, list(LinkKind)[deed.c % 10], deed.d or None))

    def do_pack(self, deed: Deed) -> None:
        """A call: pages leave, enter, move and change what they show."""
        ranks = self.now.ranks
        left = [page for page in ranks if (page * (deed.a + 1)) % 5 == 0]
        for page in left:
            del ranks[page]
        entered = []
        for page, contents in self.now.pages.items():
            if (page * (deed.b + 1)) % 3 == 0 and page not in left:
                rank = 1_000 * ((page * (deed.c + 1)) % 101) + page
                ranks[page] = rank
                entered.append((page, *contents[deed.d % len(contents)], rank))
        batch = self.batch
        totals = batch.head.copy().enter(entered, left)
        call, rest = batch.head.call + 1, batch.cell(b'{"model":"m%d"}' % deed.a) if deed.b % 2 else None
        envelopes = tuple((m, batch.cell(b"[]")) for m in self.now.messages[-1:] if deed.c % 4 == 0)
        fields = {"rest": rest, "envelopes": envelopes, "shape": deed.d % 3 or None}
        batch.add(Pack(call, deed.d % 2, *totals, tuple(entered), tuple(left), **fields))  # type: ignore[arg-type]
        batch.end(deed.a)

    def do_reply(self, deed: Deed) -> None:
        """The last call is answered."""
        if self.batch.head.call:
            status = list(Status)[deed.a % 5]
            reply = Reply(self.batch.head.call, status, deed.b % 2, deed.c, None, deed.d, aside=self.batch.cell(b"{}"))
            self.batch.add(reply)

    def do_mark(self, deed: Deed) -> None:
        """A moment is named, or a record taken in."""
        self.batch.add(Mark(deed.a % 3, deed.b, bytes([deed.c]) * 16, self.batch.cell(b"[[%d,0]]" % deed.d)))
        self.batch.end(deed.a)

    def do_configure(self, deed: Deed) -> None:
        """The token factor changes."""
        self.batch.add(Configure(1, 1_000_000 + deed.a))

    # ---- what a kernel asks and decides

    def do_settings(self, deed: Deed) -> None:
        """Settings change, a segment ends, or the prompt gets fuller."""
        batch = self.batch
        if deed.b % 3 == 0:
            content = (b'{"l0_tokens_max":%d}' % (8 * deed.c), b'{"policy":"lru"}')[deed.a % 2]
            batch.add(Settings(batch.cell(content)))
        elif deed.b % 3 == 1:
            batch.add(Segment(deed.c, self._page(deed.a), batch.cell(b"title %d" % deed.c) if deed.d % 2 else None))
        else:
            batch.add(Pressure(list(Load)[deed.a % 4], deed.c, deed.d))

    def do_use(self, deed: Deed) -> None:
        """A page is used, cited or recalled, or pages are searched for."""
        page, by = self._page(deed.a), self._page(deed.b)
        evidence = self.batch.cell(b"evidence %d" % deed.d) if deed.d % 2 else None
        if page is None or by is None or deed.c % 5 == 0:
            pages, losers = list(self.now.pages)[: deed.a % 3], list(self.now.pages)[deed.a % 3 :][:2]
            contest = PromptContest(7, len(pages), deed.a, 10, 100, deed.b, tuple((deed.d, page) for page in losers))
            contests = (contest,) if deed.d % 2 else ()
            scores = tuple(deed.b - place for place in range(len(pages))) if deed.b % 2 else ()
            self.batch.add(Search(self.batch.cell(b"words"), tuple(pages), deed.b, contests=contests, scores=scores))
        elif deed.c % 5 == 1:
            self.batch.add(Cite(page, by, evidence))
        elif deed.c % 5 == 2:
            self.batch.add(Recall(page, deed.b % 2))
        else:
            self._reference(page, deed)

    def _reference(self, page: int, deed: Deed) -> int:
        use, reason, signal = list(Use)[deed.b % 6], list(FaultReason)[deed.c % 4], list(Signal)[deed.d % 8]
        return self.batch.add(Reference(page, use, self.batch.head.call, deed.a % 4, reason, signal))

    def _why(self, deed: Deed) -> Why:
        losers = ((deed.d, self._page(deed.b) or 0), (deed.d + 1, self._page(deed.c) or 0))[: deed.a % 3]
        return Why(deed.a % 8, 8 * deed.b, 7 * deed.c, deed.d, self._page(deed.d) or 0, deed.a, deed.d - 9, losers)

    def do_fault(self, deed: Deed) -> None:
        """A page is asked for or wished for, and comes or does not; some are asked for and nothing follows."""
        page = self._page(deed.a)
        if page is None or deed.d % 5 == 0:
            reference = self._reference(0, deed)
            self.batch.add(FaultDenied(0, reference, Denial.NO_PAGE, self._why(deed)))
            return
        reference, why = self._reference(page, deed), self._why(deed)
        content, level = self.now.pages[page][deed.c % len(self.now.pages[page])]
        if deed.d % 5 == 1:
            self.batch.add(FaultDenied(page, reference, list(Denial)[deed.b % 8], why))
        elif deed.d % 5 == 2:
            self.batch.add(Prefetch(page, content, level, deed.c, reference, why))
        elif deed.d % 5 == 3:
            self.batch.add(FaultIn(page, content, level, deed.c, reference, why, list(Tier)[deed.b % 5]))

    def do_evict(self, deed: Deed) -> None:
        """A page gives way, whole or to a shorter form of itself."""
        page = self._page(deed.a)
        if page is not None:
            shorter = [row for row in self.now.pages[page] if row[1]]
            content, level = shorter[deed.c % len(shorter)] if shorter and deed.b % 2 else (None, None)
            why = self._why(deed) if deed.d % 2 else None
            self.batch.add(Evict(page, list(Cause)[deed.c % 7], deed.d, deed.b, level, content, why, 0 if why else 1))

    def do_pin(self, deed: Deed) -> None:
        """A page is held, or held no more."""
        page = self._page(deed.a)
        if page is not None:
            holder = list(Holder)[deed.b % 6]
            why = self._why(deed) if deed.d % 2 else None
            self.batch.add(Pin(page, holder) if deed.c % 3 else Unpin(page, holder, why))

    def do_hand(self, deed: Deed) -> None:
        """The session is closed, or a page is deleted, flushed, or linked no more."""
        page, other = self._page(deed.a), self._page(deed.b)
        if deed.c % 4 == 0 or page is None:
            why = self.batch.cell(b"reason %d" % deed.d) if deed.d % 2 else None
            self.batch.add(Close((Standing.COMPLETED, Standing.ABANDONED)[deed.b % 2], why))
        elif deed.c % 4 == 1:
            self.batch.add(Delete(page))
        elif deed.c % 4 == 2:
            self.batch.add(Flush(page))
        elif other is not None and page != other and (kind := list(LinkKind)[deed.d % 10]) != LinkKind.CAUSED_BY:
            self.batch.add(Unlink(page, other, kind))

    def do_embed(self, deed: Deed) -> None:
        """An embedder answers about a content of a page."""
        page = self._page(deed.a)
        full = [position for position, level in self.now.pages[page] if not level] if page is not None else []
        content = full[deed.b % len(full)] if full else 0
        if page is not None and (content != page or not self.now.opaque.get(page, False)):
            chunks = tuple((at, at + 5 + deed.c) for at in range(deed.d % 3 + 1))
            form = list(Quantisation)[deed.d % 2]
            vectors = self.batch.cell(bytes(vector_bytes(form, 3) * len(chunks)))
            model = self.batch.cell(b"model %d" % (deed.c % 2))
            self.batch.add(Embed(page, content, model, 3, form, chunks, vectors if deed.b % 5 else None))

    def do_fact(self, deed: Deed) -> None:
        """A page states a fact."""
        page = self._page(deed.a)
        if page is None:
            return
        cell = self.batch.cell
        words = (
            cell(b"user"),
            cell(b"uses"),
            cell(b"editor %d" % (deed.b % 3)),
            cell(b"editor") if deed.c % 3 else None,
        )
        begins = (None, deed.b, deed.d)[deed.c % 3]
        stated = (deed.b % 11, deed.d % 5, int(deed.c % 3 == 1), begins, begins and begins + deed.d, deed.d % 6)
        self.batch.add(Fact(page, *words, *stated, 10_000 * deed.b, 10_000 * deed.c, cell(b"hand@1")))

    def do_tag(self, deed: Deed) -> None:
        """A page gains a tag, or loses it."""
        page = self._page(deed.a)
        if page is not None:
            tag = self.batch.cell(b"t%d" % (deed.b % 5))
            self.batch.add(Tag(page, tag, list(TagMethod)[deed.c % 6], min(deed.d % 4, 1)))

    def do_alias(self, deed: Deed) -> None:
        """A tag counts as another, now and then in a circle, or as itself again."""
        names = [self.batch.cell(b"t%d" % (n % 5)) for n in (deed.a, deed.b)]
        self.batch.add(Alias(names[0], names[1] if deed.c % 4 else None))

    def do_depth(self, deed: Deed) -> None:
        """So much of a tag is shown."""
        self.batch.add(Depth(self.batch.cell(b"t%d" % (deed.a % 5)), deed.b % 4))

    def do_ask(self, deed: Deed) -> None:
        """The model asks for a tool or two, by an id or without, as the answer of a call or of none known."""
        batch = self.batch
        reply_to = batch.head.call if deed.a % 2 and batch.head.call else None
        message = batch.add(Message(Role.ASSISTANT, Slot.MESSAGES, batch.cell(b"[1]"), reply_to=reply_to))
        self.now.messages.append(message)
        for part in range(deed.b % 2 + 1):
            content = b'{"name":"t%d","arguments":{"path":"f%d"}}' % ((deed.c + part) % 3, deed.d % 3)
            labels = batch.cell(b'{"asks":"c%d"}' % (deed.c % 4)) if deed.c % 3 else None
            fields = (PageType.TRANSCRIPT, Modality.STRUCTURED, Role.ASSISTANT, message, part, batch.cell(content))
            page = batch.add(Create(*fields, len(content), deed.d, labels=labels))
            self.now.pages[page], self.now.versions[page], self.now.opaque[page] = [(page, 0)], 1, False

    def do_answer(self, deed: Deed) -> None:
        """A tool answers, well or not: a page that is linked, the call that waits, or one that nobody knows."""
        batch, page = self.batch, self._page(deed.a)
        role = (Role.TOOL, Role.TOOL, Role.USER, Role.OTHER)[deed.b % 4]
        message = batch.add(Message(role, Slot.MESSAGES, batch.cell(b"[2]")))
        self.now.messages.append(message)
        content = (b"fine", b"Error: none", b'{"error":"no"}', b"text %d" % deed.c)[deed.c % 4]
        links = ((LinkKind.CAUSED_BY, page),) if page is not None and deed.d % 3 else ()
        labels = batch.cell(b'{"answers":"c%d"}' % (deed.c % 4)) if deed.d % 4 == 2 else None
        fields = (PageType.ARTIFACT, Modality.TEXT, role, message, 0, batch.cell(content))
        made = batch.add(Create(*fields, len(content), deed.d, links=links, labels=labels))
        self.now.pages[made], self.now.versions[made], self.now.opaque[made] = [(made, 0)], 1, False

    def do_paid(self, deed: Deed) -> None:
        """A call is answered again, with what it cost, took and read from a cache."""
        if self.batch.head.call:
            counts = (deed.b, deed.c % 5, deed.d, 1_000_000 * deed.c if deed.c % 3 else None, 1_000 * deed.d or None)
            self.batch.add(Reply(self.batch.head.call, list(Status)[deed.b % 5], 1, *counts, tokens_written=deed.a))

    def do_tool_call(self, deed: Deed) -> None:
        """A tool ran, and read, made and changed pages."""
        call = self._page(deed.a)
        if call is not None:
            other = self._page(deed.b) or call
            error = self.batch.cell(b"e%d" % (deed.b % 3)) if deed.c % 2 else None
            tags = self.batch.cell(b'["t%d"]' % (deed.d % 3)) if deed.d % 2 else None
            effects = ((other,), (call,) * (deed.c % 2), (other, call)[: deed.d % 3])
            self.batch.add(ToolRun(call, deed.c % 2, other * (deed.d % 2), deed.b, error, other, *effects, tags))

    def do_work(self, deed: Deed) -> None:
        """A plan, an atom or a file, a part of another page or of none."""
        plan = b'{"plan":"plan %d","steps":[{"done":true},{}],"progress":0.5%s}' % (
            deed.b,
            (b"", b',"decisions":["p%d"]' % deed.c)[deed.c % 2],
        )
        type_, modality, content, labels = (
            (PageType.CLAIM, Modality.STRUCTURED, plan, b'{"tags":["plan"],"origin":"t%d"}' % deed.b),
            (PageType.CLAIM, Modality.TEXT, b"text %d" % deed.b, b'{"tags":["atom:question"]}'),
            (PageType.PROCEDURE, Modality.TEXT, b"text %d" % deed.b, b'{"tags":["skill"]}'),
            (PageType.ARTIFACT, Modality.TEXT, b"text %d" % deed.b, b'{"path":"f%d","sha256":"s"}' % deed.b),
        )[deed.a % 4]
        task, batch = self._page(deed.c), self.batch
        links = ((LinkKind.PART_OF, task),) if task is not None and deed.d % 2 else ()
        fields = (type_, modality, Role.OTHER, 0, 0, batch.cell(content), len(content), deed.d)
        page = batch.add(Create(*fields, links=links, labels=batch.cell(labels)))
        self.now.pages[page], self.now.versions[page], self.now.opaque[page] = [(page, 0)], 1, False

    def do_approve(self, deed: Deed) -> None:
        """Somebody says whether a prompt may hold a file."""
        page = self._page(deed.a)
        if page is not None:
            who = self.batch.cell(b"Ann" if deed.c % 2 else b"Bo") if deed.d % 3 else None
            self.batch.add(Approve(int(deed.b % 3 > 0), page=page, who=who))

    def do_segment(self, deed: Deed) -> None:
        """A segment ends; sometimes a summary of it is made of some pages, with a title or without."""
        batch, source = self.batch, self._page(deed.b)
        summary = 0
        if source is not None and deed.a % 3:
            links = tuple({(LinkKind.DERIVES, page) for page in (source, self._page(deed.c)) if page is not None})
            fields = (PageType.SUMMARY, Modality.TEXT, Role.OTHER, 0, 0, batch.cell(b"text %d" % deed.d))
            labels = batch.cell(b'{"hint":"topic_t%d"}' % (deed.d % 3)) if deed.d % 2 else None
            summary = batch.add(Create(*fields, deed.c, deed.d, links=links, labels=labels))
            self.now.pages[summary], self.now.versions[summary], self.now.opaque[summary] = [(summary, 0)], 1, False
        self.now.segments += 1
        title = batch.cell(b"title %d" % deed.c) if deed.d % 2 else None
        batch.add(Segment(self.now.segments, summary or None, title))

    def do_guard(self, deed: Deed) -> None:
        """A guard speaks up, with a warning or without."""
        call = self._page(deed.a)
        if call is not None:
            tool, warning = self.batch.cell(b"tool%d" % (deed.b % 3)), self._page(deed.c) or 0
            self.batch.add(GuardTrip(deed.b % 4, tool, deed.c + 1, (call,), warning * (deed.d % 2)))

    def do_promote(self, deed: Deed) -> None:
        """A page describes a skill."""
        page = self._page(deed.a)
        if page is not None:
            skill = self.batch.cell(b"skill%d" % (deed.b % 3))
            self.batch.add(Promote(page, skill, deed.c, deed.c + deed.d + 1, (self._page(deed.b) or page,)))

    def do_redact(self, deed: Deed) -> None:
        """Something is hidden in a page, or the policy for secrets changes."""
        page = self._page(deed.a)
        if page is None or deed.c % 2:
            self.batch.add(Redact(policy=deed.b % 3))
        else:
            self.batch.add(Redact(page, count=deed.d + 1, found=((HiddenKind.EMAIL, 1, deed.d + 1),)))

    def do_end(self, deed: Deed) -> None:
        """A commit ends; every other time the batch is written too."""
        self.batch.end(deed.b - 20)
        if deed.a % 2:
            self.commit()

    def do_fork(self, deed: Deed) -> None:
        """A session forks at one of the commit ends, and the story goes on in the fork."""
        self.commit()
        parent, position, known = self.ends[deed.a % len(self.ends)]
        child = self.engine.fork(parent, position, f"s{self.names}", deed.b)
        self.names += 1
        self.known[child] = copy.deepcopy(known)
        self.open(child)

    def do_switch(self, deed: Deed) -> None:
        """The story goes on in another session."""
        self.commit()
        self.open(list(self.known)[deed.a % len(self.known)])
