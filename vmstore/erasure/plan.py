"""Plans an erasure: cells of pages, sessions and users, and what depends on them. Writes nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import apsw
import msgspec

from vmstore.capture.conversation.response_cell import wordy
from vmstore.core.address import page_name
from vmstore.core.erasure import Erase
from vmstore.core.grants import GrantScope, Principal
from vmstore.core.mutation import (
    CELL_FIELDS,
    Annotate,
    AnyMutation,
    Cite,
    Compress,
    Create,
    Embed,
    Fact,
    GuardTrip,
    Mark,
    Message,
    NamespacePolicy,
    Open,
    Promote,
    Reference,
    Reply,
    Revoke,
    Segment,
    Share,
    Tag,
    ToolRun,
    Update,
)
from vmstore.core.page import Origin, PageType
from vmstore.engine.named_cells import reachable
from vmstore.erasure.cell_uses import REQUEST, CellKey, CellUse, CellUseReader
from vmstore.erasure.relations import Owned, PageLinks
from vmstore.erasure.text_match import TextMatcher
from vmstore.errors import UnknownError
from vmstore.log.port import Log
from vmstore.namespace.reports import ErasurePlan, LeftContent, PlannedPage, PlannedSession
from vmstore.views.branch import NEVER
from vmstore.views.projectors.pages import object_of
from vmstore.views.projectors.residency import stays
from vmstore.work.digest import TAG as DIGEST
from vmstore.work.observation import TAG as FORM

WORDLESS = frozenset(("mime", "asks", "answers", "where", "reason"))  # labels that somebody's program wrote
NAMES = frozenset(("labels", "tags", "untags", "anchors", "evidence", "title", "aside", "tag", "alias", "canonical"))
NAMES |= {*CELL_FIELDS[Fact], *CELL_FIELDS[GuardTrip], *CELL_FIELDS[Promote]}
PROGRAMS = frozenset(("model", "method"))  # names that programs gave themselves
READ = 256
_ANSWERS = f"""SELECT session, page FROM pages WHERE type = ? UNION ALL SELECT session, warning FROM guards
  WHERE warning IS NOT NULL UNION ALL SELECT session, page FROM skills
  UNION ALL SELECT session, page FROM tags WHERE tag IN ('{DIGEST}', '{FORM}')"""  # each may quote any of its sources


class ErasureRequest(msgspec.Struct, frozen=True):
    """The request: pages by their makers, whole sessions, and the options that widen it.

    With `user`, also what the namespace's own session says of them.
    """

    pages: frozenset[Owned] = frozenset()
    sessions: frozenset[int] = frozenset()
    derived: bool = False
    copies: bool = False
    user: str | None = None


class Planner:
    """Works out one erasure on a log whose views are at its end and stand still."""

    def __init__(self, log: Log, db: apsw.Connection, wanted: ErasureRequest, *, listing: bool = True) -> None:
        self.wanted = wanted
        self._log = log
        self._db = db
        self._listing = listing  # whether what is not taken is looked for too
        self._reading = CellUseReader(log, db)
        facts: Any = db.execute("SELECT session, page FROM facts")
        answers: Any = db.execute(_ANSWERS, (int(PageType.VALUE),))
        links = db.execute("SELECT session, source, target, kind FROM links")
        self._relatives = PageLinks(self._reading, links, facts, answers)
        self._why: dict[Owned, str] = {}  # of every page that is taken
        self._named = dict(db.execute("SELECT session, name FROM sessions"))
        self._untaken: list[LeftContent] = []
        self.taken: dict[int, CellKey] = {}
        self._of: dict[int, Owned | None] = {}

    def plan(self) -> ErasurePlan:
        """The plan: what goes, what would need a flag, and what is beyond reach."""
        self._pages(dict.fromkeys(self.wanted.pages, "named"))
        self._families()
        self._find()
        if self.wanted.user is not None and not (self.wanted.sessions or self.taken):
            raise UnknownError(
                f"no session is of user {self.wanted.user!r}; `vmstore sessions` lists users", code="no-user"
            )
        if self.wanted.copies or self._listing:
            self._copies()
        self._shared()
        self._requests()
        return self._planned()

    # ---- which pages

    def _pages(self, why: dict[Owned, str]) -> None:
        """Takes pages, and what represents them."""
        self._why.update({page: reason for page, reason in why.items() if page not in self._why})
        while more := self._relatives.representing(self._why):
            self._why.update({number: f"represents {self._name(page)}" for number, page in more.items()})

    def _families(self) -> None:
        """Takes what was derived, or lists it."""
        inside = {page for session in self.wanted.sessions for page in self._made_by(session)}
        found = self._relatives.derived(self._why.keys() | inside)
        outside = {relative: page for relative, page in found.items() if relative[0] not in self.wanted.sessions}
        if self.wanted.derived:
            self._pages({relative: f"derived from {self._name(page)}" for relative, page in outside.items()})
        else:
            self._untaken += [
                LeftContent(self._name(relative), self._type(relative), "derived", f"derived from {self._name(page)}")
                for relative, page in sorted(outside.items())
                if relative not in self._why
            ]

    def _made_by(self, session: int) -> Iterator[Owned]:
        rows: Any = self._db.execute("SELECT page FROM pages WHERE session = ?", (session,))
        return ((session, page) for (page,) in rows)

    # ---- which cells

    def _says_user(self, use: CellUse) -> bool:
        """Whether a cell of the namespace's own session names the user: a grant to or by them, a rule about them."""
        user, mutation = self.wanted.user, use.mutation
        if user is None or use.cell.number in self.taken:
            return False
        if not isinstance(mutation, Share | Revoke | NamespacePolicy | Mark):
            return False
        if isinstance(mutation, Mark) and not self._is_charter(use.session):
            return False
        cell = self._log.cells([use.cell.number]).get(use.cell.number)
        content = "" if cell is None else cell.content.decode("utf-8", "replace")
        if isinstance(mutation, NamespacePolicy | Mark):
            return use.field in ("value", "note") and user_of(content) == user
        if use.field == "by":
            return content == str(Principal(GrantScope.USER, user))
        return isinstance(mutation, Share) and mutation.scope == GrantScope.USER and content == user

    def _is_charter(self, session: int) -> bool:
        sql = "SELECT hidden FROM sessions WHERE session = ?"
        return bool(self._db.execute(sql, (session,)).get == Open.CHARTER)

    def _find(self) -> None:
        """Takes the cells of the pages and of the sessions."""
        labels: dict[int, Owned] = {}
        messages: Counter[Owned] = Counter()
        asides: dict[Owned, CellKey] = {}
        answers: dict[Owned, list[CellKey]] = defaultdict(list)  # what replies keep beside their messages, by call
        answering: dict[Owned, Owned] = {}  # by message, the call it answers
        for use in self._reading.uses():
            page = self._about(use)
            mutation = use.mutation
            if self._says_user(use):
                self.taken.setdefault(use.cell.number, use.cell)
                continue
            if isinstance(mutation, Message) and use.field == "aside":
                asides[use.session, use.position] = use.cell
            if isinstance(mutation, Message) and mutation.reply_to is not None:
                answering[use.session, use.position] = use.session, mutation.reply_to
            if isinstance(mutation, Reply):
                answers[use.session, mutation.call].append(use.cell)
            if isinstance(mutation, Create) and mutation.message and use.field == "content":
                messages[self._reading.owner(use.session, mutation.message)] += page not in self._why
            if page is None or page not in self._why:
                continue
            if use.field == "labels":
                labels[use.cell.number] = page
                self._of.setdefault(use.cell.number, page)
                self.taken.setdefault(use.cell.number, use.cell)
            else:
                self._take(use.cell, page)
        for number, cell in self._log.cells(labels).items():
            if not object_of(cell.content).keys() - WORDLESS:
                del self.taken[number]
        for message, others in messages.items():
            if not others and message in asides:
                self._take(asides[message], None)
            if not others and message in answering:
                self._answers(answers[answering[message]])
        for session in self.wanted.sessions:
            for entry in self._reading.whole(session):
                self._take(entry, None)

    def _answers(self, cells: list[CellKey]) -> None:
        """Takes what replies keep beside an answer that goes, where that says more than how it ended."""
        for cell in cells:
            found = dict(reachable(self._log, [cell.number])).get(cell.number)
            if found is not None and wordy(object_of(found.content)):
                self._take(cell, None)

    def _take(self, cell: CellKey, page: Owned | None) -> None:
        self.taken.setdefault(cell.number, cell)
        self._of.setdefault(cell.number, page)

    def _about(self, use: CellUse) -> Owned | None:
        """The page that a mutation says something of."""
        page = None if use.field in PROGRAMS else _page_of(use.mutation, use.position)
        if isinstance(use.mutation, Cite) and self._reading.owner(use.session, use.mutation.by) in self._why:
            page = use.mutation.by
        if isinstance(use.mutation, ToolRun) and self._goes_by_result(use):
            page = use.mutation.result
        return None if page is None else self._reading.owner(use.session, page)

    def _goes_by_result(self, use: CellUse) -> bool:
        """Whether what a tool failed with goes with its answer, which says the same."""
        mutation = use.mutation
        assert isinstance(mutation, ToolRun), "no other mutation names an answer"
        if use.field != "error" or not mutation.result:
            return False
        return self._reading.owner(use.session, mutation.result) in self._why

    # ---- copies

    def _copies(self) -> None:
        """Takes whatever holds the text of a page that goes, or lists it."""
        texts = TextMatcher(self._contents())
        if not texts:
            return
        found: dict[Owned, str] = {}
        cells: dict[int, CellUse] = {}
        waiting: dict[int, list[CellUse]] = defaultdict(list)
        for use in self._reading.uses():
            if use.cell.number not in self.taken:
                waiting[use.cell.number].append(use)
            if len(waiting) >= READ:
                self._compare(texts, waiting, found, cells)
                waiting.clear()
        self._compare(texts, waiting, found, cells)
        found = {page: why for page, why in found.items() if page not in self._why}
        if self.wanted.copies:
            self._pages(found)
            self._find()
            for use in cells.values():
                self._take(use.cell, None)
            return
        self._untaken += [LeftContent(self._name(page), self._type(page), "copies", why) for page, why in found.items()]
        self._untaken += [LeftContent(self._place(use), use.field, "copies", "quotes it") for use in cells.values()]

    def _contents(self) -> Iterator[bytes]:
        """The full contents of what goes."""
        wanted = []
        for use in self._reading.uses():
            if use.cell.number in self.taken and use.field == "content" and not isinstance(use.mutation, Compress):
                wanted.append(use.cell.number)
        for start in range(0, len(wanted), READ):
            for _, cell in reachable(self._log, wanted[start : start + READ]):
                yield cell.content

    def _compare(
        self, texts: TextMatcher, waiting: dict[int, list[CellUse]], found: dict[Owned, str], cells: dict[int, CellUse]
    ) -> None:
        for number, cell in reachable(self._log, sorted(waiting)):
            equal = texts.equal(cell.content)
            if not (equal or texts.quoted(cell.content)):
                continue
            for use in waiting[number]:
                page = self._about(use)
                if page is not None and use.field == "content":
                    found.setdefault(page, "says the same" if equal else "quotes it")
                elif not equal:
                    cells.setdefault(number, use)

    # ---- what shares a cell

    def _shared(self) -> None:
        """Leaves names that others bear too; says which other pages lose a content they share."""
        others: dict[int, CellUse] = {}
        for use in self._reading.uses():
            if use.cell.number in self.taken and use.cell.session not in self.wanted.sessions:
                page = self._about(use)
                if (page is not None and page not in self._why) or (page is None and use.field in NAMES):
                    others.setdefault(use.cell.number, use)
        for number, use in others.items():
            if use.field in NAMES and not self.wanted.copies and self._of.get(number) is not None:
                del self.taken[number]
                self._untaken.append(LeftContent(self._place(use), use.field, "copies", "bears the same"))
            elif use.field == "content":
                page = self._about(use)
                assert page is not None, "contents are of pages"
                self._why.setdefault(page, "says the same, in the same cell")

    # ---- what was asked

    def _requests(self) -> None:
        """Takes the ids of calls that were sent any of it, since the digest beside an id lets guesses be tried."""
        under_way: dict[int, CellUse] = {}  # by session, the last id that was met
        by_cell: dict[int, list[tuple[int, int]]] = {}
        for use in self._reading.uses():
            if use.field == REQUEST:
                under_way[use.session] = use
                if use.session not in by_cell:
                    by_cell[use.session] = self._context_spans(use.session)
                packed: Any = self._db.execute(_PACKED, (use.session, use.position)).get
                if packed is not None and any(start <= packed < end for start, end in by_cell[use.session]):
                    self._take(use.cell, None)
            elif (
                use.cell.number in self.taken
                and use.session in under_way
                and not isinstance(use.mutation, Annotate | Tag)
            ):
                self._take(under_way[use.session].cell, None)

    def _context_spans(self, session: int) -> list[tuple[int, int]]:
        """From where to where pages that go were in the context of a session."""
        lane = self._reading.lane(session)
        pages = {
            *self._why,
            *(page for wanted_session in self.wanted.sessions for page in self._made_by(wanted_session)),
        }
        seen = [number for maker, number in pages if lane.owner(number) == maker]
        found = stays(lane, NEVER, seen)
        return [(start, NEVER if end is None else end) for (start, _), (end, *_) in found.items()]

    # ---- the plan

    def erases(self, reason: int) -> dict[int, Erase]:
        """The mutations that record the erasure in each session."""
        by: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for cell in self.taken.values():
            if cell.session not in self.wanted.sessions:
                by[cell.session].append((cell.first, cell.at))
        found = {session: Erase(reason, tuple(sorted(cells))) for session, cells in by.items()}
        for session in self.wanted.sessions:
            if any(True for _ in self._reading.whole(session)):
                found[session] = Erase(reason, (), self._reading.last(session))
        return dict(sorted(found.items()))

    def goes(self, page: Owned) -> bool:
        """Whether nothing is left of what a page says; of page 0 whether all of a session goes."""
        return page in self._why or page[0] in self.wanted.sessions

    def _planned(self) -> ErasurePlan:
        content_sizes = dict.fromkeys(self.taken, 0)  # what cannot be read is taken all the same
        for number, cell in reachable(self._log, sorted(self.taken)):
            if cell.erased:
                del content_sizes[number], self.taken[number]
            else:
                content_sizes[number] = len(cell.content)
        sizes: Counter[Owned | None] = Counter()
        cells: Counter[Owned | None] = Counter()
        for number, size in content_sizes.items():
            sizes[self._of.get(number)] += size
            cells[self._of.get(number)] += 1
        pages = [
            PlannedPage(self._name(page), self._type(page), why, cells[page], sizes[page])
            for page, why in sorted(self._why.items())
            if page[0] not in self.wanted.sessions
        ]
        by: Counter[int] = Counter(cell.session for cell in self.taken.values())
        sessions = [
            PlannedSession(self._named[session], self._uid(session), session in self.wanted.sessions, by[session])
            for session in sorted(by.keys() | self.wanted.sessions)
        ]
        return ErasurePlan(
            cells=len(content_sizes),
            bytes=sum(content_sizes.values()),
            sessions=sessions,
            pages=pages,
            untaken=list(dict.fromkeys(self._untaken)),
            forks=self._forks(),
            children=self._children(),
            sources=self._sources(),
        )

    def _forks(self) -> list[str]:
        """The forks that inherited any of it."""
        lows: dict[int, int] = {}
        for cell in self.taken.values():
            lows[cell.session] = min(cell.first, lows.get(cell.session, cell.first))
        return [
            name
            for session, name in sorted(self._named.items())
            if session not in self.wanted.sessions
            and any(s.session in lows and lows[s.session] <= s.high for s in self._reading.lane(session).stretches[1:])
        ]

    def _children(self) -> list[str]:
        """Sessions that were spawned by those that go, or continue them: they stay."""
        listed = ",".join(map(str, self.wanted.sessions)) or "0"
        rows: Any = self._db.execute(
            f"SELECT session, name FROM sessions WHERE parent IN ({listed}) AND origin <> {int(Origin.FORK)}"
        )
        return [name for session, name in rows if session not in self.wanted.sessions]

    def _sources(self) -> list[str]:
        """The files that any of it was imported from: they are not ours to erase."""
        touched = {cell.session for cell in self.taken.values()}
        rows: Any = self._db.execute("SELECT session, source FROM sessions WHERE source IS NOT NULL")
        return sorted({source for session, source in rows if session in touched})

    def _name(self, page: Owned) -> str:
        return f"{self._named[page[0]]}/{page_name(page[1])}"

    def _place(self, use: CellUse) -> str:
        page = self._about(use)
        if page is not None:
            return self._name(page)
        where = f"m{use.position}" if isinstance(use.mutation, Message) else f"position {use.position}"
        return f"{self._named[use.session]}/{where}"

    def _type(self, page: Owned) -> str:
        found: Any = self._db.execute("SELECT type FROM pages WHERE session = ? AND page = ?", page).get
        return PageType(found).word

    def _uid(self, session: int) -> str:
        found: Any = self._db.execute("SELECT uid FROM sessions WHERE session = ?", (session,)).get
        return bytes(found).hex()


_PACKED = "SELECT position FROM calls WHERE session = ? AND position >= ? ORDER BY position LIMIT 1"


def _page_of(mutation: AnyMutation | None, position: int) -> int | None:
    match mutation:
        case Create():
            return position
        case Update() | Compress() | Annotate() | Reference() | Cite() | Embed() | Fact() | Tag():
            return mutation.page or None
        case Segment():
            return mutation.summary
        case ToolRun():
            return mutation.call
        case GuardTrip():
            return mutation.warning or (mutation.calls[-1] if mutation.calls else None)
        case Promote():
            return mutation.page
    return None


def user_of(rule: str) -> str | None:
    """The user that a rule how long to keep contents is about; None where it is about all, or is no rule."""
    try:
        parsed = msgspec.json.decode(rule)
    except msgspec.DecodeError:
        return None
    return parsed.get("user") if isinstance(parsed, dict) else None
