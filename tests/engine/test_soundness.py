"""One rule for cells: what checks a log and what checks a session say the same of each."""

from __future__ import annotations

import pytest

import vmstore
from tests.engine.stories import answer, chat
from vmstore.cells.cell import DAMAGED, ERASED, Cell
from vmstore.engine.verify.chain import Chain
from vmstore.engine.verify.verify import Erased, nothing_erased, unsound, verify
from vmstore.views.branch import Branch

RIGHT = Cell(b"s" * 16, b"bytes")


@pytest.mark.parametrize(
    ("cell", "erased", "wrong"),
    [
        (RIGHT, False, None),
        (RIGHT, True, None),
        (None, True, "missing"),
        (DAMAGED, True, "do not match"),
        (Cell(b"s" * 16, b"other"), True, "do not match"),
        (Cell(b"t" * 16, b"bytes"), False, "do not match"),
        (ERASED, True, None),
        (ERASED, False, "no erasure is recorded"),
    ],
)
def test_a_cell_is_sound_or_erased_on_record(cell: Cell | None, erased: bool, wrong: str | None) -> None:
    """A cell holds what was sealed, or is destroyed where an erasure of it is recorded; all else is wrong."""
    actual_unsound = unsound(cell, 7, RIGHT.commitment, lambda number: erased and number == 7)
    assert actual_unsound is None if wrong is None else actual_unsound is not None and wrong in actual_unsound


@pytest.mark.parametrize("recorded", [False, True])
def test_both_checks_keep_the_rule(recorded: bool) -> None:
    """A destroyed cell is named by verify and by the check of its session alone, unless its erasure is recorded."""
    store = vmstore.memory_store()
    store.record("s", chat("Where to?"), answer("North."))
    store.admin.log._cells[3] = ERASED  # type: ignore[attr-defined]
    erased: Erased = (lambda number: number == 4) if recorded else nothing_erased
    store.admin.follow()
    lane = Branch(store.admin.views, store.admin.log.tail(0, 1)[0].session)
    _, whole = verify(store.admin.log, store._ns.projection, views=False, rules=False, erased=erased)
    alone = list(Chain(store.admin.log, store.admin.views, lane, erased).problems())
    assert len(whole) == len(alone) == (0 if recorded else 1)
    for finding in (*whole, *alone):
        assert (finding.kind, finding.where) == (
            "cell",
            "cell 4 of commit 2",
        ) and "no erasure is recorded" in finding.what
