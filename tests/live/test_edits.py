"""What a program changes by hand in a live session: contents, links, what holds, what is up to date."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import vmstore
import vmstore.aio
from tests.refusals import refused
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import InputError, UnknownError
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store

BUDGET: dict[str, Any] = {"l0_tokens_max": 4_000, "rules": "short"}


@pytest.fixture
def store() -> Store:
    """A store in memory whose runs are alike."""
    return vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000), ids=SeededIds(5))


@pytest.fixture
def session(store: Store) -> Live:
    """A session with a file, a claim made from it, and a question."""
    session = store.live_session("s", system="You read files.", **BUDGET)
    session.attach(b"port = 5432", "text/plain", name="db.conf")
    session.claim("The port is 5432.", name="port", sources=["db.conf"])
    session.user("Which port?")
    return session


def sent(session: Live) -> str:
    """What the next call is sent."""
    packed = session.pack()
    assert packed.request == session.wire.request()
    return json.dumps(packed.request["messages"])


def test_a_page_is_updated(store: Store, session: Live) -> None:
    """The next call and the finder have the new content, an earlier moment the old; the same again writes nothing."""
    before = sent(session)
    assert session.update("port", "The port is 5433.") == 2
    position = session.info().position
    assert session.update("port", "The port is 5433.") == 2 and session.info().position == position
    assert "5433" in sent(session) and "The port is 5432." in before
    assert [version.version for version in session.lineage.versions("port")] == [1, 2]
    assert session.content("port", call=1) == b"The port is 5432."
    session.assistant("It is.")
    session.segment("Ports")
    assert b"The port is 5433." in session.content("summary_1")
    assert store.verify().ok and session.debug.check().ok


def test_what_stands_on_an_older_version_is_dirty(store: Store, session: Live) -> None:
    """A changed file makes what was made from it dirty, until that is updated or said to be up to date."""
    session.update("db.conf", b"port = 5433")
    assert [page.hint for page in session.pages(dirty=True)] == ["port"]
    session.update("port", "The port is 5433.")
    assert session.pages(dirty=True) == []
    session.update("db.conf", "port = 5433 # as ever")
    assert [page.hint for page in session.pages(dirty=True)] == ["port"]
    assert [session.page(name).hint for name in session.flush()] == ["port"]
    assert session.pages(dirty=True) == [] and session.content("port") == b"The port is 5433."
    assert session.flush() == []
    assert store.verify().ok and session.debug.check().ok


def test_pages_are_linked(store: Store, session: Live) -> None:
    """A link is walked both ways from then on."""
    other = session.claim("The host is db1.", name="host")
    session.link(other, "port", "contradicts", valid_from_us=5, valid_to_us=9)
    assert next((link.kind, link.target) for link in session.lineage.ancestors(other)) == (
        "contradicts",
        f"p{session.lineage.position_of('port')}",
    )
    assert store.verify().ok and session.debug.check().ok


def test_a_page_is_deleted(store: Store, session: Live) -> None:
    """It is in no prompt, search or fault of the model, pinned or not; the log has it, and it can hold again."""
    session.pin("port")
    assert "The port is 5432." in sent(session)
    session.delete("port")
    assert "The port is 5432." not in sent(session)
    assert session.page_fault("port", by_model=True).denied_because == "retracted"
    session.assistant("I do not know.")
    session.user("Which port do we use, again?")
    assert "The port is 5432." not in sent(session)
    assert session.content("port") == b"The port is 5432."
    session.annotate("port", status="active")
    assert session.page_fault("port", by_model=True).granted
    assert store.verify().ok and session.debug.check().ok


def test_what_is_wrong_is_refused(store: Store, session: Live) -> None:
    """What was said, values, no text, no JSON, no kind, itself, twice: each is named, and nothing is written."""
    value = session.keep("n", 1)
    (answer,) = session.user("And the host?")
    data = session.attach(b'{"a": 1}', "application/json", name="data")
    system = next(page.page for page in session.pages(role="system"))
    session.delete("db.conf")
    position = session.info().position
    with refused("said-stays"):
        session.update(answer, "No.")
    with refused("said-stays"):
        session.update(system, "Be rude.")
    with refused("is-a-value", InputError):
        session.update(value, "2")
    with refused("is-a-value", InputError):
        session.delete(value)
    for content in ("", b"\xff\xfe", 7):
        with pytest.raises(InputError):
            session.update("port", content)  # type: ignore[arg-type]
    if session.page(data).modality == "structured":
        with refused("not-json", InputError):
            session.update(data, "{oops")
    with refused("no-kind-of-link", UnknownError):
        session.link("port", "data", "likes")
    with refused("link-to-itself", InputError):
        session.link("port", "port")
    with refused("link-not-by-hand", InputError):
        session.link("port", "data", "caused_by")
    with refused("deleted-already", InputError):
        session.delete("db.conf")
    with pytest.raises(UnknownError):
        session.delete("nobody")
    session.pin("port")
    position = session.info().position
    with refused("pins-over-budget"):
        session.update("port", "word " * 20_000)
    assert session.info().position == position
    assert session.content("port") == b"The port is 5432." and store.verify().ok


def test_the_async_twin_edits() -> None:
    """The same on the twin, awaited."""

    async def go() -> None:
        async with vmstore.aio.memory_store() as store:
            session = await store.live_session("s", **BUDGET)
            await session.claim("One.", name="one")
            await session.claim("Two.", name="two", sources=["one"])
            assert await session.update("one", "First.") == 2
            assert len(await session.flush()) == 1
            await session.link("two", "one", "same_as")
            await session.delete("one")
            assert (await session.page("one")).status == "superseded"

    asyncio.run(go())
