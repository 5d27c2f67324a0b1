"""What is said of decisions in words is what their numbers stand for."""

from __future__ import annotations

import pytest

from tests.decided import live
from vmstore.core.decision import POLICY_NAMES, Cause, Use, Why
from vmstore.core.mutation import Evict, Reference
from vmstore.views.projectors.decisions import Decision, last_contest, settings_at
from vmstore.views.reads.reasons import contest, detail_of, policy_name, reason_of, use_of, word_of
from vmstore.vm.policies.registry import SHIPPED, full_name


def test_policies_are_named_as_they_are_registered() -> None:
    """The names that answers give policies are those of the registry, number by number."""
    assert {policy.NUMBER: full_name(policy) for policy in SHIPPED} == POLICY_NAMES
    assert policy_name(99) == "policy 99"


def test_a_word_of_a_later_version_is_its_number() -> None:
    """A number that stands for no word here is told as it is, and nothing is told of none."""
    assert [word_of(Cause, number) for number in (0, 99, None)] == ["pressure", "99", None]
    assert use_of(Use.SIGNAL, 0, 99) == "99"


@pytest.mark.parametrize(
    ("use", "text"),
    [(0, "tool_prereq"), (1, "tool"), (2, "quote"), (3, "reuse"), (4, "tool_prereq"), (5, "summary")],
)
def test_a_reference_says_why(use: int, text: str) -> None:
    """A fault says its reason, a wish its signal, another use what it is the sign of."""
    decision = Decision(9, Reference.NUMBER, 4, level=0, word=use, reason=2, signal=3)
    assert reason_of(decision, lambda _: None) == text
    assert detail_of(decision, lambda _: None).startswith(text)


def test_a_contest_is_told_whole() -> None:
    """The line of a contest has policy, tokens, whom it was for, candidates, cutoff and each of the nearest."""
    why = Why(1, 8_000, 7_900, 400, 12, 31, -5, ((-4, 7), (0, 8)))
    assert contest(why) == (
        "lru@1, 7900 of 8000 tokens used, 400 needed for p12; 31 candidates, cut off at -5, nearest p7 -4, p8 0"
    )
    assert contest(why._replace(winner=0, candidates=1, losers=())) == (
        "lru@1, 7900 of 8000 tokens used, 400 needed; 1 candidate, cut off at -5"
    )


def test_the_last_contest_is_found_at_any_moment() -> None:
    """The last contest up to a position is the one before it, not a later one, and settings are those of then."""
    other_live = live()
    other_live.wished()
    other_live.session.info()  # the views follow when they are asked
    lane = other_live.session._lane()
    decisions = [
        last_contest(lane, at)
        for at in (other_live.evicted - 1, other_live.evicted, other_live.shortened, other_live.fourth)
    ]
    assert [decision and decision.position for decision in decisions] == [
        None,
        other_live.evicted,
        other_live.shortened,
        other_live.shortened,
    ]
    later = last_contest(lane, other_live.together + 1)
    assert later is not None and (later.kind, later.position) == (Evict.NUMBER, other_live.together)
    assert settings_at(lane, 1) is None and settings_at(lane, 2) == {"l0_tokens_max": 100, "policy": "lru"}
