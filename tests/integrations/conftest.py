"""A store and a provider for the tests of frameworks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integrations.provider import Provider, providing
from vmstore.store.store import Store, memory_store


@pytest.fixture
def store() -> Iterator[Store]:
    """An empty store in memory."""
    with memory_store() as opened:
        yield opened


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A provider on this machine."""
    with providing() as served:
        yield served
