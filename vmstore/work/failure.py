"""Failures of tools: what one answered, which failures are the same, and the words that warn of them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from vmstore.work.past_call import PastCall

REASON_CHARS_MAX = 200
VALUE_CHARS_MAX = 60
SHARED_MAX = 3  # arguments that a warning names
_QUOTED = re.compile(r"'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|`[^`\n]{1,200}`")
_PLACE = re.compile(r"(?:[\w.~-]*/){1,}[\w.@~-]*")
_WITH_DIGIT = re.compile(r"[\w-]*\d[\w.,:-]*")
_BLANK = re.compile(r"\s+")


def reason_of(answer: str) -> str:
    """The reason that a failed answer gives: its `error`, or its first line that says something."""
    text = answer.strip()
    if text.startswith("{"):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and value.get("error"):
            text = value["error"] if isinstance(value["error"], str) else json.dumps(value["error"])
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line[:REASON_CHARS_MAX]


def pattern_of(reason: str) -> str:
    """A reason without what differs from call to call: quoted words, paths, numbers and ids."""
    for found in (_QUOTED, _PLACE, _WITH_DIGIT):
        reason = found.sub("…", reason)
    return _BLANK.sub(" ", reason).strip().lower()


def same_failures(calls: Sequence[PastCall]) -> list[PastCall]:
    """The failed calls that are like the last one, itself among them: of its tool, and with its reason or arguments.

    Empty where the last one did not fail.
    """
    if not calls or not calls[-1].failed:
        return []
    last = calls[-1]
    failed = [call for call in calls if call.failed and call.tool == last.tool]
    pattern, asked = pattern_of(last.reason), last.asked
    alike = [call for call in failed if pattern and pattern_of(call.reason) == pattern]
    again = [call for call in failed if call.asked == asked]
    return alike if len(alike) >= len(again) else again


def shared_arguments(calls: Sequence[PastCall]) -> dict[str, Any]:
    """The arguments that all of some calls have in common, the shortest first, a few of them."""
    given = [call.arguments for call in calls if isinstance(call.arguments, dict)]
    if len(given) < len(calls) or not given:
        return {}
    shared = {name: value for name, value in given[0].items() if all(other.get(name) == value for other in given[1:])}
    short = {name: value for name, value in shared.items() if len(_written(value)) <= VALUE_CHARS_MAX}
    ordered = sorted(short.items(), key=lambda item: (len(_written(item[1])), item[0]))
    return dict(ordered[:SHARED_MAX])


def avoidance(calls: Sequence[PastCall]) -> str:
    """The sentence that warns a model of what failed again and again."""
    last, shared = calls[-1], shared_arguments(calls)
    given = ", ".join(f"{name}={_written(value)}" for name, value in shared.items())
    what = f"{last.tool} with {given}" if given else last.tool
    why = last.reason.rstrip(". ") or "no reason was given"
    return f"{what} has failed {len(calls)} times: {why}. Do not repeat it; change what you pass, or do without."


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
