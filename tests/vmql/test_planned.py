"""Plans, atoms, files and segments are what a naive reading of the facts makes of them."""

from __future__ import annotations

import random

import pytest

from tests.against_model import model_of
from tests.engine.author import Deed
from tests.vmql.asked import COLUMNS
from tests.vmql.facts import Naive
from tests.vmql.test_differential import PLANNED, written

RELATIONS = ("TASKS", "ATOMS", "ARTIFACTS", "SEGMENTS")
STORIES = 16


@pytest.mark.parametrize("seed", range(STORIES))
def test_what_is_worked_on_is_told_as_the_facts_say(seed: int) -> None:
    """Of a story of work with forks every row of these relations is that of the naive reading, in its order."""
    chance = random.Random(seed)
    story = [
        Deed(chance.choice((*PLANNED, "switch")), *(chance.randrange(64) for _ in range(4)))
        for _ in range(chance.randrange(20, 60))
    ]
    store = written(story)
    model = model_of(store)
    naive = Naive(model)
    for relation in RELATIONS:
        columns = COLUMNS[relation]
        for name in model.names.values():
            rows = naive.rows(relation, name, model.last(name)[0])
            wanted = [tuple(row[column] for column in columns) for row in rows]
            assert list(store.query(f"{relation} {', '.join(columns)} IN SESSION '{name}'")) == wanted


def test_a_fork_states_of_an_inherited_page_what_it_is() -> None:
    """A fact that a fork states of a page it inherited is what the page says there, and nowhere else."""
    stated = [Deed("work", 2), Deed("end", 1, 20), Deed("fork", 1), *(Deed("fact", page, 1) for page in range(3))]
    store = written(stated)
    kinds = {name: list(store.query(f"ATOMS kind IN SESSION '{name}'")) for name in ("s0", "s1")}
    assert kinds == {"s0": [("insight",)], "s1": [("fact",)]}


def test_atoms_come_in_the_order_of_their_pages() -> None:
    """Procedures and claims are told as they came, whatever their types."""
    store = written([Deed("work", kind) for kind in (2, 1, 2, 1)])
    pages = [int(page[1:]) for (page,) in store.query("ATOMS page")]
    assert len(pages) == 4 and pages == sorted(pages)
