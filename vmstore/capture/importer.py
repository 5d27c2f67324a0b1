"""Imports sources: feeds the records of a file to the conversation, and only those not yet taken in.

A session remembers each record by a keyed digest. The same file again changes nothing, a grown
one adds its new part, one whose past changed continues on a fork at the last common record. An
import is hidden until it is whole, so a killed one is taken up where it stopped.
"""

from __future__ import annotations

import hmac
import os.path
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vmstore.capture.feed import Feed
from vmstore.capture.load import load, reader
from vmstore.capture.sources.step import Note, Reading, Step, Track
from vmstore.core.mutation import Mark
from vmstore.core.page import Origin
from vmstore.engine.gate import Batch, Engine, Opening
from vmstore.views.lane import NEVER, Lane

STEPS_PER_WRITE = 200
DIGEST_BYTES = 8
Progress = Callable[[int, int], None]


class Taken(NamedTuple):
    """What became of one track: its session and how many records were new."""

    session: int
    new: int
    problems: list[tuple[int, str]]


class _Past(NamedTuple):
    """A session that holds a source: its key, and the digest and position of each record."""

    session: int
    key: bytes
    digests: list[bytes]
    positions: list[int]
    hidden: bool


class Importer:
    """Takes the tracks of one reading into a store, parents before their forks and spawns."""

    def __init__(self, engine: Engine, reading: Reading, path: Path, name: str | None) -> None:
        self._engine = engine
        self._reading = reading
        self._path = path
        self._name = name
        self._steps: dict[str, list[Step]] = {}
        self._sessions: dict[str, int] = {}

    def run(self, progress: Progress | None = None) -> list[Taken]:
        """Imports every track; what became of each, in the reading's order."""
        for track in self._reading.tracks:
            inherited = self._steps[track.parent or ""][: track.inherits] if track.origin is Origin.FORK else []
            self._steps[track.part] = [*inherited, *track.steps]
        total = sum(map(len, self._steps.values()))
        done = 0
        taken = []
        for track in self._reading.tracks:
            steps = self._steps[track.part]

            def tell(count: int, before: int = done) -> None:
                if progress is not None:
                    progress(before + count, total)

            taken.append(self._track(track, steps, tell))
            self._sessions[track.part] = taken[-1].session
            done += len(steps)
        return taken

    def _track(self, track: Track, steps: Sequence[Step], tell: Callable[[int], None]) -> Taken:
        source = self._source(track)
        past, common = self._best(source, steps)
        if past is not None and common == len(steps):
            if past.hidden:
                self._complete(past.session, _at(steps, self._engine.clock.now()))
            return Taken(past.session, 0, [])
        at = _at(steps, self._engine.clock.now())
        batch: Batch | None = None
        if past is None and track.origin is not Origin.FORK:
            key = self._engine.ids.salt()
            batch = self._engine.begin(self._opening(track, source, key, steps), at)
            batch.end(at)  # a changed first record can then fork before it
            feed = Feed(self._path.name, steps, reader(self._engine, Lane(self._engine.projection.db, 0)))
        else:
            session, key, common = self._continue(track, source, past, common, at)
            positions = self._past(session, key, False).positions
            feed = Feed(self._path.name, steps, load(self._engine, session))
            feed.session = session
            feed.resume(positions[:common])
        return self._feed(feed, batch, key, common, steps, tell)

    def _feed(
        self,
        feed: Feed,
        batch: Batch | None,
        key: bytes,
        common: int,
        steps: Sequence[Step],
        tell: Callable[[int], None],
    ) -> Taken:
        """Feeds the records beyond `common`, many to a write, and completes the import."""
        at = _at(steps[:common] or steps, self._engine.clock.now())
        session = feed.session
        for index in range(common, len(steps)):
            step = steps[index]
            at = at if step.at is None else step.at
            if batch is None:
                batch = self._engine.batch(session)
            note = feed.take(index, batch, at)
            digest = hmac.digest(key, step.raw, "sha256")[:DIGEST_BYTES]
            batch.add(Mark(Mark.RECORD, index + 1, digest, note=note))
            batch.end(at)
            if feed.needs_log(index + 1) or (index + 1 - common) % STEPS_PER_WRITE == 0:
                session = batch.commit(at, dense=True)[-1].session
                self._settle(feed, session)
                batch = None
                tell(index + 1)
        if batch is not None:
            session = batch.commit(at, dense=True)[-1].session
        self._complete(session, at)
        tell(len(steps))
        return Taken(session, len(steps) - common, feed.problems)

    def _settle(self, feed: Feed, session: int) -> None:
        self._engine.follow()
        feed.session = session
        feed.conversation.read = reader(self._engine, Lane(self._engine.projection.db, session))

    def _complete(self, session: int, at: int) -> None:
        """Makes a hidden import visible by its last commit."""
        self._engine.follow()
        hidden = self._engine.projection.db.execute("SELECT hidden FROM sessions WHERE session = ?", (session,)).get
        if hidden:
            batch = self._engine.batch(session)
            batch.add(Mark(Mark.COMPLETE))
            batch.commit(at)

    # ---- which session a track belongs to

    def _source(self, track: Track) -> str:
        """Identifies a track for ever: format and the file's own session id, or its absolute path."""
        own = track.key if track.key is not None else os.path.abspath(self._path)
        part = f"#{track.part}" if track.part and not own.endswith(f"#{track.part}") else ""
        return f"{self._reading.format}:{own}{part}"

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

    def _past(self, session: Any, key: Any, hidden: bool) -> _Past:
        lane = Lane(self._engine.projection.db, session)
        rows: list[Any] = []
        for stretch in reversed(lane.upto(NEVER)):
            rows += lane.db.execute(
                "SELECT records, digest, position FROM marks WHERE session = ? AND reason = ? AND position <= ?"
                " ORDER BY position",
                (stretch.session, Mark.RECORD, stretch.high),
            ).fetchall()
        return _Past(session, key, [row[1] for row in rows], [row[2] for row in rows], hidden)

    def _continue(self, track: Track, source: str, past: _Past | None, common: int, at: int) -> tuple[int, bytes, int]:
        """The session to go on with: the one there is, or a fork at the last common record."""
        if past is None:
            parent = self._sessions[track.parent or ""]
            key = self._engine.projection.db.execute("SELECT key FROM sessions WHERE session = ?", (parent,)).get
            past, common = self._past(parent, key, False), track.inherits
        elif common == len(past.digests):
            return past.session, past.key, common
        position = past.positions[common - 1] if common else self._first_end(past.session)
        name = self._free_name(track)
        child = self._engine.fork(past.session, position, name, at, source=source, key=past.key, hidden=True)
        self._engine.follow()
        return child, past.key, common

    def _first_end(self, session: int) -> int:
        """The end of a session's first commit."""
        return int(
            self._engine.projection.db.execute("SELECT min(last) FROM commits WHERE session = ?", (session,)).get
        )

    def _opening(self, track: Track, source: str, key: bytes, steps: Sequence[Step]) -> Opening:
        titles = (step.title for step in steps if isinstance(step, Note))
        told = {"user": track.user, "agent": track.agent, "title": track.title or next(filter(None, titles), None)}
        meta = {word: text for word, text in told.items() if text}
        opening = Opening(self._free_name(track), meta, source=source, key=key, hidden=True)
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
        main = self._name or track.name or track.key or self._path.stem
        if self._name and track.part:
            main = f"{self._name}-{track.part}"
        elif track.part and not track.name:
            main = f"{main}-{track.part[:8]}"
        name, count = _printable(main), 1
        while self._engine.projection.db.execute("SELECT 1 FROM sessions WHERE name = ?", (name,)).fetchone():
            count += 1
            name = f"{_printable(main)}-{count}"
        return name


def _printable(name: str) -> str:
    """A name a session can have, made of what a source calls it."""
    return "".join(c if c.isprintable() else "_" for c in name)[:400] or "session"


def _at(steps: Sequence[Step], now: int) -> int:
    """The time of the first record that tells one, or now."""
    return next((step.at for step in steps if step.at is not None), now)
