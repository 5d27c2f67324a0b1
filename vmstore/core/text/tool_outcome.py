"""The outcome of a tool call, by what its source says of it: each rule has a name, and none of them guesses.

A rule reads what stands around an answer in its message, what the source keeps beside the message, or
the answer itself where the source has no other place for it. Where no rule says anything nothing is known.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from vmstore.core.page import WordEnum
from vmstore.core.text.holes import HOLES, KEYED
from vmstore.core.text.json_text import loads


class ToolOutcome(WordEnum):
    """How a tool's answer ended."""

    OK = 0
    ERROR = 1


class OutcomeRule(WordEnum):
    """The sign an outcome was read from: a flag of its source, an exit code, a status, `error`, `Error:`, its host."""

    IS_ERROR = 0
    EXIT_CODE = 1
    STATUS = 2
    ERROR_FIELD = 3
    ERROR_TEXT = 4
    HOST = 5  # who ran the tool logged how it ended


class JudgedOutcome(NamedTuple):
    """How an answer ended and which rule says so; None and None where none does. `took_us` is the source's figure."""

    outcome: ToolOutcome | None = None
    rule: OutcomeRule | None = None
    took_us: int | None = None


FLAGS = ("is_error", "isError")
ANSWERED = ("functionResponse", "function_response")
FAILED_WORDS = frozenset({"failed", "failure", "error", "incomplete"})
FINE_WORDS = frozenset({"ok", "success"})
assert not FAILED_WORDS & FINE_WORDS, "a status says one thing"
LETTA = {"status", "message", "time"}  # the keys of what Letta makes of a tool's answer
HEAD_CHARS = 2_000
_EXIT = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d{1,9})[ \t]*$", re.MULTILINE)
_WALL = re.compile(r"^Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds?[ \t]*$", re.MULTILINE)
_HEADED = ("Exit code: ", "Process exited with code ", "Wall time: ", "Chunk ID: ")
_MOST_SECONDS = 1e9


Around = tuple[dict[str, Any], ...]
DEPTH = 4  # objects that are looked at


def outcome_of(outer: Around, aside: Any, content: bytes | None) -> JudgedOutcome:
    """The outcome of an answer, read from the objects around it, from `aside` and from its text."""
    text = "" if content is None else content[: HEAD_CHARS * 4].decode("utf-8", "replace")
    value = _json(content, text)
    found = _flagged(outer, value) or _stated(aside) or _exited(value, text) or _in_itself(value, text)
    outcome, rule = found or (None, None)
    assert (outcome is None) == (rule is None), "an outcome states the sign it was read from"
    return JudgedOutcome(outcome, rule, _took_us(value, text))


def microseconds(seconds: Any) -> int | None:
    """A number of seconds in microseconds; None where it is none."""
    sane = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < _MOST_SECONDS
    return round(seconds * 1_000_000) if sane else None


Judged = tuple[ToolOutcome, OutcomeRule] | None


def _flagged(outer: Around, value: Any) -> Judged:
    """By the flag that stands beside an answer, or under which name it stands."""
    for each in (*outer, value) if isinstance(value, dict) else outer:
        kind = each.get("type")
        flag = next((each[key] for key in FLAGS if isinstance(each.get(key), bool)), None)
        if flag is not None or (isinstance(kind, str) and kind.endswith("tool_result")):
            return _judged(bool(flag), OutcomeRule.IS_ERROR)
        answered = next((each[key] for key in ANSWERED if isinstance(each.get(key), dict)), None)
        if answered is not None and isinstance(said := answered.get("response"), dict) and "error" in said:
            return _judged(True, OutcomeRule.ERROR_FIELD)
        if isinstance(kind, str) and kind.endswith("_output") and _failed(each.get("status")):
            return _judged(True, OutcomeRule.STATUS)
    return None


def around(skeleton: Any, outer: Around = ()) -> dict[int, Around]:
    """The objects of a skeleton that each of its parts stands in, the innermost first."""
    found: dict[int, Around] = {}
    if isinstance(skeleton, dict):
        if len(skeleton) == 1 and (key := next(iter(skeleton))) in HOLES:
            number = skeleton[key]
            number = number[0] if key == KEYED and isinstance(number, list) and number else number
            return {number: outer} if type(number) is int else {}
        outer = (skeleton, *outer[: DEPTH - 1])
    for inner in skeleton.values() if isinstance(skeleton, dict) else skeleton if isinstance(skeleton, list) else ():
        if isinstance(inner, dict | list):
            found |= around(inner, outer)
    return found


def _stated(aside: Any) -> Judged:
    """By the status that Letta keeps beside a message."""
    returns = aside.get("tool_returns") if isinstance(aside, dict) else None
    first = returns[0] if isinstance(returns, list) and returns else None
    status = first.get("status") if isinstance(first, dict) else None
    return _by_status(status)


def _by_status(status: Any) -> Judged:
    if _failed(status):
        return _judged(True, OutcomeRule.STATUS)
    return _judged(False, OutcomeRule.STATUS) if isinstance(status, str) and status.lower() in FINE_WORDS else None


def _failed(status: Any) -> bool:
    return isinstance(status, str) and status.lower() in FAILED_WORDS


def _exited(value: Any, text: str) -> Judged:
    """By the exit code that Codex writes into the answer, as a field or in the lines before the output."""
    code = _metadata(value).get("exit_code")
    if type(code) is not int:
        found = _EXIT.search(_head(text))
        code = None if found is None else int(found[1])
    return None if code is None else _judged(code != 0, OutcomeRule.EXIT_CODE)


def _in_itself(value: Any, text: str) -> Judged:
    """By what the answer says where the source has no other place for it."""
    if isinstance(value, dict):
        if value.keys() == LETTA and (judged := _by_status(value["status"])):
            return judged
        if value.get("error"):
            return _judged(True, OutcomeRule.ERROR_FIELD)
        return None
    return _judged(True, OutcomeRule.ERROR_TEXT) if text.startswith("Error:") else None


def _took_us(value: Any, text: str) -> int | None:
    """How long it took, by the figure that Codex writes into the answer."""
    seconds = _metadata(value).get("duration_seconds")
    if seconds is None and (found := _WALL.search(_head(text))):
        seconds = float(found[1])
    return microseconds(seconds)


def _metadata(value: Any) -> dict[str, Any]:
    found = value.get("metadata") if isinstance(value, dict) and "output" in value else None
    return found if isinstance(found, dict) else {}


def _head(text: str) -> str:
    """The lines that stand before the output, where there are any."""
    return text.partition("\nOutput:")[0] if text.startswith(_HEADED) else ""


def _json(content: bytes | None, text: str) -> Any:
    if content is None or not text.lstrip().startswith("{"):
        return None
    try:
        return loads(content)
    except ValueError:
        return None


def _judged(is_error: bool, rule: OutcomeRule) -> Judged:
    return (ToolOutcome.ERROR if is_error else ToolOutcome.OK), rule
