"""What a program ends by hand: a session, a link, a page's hold, and that a page is behind its sources."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import vmstore
import vmstore.aio
from tests.refusals import refused
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.core.mutation import Annotate, Update
from vmstore.core.page import Standing
from vmstore.errors import InputError, UnknownError
from vmstore.shell.main import main
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store

BUDGET: dict[str, Any] = {"l0_tokens_max": 4_000, "rules": "short"}
START = 1_795_301_701_000_000


@pytest.fixture
def store() -> Store:
    """A store in memory whose runs are alike."""
    return vmstore.memory_store(clock=ManualClock(START), ids=SeededIds(5))


@pytest.fixture
def session(store: Store) -> Live:
    """A session with a file and a claim made from it."""
    session = store.live_session("s", system="You read files.", **BUDGET)
    session.attach(b"port = 5432", "text/plain", name="db.conf")
    session.claim("The port is 5432.", name="port", sources=["db.conf"])
    session.user("Which port?")
    return session


def rows(store: Store, question: str) -> list[dict[str, Any]]:
    """The rows that answer a question."""
    return store.query(question).to_dicts()


def kinds(store: Store, session: Live, after: int) -> list[str]:
    """The kinds of mutations a session was given after a position."""
    records = rows(store, f"MUTATIONS IN SESSION {session.name} WHERE position > {after}")
    return [row["kind"] for row in records]


def test_a_session_is_closed(store: Store, session: Live) -> None:
    """Its status, when and why are told at every moment; a message takes it up again, and a fork is open."""
    before = session.info().position
    info = session.close("abandoned", "no port", at_us=START + 10)
    assert (info.status, kinds(store, session, before)) == ("abandoned", ["close"])
    closed = session.info().position
    assert session.fork("f").info().status == "active"
    text = "SESSIONS status, closed_at, closed_because WHERE session = s"
    assert rows(store, text) == [
        {"status": "abandoned", "closed_at": "2026-11-21T22:55:01.000010Z", "closed_because": "no port"}
    ]
    session.close()
    assert session.info().status == "completed"
    session.user("Wait.")
    assert session.info().status == "active"
    assert rows(store, text) == [{"status": "active", "closed_at": None, "closed_because": None}]
    then = rows(store, f"SESSIONS IN SESSION s AS OF POSITION {closed} WHERE session = s")[0]
    assert then["status"] == "abandoned"
    with refused("no-status", UnknownError):
        session.close("active")
    with refused("not-a-text", InputError):
        session.close(reason=" ")
    session.close()
    with refused("closed-already", InputError):
        session.close()
    assert store.verify().ok and session.debug.check().ok


def test_a_recorded_session_is_closed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Any session can be, from the command line too, and a bundle brings its end along."""
    path = tmp_path / "a.vms"
    with vmstore.open(path) as store:
        store.record("s", {"model": "m", "messages": [{"role": "user", "content": "Hello."}]})
    assert main(["close", str(path), "s", "--status", "abandoned", "--because", "nobody asks"]) == 0
    assert "s is abandoned" in capsys.readouterr().out
    assert main(["close", str(path), "s", "--status", "abandoned"]) != 0
    with vmstore.open(path) as store, vmstore.open(tmp_path / "b.vms") as other:
        store.export(tmp_path / "s.bundle")
        other.import_file(tmp_path / "s.bundle")
        assert other.session("s").info().status == "abandoned"
        assert other.verify().ok


def test_a_link_is_ended(store: Store, session: Live) -> None:
    """It is in no walk and no LINKS from then on; earlier moments and a fork's parent have it, a new one holds."""
    number = session.lineage.position_of("port")
    before = session.info().position
    fork = session.fork("f")
    fork.unlink("port", "db.conf", "derives")
    assert fork.lineage.ancestors("port") == [] and [link.kind for link in session.lineage.ancestors("port")] == [
        "derives"
    ]
    assert kinds(store, fork, before)[1:] == ["unlink"]
    linked = "LINKS IN SESSION {} WHERE kind = 'derives'"
    assert [len(rows(store, linked.format(name))) for name in ("f", "s")] == [0, 1]
    assert [event.event for event in fork.lineage.history("port")][-1] == "unlink"
    assert [link.kind for link in fork.lineage.ancestors(f"p{number}@position:{before}")] == ["derives"]
    fork.update("db.conf", b"port = 5433")
    assert fork.pages(dirty=True) == []
    with refused("no-link", InputError):
        fork.unlink("port", "db.conf", "derives")
    with refused("link-not-by-hand", InputError):
        fork.unlink("port", "db.conf", "caused_by")
    fork.link("port", "db.conf", "derives")
    assert [link.kind for link in fork.lineage.ancestors("port")] == ["derives"]
    assert store.verify().ok and fork.debug.check().ok


def test_a_deletion_and_a_flush_say_what_they_are(store: Store, session: Live) -> None:
    """Each is one mutation of its own kind, without a content, and history, views and a rebuild tell it alike."""
    session.update("db.conf", b"port = 5433")
    before = session.info().position
    assert [session.page(name).hint for name in session.flush()] == ["port"]
    assert kinds(store, session, before) == ["flush"]
    assert session.page("port").version == 1 and session.pages(dirty=True) == []
    assert rows(store, "PAGES IN SESSION s WHERE last_flushed IS NOT NULL")[0]["hint"] == "port"
    before = session.info().position
    session.delete("port")
    assert kinds(store, session, before)[0] == "delete"
    assert [event.event for event in session.lineage.history("port")][-3:-1] == ["flush", "delete"]
    assert session.page("port").status == "superseded"
    pages = session.pages()
    store.admin.rebuild()
    assert session.pages() == pages
    session.annotate("port", status="active")
    assert session.page("port").status == "active" and store.verify().ok and session.debug.check().ok


def test_what_an_older_log_says_still_holds(store: Store, session: Live) -> None:
    """An annotation that deleted and a version that flushed mean what they did."""
    number, file = session.lineage.position_of("port"), session.lineage.position_of("db.conf")
    session.update("db.conf", b"port = 5433")
    with session.batch() as batch:
        batch.add(Update(number, 2, batch.cell(b"The port is 5432."), 17, 5))
    assert session.pages(dirty=True) == []
    with session.batch() as batch:
        batch.add(Annotate(file, status=Standing.SUPERSEDED))
    assert session.page_fault("db.conf", by_model=True).denied_because == "retracted"
    events = [event.event for event in session.lineage.history(file)]
    assert "annotate" in events and "delete" not in events


def test_the_reason_is_hidden_and_erased(tmp_path: Path) -> None:
    """What is secret in why a session ended is masked, and it goes where the session is erased."""
    with vmstore.open(tmp_path / "a.vms") as store:
        session = store.live_session("s", redaction="mask", **BUDGET)
        session.user("Hello.")
        session.close(reason="the key is sk-ant-api03-" + "aB3dE5gH7jK9" * 8)
        asked = "SESSIONS status, closed_because"
        closed_because = rows(store, asked)[0]["closed_because"]
        assert "aB3dE5gH" not in closed_because and closed_because.startswith("the key is [")
        vmstore.erase(store, session="s")
        assert rows(store, asked) == [{"status": "completed", "closed_because": None}]
        assert store.verify().ok


def test_the_async_twin_ends_things() -> None:
    """The same on the twin, awaited."""

    async def go() -> None:
        async with vmstore.aio.memory_store() as store:
            session = await store.live_session("s", **BUDGET)
            await session.claim("One.", name="one")
            await session.claim("Two.", name="two", sources=["one"])
            await session.unlink("two", "one", "derives")
            assert await session.lineage.ancestors("two") == []
            assert (await session.close()).status == "completed"

    asyncio.run(go())
