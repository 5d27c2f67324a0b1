"""The web application: the page's files and the answers, each at its address."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar
from urllib.parse import quote

import apsw
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from vmstore.core.text.prometheus import CONTENT_TYPE
from vmstore.debug.api import DebugApi
from vmstore.debug.assets import Assets
from vmstore.debug.guard import App, Guard, ServerAddress
from vmstore.debug.http_errors import HttpError, refused
from vmstore.debug.json_bytes import encoded
from vmstore.debug.overview import metrics
from vmstore.debug.params import QueryParams
from vmstore.debug.sse import grown
from vmstore.errors import VmstoreError
from vmstore.store.store import Store

JSON = "application/json"
PACKED_BYTES_MIN = 1 << 10
PACKED_LEVEL = 5
PACKED_MAX = 16  # answers kept packed
SLOW_MAX = 16  # questions that may take long at once, of the 40 threads that answer
LOOK_S = 0.25  # between two looks at whether somebody still waits
T = TypeVar("T")


def application(
    store: Store, answers: DebugApi, assets: Assets, door: ServerAddress, stopped: Callable[[], bool]
) -> App:
    """The application behind its guard; `stopped` says when listeners are to be let go."""
    return Guard(pages(store, answers, assets, stopped, SlowAnswers()), door, assets.policy)


def pages(
    store: Store,
    answers: DebugApi,
    assets: Assets,
    stopped: Callable[[], bool],
    slow: SlowAnswers,
    on_refusal: Callable[[Exception], None] = lambda error: None,
) -> Starlette:
    """The application without a guard; `on_refusal` is told of each error that is answered."""

    async def answered(request: Request) -> Response:
        answer = answers.table.get(request.scope["path"])
        if answer is None:
            raise _nothing(request)
        asked = QueryParams(request.query_params)
        return await slow.answered(request, asked, lambda: _packed(request, answer(asked), JSON))

    async def export(request: Request) -> Response:
        asked = QueryParams(request.query_params)
        made = await slow.answered(request, asked, lambda: answers.export(asked))
        return Response(made.content, media_type="text/html; charset=utf-8", headers=_saved(made.session))

    async def asset(request: Request) -> Response:
        found = assets.files.get(request.scope["path"])
        if found is None:
            raise _nothing(request)
        return _packed(request, found.content, found.type)

    async def live(request: Request) -> Response:
        return StreamingResponse(grown(store, stopped, answers.shown), media_type="text/event-stream")

    async def figures(request: Request) -> Response:
        return Response(await run_in_threadpool(metrics, store), headers={"content-type": CONTENT_TYPE})

    async def failed(_: Request, error: Exception) -> Response:
        """Reports a refusal with its remedy; an error of our own making is named, and its traceback logged."""
        on_refusal(error)
        status, reason = refused(error)
        return Response(encoded(await run_in_threadpool(answers.shown, reason)), status, media_type=JSON)

    routes = [
        Route("/api/live", live, methods=["GET"]),
        Route("/api/export", export, methods=["GET"]),
        Route("/metrics", figures, methods=["GET"]),
        Route("/api/{rest:path}", answered, methods=["GET"]),
        Route("/{rest:path}", asset, methods=["GET"]),
    ]
    handlers = dict.fromkeys((HttpError, VmstoreError, OSError, apsw.Error, Exception), failed)
    return Starlette(routes=routes, exception_handlers=handlers)


class SlowAnswers:
    """Answers that may take long: so many at once that others are answered beside them, and none for who left."""

    def __init__(self) -> None:
        self._under_way = 0

    async def answered(self, request: Request, asked: QueryParams, make: Callable[[], T]) -> T:
        """What `make` gives, which is made in another thread; TurnedAwayError where too many wait already."""
        if not asked.slow:
            return await run_in_threadpool(make)
        if self._under_way >= SLOW_MAX:
            raise HttpError(
                429, f"{SLOW_MAX} questions that take long are being answered", "wait for one of them, then ask again"
            )
        self._under_way += 1
        work = asyncio.ensure_future(run_in_threadpool(make))
        work.add_done_callback(self._ended)
        try:
            while not (await asyncio.wait({work}, timeout=LOOK_S))[0]:
                if await request.is_disconnected():
                    asked.leave()
            return work.result()
        except asyncio.CancelledError:
            asked.leave()
            raise

    def _ended(self, _: object) -> None:
        self._under_way -= 1


def _saved(session: str) -> dict[str, str]:
    """Has a browser save an answer under a session's name; signs that no header holds are left to the second form."""
    return {
        "content-disposition": f"attachment; filename=\"session.html\"; filename*=UTF-8''{quote(session, safe='')}.html"
    }


def _nothing(request: Request) -> HttpError:
    path: str = request.scope["path"]
    return HttpError(404, f"there is nothing at {path[:80]!r}", "the page is at /")


def _packed(request: Request, content: bytes, type: str) -> Response:
    """An answer, packed where that is worth it and the asker can read it."""
    headers = {"vary": "accept-encoding"}
    if len(content) >= PACKED_BYTES_MIN and "gzip" in request.headers.get("accept-encoding", ""):
        content = _gzipped(content)
        headers["content-encoding"] = "gzip"
    return Response(content, media_type=type, headers=headers)


@lru_cache(PACKED_MAX)
def _gzipped(content: bytes) -> bytes:
    """Content packed; a film is kept as bytes while its session stands still, and asked for again and again."""
    return gzip.compress(content, PACKED_LEVEL, mtime=0)
