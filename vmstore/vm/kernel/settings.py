"""Settings of a session's memory: few values, each logged when it changes.

How much a policy weighs each thing is its own affair and stands in `parameters`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Literal, get_args

import msgspec

from vmstore.core.decision import FaultReason
from vmstore.core.text.suggest import suggest
from vmstore.errors import InputError

PPM = 1_000_000
TOKENS_MAX = 10**9
BEHAVIOUR = 2

Rules = Literal["strict", "relaxed", "passive", "short"]
Paging = Literal["model", "runtime", "hybrid"]
Threshold = Literal["explicit", "referenced", "speculative"]
Remembers = Literal["session", "user"]
Tagging = Literal["off", "keyword", "asked"]
Learning = Literal["off", "session", "user"]
Artifacts = Literal["allow", "ask"]
Shape = Literal["chat", "chat-system", "responses", "anthropic", "gemini"]

_ADMITTED = {
    # D13: a page_fault names its page, which makes it explicit, unless it says that it only guesses.
    "explicit": frozenset((FaultReason.USER_REQUESTED_RECALL, FaultReason.RESOLVE_REFERENCE)),
    "referenced": frozenset(set(FaultReason) - {FaultReason.SPECULATIVE}),
    "speculative": frozenset(FaultReason),
}


class KernelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the kernel; tokens are estimates times the factor in force.

    `mark_soft` and `mark_hard` are shares of what is left of the budget after the reserves:
    over the hard one pages give way until the soft one is met. `pinned_turns` counts the turns
    whose pages stay without being pinned by hand, `protected_turns` how long a page that was asked
    for is left alone, `cooldown_turns` the same for one that had gone and came back. A call is sent
    `window_tokens_max` of the prompt at most, None for all of it; with `conversation` it is sent media
    in words once their turn is over, and one alone of a page and what was written to stand for it.
    Before a message is answered what it speaks of is brought back, up to `recall_share` of that room, in the
    place of what nothing holds, and `recall_tokens_max`; 0 brings back what fits beside all else.
    With `batches` pages leave together, from where that voids least of what a provider has kept.
    What the model used without asking for it, and is not in the prompt, comes back in `returned_tokens_max` at most.
    With `arrivals_last` a page that no call has shown yet is shortened only where nothing else makes room for it;
    without, first of all, down to half the soft mark.
    With `remembers="user"` the claims and summaries of the user's other sessions may be among that, copied in.
    Pressure shows pages at `compress_level` before they leave, and the summaries of the last `prefetch_depth`
    segments are wished for. A segment ends by itself after an answer once more than `segment_tokens_max` were
    said in it; 0 never.
    With `recall_tools` the model is offered find_quote, remember_when and recall_all beside the two it pages with.
    Days begin and end for them where a clock of `zone` says so.
    With `tags="keyword"` each turn is tagged by its words as its answer ends it.
    With `compaction` a segment ends where the topic changes, and once the prompt is fuller than `compact_soft` of its
    room those that ended are summed up, oldest first; over `compact_hard` the older turns of the one under way, too.
    With `facts` what a person says is searched for facts, which are stated beside the conversation.
    With `learning` guards look at each tool's answer, warn in the prompt, and what succeeds becomes a skill; with
    "user" what the user's other sessions learned counts, and is brought in where its tools are offered.
    With `artifacts="ask"` a file is in no prompt before somebody approved what it holds.
    A session in which nothing was written for `idle_hours` is ended when it is opened again; 0 never.
    Calls are written in `shape`, the provider's; None, as in older logs, where no request was made of a pack.
    `behaviour` is the number of what no other setting says, so that a log is decided and written as it was: with 1
    what has no shorter form comes back whole beyond `returned_tokens_max`, and a `toolCall` is sent as its text.
    """

    l0_tokens_max: int = 128_000
    policy: str = "default"
    parameters: dict[str, int] = {}
    rules: Rules = "strict"
    paging: Paging = "hybrid"
    mark_soft: float = 0.20
    mark_hard: float = 0.95
    reserve_faults_tokens: int = 0
    reserve_protocol_tokens: int = 0
    faults_a_turn_max: int = 3
    fault_tokens_a_turn_max: int = 8_192
    fault_threshold: Threshold = "referenced"
    pinned_turns: int = 3
    protected_turns: int = 2
    cooldown_turns: int = 3
    compress: bool = True
    prefetch: bool = True
    recall_share: float = 0.25
    remembers: Remembers = "session"
    model: str | None = None
    window_tokens_max: int | None = None
    conversation: bool = True
    shape: Shape | None = "chat"
    segment_tokens_max: int = 0
    compress_level: int = 2
    prefetch_depth: int = 2
    batches: bool = True
    recall_tokens_max: int = 2_048
    returned_tokens_max: int = 256
    arrivals_last: bool = True
    recall_tools: bool = False
    zone: str = "UTC"
    tags: Tagging = "off"
    compaction: bool = False
    compact_soft: float = 0.70
    compact_hard: float = 0.85
    facts: bool = False
    learning: Learning = "off"
    artifacts: Artifacts = "allow"
    idle_hours: int = 0
    behaviour: int = BEHAVIOUR

    @property
    def room(self) -> int:
        """The tokens pages may take between faults: the budget without its reserves."""
        return self.l0_tokens_max - self.reserve_faults_tokens - self.reserve_protocol_tokens

    def admits(self, reason: int) -> bool:
        """Whether a fault with this reason is confident enough."""
        return reason in _ADMITTED[self.fault_threshold]


BEFORE = KernelSettings(
    conversation=False,
    shape=None,
    recall_share=0.0,
    prefetch_depth=1,
    recall_tokens_max=TOKENS_MAX,
    returned_tokens_max=TOKENS_MAX,
    arrivals_last=False,
    behaviour=1,
    mark_soft=0.70,
    mark_hard=0.85,
    batches=False,
)
"""What was so before there was a setting for it: a log whose first settings do not tell it is older than that."""

_FIELDS = {field.name: field for field in msgspec.structs.fields(KernelSettings)}
_COUNTS = [name for name, field in _FIELDS.items() if field.type is int]


def known_settings(names: Iterable[str]) -> None:
    """Refuses a name that no setting has, with the one that was likely meant."""
    for name in names:
        if name not in _FIELDS:
            meant = suggest(str(name), _FIELDS)
            near = f"; did you mean {meant}? The" if meant else "; the"
            raise InputError(f"there is no setting {name!r}{near} settings are {', '.join(_FIELDS)}", code="no-setting")


def _refusal(values: dict[str, Any], why: str) -> str:
    """Names the setting with an impossible value, and the allowed words of an enumeration."""
    what, _, name = why.partition(" - at `$.")
    name = re.split(r"[.`\[]", name)[0]
    if name not in values:
        return why
    words = [one for part in (_FIELDS[name].type, *get_args(_FIELDS[name].type)) for one in get_args(part)]
    listed = ", ".join(word for word in words if isinstance(word, str))
    return f"{name} cannot be {values[name]!r:.60} ({f'it is one of {listed}' if listed else what})"


def changed(settings: KernelSettings, values: dict[str, Any]) -> KernelSettings:
    """Settings with some values changed; InputError names the value, the reason and the remedy."""
    known_settings(values)
    new = _possible(settings, values)
    if new.room <= 0:
        raise InputError(
            f"l0_tokens_max is {new.l0_tokens_max}, and {new.l0_tokens_max - new.room} of it are reserved; "
            "give more tokens, or lower reserve_faults_tokens and reserve_protocol_tokens",
            code="over-budget",
        )
    return new


def _possible(settings: KernelSettings, values: dict[str, Any]) -> KernelSettings:
    """Settings with some values changed, each of which that setting can have."""
    try:
        new = msgspec.convert(msgspec.structs.asdict(settings) | values, KernelSettings)
    except msgspec.ValidationError as error:
        raise InputError(
            f"{_refusal(values, str(error))}; see specs/kernel.md for what each setting may be", code="not-a-setting"
        ) from error
    for name in _COUNTS:
        if not 0 <= getattr(new, name) <= TOKENS_MAX:
            raise InputError(
                f"{name} is {getattr(new, name)}; it is a count from 0 to {TOKENS_MAX:,}", code="not-a-setting"
            )
    if new.window_tokens_max is not None and not 0 < new.window_tokens_max <= TOKENS_MAX:
        raise InputError(
            f"window_tokens_max is {new.window_tokens_max}; give a count from 1 to {TOKENS_MAX:,}, or None for all",
            code="not-a-setting",
        )
    if not 0 < new.mark_soft <= new.mark_hard <= 1:
        raise InputError(
            f"mark_soft is {new.mark_soft} and mark_hard {new.mark_hard}; 0 < mark_soft <= mark_hard <= 1 must hold",
            code="not-a-setting",
        )
    if not 0 < new.compact_soft <= new.compact_hard <= 1:
        raise InputError(
            f"compact_soft is {new.compact_soft} and compact_hard {new.compact_hard}; "
            "0 < compact_soft <= compact_hard <= 1 must hold",
            code="not-a-setting",
        )
    if not 1 <= new.behaviour <= BEHAVIOUR:
        raise InputError(f"behaviour is {new.behaviour}; this version knows 1 to {BEHAVIOUR}")
    if new.compress_level not in (1, 2, 3):
        raise InputError(
            f"compress_level is {new.compress_level}; give 1 reduced, 2 abstract or 3 reference", code="not-a-setting"
        )
    if not 0 <= new.recall_share <= 1:
        raise InputError(
            f"recall_share is {new.recall_share}; it is a share of the room from 0 to 1", code="not-a-setting"
        )
    return new


def encoded(values: dict[str, Any]) -> bytes:
    """The changed settings as the log's cell holds them: names sorted, so that equal changes are equal bytes."""
    return msgspec.json.encode(dict(sorted(values.items())))


def decoded(settings: KernelSettings | None, cell: bytes) -> KernelSettings:
    """Settings with what a cell of the log says, None before the first; what a later version added is passed over.

    So is what an earlier version let in by hand: what is no JSON object, and a value that its setting cannot have.
    A budget that has room for nothing stays one.
    """
    try:
        values = msgspec.json.decode(cell, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        values = {}
    known = {name: value for name, value in values.items() if name in _FIELDS}
    new = settings or BEFORE
    try:
        return _possible(new, known)
    except InputError:
        for name, value in known.items():
            with suppress(InputError):
                new = _possible(new, {name: value})
    return new
