"""The selector of a prompt: which candidates stand in it, at which level, why the others do not.

What instructs and the message come first and are never left out; then the protected turns, which give levels
before turns; then who the user is, rules, facts, what is recalled, summaries, and older turns, each part within its
share of the budget. What a part leaves goes to those after it. Within a part the best is taken first, at the highest
level that fits, and what fits at no level is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vmstore.core.decision import PromptPart
from vmstore.errors import InputError
from vmstore.vm.assembly.candidate import PromptCandidate
from vmstore.vm.assembly.choice import LoweredPage, OmittedPage, RoomChoice, lowered_of, smallest
from vmstore.vm.assembly.recent_turns import SHORT

TOKENS = 8_000
PROTECTED_TURNS = 3
PPM = 1_000_000
SHOWN_ALREADY = "shown in another part"
SAME_FACT = "says what another fact says"
OTHER_TOPIC = "its topic is another"
LOSERS = 3

SHARES: Mapping[PromptPart, int] = {
    PromptPart.IDENTITY: 100_000,
    PromptPart.RULES: 100_000,
    PromptPart.EXPANDED: 500_000,
    PromptPart.HINT: 70_000,
    PromptPart.EARLIER: int(SHORT * PPM),
    PromptPart.FACTS: 150_000,
    PromptPart.RECALLED: 350_000,
    PromptPart.SUMMARIES: 150_000,
    PromptPart.CONVERSATION: PPM,
}
"""What each part may take of the budget, in parts per million, in the order they are chosen."""


class PartContest(NamedTuple):
    """Statistics of the choice within a part: candidates, the last score chosen, the nearest losers."""

    part: PromptPart
    candidates: int
    chosen: int
    cutoff: float
    losers: tuple[tuple[float, str], ...]


class Assembly(NamedTuple):
    """An assembled prompt: its parts in order, forms that were shortened, and omissions with their reasons.

    `breakdown` has the tokens of each part; all together are at most `budget`.
    """

    shown: tuple[PromptCandidate, ...]
    lowered: tuple[LoweredPage, ...]
    left: tuple[OmittedPage, ...]
    breakdown: Mapping[PromptPart, int]
    contests: tuple[PartContest, ...]
    tokens: int
    budget: int


def assemble(
    candidates: Sequence[PromptCandidate],
    budget: int,
    *,
    protected: int = PROTECTED_TURNS,
    shares: Mapping[PromptPart, int] = SHARES,
    topics: frozenset[str] | None = None,
) -> Assembly:
    """Assembles a prompt of `budget` tokens from candidates.

    Turns that are not protected stay out where they have tags and none of `topics`, if those are given.
    Raises InputError where what may not be left out is too large in its smallest form.
    """
    choice = RoomChoice(_one_of_each(candidates), budget)
    copies = [one for one in candidates if choice.open.get(one.name) is not one]
    _take_required(choice, budget)
    _take_protected(choice, protected)
    shown = {page for one in choice.taken.values() for page in one.pages}
    contests = []
    for part, share in shares.items():
        wanted = [one for one in choice.open.values() if one.part is part]
        if part is PromptPart.CONVERSATION:
            _take_older(choice, wanted, topics)
        else:
            for one in [one for one in wanted if one.pages and shown.issuperset(one.pages)]:
                choice.leave(one, SHOWN_ALREADY)
                wanted.remove(one)
            wanted.sort(key=_rank)
            choice.take_each(wanted, budget * share // PPM)
            shown |= {page for one in wanted if one.name in choice.taken for page in one.pages}
        if wanted:
            contests.append(_contest(part, wanted, choice))
    for one in list(choice.open.values()):
        choice.leave(one)
    omitted = [*choice.omitted.values(), *(OmittedPage(one.name, one.tokens, SAME_FACT) for one in copies)]
    return _assembled(candidates, choice, omitted, tuple(contests), budget)


def holds_required(candidates: Sequence[PromptCandidate], budget: int) -> bool:
    """Whether a budget holds what may not be left out, in its smallest form."""
    return sum(smallest(one).tokens for one in candidates if one.part is PromptPart.CORE) <= budget


def _take_required(choice: RoomChoice[PromptCandidate], budget: int) -> None:
    required = [one for one in choice.open.values() if one.part is PromptPart.CORE]
    if not choice.take_all(required):
        least = sum(smallest(one).tokens for one in required)
        raise InputError(
            f"a prompt of {budget:,} tokens cannot hold what instructs and the message itself ({least:,} tokens in the "
            "smallest form); give it more tokens",
            code="over-budget",
        )


def _take_protected(choice: RoomChoice[PromptCandidate], protected: int) -> None:
    """The newest turns as they were said; where they do not fit, levels go first, then whole turns, then chains."""
    talk = [one for one in choice.open.values() if one.part is PromptPart.CONVERSATION]
    turns = sorted({one.turn for one in talk})[-protected:] if protected else []
    for first in turns:
        window = [one for one in talk if one.turn >= first]
        if choice.take_all(sorted(window, key=lambda one: (one.turn, -one.tokens, one.order))):
            return
    newest = [one for one in talk if turns and one.turn == turns[-1]]
    choice.take_each(sorted(newest, key=lambda one: (not one.first, -one.order)))


def _take_older(
    choice: RoomChoice[PromptCandidate], talk: Sequence[PromptCandidate], topics: frozenset[str] | None
) -> None:
    """Older turns, the newest first and no gap by tokens; those of other topics stay out where topics are given."""
    for turn in sorted({one.turn for one in talk}, reverse=True):
        of = [one for one in talk if one.turn == turn]
        tags = {tag for one in of for tag in one.tags}
        if topics is not None and tags and topics.isdisjoint(tags):
            for one in of:
                choice.leave(one, OTHER_TOPIC)
        elif sum(one.tokens for one in of) <= choice.room:
            choice.take(of)
        else:
            return


def _one_of_each(candidates: Sequence[PromptCandidate]) -> list[PromptCandidate]:
    """The candidates with the best of those that say the same, and of those of one name the first."""
    best: dict[str, PromptCandidate] = {}
    for one in candidates:
        key = f"{one.part.word}:{one.subject}" if one.subject else one.name
        if key not in best or (one.subject and _rank(one) < _rank(best[key])):
            best[key] = one
    return list({one.name: one for one in best.values()}.values())


def _rank(one: PromptCandidate) -> tuple[int, float, int, int, str]:
    return -one.priority, -one.score, -one.turn, one.order, one.name


def _contest(part: PromptPart, wanted: Sequence[PromptCandidate], choice: RoomChoice[PromptCandidate]) -> PartContest:
    chosen = [one for one in wanted if one.name in choice.taken]
    out = [one for one in wanted if one.name not in choice.taken]
    losers = tuple((one.score, one.name) for one in sorted(out, key=_rank)[:LOSERS])
    return PartContest(part, len(wanted), len(chosen), min((one.score for one in chosen), default=0.0), losers)


def _assembled(
    candidates: Sequence[PromptCandidate],
    choice: RoomChoice[PromptCandidate],
    omitted: Sequence[OmittedPage],
    contests: tuple[PartContest, ...],
    budget: int,
) -> Assembly:
    shown = sorted(choice.taken.values(), key=lambda one: (one.part, one.turn, one.order, _rank(one)))
    breakdown = {part: sum(one.tokens for one in shown if one.part is part) for part in PromptPart}
    tokens = sum(breakdown.values())
    assert tokens <= budget, "a prompt holds what was chosen for it"
    return Assembly(
        tuple(shown), lowered_of(candidates, choice.taken), tuple(omitted), breakdown, contests, tokens, budget
    )
