"""Callbacks: compressors that somebody hands in, and everything they may do wrong."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from vmstore.core.page import Method, Modality, PageType
from vmstore.vm.compressors.callback import CallbackAnswer, Outcome, ask
from vmstore.vm.compressors.form import NO_SHORTER, Form, Material, NoForm, NoFormReason
from vmstore.vm.compressors.registry import compressed

PROSE = "The cache of the server is full. The server reads the cache at night. A sentence beside that. " * 6
PROSE = PROSE.strip()
MATERIAL = Material(content=PROSE.encode())


class UnprintableError(Exception):
    """An error that raises where it is printed."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def raising(error: BaseException) -> Any:
    """A callback that raises."""

    def callback(content: bytes, mime: str, level: int) -> str:
        raise error

    return callback


def saying(answer: Any) -> Any:
    """A callback that answers."""
    return lambda content, mime, level: answer


WRONG = [
    (raising(ValueError("no model")), Outcome.RAISED, "ValueError: no model"),
    (raising(SystemExit(3)), Outcome.RAISED, "SystemExit: 3"),
    (raising(KeyboardInterrupt()), Outcome.RAISED, "KeyboardInterrupt: "),
    (raising(UnprintableError()), Outcome.RAISED, "UnprintableError: an error that cannot be printed"),
    (saying(None), Outcome.WRONG_TYPE, "a NoneType, and text or bytes are asked for"),
    (saying({"text": "x"}), Outcome.WRONG_TYPE, "a dict, and text or bytes are asked for"),
    (saying(""), Outcome.EMPTY, "nothing but spaces"),
    (saying(" \n\t\x00"), Outcome.EMPTY, "nothing but spaces"),
    (saying(b"\xff\xfe"), Outcome.NO_TEXT, "2 bytes that are no UTF-8"),
    (saying(PROSE), Outcome.TOO_LONG, f"{len(PROSE)} bytes where {len(PROSE)} are to be undercut"),
    (saying(PROSE * 3), Outcome.TOO_LONG, f"{3 * len(PROSE):,} bytes where {len(PROSE)} are to be undercut"),
]


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize(("callback", "outcome", "text"), WRONG, ids=[f"{row[1].word} {row[2][:12]}" for row in WRONG])
def test_a_callback_that_fails_is_replaced(callback: Any, outcome: Outcome, text: str, level: int) -> None:
    """Whatever a callback does wrong, the page gets the compressor's form, and the outcome says what it was."""
    answer = ask(callback, MATERIAL, level)
    assert answer.form == compressed(MATERIAL, level) and not answer.by_callback
    assert (answer.outcome, answer.found) == (outcome, text)


def test_a_level_is_shorter_than_the_one_below() -> None:
    """What a callback or a compressor makes must undercut the forms the page has at lower levels."""
    below = [Form(b"The cache is full.", Method.WRITTEN)]
    answer = ask(saying("The cache is full, really."), MATERIAL, 2, below=below)
    assert (answer.outcome, answer.form) == (Outcome.TOO_LONG, NO_SHORTER)
    assert ask(saying("Cache full."), MATERIAL, 2, below=below).outcome is Outcome.ANSWERED


def test_a_callback_that_hangs_is_left_alone() -> None:
    """After the time it was given nobody waits for it, and what it says later is not heard."""
    over = threading.Event()

    def hanging(content: bytes, mime: str, level: int) -> str:
        over.wait(60)
        return "too late"

    answer = ask(hanging, MATERIAL, 1, timeout_s=0.05)
    over.set()
    assert (answer.outcome, answer.form) == (Outcome.HUNG, compressed(MATERIAL, 1))
    assert answer.found == "nothing came back in 0.05 s"


@pytest.mark.parametrize(
    "text", ["The cache is full.", b"  The cache is full.\n", "The \x1b[1mcache\x1b[0m is full.\x07"]
)
def test_what_a_callback_writes_is_taken(text: str | bytes) -> None:
    """Text or bytes shorter than the page are its form, without spaces around and without control characters."""
    assert ask(saying(text), MATERIAL, 2) == CallbackAnswer(
        Form(b"The cache is full.", Method.WRITTEN), Outcome.ANSWERED
    )


def test_a_callback_is_told_what_it_needs() -> None:
    """It is given the content, the content type and the level."""
    heard: list[Any] = []
    ask(lambda *arguments: heard.append(arguments) or "x", MATERIAL, 2)
    assert heard == [(PROSE.encode(), "text/plain", 2)]


def test_a_callback_may_caption_an_image() -> None:
    """For an image its words are the form, though no caption was handed in."""
    image = Material(content=b"\x89PNG\r\n\x1a\n" + bytes(5_000), modality=Modality.IMAGE, mime="image/png")
    assert ask(saying("A chart of sales."), image, 2).form == Form(b"A chart of sales.", Method.WRITTEN)
    failed = ask(saying(""), image, 2)
    assert failed.outcome is Outcome.EMPTY and failed.form == NoForm(
        NoFormReason.NOT_GIVEN, "nobody handed in a caption"
    )


def test_what_may_not_be_compressed_is_not_asked_for() -> None:
    """For an index, and for a page without content, no callback is called."""
    for material, page_type in ((MATERIAL, PageType.INDEX), (Material(content=b""), PageType.TRANSCRIPT)):
        answer = ask(raising(AssertionError("asked")), material, 1, page_type)
        assert answer.outcome is Outcome.NOT_ASKED and isinstance(answer.form, NoForm)


def test_a_callback_leaves_no_thread_behind() -> None:
    """A callback that answered or raised leaves no thread, and its error is printed nowhere."""
    before = threading.active_count()
    hook, threading.excepthook = threading.excepthook, lambda args: sys.exit("printed")
    try:
        for callback, *_ in WRONG:
            ask(callback, MATERIAL, 1)
    finally:
        threading.excepthook = hook
    assert threading.active_count() == before
