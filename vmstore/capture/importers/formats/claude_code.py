"""Reads Claude Code transcripts: JSON lines whose records form a tree.

The files hold what was said, not what was sent, so every call is derived by the rule `before`: it
saw the messages before it on its own line. One line of the conversation is a track:
 - A parent that is null or unknown continues the line of the record before.
 - Of several records that name one parent the first continues, the others are forks right after
   the parent. Tool results and the lines of one message id never fork. Bookkeeping is passed
   through: what names it continues its parent.
 - Sidechain records are spawned sessions, started by the last open Task or Agent call whose
   prompt they begin with. A file that begins with an agent's record is that agent's own.
 - The lines of one message id are one call, tool results between them or not; each line's usage
   replaces the one before. An error of the service is a failed call and joins nothing; an answer
   no model gave is a message without a call.
 - A summary after a compaction takes the place of all messages before it.
"""

from __future__ import annotations

from vmstore.capture.importers.formats.claude_record import (
    MESSAGES,
    NOTES,
    SPAWNERS,
    SYNTHETIC,
    Record,
    is_record,
    is_tool_result,
    prompt_of,
    said_in,
    take_answer,
    take_user,
    title_of,
)
from vmstore.capture.importers.formats.jsonl import JsonLine, SourceFile, moment, unread
from vmstore.capture.importers.formats.tree import RecordTree, TrackBranch
from vmstore.capture.steps import CallStep, ContinuationStep, MessageStep, MetadataStep, ParsedSource, Step, SummaryStep
from vmstore.core.draft import Draft, ReplyDraft
from vmstore.core.page import Status
from vmstore.errors import InputError
from vmstore.providers.message import json_bytes, name_of


def recognises(source: SourceFile) -> bool:
    """Whether a file holds a record of a Claude Code transcript."""
    return any(is_record(line.value) for line in source.lines)


def read_claude_code(source: SourceFile) -> ParsedSource:
    """The session of a transcript, its forks and the sessions it spawned."""
    transcript = _Transcript(source)
    for line in source.lines:
        transcript.take(line)
    key, name = transcript.key, (transcript.key or source.stem).replace("#", "-")
    return ParsedSource(format="claude-code", tracks=transcript.tree.tracks(key, name), torn=source.torn)


class _Transcript:
    """One pass over a file: each record joins the line of conversation it belongs to."""

    def __init__(self, source: SourceFile) -> None:
        records = [line.value for line in source.lines if is_record(line.value)]
        first: Record = next((r for r in records if r["type"] in MESSAGES), {})
        agent = name_of(first.get("agentId")) if first.get("isSidechain") is True else None
        session = next((s for r in records if (s := name_of(r.get("sessionId")))), None)
        self.agent = agent  # whose own file this is: its records are no sidechain here
        self.key = f"{session}#agent-{agent}" if session and agent else session
        self.tree = RecordTree()
        self.line = self.tree.main  # the line of the record before, sidechains left out
        self.sides: dict[str | None, TrackBranch] = {}  # the latest sidechain line, by agent where named
        self.answers: dict[str, TrackBranch] = {}  # where each message id's first line stands
        self.tasks: dict[str, tuple[str | None, TrackBranch]] = {}  # calls that start agents, still open

    def take(self, line: JsonLine) -> None:
        """Places the step of one line."""
        record = line.value if is_record(line.value) else None
        if record is None:
            self.line.steps.append(unread(line, None if line.problem else _strange(line)))
            return
        try:
            if record["type"] == "user":
                self._user(line, record)
            elif record["type"] == "assistant":
                self._answer(line, record)
            else:
                self._beside(record, _note(line, record))
        except InputError as error:
            self._beside(record, unread(line, str(error)))

    def _user(self, line: JsonLine, record: Record) -> None:
        draft = take_user(record)
        result = is_tool_result(draft)
        branch = self._branch(record, line.number, forks=not result, opens=not result)
        made = SummaryStep if record.get("isCompactSummary") is True else MessageStep
        self._place(record, branch, made(raw=line.raw, line=line.number, at=_at(record), draft=draft))
        for part in draft.parts:
            if part.is_result and part.call_id is not None:
                self.tasks.pop(part.call_id, None)

    def _answer(self, line: JsonLine, record: Record) -> None:
        reply = take_answer(record)
        message_id = name_of(record["message"].get("id"))
        first = message_id is None or message_id not in self.answers
        branch = self._branch(record, line.number) if first else self.answers[message_id or ""]
        self._place(record, branch, self._answered(line, record, reply, message_id, branch, first))
        if message_id is not None and first:
            self.answers[message_id] = branch
        self._open_tasks(reply.drafts, branch)

    def _answered(
        self,
        line: JsonLine,
        record: Record,
        reply: ReplyDraft,
        message_id: str | None,
        branch: TrackBranch,
        first: bool,
    ) -> Step:
        raw, number, at = line.raw, line.number, _at(record)
        invented = reply.model == SYNTHETIC and reply.status is Status.OK
        if reply.drafts and (invented or not (first or branch.call == message_id)):
            # Not a call: nobody was asked, or the call it belongs to is no longer the last.
            return MessageStep(raw=raw, line=number, at=at, draft=reply.drafts[0])
        if not first:
            return ContinuationStep(raw=raw, line=number, at=at, reply=reply)
        branch.call = message_id
        joins = bool(reply.drafts) and reply.status is Status.OK
        return CallStep(raw=raw, line=number, at=at, reply=reply, joins=joins)

    def _place(self, record: Record, branch: TrackBranch, step: Step) -> None:
        self.tree.place(record.get("uuid"), branch, step)
        self._follow(record, branch)

    def _beside(self, record: Record, step: Step) -> None:
        """Places what is no message; it neither forks nor starts a session."""
        branch = self._branch(record, step.line, forks=False, speaks=False)
        self.tree.pass_through(record.get("uuid"), record.get("parentUuid"), branch, step)
        self._follow(record, branch)

    def _follow(self, record: Record, branch: TrackBranch) -> None:
        if branch.is_spawned:
            self.sides[name_of(record.get("agentId"))] = branch
        else:
            self.line = branch

    def _branch(
        self, record: Record, number: int, forks: bool = True, opens: bool = False, speaks: bool = True
    ) -> TrackBranch:
        """The line of conversation a record belongs to; `opens` tells a prompt, `speaks` a message."""
        parent = record.get("parentUuid")
        node = self.tree.nodes.get(parent) if isinstance(parent, str) else None
        side = record.get("isSidechain") is True and self.agent is None
        part = name_of(record.get("uuid")) or f"line{number}"
        if node is not None and node.branch.is_spawned == side:
            return self.tree.branch_of(parent, node.branch, part, forks)
        if not side:
            return self.line
        agent = name_of(record.get("agentId"))
        before = self.sides.get(agent)
        # Without an agent's name only a prompt that names no lost parent tells two sidechains apart.
        again = agent is None and opens and (parent is None or node is not None)
        if before is not None and not again:
            return before
        return self._spawn(record, part) if speaks else self.line

    def _spawn(self, record: Record, part: str) -> TrackBranch:
        call, home = self._starter(said_in(record["message"]["content"]))
        return self.tree.spawn(part, home, call)

    def _starter(self, prompt: str) -> tuple[str | None, TrackBranch]:
        """The open call that started an agent with this prompt, and the line it stands on."""
        for call in reversed(self.tasks):
            asked, home = self.tasks[call]
            if asked is not None and asked.strip() == prompt.strip():
                del self.tasks[call]
                return call, home
        return None, self.line

    def _open_tasks(self, drafts: tuple[Draft, ...], branch: TrackBranch) -> None:
        for draft in drafts:
            for part in draft.parts:
                if part.is_call and part.call_id is not None and part.tool in SPAWNERS:
                    self.tasks[part.call_id] = (prompt_of(part.content), branch)


def _note(line: JsonLine, record: Record) -> MetadataStep:
    raw, title = json_bytes(record), title_of(record)
    return MetadataStep(raw=line.raw, line=line.number, at=_at(record), aside=raw, title=title)


def _strange(line: JsonLine) -> str:
    value = line.value
    if not isinstance(value, dict):
        return f"no record: {type(value).__name__}"
    kind = value.get("type")
    if isinstance(kind, str) and kind in MESSAGES | NOTES:
        return f"a record of type {kind} without a uuid or session"
    return f"unknown record type {kind!r}"


def _at(record: Record) -> int | None:
    return moment(record.get("timestamp"))
