"""A store, and a provider of models on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.sdk.provider import Provider, serving
from vmstore.chat.chat import ChatSession
from vmstore.providers.streaming_model import StreamingModel
from vmstore.store.store import Store, memory_store

Begin = Callable[..., ChatSession]


@pytest.fixture
def store() -> Iterator[Store]:
    """An empty store in memory."""
    with memory_store() as opened:
        yield opened


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A provider on this machine."""
    with serving() as served:
        yield served


@pytest.fixture
def begin(store: Store, provider: Provider) -> Begin:
    """Begins a conversation with a model of the provider, or goes on with it."""

    def begin(model: str = "m-1", session: str = "trip", **options: Any) -> ChatSession:
        return ChatSession(store, session, streaming(provider), model, **options)

    return begin


def streaming(provider: Provider, name: str = "openai") -> StreamingModel:
    """A model of the provider, tried once."""
    base = f"{provider.url}/v1" if name == "openai" else provider.url
    return StreamingModel(name, base_url=base, attempts=1)
