"""Field types of each kind: types, ranges and closed vocabularies, stated once.

A decoder made of these tables reads a mutation back from its bytes, and knows at once whether all
of its fields are sound. The rules that name what is not are asked only where it says no.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from vmstore.core.decision import Cause, Denial, FaultReason, Holder, Load, PromptContest, Signal, Use, Why
from vmstore.core.erasure import ErasureReason
from vmstore.core.facts import FACT_STATUS, FactType, Precision
from vmstore.core.grants import GrantScope, Verb
from vmstore.core.mutation import (
    LIVE,
    PARTIAL,
    WHOLE,
    Annotate,
    AnyMutation,
    Approve,
    Cite,
    Close,
    Compress,
    Configure,
    Create,
    Delete,
    Depth,
    Embed,
    Erase,
    Evict,
    Fact,
    FaultDenied,
    FaultIn,
    Flush,
    GuardTrip,
    Known,
    Link,
    Mark,
    Message,
    NamespacePolicy,
    Open,
    Pack,
    Pin,
    Prefetch,
    Pressure,
    Promote,
    Recall,
    Redact,
    Reference,
    Reply,
    Revoke,
    Search,
    Segment,
    Share,
    Tag,
    ToolRun,
    Turn,
    Unlink,
    Unpin,
    Update,
    names_of,
    writers,
)
from vmstore.core.namespace_policy import PolicySubject
from vmstore.core.page import (
    Fidelity,
    Level,
    LinkKind,
    Method,
    Mime,
    Modality,
    Origin,
    PageType,
    Role,
    Slot,
    Standing,
    Status,
    Tier,
)
from vmstore.core.redaction import Artifact, Reason, Redaction, RedactionMethod, RedactionSource
from vmstore.core.tags import TagDepth, TagMethod
from vmstore.core.text.token_estimate import ESTIMATORS
from vmstore.core.text.tool_outcome import ToolOutcome
from vmstore.core.vectors import Quantisation
from vmstore.core.work.trace import GuardType

NUMBER_MAX = 2**63 - 1
IMPORTANCE_MAX = 1_000_000
SHAPES = frozenset(range(4))  # of requests; `vmstore.providers.Shape` names them
VERBS = frozenset(range(1, sum(Verb) + 1))  # every sum of them
LINK_KINDS = frozenset(LinkKind)
ENDINGS = frozenset((Standing.COMPLETED, Standing.ABANDONED))  # of a session
LEVELS = frozenset((Level.REDUCED, Level.ABSTRACT, Level.REFERENCE))  # that a content can be compressed to
WORDS: dict[type, dict[str, frozenset[int]]] = {
    Open: {"origin": frozenset(Origin)},
    Mark: {"reason": frozenset((Mark.NAMED, Mark.RECORD, Mark.COMPLETE))},
    Close: {"status": ENDINGS},
    Create: {
        "type": frozenset(PageType),
        "modality": frozenset(Modality),
        "role": frozenset(Role),
        "mime": frozenset(Mime),
    },
    Annotate: {"status": frozenset(Standing)},
    Erase: {"reason": frozenset(ErasureReason)},
    Compress: {"method": frozenset(Method)},
    Embed: {"quantisation": frozenset(Quantisation)},
    Fact: {
        "type": frozenset(FactType),
        "status": FACT_STATUS,
        "one": frozenset((0, 1)),
        "precision": frozenset(Precision),
    },
    Message: {"role": frozenset(Role), "slot": frozenset(Slot)},
    Reply: {"status": frozenset(Status)},
    Configure: {"estimator": frozenset(ESTIMATORS)},
    Pack: {"fidelity": frozenset(Fidelity), "shape": SHAPES, "renderer": frozenset((WHOLE, PARTIAL, LIVE))},
    FaultIn: {"level": frozenset(Level), "tier": frozenset(Tier)},
    FaultDenied: {"because": frozenset(Denial)},
    Prefetch: {"level": frozenset(Level)},
    Evict: {"cause": frozenset(Cause)},
    Pin: {"holder": frozenset(Holder)},
    Unpin: {"holder": frozenset(Holder)},
    Reference: {
        "use": frozenset(Use),
        "level": frozenset(Level),
        "reason": frozenset(FaultReason),
        "signal": frozenset(Signal),
    },
    Pressure: {"level": frozenset(Load)},
    Approve: {"granted": frozenset((0, 1)), "artifact": frozenset(Artifact)},
    Redact: {
        "type": frozenset(RedactionMethod),
        "reason": frozenset(Reason),
        "by": frozenset(RedactionSource),
        "policy": frozenset(Redaction),
    },
    Share: {"scope": frozenset(GrantScope), "verbs": VERBS},
    Revoke: {"verbs": VERBS},
    Tag: {"method": frozenset(TagMethod), "held": frozenset((0, 1))},
    Depth: {"depth": frozenset(TagDepth)},
    ToolRun: {"outcome": frozenset(ToolOutcome)},
    GuardTrip: {"type": frozenset(GuardType)},
    NamespacePolicy: {"subject": frozenset(PolicySubject)},
}
COUNTS: dict[type, tuple[str, ...]] = {
    **dict.fromkeys((Create, Update, Compress), ("size", "tokens")),
    **dict.fromkeys((FaultIn, Prefetch, Evict), ("tokens",)),
    Configure: ("factor_ppm",),
    GuardTrip: ("count",),
    Promote: ("count", "tries"),
    Redact: ("count", "tokens_before", "tokens_after"),
}

SHARES: dict[type, tuple[str, ...]] = {
    **dict.fromkeys((Create, Annotate), ("importance",)),
    Fact: ("confidence", "strength"),
}
"""Fields that are shares of one, in parts per million."""

PAGES: dict[type, Callable[[Any], Iterable[int]]] = {
    Create: lambda m: [page for _, page in m.links] if m.links else (),
    Turn: lambda m: [page for page, _ in m.alike] if m.alike else (),
    Update: lambda m: (m.page,),
    Annotate: lambda m: (m.page,),
    Compress: lambda m: (m.page,),
    **dict.fromkeys((Link, Unlink), lambda m: (m.source, m.target)),
    Pack: lambda m: (*m.left, *(r[0] for r in m.entered)),
    **dict.fromkeys(
        (Delete, Flush, Embed, Fact, Tag, FaultIn, Prefetch, Evict, Pin, Unpin, Recall), lambda m: (m.page,)
    ),
    **dict.fromkeys((FaultDenied, Reference, Redact, Approve), lambda m: (m.page,) if m.page else ()),
    Cite: lambda m: (m.page, m.by),
    Search: lambda m: (*m.found, *(page for contest in m.contests for _, page in contest.losers)),
    ToolRun: lambda m: (m.call, *(p for p in (m.result, m.reasoning) if p), *m.read, *m.created, *m.modified),
    GuardTrip: lambda m: (*m.calls, m.warning) if m.warning else m.calls,
    Promote: lambda m: (m.page, *m.calls),
    Segment: lambda m: () if m.summary is None else (m.summary,),
}
"""The pages a mutation of a kind names."""

assert all({*names} <= {*names_of(kind)} for table in (WORDS, COUNTS) for kind, names in table.items()), (
    "a bound is of a field that its kind has, or nothing would be bounded"
)
assert {*get_args(Known)} >= PAGES.keys() | WORDS.keys() | COUNTS.keys(), "and of a kind that is written"
assert {*Level} - {Level.FULL} == LEVELS, "a content is compressed to every level but the whole"

CONTESTS = (Why, PromptContest)
"""Named tuples that fields hold, each checked part by part."""

_Number = Annotated[int, msgspec.Meta(ge=-NUMBER_MAX, le=NUMBER_MAX)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]
_Share = Annotated[int, msgspec.Meta(ge=0, le=IMPORTANCE_MAX)]


def sound(mutation: AnyMutation) -> bytes | None:
    """A mutation on the wire, where each of its fields holds what it may; else None."""
    return sound_writers[type(mutation)](mutation)


def mistyped(mutation: AnyMutation) -> str | None:
    """The first field that holds what is of no type of its own, and what it holds."""
    for field in msgspec.structs.fields(type(mutation)):
        value = getattr(mutation, field.name)
        if not _is(value, field.type):
            return f"{field.name} is {value!r:.40}, of type {type(value).__name__}"
    return None


def _is(value: object, wanted: Any) -> bool:
    """Whether a value is of an annotated type, tuples all the way down; a truth value is no number."""
    parts = get_args(wanted)
    if get_origin(wanted) is tuple:
        if not isinstance(value, tuple | list):
            return False
        kinds = parts[:1] * len(value) if parts[1:] == (...,) else parts
        return len(kinds) == len(value) and all(map(_is, value, kinds))
    if parts:
        return any(_is(value, part) for part in parts)
    if wanted in CONTESTS:
        return isinstance(value, tuple) and _is(tuple(value), _tuple(*get_type_hints(wanted).values()))
    return isinstance(value, wanted) and not isinstance(value, bool)


def _reader(kind: type[Any]) -> Callable[[bytes], object]:
    """Reads the bytes of a kind, and raises where a field holds what it may not."""
    fields = []
    for field in msgspec.structs.fields(kind):
        reader = (field.name, _domain(kind, field.name, field.type))
        fields.append(reader if field.default is msgspec.NODEFAULT else (*reader, field.default))
    strict = msgspec.defstruct(
        kind.__name__, fields, array_like=True, frozen=True, gc=False, tag_field="wire", tag=kind.NUMBER
    )
    return msgspec.msgpack.Decoder(strict).decode


def _domain(kind: type, name: str, wanted: Any) -> Any:
    """The type that a field is checked against."""
    if words := WORDS.get(kind, {}).get(name):
        return _one_of(words) | None if NoneType in get_args(wanted) else _one_of(words)
    if name in COUNTS.get(kind, ()):
        return _Count
    if name == "level" and kind in (Compress, Evict):
        return _one_of(LEVELS) | None if kind is Evict else _one_of(LEVELS)
    if name in SHARES.get(kind, ()):
        return _Share | None if kind is Annotate else _Share
    if kind in (Link, Unlink) and name == "link":
        return _one_of(LINK_KINDS)
    if (kind, name) == (Create, "links"):
        return _tuple(_tuple(_one_of(LINK_KINDS), _Number), ...)
    return _within(wanted)


def _within(wanted: Any) -> Any:
    """A type with its numbers within 63 bits; those of cells are bounded by the cells there are."""
    if wanted is int:
        return _Number
    if wanted in CONTESTS:
        return _tuple(*(_within(part) for part in get_type_hints(wanted).values()))
    parts = get_args(wanted)
    if get_origin(wanted) is tuple:
        return _tuple(*(part if part is ... else _within(part) for part in parts))
    return _within(parts[0]) | None if parts in ((int, NoneType), (Why, NoneType)) else wanted


def _one_of(numbers: Iterable[int]) -> Any:
    literal: Any = Literal
    return literal[tuple(sorted(map(int, numbers)))]


def _tuple(*parts: Any) -> Any:
    plain: Any = tuple
    return plain[parts]


def _sound_writer(kind: type[Any]) -> Callable[[Any], bytes | None]:
    """Writes a kind, and reads it back to see whether its fields are sound."""
    write, read = writers[kind], _reader(kind)

    def written(mutation: Any) -> bytes | None:
        """A mutation on the wire, where its fields are sound."""
        try:
            raw = write(mutation)
            read(raw)
        except (msgspec.MsgspecError, TypeError, OverflowError, RecursionError):
            return None
        return raw

    return written


class _SoundWriters(dict[type, Callable[[Any], bytes | None]]):
    """The writer of each kind, made when it is first asked for; that of an unknown kind writes nothing."""

    def __missing__(self, kind: type) -> Callable[[Any], bytes | None]:
        """The writer of a kind that was not asked for yet."""
        made = self[kind] = _sound_writer(kind) if kind in get_args(Known) else lambda mutation: None
        return made


sound_writers = _SoundWriters()
