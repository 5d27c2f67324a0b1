"""The shapes answers have: the same from Python as in the command's JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from vmstore.core.text.explanation import FeatureShare, MatchedWord, SearchExplanation


class Basis(msgspec.Struct, frozen=True):
    """The moment an answer holds for; given back, it repeats the answer."""

    session: str
    position: int
    turn: int
    call: int


class ContextPage(msgspec.Struct, frozen=True):
    """One page as the model saw it, with since when it stayed there unbroken."""

    order: int
    page: str
    message: str | None
    role: str
    type: str
    level: int
    tokens: int
    pinned: bool
    since_turn: int
    since_call: int


class Page(msgspec.Struct, frozen=True):
    """A page as it stood at a moment. `tier` 0 is the prompt, 2 the event store.

    `session` made it, `actor` is who in it: whom its labels name, else the role. `bytes` and
    `tokens` are of what it shows in the prompt, else of its last full version. `access_count` calls
    saw it so far, the last of them in turn `last_access_turn`. `represents` are the pages it stands
    for; `pinned` says whether somebody holds it in the prompt. Times are in microseconds since 1970.
    """

    page: str
    session: str
    message: str | None
    type: str
    role: str
    modality: str
    mime: str
    tier: int
    level: int
    version: int
    tokens: int
    bytes: int
    importance: float
    pinned: bool
    tags: list[str]
    hint: str | None
    actor: str
    status: str | None
    valid_from: int | None
    valid_to: int | None
    anchors: dict[str, Any]
    represents: list[str]
    created_turn: int
    created_call: int
    created_at: int
    last_access_turn: int | None
    access_count: int
    position: int


class Version(msgspec.Struct, frozen=True):
    """One content of a page: a full version at level 0, above it a shorter form of that version.

    `parent` is the version it was made from, a shorter form's own, a first one's None; `tokens_added`
    and `bytes_added` are against that. `delta` is a unified diff against it, where it was asked
    for and both are text.
    """

    page: str
    version: int
    parent: int | None
    position: int
    level: int
    tokens: int
    tokens_added: int
    bytes: int
    bytes_added: int
    actor: str
    method: str | None
    delta: str | None = None


class Affinity(msgspec.Struct, frozen=True):
    """How often a page was in the prompt with another: `shared` calls saw both, `calls` saw this one.

    `affinity` is the share of `shared` in the calls that saw either.
    """

    page: str
    affinity: float
    shared: int
    calls: int
    role: str
    type: str
    tokens: int
    text: str


class Fault(msgspec.Struct, frozen=True):
    """A page that a kernel was asked for; in a session without one, a page that came back to the prompt.

    `granted` where it came, at `level_served`, from a tier; else `denied_because` says why not. `page`
    is None where no page has the name asked for. `out_since` is what had put it out, None where it was
    in the prompt or never there. `reason` is why it was asked for, None where nobody is known to
    have asked; tokens are what it shows.
    """

    page: str | None
    position: int
    turn: int
    call: int
    out_since: int | None
    tokens: int | None
    granted: bool = True
    denied_because: str | None = None
    reason: str | None = None
    level_asked: int | None = None
    level_served: int | None = None
    from_tier: int | None = None


Marks = tuple[tuple[int, int], ...]


class Hit:
    """A page that answers a search: how well (comparable within one answer), and the line where it does.

    `text` is that line and `marks` are where in it the words stand that were asked for, begin and end of each; both
    are made when they are first looked at, as `line` makes them. `features` are what the score is the sum of, `words`
    the asked ones that the text has or stands near; both where they were asked for.
    """

    __slots__ = ("_line", "_shown", "features", "page", "position", "score", "session", "version", "words")

    def __init__(
        self, session: str, page: str, score: float, version: int, position: int,
        line: Callable[[], tuple[str, Marks]], features: Mapping[str, FeatureShare] | None = None,
        words: Sequence[MatchedWord] = (),
    ) -> None:  # fmt: skip
        self.session, self.page, self.score = session, page, score
        self.version, self.position = version, position
        self.features, self.words = dict(features or {}), list(words)
        self._line: Callable[[], tuple[str, Marks]] | None = line
        self._shown: tuple[str, Marks] = ("", ())

    def _excerpt(self) -> tuple[str, Marks]:
        """The line and its marks; what it is made from is let go of."""
        line = self._line
        if line is not None:
            self._shown, self._line = line(), None
        return self._shown

    @property
    def text(self) -> str:
        """The line that answers."""
        return self._excerpt()[0]

    @property
    def marks(self) -> Marks:
        """The places in the line of the words that were asked for."""
        return self._excerpt()[1]

    def explained(self, features: Mapping[str, FeatureShare], words: Sequence[MatchedWord]) -> Hit:
        """The same hit with the reasons for its score."""
        about = (self.session, self.page, self.score, self.version, self.position)
        return Hit(*about, self._excerpt if self._line is None else self._line, features, words)

    def to_dict(self) -> dict[str, Any]:
        """The hit as plain values."""
        names = ("session", "page", "score", "version", "position", "text", "marks", "features", "words")
        found: dict[str, Any] = msgspec.to_builtins({name: getattr(self, name) for name in names})
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hit) and self.to_dict() == other.to_dict()

    def __repr__(self) -> str:
        return f"Hit({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"


class Hits(list[Hit]):
    """The answers of a search, best first.

    `notes` say what is to be known of them, as of a quote that was not closed, or of an embedder that failed.
    `explanation` says what was looked for and among how many texts, where that was asked for.
    """

    def __init__(
        self, hits: Iterable[Hit] = (), notes: Sequence[str] = (), explanation: SearchExplanation | None = None
    ) -> None:
        super().__init__(hits)
        self.notes = list(notes)
        self.explanation = explanation


class Event(msgspec.Struct, frozen=True):
    """Something that happened to a page: one line of its history."""

    position: int
    turn: int
    call: int
    event: str
    level: int
    version: int
    tokens: int | None = None
    method: str | None = None
    detail: str | None = None


class PageLink(msgspec.Struct, frozen=True):
    """One link met on a walk: `source` was made from, or otherwise relates to, `target`.

    `text` is the beginning of the page on the far side, `status` how that stands, as `Page` has it.
    """

    depth: int
    source: str
    kind: str
    target: str
    position: int
    text: str
    status: str | None = None


class Change(msgspec.Struct, frozen=True):
    """One difference between two contexts: a page that entered, left or is shown otherwise."""

    change: str
    page: str
    message: str | None
    role: str
    type: str
    tokens_before: int
    tokens_after: int
    level_before: int | None
    level_after: int | None
    text: str


class Diff(msgspec.Struct, frozen=True):
    """Changes between two contexts, from `before` to `after`."""

    before: Basis
    after: Basis
    tokens_before: int
    tokens_after: int
    unchanged: int
    changes: list[Change]


class SessionInfo(msgspec.Struct, frozen=True):
    """One session with its counts; turns and calls are the last numbers, forks' inherited ones included.

    `redaction` is what it does with secrets now: off, mask or refuse; `redactions` how many it masked.
    `outcome` and `reward` are the verdict of its source, None where it gives none: a task of a benchmark passed or
    failed, how an agent's run exited.
    `status` is active, or completed or abandoned where it was closed and nothing was said since. `fidelity` is
    recorded, derived, or partly where of its own calls `recorded` were recorded and others not. `began_at` and
    `last_at` say when it happened, None where its source held no times; `opened_at` is then when it was imported.
    """

    session: str
    origin: str
    parent: str | None
    fork_position: int | None
    title: str | None
    user: str | None
    agent: str | None
    fidelity: str
    turns: int
    calls: int
    messages: int
    pages: int
    raw: int
    mutations: int
    tokens: int
    position: int
    opened_at: int
    source: str | None
    redaction: str = "off"
    redactions: int = 0
    status: str = "active"
    outcome: str | None = None
    reward: float | None = None
    recorded: int = 0
    began_at: int | None = None
    last_at: int | None = None


class SessionOverview(SessionInfo, frozen=True):
    """One session in a list of many: with how the first thing begins that a person said, and what it cost.

    `cost` is what the source recorded of its own calls, in dollars, `cost_estimated` what the others cost by the
    store's prices; None where there is nothing to add. `model` is the last one asked.
    """

    first_line: str | None = None
    model: str | None = None
    cost: float | None = None
    cost_estimated: float | None = None


class TurnInfo(msgspec.Struct, frozen=True):
    """One turn: where it opened, how many calls it made, how often pages were asked for and left the prompt.

    Without a kernel `faults` counts the pages that came back. `searches` are the agent's, `load` is the
    fullest class the prompt came to in it, None where it stayed in the one it had. `total_tokens`, `memory_tier`
    and `is_identity_critical` are those of `session.memory.turns.hot` and `warm`; no tier where nothing was said in it.
    """

    turn: int
    position: int
    at: int
    calls: int
    faults: int = 0
    evictions: int = 0
    searches: int = 0
    load: str | None = None
    total_tokens: int = 0
    memory_tier: str | None = None
    is_identity_critical: bool = False


class CallInfo(msgspec.Struct, frozen=True):
    """One call; tokens are estimated, `tokens_reported` and the rest the provider's. Cost in dollars.

    `budget` is what the prompt could hold, in estimated tokens, None where no kernel is at work.
    `invalidated` are the tokens of the request before from the first place on that this one changed:
    a provider's cache serves only what stands before. `compacted` are the pages that a summary replaced with it.
    `component` names the part of a memory that made it, None for the agent's own.
    `cost` is what the source recorded; where it recorded nothing, `cost_estimated` is by the store's list of prices.
    """

    call: int
    turn: int
    position: int
    at: int
    model: str | None
    status: str
    fidelity: str
    pages: int
    tokens: int
    tokens_reported: int | None
    tokens_cached: int | None
    tokens_out: int | None
    cost: float | None
    latency_ms: float | None
    stop: str | None
    error: str | None
    budget: int | None = None
    invalidated: int = 0
    compacted: int = 0
    tokens_written: int | None = None
    cost_estimated: float | None = None
    component: str | None = None


class Compaction(msgspec.Struct, frozen=True):
    """A summary that replaced pages of the prompt: `left` they are, `tokens` what they took there.

    `call` is the first whose request has the summary in their place. `returned` are those of them that came back to
    the prompt since.
    """

    session: str
    call: int
    turn: int
    position: int
    at: int
    pages: int
    tokens: int
    summary: str
    summary_tokens: int
    left: list[str]
    returned: list[str]
    text: str


class Response(msgspec.Struct, frozen=True):
    """The response to one call.

    `body` is the response, equal in every field to what was handed in, where `fidelity` is
    recorded; None where nothing or an exception came. Where it is derived, `rule` says by which:
    stream, put together from its parts; messages, where only `messages` and what stands `beside`
    them is known. `exception` is the class of what was raised, `error` its words. `erased` says that
    something of the body was erased; `messages` then say so in its place.
    """

    call: int
    status: str
    fidelity: str
    rule: str | None = None
    body: Any = None
    messages: list[Any] = []
    model: str | None = None
    stop: str | None = None
    error: str | None = None
    exception: str | None = None
    status_code: int | None = None
    beside: dict[str, Any] = {}
    erased: str | None = None


class RecordedCall(msgspec.Struct, frozen=True):
    """A call as it was taken in: where it stands."""

    session: str
    call: int
    turn: int
    position: int


class Entry(msgspec.Struct, frozen=True):
    """One mutation of a tail; `cursor` resumes after it."""

    cursor: str
    session: str
    position: int
    kind: str
    at: int
    logged_at: int
    mutation: Any


def to_json(answer: Any) -> Any:
    """An answer as plain dicts and lists."""
    return msgspec.to_builtins(answer, builtin_types=(bytes,), enc_hook=_plain)


def _plain(value: Any) -> Any:
    """A value that msgspec does not know: a hit by its fields, anything else as its text."""
    return value.to_dict() if isinstance(value, Hit) else str(value)


class FaultAnswer(msgspec.Struct, frozen=True):
    """Answer to a page fault: `content` is the form in the prompt now, at `level`, in `tokens`.

    `number` is the page's position, 0 where there is none. `came` says whether it had to be brought in
    or shown in fuller form, `evicted` what left for it.
    """

    page: str
    number: int
    granted: bool
    denied_because: str | None
    level: int | None
    tokens: int
    content: bytes
    came: bool
    evicted: list[str]
