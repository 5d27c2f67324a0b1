"""What is known: facts asked by their words, what hangs together with them, and facts stated by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from vmstore.capture.conversation.create_page import born
from vmstore.capture.facts import FactAnswer, caused_by, write, write_additions, write_answer
from vmstore.core.address import page_name, page_position
from vmstore.core.asof import AsOf, Call, Head, LoggedTime, Position, Time, Turn
from vmstore.core.clock import within
from vmstore.core.draft import Draft
from vmstore.core.facts import CERTAIN, FACT_LINKS, FactType, Precision
from vmstore.core.page import LinkKind, Standing, WordEnum
from vmstore.core.text.stems import terms
from vmstore.core.times import iso, microseconds
from vmstore.engine.batch import Batch
from vmstore.errors import InputError
from vmstore.facts.addition import Addition
from vmstore.facts.fact import StatedFact, checked
from vmstore.facts.verbs import expanded, is_like
from vmstore.maintenance.columns import ColumnStore
from vmstore.namespace.group_commit import WriteDecision
from vmstore.namespace.namespace import Namespace
from vmstore.store.host import SessionHost
from vmstore.store.recall.results import FactEdge, FactGraph, FactLink, FactsFound, KnownFact
from vmstore.views.branch import Branch
from vmstore.views.projectors.lineage import walk
from vmstore.vmql.execution.engine import QueryEngine

FEW = 3  # facts found by their words; with fewer those that say something like it are added
FOUND_MAX = 20
LIKE_MIN = 0.3  # of the terms asked for, that a fact must have to be like it
NAMES = (
    *("page", "session", "user", "subject", "verb", "what", "attribute", "type", "status", "tags", "valid_from"),
    *("valid_to", "precision", "confidence", "strength", "method", "one", "superseded_by", "sources", "turn"),
    *("position", "at", "text"),
)
_TIMES = ("valid_from", "valid_to", "at")
assert {f"{name}_us" if name in _TIMES else name for name in NAMES} == {*KnownFact.__struct_fields__} - {"links"}, (
    "what a fact is told with are the columns of FACTS"
)


def known(
    ns: Namespace,
    session: str | None,
    user: str | None,
    when: AsOf,
    *,
    valid_at_us: int | None = None,
    ever: bool = False,
) -> list[KnownFact]:
    """The facts of a session, or of every session of a user, or of all; where `ever` those that hold no more too."""
    scope = "" if session is not None else "ACROSS SESSIONS" + (" OF USER $user" if user is not None else "")
    clauses = [f"FACTS {', '.join(NAMES)}", scope, _moment(when), "ALL" if ever else ""]
    if valid_at_us is not None and not ever:
        clauses.append(f"VALID AT '{iso(valid_at_us)}'")
    params = {} if user is None else {"user": user}
    answer = engine_of(ns).ask(" ".join(clauses), session=session, params=params)
    return [_fact(dict(zip(NAMES, row, strict=True))) for row in answer]


def asked_at(session: SessionHost, statement: str, when: AsOf) -> Any:
    """The rows that answer a statement of one session, as of a moment."""
    return engine_of(session._ns).ask(f"{statement} {_moment(when)}", session=session.name, params={})


def engine_of(ns: Namespace) -> QueryEngine:
    """What answers questions about facts."""
    from vmstore.store.query_host import asker

    return asker(ns, _unasked, _unasked, ColumnStore(ns))


def _unasked(*_: object) -> Any:
    raise AssertionError("a question for facts names no page, and verifies nothing")


def _moment(when: AsOf) -> str:
    match when:
        case Head():
            return ""
        case Turn(number):
            return f"AS OF TURN {number}"
        case Call(number):
            return f"AS OF CALL {number}"
        case Position(number):
            return f"AS OF POSITION {number}"
        case Time(at):
            return f"AS OF TIME '{iso(at)}'"
        case LoggedTime(at):
            return f"AS OF LOGGED TIME '{iso(at)}'"
    raise AssertionError("every moment is one of these")


def _fact(row: dict[str, Any]) -> KnownFact:
    times: dict[str, Any] = {f"{name}_us": _us(row.pop(name)) for name in _TIMES}
    return KnownFact(**row, **times)


def _us(text: str | None) -> int | None:
    return None if text is None else microseconds(datetime.fromisoformat(text))


class FactFilter(msgspec.Struct, frozen=True):
    """What facts are asked for; what is None or empty leaves all."""

    subject: str | None = None
    verb: str | None = None
    object_contains: str | None = None
    status: str | None = None
    fact_type: str | None = None

    def check(self) -> None:
        """Refuses words that no fact can have."""
        _member(Standing, "status", self.status)
        _member(FactType, "fact type", self.fact_type)

    def fits(self, fact: KnownFact, verbs: frozenset[str]) -> bool:
        """Whether a fact is asked for."""
        return (
            (not self.subject or fact.subject.casefold() == self.subject.casefold())
            and (not self.verb or is_like(fact.verb, verbs))
            and (not self.object_contains or self.object_contains.casefold() in fact.what.casefold())
            and self.kind_fits(fact)
        )

    def kind_fits(self, fact: KnownFact) -> bool:
        """Whether it is of the status and the type asked for."""
        return self.status in (None, "", fact.status) and self.fact_type in (None, "", fact.type)


def chosen(facts: Sequence[KnownFact], wanted: FactFilter, limit: int) -> FactsFound:
    """The facts that fit, the newest first; where they are few, those after them that say something like it."""
    wanted.check()
    if type(limit) is not int or limit < 1:
        raise InputError(f"limit {limit!r:.40} is no number of facts from 1 on")
    verbs = expanded(wanted.verb or "")
    found = sorted((fact for fact in facts if wanted.fits(fact, verbs)), key=_newest, reverse=True)
    words = frozenset(terms(f"{wanted.verb or ''} {wanted.object_contains or ''}"))
    note, total = "", len(found)
    if total < FEW and words:
        like = _alike([fact for fact in facts if fact not in found and wanted.kind_fits(fact)], words, wanted.subject)
        if like:
            note = f"{total} fit; those after them say something like it"
            found += like
    return FactsFound(found[:limit], total, note)


def _alike(facts: Sequence[KnownFact], words: frozenset[str], subject: str | None) -> list[KnownFact]:
    """Facts that share terms with what was asked, most first."""
    weighed = []
    for fact in facts:
        said = frozenset(terms(f"{fact.verb} {fact.what} {fact.text or ''}"))
        share = len(words & said) / len(words)
        if share >= LIKE_MIN:
            weighed.append((share, not subject or fact.subject.casefold() == subject.casefold(), _newest(fact), fact))
    return [fact for *_, fact in sorted(weighed, key=lambda each: each[:3], reverse=True)]


def _newest(fact: KnownFact) -> tuple[int, int]:
    return fact.at_us or 0, fact.position


def _member(words: type[WordEnum], name: str, given: str | None) -> Any:
    found = words.of(given) if given else None
    if given and found is None:
        raise InputError(f"{given!r:.40} is no {name}; there are {', '.join(word.word for word in words)}")
    return found


def link_kind(word: str) -> int:
    """A kind of link between facts by its name."""
    kind = _member(LinkKind, "kind of link", word)
    if kind not in FACT_LINKS:
        raise InputError(f"facts are linked by {', '.join(kind.word for kind in sorted(FACT_LINKS))}")
    return int(kind)


def linked(facts: Sequence[KnownFact], lane: Branch, position: int) -> list[KnownFact]:
    """Facts of a session, each with the pages it hangs together with directly."""
    found = []
    for fact in facts:
        number = page_position(fact.page) or 0
        up, down = (walk(lane, number, position, up=way, depth=1, kinds=map(int, FACT_LINKS)) for way in (True, False))
        links = [FactLink(LinkKind(e.kind).word, page_name(e.target), True) for e in up]
        links += [FactLink(LinkKind(e.kind).word, page_name(e.source), False) for e in down]
        found.append(msgspec.structs.replace(fact, links=links))
    return found


def graph(
    facts: Sequence[KnownFact], lane: Branch, start: int, position: int, depth: int, kinds: Iterable[str] | None
) -> FactGraph:
    """What hangs together with a page by links of some kinds, in both directions, breadth first."""
    if type(depth) is not int or depth < 1:
        raise InputError(f"depth {depth!r:.40} is no number of steps from 1 on")
    wanted = FACT_LINKS if kinds is None else frozenset(_member(LinkKind, "kind of link", kind) for kind in kinds)
    if not wanted <= FACT_LINKS:
        raise InputError(f"facts are linked by {', '.join(kind.word for kind in sorted(FACT_LINKS))}")
    seen, front, edges = {start: 0}, [start], dict[tuple[int, int, int], FactEdge]()
    for step in range(1, depth + 1):
        met: list[int] = []
        for page in front:
            for up in (True, False):
                for edge in walk(lane, page, position, up=up, depth=1, kinds=map(int, wanted)):
                    ends = page_name(edge.source), page_name(edge.target)
                    key = edge.source, edge.target, edge.kind
                    edges.setdefault(key, FactEdge(ends[0], ends[1], LinkKind(edge.kind).word, step))
                    met.append(edge.target if up else edge.source)
        front = [page for page in dict.fromkeys(met) if page not in seen]
        seen.update(dict.fromkeys(front, step))
    by_page = {page_position(fact.page): fact for fact in facts}
    return FactGraph([by_page[page] for page in seen if page in by_page], list(edges.values()))


def stated(given: StatedFact, status: str, fact_type: str, precision: str, shares: tuple[float, float]) -> StatedFact:
    """A fact made of the words that people write; InputError names what is none of them."""
    from_us, to_us = within("valid_from", given.valid_from), within("valid_to", given.valid_to)
    for share in shares:
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise InputError(f"{share!r:.40} is no share from 0 to 1")
    words: dict[str, Any] = {
        "status": _member(Standing, "status", status),
        "type": _member(FactType, "fact type", fact_type),
        "precision": _member(Precision, "precision", precision),
    }
    confidence, strength = (round(share * CERTAIN) for share in shares)
    weighed = {"confidence": confidence, "strength": strength, "valid_from": from_us, "valid_to": to_us}
    return checked(msgspec.structs.replace(given, **words, **weighed))


def write_recorded(
    ns: Namespace, key: int, name: str, added: Sequence[Addition], at: int | None, answer: FactAnswer | None = None
) -> list[int]:
    """Writes facts of a recorded session as one commit; their pages."""
    made: list[int] = []

    def decide() -> Batch:
        """The commit of the facts, at the session's end as it is then."""
        nonlocal made
        batch = ns.engine.batch(key)

        def page(draft: Draft, links: list[tuple[int, int]]) -> int:
            return batch.add(born(draft, 0, 0, batch.cell, links))

        def state(fact: StatedFact) -> int:
            return write(fact, page, batch.cell, batch.add)

        caused = added if answer is None else caused_by(added, write_answer(answer, page, batch.add))
        made = write_additions(caused, state, batch.add)
        batch.close(ns.clock.now() if at is None else at)
        return batch

    ns.group_commit.write(name, WriteDecision(decide, lambda commits: None, lambda: None))
    return made


def numbers(session: SessionHost, pages: str | int | Iterable[str | int]) -> tuple[int, ...]:
    """The pages that are named, by number; UnknownError names the nearest."""
    listed = [pages] if isinstance(pages, str | int) else list(pages)
    with session._ns.asking():
        lane = session._lane()
        return tuple(session._resolve(lane, page, Head())[0] for page in listed)
