"""The writer's side of ports that manage their window: what is sent for a request, and for each round of its tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vmstore.capture.client.body import answer_of, request_of
from vmstore.capture.client.recorder import ClientExchange, Errand, Recorder
from vmstore.errors import InputError
from vmstore.proxy.bodies import without
from vmstore.proxy.frames import CallBegin, FrameKind, Managed, WindowAsk, packed
from vmstore.proxy.rounds import next_request
from vmstore.proxy.window import Window

Json = dict[str, Any]
REASON_MAX = 300  # characters
TOOL_LOOP = "tool_loop"  # the component whose calls follow the first of a request


class OpenRequest:
    """A request under way: its session, what was asked of it and sent for it, and the call that ended last."""

    def __init__(self, ask: WindowAsk) -> None:
        self.ask = ask
        self.session = ask.session
        self.asked: bytes | None = None  # where something else was sent
        self.sent: Json = {}
        self.tools: tuple[str, ...] = ()
        self.rounds = 0
        self.ended: ClientExchange | None = None


class ManagedRequests:
    """The requests of ports that manage their window, by number; what is to be read of the store is an errand."""

    def __init__(self, recorder: Recorder, send: Callable[[bytes], None], redaction: str | None) -> None:
        self._recorder = recorder
        self._send = send
        self._redaction = redaction
        self._window = Window()
        self._open: dict[int, OpenRequest] = {}

    def ask(self, number: int, ask: WindowAsk) -> None:
        """Has the memory say what is sent for a request, once all calls before it are in the store."""
        self._open[number] = request = OpenRequest(ask)
        self._recorder.submit(Errand(lambda: self._answer(number, lambda: self._managed(request))))

    def again(self, number: int) -> None:
        """Has the memory answer what the last call of a request asked of it."""
        if (request := self._open.get(number)) is not None:
            self._recorder.submit(Errand(lambda: self._answer(number, lambda: self._next(request))))

    def over(self, number: int) -> None:
        """Forgets a request."""
        self._open.pop(number, None)

    def recorded(self, begin: CallBegin, exchange: ClientExchange) -> tuple[str | None, bytes | None, Json | None]:
        """The session of a call that ended, what the client asked, and what is kept with its answer."""
        request = self._open.get(begin.window or 0)
        if request is None or begin.why:
            why = {"window": {"packed": False, "why": begin.why}} if begin.why else None
            return (request.session if request is not None else None) or begin.session, None, why
        request.ended = exchange
        if request.asked is None:
            return request.session or begin.session, None, None
        about: Json = {"window": {"packed": True, "tokens_max": request.ask.tokens, "round": request.rounds}}
        if request.rounds:
            about["component"] = TOOL_LOOP
        return request.session, without(request.asked, begin.secrets), about

    def _answer(self, number: int, make: Callable[[], Managed]) -> None:
        if number not in self._open:
            return  # the proxy waits no more
        try:
            managed = make()
        except Exception as error:  # whatever it is: the request goes on as it is, and the reason with its call
            managed = Managed(None, self._recorder.trouble(error)[:REASON_MAX], failed=True)
        self._send(packed(FrameKind.MANAGED, number, managed))

    def _managed(self, request: OpenRequest) -> Managed:
        ask = request.ask
        given = request_of(ask.body)
        asked = request_of(without(ask.body, ask.secrets)) if ask.secrets else given
        if request.session is None:
            request.session = self._recorder.taken_up(asked)
        managed = self._window.managed(
            self._recorder.opened(), request.session, given, asked, ask, redaction=self._redaction
        )
        if managed.body is not None:
            request.asked, request.sent, request.tools = ask.body, request_of(managed.body), managed.tools
        return managed

    def _next(self, request: OpenRequest) -> Managed:
        if request.ended is None or request.session is None:
            raise InputError("no call of this request ended before its next round", code="no-round")
        answer = answer_of(request.ended.answer)
        if isinstance(answer, BaseException):
            return Managed(None, str(answer)[:REASON_MAX], failed=True)
        request.rounds += 1
        session = self._recorder.opened().session(request.session)
        body = next_request(session, request.sent, answer, request.tools, request.ask.rounds - request.rounds)
        if body is None:
            return Managed(None, "the answer asks nothing of the memory")
        request.sent = request_of(body)
        return Managed(body, "", request.tools)
