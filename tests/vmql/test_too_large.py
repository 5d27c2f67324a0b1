"""What SQLite cannot take is the statement's fault or vmstore's own, and never told as damage of the views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

import vmstore
from tests.engine.stories import answer, chat
from tests.growing import steps
from tests.refusals import refused
from vmstore.errors import CorruptError, InternalError
from vmstore.vmql.planner.plan import Plan
from vmstore.vmql.syntax.errors import QueryError

MANY = {
    "conditions": ("WHERE", " OR ".join(f"position = {n}" for n in range(1_200)), "conditions"),
    "values": ("WHERE", f"position IN ({', '.join(map(str, range(33_000)))})", "values"),
    "pattern": ("WHERE", f"kind LIKE '{'a' * 60_000}'", "pattern"),
    "order": ("ORDER BY", ", ".join(["position"] * 2_100), "ordered by"),
    "groups": ("BY", ", ".join(["position"] * 2_100), "columns"),
}


@pytest.fixture
def store() -> vmstore.Store:
    """A store in memory with a call."""
    store = vmstore.memory_store()
    store.record("s", chat("Where is Kyoto?"), answer("In Japan."))
    return store


@pytest.mark.parametrize("relation", ["PAGES page", "MUTATIONS position"])
@pytest.mark.parametrize(("clause", "large", "text"), MANY.values(), ids=MANY)
def test_what_is_too_large_is_pointed_at(
    store: vmstore.Store, relation: str, clause: str, large: str, text: str
) -> None:
    """A statement that is larger than SQLite takes is refused as too large, with a caret under what is."""
    if relation.startswith("PAGES"):
        large = large.replace("kind", "text").replace("position", "tokens")
    head = f"{relation.split(maxsplit=1)[0]} count(*)" if clause == "BY" else relation
    with pytest.raises(QueryError, match=text) as caught:
        list(store.query(f"{head} {clause} {large}"))
    error = caught.value
    assert error.code == "too-large" and error.hint and "damaged" not in str(error)
    assert error.text[error.span.start : error.span.end] == large
    assert "^" in error.pointed()


def test_so_many_columns_are_pointed_at(store: vmstore.Store) -> None:
    """More columns than SQLite shows are refused as too large, with a caret under them."""
    with pytest.raises(QueryError) as caught:
        list(store.query(f"PAGES {', '.join(['page'] * 2_100)}"))
    assert caught.value.code == "too-large" and caught.value.pointed()


def test_a_truth_on_the_right_is_taken_whole(store: vmstore.Store) -> None:
    """A column that is a condition in SQL is compared as a whole, wherever it stands, and null stays unknown."""
    assert list(store.query("PAGES page WHERE metadata.x = dirty")) == []
    for truth in ("dirty", "pinned"):
        for compared in (f"metadata.x = {truth}", f"{truth} = metadata.x", f"metadata.x != {truth}"):
            assert list(store.query(f"PAGES count(*) WHERE {compared} OR NOT ({compared})")) == [(0,)]
        same = f"PAGES count(*) WHERE {truth} = {truth}"
        assert list(store.query(same)) == list(store.query("PAGES count(*)"))


def test_a_fault_of_ours_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQL that was built wrongly names the statement and no rebuild; views that lack a table are damaged still."""
    with vmstore.open(tmp_path / "a.vms") as store:
        store.record("s", chat("Where is Kyoto?"), answer("In Japan."))
        whole = Plan.sql
        monkeypatch.setattr("vmstore.vmql.planner.plan.Plan.sql", lambda self, lane: whole(self, lane) + " NONSENSE")
        for text in ("PAGES page", "MUTATIONS position ORDER BY position"):
            with pytest.raises(InternalError, match=f"of '{text}'; nothing is damaged"):
                list(store.query(text))
        monkeypatch.undo()
        with refused("views-misunderstood", InternalError), store._ns.asking():
            store.admin.views.execute("SELECT nothing FROM sessions")
        (views,) = (tmp_path / "a.vms/default").glob("views-*.sqlite")
        other = apsw.Connection(str(views))
        other.execute("DROP TABLE tags")
        other.close()
        with refused("views-damaged", CorruptError):
            list(store.query("PAGES page, tags"))
        with refused("views-damaged", CorruptError):
            store.pages()


@pytest.mark.parametrize("sign", ["+", "-", "*", "/"])
@pytest.mark.parametrize("text", ["PAGES page WHERE tokens = {0}", "PAGES {0}", "PAGES page ORDER BY {0}"])
def test_operations_that_stand_too_deep_are_pointed_at(store: vmstore.Store, text: str, sign: str) -> None:
    """A hundred operations in one another are answered, one more is refused, and so is a text full of them."""
    list(store.query(text.format(f" {sign} ".join(["tokens"] * 100))))
    for many in (102, 100_000):
        with pytest.raises(QueryError) as refusal:
            store.query(text.format(f" {sign} ".join(["tokens"] * many)))
        assert refusal.value.code == "too-deep" and refusal.value.pointed()


def test_what_is_deeper_than_the_stack_is_no_fault_of_ours(store: vmstore.Store) -> None:
    """Operations and parentheses that are each within their limits, and together are not, are refused too."""
    chain, deep = " + ".join(["tokens"] * 90), "tokens"
    for at in range(60):
        deep = f"({deep}) + {chain}" if at % 2 else f"tokens + ({deep})"
    with pytest.raises(QueryError) as refusal:
        list(store.query(f"PAGES {deep}"))
    assert refusal.value.code == "too-deep" and refusal.value.pointed()


def test_each_operation_is_read_once(store: vmstore.Store) -> None:
    """Twice the operations in one another cost at most three times the steps: none is read again for each above it."""

    def asked(count: int) -> None:
        store.query(f"PAGES {' + '.join(['tokens'] * count)} WHERE tokens = {count}")

    asked(2)
    few, many = steps(lambda: asked(10)), steps(lambda: asked(20))
    assert many < 3 * few, (few, many)


# ---- limits that are asked for


def test_a_statement_ends_where_it_passes_a_limit(store: vmstore.Store) -> None:
    """Time, rows and memory that a statement may take end it in a QueryError that names the limit; others go on."""
    rows = list(store.query("PAGES page"))
    assert len(rows) > 2
    for limits, code, item in (
        ({"timeout_s": 1e-6}, "timeout", "took longer than it may"),
        ({"rows": len(rows) - 1}, "too-large", f"more than {len(rows) - 1:,} rows"),
        ({"memory": 1}, "too-large", "needs more memory"),
    ):
        with pytest.raises(QueryError, match=item) as passed:
            list(store.query("PAGES page, text", **limits))  # type: ignore[arg-type]
        assert passed.value.code == code
        assert passed.value.text == "PAGES page, text"
    within = store.query("PAGES page", timeout_s=60, rows=len(rows), memory=64 << 20)
    assert list(within) == rows


def test_rows_that_are_made_and_statements_within_keep_to_the_limits(store: vmstore.Store) -> None:
    """MUTATIONS, made as it is taken, ends at the time; a statement within counts no rows of the answer."""
    with pytest.raises(QueryError) as passed:
        list(store.query("MUTATIONS", timeout_s=1e-6))
    assert passed.value.code == "timeout"
    with pytest.raises(QueryError) as passed:
        list(store.query("MUTATIONS position, kind", rows=3))
    assert passed.value.code == "too-large"
    (row,) = store.query("PAGES count(*) WHERE page IN (PAGES page)", rows=1)
    assert row[0] > 2


@pytest.mark.parametrize("limit", [{"timeout_s": 0}, {"rows": -1}, {"memory": 1.5}, {"rows": True}, {"timeout_s": "1"}])
def test_what_is_no_limit_is_refused(store: vmstore.Store, limit: dict[str, Any]) -> None:
    """A limit that is no number above nothing is refused by its name, before anything is read."""
    with pytest.raises(vmstore.InputError, match=f"{next(iter(limit))}=.* is no limit"):
        store.query("PAGES", **limit)
