"""The text index of a namespace: a view that follows the log, and finds texts by their terms as of any moment.

Delete `text/` and it is made again. What it does not hold yet is read by each who asks and kept in memory, until
that is much; where nothing may be written, or nothing lies in the clear, all of it is in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from vmstore.core.system.logger import notices
from vmstore.log.port import Log, Progress
from vmstore.relevance.words import Analyzer
from vmstore.search.contents import contents, sealed_at, speaker, stretches, texts, tool
from vmstore.search.draft import Lexicon, SegmentDraft
from vmstore.search.folder import VERSION, IndexFolder, IndexMark, total
from vmstore.search.moment import Lane, MomentTexts
from vmstore.search.place import TEXT, analyzer, rules_of, version_of
from vmstore.search.segment import DOCS_MAX, TextSegment, merged
from vmstore.views.applier import Applier
from vmstore.views.branch import Branch
from vmstore.views.reads.system_entries import Languages

WRITTEN = 1_024  # unindexed texts each caller reads for itself; once there are as many, they are indexed on disk
GROWTH = 4  # a segment is merged with those after it once they are more than this part of it
MENDED_MAX = 2 * DOCS_MAX  # texts re-read where something was erased beside them; more are rebuilt later
MOMENTS_MAX = 8  # kept, for who asks of the same one again

OUTDATED = "holds what was erased since"
_ERASED = "SELECT DISTINCT session FROM erasures WHERE ordinal > ?"

Moments = Sequence[tuple[Branch, int]]
"""What is asked of: lanes, each up to a position."""


class IndexTail(NamedTuple):
    """What was written after a commit, up to another, as segments in memory; and what was erased by then."""

    after: int
    ordinal: int
    erasure: int
    segments: list[TextSegment]


class TextIndex:
    """The index of one namespace; `folder` is where it may lie, None where it may lie nowhere."""

    def __init__(
        self, folder: Path | None, log: Log, db: apsw.Connection, *, writable: bool = True,
        languages: Languages | None = None,
    ) -> None:  # fmt: skip
        self._folder = None if folder is None else IndexFolder(folder / TEXT)
        self._lock = None if folder is None or not writable else Applier(folder / f"{TEXT}.lock")
        self._log = log
        self._db = db
        self.languages = languages or Languages()
        self._lexicon = Lexicon(analyzer(self.languages.default))
        self._tail = IndexTail(0, 0, 0, [])
        self._moments: dict[Any, MomentTexts] = {}
        self._held: list[TextSegment] = []  # what the moments that are kept are of

    def texts(self, moments: Moments, progress: Progress | None = None) -> MomentTexts:
        """The texts in force at the moments of some lanes, lane after lane; follows the log first."""
        segments = self._reached(progress)
        lanes: list[Lane] = [
            [(stretch.session, stretch.low, stretch.high) for stretch in reversed(branch.upto(position))]
            for branch, position in moments
        ]
        if len(segments) != len(self._held) or any(a is not b for a, b in zip(segments, self._held, strict=True)):
            self._moments.clear()
            self._held = segments
        key = tuple(map(tuple, lanes))
        found = self._moments.pop(key, None) or MomentTexts(segments, lanes, self._read, self._rules(lanes))
        self._moments[key] = found
        while len(self._moments) > MOMENTS_MAX:
            self._moments.pop(next(iter(self._moments)))
        return found

    def reads(self, languages: Languages) -> bool:
        """Whether it reads texts by these languages, or now does where a fork has its parent's."""
        if version_of(languages) != version_of(self.languages):
            return False
        self.languages = languages
        return True

    def _rules(self, lanes: Iterable[Lane]) -> Analyzer:
        """The rules by which some lanes are asked together."""
        return rules_of(self.languages, (session for lane in lanes for session, _, _ in lane))

    def _read(self, places: Sequence[tuple[int, int]]) -> list[str]:
        """The texts at some places; empty where one was erased since."""
        return [text or "" for _, text in texts(self._log, self._db, sealed_at(self._db, places))]

    # ---- following

    def _reached(self, progress: Progress | None) -> list[TextSegment]:
        """All segments, up to where the views are; what is much is written down, unless another process does."""
        ordinal = int(self._db.execute("SELECT min(ordinal) FROM positions").get)
        mark, segments, wrong = self._opened()
        writes = False
        if wrong is not None and self._lock is not None and self._lock.take():
            writes = True
            mark, segments = self._sound()
        try:
            if self._tail.after != mark.ordinal or self._tail.erasure > self._erasure:
                self._tail = IndexTail(mark.ordinal, mark.ordinal, self._erasure, [])
            elif self._tail.erasure < self._erasure:
                mended = self._mended(self._tail.segments, self._tail.erasure)
                self._tail = self._tail._replace(erasure=self._erasure, segments=mended)
            for tail in self._grown(ordinal, progress):
                self._tail = tail
                if total(tail.segments) < max(WRITTEN, 1) or self._lock is None:
                    continue
                writes = writes or self._lock.take()
                if writes and self._folder is not None and self._folder.mark() == mark:
                    mark, segments = self._written(mark, segments)
        finally:
            if writes and self._lock is not None:
                self._lock.release()
        return segments + self._tail.segments

    @property
    def _erasure(self) -> int:
        """The last erasure that the views hold."""
        return int(self._db.execute("SELECT coalesce(max(ordinal), 0) FROM erasures").get)

    def _grown(self, ordinal: int, progress: Progress | None) -> Iterator[IndexTail]:
        """The tail, whenever it holds all up to a commit and another segment is full, and at the end."""
        tail, reached = self._tail, self._tail.ordinal
        draft, made = SegmentDraft(self._lexicon), list[TextSegment]()
        for stretch in stretches(self._log, tail.ordinal, ordinal):
            if len(draft) + stretch.mutations > DOCS_MAX and not draft.empty:
                tail = tail._replace(ordinal=reached, segments=_compacted([*tail.segments, *made, draft.segment()]))
                yield tail
                tail, draft, made = self._tail, SegmentDraft(self._lexicon), []
            for session, (low, high) in stretch.sessions.items():
                draft = self._taken(draft, made, session, low, high)
            reached = stretch.ordinal
            if progress is not None:
                progress(reached, ordinal)
        if reached > tail.ordinal:
            made += [] if draft.empty else [draft.segment()]
            tail = tail._replace(ordinal=reached, segments=_compacted([*tail.segments, *made]))
        yield tail

    def _taken(self, draft: SegmentDraft, made: list[TextSegment], session: int, low: int, high: int) -> SegmentDraft:
        """Takes what a session wrote into a draft, or another one where it is full."""
        self._lexicon.speak(analyzer(self.languages.of(session)))
        for content, text in texts(self._log, self._db, contents(self._db, session, low, high)):
            if len(draft) == DOCS_MAX:
                made.append(draft.segment())
                draft = SegmentDraft(self._lexicon)
            called = None if text is None else tool(self._log, self._db, content, text)
            draft.add(content, text, speaker(content), called)
        return draft

    def _written(self, mark: IndexMark, segments: Sequence[TextSegment]) -> tuple[IndexMark, list[TextSegment]]:
        """Writes the tail down."""
        assert self._folder is not None, "only an index with a folder has a lock"
        tail = self._tail
        now = _compacted([*segments, *_compacted(tail.segments, 1 << 32)])
        before = {id(segment): file for segment, file in zip(segments, mark.segments, strict=True)}
        files = tuple(before.get(id(segment)) or self._folder.write(segment) for segment in now)
        end = self._log.tail(tail.ordinal - 1, 1)[0]
        erasure = max(mark.erasure, tail.erasure)
        mark = IndexMark(VERSION, tail.ordinal, end.hash.hex(), erasure, version_of(self.languages), files)
        self._folder.settle(mark)
        self._tail = IndexTail(tail.ordinal, tail.ordinal, tail.erasure, [])
        return mark, now

    # ---- files

    def _opened(self) -> tuple[IndexMark, list[TextSegment], str | None]:
        """What lies in the folder; nothing, with what is wrong where something is."""
        if self._folder is None:
            return IndexMark(), [], None
        for _ in range(3):  # another process may put others in their place meanwhile
            mark = self._folder.mark()
            segments, wrong = self._checked(mark)
            if wrong is None:
                return mark, segments, None
            if self._folder.mark() == mark:
                break
        return IndexMark(), [], wrong

    def _checked(self, mark: IndexMark) -> tuple[list[TextSegment], str | None]:
        assert self._folder is not None, "only what lies somewhere is checked"
        if not mark.ordinal:
            return [], "was never finished" if self._folder.there else None
        if mark.version != VERSION or mark.rules != version_of(self.languages):
            return [], "is of another version"
        found = self._log.tail(mark.ordinal - 1, 1)
        if not found or found[0].hash.hex() != mark.hash:
            return [], "follows another log"
        if mark.erasure < self._erasure:
            return [], OUTDATED
        segments, changed = self._folder.segments(mark)
        return segments, None if changed is None else f"is damaged ({changed} is not what was written)"

    def _sound(self) -> tuple[IndexMark, list[TextSegment]]:
        """The valid part of the index; what is damaged, of another log or version is removed to be rebuilt."""
        assert self._folder is not None, "only an index with a folder has a lock"
        mark, segments, wrong = self._opened()
        if wrong is None:
            return mark, segments
        if wrong == OUTDATED and (cleared := self._cleared()) is not None:
            return cleared
        if wrong != OUTDATED and self._folder.mark().ordinal:
            notices().warning("%s %s and is rebuilt from the log", self._folder.path, wrong)
        self._folder.remove()
        return mark, []

    def rebuild(self, progress: Progress | None = None) -> None:
        """Rebuilds the whole index; waits for any process that writes there."""
        if self._folder is not None and self._lock is not None:
            with self._lock.taken():
                self._folder.remove()
        self._tail = IndexTail(0, 0, 0, [])
        self._reached(progress)

    # ---- erasure

    def scrub(self) -> None:
        """Removes erased content from the folder and from memory; waits for any process that writes there."""
        self._tail = IndexTail(0, 0, 0, [])
        self._moments.clear()
        self._held = []
        self._lexicon.forget()
        if self._folder is None or self._lock is None or not self._folder.path.exists():
            return
        with self._lock.taken():
            if self._cleared() is None:
                self._folder.remove()

    def _cleared(self) -> tuple[IndexMark, list[TextSegment]] | None:
        """The index without what was erased since it was marked; None where rebuilding it is cheaper."""
        assert self._folder is not None, "only an index with a folder has a lock"
        mark = self._folder.mark()
        segments, wrong = self._checked(mark._replace(erasure=self._erasure))
        erased = self._erased_since(mark.erasure)
        if wrong is not None or total([each for each in segments if _touches(each, erased)]) > MENDED_MAX:
            return None
        left = self._mended(segments, mark.erasure)
        before = {id(segment): file for segment, file in zip(segments, mark.segments, strict=True)}
        files = tuple(before.get(id(segment)) or self._folder.write(segment) for segment in left)
        mark = mark._replace(erasure=self._erasure, segments=files)
        self._folder.settle(mark)
        return mark, left

    def _erased_since(self, ordinal: int) -> list[int]:
        """The sessions in which something was erased after a commit."""
        rows: list[Any] = self._db.execute(_ERASED, (ordinal,)).fetchall()
        return [session for (session,) in rows]

    def _mended(self, segments: Sequence[TextSegment], erasure: int) -> list[TextSegment]:
        """Segments without what was erased since: those that hold anything of a session concerned are read again."""
        erased = self._erased_since(erasure)
        left: list[TextSegment] = []
        for segment in segments:
            if not _touches(segment, erased):
                left.append(segment)
                continue
            draft = SegmentDraft(self._lexicon)
            for session in sorted({*segment.runs, *segment.changed}):
                draft = self._taken(draft, left, session, *segment.reach(session))
            left += [] if draft.empty else [draft.segment()]
        return left

    def problem(self) -> str | None:
        """The fault of the index, which the next search rebuilds; None where there is none.

        While another process writes it, none is reported.
        """
        if self._folder is None:
            return None
        try:
            alone = None if self._lock is None else self._lock.take()
        except OSError:  # a folder that may only be read: nobody writes there
            alone = None
        if alone is False:
            return None
        try:
            mark = self._folder.mark()
            _, wrong = self._checked(mark)
        finally:
            if alone and self._lock is not None:
                self._lock.release()
        return wrong if mark.ordinal and mark.version == VERSION and mark.rules == version_of(self.languages) else None

    def close(self) -> None:
        """Releases the lock's file."""
        if self._lock is not None:
            self._lock.close()


def _touches(segment: TextSegment, sessions: Iterable[int]) -> bool:
    """Whether a segment holds anything of some sessions."""
    return any(session in segment.runs or session in segment.changed for session in sessions)


def _compacted(segments: list[TextSegment], growth: int = GROWTH) -> list[TextSegment]:
    """Segments with the last ones merged as long as they are not much smaller than the one before them."""
    found = list(segments)
    while len(found) > 1:
        before, last = found[-2:]
        if before.docs + last.docs > DOCS_MAX or before.docs >= growth * max(last.docs, 1):
            break
        found[-2:] = [merged([before, last])]
    return found
