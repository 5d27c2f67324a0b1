"""A text model whose calls are recorded, so that what the parts of a memory ask and cost stands beside the agent's."""

from __future__ import annotations

import json
from typing import Any

from vmstore.capture.client.body import ResponseBody
from vmstore.capture.client.recorder import ClientExchange, Recorder
from vmstore.core.clock import SystemClock
from vmstore.core.draft import COMPONENT
from vmstore.errors import InputError
from vmstore.providers.text_model import TextModel, TextReply
from vmstore.store.recorder import record_together


class LedgerModel:
    """Asks a text model and records each call of it, in the session of a component or in one that is named.

    `component` is what asks: compactor, tagger, fact_curator, or any name like these; it stands in the column
    `component` of CALLS. A call is recorded behind the answer's back: nothing waits for the store, and nothing that
    happens there reaches who asks.
    """

    def __init__(self, model: TextModel, store: Any, component: str, *, session: str | None = None) -> None:
        if not isinstance(component, str) or not COMPONENT.fullmatch(component):
            raise InputError(f"{component!r:.60} is no component; name one like compactor", code="not-a-name")
        self.name = str(getattr(model, "name", type(model).__name__))
        self._model = model
        self._component = component
        self._clock = SystemClock()
        name = session or component
        self._recorder = Recorder(store, name, name, None, self._clock, record_together=record_together)

    def complete(self, prompt: str, system: str = "") -> TextReply:
        """The model's answer; what it raises is raised, once it is noted."""
        at, began = self._clock.now(), self._clock.ticks()
        messages = [{"role": "system", "content": system}] if system else []
        asked = {"model": self.name, "messages": [*messages, {"role": "user", "content": prompt}]}
        try:
            reply = self._model.complete(prompt, system)
        except BaseException as error:
            self._note(asked, ResponseBody(error=error), at, self._clock.ticks() - began)
            raise
        self._note(asked, _answer(reply), at, self._clock.ticks() - began)
        return reply

    def flush(self, timeout: float = 30.0) -> bool:
        """Waits until all calls so far are in the store; False where they are not."""
        return self._recorder.flush(timeout)

    def close(self) -> None:
        """Waits for what is to be written, and records nothing more."""
        self._recorder.close()

    def _note(self, asked: dict[str, Any], answer: ResponseBody, at: int, latency: int) -> None:
        body = json.dumps(asked).encode()
        self._recorder.submit(
            ClientExchange(self._recorder.session, body, answer, at, latency, beside={"component": self._component})
        )


def _answer(reply: TextReply) -> ResponseBody:
    """An answer as a completion, with its provider's counts."""
    counts = {"prompt_tokens": reply.usage.tokens_in, "completion_tokens": reply.usage.tokens_out}
    usage = {name: count for name, count in counts.items() if count is not None}
    choice = {"index": 0, "message": {"role": "assistant", "content": reply.text}, "finish_reason": "stop"}
    body = {"choices": [choice], **({"usage": usage} if usage else {})}
    return ResponseBody(200, "application/json", data=json.dumps(body).encode())
