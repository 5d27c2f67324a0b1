"""Takes calls in: keeps each session's conversation at hand and writes what a call changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from vmstore.capture.conversation.conversation import Conversation
from vmstore.capture.conversation.load import follow, reader
from vmstore.capture.record import ASKED, RecordedPosition, ask, gap, held, record
from vmstore.core.clock import within
from vmstore.core.draft import EndedCall, TokenUsage
from vmstore.core.redaction import Redaction, policy_of
from vmstore.engine.batch import Batch
from vmstore.engine.engine import Engine
from vmstore.engine.head import NewSession
from vmstore.engine.redaction_policy import change
from vmstore.errors import ConflictError, InputError, RefusedError
from vmstore.log.commit import Commit
from vmstore.namespace.namespace import Namespace, session_name
from vmstore.namespace.results import RecordedCall
from vmstore.redact.mask import Mask
from vmstore.views.branch import Branch
from vmstore.views.projectors.decisions import in_force
from vmstore.views.projectors.redactions import policy_at

CONVERSATIONS_MAX = 64
COST_MAX = 1e9
READS_MAX, LITTLE = 8, 64  # a session is read so often, until no more mutations were written meanwhile than that


class CallRecorder:
    """Records calls into the sessions of a namespace."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = self._ns = namespace
        self._engine: Engine | None = None  # through which they are read

    def forget(self) -> None:
        """Forgets every conversation; the next call loads it from the log."""
        self._ns.conversations.clear()

    def record(
        self,
        name: str,
        request: dict[str, Any],
        response: Any,
        *,
        at: int | None,
        latency: int | None,
        cost: float | None,
        request_id: str | None,
        redaction: Redaction | None = None,
        asked: dict[str, Any] | None = None,
        beside: dict[str, Any] | None = None,
    ) -> RecordedCall:
        """Records one call; see `Store.record`."""
        once = None if request_id is None else IdempotentCall(_request_id(request_id), request, response)
        if asked is not None:  # first, so that what is sent shorter is held against what the log has
            self.ask(name, asked, at=at, redaction=redaction)
        call = EndedCall(name, request, response, at, latency, asked, beside)
        return self._write(name, _written(call, used(latency, cost)), at, once, redaction)

    def record_all(
        self, calls: Sequence[EndedCall], redaction: Redaction | None = None
    ) -> list[RecordedCall | Exception]:
        """Records calls, one of each session with one flush; what became of each."""
        writes = [
            self._call(call.session, _written(call, used(call.latency, None)), call.at, None, redaction)
            for call in calls
        ]
        names = [call.session for call in calls]
        return self._ns.group_commit.write_all(list(zip(names, writes, strict=True)))

    def gap(self, name: str, reason: str, *, at: int | None, redaction: Redaction | None = None) -> RecordedCall:
        """Notes a call that could not be recorded."""

        def write(conversation: Conversation, batch: Batch, at: int) -> RecordedPosition:
            return gap(conversation, batch, reason, at=at)

        return self._write(name, write, at, None, redaction)

    def ask(
        self, name: str, request: dict[str, Any], *, at: int | None, redaction: Redaction | None = None
    ) -> dict[str, Any]:
        """Takes in what a client asks; see `record_asked`."""
        as_held: list[Mapping[str, Any]] = [request]

        def write(conversation: Conversation, batch: Batch, at: int) -> RecordedPosition:
            as_held[0] = held(batch, request, ASKED)
            return ask(conversation, batch, request, at=at)

        self._write(name, write, at, None, redaction)
        return dict(as_held[0])

    def _write(
        self,
        name: str,
        write: Callable[[Conversation, Batch, int], RecordedPosition],
        at: int | None,
        asked: IdempotentCall | None,
        redaction: Redaction | None = None,
    ) -> RecordedCall:
        return self._ns.group_commit.write(name, self._call(name, write, at, asked, redaction))

    def _call(
        self,
        name: str,
        write: Callable[[Conversation, Batch, int], RecordedPosition],
        at: int | None,
        asked: IdempotentCall | None,
        redaction: Redaction | None,
    ) -> _Call:
        session_name(name)
        within("at", at)
        happened = self._ns.clock.now() if at is None else at  # a retry happened no later
        return _Call(self, name, write, happened, asked, redaction)

    def through(self) -> Engine:
        """The gate; conversations that were read through another one, before a fork of the process, are forgotten."""
        engine = self._ns.engine
        if engine is not self._engine:
            self.forget()
            self._engine = engine
        return engine

    def read(self, key: int) -> None:
        """Brings a session's conversation to where it stands, or near: the rest is read while others wait."""
        for _ in range(READS_MAX):
            position, conversation = self.conversation(key)
            self.keep(key, position, conversation)
            if self._ns.engine.head(key).position - position <= LITTLE:
                break

    def conversation(self, key: int) -> tuple[int, Conversation]:
        """Takes a session's conversation out of memory, brought to where the session stands."""
        position, conversation = self._ns.conversations.pop(key, (0, Conversation()))
        if self._ns.engine.head(key).position == position:
            return position, conversation
        position = follow(self._ns.engine, key, conversation, position)
        if in_force(Branch(self._ns.views, key), position) is not None:
            raise RefusedError(
                "this session manages its memory, so its prompts are its own: tell it what happens with user, "
                "assistant and tool, or record under another name",
                code="manages-its-memory",
            )
        return position, conversation

    def keep(self, key: int, position: int, conversation: Conversation) -> None:
        """Remembers a session's conversation as it stands at a position."""
        self._ns.conversations[key] = (position, conversation)
        if len(self._ns.conversations) > CONVERSATIONS_MAX:
            del self._ns.conversations[next(iter(self._ns.conversations))]

    def answered(self, key: int, name: str, asked: IdempotentCall) -> RecordedCall | None:
        """The first answer to a request id, or None where it is new."""
        self._ns.follow()
        request_id, hides = asked.id, policy_at(Branch(self._ns.views, key)) is not Redaction.OFF
        row = self._ns.views.execute(
            "SELECT request, last FROM commits WHERE session = ? AND request >= ? AND request < ?",
            (key, request_id + "\n", request_id + "\n\U0010ffff"),
        ).fetchone()
        if row is None:
            return None
        if row[0] != f"{request_id}\n{asked.payload(hides=hides).hex()}":
            raise ConflictError(
                f"request id {request_id!r} was used for another call; use a new one", code="request-id-used"
            )
        call = self._ns.views.execute(
            "SELECT call, turn, position FROM calls WHERE session = ? AND position >= ? ORDER BY position LIMIT 1",
            (key, row[1]),
        ).get
        return RecordedCall(name, *call)


class _Call:
    """The write of one call, in the steps of a group commit."""

    def __init__(
        self,
        recording: CallRecorder,
        name: str,
        write: Callable[[Conversation, Batch, int], RecordedPosition],
        at: int,
        asked: IdempotentCall | None,
        redaction: Redaction | None,
    ) -> None:
        self._recording, self._ns = recording, recording.namespace
        self._name, self._write, self._at, self._asked, self._redaction = name, write, at, asked, redaction
        self._key: int | None = None
        self._conversation: Conversation
        self._batch: Batch
        self._written: RecordedPosition
        self._first: RecordedCall | None = None  # the answer, where the call was recorded before

    def prepare(self) -> bool:
        """Reads the session, unless the call was recorded before."""
        self._recording.through()
        if (key := self._ns.key(self._name)) is None:
            return True
        if self._asked is not None and (first := self._recording.answered(key, self._name, self._asked)) is not None:
            self._first = first
            return False
        self._recording.read(key)
        return True

    def decide(self) -> Batch | None:
        """The batch that says what the call changed; None where somebody recorded it meanwhile."""
        engine, asked, at = self._recording.through(), self._asked, self._at
        self._key = key = self._ns.key(self._name)
        if key is None:
            conversation, batch = Conversation(), self._ns.begin(NewSession(self._name, redaction=self._redaction), at)
        else:
            if asked is not None and (first := self._recording.answered(key, self._name, asked)) is not None:
                self._first = first
                return None
            _, conversation = self._recording.conversation(key)
            batch = engine.batch(key)
            if self._redaction is not None:
                change(engine, batch, self._redaction, at)
        if asked is not None:
            if batch.redaction is not None:
                batch.redaction.door.clean(asked.id, "the request id")
            batch.request(asked.id, asked.payload(hides=batch.redaction is not None))
        # Where this fails the conversation is half changed, and is not kept.
        self._written = self._write(conversation, batch, at)
        if batch.empty and key is not None:  # all that was asked is in the log
            self._recording.keep(key, batch.head.position, conversation)
            self._first = RecordedCall(self._name, self._written.call, self._written.turn, self._written.position)
            return None
        batch.close(at)
        self._conversation, self._batch = conversation, batch
        return batch

    def done(self, commits: list[Commit]) -> RecordedCall:
        """The position, call and turn of the recorded call."""
        if self._first is not None:
            return self._first
        session = commits[-1].session
        if self._key is None:
            self._ns.follow()
            self._conversation.read = reader(self._ns.engine, Branch(self._ns.views, session))
        self._recording.keep(session, self._batch.head.position, self._conversation)
        return RecordedCall(self._name, self._written.call, self._written.turn, self._written.position)


def _written(call: EndedCall, usage: TokenUsage) -> Callable[[Conversation, Batch, int], RecordedPosition]:
    """The write of one call."""

    def write(conversation: Conversation, batch: Batch, at: int) -> RecordedPosition:
        return record(
            conversation, batch, call.request, call.response, at=at, usage=usage, asked=call.asked, beside=call.beside
        )

    return write


def used(latency: int | None, cost: float | None) -> TokenUsage:
    """Usage that the caller measured: microseconds and dollars."""
    return TokenUsage(latency=within("latency", latency), cost=None if cost is None else _nano(cost))


def _nano(dollars: float) -> int:
    """A cost in nano-dollars."""
    if not isinstance(dollars, int | float) or not abs(dollars) < COST_MAX:
        raise InputError(f"cost {dollars!r:.40} is no amount of dollars below a billion")
    return round(dollars * 1e9)


def _request_id(request_id: str) -> str:
    """A request id, refused where the log could not find it again."""
    if not isinstance(request_id, str) or not request_id or not request_id.isprintable():
        raise InputError(
            f"{request_id!r:.40} cannot be a request id: a text of printable characters can", code="not-a-name"
        )
    return request_id


class IdempotentCall(NamedTuple):
    """A call that its caller may try again: the id it gave it, what was asked and answered."""

    id: str
    request: Any
    response: Any

    def payload(self, *, hides: bool) -> bytes:
        """A digest of what was asked and answered, to tell a retry from another call.

        Where the session `hides` secrets it is made without them, since a digest lets guesses be tried.
        """
        try:
            text = json.dumps([self.request, self.response], default=repr, sort_keys=True)
        except (TypeError, ValueError, RecursionError):
            text = ""  # what cannot be written as JSON is refused when it is parsed
        if hides:
            text = Mask().text(str(Mask().value(text, "")), "")
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def record_together(store: Any, calls: Sequence[EndedCall], redaction: str | None) -> Sequence[object]:
    """Records calls of different sessions with one flush; what became of each, errors included."""
    recording: CallRecorder = store._recording
    return recording.record_all(calls, None if redaction is None else policy_of(redaction))


def record_asked(store: Any, session: str, request: dict[str, Any], redaction: str | None) -> dict[str, Any]:
    """Takes in the messages of a request that a client makes, before it is known what is sent of them.

    The request as the session holds it, without what that masks; what was taken in before is not again.
    """
    recording: CallRecorder = store._recording
    return recording.ask(session, request, at=None, redaction=None if redaction is None else policy_of(redaction))
