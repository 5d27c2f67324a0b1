"""Whatever is asked, it ends where it is stopped or takes longer than it may, also in what Python does for it."""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any

import pytest

import vmstore
from vmstore.shell.demo.demo import SHIPPED
from vmstore.vmql.execution import executor, query
from vmstore.vmql.execution.result import Cancellation
from vmstore.vmql.relations.catalog import RELATIONS
from vmstore.vmql.syntax.errors import QueryError

WITHIN = (
    "VERIFY",
    "SEARCH 'object storage'",
    "SEARCH 'object storage' WITHIN 500 TOKENS",
    "EXPLAIN ANALYZE SEARCH 'object storage'",
    "EXPLAIN ANALYZE MUTATIONS count(*) BY actor",
    "CALLS call WHERE CONTEXT MATCHES 'storage'",
    "CONTEXT sum(tokens) PER CALL",
    "PAGES page WHERE page IN (MUTATIONS page)",
)
"""What takes long before a row is there: stopped within, not where a row is taken."""
OTHERS = (
    *(f"{name} {', '.join(relation.fields)}" for name, relation in RELATIONS.items()),
    *("CONTEXT page, text", "CONTEXT RENDER", "CONTEXT MESSAGES", "DIFF CONTEXT CALL 1 TO CALL 500"),
    *("HISTORY OF p4", "RESIDENCIES OF p4", "VERSIONS OF p4", "SOURCES OF claim_db", "DERIVED FROM p8"),
    *("PATH FROM p8 TO claim_storage_4", "WHY p4 IN CONTEXT", "WATCH MUTATIONS", "VERIFY SESSION 'planning-220'"),
    *("FAULTS page.text", "FAULTS count(*) PER TURN", "PAGES count(*) AS OF TURN (TURNS max(turn))"),
)


@pytest.fixture(scope="module")
def demo() -> vmstore.Store:
    """The session that ships, in memory."""
    store = vmstore.memory_store()
    store.import_file(SHIPPED)
    return store


@pytest.mark.parametrize("text", WITHIN)
def test_what_takes_long_is_stopped_within(demo: vmstore.Store, text: str) -> None:
    """A statement that works before its first row ends in the middle of that work."""
    with pytest.raises(QueryError) as stopped:
        demo.query(text, timeout_s=1e-6)
    assert stopped.value.code == "timeout"


@pytest.mark.parametrize("text", OTHERS)
def test_every_statement_keeps_to_its_time(demo: vmstore.Store, text: str) -> None:
    """Every statement that has a row to give ends at the time it may take."""
    if not list(demo.query(text.replace("claim_db", "claim_storage_4"))):
        return
    with pytest.raises(QueryError) as stopped:
        list(demo.query(text.replace("claim_db", "claim_storage_4"), timeout_s=1e-6))
    assert stopped.value.code == "timeout"


def test_a_check_of_everything_is_interrupted(demo: vmstore.Store) -> None:
    """VERIFY that another thread interrupts ends in `cancelled`, and the store answers on."""
    texts: list[str] = []

    def asked() -> None:
        try:
            for _ in range(50):  # one may end before the other thread has had its turn
                demo.query("VERIFY")
        except QueryError as error:
            texts.append(error.code)

    thread = threading.Thread(target=asked)
    thread.start()
    while thread.is_alive():
        demo.admin.interrupt()
    assert texts == ["cancelled"]
    assert list(demo.query("SESSIONS session")) == [("planning-220",)]


# ---- how far a statement goes on before it looks whether it is to stop


class Looking(Cancellation):
    """A watch that counts the lines of Python between two looks at it; SQLite looks at every step of its own."""

    __slots__ = ()
    lines = longest = whole = 0

    @property
    def stopped(self) -> bool:
        """Whether it is to stop: never."""
        Looking.longest, Looking.whole = max(Looking.longest, Looking.lines), Looking.whole + Looking.lines
        Looking.lines = 0
        return False

    @stopped.setter
    def stopped(self, value: bool) -> None:
        """Nobody stops it."""


def traced(frame: FrameType, event: str, argument: object) -> Any:
    """Counts the lines that run."""
    Looking.lines += event == "line"
    return traced


@pytest.fixture(scope="module")
def long() -> vmstore.Store:
    """A session whose prompt was cut and filled again and again, and twice as much of the same beside it."""
    store = vmstore.memory_store()
    for name, calls in (("short", 20), ("long", 40)):
        for call in range(calls):
            messages = [{"role": "user", "content": f"Is {n} prime?"} for n in range(call % 10, call * 3 + 10)]
            store.record(name, {"model": "m", "messages": messages}, None, at_us=1_000_000 * call)
    return store


KINDS = (
    *(f"{name} {', '.join(relation.fields)} IN SESSION '{{0}}'" for name, relation in RELATIONS.items()),
    "CONTEXT sum(tokens) PER CALL IN SESSION '{0}'",
    *("HISTORY OF p4 IN SESSION '{0}'", "FAULTS page.text IN SESSION '{0}'", "DERIVED FROM p4 IN SESSION '{0}'"),
    *("FAULTS count(*) PER TURN IN SESSION '{0}'", "WHY p4 IN CONTEXT IN SESSION '{0}'"),
    *("SEARCH 'prime' IN SESSION '{0}'", "EXPLAIN ANALYZE MOVES IN SESSION '{0}'", "WATCH MUTATIONS IN SESSION '{0}'"),
    *("CALLS call IN SESSION '{0}' WHERE CONTEXT MATCHES 'prime'",),
    *("PAGES page IN SESSION '{0}' WHERE text MATCHES 'prime'",),
)
"""One prompt is read at once, and VERIFY looks after so many commits as these sessions do not have."""
AT_ONCE = 1_500
"""Lines of Python that may run without a look, however much there is to do."""


@pytest.mark.parametrize("text", KINDS)
def test_a_statement_looks_as_it_goes(long: vmstore.Store, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """What runs without a look does not grow with what there is to do, or is a small part of it."""
    monkeypatch.setattr(query, "Cancellation", Looking)
    for module in (query, executor):
        monkeypatch.setattr(module, "STEPS", 1)
    longest = {}
    for name in ("short", "long"):
        list(long.query(text.format(name)))
        Looking.lines = Looking.longest = Looking.whole = 0
        sys.settrace(traced)
        try:
            list(long.query(text.format(name)))
        finally:
            sys.settrace(None)
        longest[name] = Looking.longest, Looking.whole
    (few, _), (many, whole) = longest["short"], longest["long"]
    assert many <= max(AT_ONCE, 1.3 * few) or many < whole / 10, longest
