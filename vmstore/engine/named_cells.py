"""Looks at the cells that mutations name: of a batch that somebody writes by hand, and of a log that is verified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import apsw

from vmstore.cells.cell import Cell
from vmstore.core.erasure import ErasedContent, gone
from vmstore.core.mutation import AnyMutation, CellRef, Compress, Create, Message, Pack, Update, decode
from vmstore.core.text.holes import Hole, holes
from vmstore.core.text.json_text import strict
from vmstore.engine.dedup import CheckedCells
from vmstore.engine.head import GateHead
from vmstore.engine.rules.cell_contents import OPAQUE, SKELETON, CellForm, PackedMessage, PackedPage, PageFacts, named
from vmstore.errors import CorruptError, VmstoreError
from vmstore.log.commit import Commit
from vmstore.log.frame import CELLS_MAX
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.cell_resolver import CellReadahead, CellResolver
from vmstore.views.projection import Projection
from vmstore.views.reads.context import envelopes_at
from vmstore.views.stored_cells import read_cells

if TYPE_CHECKING:
    from vmstore.engine.batch import Batch

KNOWN_MAX = 50_000


def _parsed(skeleton: bytes | None) -> Sequence[Hole] | None:
    """The holes of a skeleton; none of one that was erased or cannot be read, which another rule names."""
    if not skeleton or SKELETON.wrong(skeleton) is not None:
        return None
    return list(holes(strict(skeleton)))


def _too_long(content: bytes, form: CellForm) -> str | None:
    most = form.bytes_max
    return None if most is None or len(content) <= most else f"it has {len(content):,} bytes, of {most:,} at most"


class BatchContents:
    """The contents of a batch under way, and of what its session holds; the views follow when they are asked."""

    def __init__(self, batch: Batch, log: Log, projection: Projection, follow: Any, known: CheckedCells) -> None:
        self._batch = batch
        self._log = log
        self._projection = projection
        self._follow = follow
        self._base = batch.head.position  # what stands after it is the batch's
        self._seen: Branch | None = None
        self._settled: Branch | None = None  # of what its head knows the views to hold
        self._noted: dict[Any, bytes] = {}  # earlier cells that the batch names
        self._known = known
        self._skeletons: dict[tuple[int, int], Sequence[Hole] | None] = {}  # by where they lie
        self._fit: set[tuple[int, int, str]] = set()  # cells that are of a form
        self._message = self._call = -1  # the message that was asked of last, as of a call
        self._holes: Sequence[Hole] | None = None  # and its holes

    def _lane_upto(self, position: int) -> Branch:
        """The session's branch up to a position; the views catch up only where the head does not know they hold it."""
        base = self._batch.base
        if self._seen is None and base is not None and position <= base.recent.start:
            self._settled = self._settled or Branch(self._projection.db, self._batch.head.session)
            return self._settled
        return self._lane

    @property
    def _lane(self) -> Branch:
        """The session's branch, once the views have caught up."""
        if self._seen is None:
            self._follow()
            self._seen = Branch(self._projection.db, self._batch.head.session)
        return self._seen

    def wrong(self, ref: Any, form: CellForm) -> str | None:
        """Explains why the cell that a mutation names is not of a form; None where it is, or was erased."""
        if type(ref) is int:
            fit = self._batch.first, ref, form.words
            if fit in self._fit:
                return None
        else:
            fit = *ref, form.words
            if fit in self._fit or (self._batch.head.session, *fit) in self._known.fit:
                return None
        content = self.content(ref)
        wrong = None if content is None else _too_long(content, form) or form.wrong(content)
        if wrong is None:
            self._fit.add(fit)
        return wrong

    def live(self) -> bool:
        """Whether a kernel is at work in the session."""
        return self._batch.head.live

    def note(self, ref: Any, content: bytes) -> None:
        """Remembers what a cell holds that lies before the batch."""
        self._noted[ref] = content

    def unfit(self, position: int, form: CellForm) -> str | None:
        """Explains why the content made at a position is not of a form; None where it is."""
        ref = self._batch.head.lies(position)
        if ref is not None:
            return self.wrong(ref, form)
        if self._batch.head.made(position) is not None:  # of a content the source never had
            return None
        row: Any = next(self._lane.rows(_CONTENT, [position]), (None, None))
        content = self._read(*row)
        return None if content is None else form.wrong(content)

    def content(self, ref: Any) -> bytes | None:
        """The bytes of a cell, of the commit under way by its index; None where they were erased."""
        batch = self._batch
        if type(ref) is int:
            return batch.pending_content(ref)
        if (noted := self._noted.get(ref)) is not None:
            return noted
        position, index = ref
        for commit in batch.commits:
            if commit.first <= position <= commit.last:
                cell = commit.cells[index]
                return None if cell.erased else cell.content
        return self._earlier(position, index)

    def _earlier(self, position: int, index: int) -> bytes | None:
        """The bytes of a cell that an earlier commit brought; None where they were erased."""
        lane = self._lane
        row: Any = lane.db.execute(_COMMIT, (lane.owner(position), position)).fetchone()
        number = row[1] + index
        commitment = self._log.tail(row[0] - 1, 1)[0].commitment(index)
        return self._read(number, commitment)

    def _read(self, cell: int | None, commitment: bytes | None) -> bytes | None:
        if cell is None:
            return None
        content = read_cells(self._log, self._lane.db, {cell: commitment}, gone)[cell]
        return None if isinstance(content, ErasedContent) else content

    def touched(self, head: GateHead, m: Pack) -> Iterator[PackedMessage]:
        """The messages of which a pack changes a page or the skeleton."""
        order = head.after(m.entered, m.left)
        place = self._facts({page for page, *_ in order} | set(m.left))
        envelopes = dict(m.envelopes)
        shown: dict[int, list[PackedPage]] = {place[page].message: [] for page in m.left}
        shown.update((place[page].message, []) for page, *_ in m.entered)
        shown.update((message, []) for message in envelopes)
        for page, content, level, _ in order:
            if (pages := shown.get(place[page].message)) is not None:
                pages.append(PackedPage(place[page].part, content, level))
        shown.pop(0, None)
        for message, pages in sorted(shown.items()):
            if pages:
                holes = self.holes_in(envelopes[message]) if message in envelopes else self.holes(message)
                yield PackedMessage(message, holes, pages)

    def page(self, page: int) -> PageFacts:
        """The type, modality and sizes of a page."""
        return self._facts([page])[page]

    def holes(self, message: int) -> Sequence[Hole] | None:
        """The holes of a message's skeleton as it stands; None where it was erased."""
        call = self._batch.head.call  # only a pack gives it another skeleton
        if message != self._message or call != self._call:
            self._holes, self._message, self._call = self._holes_of(message), message, call
        return self._holes

    def _holes_of(self, message: int) -> Sequence[Hole] | None:
        ref = self._batch.head.skeleton(message)
        if ref is not None:
            return self.holes_in(ref)
        found = envelopes_at(self._lane, [message], self._base).get(message)
        return None if found is None else _parsed(self._read(*found))

    def holes_in(self, ref: Any) -> Sequence[Hole] | None:
        """Those of the skeleton in a cell."""
        lies = self._lies(ref)
        if lies not in self._skeletons:
            known = self._known.holes.get((self._batch.head.session, *lies))
            self._skeletons[lies] = _parsed(self.content(ref)) if known is None else known
        return self._skeletons[lies]

    def settle(self) -> None:
        """Has what was looked at known to later batches: this one is durable."""
        session = self._batch.head.session
        holes = {(session, *lies): content for lies, content in self._skeletons.items() if content is not None}
        self._known.take(holes, ((session, *fit) for fit in self._fit))

    def _lies(self, ref: Any) -> tuple[int, int]:
        """Ordinal and index of a cell, in the log or in the commit under way."""
        return (self._batch.first, ref) if type(ref) is int else ref

    def _facts(self, pages: Iterable[int]) -> dict[int, PageFacts]:
        """The facts of several pages, read at once."""
        found, earlier = {}, []
        for page in pages:
            made = self._batch.head.made(page)
            if isinstance(made, Create):
                found[page] = PageFacts(made.message, made.part, made.modality, made.type)
            else:
                earlier.append(page)
        if earlier:
            rows = self._lane_upto(max(earlier)).rows(_PLACE, earlier)
            found.update((page, PageFacts(*fields)) for page, *fields in rows)
        return found


_COMMIT = "SELECT ordinal, cell FROM commits WHERE session = ? AND last >= ? ORDER BY last LIMIT 1"
_CONTENT = """SELECT cell, commitment FROM versions
  WHERE session = ? AND position IN (SELECT value FROM json_each(?))"""
_PLACE = """SELECT page, message, part, modality, type FROM pages
  WHERE session = ? AND page IN (SELECT value FROM json_each(?))"""


class LogContents:
    """The contents of a log whose commits are walked through in order; each cell is looked at once."""

    def __init__(self, log: Log, fresh: Projection) -> None:
        self._log = log
        self._fresh = fresh
        self._commit: Commit | None = None
        self._cells = CellReadahead(lambda numbers: reachable(log, numbers))
        self._looked: dict[tuple[int, str], str | None] = {}
        self._holes: dict[int, Sequence[Hole] | None] = {}  # of skeletons, by cell
        self._sessions: dict[int, _Session] = {}

    def read(self, commits: Sequence[tuple[Commit, Sequence[AnyMutation]]]) -> None:
        """Reads the cells that commits bring and that must be something, many at once."""
        wanted = []
        for commit, mutations in commits:
            for m in mutations:
                refs = [ref for _, ref, _ in named(m)]
                if isinstance(m, Create | Update | Compress) and m.content is not None:
                    refs.append(m.content)
                wanted += [commit.cell + ref for ref in refs if type(ref) is int and 0 <= ref < commit.cell_count]
        self._cells.want(wanted)

    def begin(self, commit: Commit, head: GateHead) -> None:
        """A commit is walked through from here on; `head` is its session's."""
        self._commit = commit
        if len(self._looked) > KNOWN_MAX:
            self._looked.clear()
        if len(self._holes) > KNOWN_MAX:
            self._holes.clear()
        if commit.session not in self._sessions:
            self._sessions[commit.session] = _Session(Branch(self._fresh.db, commit.session), head)

    def note(self, position: int, m: AnyMutation) -> None:
        """Takes in a mutation that was looked at."""
        assert self._commit is not None, "a commit was begun"
        here = self._sessions[self._commit.session]
        if isinstance(m, Create):
            here.places[position] = m.message, m.part
        if isinstance(m, Create | Update | Compress):
            here.contents[position] = 0 if m.content is None else self._number(m.content)
        elif isinstance(m, Message):
            here.skeletons[position] = self._number(m.envelope)
        elif isinstance(m, Pack):
            here.skeletons.update((message, self._number(ref)) for message, ref in m.envelopes)
            here.pack(m)

    def wrong(self, ref: Any, form: CellForm) -> str | None:
        """Explains why the cell that a mutation names is not of a form; None where it is, or was erased."""
        return self._wrong(self._number(ref), form)

    def unfit(self, position: int, form: CellForm) -> str | None:
        """Explains why the content made at a position is not of a form; None where it is."""
        return self._wrong(self._here.content(position), form)

    @property
    def _here(self) -> _Session:
        assert self._commit is not None, "a commit was begun"
        return self._sessions[self._commit.session]

    def _wrong(self, number: int, form: CellForm) -> str | None:
        if not number or form is OPAQUE:
            return None
        key = number, form.words
        if key not in self._looked:
            content = self._content(number)
            self._looked[key] = None if content is None else form.wrong(content)
        return self._looked[key]

    def _number(self, ref: CellRef) -> int:
        assert self._commit is not None, "a commit was begun"
        return self._fresh.fold.cellar.sealed(self._commit, ref)[0]

    def _content(self, number: int) -> bytes | None:
        cell = self._cells.get(number)
        return None if cell is None or cell.erased else cell.content

    def touched(self, head: GateHead, m: Pack) -> Iterator[PackedMessage]:
        """The messages of which a pack changes a page or the skeleton."""
        here, envelopes = self._here, dict(m.envelopes)
        changed = {here.place(page)[0] for page in (*m.left, *(entry[0] for entry in m.entered))}
        for message in sorted((changed | envelopes.keys()) - {0}):
            pages = here.after(message, m)
            if pages:
                number = self._number(envelopes[message]) if message in envelopes else here.skeleton(message)
                yield PackedMessage(message, self._holes_of(number), pages)

    def _holes_of(self, number: int) -> Sequence[Hole] | None:
        if number not in self._holes:
            self._holes[number] = _parsed(self._content(number)) if number else None
        return self._holes[number]


class _Session:
    """The context of a session by message, updated by its packs; older entries are looked up in the views."""

    def __init__(self, lane: Branch, head: GateHead) -> None:
        self._lane = lane
        self.places: dict[int, tuple[int, int]] = {}
        self.contents: dict[int, int] = {}  # the cell of the content made at a position, 0 of one there never was
        self.skeletons: dict[int, int] = {}
        self._position = head.position
        self._shown: dict[int, dict[int, tuple[int, int, int]]] = {}  # by message and page: rank, content, level
        for page, content, level, rank in head.order:
            self._shown.setdefault(self.place(page)[0], {})[page] = rank, content, level

    def place(self, page: int) -> tuple[int, int]:
        """The message and the part of a page."""
        if page not in self.places:
            row = next(self._lane.rows(_PLACE, [page]), None)
            self.places[page] = (row[1], row[2]) if row is not None else (0, 0)
        return self.places[page]

    def content(self, position: int) -> int:
        """The cell of the content made at a position; 0 where there is none."""
        if position not in self.contents:
            row = next(self._lane.rows(_CONTENT, [position]), None)
            self.contents[position] = (row[0] or 0) if row is not None else 0
        return self.contents[position]

    def skeleton(self, message: int) -> int:
        """The cell of a message's skeleton; 0 where there is none."""
        if message not in self.skeletons:
            found = envelopes_at(self._lane, [message], self._position).get(message)
            self.skeletons[message] = found.cell if found is not None else 0
        return self.skeletons[message]

    def after(self, message: int, m: Pack) -> list[PackedPage]:
        """The pages of a message as a pack leaves them, in order."""
        stays = dict(self._shown.get(message, {}))
        for page in m.left:
            stays.pop(page, None)
        for page, content, level, rank in m.entered:
            if self.place(page)[0] == message:
                stays[page] = rank, content, level
        ordered = sorted(stays.items(), key=lambda one: one[1])
        return [PackedPage(self.place(page)[1], content, level) for page, (_, content, level) in ordered]

    def pack(self, m: Pack) -> None:
        """Takes in what a pack changes."""
        for page in m.left:
            self._shown.get(self.place(page)[0], {}).pop(page, None)
        for page, content, level, rank in m.entered:
            self._shown.setdefault(self.place(page)[0], {})[page] = rank, content, level


def reachable(log: Log, numbers: Sequence[int]) -> Iterator[tuple[int, Cell]]:
    """Cells by number without those in an archive that cannot be read, which the check of the cells names.

    Raises CorruptError where the log itself is damaged.
    """
    seen = set()
    try:
        for number, cell in log.each(numbers):
            seen.add(number)
            yield number, cell
        return
    except CorruptError:
        pass
    for number in numbers:
        if number not in seen:
            try:
                found = log.cells([number])
            except CorruptError:
                found = log.cells([number], archived=False)
            yield from found.items()


def unformed(log: Log, commits: Sequence[Commit], cellar: CellResolver | None) -> Iterator[tuple[str, str]]:
    """Cells of commits that hold what a fold or an answer cannot read: where, and why; for callers that fold nothing.

    Earlier cells that are named are found where a `cellar` knows them. No archive is opened: a full look does.
    """
    entries = [(commit, position, m) for commit in commits for position, m in _mutations(commit)]
    wanted: dict[int, list[tuple[Commit, int, AnyMutation, str, CellForm]]] = {}
    for commit, position, m in entries:
        for field, ref, form in named(m):
            number = _found(commit, ref, cellar)
            if number:
                wanted.setdefault(number, []).append((commit, position, m, field, form))
    numbers = list(wanted)
    for at in range(0, len(numbers), CELLS_MAX):
        for number, cell in log.cells(numbers[at : at + CELLS_MAX], archived=False).items():
            for commit, position, m, field, form in () if cell.erased else wanted[number]:
                wrong = form.wrong(cell.content)
                if wrong is not None:
                    what = f"position {position}: {m.kind} {field} is not {form.words}: {wrong}"
                    yield f"commit {commit.ordinal}", what


def _mutations(commit: Commit) -> Iterator[tuple[int, AnyMutation]]:
    try:
        yield from enumerate(decode(commit.body), commit.first)
    except ValueError:  # the check of the chain names it
        return


def _found(commit: Commit, ref: Any, cellar: CellResolver | None) -> int:
    """The number of a cell that a mutation names; 0 where it cannot be found."""
    if type(ref) is int:
        return commit.cell + ref if 0 <= ref < commit.cell_count else 0
    try:
        return 0 if cellar is None else cellar.sealed(commit, ref)[0]
    except (VmstoreError, apsw.Error, IndexError):
        return 0
