"""Text models behind an address, asked over plain HTTP: servers that answer as OpenAI's do, and Anthropic's.

Address, model and key come from the caller. Connections are kept and used again; what may pass, as a server's 5xx,
is tried once more after a pause.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from vmstore.embedders.http_client import HttpClient, Wait
from vmstore.errors import InputError, TextModelError

TIMEOUT_S = 60.0
ATTEMPTS = 2
TOKENS_OUT_MAX = 1_024
ANTHROPIC_VERSION = "2023-06-01"


class TokenCounts(NamedTuple):
    """Token counts of a provider, None where it states none."""

    tokens_in: int | None
    tokens_out: int | None


class TextReply(NamedTuple):
    """A model's answer, and its provider's token counts."""

    text: str
    usage: TokenCounts


class TextModel(Protocol):
    """Whatever answers a text with a text."""

    def complete(self, prompt: str, system: str = "") -> TextReply:
        """The model's answer; TextModelError where there is none."""
        ...


class OpenAIModel:
    """Asks `base_url` + "/chat/completions": OpenAI, Ollama, LM Studio, vLLM and others."""

    def __init__(
        self, base_url: str, model: str, *, api_key: str | None = None, timeout_s: float = TIMEOUT_S,
        attempts: int = ATTEMPTS, tokens_out_max: int = TOKENS_OUT_MAX, headers: Mapping[str, str] | None = None,
        wait: Wait | None = None,
    ) -> None:  # fmt: skip
        key = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self.name, self._tokens_out_max = _named(model), tokens_out_max
        self._client = HttpClient(
            base_url, "/chat/completions", TextModelError, headers={**(headers or {}), **key}, secret=api_key,
            timeout_s=timeout_s, attempts=attempts, wait=wait,
        )  # fmt: skip

    def complete(self, prompt: str, system: str = "") -> TextReply:
        """The model's answer; of one that only reasoned, its reasoning."""
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": prompt})
        asked = {"model": self.name, "messages": messages, "max_tokens": self._tokens_out_max}
        body = _object(self._client.asked(msgspec.json.encode(asked)), self._client.host)
        message = _at(body, "choices", 0, "message")
        answers = [_at(message, name) for name in ("content", "reasoning_content", "reasoning")]
        text = next((one for one in answers if isinstance(one, str) and one.strip()), None)
        return _reply(text, body, ("prompt_tokens", "completion_tokens"), self._client.host)

    def close(self) -> None:
        """Lets go of the connections that are kept."""
        self._client.close()


class AnthropicModel:
    """Asks `base_url` + "/v1/messages"."""

    def __init__(
        self, model: str, *, api_key: str, base_url: str = "https://api.anthropic.com", timeout_s: float = TIMEOUT_S,
        attempts: int = ATTEMPTS, tokens_out_max: int = TOKENS_OUT_MAX, headers: Mapping[str, str] | None = None,
        wait: Wait | None = None,
    ) -> None:  # fmt: skip
        own = {"x-api-key": api_key, "anthropic-version": ANTHROPIC_VERSION}
        self.name, self._tokens_out_max = _named(model), tokens_out_max
        self._client = HttpClient(
            base_url, "/v1/messages", TextModelError, headers={**(headers or {}), **own}, secret=api_key,
            timeout_s=timeout_s, attempts=attempts, wait=wait,
        )  # fmt: skip

    def complete(self, prompt: str, system: str = "") -> TextReply:
        """The model's answer: its texts, one after another."""
        asked: dict[str, Any] = {
            "model": self.name,
            "max_tokens": self._tokens_out_max,
            "messages": [{"role": "user", "content": prompt}],
            **({"system": system} if system else {}),
        }
        body = _object(self._client.asked(msgspec.json.encode(asked)), self._client.host)
        blocks = _at(body, "content")
        texts = [_at(block, "text") for block in blocks] if isinstance(blocks, list) else []
        text = "".join(one for one in texts if isinstance(one, str)) or None
        return _reply(text, body, ("input_tokens", "output_tokens"), self._client.host)

    def close(self) -> None:
        """Lets go of the connections that are kept."""
        self._client.close()


def _named(model: str) -> str:
    if not isinstance(model, str) or not model:
        raise InputError(f"model {model!r:.40} is no name; give the one the server knows")
    return model


def _object(body: bytes, host: str) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise TextModelError(f"{host} answered what is no JSON ({error})") from error


def _reply(text: str | None, body: Any, counted: tuple[str, str], host: str) -> TextReply:
    if text is None:
        raise TextModelError(f"{host} answered what holds no text; nothing of it was used")
    counts = [_at(body, "usage", name) for name in counted]
    return TextReply(text, TokenCounts(*(count if type(count) is int and count >= 0 else None for count in counts)))


def _at(value: Any, *path: str | int) -> Any:
    """The value at a path in a JSON value; None where there is none."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and len(value) > step else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value
