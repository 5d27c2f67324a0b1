"""What a column costs grows with the pages, not with their square."""

from __future__ import annotations

from functools import partial

import pytest

import vmstore
from tests.engine.stories import answer, chat
from tests.growing import steps
from vmstore.vmql.execution import executor
from vmstore.vmql.relations.catalog import RELATIONS

SMALL, LARGE = 100, 200


@pytest.fixture(scope="module")
def stores() -> list[vmstore.Store]:
    """Two stores of one call each, the second with twice the messages."""
    made = []
    for count in (SMALL, LARGE):
        store = vmstore.memory_store()
        store.record("s", chat(*(f"Is {n} prime?" for n in range(count))), answer("Some are."))
        made.append(store)
    return made


def answered(store: vmstore.Store, asked: str) -> None:
    """Takes all rows of an answer."""
    list(store.query(asked))


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_column_costs_the_square(
    stores: list[vmstore.Store], relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the pages cost at most 2.2 times the steps, of SQLite and of Python, whichever column is asked for."""
    monkeypatch.setattr(executor, "STEPS", 1)  # so that each step of SQLite is one of Python, and counted
    for column in RELATIONS[relation].fields:
        asked = f"{relation} count({column}) WHERE {column} IS NOT NULL"
        taken = []
        for store in stores:
            answered(store, asked)
            taken.append(steps(partial(answered, store, asked)))
        assert taken[1] <= 2.2 * max(taken[0], 2_000), (asked, taken)
