"""Reads sessions of the pi coding agent: JSON lines, a header first, then entries.

What its files leave out (system prompt, tool schemas) nobody can rebuild, so every call of a pi
session is derived, by the rule `pi`:
 - A call saw the messages before it as pi holds them: role, content and, for tool results, their
   call, tool and error flag. All else in a record is kept beside it.
 - An aborted or failed answer joins what it said, but not the tools it asked for: they never ran,
   and no later request holds them. An answer nothing is left of is kept and joins nothing. (The tokens
   reported by the calls that follow such answers say so.) An answer that ended well stays whole,
   whether or not its tools answered: what a file still lacks may come.
 - A command the person ran (`bashExecution`) is shown to the model as a text of the user's that
   names the command and holds its output. It opens no turn.
 - A compaction's summary stands before the entry it keeps first, as a message of the user's.
   Entries are counted from 0, the header included, lines that could not be read left out.
 - Where entries name their parents, the first child continues and the others are forks.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import msgspec

from vmstore.capture.importers.formats.jsonl import JsonLine, SourceFile, moment, unread
from vmstore.capture.importers.formats.pi_message import Record, rendered_command, rendered_summary, take_pi_message
from vmstore.capture.importers.formats.tree import RecordTree, TrackBranch
from vmstore.capture.steps import CallStep, MessageStep, MetadataStep, ParsedSource, Step, SummaryStep
from vmstore.core.draft import ReplyDraft, TokenUsage
from vmstore.core.page import Status
from vmstore.errors import InputError
from vmstore.providers.message import json_bytes, name_of
from vmstore.providers.reply import added, counted, nanodollars, pick

ENVELOPE = frozenset({"role", "content", "toolCallId", "toolName", "isError"})
NOTES = frozenset({"session", "model_change", "thinking_level_change", "session_info", "label", "custom", "ephemeral"})
ENTRIES = NOTES | {"message", "compaction", "branch_summary", "custom_message"}
REPLY_FIELDS = ("stopReason", "model", "errorMessage")  # a reply holds these itself
ROLES = frozenset({"user", "assistant", "toolResult", "bashExecution"})
STATUSES = {"aborted": Status.ABORTED, "error": Status.FAILED}


def recognises(source: SourceFile) -> bool:
    """Whether a file holds a pi session's header or one of its messages."""
    return any(_is_pi(line.value) for line in source.lines)


def read_pi(source: SourceFile) -> ParsedSource:
    """A pi session: one track, or one for each branch where its entries form a tree."""
    session = _Session()
    for line in source.lines:
        session.take(line)
    tracks = session.tree.tracks(session.key, session.key or source.stem)
    return ParsedSource(format="pi", tracks=tracks, torn=source.torn)


class _Session:
    """One pass over a file: each entry joins the branch its parent is on."""

    def __init__(self) -> None:
        self.tree = RecordTree()
        self.line = self.tree.main
        self.key: str | None = None
        self.entries: list[tuple[TrackBranch, int]] = []  # where each entry stands, by its index
        self.ids: dict[str, int] = {}

    def take(self, line: JsonLine) -> None:
        """Places one line."""
        if line.problem is not None:
            self.line.steps.append(unread(line))
            return
        record = line.value if isinstance(line.value, dict) else {}
        step = _step(line, record)
        if record.get("type") == "session":
            self.key = self.key or name_of(record.get("id"))
            self._place(None, None, step)  # the header's id is the session's
        else:
            self._place(name_of(record.get("id")), record.get("parentId"), step, record)

    def _place(self, name: str | None, parent: object, step: Step, record: Record | None = None) -> None:
        speaks = isinstance(step, (MessageStep, CallStep, SummaryStep))
        branch = self.tree.branch_of(parent, self.line, name or f"line{step.line}", forks=speaks)
        if isinstance(step, SummaryStep) and record is not None:
            step = msgspec.structs.replace(step, kept_from=self._kept_from(record, branch))
        self.entries.append((branch, branch.length))
        if name is not None:
            self.ids[name] = len(self.entries) - 1
        if speaks:
            self.tree.place(name, branch, step)
        else:
            self.tree.pass_through(name, parent, branch, step)
        self.line = branch

    def _kept_from(self, record: Record, branch: TrackBranch) -> int | None:
        """The step of the entry a compaction keeps first, where that leads to the compaction."""
        first = record.get("firstKeptEntryIndex")
        if first is None and isinstance(kept := record.get("firstKeptEntryId"), str):
            first = self.ids.get(kept)
        if not isinstance(first, int) or not 0 <= first < len(self.entries):
            return None
        home, index = self.entries[first]
        return index if branch.leads_through(home, index) else None


def _is_pi(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    kind, message = value.get("type"), value.get("message")
    if kind == "message":
        return isinstance(message, dict) and message.get("role") in ROLES
    return kind == "session" and "id" in value


def _step(line: JsonLine, record: Record) -> Step:
    kind = record.get("type")
    try:
        if kind == "message":
            return _message(line, record)
        if kind in ("compaction", "branch_summary"):
            return _summary(line, record)
        if kind == "custom_message":
            message = {"role": "user", "content": record.get("content")}
            draft = take_pi_message(message, _aside(record, "content"))
            draft = msgspec.structs.replace(draft, human=False)
            return MessageStep(raw=line.raw, line=line.number, at=_at(record), draft=draft)
    except InputError as error:
        return unread(line, str(error))
    if not isinstance(kind, str) or kind not in NOTES:
        return unread(line, f"unknown entry type {kind!r}")
    return _note(line, record)


def _note(line: JsonLine, record: Record) -> MetadataStep:
    title = name_of(record.get("name")) if record.get("type") == "session_info" else None
    return MetadataStep(raw=line.raw, line=line.number, at=_at(record), aside=json_bytes(record), title=title)


def _message(line: JsonLine, record: Record) -> Step:
    message = record.get("message")
    if not isinstance(message, dict):
        raise InputError("the record has no message object")
    if message.get("role") == "assistant":
        return _answer(line, record, message)
    if message.get("role") != "bashExecution":
        draft = take_pi_message(_only(message, ENVELOPE), _aside(record, "message", message))
    elif message.get("excludeFromContext"):
        return _note(line, record)
    else:
        # The output stands whole in the rendered text; it is not kept twice.
        draft = rendered_command(message, _aside(record, "message", message, without=("output",)))
    return MessageStep(raw=line.raw, line=line.number, at=_at(record), draft=draft)


def _answer(line: JsonLine, record: Record, message: Record) -> CallStep:
    status = STATUSES.get(str(message.get("stopReason")), Status.OK)
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    calls = [b for b in blocks if isinstance(b, dict) and b.get("type") == "toolCall"]
    dropped = calls if status is not Status.OK else []
    if dropped:
        content = [b for b in blocks if b not in dropped]
    drafts = (take_pi_message({"role": "assistant", "content": content}),)
    stop, model, error = (name_of(message.get(key)) for key in REPLY_FIELDS)
    keys = [key for key, value in zip(REPLY_FIELDS, (stop, model, error), strict=True) if value is not None]
    reply = ReplyDraft(
        status=status,
        drafts=drafts,
        stop=stop,
        model=model,
        usage=_usage(message.get("usage")),
        final=status is Status.OK and not calls,
        aside=_aside(record, "message", message, keys, dropped),
        error=error,
    )
    return CallStep(raw=line.raw, line=line.number, at=_at(record), reply=reply, joins=content != [])


def _summary(line: JsonLine, record: Record) -> Step:
    compaction = record.get("type") == "compaction"
    draft = rendered_summary(record.get("summary"), _aside(record, "summary"))
    if compaction:
        return SummaryStep(raw=line.raw, line=line.number, at=_at(record), draft=draft)
    return MessageStep(raw=line.raw, line=line.number, at=_at(record), draft=draft)


def _usage(usage: Any) -> TokenUsage:
    """The usage a record reports; pi writes zeros alone where nothing was reported."""
    if not isinstance(usage, dict):
        return TokenUsage()
    read, out = counted(usage.get("cacheRead")), counted(usage.get("output"))
    written = counted(usage.get("cacheWrite")) or None
    sent = added(usage.get("input"), read, written)
    if not sent and not out:
        return TokenUsage()
    cost = nanodollars(pick(usage.get("cost"), "total"))
    return TokenUsage(tokens_in=sent, tokens_cached=read, tokens_out=out, cost=cost, tokens_written=written)


def _aside(
    record: Record,
    taken: str,
    message: Record | None = None,
    without: Container[str] = (),
    dropped: Sequence[Record] = (),
) -> bytes:
    """The fields of a record beside `taken` and its time; of a message, those no model sees."""
    taken_keys = {"type", taken} if _at(record) is None else {"type", "timestamp", taken}
    rest = {key: value for key, value in record.items() if key not in taken_keys}
    if message is not None:
        rest["message"] = {k: v for k, v in message.items() if k not in ENVELOPE and k not in without}
    if dropped:
        rest["dropped"] = list(dropped)
    return json_bytes(rest)


def _only(message: Record, keys: frozenset[str]) -> Record:
    return {key: value for key, value in message.items() if key in keys}


def _at(record: Record) -> int | None:
    return moment(record.get("timestamp"))
