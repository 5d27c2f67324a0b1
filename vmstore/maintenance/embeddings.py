"""Embeds what has no vector yet: texts go to the embedder outside every lock, and what it says into the log.

What is embedded is what is searched: the content in force of each page that is text. The work can be stopped at any
moment and resumes where it stopped, for what has its vectors in the log is not asked about again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import apsw

from vmstore.core.page import Modality, PageType
from vmstore.core.text.tokenizer import readable
from vmstore.core.vectors import Embed, Quantisation, packed_vector
from vmstore.embedders.chunks import chunks
from vmstore.embedders.embedder import (
    TEXTS_TIMEOUT_S,
    Embedder,
    EmbedderTimeoutError,
    vectors_of,
)
from vmstore.errors import EmbedderError, ErasedError, InputError, UnknownError
from vmstore.log.port import Progress
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.reports import EmbeddedShare, EmbeddingReport
from vmstore.namespace.results import SessionInfo
from vmstore.redact.find import spans
from vmstore.views.branch import NEVER, Branch
from vmstore.views.erased_cells import erased_among
from vmstore.views.stored_cells import read_cells

BATCH = 64  # chunks that are asked about at once
MASKED = "[secret]"
EMBEDDED = frozenset((Modality.TEXT, Modality.STRUCTURED))
LEFT_OUT = frozenset((PageType.RAW, PageType.VALUE))


class UnembeddedContent(NamedTuple):
    """A content without a vector of a model: in whose log one is to stand, whose page it is, and where it lies."""

    session: int
    page: int
    position: int
    cell: int
    commitment: bytes


class EmbeddedText(NamedTuple):
    """A content on its way to an embedder: where its chunks are, and what is asked about each."""

    content: UnembeddedContent
    places: list[tuple[int, int]]
    texts: list[str]


class EmbeddingAnswer(NamedTuple):
    """The embedding of a content: the places of its chunks, and their encoded vectors."""

    content: UnembeddedContent
    places: list[tuple[int, int]]
    vectors: bytes


class EmbeddingRun:
    """One run over a namespace, with what came of it so far."""

    def __init__(
        self, ns: Namespace, embedder: Embedder, *, batch: int = BATCH, quantisation: str = "int8",
        timeout_s: float = TEXTS_TIMEOUT_S, progress: Progress | None = None,
    ) -> None:  # fmt: skip
        kept = Quantisation.of(quantisation) if isinstance(quantisation, str) else None
        if kept is None:
            words = ", ".join(one.word for one in Quantisation)
            raise InputError(
                f"there is no quantisation {quantisation!r:.40}; there are {words}", code="no-quantisation"
            )
        if type(batch) is not int or batch < 1:
            raise InputError(f"batch {batch!r:.40} is no number of chunks from 1 up", code="not-a-limit")
        self._ns, self._embedder, self._progress = ns, embedder, progress
        self._batch, self._quantisation, self._timeout_s = batch, int(kept), timeout_s
        self._dimension: int | None = None
        self._again: dict[int, EmbeddingAnswer | None] = {}  # by cell, of contents that several pages share
        self._total = self._shown = 0
        self.contents = self.vectors = self.copied = self.empty = 0
        self.failed: dict[str, int] = {}  # contents, by what the embedder said of them
        self.stopped: str | None = None

    def over(self, sessions: Sequence[int], *, inherited: bool = False, limit: int | None = None) -> EmbeddingReport:
        """Embeds what the sessions have without a vector, and says what came of it."""
        self._ns.engine  # noqa: B018 (refuses where the handle is for reading)
        with self._ns.asking():
            self._same_form()
            views, model = self._ns.views, self._embedder.name
            wanted = [one for key in sessions for one in unembedded(views, key, model, inherited)]
        wanted = wanted if limit is None else wanted[:limit]
        self._total = len(wanted)
        self._again = dict.fromkeys(cell for cell, times in Counter(one.cell for one in wanted).items() if times > 1)
        waiting: list[EmbeddedText] = []
        try:
            for text in self._texts(wanted):
                waiting.append(text)
                if sum(len(one.texts) for one in waiting) >= self._batch:
                    self._embed(waiting)
                    waiting = []
            self._embed(waiting)
            self._tell()
        except EmbedderError as error:
            self.stopped = str(error)
        return self._report()

    @property
    def _done(self) -> int:
        """The contents that were come to."""
        return self.contents + self.empty + sum(self.failed.values())

    def _tell(self) -> None:
        """Tells how many contents were come to, where more were than was told."""
        if self._progress is not None and self._done > self._shown:
            self._shown = self._done
            self._progress(self._shown, self._total)

    def _report(self) -> EmbeddingReport:
        return EmbeddingReport(
            model=self._embedder.name,
            dimension=self._embedder.dimension,
            contents=self.contents,
            vectors=self.vectors,
            copied=self.copied,
            empty=self.empty,
            failed=dict(self.failed),
            left=self._total - self._done,
            stopped=self.stopped,
        )

    def _same_form(self) -> None:
        """Raises where the log has vectors of the model with another dimension."""
        found: Any = self._ns.views.execute(_DIMENSION, (self._embedder.name,)).get
        wanted = self._embedder.dimension
        if found is not None and wanted is not None and found != wanted:
            raise InputError(
                f"the log has vectors of {self._embedder.name!r} with {found:,} numbers, and the embedder says "
                f"{wanted:,}; a model that is another has another name",
                code="other-dimension",
            )
        self._dimension = found

    # ---- texts

    def _texts(self, wanted: Iterable[UnembeddedContent]) -> Iterator[EmbeddedText]:
        """The contents that are text, as they are asked about; what was embedded elsewhere is copied."""
        some: list[UnembeddedContent] = []
        for content in wanted:
            some.append(content)
            if len(some) == self._batch:
                yield from self._read(some)
                some = []
        yield from self._read(some)

    def _read(self, some: Sequence[UnembeddedContent]) -> Iterator[EmbeddedText]:
        with self._ns.asking():
            erased = set(erased_among(self._ns.views, [one.cell for one in some]))
            there = [one for one in some if one.cell not in erased]
            cells = read_cells(
                self._ns.log, self._ns.views, {one.cell: one.commitment for one in there}, instead=lambda _: b""
            )
            copies = [self._copy(one) for one in there]
        self.empty += len(some) - len(there)
        known: list[EmbeddingAnswer] = []
        for one, copy in zip(there, copies, strict=True):
            text = readable(cells[one.cell]) or ""
            places = chunks(text)
            if not places:
                self.empty += 1
            elif (copy := copy or self._again.get(one.cell)) is not None:
                known.append(copy._replace(content=one))
            else:
                yield EmbeddedText(one, places, masked(text, places))
        self._write(known)
        self.copied += len(known)

    def _copy(self, content: UnembeddedContent) -> EmbeddingAnswer | None:
        """The vectors that the author of an inherited content gave it after the fork."""
        owner = Branch(self._ns.views, content.session).owner(content.position)
        if owner == content.session:
            return None
        asked = (owner, content.position, self._embedder.name, self._quantisation)
        rows: list[Any] = self._ns.views.execute(_OF_PARENT, asked).fetchall()
        places = [(begins, ends) for position, _, _, begins, ends in rows if position == rows[0][0]]
        if not rows:
            return None
        _, cell, commitment, *_ = rows[0]
        try:
            packed = read_cells(self._ns.log, self._ns.views, {cell: commitment})[cell]
        except ErasedError:
            return None
        return EmbeddingAnswer(content, places, packed)

    # ---- vectors

    def _embed(self, waiting: Sequence[EmbeddedText]) -> None:
        """Asks about some contents at once; where that fails about each by itself, as long as any is answered."""
        if not waiting:
            return
        try:
            self._write(self._answers(waiting))
            return
        except EmbedderTimeoutError:
            raise
        except EmbedderError as error:
            first = error
        refused: list[str] = []
        several = 2 if len(waiting) > 1 or self.contents else 1
        for nth, one in enumerate(waiting, 1):
            try:
                self._write(self._answers([one]))
            except EmbedderTimeoutError:
                raise
            except EmbedderError as error:
                refused.append(str(error))
                if len(refused) == nth == several:  # no text is answered, so it is not the fault of one
                    raise first from error
        for why in refused:
            self.failed[why] = self.failed.get(why, 0) + 1

    def _answers(self, waiting: Sequence[EmbeddedText]) -> list[EmbeddingAnswer]:
        texts = [text for one in waiting for text in one.texts]
        vectors: list[list[float]] = []
        for start in range(0, len(texts), self._batch):
            vectors += vectors_of(self._embedder, texts[start : start + self._batch], self._timeout_s)
        found = {len(vector) for vector in vectors} | ({self._dimension} if self._dimension else set())
        if len(found) > 1:
            sizes = " and ".join(map(str, sorted(found)))
            raise EmbedderError(
                f"the embedder {self._embedder.name!r} answered with vectors of {sizes} numbers; a model that is "
                "another has another name"
            )
        self._dimension = found.pop()
        answers, at = [], 0
        for one in waiting:
            own = vectors[at : at + len(one.texts)]
            at += len(one.texts)
            packed = b"".join(packed_vector(vector, self._quantisation) for vector in own)
            answers.append(EmbeddingAnswer(one.content, one.places, packed))
            if one.content.cell in self._again:
                self._again[one.content.cell] = answers[-1]
        return answers

    def _write(self, answers: Sequence[EmbeddingAnswer]) -> None:
        """Writes what was answered, a commit a session; nothing of what was erased meanwhile."""
        by: dict[int, list[EmbeddingAnswer]] = {}
        for answer in answers:
            by.setdefault(answer.content.session, []).append(answer)
        ns = self._ns
        for session, own in by.items():
            with ns.lock, ns.engine.log.alone():
                ns.engine.follow()
                erased = set(erased_among(ns.views, [answer.content.cell for answer in own]))
                there = [answer for answer in own if answer.content.cell not in erased]
                if there:
                    self._commit(session, there)
            self.contents += len(there)
            self.empty += len(own) - len(there)
            self.vectors += sum(len(answer.places) for answer in there)
            self._tell()

    def _commit(self, session: int, answers: Sequence[EmbeddingAnswer]) -> None:
        assert self._dimension is not None, "an answer tells it"
        ns, batch = self._ns, self._ns.engine.batch(session)
        model = batch.cell(self._embedder.name.encode())
        batch.redact(None)  # what was asked about was masked; numbers hold no words
        for content, places, packed in answers:
            vectors = batch.cell(packed)
            chunks = tuple(places)
            batch.add(
                Embed(content.page, content.position, model, self._dimension, self._quantisation, chunks, vectors)
            )
        batch.commit(ns.clock.now())


class SessionKeys(Protocol):
    """A store as far as this asks it."""

    _ns: Namespace

    def sessions(self) -> list[SessionInfo]:
        """Every session by name."""
        ...


def sessions_to_embed(store: SessionKeys, names: str | Iterable[str] | None) -> list[int]:
    """The keys of the sessions named, or of all; UnknownError for one that is not there."""
    ns = store._ns
    with ns.views_lock:
        known = [info.session for info in store.sessions()]
        keys = {name: ns.key(name) for name in known} if names is None else {}
        for name in (names,) if isinstance(names, str) else names or ():
            keys[name] = ns.key(name)
            if keys[name] is None:
                raise UnknownError(f"there is no session {name!r}; {ns.nearest(name, known)}", code="no-session")
    return [key for key in keys.values() if key is not None]


def embedded(store: SessionKeys) -> list[EmbeddedShare]:
    """How many of the texts in force have vectors, by model; the embedder at hand is one, be there none of its."""
    ns = store._ns
    with ns.asking():
        keys = sessions_to_embed(store, None)
        known: dict[str, int | None] = dict(ns.views.execute(_MODELS))
        if ns.embedder is not None:
            known.setdefault(ns.embedder.name, ns.embedder.dimension)
        texts = sum(len(unembedded(ns.views, key, "")) for key in keys)
        lacking = {model: sum(len(unembedded(ns.views, key, model)) for key in keys) for model in known}
        return [EmbeddedShare(model, known[model], texts - lacking[model], texts) for model in sorted(known)]


def masked(text: str, places: Sequence[tuple[int, int]]) -> list[str]:
    """The text of each chunk for an embedder, with secrets masked whatever the session's policy."""
    secrets = spans(text)
    found = []
    for begins, ends in places:
        kept, at = [], begins
        for secret in secrets:
            if secret.start < ends and secret.end > begins:
                kept += [text[at : max(at, secret.start)], MASKED]
                at = max(at, secret.end)
        kept.append(text[at:ends])
        found.append("".join(kept))
    return found


def unembedded(db: apsw.Connection, session: int, model: str, inherited: bool = False) -> list[UnembeddedContent]:
    """The contents in force at a session's end that have no vector of a model: its own, or those it inherited too."""
    lane = Branch(db, session)
    stretches = lane.upto(NEVER) if inherited else lane.alone().upto(NEVER)
    found: dict[int, tuple[int, int, bytes]] = {}  # by page: position, cell, commitment
    done: set[int] = set()
    for stretch in reversed(stretches):
        bounds = (stretch.session, stretch.low, stretch.high)
        for page, position, cell, commitment in db.execute(_CONTENTS, bounds):
            if cell is None:
                found.pop(page, None)
            else:
                found[page] = position, cell, commitment
    for stretch in lane.upto(NEVER):
        done.update(row[0] for row in db.execute(_DONE, (stretch.session, stretch.high, model)))
    own = [UnembeddedContent(session, page, *place) for page, place in found.items() if place[0] not in done]
    kinds = _kinds(lane, [one.page for one in own])
    return [one for one in own if kinds.get(one.page, False)]


def _kinds(lane: Branch, pages: Sequence[int]) -> dict[int, bool]:
    """The pages whose content is embedded."""
    rows = lane.rows(_KINDS, pages)
    return {page: modality in EMBEDDED and kind not in LEFT_OUT for page, modality, kind in rows}


_CONTENTS = """SELECT page, position, cell, commitment FROM versions
  WHERE session = ? AND position > ? AND position <= ? AND level = 0 ORDER BY position"""
_DONE = "SELECT content FROM vectors WHERE session = ? AND position <= ? AND model = ? AND chunk = 1"
_MODELS = "SELECT model, max(dimension) FROM vectors GROUP BY model"
_DIMENSION = "SELECT dimension FROM vectors WHERE model = ? LIMIT 1"
_OF_PARENT = """SELECT position, cell, commitment, begins, ends FROM vectors
  WHERE session = ? AND content = ? AND model = ? AND quantisation = ? ORDER BY position, chunk"""
_KINDS = """SELECT page, modality, type FROM pages
  WHERE session = ? AND page IN (SELECT value FROM json_each(?))"""
