"""Imports sources: feeds the records of a file to the conversation, and only those not yet taken in.

A session remembers each record by a keyed digest. The same file again changes nothing, a grown
one adds its new part, one whose past changed continues on a fork at the last common record. An
import is hidden until it is whole, so a killed one is taken up where it stopped.
"""

from __future__ import annotations

import hmac
import os.path
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vmstore.capture.conversation.ancestors import Ancestors, ForkPoint
from vmstore.capture.conversation.load import load, reader
from vmstore.capture.importers.formats.jsonl import stem
from vmstore.capture.importers.track_writer import TrackWriter
from vmstore.capture.redaction import reading_of
from vmstore.capture.steps import MetadataStep, ParsedSource, Step, Track
from vmstore.core.grants import CHARTER_NAME
from vmstore.core.mutation import Mark
from vmstore.core.page import Origin
from vmstore.core.redaction import Redaction
from vmstore.engine.batch import Batch
from vmstore.engine.engine import Engine
from vmstore.engine.head import NewSession
from vmstore.engine.redaction_policy import change
from vmstore.errors import ConflictError, RefusedError
from vmstore.redact.dry_run import DryRunReport
from vmstore.redact.redactor import Redactor
from vmstore.views.branch import NEVER, Branch
from vmstore.views.dispatch import uncollected
from vmstore.views.projectors.sessions import UNKNOWN_TIMES

STEPS_PER_WRITE = 200
TRIES = 64  # refusals while others write; each may be of their making
DIGEST_BYTES = 8
MOVED = "another process takes in the same source; look again at what it left"
Progress = Callable[[int, int], None]


class ImportedTrack(NamedTuple):
    """Result for one track: its session and the number of new records."""

    session: int
    new: int
    problems: list[tuple[int, str]]


class _Past(NamedTuple):
    """A session that holds a source: its key, the digest and position of each record, and where it stands."""

    session: int
    key: bytes
    digests: list[bytes]
    positions: list[int]
    hidden: bool
    stands: int


class Importer:
    """Takes the tracks of one reading into a store, parents before their forks and spawns."""

    def __init__(
        self, engine: Engine, reading: ParsedSource, path: Path, name: str | None, redaction: Redaction | None = None
    ) -> None:
        self._engine = engine
        self._reading = reading
        self._redaction = redaction  # None: as the sessions have it that hold the source
        self.doors: dict[str, Redactor] = {}  # by track, where something is hidden
        self.suspects: dict[int, DryRunReport] = {}  # by session, where nothing is
        self._path = path
        self._name = name
        self._steps: dict[str, list[Step]] = {}
        self._sessions: dict[str, int] = {}
        self._awaited: Counter[str] = Counter()  # forks yet to come, by the track they leave
        self._ancestors = Ancestors(engine)
        self._pasts: dict[str, _Past] = {}  # of tracks that were fed and that forks yet to come leave
        self._written = 0  # records of the track under way, and what could not be read of them
        self._problems: dict[tuple[int, str], None] = {}
        self._raced = False  # somebody else writes too

    def run(self, progress: Progress | None = None) -> list[ImportedTrack]:
        """Imports every track; what became of each, in the reading's order.

        RefusedError, before anything is written, where it holds what it is not to hold.
        """
        self._hide()
        for track in self._reading.tracks:
            inherited = self._steps[track.parent or ""][: track.inherits] if track.origin is Origin.FORK else []
            self._steps[track.part] = [*inherited, *track.steps]
            self._awaited[track.parent or ""] += track.origin is Origin.FORK
        total = sum(map(len, self._steps.values()))
        done = 0
        taken = []
        for track in self._reading.tracks:
            steps = self._steps[track.part]

            def tell(count: int, before: int = done) -> None:
                if progress is not None:
                    progress(before + count, total)

            self._awaited[track.parent or ""] -= track.origin is Origin.FORK
            taken.append(self._retried(track, steps, tell))
            self._sessions[track.part] = taken[-1].session
            if not self._awaited[track.parent or ""]:
                self._pasts.pop(track.parent or "", None)
            done += len(steps)
        return taken

    def _hide(self) -> None:
        """Masks the source as its sessions want it: those there are, where nobody says otherwise."""
        if self._redaction is None:
            self._engine.follow()
            sql = "SELECT max(redaction) FROM sessions WHERE source = ?"
            policies = [
                self._engine.projection.db.execute(sql, (self._source(track),)).get for track in self._reading.tracks
            ]
            kept = max(filter(None, policies), default=0)
            self._redaction = Redaction(kept) if kept else None
        if self._redaction:
            self._reading, self.doors = reading_of(self._reading, self._redaction)

    def _retried(self, track: Track, steps: Sequence[Step], tell: Callable[[int], None]) -> ImportedTrack:
        """Imports a track; where others write as well, reads what they wrote and continues from there."""
        self._written, self._problems, tries = 0, {}, 0
        while True:
            seen = self._engine.log.ordinal
            try:
                taken = self._track(track, steps, tell)
                return taken._replace(new=self._written, problems=list(self._problems))
            except RefusedError as error:
                tries += not isinstance(error, ConflictError)
                if self._engine.log.ordinal == seen or tries > TRIES:
                    raise
                self._raced = True

    def _track(self, track: Track, steps: Sequence[Step], tell: Callable[[int], None]) -> ImportedTrack:
        source, looked = self._source(track), self._engine.log.ordinal
        past, common = best = self._best(source, steps)
        if past is not None and common == len(steps):
            if past.hidden:
                self._complete(past.session, _at(steps, self._engine.clock.now()))
            return ImportedTrack(past.session, 0, [])
        at = _at(steps, self._engine.clock.now())
        batch: Batch | None = None
        if past is None and track.origin is not Origin.FORK:
            key = self._engine.ids.salt()
            if self._raced:  # opened by itself, it is not refused for what others write meanwhile
                with self._engine.log.alone():
                    self._look_again(source, steps, looked, best)
                    self._begin(track, source, key, steps, at).commit(at)
                return self._track(track, steps, tell)
            batch = self._begin(track, source, key, steps, at)
            if batch.seen != looked:
                raise ConflictError(MOVED)
            batch.end(at)  # a changed first record can then fork before it
            feed = TrackWriter(self._path.name, steps, reader(self._engine, Branch(self._engine.projection.db, 0)))
        else:
            with self._engine.log.alone():
                self._look_again(source, steps, looked, best)
                past, common, leaving = self._continue(track, source, past, common, at)
            key = past.key
            stood = load(self._engine, past.session) if leaving is None else self._ancestors.conversation(leaving)
            feed = TrackWriter(self._path.name, steps, stood)
            feed.session = past.session
            feed.resume(past.positions[:common])
            if track.part in self.doors:
                self._engine.doors.keep(past.session, self.doors[track.part])
            batch = self._batch(past.session, past.stands)
            if self._redaction is not None:
                change(self._engine, batch, self._redaction, at)
        with uncollected():
            taken, fed = self._feed(feed, batch, key, common, steps, tell)
        if self._awaited[track.part] and fed:
            before = ([], []) if past is None else (past.digests[:common], past.positions[:common])
            digests, positions = before[0] + [each[0] for each in fed], before[1] + [each[1] for each in fed]
            self._pasts[track.part] = _Past(taken.session, key, digests, positions, False, positions[-1])
        return taken

    def _begin(self, track: Track, source: str, key: bytes, steps: Sequence[Step], at: int) -> Batch:
        """A batch that opens a track's session."""
        batch = self._engine.begin(self._opening(track, source, key, steps), at)
        if batch.redaction is not None:
            batch.redact(self.doors[track.part])
        return batch

    def _batch(self, session: int, stands: int) -> Batch:
        """A batch for a session that stands where it was read; ConflictError where it went on since."""
        batch = self._engine.batch(session)
        if batch.head.position != stands:
            raise ConflictError(f"session {session} went on to position {batch.head.position} while it was read")
        return batch

    def _feed(
        self,
        feed: TrackWriter,
        batch: Batch,
        key: bytes,
        common: int,
        steps: Sequence[Step],
        tell: Callable[[int], None],
    ) -> tuple[ImportedTrack, list[tuple[bytes, int]]]:
        """Feeds the records beyond `common`, many to a write, and completes the import; their digests and positions."""
        fed: list[tuple[bytes, int]] = []
        at = _at(steps[:common] or steps, self._engine.clock.now())
        suspects = DryRunReport()
        if not batch.head.redaction:
            feed.conversation.look = suspects.look
        session, sofar = feed.session, common
        if common == len(steps) and not batch.empty:
            session = batch.commit(at, dense=True)[-1].session
        for index in range(common, len(steps)):
            step = steps[index]
            at = at if step.at is None else step.at
            note = feed.take(index, batch, at)
            digest = hmac.digest(key, step.raw, "sha256")[:DIGEST_BYTES]
            fed.append((digest, batch.add(Mark(Mark.RECORD, index + 1, digest, note=note))))
            batch.end(at)
            last = index + 1 == len(steps)
            if last or feed.needs_log(index + 1) or (index + 1 - common) % STEPS_PER_WRITE == 0:
                session = batch.commit(at, dense=True)[-1].session
                self._written, sofar = self._written + index + 1 - sofar, index + 1
                self._problems.update(dict.fromkeys(feed.problems))
                if not last:
                    stands = batch.head.position
                    self._settle(feed, session)
                    batch = self._batch(session, stands)
                    tell(index + 1)
        self._complete(session, at)
        tell(len(steps))
        if suspects.pages:
            self.suspects[session] = suspects
        return ImportedTrack(session, len(steps) - common, feed.problems), fed

    def _settle(self, feed: TrackWriter, session: int) -> None:
        self._engine.follow()
        feed.session = session
        feed.conversation.read = reader(self._engine, Branch(self._engine.projection.db, session))

    def _complete(self, session: int, at: int) -> None:
        """Makes a hidden import visible by its last commit, unless another process did."""
        batch = self._engine.batch(session)
        self._engine.follow()
        hidden = self._engine.projection.db.execute("SELECT hidden FROM sessions WHERE session = ?", (session,)).get
        if hidden:
            batch.add(Mark(Mark.COMPLETE))
            batch.commit(at)

    # ---- which session a track belongs to

    def _source(self, track: Track) -> str:
        """Identifies a track for ever: format and the file's own session id, or its absolute path."""
        own = track.key if track.key is not None else os.path.abspath(self._path)
        named = own == track.part or own.endswith(f"#{track.part}")
        part = f"#{track.part}" if track.part and not named else ""
        return f"{self._reading.known_as or self._reading.format}:{own}{part}"

    def _best(self, source: str, steps: Sequence[Step]) -> tuple[_Past | None, int]:
        """The session of a source that shares most records with a file, and how many."""
        self._engine.follow()
        db = self._engine.projection.db
        best: tuple[_Past | None, int] = (None, -1)
        for session, key, hidden in db.execute(
            "SELECT session, key, hidden FROM sessions WHERE source = ? ORDER BY session", (source,)
        ).fetchall():
            past = self._past(session, key, bool(hidden))
            common = 0
            for step, known in zip(steps, past.digests, strict=False):
                if hmac.digest(past.key, step.raw, "sha256")[:DIGEST_BYTES] != known:
                    break
                common += 1
            if common > best[1]:
                best = (past, common)
        return (best[0], max(best[1], 0))

    def _look_again(self, source: str, steps: Sequence[Step], looked: int, best: tuple[_Past | None, int]) -> None:
        """Raises ConflictError where somebody else brought on this source since it was looked for."""
        if self._engine.log.ordinal != looked and self._best(source, steps) != best:
            raise ConflictError(MOVED)

    def _past_of(self, part: str) -> _Past:
        """The part of a track that was taken in already."""
        session = self._sessions[part]
        key = self._engine.projection.db.execute("SELECT key FROM sessions WHERE session = ?", (session,)).get
        return self._past(session, key, False)

    def _past(self, session: Any, key: Any, hidden: bool) -> _Past:
        stands = self._engine.log.head(session)
        assert stands is not None, "a session of the views is in the log"
        self._engine.follow()  # where it has not moved when it is written to, all of this was read of one moment
        lane = Branch(self._engine.projection.db, session)
        rows: list[Any] = []
        for stretch in reversed(lane.upto(NEVER)):
            rows += lane.db.execute(
                "SELECT records, digest, position FROM marks WHERE session = ? AND reason = ? AND position <= ?"
                " ORDER BY position",
                (stretch.session, Mark.RECORD, stretch.high),
            ).fetchall()
        return _Past(session, key, [row[1] for row in rows], [row[2] for row in rows], hidden, stands.position)

    def _continue(
        self, track: Track, source: str, past: _Past | None, common: int, at: int
    ) -> tuple[_Past, int, ForkPoint | None]:
        """The session to go on with: the one there is, or a fork at the last common record."""
        siblings = self._awaited[track.parent or ""] if past is None else 0
        if past is None:
            past, common = self._pasts.get(track.parent or "") or self._past_of(track.parent or ""), track.inherits
        elif common == len(past.digests):
            return past, common, None
        position = past.positions[common - 1] if common else self._first_end(past.session)
        name = self._free_name(track)
        child = self._engine.fork(past.session, position, name, at, source=source, key=past.key, hidden=True)
        stands = self._engine.log.head(child)
        assert stands is not None, "it was written just now"
        leaving = ForkPoint(child, past.session, position, stands.position, siblings, self._awaited[track.part])
        digests, positions = past.digests[:common], past.positions[:common]
        return _Past(child, past.key, digests, positions, False, stands.position), common, leaving

    def _first_end(self, session: int) -> int:
        """The end of a session's first commit."""
        return int(
            self._engine.projection.db.execute("SELECT min(last) FROM commits WHERE session = ?", (session,)).get
        )

    def _opening(self, track: Track, source: str, key: bytes, steps: Sequence[Step]) -> NewSession:
        titles = (step.title for step in steps if isinstance(step, MetadataStep))
        fields = {"user": track.user, "agent": track.agent, "title": track.title or next(filter(None, titles), None)}
        meta = {word: text for word, text in fields.items() if text}
        if all(step.at is None for step in steps):
            meta["times"] = UNKNOWN_TIMES
        name, policy = self._free_name(track), self._redaction
        opening = NewSession(name, meta, source=source, key=key, hidden=True, redaction=policy)
        if track.origin is not Origin.SPAWN:
            return opening
        parent = self._sessions.get(track.parent or "")
        if parent is None:
            return opening
        page = load(self._engine, parent).calls.get(track.spawned_by or "")
        end = self._engine.head(parent).position
        return opening._replace(
            origin=Origin.SPAWN,
            parent=parent,
            parent_position=page if page is not None else end,
            spawned_by=page,
        )

    def _free_name(self, track: Track) -> str:
        """The name asked for, the track's own or the file's; a name that is taken gets a suffix."""
        main = self._name or track.name or track.key or stem(self._path)
        if self._name and track.part:
            main = f"{self._name}-{track.part}"
        elif track.part and not track.name:
            main = f"{main}-{track.part[:8]}"
        name, count = _printable(main), 1
        sql = "SELECT 1 FROM sessions WHERE name = ?"
        while name == CHARTER_NAME or self._engine.projection.db.execute(sql, (name,)).fetchone():
            count += 1
            name = f"{_printable(main)}-{count}"
        return name


def _printable(name: str) -> str:
    """A name a session can have, made of what a source calls it."""
    return "".join(c if c.isprintable() else "_" for c in name)[:400] or "session"


def _at(steps: Sequence[Step], now: int) -> int:
    """The time of the first record that tells one, or now."""
    return next((step.at for step in steps if step.at is not None), now)
