"""A model behind an address that takes whole requests and answers them in parts, as a live session's run calls it.

Servers that answer as OpenAI's chat completions do, and Anthropic's messages. A reply is streamed where the server
can; one that comes whole is given whole. Another thread may stop it at any time.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Generator, Iterator
from typing import Any

import msgspec

from vmstore.embedders.http_client import ANSWER_BYTES_MAX, HttpClient
from vmstore.errors import TextModelError
from vmstore.providers.text_model import ANTHROPIC_VERSION

TIMEOUT_S = 300.0  # from one part of an answer to the next; a model on this machine may think that long
ATTEMPTS = 2
TOKENS_OUT_MAX = 4_096  # where a provider asks for a limit and none is given
LINE_BYTES_MAX = 16 << 20
SHAPES = {"openai": "chat-system", "anthropic": "anthropic"}
ADDRESSES = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
PATHS = {"openai": "/chat/completions", "anthropic": "/v1/messages"}


class AnswerStopped(BaseException):
    """Somebody stopped an answer; no failure, so that the log calls the call aborted."""


class StreamingModel:
    """Asks a server of `provider`, "openai" or "anthropic", for answers to requests in its shape.

    Called with a request it gives the parts of the answer as they come, or the whole of one that is not streamed.
    Raises TextModelError where there is none, AnswerStopped once `stop` was called.
    """

    def __init__(
        self, provider: str = "openai", *, base_url: str | None = None, api_key: str | None = None,
        tokens_out_max: int | None = None, timeout_s: float = TIMEOUT_S, attempts: int = ATTEMPTS,
    ) -> None:  # fmt: skip
        self.shape = SHAPES[provider]
        self._anthropic = provider == "anthropic"
        self._tokens_out_max = tokens_out_max
        self._stopped = threading.Event()
        headers = {"anthropic-version": ANTHROPIC_VERSION} if self._anthropic else {}
        if api_key:
            headers |= {"x-api-key": api_key} if self._anthropic else {"Authorization": f"Bearer {api_key}"}
        self._client = HttpClient(
            base_url or ADDRESSES[provider], PATHS[provider], TextModelError, headers=headers, secret=api_key,
            timeout_s=timeout_s, attempts=attempts, wait=self._stopped.wait,
        )  # fmt: skip

    def __call__(self, request: dict[str, Any]) -> Iterator[dict[str, Any]] | dict[str, Any]:
        """The parts of the answer to a request, or the whole of it."""
        parts = self._parts(msgspec.json.encode(self._asked(request)))
        first = next(parts, None)
        if first is not None and _is_whole(first):
            parts.close()
            return first
        return _all(first, parts)

    def stop(self) -> None:
        """Ends the answer that is under way, and those that begin before `ready`."""
        self._stopped.set()
        self._client.hang_up()

    def ready(self) -> None:
        """Lets answers begin again."""
        self._stopped.clear()

    def _asked(self, request: dict[str, Any]) -> dict[str, Any]:
        """The request as it is sent: what the log holds, and how the answer is to come."""
        if self._anthropic:
            return {**request, "max_tokens": self._tokens_out_max or TOKENS_OUT_MAX, "stream": True}
        limit = {} if self._tokens_out_max is None else {"max_tokens": self._tokens_out_max}
        return {**request, **limit, "stream": True, "stream_options": {"include_usage": True}}

    def _parts(self, body: bytes) -> Generator[dict[str, Any], None, None]:
        try:
            self._check()
            with self._client.streaming(body, self._stopped) as answer:
                kind = answer.headers.get_content_type()
                if kind == "application/json":
                    yield _object(answer.read(ANSWER_BYTES_MAX), self._client.host)
                elif kind == "text/event-stream":
                    yield from self._events(answer)
                else:
                    raise self._failed(f"answered {kind}, which no model does; is the address right?")
        except (OSError, http.client.HTTPException, TextModelError) as error:
            self._check()
            if isinstance(error, TextModelError):
                raise
            raise self._failed(f"broke the answer off ({error!r:.120})") from error

    def _events(self, answer: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
        """The parts in server-sent events, to the one that ends an answer."""
        ended, data = False, b""
        while line := answer.readline(LINE_BYTES_MAX):
            self._check()
            field, _, value = line.rstrip(b"\r\n").partition(b":")
            if field == b"data":
                data += value.removeprefix(b" ") + b"\n"
            elif not field and not value and data:
                if data.strip() == b"[DONE]":
                    return
                part, data = _object(data, self._client.host), b""
                yield part
                ended = ended or _ends(part)
        self._check()
        if not ended:
            raise self._failed("broke the answer off before its end")

    def _check(self) -> None:
        if self._stopped.is_set():
            raise AnswerStopped("stopped by hand")

    def _failed(self, what: str) -> TextModelError:
        return TextModelError(f"{self._client.host} {what}", code="answered-an-error")


def _all(first: dict[str, Any] | None, parts: Generator[dict[str, Any], None, None]) -> Iterator[dict[str, Any]]:
    """A first part and those after it; what is closed early hangs up."""
    try:
        if first is not None:
            yield first
        yield from parts
    finally:
        parts.close()


def _is_whole(part: dict[str, Any]) -> bool:
    """Whether a part is an answer that was not streamed."""
    choices = part.get("choices")
    return part.get("type") == "message" or (
        isinstance(choices, list) and any(isinstance(choice, dict) and "message" in choice for choice in choices)
    )


def _ends(part: dict[str, Any]) -> bool:
    """Whether nothing of the answer's text comes after a part."""
    choices = part.get("choices")
    finished = isinstance(choices, list) and any(
        isinstance(choice, dict) and choice.get("finish_reason") for choice in choices
    )
    return finished or part.get("type") in ("message_stop", "error") or bool(part.get("error"))


def _object(data: bytes, host: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise TextModelError(f"{host} answered what is no JSON ({error})", code="answered-an-error") from error
    if not isinstance(found, dict):
        raise TextModelError(f"{host} answered JSON that is no object", code="answered-an-error")
    return found
