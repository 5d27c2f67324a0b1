"""Why a page is in a context, or is not: the answer, then the chain of what happened, each link with its reason.

Where a kernel is at work the log holds its decisions with the contests they came from. Where it
holds none, as in a session that was recorded or imported, the answer says so, and says what is
known: which request had the page first, which no longer had it, what came instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

from vmstore.core.asof import Position
from vmstore.core.decision import Holder, Why
from vmstore.core.mutation import MUTATION_NAMES, Evict, FaultDenied, Unpin
from vmstore.core.page import Level, LinkKind, PageType, Role
from vmstore.views.branch import Branch
from vmstore.views.compactions import compactions_at
from vmstore.views.projectors.calls import last_call
from vmstore.views.projectors.decisions import (
    MOVES,
    Decision,
    decisions_at,
    decisions_of,
    holders,
    last_contest,
    live_since,
    settings_at,
)
from vmstore.views.projectors.lineage import ended
from vmstore.views.projectors.residency import residents_at
from vmstore.views.reads.context import ShownPage, contents
from vmstore.views.reads.faults import before, gone
from vmstore.views.reads.reasons import contest, policy_name, reason_of, word_of
from vmstore.views.reads.recalls import place_in_words, place_json, places_of
from vmstore.views.reads.resolve_asof import moment_at
from vmstore.vmql.host import StoredContext
from vmstore.vmql.planner.scope import OneSession

Row = tuple[Any, ...]
SHOWN_MAX = 5  # of the pages that came instead
UNDECIDED = "the source does not say why"
_TYPE = ShownPage._fields.index("type") - ShownPage._fields.index("message")
_TOKENS = ShownPage._fields.index("tokens") - ShownPage._fields.index("message")


def chain(scope: OneSession, page: int, seen: StoredContext, until: int) -> Iterator[Row]:
    """Whether a page is in a context and what decided that; then what happened to it, oldest first.

    Prompts that were assembled after the context, up to a position, stand with it.
    """
    at = seen.basis
    here = (at.position, at.turn, at.call)
    if page > at.position:
        turn, call = moment_at(scope.lane, page)
        yield (*here, "out", page, f"p{page} is not in call {at.call}: it was made later, after call {call}", None)
        yield (page, turn, call, "create", page, f"made in turn {turn}, after call {call}", None)
        yield from _evidence(scope, page)
        return
    decisions = PageDecisions(scope.lane, page, at.position)
    rows: list[Row] = []
    entered = left = None
    for event in scope.world.session(scope.name).lineage.history(f"p{page}", Position(at.position)):
        entered = event if event.event == "enter" else entered
        left = event if event.event == "leave" else left
        reason = _reason(scope.lane, page, event, decisions)
        contest = decisions.contest(event.position)
        rows.append((event.position, event.turn, event.call, event.event, page, reason, contest))
        is_decided = decisions.put_out(event.position) is not None or decisions.passed_over(event.position) is not None
        if event.event == "leave" and not is_decided:
            rows += _instead(scope.lane, page, event)
    yield (*here, *_answer(page, seen, entered, left, decisions))
    yield from _with_prompts(scope.lane, page, until, rows)
    yield from _evidence(scope, page)


def _with_prompts(lane: Branch, page: int, position: int, rows: Sequence[Row]) -> list[Row]:
    """The rows with what assembled prompts made of the page: in place of what is known of such a search, or beside."""
    prompts = {
        found.position: (
            found.position, *moment_at(lane, found.position), "search", page, place_in_words(found), place_json(found),
        )
        for found in places_of(lane, page, position)
    }  # fmt: skip
    kept = [row for row in rows if row[0] not in prompts or row[_EVENT] != "search"]
    return sorted([*kept, *prompts.values()], key=itemgetter(0))


_EVENT = 3
EVIDENCE_MAX = 3


def _evidence(scope: OneSession, page: int) -> Iterator[Row]:
    """What an answer may have come from, where the log has no link of it."""
    lineage = scope.world.session(scope.name).lineage
    if lineage.ancestors(f"p{page}", depth=1):
        return
    for one in lineage.evidence(page, limit=EVIDENCE_MAX):
        turn, _ = moment_at(scope.lane, page)
        words = f"evidence, no link was logged: p{page} may have come from {one.page}"
        words += f", new to call {one.call}" if one.new else f", in the prompt of call {one.call}"
        words += f"; both have {', '.join(one.shared)}" if one.shared else ""
        yield (page, turn, one.call, "evidence", int(one.page[1:]), words, None)


class PageDecisions:
    """What the log's decisions say of a page up to a position."""

    def __init__(self, lane: Branch, page: int, position: int) -> None:
        self.lane, self.page, self.position = lane, page, position
        self.decisions = {decision.position: decision for decision in decisions_of(lane, page, position)}
        causes = {decision.cause for decision in self.decisions.values() if decision.cause}
        self.causes = decisions_at(lane, causes)

    def why(self, decision: Decision) -> Why | None:
        """The contest a decision came from: its own, or that of the first of those that went together."""
        first = self.causes.get(decision.cause or 0)
        return decision.why or (first.why if first is not None and first.kind == decision.kind else None)

    def contest(self, position: int) -> str | None:
        """The contest of the decision at a position, as JSON."""
        decision = self.decisions.get(position)
        return None if decision is None else contest_json(decision._replace(why=self.why(decision)))

    def let_in(self, pack: int) -> Decision | None:
        """The decision that had the page be in the prompt at a pack, since the pack before."""
        return before(self._moves, (self.before(pack),), pack)

    def put_out(self, pack: int) -> Decision | None:
        """The decision that had the page be out of the prompt at a pack, since the pack before."""
        since = self.before(pack)
        found = [decision for decision in self._moves if since < decision.position < pack]
        return found[-1] if found and gone(found[-1]) else None

    @property
    def _moves(self) -> list[Decision]:
        return [decision for decision in self.decisions.values() if decision.kind in MOVES]

    def before(self, pack: int) -> int:
        """The position of the pack before one, 0 before the first."""
        found = last_call(self.lane, pack - 1)
        return 0 if found is None else found.position

    def is_new(self, page: int, pack: int) -> bool:
        """Whether a page was made since the pack before, where a kernel was at work: then no decision lets it in."""
        live = live_since(self.lane, pack)
        return live is not None and page > max(live, self.before(pack))

    @property
    def came(self) -> int:
        """Where the page came to the prompt last: made there, asked for or fetched."""
        return max([decision.position for decision in self._moves if decision.kind != Evict.NUMBER], default=self.page)

    def last_out(self) -> Decision | None:
        """The decision that put the page out for good."""
        moves = self._moves
        return moves[-1] if moves and gone(moves[-1]) else None

    def passed_over(self, pack: int) -> str | None:
        """That a page of the prompt was not sent at a pack, where a kernel was at work and nothing had put it out."""
        settings, live = settings_at(self.lane, pack), live_since(self.lane, pack)
        moves = [decision for decision in self._moves if decision.position < pack]
        is_there = not gone(moves[-1]) if moves else live is not None and live < self.page < pack
        if settings is None or not is_there:
            return None
        window = settings.get("window_tokens_max")
        if window is None and not settings.get("conversation"):
            return None
        by = f"a window of {window:,} tokens" if type(window) is int else "what feels like a conversation"
        return f"it is in L0, and {by} left it out"

    def in_words(self, decision: Decision) -> str:
        """A decision to put the page out: before which call, why, and its place among those that could have gone."""
        call = moment_at(self.lane, decision.position)[1] + 1
        words = f"evicted before call {call}, {reason_of(decision, self.causes.get)}"
        why = self.why(decision)
        return words if why is None else f"{words}: {self._place(decision, why)}"

    def _place(self, decision: Decision, why: Why) -> str:
        """How early the page had to go, by which policy, and for what room."""
        first = decision.cause if decision.why is None and decision.cause else decision.position
        session = self.lane.owner(decision.position)
        scores = [score for (score,) in self.lane.db.execute(_WENT, (session, first, first)) if score is not None]
        place = 1 + sum(score < (decision.score or 0) for score in scores)
        near = ", ".join(f"p{page}" for _, page in why.losers)
        return "".join(
            (
                f"{ordinal(place)} of {why.candidates:,} to go by {policy_name(why.policy)}; ",
                f"{why.used:,} of {why.budget:,} tokens were used and {why.need:,} needed",
                f" for p{why.winner}" if why.winner else "",
                f"; next to go {near}" if near else "",
            )
        )

    def denied_since(self, position: int) -> str:
        """That the page was asked for in vain since a position."""
        found = [
            decision
            for decision in self.decisions.values()
            if decision.kind == FaultDenied.NUMBER and decision.position > position
        ]
        if not found:
            return ""
        last = found[-1]
        return f"; asked for since, and denied at position {last.position}, {reason_of(last, self.causes.get)}"


def _answer(
    page: int, seen: StoredContext, entered: Any, left: Any, history: PageDecisions
) -> tuple[str, int, str, str | None]:
    """Whether a page is in a context, and what keeps it there or had put it out."""
    call = seen.basis.call
    if page in seen.page_ids:
        assert entered is not None, "what is in a context entered it"
        since = f"in every call since call {entered.call}" if call - entered.call else "new to it"
        reason = f"p{page} is in call {call}, {since}"
        if live_since(history.lane, history.position) is None:
            return "in", page, reason, None
        last = last_contest(history.lane, history.position)
        kept = None if last is None else contest_json(last._replace(score=_score(page, last)))
        return "in", page, f"{reason}; {_holders(history, seen.basis.turn)}; {_near(history, last)}", kept
    out, passed = history.last_out(), history.passed_over(seen.basis.position)
    replaced = _replaced(history, left)
    if replaced is not None:
        return "out", page, replaced, None if out is None else history.contest(out.position)
    if out is not None:
        reason = f"p{page} is not in call {call}: {history.in_words(out)}{history.denied_since(out.position)}"
        return "out", page, reason, history.contest(out.position)
    if passed is not None:
        return "out", page, f"p{page} is not in call {call}: {passed}", None
    if left is None:
        return "out", page, f"p{page} is not in call {call}: no call up to it had the page; {UNDECIDED}", None
    reason = f"p{page} left at call {left.call} and is in no call since, up to call {call}; {UNDECIDED}"
    return "out", page, reason, None


def _replaced(history: PageDecisions, left: Any) -> str | None:
    """That a compaction had the page leave last, with what it replaced by what."""
    if left is None:
        return None
    for made in compactions_at(history.lane, history.position):
        if made.position == left.position and history.page in made.left:
            pages = f"{len(made.left):,} page{'s' * (len(made.left) != 1)} ({made.tokens:,} tokens)"
            by = f"summary p{made.summary} ({made.summary_tokens:,} tokens)"
            return f"p{history.page} left at call {made.call}: a compaction replaced {pages} by {by}"
    return None


def ordinal(number: int) -> str:
    """A place, as people say it: 1st, 2nd, 3rd, 11th."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def _holders(history: PageDecisions, turn: int) -> str:
    """Who holds a page in a turn; the last turns are held by a setting, and yield where they must."""
    listed = [
        word_of(Holder, holder) or ""
        for holder in holders(history.lane, history.position, [history.page]).get(history.page, ())
    ]
    window = (settings_at(history.lane, history.position) or {}).get("pinned_turns")
    made = moment_at(history.lane, history.page)[0]
    if type(window) is int and made > turn - window:
        yielded = [
            p for p, holder in history.decisions.items() if (holder.kind, holder.word) == (Unpin.NUMBER, Holder.TURNS)
        ]
        yielding = [f", which yielded before call {moment_at(history.lane, at)[1] + 1}" for at in yielded[-1:]]
        listed.append(f"the last {window} turns" + "".join(yielding))
    return f"held by {', '.join(listed)}" if listed else "nobody holds it"


def _near(history: PageDecisions, last: Decision | None) -> str:
    """How near a page was to going when pages last gave way."""
    if last is None or last.why is None:
        return "no page had to be evicted yet"
    call = moment_at(history.lane, last.position)[1] + 1
    page, when = history.page, f"when pages were last evicted, before call {call}"
    if page == last.why.winner:
        return f"{when}, they went for it"
    if history.came > last.position:
        return f"it was not there {when}"
    place = next((at for at, (_, loser) in enumerate(last.why.losers, 1) if loser == page), None)
    near = (
        "it was none of the three next to go" if place is None else f"it was the {ordinal(place)} of those next to go"
    )
    return f"{when}, {near}"


def _score(page: int, last: Decision | None) -> int | None:
    """The score of a page that was near to going in a contest."""
    return None if last is None or last.why is None else {p: score for score, p in last.why.losers}.get(page)


def _reason(lane: Branch, page: int, event: Any, history: PageDecisions) -> str:
    """What the log says about an event, or what is known."""
    if event.event == "enter":
        came = f"in the request of call {event.call}"
        return f"{came}; {_because(history, history.let_in(event.position), page, event.position)}"
    if event.event == "leave":
        out = history.put_out(event.position)
        because = None if out is not None else history.passed_over(event.position)
        return f"no longer in the request of call {event.call}; {because or _because(history, out)}"
    if event.event == "shown":
        let_in = history.let_in(event.position)
        because = "" if let_in is None else f"; {_because(history, let_in)}"
        return f"shown {Level(event.level).word}, version {event.version}, from this call on{because}"
    if event.event == "create":
        role = lane.db.execute("SELECT role FROM pages WHERE session = ? AND page = ?", (lane.owner(page), page)).get
        made = f"made by {Role(role).word} in turn {event.turn}, {event.tokens} tokens"
        return f"{made}; {event.detail}" if event.detail else made
    if event.event == "compress":
        return f"shortened to {event.tokens} tokens ({event.method}), level {Level(event.level).word}"
    if event.event == "update":
        return f"its content changed: version {event.version}, {event.tokens} tokens"
    decision = history.decisions.get(event.position)
    if decision is not None and decision.kind == Evict.NUMBER and decision.level is None:
        return history.in_words(decision)
    if decision is not None and decision.why is None and (why := history.why(decision)) is not None:
        return f"{event.detail}: {contest(why)}"
    return str(event.detail)


def _because(history: PageDecisions, decision: Decision | None, made: int | None = None, pack: int = 0) -> str:
    """Which decision a pack shows; what is new is in the prompt without one where a kernel is at work."""
    if decision is not None:
        reason = reason_of(decision, history.causes.get)
        return f"{MUTATION_NAMES[decision.kind]} at position {decision.position}{f', {reason}' if reason else ''}"
    if made is not None and history.is_new(made, pack):
        return f"new since position {made}"
    if made is not None and history.passed_over(history.before(pack)) is not None:
        return "it was in L0, and no window left it out any more"
    return UNDECIDED


def contest_json(decision: Decision | None) -> str | None:
    """The contest of a decision as JSON."""
    if decision is None or decision.why is None:
        return None
    why = decision.why
    fields: dict[str, Any] = {**why._asdict(), "policy": policy_name(why.policy)}
    fields["winner"] = f"p{why.winner}" if why.winner else None
    fields["losers"] = [{"page": f"p{page}", "score": score} for score, page in why.losers]
    return json.dumps(fields if decision.score is None else {**fields, "score": decision.score})


def _instead(lane: Branch, page: int, event: Any) -> Iterator[Row]:
    """What entered with the pack that left a page out: those made from it, then the largest."""
    came = [
        (other, content) for _, other, since, content in residents_at(lane, event.position) if since == event.position
    ]
    what = contents(lane, [content for _, content in came])
    derived = _made_from(lane, page, event.position)

    def weight(one: tuple[int, int]) -> tuple[bool, int, int]:
        return one[0] not in derived, -what[one[1]][_TOKENS], one[0]

    for other, content in sorted(came, key=weight)[:SHOWN_MAX]:
        words = f"entered at the same pack: {PageType(what[content][_TYPE]).word}, {what[content][_TOKENS]} tokens"
        words += f"; made from p{page}" if other in derived else ""
        yield (event.position, event.turn, event.call, "enter", other, words, None)
    if len(came) > SHOWN_MAX:
        more = f"{len(came) - SHOWN_MAX} more pages entered at the same pack"
        yield (event.position, event.turn, event.call, "enter", None, more, None)


def _made_from(lane: Branch, page: int, position: int) -> set[int]:
    found: set[int] = set()
    gone = ended(lane, position)
    for stretch in lane.upto(position):
        rows = lane.db.execute(_DERIVED, (stretch.session, page, stretch.high))
        found.update(source for source, kind, at in rows if at > gone.get((source, page, kind), 0))
    return found


_WENT = f"""SELECT score FROM decisions WHERE session = ? AND kind = {Evict.NUMBER} AND level IS NULL
  AND (position = ? OR cause = ?)"""
_DERIVED = f"""SELECT source, kind, position FROM links WHERE session = ? AND target = ? AND position <= ?
  AND kind IN ({int(LinkKind.DERIVES)}, {int(LinkKind.REPRESENTS)}, {int(LinkKind.SUPERSEDES)})"""
