"""Views are folds: dumped in one canonical form, rebuilt equal, their position stored with their rows."""

from __future__ import annotations

import apsw
import pytest

from tests.engine.author import Author, engine_over
from tests.refusals import refused
from tests.views.test_alphabet import STORY
from vmstore.core.decision import PromptContest, Search
from vmstore.core.erasure import Erase, ErasureReason
from vmstore.core.mutation import Mark
from vmstore.core.redaction import Approve, Artifact, HiddenKind, Redact, Redaction
from vmstore.engine.head import NewSession
from vmstore.errors import UnknownError
from vmstore.log.memory import MemoryLog
from vmstore.log.port import Log
from vmstore.views import projection as fold
from vmstore.views.projection import PROJECTORS, Projection, fingerprint
from vmstore.views.projectors.pages import PagesProjector

VIEWS = [projector.name for projector in PROJECTORS]


@pytest.fixture(scope="module")
def log() -> MemoryLog:
    """A log with something for every view."""
    log = MemoryLog()
    engine = engine_over(log)
    Author(engine).write(STORY)
    first = log.tail(0, 1)[0]
    batch = engine.batch(first.session)
    batch.add(Erase(ErasureReason.ASKED, ((first.first, 0),)))
    batch.commit(0)
    log.destroy({first.cell: 0})
    engine.follow()
    sql = "SELECT session, max(page) FROM pages GROUP BY session ORDER BY session DESC LIMIT 1"
    session, page = engine.projection.db.execute(sql).get
    batch = engine.batch(session)
    batch.add(Redact(policy=Redaction.MASK))
    batch.add(Redact(page, count=1, found=((int(HiddenKind.EMAIL), 1, 1),)))
    batch.add(Approve(1, Artifact.HTML))
    batch.add(Search(batch.cell(b"words"), (page,), 1, contests=(PromptContest(7, 1, 2, 10, 100, 5, ()),)))
    batch.commit(0)
    batch = engine.begin(NewSession("run", source="tau-bench:runs.json"), 0)
    batch.add(Mark(Mark.RECORD, records=1, digest=bytes(8), note=batch.cell(b'{"reward": 1.0}')))
    batch.commit(0)
    return log


def views_of(log: Log, path: str = ":memory:") -> Projection:
    """The views of a log, folded to its end."""
    views = Projection(log, apsw.Connection(path))
    views.catch_up()
    return views


def dumps(views: Projection) -> dict[str, list[bytes]]:
    """Each view's canonical form."""
    return {view: list(views.dump(view)) for view in VIEWS}


@pytest.mark.parametrize("view", VIEWS)
def test_a_dump_is_in_order_and_not_empty(log: MemoryLog, view: str) -> None:
    """A view's rows come table by table, each once, in an order that is their own and not the fold's."""
    views = views_of(log)
    rows = list(views.dump(view))
    tables = [row.partition(b" ")[0] for row in rows]
    assert rows, "the story fills every view"
    assert tables == sorted(tables)
    assert len(set(rows)) == len(rows)


def test_a_fold_in_one_go_equals_a_fold_in_steps(log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many commits are folded at once, the views are the same, byte for byte."""
    whole = dumps(views_of(log))
    monkeypatch.setattr(fold, "BATCH", 1)
    assert dumps(views_of(log)) == whole
    monkeypatch.setattr(fold, "BATCH", 3)
    assert dumps(views_of(log)) == whole


@pytest.mark.parametrize("view", [*VIEWS, None])
def test_a_rebuilt_view_is_the_same(log: MemoryLog, view: str | None) -> None:
    """One view folded again beside the others, or all of them, equal what they were."""
    views = views_of(log)
    before = dumps(views)
    views.rebuild(view)
    assert dumps(views) == before
    assert set(views.positions().values()) == {log.ordinal}


@pytest.mark.parametrize("view", VIEWS)
def test_a_changed_row_changes_the_digest(log: MemoryLog, view: str) -> None:
    """A digest covers every table of its view, and no other view's."""
    projector = next(projector for projector in PROJECTORS if projector.name == view)
    for table in projector.schema:
        views = views_of(log)
        before = {name: views.digest(name) for name in VIEWS}
        views.db.execute(f"DELETE FROM {table} WHERE session = (SELECT max(session) FROM {table})")
        changed = [name for name in VIEWS if views.digest(name) != before[name]]
        assert changed == [view], table


def test_a_view_nobody_knows_is_named() -> None:
    """Rebuilding a view that does not exist is an error that lists those that do."""
    with refused("no-view", UnknownError, "'pagse'"):
        views_of(MemoryLog()).rebuild("pagse")


def test_rows_and_position_stand_or_fall_together(log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fold that breaks off leaves neither a row nor a step of its position, and goes on from there."""
    monkeypatch.setattr(fold, "BATCH", 4)
    whole, views = dumps(views_of(log)), Projection(log, apsw.Connection(":memory:"))
    right, seen = PagesProjector.on_create, []

    def breaks(*arguments: object) -> None:
        seen.append(arguments)
        if len(seen) % 5 == 0:
            raise OSError("the power went")
        right(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(PagesProjector, "on_create", breaks)
    broken = 0
    for _ in range(200):
        try:
            views.catch_up()
            break
        except OSError:
            broken += 1
            reached = set(views.positions().values())
            assert len(reached) == 1, "no view is ahead of another"
            assert views.db.execute("SELECT coalesce(max(ordinal), 0) FROM commits").get == reached.pop()
    monkeypatch.setattr(PagesProjector, "on_create", right)
    views.catch_up()
    assert broken
    assert dumps(views) == whole


def test_the_file_is_named_by_what_is_folded() -> None:
    """Another version, table or set of projectors keeps its views under another name."""
    assert fingerprint() == fingerprint(PROJECTORS)
    assert fingerprint(PROJECTORS[:-1]) != fingerprint()
    assert len(fingerprint()) == 8
