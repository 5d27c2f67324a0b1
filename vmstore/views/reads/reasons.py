"""The numbers of a decision in words."""

from __future__ import annotations

from collections.abc import Callable

from vmstore.core.address import page_name
from vmstore.core.decision import (
    HANDED_IN,
    POLICY_NAMES,
    Cause,
    Cite,
    Denial,
    Evict,
    FaultDenied,
    FaultIn,
    FaultReason,
    Holder,
    Load,
    Pin,
    Prefetch,
    Pressure,
    Recall,
    Reference,
    Search,
    Segment,
    Signal,
    Unpin,
    Use,
    Why,
)
from vmstore.core.mutation_kind import MUTATION_NAMES
from vmstore.core.page import Level, WordEnum
from vmstore.views.projectors.decisions import Decision


def word_of(words: type[WordEnum], number: int | None) -> str | None:
    """The word a number stands for, or the number where a later version made it."""
    if number is None:
        return None
    return words(number).word if number in words._value2member_map_ else str(number)


def policy_name(number: int) -> str:
    """The name and version of a policy, or its number where a later version made it."""
    if number == HANDED_IN:
        return "a policy of the program's own"
    return POLICY_NAMES.get(number, f"policy {number}")


def use_of(use: int | None, reason: int | None, signal: int | None) -> str | None:
    """The word for a use: a fault's reason, a prefetch's signal, else the sign of use."""
    if use in (Use.FAULT, Use.ASKED):
        return word_of(FaultReason, reason)
    return word_of(Signal, signal) if use == Use.SIGNAL else word_of(Use, use)


_WORDS: dict[int, type[WordEnum]] = {
    FaultDenied.NUMBER: Denial,
    Evict.NUMBER: Cause,
    Pin.NUMBER: Holder,
    Unpin.NUMBER: Holder,
    Pressure.NUMBER: Load,
}


assert _WORDS.keys() <= MUTATION_NAMES.keys(), "decisions are looked up by the number of their kind"


def reason_of(decision: Decision, asked: Callable[[int], Decision | None]) -> str | None:
    """The reason of a decision in a word; `asked` finds the reference that a fault answers."""
    if decision.kind == Reference.NUMBER:
        return use_of(decision.word, decision.reason, decision.signal)
    if decision.kind == Recall.NUMBER:
        return "corrected" if decision.word else "right"
    if decision.kind in _WORDS:
        return word_of(_WORDS[decision.kind], decision.word)
    reference = None if decision.cause is None else asked(decision.cause)
    return None if reference is None or reference.kind != Reference.NUMBER else reason_of(reference, asked)


def detail_of(decision: Decision, asked: Callable[[int], Decision | None]) -> str:
    """A decision in a line: its reason, what it is about, and the contest it came from."""
    reason = reason_of(decision, asked)
    parts = [] if reason is None else [reason]
    if decision.kind == Reference.NUMBER:
        parts += [word_of(Use, decision.word) or ""] * (decision.word in (Use.FAULT, Use.ASKED, Use.SIGNAL))
        parts += [f"level {decision.level}"] * bool(decision.level)
    elif decision.kind == Search.NUMBER:
        parts.append(f"found at place {decision.word}")
    elif decision.kind == Segment.NUMBER:
        parts.append(f"stands for segment {decision.word}")
    elif decision.kind == Cite.NUMBER:
        parts.append(f"by {page_name(decision.cause or 0)}")
    elif decision.kind == Evict.NUMBER:
        parts += [] if decision.level is None else [f"shown {Level(decision.level).word}"]
        parts += [f"score {decision.score}"] * (decision.why is not None or bool(decision.cause))
        parts += [f"with the others at position {decision.cause}"] * bool(decision.cause)
    elif decision.kind in (FaultIn.NUMBER, Prefetch.NUMBER, FaultDenied.NUMBER):
        parts.append(f"asked at position {decision.cause}")
    return "; ".join([*parts, *([] if decision.why is None else [contest(decision.why)])])


def contest(why: Why) -> str:
    """A contest in a line: policy, tokens, who it was for, and how close the nearest others were."""
    losers = ", ".join(f"p{page} {score}" for score, page in why.losers)  # by hand it may be a page there is none of
    return "".join(
        (
            f"{policy_name(why.policy)}, {why.used} of {why.budget} tokens used, {why.need} needed",
            f" for p{why.winner}" if why.winner else "",
            f"; {why.candidates} candidate{'s' * (why.candidates != 1)}, cut off at {why.cutoff}",
            f", nearest {losers}" if losers else "",
        )
    )
