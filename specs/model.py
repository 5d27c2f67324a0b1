"""The whole store, obviously: a list of facts and a dict of names.

Every view of vmstore is a quick way to answer what this file answers by reading the list from
its beginning. Where the two differ, one of them is wrong; `tests/laws.py` holds them together.
Any log can be fed to it: each entry of `Store.tail()` is one call of `apply`.

A page and a message are named by the position of the mutation that made them. A fork goes on
with its parent's positions, so along the chain of a session a position names one fact.
"""

from __future__ import annotations

from collections import Counter, namedtuple
from collections.abc import Iterator, Sequence

from vmstore.core import mutation as m
from vmstore.core.page import Level, LinkKind, Origin, Standing, Tier
from vmstore.core.tags import TagDepth

HEAD = 1 << 62
OF_A_PAGE = m.Update | m.Compress | m.Annotate | m.FaultIn | m.FaultDenied | m.Prefetch | m.Evict | m.Pin | m.Unpin
OF_A_PAGE |= m.Reference | m.Cite | m.Recall | m.Delete | m.Flush | m.Tag

# One mutation: whose, where in its session, when it happened, the cells of its commit.
Fact = namedtuple("Fact", "session position mutation at cells")
# A request to the model, and the reply that ended it, None while that is not seen.
Call = namedtuple("Call", "position turn at pack reply")
# A message, and its envelope: the position and the cell that gave it the skeleton it has.
Said = namedtuple("Said", "message turn call envelope")
# One content of a page: a full version at level 0, above it a shorter form of one.
Content = namedtuple("Content", "position version level told")
# A page in the context: which content, at which level and rank, since when unbroken.
Shown = namedtuple("Shown", "page content level rank since")
AGAINST = LinkKind.SUPERSEDES, LinkKind.CONTRADICTS
# A page in the context (tier 0) or not; `counted` is the content its tokens and bytes are of.
Page = namedtuple("Page", "page born turn call at tier level version counted")
# A link met on a walk, `depth` steps from where it began.
Edge = namedtuple("Edge", "depth source kind target position")


class Model:
    """Answers any question about any session at any position, slowly."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.names: dict[bytes, str] = {}  # a session's uid -> its name

    def apply(self, session: str, position: int, told: m.AnyMutation, at: int, cells: Sequence[bytes] = ()) -> None:
        """Appends one fact; `cells` are the contents of its commit, where the caller has them."""
        if isinstance(told, m.Open):
            self.names[told.uid] = session
        self.facts.append(Fact(session, position, told, at, cells))

    def own(self, session: str) -> list[Fact]:
        """What a session wrote itself."""
        return [fact for fact in self.facts if fact.session == session]

    def seen(self, session: str, position: int = HEAD) -> list[Fact]:
        """The facts of a session up to a position: its parent's up to the fork, then its own."""
        facts = self.own(session)
        opening = facts[0].mutation
        assert isinstance(opening, m.Open), "a session opens with its first fact"
        if opening.origin == Origin.FORK and opening.parent:
            facts = self.seen(self.names[opening.parent], opening.parent_position) + facts
        return [fact for fact in facts if fact.position <= position]

    def moments(self, session: str, position: int = HEAD) -> Iterator[tuple[Fact, int, int]]:
        """Each fact with the turn and the call it happened in."""
        turn = call = 0
        for fact in self.seen(session, position):
            if isinstance(fact.mutation, m.Turn):
                turn = fact.mutation.number
            elif isinstance(fact.mutation, m.Pack):
                call = fact.mutation.call
            yield fact, turn, call

    def last(self, session: str, position: int = HEAD) -> tuple[int, int, int]:
        """The last position, turn and call."""
        return [(fact.position, turn, call) for fact, turn, call in self.moments(session, position)][-1]

    def at_time(self, session: str, at: int) -> int | None:
        """The last position by when things happened; a clock set back brings nothing back."""
        found, latest = None, self.seen(session)[0].at
        for fact in self.seen(session):
            latest = max(latest, fact.at)
            found = fact.position if latest <= at else found
        return found

    def cell(self, session: str, position: int, ref: m.CellRef) -> bytes:
        """The bytes a mutation names: a cell of its own commit, or of the one that holds a position."""
        where, index = (position, ref) if isinstance(ref, int) else ref
        return bytes(next(fact for fact in self.seen(session) if fact.position == where).cells[index])

    def turns(self, session: str, position: int = HEAD) -> list[tuple[int, int, int]]:
        """Each turn: its number, the position that opened it, the calls made in it."""
        opened = [(t, f.position) for f, t, _ in self.moments(session, position) if isinstance(f.mutation, m.Turn)]
        made = Counter(call.turn for call in self.calls(session, position).values())
        return [(turn, where, made[turn]) for turn, where in opened]

    def status(self, session: str) -> str:
        """How a session ended; a message that came after the end took it up again."""
        found = Standing.ACTIVE
        for fact in self.own(session):
            match fact.mutation:
                case m.Close(status=status):
                    found = Standing(status)
                case m.Message():
                    found = Standing.ACTIVE
        return found.word

    def calls(self, session: str, position: int = HEAD) -> dict[int, Call]:
        """The calls by number; of several replies to one the last holds."""
        found: dict[int, Call] = {}
        for fact, turn, _ in self.moments(session, position):
            match fact.mutation:
                case m.Pack() as pack:
                    found[pack.call] = Call(fact.position, turn, fact.at, pack, None)
                case m.Reply() as reply:
                    found[reply.call] = found[reply.call]._replace(reply=reply)
        return found

    def messages(self, session: str, position: int = HEAD) -> dict[int, Said]:
        """The messages, each with the envelope it had."""
        found: dict[int, Said] = {}
        for fact, turn, call in self.moments(session, position):
            match fact.mutation:
                case m.Message() as message:
                    found[fact.position] = Said(message, turn, call, (fact.position, message.envelope))
                case m.Pack() as pack:
                    for said, ref in pack.envelopes:
                        found[said] = found[said]._replace(envelope=(fact.position, ref))
        return found

    def versions(self, session: str, position: int = HEAD) -> dict[int, list[Content]]:
        """Every content of every page, oldest first."""
        found: dict[int, list[Content]] = {}
        for fact in self.seen(session, position):
            match fact.mutation:
                case m.Create() as born:
                    found[fact.position] = [Content(fact.position, 1, Level.FULL, born)]
                case m.Update() as new:
                    found[new.page].append(Content(fact.position, new.version, Level.FULL, new))
                case m.Compress() as short:
                    found[short.page].append(Content(fact.position, short.version, short.level, short))
        return found

    def context(self, session: str, position: int = HEAD) -> list[Shown]:
        """The context of the last pack, in order: each pack says what left, entered or changed."""
        here: dict[int, Shown] = {}
        for fact in self.seen(session, position):
            if isinstance(fact.mutation, m.Pack):
                for page in fact.mutation.left:
                    del here[page]
                for page, content, level, rank in fact.mutation.entered:
                    since = here[page].since if page in here else fact.position
                    here[page] = Shown(page, content, level, rank, since)
        return sorted(here.values(), key=lambda shown: shown.rank)

    def pages(self, session: str, position: int = HEAD) -> list[Page]:
        """Every page there was; one in the context counts what is shown of it."""
        versions = self.versions(session, position)
        context = {shown.page: shown for shown in self.context(session, position)}
        found = []
        for fact, turn, call in self.moments(session, position):
            if isinstance(fact.mutation, m.Create):
                page, shown = fact.position, context.get(fact.position)
                full = [c for c in versions[page] if c.level == Level.FULL][-1]
                level = shown.level if shown else Level.FULL
                counted = next(c for c in versions[page] if c.position == shown.content) if shown else full
                tier = Tier.L0 if shown else Tier.L2
                found.append(Page(page, fact.mutation, turn, call, fact.at, tier, level, full.version, counted))
        return found

    def history(self, session: str, page: int, position: int = HEAD) -> list[tuple[int, str]]:
        """What happened to a page, and where."""
        found, here = list[tuple[int, str]](), False
        for fact in self.seen(session, position):
            events = list[str]()
            match fact.mutation:
                case m.Create(links=links):  # what replaces a page, or speaks against it, is told of both
                    events = ["create"] * (fact.position == page)
                    events += ["link" for k, to in set(links) if fact.position == page or (to == page and k in AGAINST)]
                case _ if isinstance(fact.mutation, OF_A_PAGE) and fact.mutation.page == page:
                    events = [fact.mutation.kind]
                case m.Link(source=a, link=k, target=b) | m.Unlink(source=a, link=k, target=b):
                    events = [fact.mutation.kind] * (a == page or (b == page and k in AGAINST))
                case m.Segment(summary=told) if told == page:
                    events = [fact.mutation.kind]
                case m.Search(found=told) if page in told:
                    events = ["search"]
                case m.Pack(entered=entered, left=left) if page in left or page in [new[0] for new in entered]:
                    events, here = ["leave" if page in left else "shown" if here else "enter"], page not in left
            found += [(fact.position, event) for event in events]
        return found

    def aliases(self, session: str, position: int = HEAD) -> dict[str, str]:
        """What each tag counts as that counts as another, to the end; itself where that leads in a circle."""
        said: dict[str, str] = {}
        for fact in self.seen(session, position):
            if isinstance(told := fact.mutation, m.Alias):
                alias = self.cell(session, fact.position, told.alias).decode()
                said.pop(alias, None)
                if told.canonical is not None:
                    said[alias] = self.cell(session, fact.position, told.canonical).decode()
        ends = dict(said)
        for _ in said:
            ends = {alias: said.get(end, end) for alias, end in ends.items()}
        return {alias: end for alias, end in ends.items() if end not in said}

    def depths(self, session: str, position: int = HEAD) -> dict[str, str]:
        """How much of a tag is shown, where somebody said so."""
        told = [fact for fact in self.seen(session, position) if isinstance(fact.mutation, m.Depth)]
        return {
            self.cell(session, fact.position, fact.mutation.tag).decode(): TagDepth(fact.mutation.depth).word
            for fact in told
        }

    def links(self, session: str, position: int = HEAD) -> set[Edge]:
        """Every link that holds: those pages were born with, those made later, without those that were ended since."""
        found: set[Edge] = set()
        for fact in self.seen(session, position):
            match fact.mutation:
                case m.Create(links=links):
                    found |= {Edge(0, fact.position, kind, target, fact.position) for kind, target in links}
                case m.Link(source=source, target=target, link=kind):
                    found.add(Edge(0, source, kind, target, fact.position))
                case m.Unlink() as ends:
                    found = {edge for edge in found if edge[1:4] != (ends.source, ends.link, ends.target)}
        return found

    def walk(self, session: str, page: int, position: int = HEAD, *, up: bool, depth: int = HEAD) -> set[Edge]:
        """The links met from a page towards its sources (`up`), or towards what came of it."""
        links, met, front, known, step = self.links(session, position), set(), {page}, {page}, 0
        while front and step < depth:
            step += 1
            taken = [edge for edge in links if (edge.source if up else edge.target) in front]
            met |= {edge._replace(depth=step) for edge in taken}
            front = {edge.target if up else edge.source for edge in taken} - known
            known |= front
        return met
