"""A store on disk with a few sessions and forks, and ways to change its log by hand."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import apsw

import vmstore
from tests.engine.author import engine_over
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.core.decision import Cause, Holder, Use, Why
from vmstore.core.erasure import Erase, ErasureReason
from vmstore.core.mutation import Evict, Link, Mark, Pin, Redact, Reference, Settings
from vmstore.core.page import LinkKind
from vmstore.core.redaction import Redaction
from vmstore.engine.verify.verify import Finding, verify
from vmstore.errors import VmstoreError
from vmstore.log.sqlite import SqliteLog
from vmstore.views.projection import Projection

LOG = "default/log.sqlite"


def chat(*texts: str, **fields: Any) -> dict[str, Any]:
    """A chat-completions request of user and assistant messages in turn, after a system message."""
    roles = ["user", "assistant"]
    messages = [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)]
    return {"model": "m-1", "messages": [{"role": "system", "content": "Be brief."}, *messages], **fields}


def answer(text: str) -> dict[str, Any]:
    """A chat-completions answer."""
    return {
        "id": "a",
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 3},
    }


def open_seeded(path: Path) -> vmstore.Store:
    """A store whose clock and ids repeat."""
    return vmstore.open(path, clock=ManualClock(1_700_000_000_000_000, 1_000), ids=SeededIds(7))


def tell(path: Path) -> None:
    """Writes two sessions, a fork and a fork of it: new, changed, shortened and dropped content, request ids."""
    with open_seeded(path) as store:
        store.record("plan", chat("Where to?"), answer("North."), request_id="r-1")
        store.record("plan", chat("Where to?", "North.", "How far? " * 40), answer("Twelve miles."))
        store.record("other", chat("Unrelated"), None)
        store.record("plan", chat("Where to?", "North.", "[cut]", "Twelve miles.", "And then?"), answer("Rest."))
        fork = store.session("plan").fork("plan-b", call=2)
        fork.record(chat("Where to?", "North.", "Or south?", temperature=0.5), answer("South it is."))
        store.session("plan-b").fork("plan-c", call=1)
        store.record("other", chat("Unrelated", "Quite."), RuntimeError("refused"))
    _relate(path)


def _relate(path: Path) -> None:
    """Links two pages and names the moment, which no recorded call does."""
    log = SqliteLog(path / LOG)
    engine = engine_over(log, seed=8)
    engine.follow()
    key = engine.projection.db.execute("SELECT session FROM sessions WHERE name = 'other'").get
    pages = engine.projection.db.execute("SELECT page FROM pages WHERE session = ? ORDER BY page", (key,)).fetchall()
    batch = engine.batch(key)
    batch.add(Link(pages[1][0], pages[0][0], LinkKind.REFERENCES))
    batch.add(Mark(Mark.NAMED, name=batch.cell(b"a good place to stop")))
    batch.commit(engine.clock.now())
    log.close()


def decide(path: Path) -> None:
    """Settings, a reference, a page that gives way, one that is held, erased words, a policy: none is recorded."""
    log = SqliteLog(path / LOG)
    engine = engine_over(log, seed=9)
    engine.follow()
    batch = engine.batch(engine.projection.db.execute("SELECT session FROM sessions WHERE name = 'other'").get)
    page = engine.projection.db.execute("SELECT min(page) FROM pages WHERE session = ?", (batch.head.session,)).get
    batch.add(Settings(batch.cell(b'{"l0_tokens_max": 100}')))
    batch.add(Reference(page, Use.QUOTE, evidence=batch.cell(b"a secret")))
    (stored,) = batch.commit(engine.clock.now())
    batch = engine.batch(stored.session)
    batch.add(Erase(ErasureReason.SECRET, ((stored.first, 1),)))
    batch.add(Reference(page, Use.QUOTE, evidence=batch.cell(b"as you said")))
    batch.add(Evict(page, Cause.PRESSURE, 9, 7, why=Why(1, 100, 109, 9, 0, 1, 7, ())))
    batch.add(Pin(page, Holder.HAND))
    batch.add(Redact(policy=Redaction.OFF))
    batch.commit(engine.clock.now())
    log.destroy({stored.cell + 1: 0})
    log.close()


def edit(path: Path, *statements: str) -> None:
    """Changes a log file by hand, past every check."""
    db = apsw.Connection(str(path / LOG))
    db.execute("PRAGMA synchronous = OFF")
    for statement in statements:
        db.execute(statement)
    db.close()


def copied(store: Path, to: Path) -> Path:
    """A copy of a store without its views."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(store, to, ignore=shutil.ignore_patterns("views-*"))
    return to


def problems(store: Path) -> list[Finding]:
    """What verify finds wrong with a store whose views are rebuilt, so that none can tell on the log."""
    try:
        log = SqliteLog(store / LOG)
    except VmstoreError as error:
        return [Finding("open", "log", str(error))]
    views = apsw.Connection(":memory:")
    try:
        return verify(log, Projection(log, views))[1]
    finally:
        log.close()
        views.close()


def rows(store: Path, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
    """A table of the log as it lies there."""
    db = apsw.Connection(str(store / LOG), flags=apsw.SQLITE_OPEN_READONLY)
    actual_rows = db.execute(f"SELECT {columns} FROM {table} ORDER BY 1").fetchall()
    db.close()
    return actual_rows
