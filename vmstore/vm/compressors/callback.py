"""A compressor that somebody hands in: a model, as a rule. It is asked at the door, and what it says is recorded.

The one room of these that is not pure. Whatever the callback does, the page gets a form or a reason
within the time given, and the outcome says how it came to be: a replay takes the recorded form and never asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from vmstore.core.page import Method, PageType, WordEnum
from vmstore.core.system.callbacks import answer_within
from vmstore.vm.compressors.form import Form, Material, NoForm, NoFormReason
from vmstore.vm.compressors.registry import compressed, undercuts
from vmstore.vm.recall.text_pieces import readable

Callback = Callable[[bytes, str, int], bytes | str]
"""Content, content type and level to a text for that level: words, no image, shorter than the content."""

TIMEOUT_S = 30.0
FOUND_CHARS_MAX = 200


class Outcome(WordEnum):
    """The outcome of asking a callback."""

    ANSWERED = 0
    RAISED = 1
    HUNG = 2  # it took longer than it was given; what it says later is not heard
    WRONG_TYPE = 3  # neither text nor bytes
    NO_TEXT = 4  # bytes that are no UTF-8
    EMPTY = 5  # nothing but spaces
    TOO_LONG = 6  # no shorter than what it was to shorten
    NOT_ASKED = 7  # pages of this type are not compressed so far, or there is nothing to compress


class CallbackAnswer(msgspec.Struct, frozen=True):
    """The form or the reason a page got, from whom, and the fault of the callback's answer."""

    form: Form | NoForm
    outcome: Outcome
    found: str = ""

    @property
    def by_callback(self) -> bool:
        """Whether the form is the callback's own; otherwise a compressor made it."""
        return self.outcome is Outcome.ANSWERED


def ask(
    callback: Callback,
    material: Material,
    level: int,
    page_type: PageType = PageType.TRANSCRIPT,
    timeout_s: float = TIMEOUT_S,
    below: Sequence[Form] = (),
) -> CallbackAnswer:
    """Asks a callback for a form of a page, with the compressor's form as fallback.

    Either is shorter than the page and than the forms `below` that it has at lower levels.
    """
    instead = compressed(material, level, page_type, below)
    if isinstance(instead, NoForm) and instead.reason in (NoFormReason.NOT_ALLOWED, NoFormReason.EMPTY):
        return CallbackAnswer(instead, Outcome.NOT_ASKED, instead.found)
    outcome, reply = heard(lambda: callback(material.content, material.mime, level), timeout_s)
    if outcome is not Outcome.ANSWERED:
        return CallbackAnswer(instead, outcome, str(reply)[:FOUND_CHARS_MAX])
    outcome, form = _form(reply, material, below)
    return (
        CallbackAnswer(instead, outcome, str(form)[:FOUND_CHARS_MAX])
        if isinstance(form, str)
        else CallbackAnswer(form, outcome)
    )


def heard(callback: Callable[[], Any], timeout_s: float) -> tuple[Outcome, Any]:
    """Runs a callback in a thread of its own for a limited time; gives its result, or how it failed."""
    outcome, said = answer_within(callback, timeout_s)
    return Outcome[outcome.upper()], said


def _form(reply: Any, material: Material, below: Sequence[Form]) -> tuple[Outcome, Form | str]:
    """The form an answer makes, or what is wrong with it."""
    if not isinstance(reply, str | bytes):
        return Outcome.WRONG_TYPE, f"a {type(reply).__name__}, and text or bytes are asked for"
    text = readable(reply.encode("utf-8", "replace") if isinstance(reply, str) else reply)
    if text is None:
        return Outcome.NO_TEXT, f"{len(reply):,} bytes that are no UTF-8"
    form = Form(text.strip().encode(), Method.WRITTEN)
    if not form.content:
        return Outcome.EMPTY, "nothing but spaces"
    if not form.shorter_than(material.content, material.modality) or not undercuts(form, below):
        least = min(len(content) for content in (material.content, *(one.content for one in below)))
        return Outcome.TOO_LONG, f"{len(form.content):,} bytes where {least:,} are to be undercut"
    return Outcome.ANSWERED, form
