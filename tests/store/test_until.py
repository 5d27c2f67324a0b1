"""Breakpoints: the first moment at which a predicate holds, of every kind of session."""

from __future__ import annotations

from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore.errors import UnknownError
from vmstore.shell.demo.demo import SHIPPED
from vmstore.store.breakpoints import until
from vmstore.store.session import Session
from vmstore.store.store import Store
from vmstore.vmql.syntax.errors import QueryError


@pytest.fixture(scope="module")
def shipped() -> Store:
    """A session that was imported, and a fork of it."""
    store = vmstore.memory_store()
    store.import_file(SHIPPED)
    store.session("planning-220").fork("try-b", turn=160)
    return store


@pytest.fixture(scope="module")
def live() -> Store:
    """A session with a budget so small that pages give way."""
    store = vmstore.memory_store()
    session = store.live_session("s1", l0_tokens_max=4_000, policy="lru")
    for turn in range(10):
        session.user(f"Note {turn}: " + "a fact worth keeping " * 60)
        session.pack()
        session.assistant(f"Noted, {turn}.")
    return store


def presence(session: Session) -> list[tuple[int, set[str]]]:
    """What each call had in its context, asked call by call."""
    return [(call.position, set(session.context(call=call.call).page_ids)) for call in session.calls()]


def test_the_first_leaving_and_the_next(live: Store) -> None:
    """LEAVES and ENTERS stop at exactly the calls whose contexts, asked one by one, no longer or newly have a page."""
    session = live.session("s1")
    shown = presence(session)
    pages = {page.page: page.position for page in session.pages()}
    left = 0
    for name, page in pages.items():
        here = [page in context for _, context in shown]
        pairs = list(zip([False, *here], here, [position for position, _ in shown], strict=False))
        for verb, was in (("ENTERS", False), ("LEAVES", True)):
            wanted = [at for before, now, at in pairs if before is was and now is not was]
            positions, after = [], None
            while (stop := until(live, session, f"{name} {verb} L0", after)) is not None:
                positions.append(stop.position)
                after = stop.position
            assert positions == wanted, (name, verb)
            left += len(wanted) if verb == "LEAVES" else 0
    assert left > 3, "pages gave way"


def test_a_decision_is_told_with_the_leaving(live: Store) -> None:
    """A leaving says which decision it came from, and MUTATIONS stops at that one, before the pack."""
    session = live.session("s1")
    left = until(live, session, "page LEAVES L0")
    assert left is not None
    decided = until(live, session, f"kind = evict AND page = {left.row['page']}")
    assert decided is not None
    assert decided.relation == "MUTATIONS" and decided.position < left.position
    assert left.row["cause"] == decided.position
    assert left.event == f"{left.row['page']} leaves L0 (evict: {decided.row['reason']})"


@pytest.mark.parametrize(
    ("predicate", "relation", "call"),
    [
        ("tokens > 9000", "CALLS", 48),
        ("CALLS WHERE tokens > 9000", "CALLS", 48),
        ("CONTEXT MATCHES 'object storage'", "CALLS", 34),
        ("claim_storage_4 ENTERS L0", "MOVES", 39),
        ("page = claim_storage_4 AND tier_after = L0", "MOVES", 39),
        ("kind = create AND page = claim_storage_4", "MUTATIONS", 38),
        ("PAGES WHERE page = claim_storage_4", "PAGES", 38),
        ("claim_storage_4 LEAVES L0 OR turn = 150", "MOVES", 366),
        ("granted", "FAULTS", None),
    ],
)
def test_what_can_be_waited_for(shipped: Store, predicate: str, relation: str, call: int | None) -> None:
    """A condition is asked of the first relation that has its columns, or of the one that is named."""
    actual = until(shipped, shipped.session("planning-220"), predicate)
    if call is None:
        assert actual is None or actual.relation == relation
    else:
        assert actual is not None
        assert (actual.relation, actual.call) == (relation, call)
        assert actual.event


def test_the_call_is_the_one_in_force(shipped: Store) -> None:
    """Turn and call of a stop are those of the position, also where its relation has no such columns."""
    session = shipped.session("planning-220")
    for predicate in ("LINKS WHERE kind = derives", "MESSAGES WHERE role = assistant", "VERSIONS WHERE tokens > 500"):
        actual = until(shipped, session, predicate)
        assert actual is not None
        fact = until(shipped, session, f"MUTATIONS WHERE position = {actual.position}")
        assert fact is not None
        assert (actual.turn, actual.call) == (fact.row["turn"], fact.row["call"])


def test_a_fork_stops_in_its_past(shipped: Store) -> None:
    """A fork stops where its parent did as long as they share the past, and never after what it does not see."""
    child, parent = shipped.session("try-b"), shipped.session("planning-220")
    first, other = (until(shipped, session, "claim_storage_4 LEAVES L0") for session in (child, parent))
    assert first is not None and other is not None
    assert first.position == other.position
    assert until(shipped, parent, "turn = 200") is not None
    assert until(shipped, child, "turn = 200") is None


def test_never_is_an_answer(shipped: Store) -> None:
    """A predicate that never holds, or not any more, is no error and no stop."""
    session = shipped.session("planning-220")
    assert until(shipped, session, "tokens > 9000000") is None
    assert until(shipped, session, "call = 1", after=session.info().position) is None


WRONG: list[tuple[str, str, str, str]] = [
    ("tokenz > 8000", "unknown-column", "tokenz", "did you mean tokens?"),
    ("kind = evict AND cost > 1", "unknown-column", "", "kind is of MUTATIONS, cost is of CALLS"),
    ("tokens >", "unfinished", "", "the text ends"),
    ("tokens > 'many'", "wrong-type", "'many'", ""),
    ("p8 LEAVES L9", "unknown-word", "L9", "L9"),
    ("p99999999 LEAVES L0", "unknown-page", "p99999999", "the nearest is"),
    ("turn = 3 LIMIT 1", "clause-unused", "", "leave the rest out"),
    ("CALLS WHERE call = 3 SINCE TURN 1", "clause-unused", "", "leave the rest out"),
    ("RESIDENCIES WHERE level = 1", "not-a-condition", "", "MOVES WHERE"),
    ("SESSIONS WHERE turns > 1", "not-a-condition", "", "came at no one position"),
    ("tokens == 5", "double-equals", "==", "tokens = 5"),
    ("", "unfinished", "", ""),
    ("call = 1; call = 2", "second-statement", "", ""),
]


@pytest.mark.parametrize(("predicate", "code", "place", "says"), WRONG, ids=[row[0] for row in WRONG])
def test_mistakes_are_pointed_at(shipped: Store, predicate: str, code: str, place: str, says: str) -> None:
    """What is wrong with a predicate is told with the place in it, and with what was meant."""
    with pytest.raises(QueryError) as caught:
        until(shipped, shipped.session("planning-220"), predicate)
    error: Any = caught.value
    assert error.code == code
    assert says in str(error)
    assert error.text == predicate
    assert 0 <= error.span.start <= error.span.end <= len(predicate) + 1
    if place:
        assert predicate[error.span.start : error.span.end] == place


def test_a_position_that_is_not_there(shipped: Store) -> None:
    """To go on after a position that the session does not have is refused, with its last."""
    session = shipped.session("planning-220")
    with refused("no-position", UnknownError, "position 99999", "5569"):
        until(shipped, session, "call = 1", after=99_999)
