"""Clients that record: twins of the ones given, of their own classes, sharing what these share.

An HTTP client's twin has the very state of the other and sends through it; an SDK client's twin
differs from the other in its HTTP client alone. So `isinstance` holds, connections are shared,
and the client that was given stays unrecorded.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

from vmstore.capture.client.call import ASYNC_STREAM, SYNC_STREAM, begun
from vmstore.capture.client.recorder import MissedCall, Recorder
from vmstore.errors import InputError

HTTP_PACKAGES = ("httpx", "httpx2")
SDK_PACKAGES = {"openai": "openai", "anthropic": "anthropic"}
RECORDABLE = "an OpenAI, Anthropic or google-genai client, or an httpx client that one of them uses"
SOCKETS = ("beta", "realtime", "responses")  # resources that talk over websockets, or hold one that does


def provider_of(client: object) -> str:
    """The provider's name of a client; InputError where it is no client that can be recorded."""
    if isinstance(client, type) or hasattr(type(client), "_vm_twin"):
        raise InputError(
            f"{client!r:.80} is {'a class' if isinstance(client, type) else 'recorded already'}; "
            f"wrap {'an instance of it' if isinstance(client, type) else 'the client it was made from'}",
            code="not-an-instance",
        )
    if _is_http(client):
        return "http"
    for kind in type(client).__mro__:
        package = kind.__module__.partition(".")[0]
        if package in SDK_PACKAGES and _is_http(getattr(client, "_client", None)):
            return SDK_PACKAGES[package]
        if kind.__module__.startswith("google.genai") and _is_http(getattr(_api(client), "_httpx_client", None)):
            return "google"
    raise InputError(f"can't wrap {type(client).__name__}: pass {RECORDABLE}", code="not-a-client")


def twin_of_client(client: Any, recorder: Recorder) -> Any:
    """A client like the one given, whose requests the recorder sees."""
    if _is_http(client):
        return _http(client, recorder)
    if _api(client) is not None:
        return _genai(client, recorder)
    twin = _twin(client, _sdk_class(_type(client)))
    twin._client = _http(client._client, recorder)
    for name, value in list(vars(twin).items()):
        if isinstance(getattr(type(client), name, None), cached_property) and hasattr(value, "__dict__"):
            del twin.__dict__[name]  # a resource, bound to the other client: made again when it is asked for
        elif getattr(value, "__dict__", {}).get("_client") is client:
            twin.__dict__[name] = type(value)(twin)
    return twin


def _is_http(client: object) -> bool:
    packages = (kind.__module__.partition(".")[0] for kind in type(client).__mro__)
    return callable(getattr(client, "send", None)) and any(package in HTTP_PACKAGES for package in packages)


def _type(client: object) -> Any:
    return type(client)


def _api(client: object) -> Any:
    return getattr(client, "_api_client", None)


def _twin(client: Any, kind: type[Any]) -> Any:
    """A shallow copy of a class that never closes what it shares; the other stays as long as it does."""
    twin = object.__new__(kind)
    twin.__dict__.update(vars(client))
    twin.__dict__["_vm_other"] = client
    return twin


def _named(base: type[Any], members: dict[str, Any]) -> type[Any]:
    """A subclass that looks like its base; collecting one of its objects closes nothing."""
    about = {"__module__": base.__module__, "__qualname__": base.__qualname__, "__doc__": base.__doc__}
    return type(base.__name__, (base,), {**about, "_vm_twin": True, "__del__": lambda self: None, **members})


# ---- HTTP clients


def _http(client: Any, recorder: Recorder) -> Any:
    twin = object.__new__(_http_class(_type(client)))
    twin.__dict__ = client.__dict__  # one state: open or closed, cookies, limits
    twin._vm_other = client  # which closes itself where it is collected
    twin.vmstore = recorder
    return twin


@cache
def _http_class(base: Any) -> type[Any]:
    send = _async_send if inspect.iscoroutinefunction(base.send) else _sync_send
    return _named(base, {"send": send(base), "__slots__": ("_vm_other", "vmstore")})


def _sync_send(base: type[Any]) -> Callable[..., Any]:
    @functools.wraps(base.send)
    def send(self: Any, request: Any, **options: Any) -> Any:
        call = begun(self.vmstore, request)
        if call is None:
            return base.send(self, request, **options)
        try:
            response = base.send(self, request, **options)
        except BaseException as error:
            call.end(error)
            raise
        return call.passed(response, bool(options.get("stream")), SYNC_STREAM)

    return send


def _async_send(base: type[Any]) -> Callable[..., Any]:
    @functools.wraps(base.send)
    async def send(self: Any, request: Any, **options: Any) -> Any:
        call = begun(self.vmstore, request)
        if call is None:
            return await base.send(self, request, **options)
        try:
            response = await base.send(self, request, **options)
        except BaseException as error:
            call.end(error)
            raise
        return call.passed(response, bool(options.get("stream")), ASYNC_STREAM)

    return send


# ---- clients of OpenAI and Anthropic


@cache
def _sdk_class(base: Any) -> type[Any]:
    vmstore = property(lambda self: self._client.vmstore, doc="The recorder: `problems`, `flush`, `close`.")
    return _named(base, {"vmstore": vmstore, **_sockets(base)})


def _sockets(base: type[Any]) -> dict[str, Any]:
    """The members of a class through which websockets are reached: their traffic is noted as a gap."""
    members: dict[str, Any] = {
        name: _resource(name, base)
        for name in SOCKETS
        if isinstance(getattr(base, name, None), (cached_property, property))
    }
    if callable(connect := getattr(base, "connect", None)):
        members["connect"] = _noted(connect)
    return members


def _resource(name: str, base: type[Any]) -> Any:
    made = getattr(base, name)

    def resource(self: Any) -> Any:
        found = made.__get__(self, base)
        if not hasattr(type(found), "_vm_twin"):
            found.__class__ = _resource_class(_type(found))
        return found

    if isinstance(made, property):
        return property(resource)
    kept = cached_property(resource)
    kept.__set_name__(base, name)
    return kept


@cache
def _resource_class(base: Any) -> type[Any]:
    return _named(base, _sockets(base))


def _noted(connect: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(connect)
    def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder: Recorder = self._client.vmstore
        recorder.submit(MissedCall(recorder.trouble("the traffic of a websocket cannot be recorded"), None))
        return connect(self, *args, **kwargs)

    return noted


# ---- clients of google-genai


def _genai(client: Any, recorder: Recorder) -> Any:
    """A client whose parts, which all hold the one that talks to the API, hold a twin of that."""
    other = client._api_client
    api = _twin(other, _named(type(other), {}))
    api._httpx_client = _http(other._httpx_client, recorder)
    if (sent_by := getattr(other, "_async_httpx_client", None)) is not None:
        api._async_httpx_client = _http(sent_by, recorder)
        api._use_aiohttp = lambda: False  # that one has no place to look at bodies
    twin = _rebound(client, other, api)
    twin.vmstore = recorder
    return twin


def _rebound(part: Any, other: Any, api: Any) -> Any:
    twin = _twin(part, _named(type(part), {}))
    for name, value in vars(part).items():
        if value is other:
            twin.__dict__[name] = api
        elif getattr(value, "__dict__", {}).get("_api_client") is other:
            twin.__dict__[name] = _rebound(value, other, api)
    return twin
