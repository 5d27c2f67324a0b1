"""A host's function as it is called for a model: timed, with the memory, and answered with all its effects or none."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from vmstore.core.mutation import ToolRun
from vmstore.core.page import Role
from vmstore.core.text.skeleton import dumps
from vmstore.core.text.tool_outcome import ToolOutcome
from vmstore.errors import RefusedError
from vmstore.live import messages
from vmstore.store.live.driver import ANSWERING, FailedCall
from vmstore.store.live.tool_memory import ToolHost, ToolMemory
from vmstore.store.work.session_work import shortened
from vmstore.store.work.tool import CONTEXT_PARAMETER, TAGS, ToolResult

_RUNNING: contextvars.ContextVar[frozenset[str]] = contextvars.ContextVar("RUNNING", default=frozenset())
"""The tools of a session whose functions are under way here."""


class ToolEnd:
    """How a function ended: its value or error, how long it ran, and what it is to write."""

    def __init__(self, value: Any, duration_us: int, memory: ToolMemory, tags: Sequence[str] = ()) -> None:
        self.value = value.value if isinstance(value, ToolResult) else value
        self.stated = value if isinstance(value, ToolResult) else None
        self.duration_us = duration_us
        self.memory = memory
        self.tags = tags

    @property
    def writes(self) -> bool:
        """Whether it is to write anything that could be refused."""
        return self.memory.writes or self.stated is not None

    def refused(self, error: Exception) -> ToolEnd:
        """The same call as one that failed and writes nothing."""
        self.memory.drop()
        return ToolEnd(FailedCall(error), self.duration_us, self.memory, self.tags)


class HostTool:
    """One function of the host's."""

    def __init__(self, session: ToolHost, name: str, function: Callable[..., Any]) -> None:
        self._session = session
        self.name = name
        self.function = function

    def __call__(self, **given: Any) -> ToolEnd:
        """Calls it, with the memory where it asks for that; what it raises is how it ended."""
        began = self._session._ns.clock.now()
        token, memory = self.begin(given)
        try:
            value = self.function(**given)
        except Exception as error:
            value = FailedCall(error)
        finally:
            self.leave(token)
        return self.end(value, began, memory)

    def begin(self, given: dict[str, Any]) -> tuple[contextvars.Token[frozenset[str]], ToolMemory]:
        """Adds the memory to the arguments; RefusedError where the tool runs here already."""
        running, name = _RUNNING.get(), f"{self._session.name}/{self.name}"
        if name in running:
            raise RefusedError(
                f"{self.name!r} calls itself through its session; call the function, or return what it needs",
                code="tool-recurses",
            )
        parameter = getattr(self.function, CONTEXT_PARAMETER, None)
        memory = ToolMemory(self._session, self.name, ANSWERING.get("call"), is_asked=parameter is not None)
        if parameter is not None:
            given[parameter] = memory
        return _RUNNING.set(running | {name}), memory

    @staticmethod
    def leave(token: contextvars.Token[frozenset[str]]) -> None:
        """Notes that the tool runs no more."""
        _RUNNING.reset(token)

    def end(self, value: Any, began: int, memory: ToolMemory) -> ToolEnd:
        """How the call ended."""
        memory.end()
        if isinstance(value, FailedCall):
            memory.drop()
        duration = max(0, self._session._ns.clock.now() - began)
        return ToolEnd(value, duration, memory, getattr(self.function, TAGS, ()))


class HostTools(Mapping[str, Any]):
    """The functions of a run by name, each called as a HostTool."""

    def __init__(self, session: ToolHost, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._session = session
        self.functions = functions

    def __getitem__(self, name: str) -> HostTool:
        return HostTool(self._session, name, self.functions[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)


def answer(act: Any, call_id: str, text: str, tool: str, end: ToolEnd | None) -> None:
    """Logs what a tool answers, and of a host's function what it did beside that."""
    logged = messages.tool(act, call_id, text, tool)
    if end is None:
        return
    call = act.spoken.calls[call_id]
    touched = end.memory.apply(act, logged.pages, end.stated)
    failed = end.value if isinstance(end.value, FailedCall) else None
    act.tell(
        ToolRun(
            call,
            int(ToolOutcome.OK if failed is None else ToolOutcome.ERROR),
            logged.pages[0] if logged.pages else 0,
            end.duration_us,
            None if failed is None else act.cell(shortened(failed.said)),
            _reasoning(act, call),
            touched.read,
            touched.created,
            touched.modified,
            act.cell(dumps(list(end.tags))) if end.tags else None,
        )
    )


def _reasoning(act: Any, call: int) -> int:
    """The last page of the model's before a call in its message: why it was made; 0 where there is none."""
    message = act.spoken.messages.get(act.state.pages[call].message)
    calls = frozenset(act.spoken.calls.values())
    if message is None or message.role is not Role.ASSISTANT:
        return 0
    before = [page for page in message.parts if page < call and page not in calls]
    return before[-1] if before else 0
