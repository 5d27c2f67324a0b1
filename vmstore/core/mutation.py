"""The mutation alphabet: one frozen struct for each fact about a page or a session.

On the wire a mutation is a msgpack array `[number, fields...]`, trailing defaults left out.
Fields hold integers, enumerations and digests only; whatever a user, model or tool wrote stands
in a cell, and the field holds its `CellRef`. A number is never reused: a kind whose fields
change gets a new number under the same name, and the old one is upcast on read.

Pages and messages are named by the position of the mutation that made them, which is unique
along a session's chain of forks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, ClassVar, get_args

import msgspec

from vmstore.core.decision import (
    Cite,
    Evict,
    FaultDenied,
    FaultIn,
    Pin,
    Prefetch,
    Pressure,
    Recall,
    Reference,
    Search,
    Segment,
    Settings,
    Unpin,
)
from vmstore.core.erasure import Erase
from vmstore.core.facts import Fact
from vmstore.core.grants import Revoke, Share
from vmstore.core.mutation_kind import CHARTER, LIVE, MUTATION_NAMES, PARTIAL, PLANNED, WHOLE, CellRef, Mutation
from vmstore.core.namespace_policy import NamespacePolicy
from vmstore.core.redaction import Approve, Redact
from vmstore.core.tags import Alias, Depth, Tag
from vmstore.core.vectors import Embed
from vmstore.core.work.trace import GuardTrip, Promote, ToolRun
from vmstore.errors import CorruptError

__all__ = [
    "Alias", "Annotate", "AnyMutation", "Approve", "BodyError", "CELL_FIELDS", "CellRef", "Cite", "Close",
    "Compress", "Configure", "Create", "Decision", "Delete", "Depth", "Embed", "Erase", "Evict", "Fact",
    "FaultDenied", "FaultIn", "Flush", "GuardTrip", "Known", "Link", "MUTATION_NAMES", "Mark", "Message",
    "Mutation", "NamespacePolicy", "Open", "Pack", "Pin", "Prefetch", "Pressure", "Promote", "Recall", "Recorded",
    "Redact", "Reference", "Reply", "Residence", "Revoke", "Search", "Segment", "Settings", "Share", "Stimulus",
    "Tag", "ToolRun", "Turn", "Unknown", "Unlink", "Unpin", "Update", "body", "cell_refs", "decode", "encode",
    "LIVE", "PARTIAL", "WHOLE", "names_of", "readable", "sealed_again", "wire", "writers",
]  # fmt: skip

Residence = tuple[int, int, int, int]
"""A page's place in a pack: page, position of the content shown, level, rank."""


class Open(Mutation, frozen=True, array_like=True, tag=1):
    """A session begins; always its first mutation.

    `parent` is the uid of the session forked from, spawned by or continued, at `parent_position`;
    `spawned_by` the page of the tool call that spawned it. `meta` is a cell of JSON (user, agent,
    title), `source` a cell naming where an import came from, `key` a cell with the random key of
    its record digests. An import is `hidden` (1) until a mark completes it, the
    namespace's own session for good (CHARTER).
    """

    NUMBER: ClassVar[int] = 1
    CHARTER: ClassVar[int] = CHARTER
    uid: bytes
    name: CellRef
    origin: int = 0
    parent: bytes | None = None
    parent_position: int = 0
    meta: CellRef | None = None
    source: CellRef | None = None
    key: CellRef | None = None
    hidden: int = 0
    spawned_by: int | None = None


class Turn(Mutation, frozen=True, array_like=True, tag=2):
    """A human message after a final answer opens turn `number`; the first of its commit.

    `alike` are pages in the prompt with how alike each is to the message, in parts per million, where the
    policy weighs it.
    """

    NUMBER: ClassVar[int] = 2
    number: int
    alike: tuple[tuple[int, int], ...] = ()


class Configure(Mutation, frozen=True, array_like=True, tag=4):
    """The token estimator and its factor, in parts per million, from here on.

    `beside` are the estimated tokens of a live session's request that are no page's: rules, labels,
    tools, the JSON around them. The budget leaves what they take.
    """

    NUMBER: ClassVar[int] = 4
    estimator: int
    factor_ppm: int
    beside: int = 0


class Mark(Mutation, frozen=True, array_like=True, tag=5):
    """A moment somebody named, or an importer's progress; the last of its commit.

    `reason` 0 is a named moment, 1 a source record taken in (`records` counts them, `digest` is
    its keyed digest, `note` a cell with a record that is no message), 2 an import complete. `back_to`
    is the position that a session was set back to: what came after it was undone before this mark.
    """

    NUMBER: ClassVar[int] = 5
    NAMED: ClassVar[int] = 0
    RECORD: ClassVar[int] = 1
    COMPLETE: ClassVar[int] = 2
    reason: int
    records: int = 0
    digest: bytes | None = None
    name: CellRef | None = None
    note: CellRef | None = None
    back_to: int = 0


class Close(Mutation, frozen=True, array_like=True, tag=6):
    """A session ends, and how: completed or abandoned. A message that follows takes it up again.

    `reason` is a cell of text.
    """

    NUMBER: ClassVar[int] = 6
    status: int
    reason: CellRef | None = None


class Create(Mutation, frozen=True, array_like=True, tag=10):
    """A page comes to be, named by this mutation's position.

    `size` is in bytes, `tokens` estimated, `importance` in parts per million. `content` is None
    for an opaque page, whose bytes the source never had. `links` are (kind, page) pairs:
    provenance. `labels` is a cell of JSON: hint, mime, tags, actor, reason.
    """

    NUMBER: ClassVar[int] = 10
    type: int
    modality: int
    role: int
    message: int
    part: int
    content: CellRef | None
    size: int
    tokens: int
    mime: int = 0
    links: tuple[tuple[int, int], ...] = ()
    labels: CellRef | None = None
    importance: int = 500_000


class Update(Mutation, frozen=True, array_like=True, tag=11):
    """A page's content changes; `version` is one more than the last."""

    NUMBER: ClassVar[int] = 11
    page: int
    version: int
    content: CellRef
    size: int
    tokens: int


class Annotate(Mutation, frozen=True, array_like=True, tag=12):
    """Annotations of a page change from here on; a field left out keeps its value.

    `importance` is in parts per million, `valid_from` and `valid_to` in microseconds since 1970.
    `tags` and `untags` are cells of a JSON list: what the page gains and loses. `anchors` is a cell
    of a JSON object, values by name; null takes a name away.
    """

    NUMBER: ClassVar[int] = 12
    page: int
    importance: int | None = None
    status: int | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    tags: CellRef | None = None
    untags: CellRef | None = None
    anchors: CellRef | None = None


class Link(Mutation, frozen=True, array_like=True, tag=13):
    """`source` relates to `target`: for `derives`, source was made from target."""

    NUMBER: ClassVar[int] = 13
    source: int
    target: int
    link: int
    valid_from: int | None = None
    valid_to: int | None = None


class Unlink(Mutation, frozen=True, array_like=True, tag=14):
    """Every link of a kind from `source` to `target` holds no more; one that is made later does."""

    NUMBER: ClassVar[int] = 14
    source: int
    target: int
    link: int


class Delete(Mutation, frozen=True, array_like=True, tag=15):
    """A page holds no more: no kernel brings it back by itself; an annotation that it is active does."""

    NUMBER: ClassVar[int] = 15
    page: int


class Flush(Mutation, frozen=True, array_like=True, tag=29):
    """A page is up to date with what it was made from, as that stands now; its content stays."""

    NUMBER: ClassVar[int] = 29
    page: int


class Compress(Mutation, frozen=True, array_like=True, tag=26):
    """A page gains a shorter representation at `level`; its full content stays."""

    NUMBER: ClassVar[int] = 26
    page: int
    version: int
    level: int
    method: int
    lossy: int
    content: CellRef
    size: int
    tokens: int


class Message(Mutation, frozen=True, array_like=True, tag=30):
    """A message arrives: its envelope (a skeleton with holes) that its pages fill.

    `aside` is a cell of what the source keeps beside it; `reply_to` the call it answers.
    """

    NUMBER: ClassVar[int] = 30
    role: int
    slot: int
    envelope: CellRef
    human: int = 0
    aside: CellRef | None = None
    reply_to: int | None = None


class Reply(Mutation, frozen=True, array_like=True, tag=33):
    """The end of a call: status and usage; the last reply to a call holds.

    Token counts are the provider's; `cost` is in nano-dollars, `latency` in microseconds. `tokens_written` are those of
    `tokens_in` that the provider wrote to its cache.
    """

    NUMBER: ClassVar[int] = 33
    call: int
    status: int
    final: int = 0
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    cost: int | None = None
    latency: int | None = None
    aside: CellRef | None = None
    tokens_written: int | None = None


class Pack(Mutation, frozen=True, array_like=True, tag=40):
    """The context of one call: its change since the pack before, and a root over all pages.

    `entered` lists pages that came in or changed version, level or rank; `left` those that went.
    `rest` is a cell of the request's other fields where they changed, `envelopes` the messages
    whose skeleton changed. `root` is the Merkle root over the `leaves` pages in order. `renderer`
    says how pages and skeletons make messages: WHOLE, each message with all of its holes filled in
    order; PARTIAL, where pages may be missing, and one shown at a level is text; LIVE, as the protocol
    writes a live session's prompt. `sent` is the SHA-256 of the request that was written so, as JSON,
    and `sent_tokens` what it is estimated at. `voided` are the tokens of the request before it behind the first
    place that is another in this one; None where nobody compared them.
    """

    NUMBER: ClassVar[int] = 40
    call: int
    fidelity: int
    leaves: int
    tokens: int
    root: bytes
    entered: tuple[Residence, ...] = ()
    left: tuple[int, ...] = ()
    rest: CellRef | None = None
    envelopes: tuple[tuple[int, CellRef], ...] = ()
    shape: int | None = None
    renderer: int = WHOLE
    sent: bytes | None = None
    sent_tokens: int = 0
    voided: int | None = None


class Unknown(msgspec.Struct, frozen=True, gc=False):
    """A mutation of a kind this version does not know, kept as it stands."""

    number: int
    raw: bytes

    @property
    def kind(self) -> str:
        """The reserved name of the kind, or its number."""
        return MUTATION_NAMES.get(self.number, f"kind {self.number}")


Decision = Evict | FaultIn | FaultDenied | Prefetch | Pin | Unpin | Pressure
Stimulus = (
    Settings | Segment | Reference | Cite | Approve | Search | Recall | Embed | Fact | Tag | Alias | Depth
    | ToolRun | GuardTrip | Promote
)  # fmt: skip
Recorded = (
    Open | Turn | Configure | Mark | Create | Update | Annotate | Link | Redact | Compress | Message | Reply | Pack
)
ByHand = Close | Unlink | Delete | Flush
Granting = Share | Revoke | NamespacePolicy
Known = Recorded | Erase | Stimulus | Decision | Granting | ByHand
AnyMutation = Known | Unknown

_encode = msgspec.msgpack.Encoder().encode
_decode_all = msgspec.msgpack.Decoder(list[Known]).decode
_decode_one = msgspec.msgpack.Decoder(Known).decode
_decode_raw = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_fields = msgspec.structs.astuple


class _Writers(dict[type, Callable[[Any], bytes]]):
    """The encoders of mutations by kind, each made on first use."""

    def __missing__(self, kind: type) -> Callable[[Any], bytes]:
        """The writer of a kind that was not asked for yet."""
        made = self[kind] = attrgetter("raw") if kind is Unknown else _writer(kind)
        return made


def _writer(kind: Any) -> Callable[[Any], bytes]:
    """Writes a kind's number and fields, trailing defaults left out."""
    defaults = _defaults(kind)
    number, needed = kind.NUMBER, len(names_of(kind)) - len(defaults)
    if not defaults:
        return _encode

    def write(mutation: Any) -> bytes:
        fields = _fields(mutation)
        if fields[needed:] == defaults:
            return _encode((number, *fields[:needed]))
        end = -1
        while fields[end] == defaults[end]:
            end -= 1
        return _encode(mutation if end == -1 else (number, *fields[: end + 1]))

    return write


writers = _Writers()


def wire(mutation: AnyMutation) -> bytes:
    """A mutation on the wire: number and fields, trailing defaults left out."""
    return writers[type(mutation)](mutation)


def names_of(kind: Any) -> tuple[str, ...]:
    """The fields of a kind, in the order they have on the wire."""
    return tuple(kind.__struct_fields__)  # `msgspec.structs.fields` resolves their types, which takes long at the start


def _defaults(kind: Any) -> tuple[Any, ...]:
    """The defaults of its last fields."""
    return tuple(kind.__struct_defaults__)


def body(wires: Sequence[bytes]) -> bytes:
    """The body of a commit: a msgpack array of mutations as they are on the wire, in order."""
    count = len(wires)
    if count < 16:
        return bytes((0x90 | count,)) + b"".join(wires)
    length = b"\xdc" + count.to_bytes(2, "big") if count < 1 << 16 else b"\xdd" + count.to_bytes(4, "big")
    return length + b"".join(wires)


def encode(mutations: Sequence[AnyMutation]) -> bytes:
    """The body of a commit that holds mutations in order."""
    return body([wire(mutation) for mutation in mutations])


class BodyError(CorruptError, ValueError):
    """Bytes that are no body of a commit."""


def decode(body: bytes) -> list[AnyMutation]:
    """The mutations of a commit's body; kinds of a later version come back as Unknown.

    Raises BodyError for bytes that are no body.
    """
    try:
        found: list[AnyMutation] = _decode_all(body)  # type: ignore[assignment]
        return found
    except (msgspec.DecodeError, ValueError, RecursionError):
        return _decode_leniently(body)


def _decode_leniently(body: bytes) -> list[AnyMutation]:
    try:
        return [_decode_any(bytes(raw)) for raw in _decode_raw(body)]
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BodyError(
            f"a commit holds no list of mutations ({error}); run `vmstore verify`", code="commit-damaged"
        ) from error


def _decode_any(raw: bytes) -> AnyMutation:
    fields = msgspec.msgpack.decode(raw)
    if not isinstance(fields, list) or not fields or not isinstance(fields[0], int):
        raise ValueError("a mutation is a list that begins with the number of its kind")
    if fields[0] not in _NUMBERS:
        return Unknown(fields[0], raw)
    known: Known = _decode_one(raw)
    return known


_NUMBERS = {kind.NUMBER for kind in get_args(Known)}
assert len(_NUMBERS) == len(get_args(Known)), "a number on the wire is of one kind"
assert MUTATION_NAMES.keys() == _NUMBERS | PLANNED, "every kind has a name, and a name a kind or a plan"
assert all(kind.__struct_config__.tag == kind.NUMBER for kind in get_args(Known)), (
    "the number that `wire` writes is the tag that `decode` looks for"
)

CELL_FIELDS: dict[type, tuple[str, ...]] = {
    Open: ("name", "meta", "source", "key"),
    Mark: ("name", "note"),
    Alias: ("alias", "canonical"),
    Close: ("reason",),
    Create: ("content", "labels"),
    Update: ("content",),
    Annotate: ("tags", "untags", "anchors"),
    Approve: ("who",),
    Compress: ("content",),
    Depth: ("tag",),
    Embed: ("model", "vectors"),
    Fact: ("subject", "verb", "what", "attribute", "method"),
    Message: ("envelope", "aside"),
    Reply: ("aside",),
    Pack: ("rest",),
    Segment: ("title",),
    Settings: ("told",),
    Reference: ("evidence",),
    Cite: ("evidence",),
    Search: ("query",),
    Tag: ("tag",),
    ToolRun: ("error", "tags"),
    GuardTrip: ("tool",),
    Promote: ("skill",),
    Share: ("principal", "by"),
    Revoke: ("by",),
    NamespacePolicy: ("name", "value"),
}


assert CELL_FIELDS.keys() <= {*get_args(Known)}, "cells are named by kinds that are written"
assert all({*names} <= {*names_of(kind)} for kind, names in CELL_FIELDS.items()), "by fields that they have"

LATER_FIELDS: dict[type, dict[str, Any]] = {
    Approve: {"session": None},
    Configure: {"beside": 0},
    Mark: {"back_to": 0},
    Pack: {"sent": None, "sent_tokens": 0, "voided": None},
    Reply: {"tokens_written": None},
    Search: {"recaller": 0, "tokens": 0, "contests": (), "scores": ()},
    Turn: {"alike": ()},
}
"""Fields that a kind got after it was first written, and their defaults."""

assert all(names_of(kind)[-len(later) :] == tuple(later) for kind, later in LATER_FIELDS.items()), (
    "a field that came later is the last: one in between would change what is read from every older log"
)
assert all(_defaults(kind)[-len(later) :] == tuple(later.values()) for kind, later in LATER_FIELDS.items()), (
    "what an older log leaves out is read as the default that `readable` leaves out"
)


def readable(mutation: AnyMutation) -> dict[str, Any]:
    """A mutation as plain values: its kind and fields; those that came later are left out at their defaults."""
    if isinstance(mutation, Unknown):
        return {"kind": mutation.kind}
    fields = {"kind": mutation.kind, **msgspec.structs.asdict(mutation)}
    for name, default in LATER_FIELDS.get(type(mutation), {}).items():
        if fields[name] == default:
            del fields[name]
    return fields


def cell_refs(mutation: AnyMutation) -> list[CellRef]:
    """Every cell a mutation names, own and earlier."""
    kind = type(mutation)
    refs = [ref for field in CELL_FIELDS.get(kind, ()) if (ref := getattr(mutation, field)) is not None]
    if kind is Pack:
        refs += [ref for _, ref in mutation.envelopes]  # type: ignore[union-attr]
    return refs


def sealed_again(mutation: Known, seal: Callable[[CellRef], CellRef]) -> Known:
    """The same mutation with every cell it names replaced by what `seal` gives for it."""
    fields = {name: getattr(mutation, name) for name in CELL_FIELDS.get(type(mutation), ())}
    sealed: dict[str, Any] = {name: seal(ref) for name, ref in fields.items() if ref is not None}
    if isinstance(mutation, Pack):
        sealed["envelopes"] = tuple((message, seal(ref)) for message, ref in mutation.envelopes)
    return msgspec.structs.replace(mutation, **sealed) if sealed else mutation
