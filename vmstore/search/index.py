"""The text index of a namespace: a tantivy folder that follows the log, to find contents by their words.

A view like the others: delete `text/` and it is made again. It knows of each content its words,
who wrote it where, and how many texts and words it adds; which of them is in force, and how well
it answers, is settled by who asks. What was written since it last followed is read instead,
until that is much.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import apsw

from vmstore.core.system.logger import notices
from vmstore.core.system.safe_files import read_within
from vmstore.errors import CorruptError
from vmstore.log.port import Log, Progress
from vmstore.search.corpus import ContentTerms, CorpusTotals, IndexedContent, ScanCorpus
from vmstore.views.applier import Applier
from vmstore.views.branch import BranchRange

TEXT = "text"
MARK = "at.json"
CHANGING = ("meta.json", ".managed.json")  # tantivy's lists of its files; the others are never written again
States = dict[str, tuple[int, int, int] | None]
VERSION = 3
HEAP_BYTES = 15_000_000
BEHIND = 1024  # mutations since it last followed, or a quarter as many commits: fewer are read by each who asks
HEAPS, M_ARENA_MAX = 2, -8  # how many of glibc's, and what glibc calls that
NUMBERS = ("session", "position", "seen_texts", "seen_words", "alone_texts", "alone_words")


def installed() -> bool:
    """Whether the extra `search` is."""
    return find_spec("tantivy") is not None


def library() -> Any:
    """Loads tantivy, which is worth its time only where something is searched."""
    import tantivy

    return tantivy


def share_heaps() -> None:
    """Has threads share a few of glibc's heaps.

    Each writer has threads of its own, and glibc a heap for each: 14 MiB that are freed at the end of
    one stay with it, one heap after another.
    """
    _allocator("mallopt", M_ARENA_MAX, HEAPS)


def give_back() -> None:
    """Gives freed memory back to the system, where glibc keeps it."""
    _allocator("malloc_trim", 0)


def _allocator(function: str, *arguments: int) -> None:
    import ctypes

    known = getattr(ctypes.CDLL(None), function, None)  # other allocators have none of these
    if known is not None:
        known(*arguments)


class IndexMark(NamedTuple):
    """How far an index has followed the log: the commit, its hash, how many documents there are then, its files."""

    version: int = VERSION
    ordinal: int = 0
    hash: str = ""
    documents: int = 0
    files: Mapping[str, str] = MappingProxyType({})  # SHA-256 by name


@contextmanager
def panics_named(path: Path) -> Iterator[None]:
    """Turns what tantivy says of damaged files, a panic that is no Exception among it, into an error of ours."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, (ValueError, OSError)) and type(error).__name__ != "PanicException":
            raise
        raise CorruptError(f"{path} is damaged ({error}); delete it, and it is made again") from error


class TextIndex:
    """The index of one namespace's folder."""

    def __init__(self, folder: Path, log: Log, db: apsw.Connection) -> None:
        self.path = folder / TEXT
        self._lock = Applier(folder / f"{TEXT}.lock")
        self._log = log
        self._db = db
        self._library = library()
        self._proven: tuple[IndexMark, States] | None = (
            None  # the files whose bytes were compared, and their states then
        )
        self._schema = schema()

    def corpus(self, ordinal: int, progress: Progress | None = None) -> IndexedCorpus:
        """The texts as of a commit the views have reached; follows the log first where much is new to it.

        Unless another process does: then what is new is read, however much it is.
        """
        mark = self._mark()
        index, wrong = self._open(mark)
        if (wrong is not None or self._behind(mark, ordinal)) and self._lock.take():
            try:
                self._follow(ordinal, progress)
            finally:
                self._lock.release()
            give_back()
            mark = self._mark()
            index, _ = self._open(mark)
        return IndexedCorpus(
            self.path, self._schema, index, ScanCorpus(self._log, self._db, mark.ordinal if index is not None else 0)
        )

    def _behind(self, mark: IndexMark, ordinal: int) -> bool:
        """Whether more was written since than each who asks should read again."""
        if ordinal - mark.ordinal >= BEHIND // 4:
            return True
        return sum(commit.count for commit in self._log.tail(mark.ordinal, BEHIND // 4)) >= BEHIND

    def _open(self, mark: IndexMark) -> tuple[Any, str | None]:
        """The index at a mark; or None, with what is wrong where something is."""
        if not mark.ordinal:
            return None, "was never finished" if self.path.exists() else None
        if mark.version != VERSION:
            return None, "is of another version"
        found = self._log.tail(mark.ordinal - 1, 1)
        if not found or found[0].hash.hex() != mark.hash:
            return None, "follows another log"
        if (changed := self._changed(mark)) is not None:
            return None, f"is damaged ({changed} is not what was written)"
        try:
            with panics_named(self.path):
                index = self._library.Index.open(str(self.path))
                documents = index.searcher().num_docs
        except CorruptError as error:
            return None, f"is damaged ({error.__cause__})"
        return (index, None) if documents == mark.documents else (None, "lost some of its texts")

    def _changed(self, mark: IndexMark) -> str | None:
        """A file that is not what it was when the index was marked; what was compared once is not read again.

        What the mark does not name a killed process left, and the list of files that is named leaves it out.
        """
        states = {name: _state(self.path / name) for name in mark.files}
        if self._proven == (mark, states):
            return None
        for name in sorted(mark.files):
            if _digest(self.path / name) != mark.files[name]:
                return name
        self._proven = mark, states
        return None

    def _files(self) -> list[Path]:
        """The files that answers come from: locks and the mark are none."""
        try:
            return [file for file in self.path.iterdir() if file.suffix != ".lock" and not file.name.startswith(MARK)]
        except OSError:
            return []

    def problem(self) -> str | None:
        """What is wrong with the index, which is made anew when something is searched; None where nothing is.

        While another process is at it nothing is said.
        """
        try:
            alone = self._lock.take()
        except OSError:  # a folder that may only be read: nobody writes there
            alone = None
        if alone is False:
            return None
        try:
            mark = self._mark()
            _, wrong = self._open(mark)
        finally:
            if alone:
                self._lock.release()
        return wrong if mark.ordinal and mark.version == VERSION else None

    def close(self) -> None:
        """Lets go of the lock's file."""
        self._lock.close()

    def _follow(self, ordinal: int, progress: Progress | None) -> None:
        mark = self._sound()
        if mark.ordinal >= ordinal:
            return
        scan = ScanCorpus(self._log, self._db, mark.ordinal)
        self.path.mkdir(exist_ok=True)
        index = self._library.Index(self._schema, path=str(self.path), reuse=True)
        share_heaps()
        writer = index.writer(HEAP_BYTES, 1)
        added = 0
        for gain in scan.gains(scan.everything()):
            writer.add_document(document(gain))
            added += 1
            if progress is not None and added % 1000 == 0:
                progress(added, added)
        writer.commit()
        writer.wait_merging_threads()
        end = self._log.tail(ordinal - 1, 1)[0]
        files = {file.name: mark.files.get(file.name) or _digest(file) for file in self._files()}
        changing = {name: _digest(self.path / name) for name in CHANGING}
        self._write(IndexMark(VERSION, ordinal, end.hash.hex(), mark.documents + added, files | changing))

    def _sound(self) -> IndexMark:
        """How far the index is; one that is damaged, of another log or of another version is made anew."""
        mark = self._mark()
        _, wrong = self._open(mark)
        if wrong is None:
            return mark
        if mark.ordinal:
            notices().warning("%s %s and is made anew from the log", self.path, wrong)
        if self.path.exists():
            shutil.rmtree(self.path)
        return IndexMark()

    def _mark(self) -> IndexMark:
        try:
            mark = IndexMark(**json.loads(read_within(self.path / MARK, link=False)))
            return mark if isinstance(mark.files, dict) and type(mark.ordinal) is int else IndexMark()
        except (OSError, ValueError, TypeError):
            return IndexMark()

    def _write(self, mark: IndexMark) -> None:
        """Last, and at once: without it the index counts as never finished."""
        beside = self.path / f"{MARK}.new"
        beside.write_text(json.dumps(mark._asdict()))
        os.replace(beside, self.path / MARK)


def _state(file: Path) -> tuple[int, int, int] | None:
    """What shows that a file may have changed; None where it is not there."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as reading:
            return hashlib.file_digest(reading, "sha256").hexdigest()
    except OSError:
        return ""


class IndexedCorpus:
    """A corpus: what the index knows, and what was written after it, read."""

    def __init__(self, path: Path, schema: Any, index: Any, rest: ScanCorpus) -> None:
        self._path = path
        self._schema = schema
        self._searcher = None if index is None else index.searcher()
        self.rest = rest

    def holding(self, wanted: Sequence[str], stretches: Iterable[BranchRange]) -> Iterator[tuple[int, int]]:
        """What the index finds, and all it does not know yet."""
        stretches = list(stretches)
        if self._searcher is not None and self._searcher.num_docs:
            term = library().Query.term_set_query(self._schema, "words", list(wanted))
            for stretch in stretches:
                query = self._within(stretch, term)
                most = min(self._searcher.num_docs, stretch.high - stretch.low)
                with panics_named(self._path):
                    hits = [address for _, address in self._searcher.search(query, limit=most).hits]
                    positions = self._searcher.fast_field_values("position", hits)
                yield from ((stretch.session, position) for position in positions)
        yield from self.rest.holding(wanted, stretches)

    def texts(self, contents: Iterable[IndexedContent]) -> Iterator[tuple[IndexedContent, str]]:
        """Read from the log."""
        return self.rest.texts(contents)

    def totals(self, stretches: Iterable[BranchRange], alone: bool) -> CorpusTotals:
        """The sums over the index and over the rest."""
        stretches = list(stretches)
        found = self.rest.totals(stretches, alone)
        if self._searcher is not None:
            which = "alone" if alone else "seen"
            sums = {name: {"sum": {"field": f"{which}_{name}"}} for name in CorpusTotals._fields}
            for stretch in stretches:
                with panics_named(self._path):
                    told = self._searcher.aggregate(self._within(stretch), sums)
                found = found.plus(CorpusTotals(*(int(told[name]["value"] or 0) for name in CorpusTotals._fields)))
        return found

    def _within(self, stretch: BranchRange, *more: Any) -> Any:
        """The documents a session wrote on a stretch: its own are listed, so others' are not gone through."""
        text = library()
        must = [
            text.Query.term_query(self._schema, "session", stretch.session),
            *more,
            text.Query.range_query(self._schema, "position", text.FieldType.Integer, stretch.low + 1, stretch.high),
        ]
        return text.Query.boolean_query([(text.Occur.Must, query) for query in must])


def schema() -> Any:
    """The fields of a content: its words, without where they stand in it, and six numbers."""
    builder = library().SchemaBuilder()
    builder.add_text_field("words", stored=False, tokenizer_name="whitespace", index_option="basic")
    for name in NUMBERS:
        builder.add_integer_field(name, stored=False, indexed=name == "session", fast=True)
    return builder.build()


def document(gain: ContentTerms) -> Any:
    """One content as the index takes it."""
    made = library().Document()
    made.add_text("words", " ".join(gain.words))
    numbers = (gain.content.session, gain.content.position, *gain.seen, *gain.alone)
    for name, number in zip(NUMBERS, numbers, strict=True):
        made.add_integer(name, number)
    return made
