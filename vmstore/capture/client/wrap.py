"""Wraps an OpenAI or Anthropic client so that every call it makes is recorded.

The wrapped client behaves as the client does; only the few methods that ask a model are looked
at. What they return or raise goes to the caller as it is, and all recording is the recorder's.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from vmstore.capture.client.recorder import Missed, Recorder, Recording
from vmstore.capture.client.underway import Call, Entrance, awaited, passed
from vmstore.core.clock import Stopwatch, SystemClock
from vmstore.core.redaction import policy_of
from vmstore.errors import InputError

Client = TypeVar("Client")
Path = tuple[str, ...]

RESOURCES: frozenset[Path] = frozenset(
    {
        ("chat", "completions"),
        ("responses",),
        ("messages",),
        ("beta", "chat", "completions"),
        ("beta", "responses"),
        ("beta", "messages"),
    }
)
ROUTES = frozenset(path[:n] for path in RESOURCES for n in range(1, len(path) + 1))
VERBS = frozenset({"create", "parse", "stream"})
# Ways to ask a model whose answer we do not see: what is called through them is a gap.
DETOURS = frozenset({"with_raw_response", "with_streaming_response"})
UNSEEN = frozenset({"tool_runner", "connect"})
COPIES = frozenset({"with_options", "copy"})


def wrap(
    client: Client,
    store: str | os.PathLike[str] | Recording = "agent.vms",
    session: Any = None,
    *,
    open_store: Callable[[str], Recording] | None = None,
    clock: Stopwatch | None = None,
    redaction: str | None = None,
) -> Client:
    """The client again, recording its calls; its `vmstore` has `problems`, `flush` and `close`.

    `store` is a path, opened by `open_store` when the first call ends, or an open store;
    `session` is a name, by default made of the provider and the time; its `redaction` is checked now.
    """
    if redaction is not None:
        policy_of(redaction)
    clock = SystemClock() if clock is None else clock
    if session is None:
        session = f"{_provider(client)}-{_stamp(clock.now())}"
    place = os.fspath(store) if isinstance(store, (str, os.PathLike)) else store
    return cast(Client, Wrapped(client, Recorder(place, session, open_store, clock, redaction), ()))


class Wrapped:
    """A client, or one of its resources on the way to a recorded method."""

    __slots__ = ("__weakref__", "_vm_path", "_vm_real", "_vm_recorder")

    def __init__(self, real: Any, recorder: Recorder, path: Path) -> None:
        self._vm_real = real
        self._vm_recorder = recorder
        self._vm_path = path

    @property
    def vmstore(self) -> Recorder:
        """The recorder behind: `session`, `problems`, `flush(timeout)`, `close(timeout)`."""
        return self._vm_recorder

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_vm_"):  # a half-made copy has none of ours yet
            raise AttributeError(name)
        value = getattr(self._vm_real, name)
        try:
            return _dressed(value, self._vm_recorder, self._vm_path, name)
        except Exception as error:
            self._vm_recorder.trouble(error)
            return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Wrapped.__slots__:
            object.__setattr__(self, name, value)
        else:
            setattr(self._vm_real, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._vm_real, name)

    def __dir__(self) -> Iterable[str]:
        return sorted({*dir(self._vm_real), "vmstore"})

    def __repr__(self) -> str:
        return repr(self._vm_real)

    def __enter__(self) -> Any:
        entered = self._vm_real.__enter__()
        return self if entered is self._vm_real else entered

    def __exit__(self, *raised: Any) -> Any:
        return self._vm_real.__exit__(*raised)

    async def __aenter__(self) -> Any:
        entered = await self._vm_real.__aenter__()
        return self if entered is self._vm_real else entered

    async def __aexit__(self, *raised: Any) -> Any:
        return await self._vm_real.__aexit__(*raised)


def _dressed(value: Any, recorder: Recorder, path: Path, name: str) -> Any:
    """What a wrapped object gives out under `name`: mostly the value itself."""
    if not path and name in COPIES:
        return lambda *args, **kwargs: Wrapped(value(*args, **kwargs), recorder, path)
    known = tuple(part for part in path if part not in DETOURS)
    if name in DETOURS or (*known, name) in ROUTES:
        return Wrapped(value, recorder, (*path, name))
    if known in RESOURCES:
        if name in UNSEEN or (name in VERBS and known != path):
            return _gapped(value, recorder, ".".join((*path, name)))
        if name in VERBS:
            return _recorded(value, recorder, name)
    return value


def _recorded(real: Callable[..., Any], recorder: Recorder, verb: str) -> Callable[..., Any]:
    @functools.wraps(real)
    def asked(*args: Any, **kwargs: Any) -> Any:
        call = Call(recorder, args, kwargs, verb)
        try:
            result = real(*args, **kwargs)
        except BaseException as error:
            call.end(None, error)
            raise
        if call.helped and (hasattr(result, "__enter__") or hasattr(result, "__aenter__")):
            return Entrance(result, call)
        return awaited(result, call) if inspect.isawaitable(result) else passed(result, call)

    return asked


def _gapped(real: Callable[..., Any], recorder: Recorder, name: str) -> Callable[..., Any]:
    @functools.wraps(real)
    def asked(*args: Any, **kwargs: Any) -> Any:
        recorder.submit(Missed(recorder.trouble(f"calls through {name} cannot be recorded")))
        return real(*args, **kwargs)

    return asked


def _provider(client: object) -> str:
    package = type(client).__module__.partition(".")[0]
    if package in ("openai", "anthropic"):
        return package
    if hasattr(client, "messages"):
        return "anthropic"
    if hasattr(client, "chat") or hasattr(client, "responses"):
        return "openai"
    raise InputError(f"a {type(client).__name__} is no client that can be wrapped; pass an OpenAI or Anthropic client")


def _stamp(at: int) -> str:
    """A time as part of a name; microseconds, because clients are often made together."""
    seconds, rest = divmod(at, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y%m%d-%H%M%S}-{rest:06d}"
