"""The model behind an address: streams, whole answers, and what goes wrong."""

from __future__ import annotations

import http.client
import threading

import pytest

from tests.chat.conftest import streaming
from tests.refusals import refused
from tests.sdk.provider import Provider
from vmstore.errors import TextModelError
from vmstore.providers import words_of
from vmstore.providers.streaming_model import AnswerStopped, StreamingModel

ASKED = {"messages": [{"role": "user", "content": "Where is Kyoto?"}]}


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_an_answer_comes_in_parts(provider: Provider, name: str) -> None:
    """The words of an answer come as the provider streams them, and its counts are asked for."""
    parts = list(streaming(provider, name)({"model": "m-1", **ASKED}))
    assert "".join(map(words_of, parts)) == "In Japan."
    assert len([part for part in parts if words_of(part)]) > 1
    assert "usage" in str(parts) and provider.seen[0].body["stream"] is True


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_server_that_does_not_stream_gives_the_whole(provider: Provider, name: str) -> None:
    """An answer that comes whole is given whole, as a response and not as a part."""
    answer = streaming(provider, name)({"model": "whole", **ASKED})
    assert isinstance(answer, dict) and "In Japan." in str(answer)


def test_anthropic_is_given_the_limit_it_asks_for(provider: Provider) -> None:
    """Anthropic's messages need a limit of tokens; OpenAI's get one only where it is given."""
    for name in ("anthropic", "openai"):
        list(streaming(provider, name)({"model": "m-1", **ASKED}))
    assert ["max_tokens" in seen.body for seen in provider.seen] == [True, False]


@pytest.mark.parametrize("model", ["breaks", "down", "html"])
def test_what_is_no_answer_is_refused(provider: Provider, model: str) -> None:
    """A stream that ends early, a refusal and a web page are errors of the text model that name the host."""
    with refused("answered-an-error", TextModelError, "127.0.0.1"):
        list(streaming(provider)({"model": model, **ASKED}))


def test_a_busy_server_is_asked_again(provider: Provider) -> None:
    """A refusal that may pass is tried once more before anything came."""
    model = StreamingModel(base_url=f"{provider.url}/v1")
    assert "".join(map(words_of, model({"model": "busy", **ASKED}))) == "In Japan."
    assert len(provider.seen) == 2


def test_nobody_there_is_said(provider: Provider) -> None:
    """An address at which nobody listens is an error of the text model."""
    model = StreamingModel(base_url="http://127.0.0.1:9/v1", attempts=1)
    with refused("not-reached", TextModelError, "127.0.0.1"):
        list(model({"model": "m-1", **ASKED}))


def test_a_key_is_sent_and_never_repeated(provider: Provider) -> None:
    """A refusal is reported without the key."""
    model = StreamingModel(base_url=f"{provider.url}/v1", api_key="slow down", attempts=1)
    with refused("answered-an-error", TextModelError) as caught:
        list(model({"model": "down", **ASKED}))
    assert "slow down" not in str(caught.value)


def test_a_stop_while_connecting_is_a_stop(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop that comes before the connection is there ends the answer too, and nothing is asked."""
    model = streaming(provider)
    connect = http.client.HTTPConnection.connect

    def stopped(connection: http.client.HTTPConnection) -> None:
        connect(connection)
        model.stop()

    monkeypatch.setattr(http.client.HTTPConnection, "connect", stopped)
    with pytest.raises(AnswerStopped):
        list(model({"model": "waits", **ASKED}))
    assert provider.seen == []


def test_another_thread_stops_an_answer(provider: Provider) -> None:
    """A stop ends an answer that waits for its next part, and the next answer begins once the model is ready."""
    model = streaming(provider)
    heard: list[str] = []
    with pytest.raises(AnswerStopped):
        for part in model({"model": "waits", **ASKED}):
            heard.append(words_of(part))
            if any(heard):
                threading.Timer(0.05, model.stop).start()
    assert "".join(heard) == "In J"
    with pytest.raises(AnswerStopped):
        list(model({"model": "m-1", **ASKED}))
    model.ready()
    assert list(model({"model": "m-1", **ASKED}))
