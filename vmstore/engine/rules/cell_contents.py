"""The form of the cells that each kind of mutation names: one table for the gate, for verify and for tests.

A fold and an answer read names, labels and skeletons, and what is no JSON would stop them. So the
gate looks at what a cell holds wherever a mutation names it, an earlier cell like one of the
commit. What the store itself writes is not looked at again: `verify` does, and the fuzzer has it do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from vmstore.core.mutation import (
    CELL_FIELDS,
    Alias,
    Annotate,
    AnyMutation,
    Approve,
    Cite,
    Close,
    Compress,
    Create,
    Depth,
    Embed,
    Fact,
    GuardTrip,
    Mark,
    Message,
    NamespacePolicy,
    Open,
    Pack,
    Promote,
    Reference,
    Reply,
    Revoke,
    Search,
    Segment,
    Settings,
    Share,
    Tag,
    ToolRun,
    Update,
)
from vmstore.core.text.holes import BASE64, HOLES, JSON, KEYED, TEXT, URLSAFE, Hole, marks, ordered
from vmstore.core.text.json_text import is_text, strict
from vmstore.core.vectors import Quantisation, unlike_vectors
from vmstore.engine.head import GateHead


class CellForm(NamedTuple):
    """A form of cells: its name, a check that explains why bytes do not fit, and the size limit by hand."""

    words: str
    wrong: Callable[[bytes], str | None]
    bytes_max: int | None = None  # of what every fold reads, and one cell can be named again and again


def _anything(content: bytes) -> None:
    return None


def _text(content: bytes) -> str | None:
    return None if is_text(content) else "it is not UTF-8"


def _typed(*types: type) -> Callable[[bytes], str | None]:
    """JSON of some types."""

    return lambda content: _read(content, *types)[1]


_NAMES = {dict: "object", list: "list", str: "text", int: "number", float: "number", bool: "truth value"}
_NAMES[type(None)] = "null"
_NAMED = ("hint", "mime", "asks", "answers", "actor", "where", "reason")  # texts that labels may hold


def _labels(content: bytes) -> str | None:
    labels, wrong = _read(content, dict)
    for name in _NAMED if wrong is None else ():
        if not isinstance(labels.get(name, ""), str):
            return f"its {name} is a JSON {_NAMES[type(labels[name])]}"
    return wrong or (_list_of(labels["tags"], str, "tags") if labels.get("tags") is not None else None)


def _texts(content: bytes) -> str | None:
    texts, wrong = _read(content, list)
    return wrong or _list_of(texts, str, "list")


def _skeleton(content: bytes) -> str | None:
    value, wrong = _read(content)
    if wrong is None:
        for kind, place in marks(value):
            part, keys = (place[0], place[1:]) if kind == KEYED and isinstance(place, list) and place else (place, [[]])
            if type(part) is not int or part < 0:
                return f"a hole stands for part {part!r:.20}"
            if len(keys) != 1 or not ordered(keys[0]):
                return f"the hole of part {part} lists no keys"
    return wrong


def _read(content: bytes, *types: type) -> tuple[Any, str | None]:
    """JSON of some types, or why it is none."""
    try:
        value = strict(content)
    except ValueError as error:
        return None, str(error)
    return value, None if not types or isinstance(value, types) else f"it is a JSON {_NAMES[type(value)]}"


def _list_of(value: Any, kind: type, name: str) -> str | None:
    fits = isinstance(value, list) and all(isinstance(item, kind) for item in value)
    return None if fits else f"its {name} holds what is no text"


OPAQUE = CellForm("any bytes", _anything)
PLAIN = CellForm("text in UTF-8", _text)
NAME = CellForm("text in UTF-8, by hand of 4 KiB at most", _text, 4 << 10)
OBJECT = CellForm("a JSON object", _typed(dict))
VALUE = CellForm("a JSON value", _typed())
LABELS = CellForm(
    "a JSON object whose names are texts, with `tags` a list of texts, by hand of 64 KiB at most", _labels, 64 << 10
)
TEXTS = CellForm("a JSON list of texts, by hand of 64 KiB at most", _texts, 64 << 10)
ANCHORS = CellForm("a JSON object, by hand of 64 KiB at most", _typed(dict), 64 << 10)
SKELETON = CellForm("JSON whose holes stand for parts", _skeleton)
NOTE = CellForm("a JSON value; of a source record any bytes", _typed())

FORMS: dict[type, dict[str, CellForm]] = {
    Open: {"name": NAME, "meta": OBJECT, "source": PLAIN, "key": OPAQUE},
    Mark: {"name": NAME, "note": NOTE},
    Close: {"reason": NAME},
    Create: {"content": OPAQUE, "labels": LABELS},
    Update: {"content": OPAQUE},
    Annotate: {"tags": TEXTS, "untags": TEXTS, "anchors": ANCHORS},
    Approve: {"who": NAME},
    Compress: {"content": OPAQUE},
    Embed: {"model": NAME, "vectors": OPAQUE},
    Fact: dict.fromkeys(("subject", "verb", "what", "attribute", "method"), NAME),
    Message: {"envelope": SKELETON, "aside": VALUE},
    Reply: {"aside": OBJECT},
    Pack: {"rest": OBJECT, "envelopes": SKELETON},
    Segment: {"title": PLAIN},
    Settings: {"told": OBJECT},
    Reference: {"evidence": PLAIN},
    Cite: {"evidence": PLAIN},
    Search: {"query": PLAIN},
    Share: {"principal": PLAIN, "by": PLAIN},
    Revoke: {"by": PLAIN},
    NamespacePolicy: {"name": NAME, "value": VALUE},
    Tag: {"tag": NAME},
    Alias: {"alias": NAME, "canonical": NAME},
    Depth: {"tag": NAME},
    ToolRun: {"error": NAME, "tags": TEXTS},
    GuardTrip: {"tool": NAME},
    Promote: {"skill": NAME},
}
"""What each cell of each kind holds; `envelopes` is the one field that names several."""

assert FORMS.keys() == CELL_FIELDS.keys(), "the gate looks at the cells of every kind that names any"
assert all({*CELL_FIELDS[kind]} == FORMS[kind].keys() - {"envelopes"} for kind in FORMS), "and at every one of them"


READ: dict[type, tuple[tuple[str, CellForm], ...]] = {
    kind: tuple((field, form) for field, form in fields.items() if form is not OPAQUE) for kind, fields in FORMS.items()
}
"""The fields whose cells must be something."""


def refs_in(m: Any, field: str) -> Sequence[Any]:
    """The cells that a field names; none of a source record's, which is what it is."""
    if field == "envelopes":
        return [ref for _, ref in m.envelopes]
    return () if field == "note" and m.reason != Mark.NAMED else (getattr(m, field),)


def named(m: AnyMutation) -> Iterator[tuple[str, Any, CellForm]]:
    """The cells a mutation names whose bytes must be something, each with its field."""
    for field, form in READ.get(type(m), ()):
        if getattr(m, field) is not None:
            yield from ((field, ref, form) for ref in refs_in(m, field))
    if isinstance(m, Embed) and m.vectors is not None:
        yield "vectors", m.vectors, vectors_form(m)


def vectors_form(m: Embed) -> CellForm:
    """The form that the vectors of an embedding must have."""
    count, kind = len(m.chunks), Quantisation(m.quantisation)
    return CellForm(
        f"{count} vectors of {m.dimension} numbers in {kind.word}",
        lambda content: unlike_vectors(content, kind, m.dimension, count),
    )


class PackedPage(NamedTuple):
    """A page of a message as a pack shows it: which part, the position of its content, at which level."""

    part: int
    content: int
    level: int


class PackedMessage(NamedTuple):
    """A message that a pack changes: the holes of its skeleton, None where it was erased, and its pages in order."""

    message: int
    holes: Sequence[Hole] | None
    pages: Sequence[PackedPage]


class Contents(Protocol):
    """Access to contents for the rules, in the gate or in `verify`."""

    def wrong(self, ref: Any, form: CellForm) -> str | None:
        """Explains why the cell that a mutation names is not of a form; None where it is, or was erased."""
        ...

    def unfit(self, position: int, form: CellForm) -> str | None:
        """The same of the content made at a position."""
        ...

    def touched(self, head: GateHead, m: Pack) -> Iterable[PackedMessage]:
        """The messages of which a pack changes a page or the skeleton."""
        ...


class PageFacts(NamedTuple):
    """The facts of a page that rules check."""

    message: int
    part: int
    modality: int
    type: int


class LiveContents(Contents, Protocol):
    """Access to more of a session, for rules about batches written by hand."""

    def live(self) -> bool:
        """Whether a kernel is at work in the session."""
        ...

    def content(self, ref: Any) -> bytes | None:
        """The bytes of a cell, None where they were erased."""
        ...

    def settle(self) -> None:
        """Has what was looked at known to later batches: this one is durable."""
        ...

    def note(self, ref: Any, content: bytes) -> None:
        """Remembers what a cell holds that lies before the batch."""
        ...

    def page(self, page: int) -> PageFacts:
        """The type, modality and sizes of a page."""
        ...

    def holes(self, message: int) -> Sequence[Hole] | None:
        """The holes of a message's skeleton as it stands; None where it was erased."""
        ...

    def holes_in(self, ref: Any) -> Sequence[Hole] | None:
        """Those of the skeleton in a cell."""
        ...


FILLS: Mapping[str, CellForm] = {TEXT: PLAIN, JSON: VALUE, BASE64: OPAQUE, URLSAFE: OPAQUE}
"""What the content of a page must be that fills a kind of hole."""

assert FILLS.keys() | {KEYED} == {*HOLES}, "`holes` tells every kind but this one, which it tells as JSON"


def unfilled(shown: PackedMessage, contents: Contents, *, partial: bool) -> str | None:
    """Names the hole of a message that none of its shown pages fills; None where the message can be rebuilt whole."""
    pages = {page.part: page for page in shown.pages} if partial else dict(enumerate(shown.pages))
    for kind, part in shown.holes or ():
        page = pages.get(part)
        if page is None:
            if partial:
                continue
            return f"m{shown.message} has a hole for part {part}, and no page fills it"
        form = FILLS[TEXT if partial and page.level else kind]
        wrong = None if form is OPAQUE else contents.unfit(page.content, form)
        if wrong is not None:
            return f"part {part} of m{shown.message} must be {form.words}: {wrong}"
    return None
