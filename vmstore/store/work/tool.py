"""Functions as tools that know the memory: the decorator, what one gives back, and what it declares to need."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import msgspec

from vmstore.errors import InputError
from vmstore.work.cost import NOTHING, ToolNeed, need

F = TypeVar("F", bound=Callable[..., Any])
CONTEXT = "ctx"
CONTEXT_PARAMETER, NEED, TAGS = "context_parameter", "tool_need", "tool_tags"
"""The attributes of a decorated function; `vmstore.vm.protocol.functions` leaves the first out of its schema."""


class ToolResult(msgspec.Struct, frozen=True):
    """A tool's answer and its effects; pages that it worked on through its context are added by themselves."""

    value: Any
    pages_created: Sequence[str] = ()
    pages_read: Sequence[str] = ()
    pages_modified: Sequence[str] = ()


@overload
def tool(function: F) -> F: ...
@overload
def tool(*, needs: str = "", tags: Sequence[str] = ()) -> Callable[[F], F]: ...
def tool(function: Any = None, *, needs: str = "", tags: Sequence[str] = ()) -> Any:
    """Makes a function a tool whose parameter `ctx` is the memory: `@tool`, or `@tool(needs="10K tokens")`.

    The model is not asked for `ctx`. `needs` says what the tool takes of a prompt ("10K tokens", "creates large
    pages"), `tags` are those of its calls. InputError where it has no such parameter, or needs nothing that is known.
    """

    def made(of: F) -> F:
        parameters = inspect.signature(of).parameters
        if CONTEXT not in parameters or parameters[CONTEXT].kind is inspect.Parameter.POSITIONAL_ONLY:
            name = getattr(of, "__name__", repr(of))
            raise InputError(f"tool {name!r} has no parameter {CONTEXT!r}; add one, or pass it without the decorator")
        setattr(of, CONTEXT_PARAMETER, CONTEXT)
        setattr(of, NEED, need(needs) if needs else NOTHING)
        setattr(of, TAGS, tuple(tags))
        return of

    return made if function is None else made(function)


def need_of(function: Any) -> ToolNeed:
    """The need that a function declared; nothing where it declared none."""
    declared = getattr(function, NEED, NOTHING)
    return declared if isinstance(declared, ToolNeed) else NOTHING
