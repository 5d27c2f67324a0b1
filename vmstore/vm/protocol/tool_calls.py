"""Tool calls as any provider wrote them, and as every provider takes them: ids, names, arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from vmstore.core.text.tool_call import ARGUMENTS, BARE, KINDS, NAMED, WRAPS
from vmstore.vm.protocol.escape import dumps, loads
from vmstore.vm.protocol.prompt_page import PromptPage

ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
UNFIT = re.compile(r"[^a-zA-Z0-9_-]")


class CallIds:
    """Ids of calls that every provider takes and that occur once, and are none of those `used` before."""

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = set(used)

    @property
    def used(self) -> frozenset[str]:
        """Those that were given."""
        return frozenset(self._used)

    def given(self, named: str) -> str:
        """The id of a call that names itself so: a number follows where it was given already."""
        given, count = named, 1
        while given in self._used:
            count += 1
            given = f"{named[:56]}_{count}"
        self._used.add(given)
        return given


def named(leaf: PromptPage) -> str:
    """The id of a call: its own where every provider takes it, else one made of its page's name."""
    return leaf.call_id if ID.fullmatch(leaf.call_id) else f"call_{UNFIT.sub('_', leaf.name)}"[:64]


def asked(leaf: PromptPage) -> tuple[str, Any]:
    """The tool a call's page names, and what stands for its arguments."""
    arguments = _object(leaf.text or "")
    inner = next((arguments[key] for key in WRAPS if isinstance(arguments.get(key), dict)), None)
    # pi's form is that of arguments too, so the page's tool tells them apart.
    is_named = arguments.get("type") == NAMED and leaf.tool != "" and leaf.tool == arguments.get("name")
    if inner is None and (is_named or arguments.get("type") in KINDS or set(arguments) - {"id"} in BARE):
        inner = arguments
    if inner is None or leaf.tool not in ("", inner.get("name")):
        return leaf.tool, leaf.text  # arguments alone, which may have such keys of their own
    return str(inner.get("name") or ""), next((inner[key] for key in ARGUMENTS if key in inner), None)


def tool_called(text: str) -> str:
    """The tool that a call names, in any provider's format; its kind where it has no name, empty where neither."""
    call = _object(text)
    inner = next((call[key] for key in WRAPS if isinstance(call.get(key), dict)), call)
    return str(inner.get("name") or call.get("type") or "")


def named_in(text: str) -> str:
    """The tool of a call that says its name beside its arguments in a form of its own; empty of any other text."""
    call = _object(text)
    return str(call.get("name") or "") if call.get("type") == NAMED else ""


def arguments_in(text: str) -> str:
    """The arguments in a call's text, without the text around them; the whole text where it is no call."""
    call = _object(text)
    inner = next((call[key] for key in WRAPS if isinstance(call.get(key), dict)), call)
    given = next((inner[key] for key in ARGUMENTS if key in inner), text)
    return given if isinstance(given, str) else dumps(given)


def object_of(given: Any) -> dict[str, Any]:
    """Arguments as the object they are, or as one that holds their text: providers take nothing else."""
    found = _object(given)
    text = "" if given is None else str(given)
    return found if found or text.strip() in ("", "{}") else {"text": text}


def tool_name(text: str) -> str:
    """A tool's name as every provider takes it."""
    return UNFIT.sub("_", text)[:64] or "tool"


def _object(given: Any) -> dict[str, Any]:
    try:
        # What was given as a value is read back too: it may hold what JSON does not know.
        value = loads(given if isinstance(given, str) else dumps(given))
    except (TypeError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
