"""The session of a memory: each act of it is one commit, of the store's own mutations.

Beside them an annotation says of the page what only this package knows: its id, its tier, who moved it and why. So a
page's past is read as of any moment by what reads anchors, and the state is folded from them (`fold.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec

from vmstore.core.asof import Position
from vmstore.core.clock import SystemClock
from vmstore.core.decision import (
    HANDED_IN,
    Cause,
    Denial,
    Evict,
    FaultDenied,
    FaultIn,
    Pin,
    Prefetch,
    Recaller,
    Reference,
    Search,
    Segment,
    Signal,
    Unpin,
    Use,
    Why,
)
from vmstore.core.decision import FaultReason as Reason
from vmstore.core.mutation import PARTIAL, Annotate, Compress, Create, Delete, Pack, Residence, Turn, Update
from vmstore.core.page import Fidelity, LinkKind, Method, Mime, Modality, PageType, Role, Tier
from vmstore.core.text.token_estimate import estimate
from vmstore.engine.batch import HandBatch
from vmstore.errors import ErasedError, InputError, OvertakenError, UnknownError
from vmstore.integrations.chuk.history.state import ENTER, WEIGH, PageStep
from vmstore.integrations.chuk.models.enums import Actor, CompressionLevel, FaultReason, MutationType, StorageTier
from vmstore.integrations.chuk.models.page import MemoryPage
from vmstore.integrations.items import as_json
from vmstore.store.session import Session
from vmstore.store.store import Store

AGENT = "chuk"
ERASED = "erased"  # in the metadata of a page whose content was
PREFIX = "chuk/"
PPM = 1_000_000
TEXT, JSON, BYTES = "text", "json", "bytes"
ASKED_CHARACTERS_MAX = 200  # of an id that no page has
ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL, "system": Role.SYSTEM}
REASONS = {
    FaultReason.USER_REQUESTED_RECALL: Reason.USER_REQUESTED_RECALL,
    FaultReason.RESOLVE_REFERENCE: Reason.RESOLVE_REFERENCE,
    FaultReason.TOOL_PREREQUISITE: Reason.TOOL_PREREQ,
    FaultReason.SPECULATIVE: Reason.SPECULATIVE,
}
APART = {"content", "page_id", "session_id", "storage_tier", "last_accessed", "access_count"}
"""Fields of a page that stand elsewhere in the log, or follow from it."""


class Encoded(NamedTuple):
    """A content as bytes: what it is, and the modality it is logged with."""

    content: bytes | None
    form: str
    modality: Modality


class Logged(msgspec.Struct):
    """A page of the log: its number, its version, where each level of that is, and whether it left the prompt.

    `forms` says of each level what its bytes are.
    """

    number: int
    version: int
    base: MemoryPage  # as it was made, without its content
    modality: Modality  # that the log has it with
    contents: dict[int, int] = {}
    forms: dict[int, str] = {}
    has_left: bool = False


class Contest(NamedTuple):
    """The contest of a decision: the room, what was used and needed, and every page that could have gone."""

    budget: int
    used: int
    need: int
    winner: str | None
    candidates: Sequence[tuple[str, float]] = ()


class PageJournal:
    """Writes what happens to pages; a session that is not there yet begins with the first of it."""

    def __init__(self, store: Store, session_id: str) -> None:
        self.store = store
        self.session_id = session_id
        self.pages: dict[str, Logged] = {}
        self.rest: bytes | None = None  # of the last request, as far as it was written here
        self.position = 0
        self.changed = 0  # the position of the last act that was no pack
        self.segment = 0
        try:
            self._session: Session | None = store.session(self.name)
        except UnknownError:
            self._session = None

    @property
    def session(self) -> Session:
        """The session of the store."""
        if self._session is None:
            self._session = self.store.session(self.name, create=True, agent=AGENT)
            self.position = self._session.info().position
        return self._session

    @property
    def name(self) -> str:
        """The name of the session of the store."""
        return PREFIX + self.session_id

    @property
    def is_new(self) -> bool:
        """Whether nothing was written yet."""
        return self._session is None

    def fork(self, session_id: str) -> None:
        """Goes on in a session of another id, which shares all that is written so far."""
        self._session = self.session.fork(PREFIX + session_id)
        self.session_id = session_id
        self.position = self._session.info().position

    def number(self, page_id: str) -> int:
        """The number of a page; UnknownError where there is none of that id."""
        try:
            return self.pages[page_id].number
        except KeyError:
            raise UnknownError(
                f"there is no page {page_id!r:.80} in session {self.name!r}; create_page makes pages", code="no-page"
            ) from None

    def has_content(self, page_id: str) -> bool:
        """Whether a page was handed in with a content."""
        return page_id in self.pages and 0 in self.pages[page_id].contents

    def whole(self, page_id: str) -> MemoryPage:
        """A page as the log has it, at level 0; without content, and marked so, where that was erased."""
        logged = self.pages[page_id]
        if 0 not in logged.contents:
            return logged.base.model_copy(deep=True)
        return logged.base.model_copy(update=self.content(page_id, CompressionLevel.FULL, self.position), deep=True)

    def content(self, page_id: str, level: CompressionLevel, position: int) -> dict[str, Any]:
        """The content of a page at a level and a moment, as the fields it changes; where it was erased, that it was."""
        logged = self.pages[page_id]
        try:
            content = self.session.content(logged.number, Position(position), level=level)
        except ErasedError:
            return {"content": None, "metadata": logged.base.metadata | {ERASED: True}}
        return {"content": decoded(content, logged.forms[level])}

    @contextmanager
    def act(self, turn: int) -> Iterator[Act]:
        """One act: all that is added within is durable when it ends, or nothing is."""
        session, at_us = self.session, SystemClock().now()
        with session.batch(at_us=at_us) as batch:
            if batch.position != self.position + 1:
                raise OvertakenError(
                    f"somebody else wrote to session {self.name!r}; make the MemoryManager again, which takes it in"
                )
            act = Act(self, batch, turn, at_us)
            yield act
            position = batch.position - 1
        self.position = position
        if not act.is_read_back:
            self.pages |= act.pages
        if not act.is_pack:
            self.changed = position


class Act:
    """Adds mutations to a commit under way, and lists the steps they come to."""

    def __init__(self, journal: PageJournal, batch: HandBatch, turn: int, at_us: int) -> None:
        self.is_read_back = batch.redacts
        self.began = batch.position - 1
        self._journal = journal
        self._batch = batch
        self._turn = turn
        self._at_us = at_us
        self.pages: dict[str, Logged] = {}
        self.steps: list[PageStep] = []
        self.is_pack = False

    # ---- what happens to pages

    def create(self, page: MemoryPage, hint: str | None, actor: Actor, cause: str) -> None:
        """A page is made; what it comes of is linked where that is a page of the session."""
        made = encoded(page.content, Modality[page.modality.name])
        batch, content = self._batch, made.content or b""
        sources = {known.number: None for source in page.provenance if (known := self._known(source)) is not None}
        role = ROLES.get(str(page.metadata.get("role", "")), Role.OTHER)
        labels = {"hint": hint or page.page_id, "actor": actor.value, "mime": page.mime_type}
        number = batch.add(
            Create(
                PageType[page.page_type.name],
                made.modality,
                role,
                0,
                0,
                None if made.content is None else batch.cell(content),
                len(content),
                estimate(content, made.modality),
                {TEXT: Mime.TEXT, JSON: Mime.JSON}.get(made.form, Mime.OTHER),
                tuple((int(LinkKind.DERIVES), source) for source in sources),
                batch.cell(as_json({name: value for name, value in labels.items() if value})),
                round(page.importance * PPM),
            )
        )
        is_opaque = made.content is None
        base = page.model_copy(update={"content": None}, deep=True)
        self.pages[page.page_id] = Logged(number, 1, base, made.modality)
        if not is_opaque:
            self.pages[page.page_id] = Logged(number, 1, base, made.modality, {0: number}, {0: made.form})
        fields = page.model_dump(mode="json", exclude=APART, exclude_defaults=True)
        anchors = {"page_id": page.page_id, "fields": fields, "hint": hint, "logged_as": made.modality.word}
        step = PageStep(MutationType.CREATE, page.page_id, page.storage_tier, None, actor, cause, hint=hint, page=page)
        self._step(step, anchors)

    def enter(self, page: MemoryPage, before: StorageTier | None) -> None:
        """A page comes into the prompt."""
        logged = self._logged(page.page_id)
        if logged.has_left and logged.contents:
            reference = self._batch.add(Reference(logged.number, Use.ASKED))
            self._come(FaultIn, page, reference, before, Contest(0, 0, page.estimate_tokens(), page.page_id))
        logged.has_left = False
        self._step(PageStep(ENTER, page.page_id, StorageTier.L0, before), {})

    def fault(
        self, page: MemoryPage, before: StorageTier | None, actor: Actor, cause: str, contest: Contest,
        reason: FaultReason, *, is_wish: bool = False,
    ) -> None:  # fmt: skip
        """A page comes into the prompt because it was asked for, or because a message may need it."""
        logged = self._logged(page.page_id)
        if is_wish:
            wish = Reference(logged.number, Use.SIGNAL, level=page.compression_level, signal=Signal.RECALL)
            reference = self._batch.add(wish)
        else:
            use = Use.FAULT if actor is Actor.MODEL else Use.ASKED
            asked = Reference(logged.number, use, level=page.compression_level, reason=REASONS[reason])
            reference = self._batch.add(asked)
        if logged.contents:
            self._come(Prefetch if is_wish else FaultIn, page, reference, before, contest)
        logged.has_left = False
        tokens = page.estimate_tokens()
        step = PageStep(MutationType.FAULT_IN, page.page_id, StorageTier.L0, before, actor, cause, page=page)
        self._step(step._replace(tokens=tokens, level=page.compression_level), {})

    def _come(self, kind: Any, page: MemoryPage, reference: int, before: StorageTier | None, contest: Contest) -> None:
        """The decision that has a page in the prompt, with the content that it shows."""
        logged = self._logged(page.page_id)
        level = page.compression_level if page.compression_level in logged.contents else CompressionLevel.FULL
        content, tokens = logged.contents[level], page.estimate_tokens()
        came = kind(logged.number, content, int(level), tokens, reference, self._why(contest))
        if kind is FaultIn and before is not None:
            came = msgspec.structs.replace(came, tier=int(Tier[before.name]))
        self._batch.add(came)

    def deny(self, page_id: str, because: Denial, contest: Contest, actor: Actor) -> None:
        """A page that was asked for stays where it is."""
        known = self._known(page_id)
        number = 0 if known is None else known.number
        evidence = self._batch.cell(page_id[:ASKED_CHARACTERS_MAX].encode("utf-8", "replace")) if not number else None
        use = Use.FAULT if actor is Actor.MODEL else Use.ASKED
        reference = self._batch.add(Reference(number, use, evidence=evidence))
        self._batch.add(FaultDenied(number, reference, because, self._why(contest)))

    def evict(
        self, page_id: str, tier: StorageTier, before: StorageTier | None, cause: Cause, words: str,
        tokens: int, contest: Contest | None = None, artifact_id: str | None = None,
    ) -> None:  # fmt: skip
        """A page leaves the prompt. `contest` is what it came from, where there was one."""
        logged = self._logged(page_id)
        logged.has_left = True
        scores = {} if contest is None else dict(contest.candidates)
        score = round(scores.get(page_id, 0.0) * PPM)
        why = None if contest is None else self._why(contest, page_id)
        self._batch.add(Evict(logged.number, cause, tokens, score, why=why))
        step = PageStep(MutationType.EVICT, page_id, tier, before, cause=words, artifact_id=artifact_id)
        self._step(step, {})

    def compress(self, page: MemoryPage, tier: StorageTier, freed: int, contest: Contest | None = None) -> None:
        """A page has a shorter form, and shows it; its full content stays."""
        logged = self._logged(page.page_id)
        level = page.compression_level
        if level not in logged.contents and 0 in logged.contents:
            made = encoded(page.content, Modality.TEXT)
            content = made.content or b""
            tokens = estimate(content, Modality.TEXT)
            ref = self._batch.cell(content)
            short = Compress(logged.number, logged.version, int(level), Method.WRITTEN, 1, ref, len(content), tokens)
            logged.contents[int(level)], logged.forms[int(level)] = self._batch.add(short), made.form
        if tier is StorageTier.L0 and level in logged.contents:
            cause, why = (Cause.ASKED, None) if contest is None else (Cause.PRESSURE, self._why(contest, page.page_id))
            scores = {} if contest is None else dict(contest.candidates)
            score, shows = round(scores.get(page.page_id, 0.0) * PPM), logged.contents[int(level)]
            self._batch.add(Evict(logged.number, cause, max(0, freed), score, int(level), shows, why))
        words = f"compress_{level.name.lower()}"
        step = PageStep(MutationType.COMPRESS, page.page_id, tier, tier, cause=words, level=level, page=page)
        self._step(step._replace(tokens=page.estimate_tokens()), {})

    def update(self, page: MemoryPage, tier: StorageTier, actor: Actor, cause: str) -> None:
        """A page has another content; the one before stays in its past."""
        logged = self._logged(page.page_id)
        made = fitted(page.content, logged.modality)
        content = made.content or b""
        logged.version += 1
        changed = Update(
            logged.number, logged.version, self._batch.cell(content), len(content), estimate(content, made.modality)
        )
        logged.contents, logged.forms = {0: self._batch.add(changed)}, {0: made.form}
        logged.base = logged.base.model_copy(update={"size_tokens": page.size_tokens})
        step = PageStep(MutationType.UPDATE, page.page_id, tier, tier, actor, cause, page=page)
        self._step(step, {})

    def delete(self, page_id: str, tier: StorageTier, actor: Actor, cause: str) -> None:
        """A page holds no more; its past answers with it, until it is erased."""
        self._batch.add(Delete(self._logged(page_id).number))
        self._step(PageStep(MutationType.DELETE, page_id, tier, tier, actor, cause), {})

    def pin(self, page_id: str, tier: StorageTier, *, is_pinned: bool, cause: str) -> None:
        """A page is held in the prompt, or let go again."""
        number = self._logged(page_id).number
        self._batch.add(Pin(number) if is_pinned else Unpin(number))
        kind = MutationType.PIN if is_pinned else MutationType.UNPIN
        self._step(PageStep(kind, page_id, tier, tier if not is_pinned else None, cause=cause), {})

    def weigh(self, page_id: str, tier: StorageTier, importance: float | None, before: float) -> None:
        """A page's importance in the working set is another; None as it was made."""
        share = before if importance is None else importance
        step = PageStep(WEIGH, page_id, tier, importance=importance)
        self._step(step, {}, importance=round(share * PPM))

    # ---- what happens to the session

    def turn(self, number: int) -> None:
        """A turn begins."""
        self._batch.add(Turn(number))

    def segment(self, page_id: str) -> None:
        """A segment ends, summed up by a page."""
        self._journal.segment += 1
        self._batch.add(Segment(self._journal.segment, self._logged(page_id).number))

    def search(self, query: str, found: Sequence[str], total: int) -> None:
        """The pages were searched."""
        numbers = tuple(known.number for page_id in found if (known := self._known(page_id)) is not None)
        cell = self._batch.cell(query.encode("utf-8", "replace"))
        self._batch.add(Search(cell, numbers, total, Recaller.SEARCH_PAGES))

    def pack(self, pages: Sequence[MemoryPage], rest: bytes) -> None:
        """A model is sent pages, in their order, beside the rest of the request."""
        self.is_pack = True
        head, batch = self._batch.head, self._batch
        before = {residence[0]: residence for residence in head.order}
        rank, last = max((residence[3] for residence in head.order), default=0), -1
        shown: list[Residence] = []
        for page in pages:
            logged = self._logged(page.page_id)
            level = int(page.compression_level) if int(page.compression_level) in logged.contents else 0
            content = logged.contents.get(level, logged.number)
            known = before.get(logged.number)
            last = known[3] if known is not None and known[3] > last else (rank := rank + 1)
            shown.append((logged.number, content, level, last))
        here = {residence[0] for residence in shown}
        entered = tuple(residence for residence in shown if before.get(residence[0]) != residence)
        left = tuple(number for number in before if number not in here)
        after = head.foresee(entered, left)
        cell = None if rest == self._journal.rest else batch.cell(rest)
        counts = (after.leaves, after.tokens, after.root)
        batch.add(Pack(head.call + 1, int(Fidelity.DERIVED), *counts, entered, left, cell, renderer=PARTIAL))
        self._journal.rest = rest

    # ---- beside

    def _known(self, page_id: str) -> Logged | None:
        return self.pages.get(page_id) or self._journal.pages.get(page_id)

    def _logged(self, page_id: str) -> Logged:
        """A page of the session, to be changed by this act."""
        if page_id not in self.pages:
            self._journal.number(page_id)
            known = self._journal.pages[page_id]
            self.pages[page_id] = msgspec.structs.replace(known, contents={**known.contents}, forms={**known.forms})
        return self.pages[page_id]

    def _why(self, contest: Contest, evicted: str | None = None) -> Why:
        """The contest of a decision, with those that would have gone next."""
        known = self._known(contest.winner or "")
        scores = [round(score * PPM) for _, score in contest.candidates]
        ids = [page_id for page_id, _ in contest.candidates]
        at = ids.index(evicted) if evicted in ids else len(ids) - 1
        near = [(score, self._logged(page_id).number) for score, page_id in zip(scores, ids, strict=True)][at + 1 :]
        return Why(
            HANDED_IN,
            contest.budget,
            contest.used,
            contest.need,
            0 if known is None else known.number,
            len(ids),
            scores[at] if scores else 0,
            tuple(near[:3]),
        )

    def _step(self, step: PageStep, anchors: dict[str, Any], importance: int | None = None) -> None:
        """Takes in a step: an annotation of its page, and what the state is changed by."""
        step = step._replace(turn=self._turn, at_us=self._at_us)
        detail = {
            "kind": str(step.kind),
            "before": step.before,
            "actor": step.actor,
            "cause": step.cause,
            "turn": step.turn,
            "at": step.at_us,
            "level": int(step.level) or None,
            "tokens": step.tokens or None,
            "importance": step.importance,
            "artifact_id": step.artifact_id,
        }
        logged = self._logged(step.page_id)
        if step.page is not None:
            level = int(step.level)
            shows = {"content": logged.contents.get(level), "form": logged.forms.get(level)}
            detail |= {**shows, "size_tokens": step.page.size_tokens}
        said = {"tier": step.tier, "step": {name: value for name, value in detail.items() if value is not None}}
        number = logged.number
        cell = self._batch.cell(as_json(said | {name: value for name, value in anchors.items() if value is not None}))
        position = self._batch.add(Annotate(number, importance=importance, anchors=cell))
        self.steps.append(step._replace(name=f"p{number}@{position}"))


def encoded(content: Any, modality: Modality) -> Encoded:
    """A content as bytes: texts and bytes as they are, all else as JSON; InputError for what that cannot hold."""
    if content is None:
        return Encoded(None, TEXT, modality)
    if isinstance(content, bytes):
        return Encoded(
            content, BYTES, modality if modality not in (Modality.TEXT, Modality.STRUCTURED) else Modality.VIDEO
        )
    if isinstance(content, str):
        try:
            plain = content.encode()
        except UnicodeEncodeError:  # half a character of UTF-16
            return Encoded(as_json(content), JSON, Modality.STRUCTURED)
        return Encoded(plain, TEXT, Modality.TEXT if modality is Modality.STRUCTURED else modality)
    return Encoded(as_json(content), JSON, Modality.STRUCTURED)


def fitted(content: Any, modality: Modality) -> Encoded:
    """Another content of a page that is logged with a modality; InputError for bytes where that is of text."""
    made = Encoded(as_json(None), JSON, modality) if content is None else encoded(content, modality)
    if made.form == BYTES and modality in (Modality.TEXT, Modality.STRUCTURED):
        raise InputError(f"{content!r:.40} are bytes, and the page is {modality.word}; make a page of its own for them")
    if made.form == TEXT and modality is Modality.STRUCTURED:
        return Encoded(as_json(content), JSON, modality)
    return made


def decoded(content: bytes, form: str) -> Any:
    """A content as it was handed in."""
    if form == BYTES:
        return content
    return content.decode() if form == TEXT else json.loads(content)
