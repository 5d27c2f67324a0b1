"""What a batch of one's own may not say: each refusal names the rule, and nothing of it is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests import refusals
from tests.engine.stories import chat
from vmstore.core.mutation import (
    LIVE,
    Annotate,
    Approve,
    Compress,
    Configure,
    Create,
    Erase,
    Evict,
    Mark,
    Message,
    NamespacePolicy,
    Open,
    Pack,
    Redact,
    Reply,
    Segment,
    Settings,
    Share,
    Update,
)
from vmstore.core.page import Modality, PageType
from vmstore.engine.batch import Batch
from vmstore.engine.rules.field_types import SHAPES
from vmstore.errors import RefusedError
from vmstore.providers import Shape
from vmstore.store.store import Store, memory_store

TWO = [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}]
SKELETON = b'{"role":"user","content":[{"\\u0000t":0},{"\\u0000j":1}]}'
FIRST, MESSAGE, TEXT, JSON = 1, 3, 4, 5
"""Of the session that is written to: its first commit, its message, and that message's two pages."""

DEEP = b'{"a":' + b"[" * 300 + b"]" * 300 + b"}"


def store_of() -> Store:
    """A store with a recorded session of one message with two parts, and a live one."""
    store = memory_store()
    store.record("s", {"model": "m", "messages": [{"role": "user", "content": TWO}]})
    store.live_session("live", l0_tokens_max=4_000).user("Where?")
    return store


def pack(batch: Batch, entered: Any = (), left: Any = (), **fields: Any) -> Pack:
    """A call that nobody sent, with the totals the fold finds."""
    totals = batch.head.copy().enter(entered, left)
    return Pack(batch.head.call + 1, 1, *totals, tuple(entered), tuple(left), **fields)


def create(batch: Batch, content: bytes, message: int = 0, part: int = 0, modality: int = 0, **fields: Any) -> Create:
    """A page of a content, as large as it is."""
    return Create(3, modality, 1, message, part, batch.cell(content), len(content), 1, **fields)


Write = Callable[[Batch], Any]
UNFORMED: dict[str, Write] = {
    "a rest that is no object": lambda b: pack(b, rest=b.cell(b"[]")),
    "a rest that is no JSON": lambda b: pack(b, rest=b.cell(b"{")),
    "a rest of another encoding": lambda b: pack(b, rest=b.cell('{"a":1}'.encode("utf-16"))),
    "a rest with NaN": lambda b: pack(b, rest=b.cell(b'{"a":NaN}')),
    "a rest with a number beyond floats": lambda b: pack(b, rest=b.cell(b'{"a":1e400}')),
    "a rest with a number of many digits": lambda b: pack(b, rest=b.cell(b'{"a":%s}' % (b"9" * 5_000))),
    "a rest nested deeply": lambda b: pack(b, rest=b.cell(DEEP)),
    "a rest that is an earlier cell": lambda b: pack(b, rest=(FIRST, 0)),
    "a name that is no text": lambda b: Mark(0, name=b.cell(b"\xff")),
    "a name of over 4 KiB": lambda b: Mark(0, name=b.cell(b"x" * 4_097)),
    "labels of over 64 KiB": lambda b: create(b, b"so", labels=b.cell(b'{"hint":"%s"}' % (b"x" * 65_536))),
    "a note that is no JSON": lambda b: Mark(0, note=b.cell(b"[[1]")),
    "an aside that is no object": lambda b: Reply(1, 1, aside=b.cell(b"[]")),
    "an envelope that is no JSON": lambda b: Message(1, 2, b.cell(b"hello")),
    "an envelope with a hole for a text": lambda b: Message(1, 2, b.cell(b'{"\\u0000t":"0"}')),
    "a hole with an order that is none": lambda b: Message(1, 2, b.cell(b'{"\\u0000k":[0,[[]]]}')),
    "a hole with no order": lambda b: Message(1, 2, b.cell(b'{"\\u0000k":[0]}')),
    "an aside beside a message": lambda b: Message(1, 2, b.cell(b"{}"), aside=b.cell(b"{")),
    "a hint that is a number": lambda b: create(b, b"so", labels=b.cell(b'{"hint":5}')),
    "tags that are no list": lambda b: create(b, b"so", labels=b.cell(b'{"tags":5}')),
    "labels that are a list": lambda b: create(b, b"so", labels=b.cell(b"[]")),
    "a tag that is a number": lambda b: Annotate(TEXT, tags=b.cell(b"[5]")),
    "anchors that are a text": lambda b: Annotate(TEXT, anchors=b.cell(b'"x"')),
    "a title that is no text": lambda b: Segment(1, None, b.cell(b"\xff")),
    "a skeleton that is no JSON": lambda b: pack(b, envelopes=((MESSAGE, b.cell(b"x")),)),
}


@pytest.mark.parametrize("write", UNFORMED.values(), ids=UNFORMED)
def test_a_cell_that_cannot_be_read_is_refused(write: Write) -> None:
    """A cell that a fold or an answer reads is refused where it holds something else, an earlier one too."""
    refused(write, "cells_are_formed")


def refused(write: Write, rule: str, session: str = "s") -> None:
    """What is written is refused by a rule, and the log keeps its end."""
    store = store_of()
    before = store.admin.log.ordinal
    with refusals.refused(rule), store.session(session).batch() as batch:
        batch.add(create(batch, b"beside"))
        batch.add(write(batch))
    assert store.admin.log.ordinal == before and store.verify().ok


STATED: dict[str, Write] = {
    "a size that is another": lambda b: Create(3, 0, 1, 0, 0, b.cell(b"three"), 3, 1),
    "a size of an update": lambda b: Update(TEXT, 2, b.cell(b"three"), 3, 1),
    "more tokens than bytes": lambda b: Create(3, 0, 1, 0, 0, b.cell(b"three"), 5, 500),
    "tokens beyond all that lies elsewhere": lambda b: Create(3, 0, 1, 0, 0, None, 9, 2**63 - 1),
    "a text that is none": lambda b: create(b, b"\xff\xfe"),
    "an update to what is no text": lambda b: Update(TEXT, 2, b.cell(b"\xff"), 1, 1),
    "a shorter form that is no text": lambda b: Compress(TEXT, 1, 2, 1, 1, b.cell(b"\xff"), 1, 1),
    "JSON that is none": lambda b: create(b, b"{", modality=Modality.STRUCTURED),
}


@pytest.mark.parametrize("write", STATED.values(), ids=STATED)
def test_what_is_stated_is_held_against_the_content(write: Write) -> None:
    """Size, tokens and modality are those of the content that is named."""
    refused(write, "contents_are_as_stated")


def test_what_may_be_stated_is_taken() -> None:
    """A picture is any bytes, a raw record too; a tokenizer may count as many tokens as there are bytes."""
    session = store_of().session("s")
    with session.batch() as batch:
        batch.add(create(batch, b"\xff\xd8", modality=Modality.IMAGE))
        batch.add(Create(PageType.RAW, 0, 5, 0, 0, batch.cell(b"\xff"), 1, 1))
        batch.add(Create(3, 0, 1, 0, 0, batch.cell(b"three"), 5, 5))
        batch.add(create(batch, "\ud83d".encode("utf-8", "surrogatepass")))
        batch.add(create(batch, b'["a"]', modality=Modality.STRUCTURED))
    assert len(session.pages()) == 7


HOLES: dict[str, tuple[str, Write]] = {
    "a page of two leaves": ("messages_are_whole", lambda b: pack(b, left=(JSON,))),
    "pages change places": (
        "messages_are_whole",
        lambda b: pack(b, [(TEXT, TEXT, 0, b.head.order[1][3] + 5)]),
    ),
    "a hole more": ("holes_are_fitted", lambda b: pack(b, envelopes=((MESSAGE, b.cell(b'{"\\u0000t":7}')),))),
    "another kind of hole": ("holes_are_fitted", lambda b: pack(b, envelopes=((MESSAGE, b.cell(b'{"\\u0000j":0}')),))),
    "a part that is no JSON": ("holes_are_fitted", lambda b: create(b, b"no", MESSAGE, 1, Modality.IMAGE)),
    "two skeletons at once": (
        "message_exists",
        lambda b: pack(b, envelopes=((MESSAGE, b.cell(SKELETON)), (MESSAGE, b.cell(SKELETON)))),
    ),
    "a skeleton of no message": ("message_exists", lambda b: pack(b, envelopes=((TEXT, b.cell(SKELETON)),))),
    "a shape that there is none of": ("words_are_listed", lambda b: pack(b, shape=9)),
    "a renderer nobody knows": ("words_are_listed", lambda b: pack(b, renderer=7)),
    "an estimator nobody knows": ("words_are_listed", lambda b: Configure(9, 1)),
}


@pytest.mark.parametrize(("rule", "write"), HOLES.values(), ids=HOLES)
def test_a_message_that_could_not_be_told_is_refused(rule: str, write: Write) -> None:
    """A pack by hand leaves every message such that it can be told again, part by part."""
    refused(write, rule)


def test_a_pack_of_ones_own_is_answered() -> None:
    """A message that leaves whole, and one that a pack by hand brings back, is told as its parts say."""
    session = store_of().session("s")
    with session.batch() as batch:
        batch.add(pack(batch, left=(TEXT, JSON), rest=batch.cell(b'{"model":"mine"}')))
    with session.batch() as batch:
        batch.add(pack(batch, [(TEXT, TEXT, 0, 10), (JSON, JSON, 0, 20)]))
    assert [session.wire.messages(call=call) for call in (2, 3)] == [[], [{"role": "user", "content": TWO}]]
    assert session.calls()[1].model == "mine"


COMMANDS: dict[str, tuple[str, Write]] = {
    "open": (r"store\.session", lambda b: Open(b"u" * 16, b.cell(b"x"))),
    "settings": ("configure", lambda b: Settings(b.cell(b"{}"))),
    "erase": ("vmstore erase", lambda b: Erase(0, ((FIRST, 0),))),
    "approve": ("vmstore approve", lambda b: Approve(1, 0, None, b.cell(b"me"))),
    "redact": ("redaction=", lambda b: Redact(TEXT, count=1)),
    "policy": ("vmstore retain", lambda b: NamespacePolicy(0, b.cell(b"default"))),
    "share": ("vmstore share", lambda b: Share(3, None, 1)),
    "a mark of an import": ("vmstore import", lambda b: Mark(Mark.COMPLETE)),
    "a request nobody sent": (r"store\.record", lambda b: Pack(2, 0, *b.head.totals)),
    "the size of a request nobody made": ("live session", lambda b: pack(b, sent_tokens=2**63 - 1)),
    "what stands beside no pages": ("live session", lambda b: Configure(1, 1_000_000, 2**63 - 1)),
    "a request nobody made": ("live session", lambda b: pack(b, renderer=LIVE)),
}


@pytest.mark.parametrize(("command", "write"), COMMANDS.values(), ids=COMMANDS)
def test_what_commands_write_is_refused_with_their_name(command: str, write: Write) -> None:
    """A kind that goes with a deed is refused with the command that does it, and `verify` stays content."""
    store = store_of()
    with pytest.raises(RefusedError, match=f"{command}.*commands_write_it"), store.session("s").batch() as batch:
        batch.add(write(batch))
    assert store.verify().ok and store.session("s").wire.request(call=1)["messages"] == [
        {"role": "user", "content": TWO}
    ]


DECIDED: dict[str, Write] = {
    "evict": lambda b: Evict(3, 0, 1),
    "configure": lambda b: Configure(1, 0),
    "pack": lambda b: pack(b),
    "segment": lambda b: Segment(1),
}


@pytest.mark.parametrize("write", DECIDED.values(), ids=DECIDED)
def test_what_a_kernel_decides_is_refused(write: Write) -> None:
    """A decision by hand in a live session is refused, and the kernel goes on."""
    store = store_of()
    live = store.live_session("live", l0_tokens_max=4_000)
    with refusals.refused("commands_write_it"), live.batch() as batch:
        batch.add(write(batch))
    live.user("And when?")
    assert live.pack().tokens > 0


def test_the_gate_knows_every_shape() -> None:
    """The shapes that the gate lets through are those that requests are taken apart into."""
    assert set(Shape) == SHAPES


@pytest.mark.parametrize("digits", [5_000, 50_000])
def test_a_number_that_others_cannot_read_is_refused(digits: int, tmp_path: Path) -> None:
    """A process that reads numbers of any length records none that the next process could not read."""
    import subprocess
    import sys

    code = (
        "import sys, vmstore\n"
        "store = vmstore.open(sys.argv[1])\n"
        "store.record('s', {'model': 'm', 'messages': [], 'seed': 10**4000})\n"
        f"try:\n    store.record('t', {{'model': 'm', 'messages': [], 'seed': 10**{digits}}})\n"
        "except vmstore.InputError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "int_max_str_digits=0", "-c", code, str(tmp_path / "a.vms")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "over 4,300 digits" in done.stdout
    with vmstore.open(tmp_path / "a.vms") as store:
        assert [info.session for info in store.sessions()] == ["s"]
        assert store.session("s").wire.request(call=1)["seed"] == 10**4000
        store.record("s", chat("hello"))
