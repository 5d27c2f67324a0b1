"""Objects that a session was folded into, as bytes, and back: of a closed list of classes, and nothing else.

What most of them is comes in long lists of one struct; those are written and read by their types. Numbers
beyond 64 bits are written in hex, and a class that is not listed cannot be written at all.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable
from enum import IntEnum
from typing import Any, get_type_hints

import msgspec

from vmstore.core.decision import Denial, FaultReason, Load
from vmstore.core.mutation import Reference
from vmstore.core.recalls import RecallTally, TalliedRecall
from vmstore.live.recall.index import RecallIndex
from vmstore.live.transcript import PageLabels, Transcript, TranscriptMessage
from vmstore.vm.claims import claims
from vmstore.vm.kernel.managed_page import ManagedPage
from vmstore.vm.kernel.page_bars import BarredPages
from vmstore.vm.kernel.settings import KernelSettings
from vmstore.vm.kernel.state import Exchange, State
from vmstore.vm.metrics import metrics
from vmstore.vm.metrics.metrics import CommitTimes, Overhead
from vmstore.vm.policies.ordered_queues import ChunkedList
from vmstore.vm.policies.registry import SHIPPED
from vmstore.vm.policies.s3fifo import Queues
from vmstore.vm.recall.postings import Postings

STRUCTS = (
    ManagedPage,
    Exchange,
    BarredPages,
    KernelSettings,
    TranscriptMessage,
    PageLabels,
    Reference,
    TalliedRecall,
)
TUPLES = (claims.KnownClaim, metrics.PromptEntry)
WORDS = (Load, FaultReason, Denial)
OBJECTS: tuple[type, ...] = (
    State,
    Transcript,
    RecallIndex,
    Postings,
    Overhead,
    CommitTimes,
    ChunkedList,
    Queues,
    *SHIPPED,
)
OBJECTS += (metrics.Metrics, metrics.Prefix, metrics.Thrash, RecallTally)
LEFT_OUT = {State: {"_read", "here"}, Transcript: {"_read"}, metrics.Metrics: {"_about"}}
"""How contents are read, and pages that are there already."""
_LOW, _HIGH = -(1 << 63), 1 << 63


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


_BY_NAME: dict[str, Any] = {_name(kind): kind for kind in (*STRUCTS, *TUPLES, *WORDS, *OBJECTS)}
_ENCODER = msgspec.msgpack.Encoder()
_SEVERAL = {kind: msgspec.msgpack.Decoder(list[kind]) for kind in STRUCTS}  # type: ignore[valid-type]
_ONE = {kind: msgspec.msgpack.Decoder(kind) for kind in STRUCTS}
_ROWS = msgspec.msgpack.Decoder(list[tuple[int, ...]])


def image(value: Any) -> Any:
    """A value as MessagePack can hold it; TypeError where it is, or holds, something of another class."""
    kind = type(value)
    if value is None or kind in (bool, float, str, bytes):
        return value
    if kind is int:
        return value if _LOW <= value < _HIGH else ["i", hex(value)]
    if kind in (list, tuple, deque):
        return [kind.__name__, [image(item) for item in value]]
    if kind is dict:
        return _mapping(value)
    if kind is array:
        return ["array", value.typecode, value.tobytes()]
    if kind in STRUCTS:
        return ["struct", _name(kind), _ENCODER.encode(value)]
    if kind in TUPLES:
        return ["named", _name(kind), [image(item) for item in value]]
    if kind in WORDS:
        return ["word", _name(kind), int(value)]
    if kind in OBJECTS:
        left_out = LEFT_OUT.get(kind, ())
        return [
            "object",
            _name(kind),
            {name: image(item) for name, item in vars(value).items() if name not in left_out},
        ]
    raise TypeError(f"a {kind.__name__} is of no class that can be kept")


def _mapping(value: dict[Any, Any]) -> list[Any]:
    """A mapping: its keys beside its values, these at once where all of them are of one struct or all are numbers."""
    keys, values = [image(key) for key in value], [*value.values()]
    kinds = set(map(type, values))
    if kinds == {type(None)}:
        return ["keys", keys]
    if len(kinds) == 1 and (kind := next(iter(kinds))) in STRUCTS:
        return ["structs", _name(kind), keys, _ENCODER.encode(values)]
    if kinds == {range}:
        return ["ranges", keys, [[item.start, item.stop] for item in values]]
    if kinds == {tuple}:
        try:
            return ["rows", keys, _ROWS.decode(written := _ENCODER.encode(values)) and written]
        except (OverflowError, TypeError, msgspec.MsgspecError):
            return ["tuples", keys, [_row(row) for row in values]]
    return ["dict", keys, [image(item) for item in values]]


def _row(row: Iterable[Any]) -> list[Any]:
    return [item if type(item) is int and _LOW <= item < _HIGH else image(item) for item in row]


def restored(value: Any) -> Any:
    """The value of an image; raises what its parts raise where it is none."""
    if type(value) is not list:
        return value
    match value:
        case ["i", digits]:
            return int(digits, 16)
        case ["list", items]:
            return [restored(one) for one in items]
        case ["tuple", items]:
            return tuple([restored(one) for one in items])
        case ["deque", items]:
            return deque(restored(one) for one in items)
        case ["array", typecode, written]:
            return array(typecode, written)
        case ["ranges", keys, ends]:
            return dict(zip(map(restored, keys), [range(*one) for one in ends], strict=True))
        case ["keys", keys]:
            return dict.fromkeys(map(restored, keys))
        case ["structs", name, keys, written]:
            return dict(zip(map(restored, keys), _SEVERAL[_BY_NAME[name]].decode(written), strict=True))
        case ["rows", keys, written]:
            return dict(zip(map(restored, keys), _ROWS.decode(written), strict=True))
        case ["tuples", keys, rows]:
            return dict(zip(map(restored, keys), [tuple(map(restored, row)) for row in rows], strict=True))
        case ["dict", keys, values]:
            return dict(zip(map(restored, keys), map(restored, values), strict=True))
        case ["struct", name, written]:
            return _ONE[_BY_NAME[name]].decode(written)
        case ["named", name, items]:
            return _tuple(_BY_NAME[name], [restored(one) for one in items])
        case ["word", name, number]:
            return _word(_BY_NAME[name], number)
        case ["object", name, attributes]:
            return _object(_BY_NAME[name], {key: restored(one) for key, one in attributes.items()})
    raise ValueError("no image of anything")


def _tuple(kind: Any, items: list[Any]) -> Any:
    if kind not in TUPLES or len(items) != len(get_type_hints(kind)):
        raise ValueError("no image of anything")
    return kind(*items)


def _word(kind: Any, number: int) -> IntEnum:
    if kind not in WORDS:
        raise ValueError("no image of anything")
    word: IntEnum = kind(number)
    return word


def _object(kind: Any, attributes: dict[str, Any]) -> Any:
    if kind not in OBJECTS:
        raise ValueError("no image of anything")
    made = kind.__new__(kind)
    vars(made).update(attributes)
    return made
