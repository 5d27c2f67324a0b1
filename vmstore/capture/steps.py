"""The output of a source reader: tracks, one for each session in a file, and their steps.

One step is one record of the source: a line, a list entry, a trajectory step. Readers know a
format and nothing of the store; the importer matches records it has already taken in by their
digests, so readers always read a source from its beginning.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from vmstore.core.draft import Draft, ReplyDraft
from vmstore.core.page import Origin


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One record of a source: its exact bytes, where it stands, when it happened (µs since 1970)."""

    raw: bytes
    line: int  # 1-based line, or 1-based entry of a list
    at: int | None = None


class MessageStep(Step, frozen=True, kw_only=True):
    """A message that joins the conversation: from a person, a tool, the system."""

    draft: Draft


class CallStep(Step, frozen=True, kw_only=True):
    """One call: the request and what came back, which then joins the conversation.

    `request` holds the messages as the source recorded them; None derives them: the
    conversation as it stood before this step. `rest` is the recorded request's other fields, and
    `shape` whose words it is written in, where the source holds it whole.
    `derived` tells messages that a source names but did not send so: somebody's account of the request.
    `joins` is False where the answer never reached a later request (aborted, empty).
    """

    reply: ReplyDraft
    request: tuple[Draft, ...] | None = None
    rest: bytes | None = None
    shape: int | None = None
    derived: bool = False
    joins: bool = True


class ContinuationStep(Step, frozen=True, kw_only=True):
    """A further record of the answer to the last call (one message id on several lines)."""

    reply: ReplyDraft


class SummaryStep(Step, frozen=True, kw_only=True):
    """A summary takes the place of what was said before.

    `kept_from` is the index (0-based, within this track, a fork's inherited steps included) of
    the first step that stays in the conversation after the summary; None keeps nothing before.
    Messages of slots TOOLS and SYSTEM always stay.
    """

    draft: Draft
    kept_from: int | None = None


class MessageRef(NamedTuple):
    """A message that an earlier step brought: which step (0-based, as in `SummaryStep`), and which of its messages."""

    step: int
    nth: int = 0


class RewriteStep(Step, frozen=True, kw_only=True):
    """The conversation is from here on what this lists: messages there were, and new ones between them.

    Messages of slots TOOLS and SYSTEM always stay. What leaves is what new pages of type summary
    were made from. `aside` is kept beside the conversation, as a note's is.
    """

    stands: tuple[MessageRef | Draft, ...]
    aside: bytes | None = None


class DetachedPages(Step, frozen=True, kw_only=True):
    """Pages that the source holds beside the conversation: found by name, in no context and no message."""

    draft: Draft


class MetadataStep(Step, frozen=True, kw_only=True):
    """A record that is no message: a header, a setting, a title. Kept beside the conversation."""

    aside: bytes
    title: str | None = None


class UnreadableStep(Step, frozen=True, kw_only=True):
    """A record nobody can read (malformed, gigantic, unknown): kept as a raw page and counted."""

    reason: str


class Track(msgspec.Struct, kw_only=True):
    """One session in a source.

    `key` identifies it within its format, for ever: the file's own session id, or None where
    the file has none (the importer then takes its absolute path and `part`). `name` is what to
    call it when nobody says otherwise. A fork names its parent track by `part` and continues it
    after `inherits` of its steps; a spawn names the tool call that started it.
    """

    key: str | None
    name: str | None = None
    part: str = ""  # which track of the file this is, "" for the main one
    steps: Iterable[Step] = ()
    origin: Origin = Origin.NEW
    parent: str | None = None  # the parent's `part`
    inherits: int = 0
    spawned_by: str | None = None  # call id in the parent
    agent: str | None = None
    user: str | None = None
    title: str | None = None


class TornLine(msgspec.Struct, frozen=True):
    """A last line that ends before its newline: left for the next import, and said so."""

    line: int
    bytes: int


class ParsedSource(msgspec.Struct, kw_only=True):
    """A source read: its format's name, its tracks (the main one first), and a torn last line.

    `known_as` is the format under which its sources are known, where that is another one.
    """

    format: str
    known_as: str | None = None
    tracks: list[Track]
    torn: TornLine | None = None
