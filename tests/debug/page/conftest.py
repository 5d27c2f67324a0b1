"""A browser before a real server, of sessions of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import serving
from browser import browser

import vmstore
from tests.debug.page.browsing import HOSTILE, LONG_BYTES, SCRIPT, Reader, content, reading
from vmstore.shell.demo.demo import SHIPPED

CHROMIUM = browser()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser for all tests of this file."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: python3 tools/browser.py")
    pytest.importorskip("playwright.sync_api")
    with serving.chromium(CHROMIUM) as context:
        yield context


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of the demo session, of one that manages its memory, of one with bad intentions and an empty one."""
    path = tmp_path_factory.mktemp("page") / "demo.vms"
    with vmstore.open(path) as store:
        store.import_file(SHIPPED)
        managed(store)
        hostile(store)
        acquainted(store)
        tooled(store)
        store.live_session("empty", l0_tokens_max=3000).user("nobody answers")
    with serving.served(path) as url:
        yield url


def managed(store: vmstore.Store) -> list[dict[str, Any]]:
    """A session of 30 turns in a budget that holds a few of them; the requests of its calls."""
    sent = []
    session = store.live_session("managed", l0_tokens_max=3000, system="You are brief.")
    for turn in range(30):
        session.user(f"Question {turn}: " + f"what of topic {turn} and its neighbours? " * 12)
        sent.append(session.pack().request)
        session.assistant(f"Answer {turn}. " + f"Topic {turn} is settled, and we go on. " * 12)
    return sent


def acquainted(store: vmstore.Store) -> None:
    """A session of three turns in which somebody moves, and what is known of it is stated as it is said."""
    records: list[dict[str, str]] = []
    for home in ("Berlin", "Berlin", "Lisbon"):
        records.append({"role": "user", "content": f"I live in {home}."})
        store.record("acquainted", {"model": "m-1", "messages": list(records)})
        memory = store.session("acquainted").memory
        if home not in [fact.what for fact in memory.facts.all()]:
            page = store.session("acquainted").pages()[-1].page
            memory.facts.state("user", "lives in", home, attribute="home", sources=[page])
            memory.tags.give(page, home.lower())


def tooled(store: vmstore.Store) -> None:
    """A recorded session of two calls, the second with a tool's answer."""
    tools = [{"name": name, "description": "", "input_schema": {"type": "object"}} for name in ("read", "edit")]
    records: list[Any] = [{"role": "user", "content": "What colours are there?"}]
    request = {"model": "m-1", "temperature": 0, "system": "Be brief.", "tools": tools, "messages": records}
    asks = [{"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "theme.md"}}]
    store.record("tooled", request, {"role": "assistant", "content": asks})
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "# Theme\nred, green"}
    records += [{"role": "assistant", "content": asks}, {"role": "user", "content": [result]}]
    answer = {"role": "assistant", "content": [{"type": "text", "text": "Red and green."}]}
    store.record("tooled", request, answer)


def hostile(store: vmstore.Store) -> None:
    """A session whose every text is a script, with one page of 5 MB."""
    records = [{"role": "user", "content": HOSTILE}, {"role": "assistant", "content": SCRIPT}]
    store.record("hostile", {"model": HOSTILE, "messages": records[:1]}, None)
    long = {"role": "user", "content": "0123456789abcde\n" * (LONG_BYTES // 16)}
    store.record("hostile", {"model": SCRIPT, "messages": [*records, long]}, None)


@pytest.fixture(scope="module")
def window(chromium: Any, address: str) -> Iterator[Reader]:
    """One window for all who need none of their own."""
    with reading(chromium, address) as actual_reading:
        yield actual_reading


@pytest.fixture
def reader(window: Reader) -> Iterator[Reader]:
    """Somebody before the page, who remembers nothing of those before."""
    window.page.goto(window.url)
    window.page.evaluate("localStorage.clear()")
    window.complaints.clear()
    yield window
    content(window)


@pytest.fixture(scope="module")
def demo() -> Iterator[vmstore.Session]:
    """The demo session as the store tells it."""
    with vmstore.memory_store() as store:
        store.import_file(SHIPPED)
        yield store.session("planning-220")
