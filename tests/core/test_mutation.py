"""Mutations go to bytes and back, also those of a version yet to come."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.core.decision import PromptContest, Why
from vmstore.core.mutation import (
    MUTATION_NAMES,
    Alias,
    Annotate,
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
    Mutation,
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
    Settings,
    Share,
    Tag,
    ToolRun,
    Turn,
    Unknown,
    Unlink,
    Unpin,
    Update,
    cell_refs,
    decode,
    encode,
    readable,
)

KINDS = get_args(Known)
COUNT = st.integers(0, 2**63 - 1)
POSITION = st.integers(1, 2**53)
SMALL = st.integers(0, 99)
REF = st.one_of(st.integers(0, 2**31), st.tuples(POSITION, SMALL))
UID = st.binary(min_size=16, max_size=16)
MOMENT = st.none() | st.integers(-(2**63), 2**63 - 1)
SCORE = st.integers(1 - 2**63, 2**63 - 1)
LOSERS = st.lists(st.tuples(SCORE, POSITION), max_size=3).map(tuple)
PAGES = st.lists(POSITION, max_size=3).map(tuple)
PROMPT_CONTEST = st.builds(PromptContest, SMALL, COUNT, COUNT, COUNT, COUNT, SCORE, LOSERS)
WHY = st.builds(Why, SMALL, COUNT, COUNT, COUNT, COUNT, COUNT, SCORE, LOSERS)

FIELDS: dict[type[Mutation], dict[str, st.SearchStrategy[Any]]] = {
    Open: {
        "uid": UID, "name": REF, "origin": SMALL, "parent": st.none() | UID, "parent_position": COUNT,
        "meta": st.none() | REF, "source": st.none() | REF, "key": st.none() | REF, "hidden": st.integers(0, 2),
        "spawned_by": st.none() | POSITION,
    },
    Turn: {"number": COUNT, "alike": st.lists(st.tuples(POSITION, COUNT), max_size=3).map(tuple)},
    Configure: {"estimator": SMALL, "factor_ppm": COUNT, "beside": COUNT},
    Mark: {
        "reason": SMALL, "records": COUNT, "digest": st.none() | UID, "name": st.none() | REF,
        "note": st.none() | REF, "back_to": COUNT,
    },
    Close: {"status": SMALL, "reason": st.none() | REF},
    Unlink: {"source": POSITION, "target": POSITION, "link": SMALL},
    Delete: {"page": POSITION},
    Flush: {"page": POSITION},
    Create: {
        "type": SMALL, "modality": SMALL, "role": SMALL, "message": COUNT, "part": SMALL,
        "content": st.none() | REF, "size": COUNT, "tokens": COUNT, "mime": SMALL,
        "links": st.lists(st.tuples(SMALL, POSITION), max_size=3).map(tuple), "labels": st.none() | REF,
        "importance": COUNT,
    },
    Update: {"page": POSITION, "version": SMALL, "content": REF, "size": COUNT, "tokens": COUNT},
    Annotate: {
        "page": POSITION, "importance": st.none() | COUNT, "status": st.none() | SMALL, "valid_from": MOMENT,
        "valid_to": MOMENT, "tags": st.none() | REF, "untags": st.none() | REF, "anchors": st.none() | REF,
    },
    Link: {"source": POSITION, "target": POSITION, "link": SMALL, "valid_from": MOMENT, "valid_to": MOMENT},
    Approve: {
        "granted": SMALL, "artifact": SMALL, "until": MOMENT, "who": st.none() | REF, "page": COUNT,
        "session": st.none() | UID,
    },
    Redact: {
        "page": COUNT, "type": SMALL, "reason": SMALL, "count": COUNT, "by": SMALL,
        "found": st.lists(st.tuples(SMALL, COUNT, COUNT), max_size=3).map(tuple), "tokens_before": COUNT,
        "tokens_after": COUNT, "recoverable": SMALL, "policy": st.none() | SMALL,
    },
    Compress: {
        "page": POSITION, "version": SMALL, "level": SMALL, "method": SMALL, "lossy": SMALL, "content": REF,
        "size": COUNT, "tokens": COUNT,
    },
    Message: {
        "role": SMALL, "slot": SMALL, "envelope": REF, "human": SMALL, "aside": st.none() | REF,
        "reply_to": st.none() | POSITION,
    },
    Reply: {
        "call": POSITION, "status": SMALL, "final": SMALL, "tokens_in": st.none() | COUNT,
        "tokens_cached": st.none() | COUNT, "tokens_out": st.none() | COUNT, "cost": st.none() | COUNT,
        "latency": st.none() | COUNT, "aside": st.none() | REF, "tokens_written": st.none() | COUNT,
    },
    Pack: {
        "call": POSITION, "fidelity": SMALL, "leaves": COUNT, "tokens": COUNT, "root": UID,
        "entered": st.lists(st.tuples(POSITION, POSITION, SMALL, COUNT), max_size=3).map(tuple),
        "left": st.lists(POSITION, max_size=3).map(tuple), "rest": st.none() | REF,
        "envelopes": st.lists(st.tuples(POSITION, REF), max_size=3).map(tuple), "shape": st.none() | SMALL,
        "renderer": SMALL, "sent": st.none() | UID, "sent_tokens": COUNT, "voided": st.none() | COUNT,
    },
    Embed: {
        "page": POSITION, "content": POSITION, "model": REF, "dimension": SMALL, "quantisation": SMALL,
        "chunks": st.lists(st.tuples(COUNT, COUNT), max_size=3).map(tuple), "vectors": st.none() | REF,
    },
    Fact: {
        "page": POSITION, "subject": REF, "verb": REF, "what": REF, "attribute": st.none() | REF, "type": SMALL,
        "status": SMALL, "one": SMALL, "valid_from": MOMENT, "valid_to": MOMENT, "precision": SMALL,
        "confidence": COUNT, "strength": COUNT, "method": REF,
    },
    Erase: {"reason": SMALL, "cells": st.lists(st.tuples(POSITION, SMALL), max_size=3).map(tuple), "upto": COUNT},
    Segment: {"number": COUNT, "summary": st.none() | POSITION, "title": st.none() | REF},
    Settings: {"told": REF},
    FaultIn: {
        "page": POSITION, "content": POSITION, "level": SMALL, "tokens": COUNT, "reference": POSITION, "why": WHY,
        "tier": SMALL,
    },
    FaultDenied: {"page": COUNT, "reference": POSITION, "because": SMALL, "why": WHY},
    Prefetch: {
        "page": POSITION, "content": POSITION, "level": SMALL, "tokens": COUNT, "reference": POSITION, "why": WHY,
    },
    Evict: {
        "page": POSITION, "cause": SMALL, "tokens": COUNT, "score": SCORE, "level": st.none() | SMALL,
        "content": st.none() | POSITION, "why": st.none() | WHY, "first": COUNT,
    },
    Pin: {"page": POSITION, "holder": SMALL},
    Unpin: {"page": POSITION, "holder": SMALL, "why": st.none() | WHY},
    Reference: {
        "page": COUNT, "use": SMALL, "call": COUNT, "level": SMALL, "reason": SMALL, "signal": SMALL,
        "evidence": st.none() | REF,
    },
    Cite: {"page": POSITION, "by": POSITION, "evidence": st.none() | REF},
    Search: {
        "query": REF,
        "found": st.lists(POSITION, max_size=3).map(tuple),
        "total": COUNT,
        "recaller": SMALL,
        "tokens": COUNT,
        "contests": st.lists(PROMPT_CONTEST, max_size=2).map(tuple),
        "scores": st.lists(SCORE, max_size=3).map(tuple),
    },
    Recall: {"page": POSITION, "corrected": SMALL},
    Pressure: {"level": SMALL, "used": COUNT, "budget": COUNT},
    Share: {"scope": SMALL, "principal": st.none() | REF, "verbs": SMALL, "by": st.none() | REF},
    Revoke: {"share": POSITION, "verbs": SMALL, "by": st.none() | REF},
    NamespacePolicy: {"subject": SMALL, "name": REF, "value": st.none() | REF},
    Tag: {"page": POSITION, "tag": REF, "method": SMALL, "held": SMALL},
    Alias: {"alias": REF, "canonical": st.none() | REF},
    Depth: {"tag": REF, "depth": SMALL},
    ToolRun: {
        "call": POSITION, "outcome": SMALL, "result": COUNT, "duration": st.none() | COUNT, "error": st.none() | REF,
        "reasoning": COUNT, "read": PAGES, "created": PAGES, "modified": PAGES, "tags": st.none() | REF,
    },
    GuardTrip: {"type": SMALL, "tool": REF, "count": COUNT, "calls": PAGES, "warning": COUNT},
    Promote: {"page": POSITION, "skill": REF, "count": COUNT, "tries": COUNT, "calls": PAGES},
}  # fmt: skip
CELLS = {"name", "meta", "source", "key", "note", "content", "labels", "envelope", "aside", "rest"}
CELLS |= {
    "tag",
    "alias",
    "canonical",
    "tags",
    "untags",
    "anchors",
    "title",
    "told",
    "evidence",
    "query",
    "principal",
    "by",
    "who",
    "value",
    "model",
    "vectors",
    "subject",
    "verb",
    "what",
    "attribute",
    "method",
    "error",
    "tool",
    "skill",
}
POSITIONS = {
    (Tag, "method"),
    (Compress, "method"),
    (Link, "source"),
    (NamespacePolicy, "subject"),
    (Unlink, "source"),
    (Cite, "by"),
    (Redact, "by"),
    *((kind, "content") for kind in (Embed, FaultIn, Prefetch, Evict)),
}  # of pages and of what is shown
ANY = st.one_of([st.builds(kind, **fields) for kind, fields in FIELDS.items()])
LATER_NUMBERS = st.integers(0, 2**32).filter(lambda n: n not in {kind.NUMBER for kind in KINDS})
FIELD = st.none() | st.booleans() | st.integers(-9, 2**63) | st.binary(max_size=9) | st.text(max_size=9)
LATER = st.tuples(LATER_NUMBERS, st.lists(FIELD | st.lists(FIELD), max_size=4)).map(lambda t: [t[0], *t[1]])


def wire(mutation: Mutation) -> list[Any]:
    """The array a mutation stands as in a body."""
    return msgspec.msgpack.decode(encode([mutation]))[0]  # type: ignore[arg-type, no-any-return]


def test_every_kind_is_drawn() -> None:
    """The examples of this file cover every kind with a struct, and every field of each."""
    assert set(FIELDS) == set(KINDS)
    for kind, fields in FIELDS.items():
        assert set(fields) == set(kind.__struct_fields__), kind


@given(mutations=st.lists(ANY, max_size=6))
def test_what_is_encoded_is_decoded(mutations: list[Any]) -> None:
    """A body of any known kinds comes back equal."""
    assert decode(encode(mutations)) == mutations


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_each_kind_goes_there_and_back(kind: type[Mutation], data: st.DataObject) -> None:
    """Each kind comes back as itself, field by field, alone in a body."""
    mutation = data.draw(st.builds(kind, **FIELDS[kind]))
    assert decode(encode([mutation])) == [mutation]  # type: ignore[list-item]
    assert wire(mutation)[0] == kind.NUMBER


@given(mutation=ANY)
def test_trailing_defaults_are_not_written(mutation: Any) -> None:
    """The last value on the wire is one that the reader could not have known."""
    row = wire(mutation)
    fields = msgspec.structs.fields(type(mutation))
    if len(row) > 1 and (default := fields[len(row) - 2].default) is not msgspec.NODEFAULT:
        assert row[-1] != (list(default) if isinstance(default, tuple) else default)
    for field in fields[len(row) - 1 :]:
        assert getattr(mutation, field.name) == field.default


@pytest.mark.parametrize(
    ("mutation", "row"),
    [
        (Turn(3), [2, 3]),
        (Turn(3, ((7, 9),)), [2, 3, [[7, 9]]]),
        (Link(1, 2, 0), [13, 1, 2, 0]),
        (Link(1, 2, 0, None, 7), [13, 1, 2, 0, None, 7]),
        (Close(2), [6, 2]),
        (Close(3, 0), [6, 3, 0]),
        (Unlink(1, 2, 0), [14, 1, 2, 0]),
        (Delete(7), [15, 7]),
        (Flush(7), [29, 7]),
        (Message(0, 2, 0), [30, 0, 2, 0]),
        (Message(0, 2, (5, 1), 0, None, 1), [30, 0, 2, [5, 1], 0, None, 1]),
        (Reply(1, 1), [33, 1, 1]),
        (Pack(1, 0, 0, 0, b"r"), [40, 1, 0, 0, 0, b"r"]),
        (Evict(4, 5, 9), [25, 4, 5, 9]),
        (Evict(4, 5, 9, 0, None, None, None, 7), [25, 4, 5, 9, 0, None, None, None, 7]),
        (
            FaultIn(4, 4, 0, 9, 3, Why(1, 8, 8, 1, 4, 2, 6, ((7, 5),))),
            [20, 4, 4, 0, 9, 3, [1, 8, 8, 1, 4, 2, 6, [[7, 5]]]],
        ),
    ],
)
def test_the_wire_is_a_short_array(mutation: Mutation, row: list[Any]) -> None:
    """A mutation is its number and its fields in order, defaults at the end left out."""
    assert wire(mutation) == row


# ---- kinds of a later version


@given(rows=st.lists(LATER, min_size=1, max_size=4))
def test_unknown_kinds_are_kept_to_the_byte(rows: list[list[Any]]) -> None:
    """Kinds this version does not know come back raw, and encode to the same bytes."""
    body = msgspec.msgpack.encode(rows)
    text = decode(body)
    assert [type(m) for m in text] == [Unknown] * len(rows)
    assert [m.number for m in text if isinstance(m, Unknown)] == [row[0] for row in rows]
    assert encode(text) == body


@given(before=st.lists(ANY, max_size=2), row=LATER, after=st.lists(ANY, min_size=1, max_size=2))
def test_a_later_kind_hides_no_other(before: list[Any], row: list[Any], after: list[Any]) -> None:
    """In the middle of a body a later kind stays where it is and its neighbours are read."""
    later = Unknown(row[0], msgspec.msgpack.encode(row))
    body = encode([*before, later, *after])
    assert decode(body) == [*before, later, *after]
    assert encode(decode(body)) == body


def test_an_unknown_kind_says_what_it_may_be() -> None:
    """A reserved number has its name, another says its number."""
    assert Unknown(22, b"").kind == "defer"
    assert Unknown(99, b"").kind == "kind 99"


# ---- names


def test_every_name_is_reserved() -> None:
    """All kinds of the alphabet have their number, each name and number once."""
    names = [
        *("open", "turn", "segment", "configure", "mark", "close", "settings"),
        *("create", "update", "annotate", "link", "unlink", "delete", "erase", "redact"),
        *("fault_in", "fault_denied", "defer", "cancel", "prefetch", "evict", "compress", "pin", "unpin", "flush"),
        *("message", "reference", "cite", "reply", "approve", "embed", "pack"),
        *("tool_call", "guard", "promote", "tag", "alias", "fact", "depth"),
        *("search", "recall", "pressure", "share", "revoke", "namespace_policy"),
        *("conflict", "resolve", "merge", "undo", "redo"),
    ]
    assert sorted(MUTATION_NAMES.values()) == sorted(names)


NAMED_BY_WHAT_THEY_ARE = {ToolRun: "toolcall", GuardTrip: "guard"}  # other classes have these names already


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_struct_has_the_number_of_its_name(kind: type[Mutation]) -> None:
    """A struct's number on the wire, its NUMBER and its reserved name agree."""
    name = NAMED_BY_WHAT_THEY_ARE.get(kind, kind.__name__.lower())
    assert MUTATION_NAMES[kind.NUMBER].replace("_", "") == name
    assert kind.__struct_config__.tag == kind.NUMBER


# ---- cells


@given(mutation=ANY)
def test_every_cell_a_mutation_names_is_found(mutation: Any) -> None:
    """`cell_refs` names each field drawn as a cell, and nothing else."""
    kind = type(mutation)
    expected = [getattr(mutation, name) for name in FIELDS[kind] if name in CELLS and (kind, name) not in POSITIONS]
    expected += [mutation.reason] if isinstance(mutation, Close) else []
    if isinstance(mutation, Pack):
        expected += [ref for _, ref in mutation.envelopes]
    assert sorted(map(str, cell_refs(mutation))) == sorted(str(ref) for ref in expected if ref is not None)


def test_an_approval_from_before_it_named_its_session_reads_as_it_did() -> None:
    """The bytes of an approval of the first format are read, written and told as they were, without a session."""
    (approval,) = decode(OLD_APPROVAL)
    assert isinstance(approval, Approve) and approval.session is None
    assert encode([approval]) == OLD_APPROVAL
    assert "session" not in readable(approval)
    assert readable(Approve(1, session=b"\0" * 16))["session"] == b"\0" * 16


OLD_APPROVAL = bytes.fromhex("9196220103cf00060a24181e400092cd012c020c")
