"""The session that ships, and a fork of it, for the tests that ask them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import vmstore
from vmstore.shell.demo.demo import SHIPPED
from vmstore.store.session import Session
from vmstore.store.store import Store

NAME = "planning-220"


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """The session that ships and a fork of it that went on, in memory."""
    with vmstore.memory_store() as made:
        made.import_file(SHIPPED)
        trip = made.session(NAME)
        child = trip.fork("try-b", turn=42)
        request = {"messages": [{"role": "user", "content": "What if we kept everything in memory?"}]}
        made.record("try-b", request, None, at_us=1_800_000_000_000_000)
        assert child.name == "try-b"
        yield made


@pytest.fixture
def trip(store: Store) -> Session:
    """The session that ships."""
    return store.session(NAME)
