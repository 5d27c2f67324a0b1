"""A session as the kernel sees it: which pages are in the prompt, what holds them, what was used.

`apply` folds one mutation; the same mutations give the same state, live, on import and in a
replay. Nothing else changes it, and it holds no content: tokens, levels and positions only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from vmstore.core import mutation as m
from vmstore.core.decision import Cause, Holder, Load, Use
from vmstore.core.erasure import ErasedContent
from vmstore.core.page import LinkKind, Method, Mime, Modality, PageType, Role, Standing
from vmstore.core.text.json_text import loads
from vmstore.vm.kernel.managed_page import ManagedForm, ManagedPage
from vmstore.vm.kernel.page_bars import BarredPages
from vmstore.vm.kernel.settings import PPM, KernelSettings, decoded
from vmstore.vm.policies.policy import Policy, PolicyMoment
from vmstore.vm.policies.recency import Recency2
from vmstore.vm.policies.registry import policy

RANK_STEP = 1_024
PROTECTED_CALLS = 16  # a turn may have hundreds of calls; who came back is left alone no longer than this
UNSEEN_MAX = 256  # messages no call has shown that are put behind a page that comes
Read = Callable[[int, m.CellRef], bytes]


class Exchange(msgspec.Struct):
    """The last exchange of a turn: the user's pages, and those of the model's last message."""

    said: list[int] = []
    answer: int = 0
    answered: list[int] = []


class State:
    """The kernel's view of one session. `settings` is None until somebody gave it a budget."""

    def __init__(self, read: Read) -> None:
        self._read = read  # a cell, by the position of the mutation that names it
        self.settings: KernelSettings | None = None
        self.policy: Policy | None = None
        self.factor_ppm = PPM
        self.beside = 0  # tokens of a request that are no page's
        # In estimated tokens: what a request may hold, its pages, they between faults, and the marks.
        self.whole = self.budget = self.room = self.high = self.low = 1 << 62
        self.window = 1 << 62  # what a call may be sent of the prompt
        self.position = self.turn = self.call = self.references = 0
        self.segment = self.segment_tokens = 0  # the one under way, and what was said in it so far
        self.pages: dict[int, ManagedPage] = {}
        self.here: dict[int, ManagedPage] = {}
        self.used = 0  # tokens of the pages here
        self.pinned = 0  # tokens of those that never yield
        self.rank = 0
        self.vacated = 0  # the first rank that a segment's end left free
        self.load = Load.LOW
        self.faults = self.fault_tokens = 0  # that the model asked for, served this turn
        self.asked: dict[int, None] = {}  # positions where the model asked for a page this turn
        self.packed: dict[int, m.Residence] = {}  # the prompt as the last call had it
        self.moved: dict[int, None] = {}  # pages whose place is another than there
        self.call_tokens = self.sent_tokens = 0  # of the last call: its pages', all that was sent
        self.sent: bytes | None = None  # the digest of its request
        self.recent: dict[int, Exchange] = {}  # of the last turns, by turn
        self.unseen: dict[int, None] = {}  # pages no call has shown yet
        self.returned: dict[int, tuple[int, int]] = {}  # pages that came back: from which turn, or call, they may go
        self.pinned_pages = 0
        self.barred = BarredPages()
        self.alike: dict[int, None] = {}  # pages that are like what the turn began with
        self.anchored: dict[int, list[str]] = {}  # the names of the anchors of pages that have any

    @property
    def now(self) -> PolicyMoment:
        """The current moment, as a policy counts it."""
        return PolicyMoment(self.references, self.turn)

    def tokens(self, budget: int) -> int:
        """A number of real tokens in estimated ones: the factor corrects the estimate."""
        return budget * PPM // max(self.factor_ppm, 1)  # an earlier version let in what is none

    @property
    def recall(self) -> int:
        """The estimated tokens that may be spent on what a message speaks of, at the cost of what nothing holds."""
        if self.settings is None:
            return 0
        return min(int(self.room * self.settings.recall_share), self.tokens(self.settings.recall_tokens_max))

    def _reckon(self) -> None:
        """Works out in estimated tokens what the settings say in real ones."""
        if self.settings is not None:
            further = max(0, self.beside - self.tokens(self.settings.reserve_protocol_tokens))
            self.whole = self.tokens(self.settings.l0_tokens_max)
            self.budget = max(0, self.whole - self.beside)
            self.room = max(0, self.tokens(self.settings.room) - further)
            self.high = int(self.room * self.settings.mark_hard)
            self.low = int(self.room * self.settings.mark_soft)
            window = self.settings.window_tokens_max
            self.window = self.budget if window is None else min(self.budget, self.tokens(window) - self.beside)

    def apply(self, position: int, mutation: m.AnyMutation) -> None:
        """Folds the mutation at a position."""
        self.position = position
        fold = _FOLDS.get(type(mutation))
        if fold is not None:
            fold(self, position, mutation)

    # ---- one fold a kind of mutation

    def _on_settings(self, position: int, settings: m.Settings) -> None:
        before, self.settings = self.settings, decoded(self.settings, self._read(position, settings.told))
        self._reckon()
        self.barred.ask(self.settings.artifacts == "ask", self.here)
        same = before is not None and (before.policy, before.parameters, before.l0_tokens_max) == (
            self.settings.policy,
            self.settings.parameters,
            self.settings.l0_tokens_max,
        )
        if not same:
            self.policy = policy(self.settings.policy, self.budget, **self.settings.parameters)
            for resident in sorted(self.here.values(), key=_used):
                self.policy.enter(resident, self.now)

    def _on_configure(self, position: int, configure: m.Configure) -> None:
        self.factor_ppm, self.beside = configure.factor_ppm, configure.beside
        self._reckon()

    def _on_turn(self, position: int, turn_begun: m.Turn) -> None:
        self.turn = turn_begun.number
        self.faults = self.fault_tokens = 0
        self.asked.clear()
        self._liken(dict(turn_begun.alike))
        window = self.settings.pinned_turns if self.settings else 0
        for turn in [turn for turn in self.recent if turn <= self.turn - window]:
            del self.recent[turn]
        self._release()

    @property
    def _weighs_likeness(self) -> bool:
        """Whether the policy weighs similarity and anchors; another would take a change of them for a use."""
        return isinstance(self.policy, Recency2)

    def _liken(self, alike: dict[int, int]) -> None:
        """Keeps how alike pages are to what the turn begins with, those that were like the last one too."""
        for page in dict.fromkeys((*self.alike, *alike)):
            managed = self.pages.get(page)
            if managed is not None:
                managed.similarity = min(max(alike.get(page, 0), 0), PPM)
                if self._weighs_likeness:
                    self._touched(managed)
        self.alike = dict.fromkeys(alike)

    def _on_segment(self, position: int, segment: m.Segment) -> None:
        self.segment, self.segment_tokens = segment.number, 0
        if segment.summary is not None and self.vacated and segment.summary in self.here:
            self.here[segment.summary].rank = self.vacated  # it stands where what it replaced stood
            self.moved[segment.summary] = None
        self.vacated = 0

    # ---- pages

    def _on_create(self, position: int, made: m.Create) -> None:
        self.references += 1  # being written is a page's first use, and time goes by where nothing is asked for
        managed = ManagedPage(
            page=position,
            tokens=made.tokens,
            type=PageType(made.type),
            modality=Modality(made.modality),
            importance=made.importance,
            created=self.turn,
            used=self.references,
            used_turn=self.turn,
            version=1,
            message=made.message,
            segment=self.segment,
            role=made.role,
            mime=Mime(made.mime),
            forms=[ManagedForm(position, made.tokens), None, None, None],
            opaque=made.content is None,
            anchor=made.importance if made.type == PageType.CLAIM else 0,
        )
        self.pages[position] = managed
        for kind, page in made.links:
            self._related(position, page, kind)
        if made.type == PageType.ARTIFACT and not made.message:
            self.barred.file(position, self.here)
        if self.settings is None or made.type in (PageType.RAW, PageType.VALUE) or position in self.barred:
            return
        self._enter(managed, 0, spoken=bool(made.message))
        self.unseen[position] = None
        if made.message:
            self._said(position, made)

    def _on_link(self, position: int, link: m.Link) -> None:
        self._related(link.source, link.target, link.link)

    def _on_unlink(self, position: int, ends: m.Unlink) -> None:
        source, target, kind = ends.source, ends.target, ends.link
        if kind == LinkKind.HAS_CAPTION:
            source, target, kind = target, source, LinkKind.REPRESENTS
        managed = self.pages.get(source)
        if managed is not None and kind == LinkKind.REPRESENTS and managed.origin == target:
            managed.origin = 0

    def _related(self, source: int, target: int, kind: int) -> None:
        """Keeps which pages belong together: an answer and its call, a page and what was written to stand for it."""
        if kind == LinkKind.HAS_CAPTION:
            source, target, kind = target, source, LinkKind.REPRESENTS
        managed = self.pages.get(source)
        if managed is not None and kind == LinkKind.CAUSED_BY:
            managed.answers = target
        elif managed is not None and kind == LinkKind.REPRESENTS:
            managed.origin = target

    def _said(self, position: int, made: m.Create) -> None:
        """Keeps who said what last: pairs of user and assistant, whatever tools gave in between."""
        self.segment_tokens += made.tokens
        exchange = self.recent.setdefault(self.turn, Exchange())
        if made.role == Role.USER:
            exchange.said.append(position)
        elif made.role == Role.ASSISTANT:
            if exchange.answer != made.message:
                exchange.answer, exchange.answered = made.message, []
            exchange.answered.append(position)

    def _on_update(self, position: int, new: m.Update) -> None:
        managed = self.pages[new.page]
        managed.version = new.version
        managed.forms = [ManagedForm(position, new.tokens), None, None, None]
        if managed.page in self.here:
            self._show(managed, 0)
        if managed.page in self.barred.files:
            self.barred.file(managed.page, self.here)

    def _on_approve(self, position: int, approval: m.Approve) -> None:
        if approval.session is None:
            self.barred.approve(approval.page, approval.granted, self.here)

    def _on_compress(self, position: int, made: m.Compress) -> None:
        managed = self.pages[made.page]
        if made.version == managed.version:
            managed.forms[made.level] = ManagedForm(position, made.tokens, _METHODS.get(made.method))

    def _on_annotate(self, position: int, annotation: m.Annotate) -> None:
        managed = self.pages[annotation.page]
        if annotation.importance is not None:
            managed.importance = annotation.importance
        if annotation.anchors is not None:
            self._anchor(managed, self._read(position, annotation.anchors))
        if managed.page in self.anchored or managed.anchor or managed.type is PageType.CLAIM:
            managed.anchor = managed.importance
        if annotation.importance is not None or (annotation.anchors is not None and self._weighs_likeness):
            self._touched(managed)
        if annotation.status is not None:
            self.barred.retract(managed.page, annotation.status, self.here)

    def _anchor(self, managed: ManagedPage, anchors: bytes) -> None:
        """Notes which anchors a page has; one whose value is null is taken away, and with the last its strength."""
        names = dict.fromkeys(self.anchored.pop(managed.page, ()))
        for name, value in _values(anchors).items():
            if value is None:
                names.pop(name, None)
            else:
                names[name] = None
        if names:
            self.anchored[managed.page] = [*names]
        else:
            managed.anchor = 0

    def _on_delete(self, position: int, gone: m.Delete) -> None:
        self.barred.retract(gone.page, Standing.SUPERSEDED, self.here)

    # ---- uses

    def _on_reference(self, position: int, reference: m.Reference) -> None:
        if reference.use == Use.FAULT:
            self.asked[position] = None
        if reference.page and reference.use != Use.SIGNAL:
            self._use(self.pages[reference.page])

    def _on_cite(self, position: int, cited: m.Cite) -> None:
        self._use(self.pages[cited.page])

    def _use(self, managed: ManagedPage) -> None:
        self.references += 1
        managed.uses += 1
        managed.used, managed.used_turn = self.references, self.turn
        self._touched(managed)

    def _touched(self, managed: ManagedPage) -> None:
        if self.policy is not None and managed.page in self.here:
            self.policy.touch(managed, self.now)

    # ---- decisions

    def _on_fault_in(self, position: int, served: m.FaultIn) -> None:
        managed = self.pages.get(served.page)
        if managed is None or not self._can(managed, served.level):
            return
        managed.faulted = self.turn
        if served.reference in self.asked:
            self.faults += 1
            self.fault_tokens += served.tokens
        self._bring(managed, served.level)

    def _on_prefetch(self, position: int, fetched: m.Prefetch) -> None:
        managed = self.pages.get(fetched.page)
        if managed is not None and self._can(managed, fetched.level):
            self._bring(managed, fetched.level)
            if (
                self.settings is not None and self.settings.recall_share
            ):  # it came for one message, and goes for the next
                self.returned[managed.page] = self.turn + 1, self.call + PROTECTED_CALLS

    def _on_evict(self, position: int, gone: m.Evict) -> None:
        resident = self.here.get(gone.page)
        if resident is None or not self._can(resident, gone.level or 0):  # as an earlier version let it in by hand
            return
        if gone.cause == Cause.SEGMENT:
            self.vacated = min(self.vacated or resident.rank, resident.rank)
        if gone.level is None:
            self._leave(resident, evicted=True)
        else:
            self._show(resident, gone.level)

    def _can(self, managed: ManagedPage, level: int) -> bool:
        """Whether a page can be shown so: an earlier version let in by hand what no kernel decides."""
        return self.settings is not None and managed.forms[level] is not None

    def _on_pin(self, position: int, pin: m.Pin) -> None:
        managed = self.pages[pin.page]
        self._hold(managed, managed.holders | 1 << pin.holder)

    def _on_unpin(self, position: int, unpin: m.Unpin) -> None:
        managed = self.pages[unpin.page]
        if unpin.holder == Holder.TURNS:
            managed.yields = self.turn
        else:
            self._hold(managed, managed.holders & ~(1 << unpin.holder))

    def _hold(self, managed: ManagedPage, holders: int) -> None:
        self._count(managed, -1)
        managed.holders = holders
        self._count(managed, 1)

    def _on_pressure(self, position: int, pressure: m.Pressure) -> None:
        self.load = Load(pressure.level)

    def _release(self) -> None:
        """Lets pages go again that came back long enough ago."""
        for page in [page for page, (turn, call) in self.returned.items() if turn <= self.turn or call <= self.call]:
            del self.returned[page]

    def _on_pack(self, position: int, pack: m.Pack) -> None:
        self.call = pack.call
        self._release()
        for page in pack.left:
            self.packed.pop(page, None)
        for residence in pack.entered:
            self.packed[residence[0]] = residence
        self.call_tokens, self.sent_tokens = pack.tokens, pack.sent_tokens or pack.tokens
        self.sent = pack.sent
        if len(self.packed) == len(self.here) and pack.tokens == self.used:
            self.moved.clear()
            self.unseen.clear()
        else:  # the call was sent less than the prompt holds
            there = ((page, resident.residence) for page, resident in self.here.items())
            self.moved = {page: None for page, residence in there if self.packed.get(page) != residence}
            self.unseen = {page: None for page in self.unseen if page not in self.packed}

    # ---- the prompt

    def _enter(self, managed: ManagedPage, level: int, *, spoken: bool = False) -> None:
        form = managed.forms[level]
        assert form is not None, "what is shown has a form"
        managed.level, managed.tokens, managed.entered = level, form.tokens, self.turn
        managed.rank = self._next_rank()
        if not spoken and self.settings is not None and self.settings.shape is not None:
            self._put_after()
        self.here[managed.page] = managed
        self.used += managed.tokens
        self._count(managed, 1)
        self.moved[managed.page] = None
        if self.policy is not None:
            self.policy.enter(managed, self.now)

    def _next_rank(self) -> int:
        self.rank += RANK_STEP
        return self.rank

    def _put_after(self) -> None:
        """Puts the messages that no call has shown yet behind the page that just came.

        So what comes in between two calls voids nothing of what a provider keeps, and the prompt ends with
        what was said last. Before the first call there is nothing to keep, and many messages.
        """
        if len(self.unseen) > UNSEEN_MAX:
            return
        new = [self.here[page] for page in self.unseen if page in self.here]
        for managed in sorted((managed for managed in new if managed.message and not managed.pinned), key=_rank):
            managed.rank = self._next_rank()
            self.moved[managed.page] = None

    def _bring(self, managed: ManagedPage, level: int) -> None:
        settings = self.settings
        assert settings is not None, "only a session with a budget brings pages back"
        again = managed.left + settings.cooldown_turns if managed.left >= 0 else 0
        turn = max(self.turn + settings.protected_turns, again)
        self.returned[managed.page] = turn, self.call + (1 if settings.batches else PROTECTED_CALLS)
        if managed.page in self.here:
            self._show(managed, level)
        else:
            self._enter(managed, level)

    def _show(self, managed: ManagedPage, level: int) -> None:
        """Shows a page that is here at another level, or its new content."""
        form = managed.forms[level]
        assert form is not None, "what is shown has a form"
        self.used += form.tokens - managed.tokens
        self._count(managed, -1)
        managed.level, managed.tokens = level, form.tokens
        self._count(managed, 1)
        self.moved[managed.page] = None
        self._touched(managed)

    def _leave(self, managed: ManagedPage, *, evicted: bool) -> None:
        self._count(managed, -1)
        del self.here[managed.page]
        self.used -= managed.tokens
        self.unseen.pop(managed.page, None)
        self.barred.here.pop(managed.page, None)
        managed.left = self.turn
        self.moved[managed.page] = None
        if self.policy is not None:
            self.policy.leave(managed, self.now, evicted=evicted)

    def _count(self, managed: ManagedPage, sign: int) -> None:
        """Counts a page here in, or out of, what never yields."""
        if managed.pinned and managed.page in self.here:
            self.pinned += sign * managed.tokens
            self.pinned_pages += sign

    def guarded(self) -> dict[int, None]:
        """The pages here that just came back, and are left alone a while."""
        return {page: None for page in self.returned if self._yields(page)}

    def yielding(self) -> dict[int, None]:
        """The pages here of the last turns, and those no call has shown, oldest turn first; they yield last."""
        last: dict[int, None] = {}
        for exchange in self.recent.values():
            last |= dict.fromkeys((*exchange.said, *exchange.answered))
        last |= {page: None for page in self.unseen if self.pages[page].message}
        if self.settings is not None and self.settings.batches:
            last |= {page: last.pop(page) for page in self._question() if page in last}
        return {page: None for page in last if self._yields(page)}

    def _question(self) -> list[int]:
        """The pages of the user's last message."""
        return next((exchange.said for exchange in reversed(self.recent.values()) if exchange.said), [])

    def _yields(self, page: int) -> bool:
        resident = self.here.get(page)
        return resident is not None and not resident.pinned

    def left(self) -> tuple[int, int]:
        """The faults, and their tokens, that the model has left in this turn."""
        settings = self.settings or KernelSettings()
        tokens = self.tokens(settings.fault_tokens_a_turn_max) - self.fault_tokens
        return max(0, settings.faults_a_turn_max - self.faults), max(0, tokens)

    def residences(self) -> tuple[list[m.Residence], list[int]]:
        """Pages that entered the prompt or changed in it since the last call, and those that left."""
        entered, left = [], []
        for page in sorted(self.moved):
            resident = self.here.get(page)
            if resident is None:
                if page in self.packed:
                    left.append(page)
            elif (residence := resident.residence) != self.packed.get(page):
                entered.append(residence)
        return entered, left


def _values(content: bytes) -> dict[str, object]:
    """Anchors by name; what somebody else wrote has none, and of what was erased nobody knows the name."""
    if isinstance(content, ErasedContent):
        return {"": ""}
    try:
        found = loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _rank(managed: ManagedPage) -> int:
    return managed.rank


def _used(managed: ManagedPage) -> tuple[int, int]:
    return managed.used, managed.page


_METHODS = {int(method): method for method in Method}

_FOLDS: dict[type, Callable[[State, int, Any], None]] = {
    m.Settings: State._on_settings,
    m.Configure: State._on_configure,
    m.Turn: State._on_turn,
    m.Segment: State._on_segment,
    m.Create: State._on_create,
    m.Update: State._on_update,
    m.Link: State._on_link,
    m.Unlink: State._on_unlink,
    m.Approve: State._on_approve,
    m.Compress: State._on_compress,
    m.Annotate: State._on_annotate,
    m.Delete: State._on_delete,
    m.Reference: State._on_reference,
    m.Cite: State._on_cite,
    m.FaultIn: State._on_fault_in,
    m.Prefetch: State._on_prefetch,
    m.Evict: State._on_evict,
    m.Pin: State._on_pin,
    m.Unpin: State._on_unpin,
    m.Pressure: State._on_pressure,
    m.Pack: State._on_pack,
}
