"""Answers of `session.work` and `store.work`."""

from __future__ import annotations

from typing import Any

import msgspec


class GuardInfo(msgspec.Struct, frozen=True):
    """A guard that spoke up: what it counted in which calls, and what it warns of.

    `warning` is the page that says so in prompts; None where nothing is logged of it yet.
    """

    session: str
    type: str
    tool: str
    count: int
    page: str
    calls: list[str]
    text: str
    warning: str | None = None


class SkillInfo(msgspec.Struct, frozen=True):
    """A sequence of tools that succeeds: its name, what was counted, and what it is called with.

    `page` describes it; None where it was found and is not logged yet.
    """

    session: str
    skill: str
    tools: list[str]
    success_rate: float
    successes: int
    tries: int
    arguments: dict[str, Any]
    prerequisites: list[str]
    calls: list[str]
    importance: float
    page: str | None = None


class Lessons(msgspec.Struct, frozen=True):
    """Lessons written: guards that spoke up, and skills that are new or were weighed again."""

    guards: list[GuardInfo]
    skills: list[SkillInfo]


class WorkMeasures(msgspec.Struct, frozen=True):
    """How much the loop did: calls and failures, of these the ones repeated after a warning of them, and skills.

    `promotion_rate` is the share of the sequences tried five times or more that became skills; `avoided` the share
    of warnings after which the same failure did not come again in their session.
    """

    calls: int
    failed: int
    warned: int
    repeated_after_warning: int
    avoided: float | None
    sequences: int
    skills: int
    promotion_rate: float | None
