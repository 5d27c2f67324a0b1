"""Decisions and changes in words of many manners: how many are heard, and how few claims are wrongly replaced."""

from __future__ import annotations

import pytest

from tests.vm.exchanges.scored import exchanges, score, total
from vmstore.vm.claims.claims import KnownClaim
from vmstore.vm.claims.quotes import agree

FLOORS = {"tune": (0.70, 0.92, 0.41, 1.0), "test": (0.65, 0.88, 0.33, 0.90)}  # measured: see specs/compression.md


@pytest.mark.parametrize("half", FLOORS)
def test_decisions_are_heard_in_many_manners(half: str) -> None:
    """Recall, precision, changes heard and claims rightly replaced stay above what was measured."""
    found = total(half)
    told = (found.recall, found.precision, found.changes_heard, found.replaced_rightly)
    assert len(exchanges(half)) == 150
    assert all(one >= floor for one, floor in zip(told, FLOORS[half], strict=True)), (told, found)


def test_an_exchange_is_scored_by_what_it_decides() -> None:
    """Where what is held is another value, or of another subject, the claim is wrong."""
    talk = next(talk for talk in exchanges("tune") if score(talk).found and len(talk[0].labels) == 1)
    label = talk[0].labels[0]
    for other in (label._replace(value="zzz"), label._replace(subjects=("zzz",))):
        changed = [talk[0]._replace(labels=(other,)), *talk[1:]]
        assert score(changed).found < score(talk).found


def test_one_thing_has_many_sides() -> None:
    """What is said of another side of a thing takes no place of a claim; what names its old value may."""
    shop = KnownClaim("claim_shop", "shop", "Decision: the shop is staffed from 9:00")
    assert not agree("the shop buys from Braun", shop.topic, shop.text)
    assert agree("the shop is staffed from 7:00", shop.topic, shop.text)
    assert agree("no longer 9:00: the shop opens at 7:00", shop.topic, shop.text)
