"""FACTS: what a naive reading of the facts one by one answers, at every moment and time."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import lanes
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.core.facts import CERTAIN
from vmstore.core.page import Standing
from vmstore.core.times import iso
from vmstore.facts.addition import Addition
from vmstore.facts.fact import StatedFact
from vmstore.store.recall.fact_reads import write_recorded
from vmstore.store.store import Store, memory_store
from vmstore.vmql.parse import parse
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.printer import show

DAY = 86_400_000_000
STANDS = (Standing.ACTIVE, Standing.ACTIVE, Standing.ACTIVE, Standing.PLANNED, Standing.COMPLETED)


class StatedRow(NamedTuple):
    """A fact as it is told: of whom, which value, since and until which day, how it stands, whether of an address."""

    subject: str
    what: str
    begins: int | None
    lasts: int | None
    status: Standing
    one: bool
    retracted: bool


TOLD = st.builds(
    StatedRow, st.sampled_from(["ann", "Ann", "bob"]), st.sampled_from(["a", "b", "B", "c"]),
    st.none() | st.integers(1, 9),
    st.none() | st.integers(0, 4), st.sampled_from(STANDS), st.booleans(), st.sampled_from([False, False, False, True]),
)  # fmt: skip


class Naive(NamedTuple):
    """A fact as a naive reading has it."""

    page: str
    told: StatedRow
    since: int
    until: int | None
    at: int

    @property
    def values(self) -> bool:
        """Whether it is a value at an address of one."""
        return self.told.one and not self.told.retracted and self.told.status != Standing.COMPLETED


def ends(fact: Naive, facts: list[Naive]) -> tuple[int | None, str | None]:
    """When a fact ends and what replaced it: the first later value at its address that is another."""
    since, by = fact.until, None
    if fact.values:
        plan = Standing.PLANNED
        address = fact.told.subject.lower(), fact.told.status == plan
        beside = [f for f in facts if f.values and (f.told.subject.lower(), f.told.status == plan) == address]
        line = sorted(beside, key=lambda f: (f.since, f.at, int(f.page[1:])))
        later = [f for f in line[line.index(fact) + 1 :] if f.told.what.lower() != fact.told.what.lower()]
        if later:
            by = later[0].page
            since = later[0].since if since is None else min(since, later[0].since)
    return since, by


def holds(fact: Naive, facts: list[Naive], when: int) -> bool:
    """Whether a fact is known at a time."""
    until, by = ends(fact, facts)
    begun = fact.told.status == Standing.PLANNED or fact.since <= when
    going = until is None or until > when or (fact.told.status == Standing.COMPLETED and by is None)
    return not fact.told.retracted and begun and going


def written(store: Store, value: list[StatedRow]) -> list[Naive]:
    """Writes facts, and how a naive reading has them."""
    session = store.session("s", create=True)
    naives = []
    for number, each in enumerate(value):
        at = (number + 2) * DAY
        begins = None if each.begins is None else each.begins * DAY
        until = None if each.lasts is None else ((each.begins or 0) + each.lasts) * DAY
        fact = StatedFact(
            subject=each.subject, verb="has", what=each.what, attribute="thing", one=each.one, status=each.status,
            valid_from=begins, valid_to=until, confidence=CERTAIN,
        )  # fmt: skip
        (number,) = write_recorded(store._ns, session._key, "s", [Addition(fact, None)], at)
        page = f"p{number}"
        if each.retracted:
            session.annotate(page, status="superseded", at_us=at)
        since = begins if begins is not None else at if until is None else min(at, until)
        naives.append(Naive(page, each, since, until, at))
    return naives


@settings(max_examples=lanes.tries(40))
@given(st.lists(TOLD, max_size=8), st.integers(0, 14))
def test_facts_are_what_a_naive_reading_finds(stated: list[StatedRow], day: int) -> None:
    """What is known at a time, when it ends and what replaced it are what reading the facts one by one gives."""
    store = memory_store(clock=ManualClock(20 * DAY, 1), ids=SeededIds(1))
    facts = written(store, stated)
    every: list[Any] = list(store.query("FACTS page, valid_to, superseded_by ALL ORDER BY position", session="s"))
    naive = [(f.page, *ends(f, facts)) for f in facts]
    assert every == [(page, None if until is None else iso(until), by) for page, until, by in naive]
    when = iso(day * DAY)
    asked = [row[0] for row in store.query(f"FACTS page VALID AT '{when}' ORDER BY position", session="s")]
    assert asked == [f.page for f in facts if holds(f, facts, day * DAY)]
    across = [row[0] for row in store.query(f"FACTS page VALID AT '{when}' ACROSS SESSIONS ORDER BY position")]
    assert across == asked


def test_the_time_that_was_asked_about_is_told() -> None:
    """An answer names the time it holds for, by itself that of the moment asked: given back, it repeats the answer."""
    store = memory_store(clock=ManualClock(DAY, 1), ids=SeededIds(1))
    written(store, [StatedRow("ann", "a", None, None, Standing.ACTIVE, True, False)] * 2)
    past = store.query("FACTS page AS OF POSITION 3", session="s")
    assert past.basis["valid_at"] == iso(2 * DAY)
    now = store.query("FACTS page", session="s").basis
    text = f"FACTS page AS OF POSITION {now['position']} VALID AT '{now['valid_at']}'"
    assert list(store.query(text, session="s")) == list(store.query("FACTS page", session="s"))
    assert "valid_at" not in store.query("FACTS page ALL", session="s").basis


@pytest.mark.parametrize(
    "text",
    [
        "FACTS page VALID AT '2024-03-01' AS OF TURN 3",
        "FACTS ALL",
        "FACTS WHERE valid_to IS NULL VALID AT $when LIMIT 3",
    ],
)
def test_clauses_of_facts_are_printed_as_they_are_read(text: str) -> None:
    """VALID AT and ALL stand in any order, and what is printed says the same."""
    assert parse(show(parse(text))) == parse(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("PAGES VALID AT '2024-03-01'", "clause-unused"),
        ("CALLS ALL", "clause-unused"),
        ("FACTS ALL VALID AT '2024-03-01'", "clause-unused"),
        ("FACTS VALID AT 'never'", "not-a-time"),
        ("FACTS VALID AT TURN 3", "unexpected"),
    ],
)
def test_what_cannot_be_asked_of_facts_is_refused(text: str, code: str) -> None:
    """A time in the world is asked of facts alone, as a time, and not together with ALL."""
    store = memory_store(clock=ManualClock(20 * DAY, 1), ids=SeededIds(1))
    store.session("s", create=True)
    with pytest.raises(QueryError) as refused:
        store.query(text, session="s")
    assert refused.value.code == code


def test_facts_are_explained() -> None:
    """EXPLAIN tells how facts are found, with their time."""
    store = memory_store(clock=ManualClock(20 * DAY, 1), ids=SeededIds(1))
    written(store, [StatedRow("ann", "a", 1, None, Standing.ACTIVE, True, False)])
    rows = list(store.query("EXPLAIN ANALYZE FACTS page VALID AT '1970-01-05'", session="s"))
    assert (rows[0][2], rows[0][4]) == ("FACTS page VALID AT '1970-01-05'", 1)
