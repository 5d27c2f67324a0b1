"""A plan as the content of its page: goals, steps in their order, decisions, how far it came."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

import msgspec

from vmstore.core.page import Standing
from vmstore.errors import InputError, UnknownError

TAG = "plan"
"""The tag of the page of a plan."""
STATUSES = (Standing.ACTIVE, Standing.COMPLETED, Standing.ABANDONED)
IMPORTANCE_ACTIVE, IMPORTANCE_ENDED = 990_000, 500_000  # parts per million
TEXT_CHARS_MAX = 500
STEPS_MAX = 100


class PlanStep(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A step of a plan, called by its text; those it comes `after` are done before it."""

    text: str
    after: tuple[str, ...] = ()
    done: bool = False


class PlanContent(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The content of the page of a plan; `progress` is a share from 0 to 1, `decisions` are addresses of claims."""

    plan: str
    plan_status: str = Standing.ACTIVE.word
    goals: tuple[str, ...] = ()
    steps: tuple[PlanStep, ...] = ()
    decisions: tuple[str, ...] = ()
    progress: float = 0.0

    @property
    def ready(self) -> list[str]:
        """The steps that can be taken now: not done, and all they come after is."""
        done = {step.text for step in self.steps if step.done}
        return [step.text for step in self.steps if not step.done and done.issuperset(step.after)]


def encoded(content: PlanContent) -> bytes:
    """The bytes of a plan's page."""
    return msgspec.json.encode(content)


def decoded(content: bytes) -> PlanContent | None:
    """The plan that a page holds; None where it holds none."""
    try:
        return msgspec.json.decode(content, type=PlanContent)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def made(title: str, goals: Iterable[str], steps: Sequence[str | Mapping[str, Any]]) -> PlanContent:
    """A new plan, checked; a step is its text, or `{"text": …, "after": […]}`."""
    content = PlanContent(_text("a plan's title", title), goals=_texts("a goal", goals))
    return with_steps(content, steps)


def with_steps(content: PlanContent, steps: Sequence[str | Mapping[str, Any]]) -> PlanContent:
    """The plan with other steps; those that it has already and that were done stay done.

    InputError for two of one text, for one that comes after a step there is not, and for steps that wait for each
    other.
    """
    done = {step.text for step in content.steps if step.done}
    listed = tuple(_step(step, done) for step in _list("steps", steps))
    if len(listed) > STEPS_MAX:
        raise InputError(f"a plan has {STEPS_MAX} steps at most, and {len(listed)} are given; make plans of its parts")
    names = [step.text for step in listed]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two steps are called {twice!r:.60}; call each by a text of its own", code="step-twice")
    for step in listed:
        for before in step.after:
            if before not in names:
                raise UnknownError(f"step {step.text!r:.60} comes after {before!r:.60}, which is none", code="no-step")
    try:
        tuple(TopologicalSorter({step.text: step.after for step in listed}).static_order())
    except CycleError as error:
        around = " → ".join(repr(name) for name in error.args[1])
        raise InputError(f"these steps wait for each other: {around:.200}; leave one out", code="plan-cycle") from None
    return _counted(msgspec.structs.replace(content, steps=listed))


def with_done(content: PlanContent, texts: Iterable[str]) -> PlanContent:
    """The plan with some steps done; UnknownError for one it has not, InputError for one that waits for another."""
    for text in texts:
        step = next((step for step in content.steps if step.text == text), None)
        if step is None:
            names = ", ".join(repr(step.text) for step in content.steps) or "none"
            raise UnknownError(f"the plan has no step {text!r:.60}; its steps are {names:.300}", code="no-step")
        if not step.done and text not in content.ready:
            waits = next(each for each in step.after if not _is_done(content, each))
            raise InputError(f"step {text!r:.60} comes after {waits!r:.60}, which is not done", code="step-waits")
        steps = tuple(msgspec.structs.replace(each, done=True) if each.text == text else each for each in content.steps)
        content = _counted(msgspec.structs.replace(content, steps=steps))
    return content


def with_goals(content: PlanContent, goals: Iterable[str]) -> PlanContent:
    """The plan with other goals."""
    return msgspec.structs.replace(content, goals=_texts("a goal", goals))


def with_progress(content: PlanContent, progress: float) -> PlanContent:
    """The plan with a share of it done; InputError where that is none, or where the steps tell it."""
    if content.steps:
        raise InputError("the progress of a plan with steps is counted; say which of them are done", code="counted")
    if isinstance(progress, bool) or not isinstance(progress, int | float) or not 0 <= progress <= 1:
        raise InputError(f"progress {progress!r:.40} is no share from 0 to 1", code="not-a-share")
    return msgspec.structs.replace(content, progress=float(progress))


def _is_done(content: PlanContent, text: str) -> bool:
    return any(step.text == text and step.done for step in content.steps)


def _counted(content: PlanContent) -> PlanContent:
    """The plan with as much progress as steps are done; that of one without steps is said."""
    if not content.steps:
        return content
    share = sum(step.done for step in content.steps) / len(content.steps)
    return msgspec.structs.replace(content, progress=round(share, 3))


def _step(step: str | Mapping[str, Any], done: set[str]) -> PlanStep:
    if isinstance(step, str):
        step = {"text": step}
    if not isinstance(step, Mapping) or not step.keys() <= {"text", "after", "done"}:
        raise InputError(f"{step!r:.60} is no step: give its text, or {{'text': …, 'after': […]}}", code="not-a-step")
    text = _text("a step", step.get("text"))
    return PlanStep(text, _texts("a step", step.get("after", ())), bool(step.get("done", text in done)))


def _texts(what: str, texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(_text(what, text) for text in _list(what, texts))


def _list(what: str, given: Iterable[Any]) -> list[Any]:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InputError(f"{given!r:.60} is no list; give a list of texts for {what}", code="not-a-list")
    return list(given)


def _text(what: str, text: Any) -> str:
    if not isinstance(text, str) or not 0 < len(text.strip()) <= TEXT_CHARS_MAX:
        raise InputError(f"{what} is a text of 1 to {TEXT_CHARS_MAX} characters, not {text!r:.60}", code="not-a-text")
    return text.strip()
