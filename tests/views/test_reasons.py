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
    assert {one.NUMBER: full_name(one) for one in SHIPPED} == POLICY_NAMES
    assert policy_name(99) == "policy 99"


def test_a_word_of_a_later_version_is_its_number() -> None:
    """A number that stands for no word here is told as it is, and nothing is told of none."""
    assert [word_of(Cause, number) for number in (0, 99, None)] == ["pressure", "99", None]
    assert use_of(Use.SIGNAL, 0, 99) == "99"


@pytest.mark.parametrize(
    ("use", "said"),
    [(0, "tool_prereq"), (1, "tool"), (2, "quote"), (3, "reuse"), (4, "tool_prereq"), (5, "summary")],
)
def test_a_reference_says_why(use: int, said: str) -> None:
    """A fault says its reason, a wish its signal, another use what it is the sign of."""
    told = Decision(9, Reference.NUMBER, 4, level=0, word=use, reason=2, signal=3)
    assert reason_of(told, lambda _: None) == said
    assert detail_of(told, lambda _: None).startswith(said)


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
    told = live()
    told.wished()
    told.session.info()  # the views follow when they are asked
    lane = told.session._lane()
    found = [last_contest(lane, at) for at in (told.evicted - 1, told.evicted, told.shortened, told.fourth)]
    assert [one and one.position for one in found] == [None, told.evicted, told.shortened, told.shortened]
    later = last_contest(lane, told.together + 1)
    assert later is not None and (later.kind, later.position) == (Evict.NUMBER, told.together)
    assert settings_at(lane, 1) is None and settings_at(lane, 2) == {"l0_tokens_max": 100, "policy": "lru"}
