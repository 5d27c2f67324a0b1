"""Formats an agent's work: failures to avoid, skills, plans."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from vmstore.shell.terminal.format import number
from vmstore.shell.terminal.layout import Block, Line, StyledText, TableColumn, TextTable, table

if TYPE_CHECKING:
    from vmstore.store.work.forms import AggregateInfo
    from vmstore.store.work.observations import ObservationInfo
    from vmstore.store.work.plans import AgentPlan
    from vmstore.store.work.results import GuardInfo, SkillInfo
    from vmstore.work.disclosure import DisclosureStep

CALLS_SHOWN = 3


def lessons(
    failures: Sequence[GuardInfo], learned: Sequence[SkillInfo], active: Sequence[AgentPlan], limit: int
) -> list[Block]:
    """Failures to avoid, skills and active plans, so many of each, with how many there are."""
    listed: tuple[tuple[str, Sequence[Any], Callable[[Any], TextTable]], ...] = (
        ("failures to avoid", failures, guards),
        ("skills", learned, skills),
        ("active plans", active, plans),
    )
    blocks: list[Block] = []
    for title, found, show in listed:
        first = f", the first {limit}" if len(found) > limit else ""
        blocks += [*[""] * bool(blocks), f"{title}: {len(found):,}{first}" if found else f"{title}: none"]
        blocks += [show(found[:limit])] if found else []
    return blocks


def guards(found: Sequence[GuardInfo]) -> TextTable:
    """Guards in their order, what they warn of last, with the calls that are its evidence."""
    cells: dict[TableColumn, Callable[[GuardInfo], Line]] = {
        TableColumn("guard", style="name"): lambda guard: guard.type,
        TableColumn("times", right=True): lambda guard: number(guard.count),
        TableColumn("calls", style="dim"): lambda guard: _calls(guard.calls),
        TableColumn("warning"): lambda guard: guard.text,
    }
    return table(found, _with_session(found, cells))


def skills(found: Sequence[SkillInfo]) -> TextTable:
    """Skills, those that succeeded most often first as they are handed in: their tools, with what they are called."""
    cells: dict[TableColumn, Callable[[SkillInfo], Line]] = {
        TableColumn("ok", right=True): lambda skill: f"{skill.successes} of {skill.tries}",
        TableColumn("last calls", style="dim"): lambda skill: _calls(skill.calls),
        TableColumn("tools", style="name"): lambda skill: " → ".join(skill.tools),
        TableColumn("with"): lambda skill: _arguments(skill.arguments),
    }
    return table(found, _with_session(found, cells))


def observations(found: Sequence[ObservationInfo]) -> TextTable:
    """Observations in their order: their lines, with the tokens of the whole and of the shorter form."""
    cells: dict[TableColumn, Callable[[ObservationInfo], Line]] = {
        TableColumn("tokens", right=True): lambda one: number(one.original_tokens),
        TableColumn("short", right=True): lambda one: number(one.compressed_tokens),
        TableColumn("observation"): lambda one: StyledText(one.line, "warn" if one.outcome == "error" else ""),
    }
    return table(found, cells)


def aggregates(forms: Sequence[AggregateInfo]) -> TextTable:
    """Forms of several observations in their order: how many calls, their tokens and those of the form."""
    cells: dict[TableColumn, Callable[[AggregateInfo], Line]] = {
        TableColumn("calls", right=True): lambda form: number(len(form.pages)),
        TableColumn("from", style="dim"): lambda form: form.pages[0],
        TableColumn("tokens", right=True): lambda form: number(form.original_tokens),
        TableColumn("short", right=True): lambda form: number(form.compressed_tokens),
        TableColumn("observations"): lambda form: form.summary,
    }
    return table(forms, cells)


def disclosure(steps: Sequence[DisclosureStep], upto: int) -> list[str]:
    """Steps up to one, each with its cost, and what the next would cost."""
    lines: list[str] = []
    for step in steps:
        if step.step <= upto:
            lines += [
                *[""] * bool(lines),
                f"step {step.step}, {step.label}: {step.token_cost} tokens",
                *step.content.splitlines(),
            ]
    following = next((step for step in steps if step.step > upto), None)
    if following is not None:
        lines += ["", f"step {following.step}, {following.label}, takes {following.token_cost} tokens more"]
    return lines


def plans(found: Sequence[AgentPlan]) -> TextTable:
    """Plans in their order: how far they came, and what can be done next."""
    cells: dict[TableColumn, Callable[[AgentPlan], Line]] = {
        TableColumn("page", style="dim"): lambda plan: plan.page,
        TableColumn("status"): lambda plan: StyledText(plan.status, "" if plan.status == "active" else "dim"),
        TableColumn("done", right=True): lambda plan: f"{plan.progress:.0%}",
        TableColumn("plan", style="name"): lambda plan: plan.title,
        TableColumn("next"): lambda plan: ", ".join(plan.ready),
    }
    return table(found, _with_session(found, cells))


def steps(plan: AgentPlan) -> TextTable:
    """The steps of a plan in their order, with what they wait for."""
    cells: dict[TableColumn, Callable[[Any], Line]] = {
        TableColumn(""): lambda step: "✓" if step.done else "·",
        TableColumn(plan.title, style="name"): lambda step: step.text,
        TableColumn("after"): lambda step: StyledText(", ".join(step.after), "dim"),
    }
    return table(plan.steps, cells)


def _with_session(
    found: Sequence[Any], cells: dict[TableColumn, Callable[[Any], Line]]
) -> dict[TableColumn, Callable[[Any], Line]]:
    """The columns, after the session where there are several."""
    many = len({one.session for one in found}) > 1
    return {TableColumn("session"): lambda one: one.session, **cells} if many else cells


def _calls(calls: Sequence[str]) -> str:
    return ("… " if len(calls) > CALLS_SHOWN else "") + " ".join(calls[-CALLS_SHOWN:])


def _arguments(arguments: dict[str, Any]) -> str:
    """What each tool is given each time; what differs from time to time is left out."""
    given = [
        f"{tool} {name}={json.dumps(value, ensure_ascii=False)}"
        for tool, values in arguments.items()
        for name, value in values.items()
        if value is not None
    ]
    return ", ".join(given)
