"""What verify says of a log's commits, finding by finding: the kind, the place and what is wrong there."""

from __future__ import annotations

import msgspec
import pytest

from tests.engine.test_chain import changed, own, store
from vmstore import Store
from vmstore.cells.cell import Cell
from vmstore.core.mutation import Open, decode, encode
from vmstore.engine.verify import verify as room
from vmstore.engine.verify.verify import Finding, verify

__all__ = ["store"]  # the fixture: sessions apart, s, and f that forked from s


def findings(store: Store) -> list[tuple[str, str, str]]:
    """What is wrong with the commits and the cells of a log."""
    return [tuple(finding) for finding in checked(store)]  # type: ignore[misc]


def checked(store: Store) -> list[Finding]:
    """The findings, views and rules left out."""
    return verify(store.admin.log, store._ns.projection, views=False, rules=False)[1]


def opening(store: Store, name: str, **fields: object) -> int:
    """Changes the `open` of a session; its ordinal."""
    first = own(store, name)[0]
    opened, *rest = decode(first.body)
    assert isinstance(opened, Open)
    changed(store, first.ordinal, body=encode([msgspec.structs.replace(opened, **fields), *rest]))
    return first.ordinal


@pytest.mark.parametrize("cells", [1, 3, 256])
def test_each_cell_is_held_to_its_commitment(store: Store, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever cell is changed or missing, it is named with its commit, however many are read at a time."""
    monkeypatch.setattr(room, "CELLS", cells)
    assert findings(store) == []
    actual_cells = store.admin.log._cells  # type: ignore[attr-defined]
    for commit in store.admin.log.tail(0, 99):
        for number in range(commit.cell, commit.cell + commit.cell_count):
            kept, where = actual_cells[number - 1], f"cell {number} of commit {commit.ordinal}"
            actual_cells[number - 1] = Cell(kept.salt, kept.content + b"x")
            wrong = f"position {commit.first}: its bytes do not match their commitment"
            assert findings(store) == [("cell", where, wrong)]
            actual_cells[number - 1] = None
            assert findings(store) == [("cell", where, "it is missing")]
            actual_cells[number - 1] = kept


def test_a_commit_that_is_missing_is_named_once(store: Store) -> None:
    """Where a commit lacks, that one is named, the next of its session does not fit, and those of others do."""
    lost, after = own(store, "s")[1:3]
    del store.admin.log._commits[lost.ordinal - 1]  # type: ignore[attr-defined]
    rows = findings(store)
    assert ("commit", f"commit {lost.ordinal}", f"it is missing; the next one is commit {lost.ordinal + 1}") in rows
    assert [what for _, _, what in rows if "is missing" in what] == [rows[0][2]]
    where = f"commit {after.ordinal}"
    assert ("position", where, f"it begins at position {after.first}, after position {lost.first - 1}") in rows
    assert ("hash", where, f"session {after.session}, position {after.first}: its hash does not match") in rows


def test_a_body_that_cannot_be_read_is_named(store: Store) -> None:
    """Bytes that are no mutations are named as such, with the hash they break and the count they belie."""
    commit = own(store, "s")[1]
    changed(store, commit.ordinal, body=b"\xc1")
    where = f"commit {commit.ordinal}"
    value = [what for kind, place, what in findings(store) if place == where]
    assert value[0].startswith("its body cannot be read (")
    assert value[1:] == [
        f"session {commit.session}, position {commit.first}: its hash does not match",
        f"it counts {commit.count} mutations and holds 0",
    ]


def test_a_session_nobody_opened_is_named(store: Store) -> None:
    """A commit that stands in a session without an `open` is named, and so is one that opens another's number."""
    last = own(store, "s")[-1]
    changed(store, last.ordinal, session=77)
    texts = ("commit", f"commit {last.ordinal}", "it belongs to a session that no commit opens")
    assert findings(store) == [texts]
    changed(store, last.ordinal, session=last.session)
    first = own(store, "apart")[0]
    changed(store, first.ordinal, session=last.session)
    assert (
        "commit",
        f"commit {first.ordinal}",
        f"it opens a session and stands in session {last.session}",
    ) in findings(store)


def test_a_fork_that_stands_on_nothing_is_named(store: Store) -> None:
    """A fork of a position where nothing ends, of no session, and one of a parent that comes later, are each named."""
    child, right = own(store, "f")[0], decode(own(store, "f")[0].body)[0]
    assert isinstance(right, Open)
    place = right.parent_position
    for fields in ({"parent_position": place - 1}, {"parent_position": 10**6}, {"parent": b"n" * 16}, {"parent": None}):
        ordinal = opening(store, "f", **fields)
        at = fields.get("parent_position", place)
        wrong = f"it forks at position {at}, where nothing of its parent ends"
        assert [f for f in findings(store) if f[0] == "fork"] == [("fork", f"commit {ordinal}", wrong)]
        opening(store, "f", parent=right.parent, parent_position=place)
    assert findings(store) == [] and own(store, "f")[0].body == child.body


def test_a_session_opened_twice_is_named(store: Store) -> None:
    """Two sessions of one uid are named by the second, with the number of the first."""
    first = own(store, "apart")[0]
    uid = decode(first.body)[0].uid  # type: ignore[union-attr]
    ordinal = opening(store, "s", uid=uid)
    assert ("commit", f"commit {ordinal}", f"it opens session {first.session} a second time") in findings(store)


@pytest.mark.parametrize(("views", "rules"), [(False, False), (True, False), (False, True), (True, True)])
def test_progress_goes_to_the_end_of_what_is_checked(
    store: Store, views: bool, rules: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told in order, a half each where views or rules follow, and the whole is reached with or without them."""
    monkeypatch.setattr(room, "READ", 2)
    items, total = list[tuple[int, int]](), store.admin.log.ordinal
    counts, problems = verify(
        store.admin.log, store._ns.projection, lambda *way: items.append(way), views=views, rules=rules
    )
    parts = 2 if views or rules else 1
    assert problems == [] and items == sorted(items) and {of for _, of in items} == {total * parts}
    assert [done for done, _ in items if done <= total][: (total + 1) // 2] == [
        min(n + 2, total) for n in range(0, total, 2)
    ]
    assert items[-1] == (total * parts, total * parts)
    sessions = [own(store, name)[-1].session for name in ("apart", "s", "f")]
    assert counts == (total, sum(commit.count for commit in store.admin.log.tail(0, 99)), len(sessions))


def test_cells_that_are_not_where_they_were_brought_are_named(store: Store) -> None:
    """Cells that begin elsewhere, commitments cut short, and a cell beyond the last commit are each named."""
    commit = own(store, "s")[1]
    where = f"commit {commit.ordinal}"
    for cell in (commit.cell - 1, commit.cell + 1):
        changed(store, commit.ordinal, cell=cell)
        assert ("commit", where, f"its cells begin at {cell}, out of turn") in findings(store)
    changed(store, commit.ordinal, cell=commit.cell, commitments=commit.commitments[:-1])
    assert ("commit", where, "its commitments are cut short") in findings(store)
    changed(store, commit.ordinal, commitments=commit.commitments)
    store.admin.log._cells.append(Cell(b"s" * 16, b"nobody's"))  # type: ignore[attr-defined]
    beyond = store.admin.log.last_cell
    assert findings(store) == [("cell", f"cell {beyond}", "no commit brought it: commits at the end are missing")]


def test_a_long_row_is_cut_where_it_is_told() -> None:
    """A row of a view is told in at most 160 characters, and its end says that there is more."""
    for length in range(150, 160):
        text = room._short("table", ("x" * (length - 10),))
        assert text == f'table ["{"x" * (length - 10)}"]' and len(text) == length
    assert len(room._short("table", ("x" * 150,))) == 160
    for length in (151, 152, 9_999):
        assert room._short("table", ("x" * length,)) == 'table ["' + "x" * 151 + "…"
