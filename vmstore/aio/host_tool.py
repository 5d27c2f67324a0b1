"""A host's function as a task calls it for a model, with the memory awaited."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any

from vmstore.aio.session import Session
from vmstore.aio.worker import Worker
from vmstore.store.live.driver import FailedCall
from vmstore.store.live.host_tool import HostTool, HostTools, ToolEnd
from vmstore.store.live.tool_memory import MemoryPage, ToolHost, ToolMemory
from vmstore.store.work.tool import CONTEXT_PARAMETER, ToolResult

Awaits = Callable[..., Awaitable[Any]]


class AsyncToolMemory:
    """The memory as an async tool sees it; see `vmstore.ToolMemory`."""

    def __init__(self, sync: ToolMemory, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def get_page(self, page_id: str | int) -> MemoryPage:
        """See `vmstore.ToolMemory.get_page`."""
        return await self._worker.do(self._sync.get_page, page_id)

    async def search_pages(self, query: str, modality: str | None = None, limit: int = 10) -> list[MemoryPage]:
        """See `vmstore.ToolMemory.search_pages`."""
        return await self._worker.do(self._sync.search_pages, query, modality, limit)

    async def create_page(
        self,
        content: Any,
        modality: str = "text",
        *,
        name: str | None = None,
        importance: float = 0.5,
        tags: Iterable[str] = (),
        mime: str | None = None,
        parent_page_id: str | int | None = None,
        compression_level: int | None = None,
    ) -> MemoryPage:
        """See `vmstore.ToolMemory.create_page`."""
        made = partial(self._sync.create_page, content, modality, name=name, importance=importance, tags=tags)
        form = partial(made, mime=mime, parent_page_id=parent_page_id, compression_level=compression_level)
        return await self._worker.do(form)

    async def update_page(self, page_id: str | int, content: Any) -> MemoryPage:
        """See `vmstore.ToolMemory.update_page`."""
        return await self._worker.do(self._sync.update_page, page_id, content)

    async def annotate_page(self, page_id: str | int, annotation: str) -> None:
        """See `vmstore.ToolMemory.annotate_page`."""
        await self._worker.do(self._sync.annotate_page, page_id, annotation)

    async def link_pages(self, source_id: str | int, target_id: str | int, relation: str) -> None:
        """See `vmstore.ToolMemory.link_pages`."""
        await self._worker.do(self._sync.link_pages, source_id, target_id, relation)


class AsyncHostTool(HostTool):
    """One function of the host's, awaited where it can be."""

    def __init__(
        self, session: ToolHost, name: str, function: Callable[..., Any], worker: Worker, awaits: Awaits
    ) -> None:
        super().__init__(session, name, function)
        self._worker = worker
        self._awaits = awaits

    async def __call__(self, **given: Any) -> ToolEnd:  # type: ignore[override]
        """Calls it, with the memory where it asks for that; what it raises is how it ended."""
        began = self._session._ns.clock.now()
        token, memory = self.begin(given)
        parameter = getattr(self.function, CONTEXT_PARAMETER, None)
        if parameter is not None and inspect.iscoroutinefunction(self.function):
            given[parameter] = AsyncToolMemory(memory, self._worker)
        try:
            value = await self._awaits(partial(self.function, **given))
        except Exception as error:
            value = FailedCall(error)
        finally:
            self.leave(token)
        return self.end(_plain(value), began, memory)


class AsyncHostTools(HostTools):
    """The functions of a run by name, each called as an AsyncHostTool."""

    def __init__(
        self, session: ToolHost, functions: Mapping[str, Callable[..., Any]], worker: Worker, awaits: Awaits
    ) -> None:
        super().__init__(session, functions)
        self._worker = worker
        self._awaits = awaits

    def __getitem__(self, name: str) -> AsyncHostTool:
        return AsyncHostTool(self._session, name, self.functions[name], self._worker, self._awaits)


def _plain(value: Any) -> Any:
    """A value with the session where it is, or holds, the twin of one."""
    if isinstance(value, ToolResult) and isinstance(value.value, Session):
        return ToolResult(value.value._session, value.pages_created, value.pages_read, value.pages_modified)
    return value._session if isinstance(value, Session) else value
