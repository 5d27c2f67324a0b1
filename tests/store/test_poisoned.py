"""Stores into which an earlier version let what no fold can read: each question is answered, the damage is named."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from campaigns import doors

import vmstore
from tests.engine.stories import answer, chat
from tests.inner import inner_batch
from tests.refusals import refused
from tests.store.test_by_hand import FIRST, JSON, MESSAGE, SKELETON, TEXT, TWO
from vmstore.core.decision import Why
from vmstore.core.mutation import (
    Annotate,
    Approve,
    Create,
    Evict,
    FaultIn,
    Mark,
    Message,
    Pack,
    Reply,
    Segment,
    Settings,
    wire,
)
from vmstore.engine import batch as batch_module
from vmstore.engine.batch import Batch
from vmstore.errors import CorruptError
from vmstore.store.store import Store


def pack(batch: Batch, entered: Any = (), left: Any = (), fidelity: int = 1, **fields: Any) -> Pack:
    """A call, with the totals the fold finds."""
    totals = batch.head.copy().enter(entered, left)
    return Pack(batch.head.call + 1, fidelity, *totals, tuple(entered), tuple(left), **fields)


Write = Callable[[Batch], Any]
POISON: dict[str, Write] = {
    "rest": lambda b: pack(b, rest=b.cell(b"{")),
    "rest, a list": lambda b: pack(b, rest=b.cell(b"[]")),
    "rest, an earlier cell": lambda b: pack(b, rest=(FIRST, 0)),
    "rest, many digits": lambda b: pack(b, fidelity=0, rest=b.cell(b'{"seed":%s}' % (b"9" * 5_000))),
    "rest, deep": lambda b: pack(b, rest=b.cell(b'{"a":' + b"[" * 2_000 + b"]" * 2_000 + b"}")),
    "mark": lambda b: Mark(0, name=b.cell(b"\xff"), note=b.cell(b"{")),
    "approve": lambda b: Approve(1, 0, None, b.cell(b"\xff")),
    "annotate": lambda b: Annotate(TEXT, tags=b.cell(b"\xff"), anchors=b.cell(b'{"a":NaN}')),
    "labels": lambda b: Create(3, 0, 1, 0, 0, b.cell(b"so"), 2, 1, 9, labels=b.cell(b'{"mime":1,"actor":2,"tags":3}')),
    "reason": lambda b: Create(6, 0, 1, 0, 0, b.cell(b"so"), 2, 1, labels=b.cell(b'{"reason":"why"}')),
    "title": lambda b: Segment(1, None, b.cell(b"\xff")),
    "aside": lambda b: Reply(1, 1, aside=b.cell(b"[]")),
    "aside, no JSON": lambda b: Reply(1, 1, aside=b.cell(b"\xff{")),
    "aside, odd": lambda b: Reply(1, 1, aside=b.cell(b'{"stop":[1],"error":{"a":NaN},"model":5}')),
    "settings": lambda b: Settings(b.cell(b"[7]")),
    "settings, no JSON": lambda b: Settings(b.cell(b"\xff")),
    "a page left": lambda b: pack(b, left=(JSON,)),
    "pages turned": lambda b: pack(b, [(TEXT, TEXT, 0, 99_000_000)]),
    "skeleton": lambda b: pack(b, envelopes=((MESSAGE, b.cell(b"x")),)),
    "two skeletons": lambda b: pack(b, envelopes=((MESSAGE, b.cell(SKELETON)), (MESSAGE, b.cell(b"5")))),
    "shape": lambda b: pack(b, shape=9),
    "renderer": lambda b: pack(b, renderer=7),
    "recorded by nobody": lambda b: pack(b, left=(TEXT, JSON), fidelity=0),
    "evicted from nowhere": lambda b: Evict(TEXT, 0, 1),
    "a contest with no page": lambda b: Evict(TEXT, 0, 1, why=Why(99, 0, 0, -1, -5, 0, 0, ((1, 0), (2, -3)))),
    "come from nowhere": lambda b: FaultIn(TEXT, TEXT, 0, 1, 1, (1, 0, 0, 0, 0, 0, 0, ())),  # type: ignore[arg-type]
}
SILENT = {"evicted from nowhere", "a contest with no page", "come from nowhere", "recorded by nobody", "reason"}
"""What breaks no question and no rule: `verify` has nothing to say."""
BY_FULL = {"a page left", "pages turned", "shape", "renderer", "two skeletons"}
"""What `doctor` finds with all that `verify` checks, and not by a look at the cells."""


@contextmanager
def poisoned(path: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store into which one mutation came past the gate, with sessions beside and after it."""
    with vmstore.open(path) as store:
        store.record("s", {"model": "m", "messages": [{"role": "user", "content": TWO}]})
        store.record("beside", chat("one"), answer("two"))
        with monkeypatch.context() as patch:
            patch.setattr(batch_module, "broken", lambda *_, **__: None)
            patch.setattr(batch_module, "sound", wire)
            with inner_batch(store.session("s")) as batch:
                batch.add(write(batch))
        store.admin.follow()
    with vmstore.open(path) as store:
        yield store


@pytest.mark.parametrize("name", POISON)
def test_a_poisoned_store_answers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every question about every session is answered, a request that cannot be rebuilt by an error that says so."""
    path = tmp_path / "a.vms"
    with poisoned(path, POISON[name], monkeypatch) as store:
        for _ in range(2):
            of_session = list(doors.of_store(store))
            for session in ("s", "beside"):
                of_session += doors.of_session(store, store.session(session), random.Random(1))
            for what, ask in of_session:
                try:
                    ask()
                except CorruptError as error:
                    assert what.startswith("request of call") and "cannot be rebuilt" in str(error), what
            store.admin.rebuild()
        store.record("beside", chat("one", "two", "three"), answer("four"))
        assert store.session("beside").wire.request(call=2) == chat("one", "two", "three")
        problems = store.verify().problems
        assert {problem.kind for problem in problems} == (set() if name in SILENT else {"content"})
        assert store.backup(tmp_path / "copy.vms").namespaces
    for full in (False, True):
        symptoms = [symptom for symptom in vmstore.doctor(path, full=full).symptoms if symptom.kind == "content"]
        assert bool(symptoms) == (name not in SILENT and (full or name not in BY_FULL))
        assert all("vmstore erase" in symptom.remedy for symptom in symptoms)


def test_a_damaged_message_is_told_as_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The messages of a call that lost a page say so in its place, and the call before it is whole."""
    with poisoned(tmp_path / "a.vms", POISON["a page left"], monkeypatch) as store:
        session = store.session("s")
        assert session.wire.messages(call=1) == [{"role": "user", "content": TWO}]
        (message,) = session.wire.messages(call=2)
        assert message["role"] == "user" and message["content"].startswith("[damaged: ")


def test_a_bundle_of_it_is_refused_before_anything_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier version let in comes into no other store."""
    with poisoned(tmp_path / "a.vms", POISON["rest"], monkeypatch) as store:
        store.export(tmp_path / "b.jsonl", redact=False)
    with vmstore.memory_store() as other:
        with refused("bundle-damaged", vmstore.VmstoreError):
            other.import_file(tmp_path / "b.jsonl")
        assert other.sessions() == [] and other.admin.log.ordinal == 0


def test_a_page_of_all_tokens_there_are_gives_way() -> None:
    """A page that says it has 2^63 - 1 tokens, which lie elsewhere, leaves a prompt like others."""
    with vmstore.memory_store() as store:
        live = store.live_session("live", l0_tokens_max=4_000)
        live.user("hello")
        with inner_batch(live) as batch:
            batch.add(Message(1, 2, batch.cell(b'{"role":"user","content":"x"}')))
            page = batch.add(Create(3, 0, 1, batch.head.position, 0, None, 9, 2**63 - 1))
        live.user("there")
        packed = live.pack()
        assert packed.tokens <= packed.budget and f"p{page}" not in packed.pages
