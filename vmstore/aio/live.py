"""The async twin of a live session: events are reported to it, and the kernel's decisions awaited."""

from __future__ import annotations

import contextvars
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, Unpack

import vmstore.store.live.live_session as sync_live
import vmstore.store.session as sync_session
from vmstore.aio.docs import described_by
from vmstore.aio.driver import Streamed, awaited
from vmstore.aio.host_tool import AsyncHostTools
from vmstore.aio.session import Session
from vmstore.aio.worker import Worker
from vmstore.core.aliases import old_keywords_of_methods
from vmstore.core.asof import AsOf, Moment, When
from vmstore.namespace.results import FaultAnswer, SessionInfo
from vmstore.store.live.checkpoints import Checkpoint
from vmstore.store.live.driver import hearing, runnable
from vmstore.store.live.options import LiveOptions
from vmstore.store.live.prompt import Prompt
from vmstore.vm.kernel.keywords import LiveSettings
from vmstore.vm.kernel.settings import KernelSettings, Shape
from vmstore.vm.metrics.report import Measures
from vmstore.vm.protocol.loop import ROUNDS_MAX, RunResult

T = TypeVar("T")


@described_by(sync_live.Live)
@old_keywords_of_methods(at="at_us", latency="latency_us", valid_from="valid_from_us", valid_to="valid_to_us")
class Live(Session):
    """A session with a budget: its memory is managed, and every decision can be asked for its reasons."""

    def __init__(self, session: sync_live.Live, worker: Worker) -> None:
        super().__init__(session, worker)
        self._live = session

    async def user(self, content: Any, *, at_us: int | None = None) -> list[str]:
        """See `vmstore.Live.user`."""
        return await self._worker.do(partial(self._live.user, content, at_us=at_us))

    async def assistant(
        self,
        message: Any,
        *,
        tokens_in: int | None = None,
        tokens_cached: int | None = None,
        tokens_out: int | None = None,
        cost: float | None = None,
        at_us: int | None = None,
    ) -> list[str]:
        """See `vmstore.Live.assistant`."""
        call_it = partial(self._live.assistant, tokens_in=tokens_in, tokens_cached=tokens_cached, tokens_out=tokens_out)
        return await self._worker.do(partial(call_it, message, cost=cost, at_us=at_us))

    async def tool(self, call_id: str, content: Any, *, name: str | None = None, at_us: int | None = None) -> list[str]:
        """See `vmstore.Live.tool`."""
        return await self._worker.do(partial(self._live.tool, call_id, content, name=name, at_us=at_us))

    async def attach(
        self, data: bytes, mime: str, *, name: str | None = None, words: str | None = None, at_us: int | None = None
    ) -> str:
        """See `vmstore.Live.attach`."""
        return await self._worker.do(partial(self._live.attach, data, mime, name=name, words=words, at_us=at_us))

    async def claim(
        self,
        text: str,
        *,
        name: str | None = None,
        sources: Iterable[str | int] = (),
        supersedes: str | int | None = None,
        importance: float = 0.95,
        at_us: int | None = None,
    ) -> str:
        """See `vmstore.Live.claim`."""
        call_it = partial(self._live.claim, text, name=name, sources=sources, supersedes=supersedes)
        return await self._worker.do(partial(call_it, importance=importance, at_us=at_us))

    async def page_fault(
        self, page: str | int, level: int = 0, *, reason: str = "resolve_reference", by_model: bool = False,
        at_us: int | None = None,
    ) -> FaultAnswer:  # fmt: skip
        """See `vmstore.Live.page_fault`."""
        return await self._worker.do(
            partial(self._live.page_fault, page, level, reason=reason, by_model=by_model, at_us=at_us)
        )

    async def pack(self, *, at_us: int | None = None, **settings: Unpack[LiveSettings]) -> Prompt:
        """See `vmstore.Live.pack`."""
        return await self._worker.do(partial(self._live.pack, at_us=at_us, **settings))

    async def run(
        self,
        model_call: Callable[[dict[str, Any]], Any],
        *,
        tools: Mapping[str, Callable[..., Any]] | Sequence[Any] = (),
        shape: Shape | None = None,
        rounds_max: int = ROUNDS_MAX,
        parallel: bool = True,
        on_text: Callable[[str], Any] | None = None,
    ) -> RunResult:
        """See `vmstore.Live.run`; model, tools and `on_text` are awaited where they can be.

        What is no coroutine function is called in a thread of its own. Other tasks use the store meanwhile.
        """
        options: dict[str, Any] = {"shape": shape, "rounds_max": rounds_max, "parallel": parallel}
        hearing(on_text)
        async with self.stream(model_call, tools=tools, **options) as streamed:
            async for text in streamed:
                if on_text is not None and inspect.isawaitable(heard := on_text(text)):
                    await heard
        return streamed.ran

    def stream(
        self,
        model_call: Callable[[dict[str, Any]], Any],
        *,
        tools: Mapping[str, Callable[..., Any]] | Sequence[Any] = (),
        shape: Shape | None = None,
        rounds_max: int = ROUNDS_MAX,
        parallel: bool = True,
    ) -> Streamed:
        """See `vmstore.Live.stream`; what it gives is looped over by `async for`."""
        own = tools if isinstance(tools, Mapping) else {}
        runnable(model_call, tools, rounds_max)
        begin = partial(self._live._rounds, tools, shape, rounds_max)
        called = AsyncHostTools(self._live, own, self._worker, awaited)
        return Streamed(self._worker, begin, model_call, called, parallel=parallel)

    async def developer_message(self) -> str:
        """See `vmstore.Live.developer_message`."""
        return await self._worker.do(lambda: self._live.developer_message)

    async def turn(self, write: Callable[[sync_live.Live], T]) -> T:
        """See `vmstore.Live.turn`; `write` is given the session and acts on it, in the store's thread."""

        def work() -> T:
            with self._live.turn():
                return write(self._live)

        return await self._worker.do(work)

    async def pin(self, page: str | int, *, plan: bool = False, at_us: int | None = None) -> None:
        """See `vmstore.Live.pin`."""
        await self._worker.do(partial(self._live.pin, page, plan=plan, at_us=at_us))

    async def unpin(self, page: str | int, *, at_us: int | None = None) -> None:
        """See `vmstore.Live.unpin`."""
        await self._worker.do(partial(self._live.unpin, page, at_us=at_us))

    async def evict(self, page: str | int, *, at_us: int | None = None) -> None:
        """See `vmstore.Live.evict`."""
        await self._worker.do(partial(self._live.evict, page, at_us=at_us))

    async def compress(self, page: str | int, level: int, *, at_us: int | None = None) -> int:
        """See `vmstore.Live.compress`."""
        return await self._worker.do(partial(self._live.compress, page, level, at_us=at_us))

    async def cite(self, page: str | int, *, at_us: int | None = None) -> None:
        """See `vmstore.Live.cite`."""
        await self._worker.do(partial(self._live.cite, page, at_us=at_us))

    async def recall(self, page: str | int, *, corrected: bool = False, at_us: int | None = None) -> None:
        """See `vmstore.Live.recall`."""
        await self._worker.do(partial(self._live.recall, page, corrected=corrected, at_us=at_us))

    async def mark(self, name: str, pages: Iterable[str | int] | None = None, *, at_us: int | None = None) -> None:
        """See `vmstore.Live.mark`."""
        await self._worker.do(partial(self._live.mark, name, pages, at_us=at_us))

    async def restore(self, name: str, *, at_us: int | None = None) -> list[FaultAnswer]:
        """See `vmstore.Live.restore`."""
        return await self._worker.do(partial(self._live.restore, name, at_us=at_us))

    async def compact(self, *, at_us: int | None = None) -> list[str]:
        """See `vmstore.Live.compact`."""
        return await self._worker.do(partial(self._live.compact, at_us=at_us))

    async def segment(self, title: str = "", *, summary: str | None = None, at_us: int | None = None) -> str:
        """See `vmstore.Live.segment`."""
        return await self._worker.do(partial(self._live.segment, title, summary=summary, at_us=at_us))

    async def configure(self, *, at_us: int | None = None, **settings: Unpack[LiveSettings]) -> KernelSettings:
        """See `vmstore.Live.configure`."""
        return await self._worker.do(partial(self._live.configure, at_us=at_us, **settings))

    async def settings(self) -> KernelSettings:
        """See `vmstore.Live.settings`."""
        return await self._worker.do(lambda: self._live.settings)

    async def stats(self) -> Measures:
        """See `vmstore.Live.stats`."""
        return await self._worker.do(self._live.stats)

    async def update(self, page: str | int, content: str | bytes, *, at_us: int | None = None) -> int:
        """See `vmstore.Live.update`."""
        return await self._worker.do(partial(self._live.update, page, content, at_us=at_us))

    async def link(
        self,
        source: str | int,
        target: str | int,
        kind: str = "related_to",
        *,
        valid_from_us: int | None = None,
        valid_to_us: int | None = None,
        at_us: int | None = None,
    ) -> None:
        """See `vmstore.Live.link`."""
        call_it = partial(self._live.link, source, target, kind, valid_from_us=valid_from_us, valid_to_us=valid_to_us)
        await self._worker.do(partial(call_it, at_us=at_us))

    async def unlink(
        self, source: str | int, target: str | int, kind: str = "related_to", *, at_us: int | None = None
    ) -> None:
        """See `vmstore.Live.unlink`."""
        await self._worker.do(partial(self._live.unlink, source, target, kind, at_us=at_us))

    async def delete(self, page: str | int, *, at_us: int | None = None) -> None:
        """See `vmstore.Live.delete`."""
        await self._worker.do(partial(self._live.delete, page, at_us=at_us))

    async def flush(self, page: str | int | None = None, *, at_us: int | None = None) -> list[str]:
        """See `vmstore.Live.flush`."""
        return await self._worker.do(partial(self._live.flush, page, at_us=at_us))

    async def keep(self, name: str, value: Any, *, at_us: int | None = None) -> str:
        """See `vmstore.Live.keep`."""
        return await self._worker.do(partial(self._live.keep, name, value, at_us=at_us))

    async def kept(self, name: str, at: When | None = None, **moment: Unpack[Moment]) -> Any:
        """See `vmstore.Live.kept`."""
        return await self._worker.do(partial(self._live.kept, name, at, **moment))

    async def values(self, at: When | None = None, **moment: Unpack[Moment]) -> dict[str, Any]:
        """See `vmstore.Live.values`."""
        return await self._worker.do(partial(self._live.values, at, **moment))

    async def checkpoint(self, name: str, *, at_us: int | None = None) -> Checkpoint:
        """See `vmstore.Live.checkpoint`."""
        return await self._worker.do(partial(self._live.checkpoint, name, at_us=at_us))

    async def checkpoints(self) -> list[Checkpoint]:
        """See `vmstore.Live.checkpoints`."""
        return await self._worker.do(self._live.checkpoints)

    async def rewind(self, to: str | AsOf, *, at_us: int | None = None) -> list[FaultAnswer]:
        """See `vmstore.Live.rewind`."""
        return await self._worker.do(partial(self._live.rewind, to, at_us=at_us))

    async def child(self, name: str, *, call: str | None = None, **options: Unpack[LiveOptions]) -> Live:
        """See `vmstore.Live.child`."""
        begin = contextvars.copy_context().run  # the call that is answered is the task's to know
        return Live(await self._worker.do(begin, partial(self._live.child, name, call=call, **options)), self._worker)

    async def children(self) -> list[SessionInfo]:
        """See `vmstore.Live.children`."""
        return await self._worker.do(self._live.children)

    async def join(
        self, child: Live | str, text: str | None = None, *, call: str | None = None, at_us: int | None = None
    ) -> list[str]:
        """See `vmstore.Live.join`."""
        other = child if isinstance(child, str) else child._live
        return await self._worker.do(partial(self._live.join, other, text, call=call, at_us=at_us))

    async def fork(self, name: str, at: When | None = None, **moment: Unpack[Moment]) -> Live:
        """See `vmstore.Live.fork`."""
        return Live(await self._worker.do(self._live.fork, name, at, **moment), self._worker)


def live_twin(session: sync_session.Session, worker: Worker) -> Live:
    """The twin of a session that is live."""
    assert isinstance(session, sync_live.Live), "there are two kinds of sessions"
    return Live(session, worker)
