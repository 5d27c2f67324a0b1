"""Whatever is asked, it ends where it is stopped or takes longer than it may, also in what Python does for it."""

from __future__ import annotations

import threading

import pytest

import vmstore
from vmstore.shell.demo.demo import SHIPPED
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
    *(f"{name} {', '.join(relation.fields)}" for name, relation in RELATIONS.items() if name != "METRICS"),
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
