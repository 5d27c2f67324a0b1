"""The steps of the demo that prove: views deleted and folded again, a flipped byte that is named."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import apsw

from vmstore.cells.cell import Cell
from vmstore.log.frame import opened, raw
from vmstore.log.rows import READ_FRAMES, frame_of
from vmstore.namespace.folder import LOG
from vmstore.namespace.reports import Verdict
from vmstore.shell.commands.care.verify import sound
from vmstore.shell.demo.tour import TourStep
from vmstore.shell.terminal.format import count, size
from vmstore.shell.terminal.layout import Line, StyledText, TableColumn, TextTable
from vmstore.store.store import open_store
from vmstore.views.projection import PROJECTORS, Projection

NAMESPACE = "default"
SHOWN_DIGITS = 16


def views_again(path: Path, named: str) -> TourStep:
    """Deletes the views and folds them from the log; digests of their dumps before and after."""
    before = digests(path)
    files = [file for file in (path / NAMESPACE).glob("views-*") if file.is_file()]
    freed = sum(file.stat().st_size for file in files)
    for file in files:
        file.unlink()
    start = time.monotonic()
    after = digests(path)
    took = time.monotonic() - start
    rows: list[tuple[Line, ...]] = []
    for view, digest in before.items():
        same = digest == after[view]
        verdict = StyledText("equal" if same else "differs", "good" if same else "bad")
        rows.append((view, digest[:SHOWN_DIGITS], after[view][:SHOWN_DIGITS], verdict))
    columns = (TableColumn("view", style="name"), TableColumn("SHA-256 before"), TableColumn("after"), TableColumn(""))
    folded = f"{size(freed)} of views deleted; folded from the log again in {took:.1f} s."
    return TourStep(
        "The views deleted and rebuilt, equal",
        f"The log is the only truth; everything else is folded from it. {folded}",
        f"rm {named}/{NAMESPACE}/views-*; vmstore info {named}",
        [TextTable(columns, rows)],
        {"views": len(before), "equal": before == after},
    )


def digests(path: Path) -> dict[str, str]:
    """The digest of each view's canonical dump."""
    with open_store(path) as store:
        store.info()  # brings the views to the end of the log
        projection = Projection(store.admin.log, store.admin.views)
        return {projector.name: projection.digest(projector.name).hex() for projector in PROJECTORS}


def tampered(path: Path, cell: int, name: str, named: str) -> TourStep:
    """Flips one bit of a page in a copy of the store; verify names it, and finds the store itself intact."""
    with open_store(path) as store:
        intact = store.verify()
    with tempfile.TemporaryDirectory(prefix="vmstore-demo-") as folder:
        copy = Path(folder) / path.name
        shutil.copytree(path, copy)
        byte, length = _flip(copy / NAMESPACE / LOG, cell)
        with open_store(copy) as store:
            damaged = store.verify()
    return TourStep(
        "One bit tampered with, and caught",
        f"In a copy of the store one bit of {name} was flipped: byte {byte} of the {length} that hold it.",
        f"vmstore verify {named}",
        [*_verdicts(damaged, intact)],
        {"cell": cell, "problems": [problem.where for problem in damaged.problems], "ok": intact.ok},
    )


def _flip(path: Path, cell: int) -> tuple[int, int]:
    """Changes one bit of a cell in its file and leaves its neighbours be, as a forger would; which byte of how many."""
    db = apsw.Connection(str(path))
    try:
        held_by = f"SELECT {READ_FRAMES} FROM frames WHERE first <= ? ORDER BY first DESC"
        frame = frame_of(db.execute(held_by, (cell,)).fetchone())
        every = opened(frame, range(frame.first, frame.after), lambda _: None)
        cells = [numbered for _, numbered in every if numbered is not None]
        sealed = cells[cell - frame.first]
        content = sealed.content
        at = len(content) // 2
        cells[cell - frame.first] = Cell(sealed.salt, content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        db.execute("REPLACE INTO frames VALUES(?,?,?,?,?,?)", raw(frame.first, cells))
    finally:
        db.close()
    return at + 1, len(content)


def _verdicts(damaged: Verdict, intact: Verdict) -> list[Line | TextTable]:
    columns = (TableColumn("kind", style="bad"), TableColumn("where", style="bad"), TableColumn("what"))
    rows = [(problem.kind, problem.where, problem.what) for problem in damaged.problems]
    head = (
        StyledText(count(len(damaged.problems), "problem"), "bad"),
        f" in {count(damaged.commits, 'commit')} of the copy",
    )
    return [head, TextTable(columns, rows), "", ("the store itself  ", sound(intact))]
