"""The settings of a port: where its requests go, and where they are recorded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from vmstore.core.redaction import policy_of
from vmstore.errors import InputError

PORT = 5757
PROVIDERS = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
SETTINGS = ("session", "redact", "namespace", "markers", "window", "rounds")
WINDOW_TOKENS_MIN, WINDOW_TOKENS_MAX = 1_000, 10_000_000
ROUNDS_MAX = 10
GEMINI_PATH = re.compile(r"^/v1(?:alpha|beta)\b|/models/[^/]+:\w+$")


class PortSettings(msgspec.Struct, frozen=True):
    """One port: where each provider's requests go, and a session, redaction and namespace where it has its own.

    `window` are the tokens that a request may take where the memory is to see to that, `rounds` how often a model
    may ask the memory within one answer.
    """

    port: int
    upstreams: dict[str, str]  # by provider
    session: str | None = None
    redact: str | None = None
    namespace: str | None = None
    markers: bool = False  # whether answers carry the session of their conversation
    window: int | None = None
    rounds: int = ROUNDS_MAX

    def upstream_of(self, path: str, query: str, headers: Mapping[str, str]) -> str:
        """The address that a request goes to: scheme, host and the path before its own."""
        return self.upstreams[provider_of(path, query, headers)]


def proxy_before(upstream: str) -> str | None:
    """The proxy that the environment names for an upstream (HTTPS_PROXY, NO_PROXY and the like)."""
    parts = urlsplit(upstream)
    if not parts.hostname or proxy_bypass(parts.netloc):
        return None
    return getproxies().get(parts.scheme)


class UpstreamTarget(NamedTuple):
    """An upstream as it was given: the provider it stands for (None: for all), and its address."""

    provider: str | None
    url: str


def provider_of(path: str, query: str, headers: Mapping[str, str]) -> str:
    """The provider whose API a request speaks, by its path and the headers that only one of them has."""
    if GEMINI_PATH.search(path) or "x-goog-api-key" in headers or any(name == "key" for name, _ in parse_qsl(query)):
        return "gemini"
    if (
        "anthropic-version" in headers
        or "x-api-key" in headers
        or path.rstrip("/").endswith(("/messages", "/messages/count_tokens"))
    ):
        return "anthropic"
    return "openai"


def upstreams_of(given: Sequence[str]) -> dict[str, str]:
    """The address for each provider: the published ones, but for those given as URL or PROVIDER=URL."""
    addresses = dict(PROVIDERS)
    for text in given:
        provider, url = _target(text)
        addresses.update(dict.fromkeys(PROVIDERS, url) if provider is None else {provider: url})
    return addresses


def port_settings(text: str, upstreams: Mapping[str, str], *, markers: bool = False) -> PortSettings:
    """A port as it is given: N, or N=UPSTREAM, and after commas its settings, as in `8001=anthropic,redact=mask`."""
    first, *settings = text.split(",")
    number, _, target = first.partition("=")
    if not number.isdecimal() or int(number) > 65_535:
        raise InputError(
            f"{number!r} is no port from 0 to 65535; write --port 8001 or --port 8001=anthropic", code="not-a-port"
        )
    addresses = dict(upstreams)
    if target in PROVIDERS:
        addresses = dict.fromkeys(PROVIDERS, upstreams[target])
    elif target:
        addresses = dict.fromkeys(PROVIDERS, _address(target))
    values = dict(setting.partition("=")[::2] for setting in settings)
    if unknown := [name for name in values if name not in SETTINGS]:
        raise InputError(
            f"a port has no setting {unknown[0]!r}; there are {', '.join(SETTINGS)}", code="no-port-setting"
        )
    if empty := [name for name, value in values.items() if not value]:
        raise InputError(
            f"the setting {empty[0]} of port {number} says nothing; write {empty[0]}=VALUE", code="no-port-setting"
        )
    if "redact" in values:
        policy_of(values["redact"])
    own: Any = {"markers": _flag(number, values.pop("markers", "on" if markers else "off"))}
    if "window" in values:
        own["window"] = _number(number, "window", values.pop("window"), WINDOW_TOKENS_MIN, WINDOW_TOKENS_MAX)
    if "rounds" in values:
        own["rounds"] = _number(number, "rounds", values.pop("rounds"), 0, ROUNDS_MAX)
    return PortSettings(int(number), addresses, **{**values, **own})


def _flag(port: str, text: str) -> bool:
    if text not in ("on", "off"):
        raise InputError(f"markers of port {port} are on or off, not {text!r:.40}", code="no-port-setting")
    return text == "on"


def _number(port: str, name: str, text: str, least: int, most: int) -> int:
    given = int(text) if text.isdecimal() and len(text) < 12 else -1
    if not least <= given <= most:
        raise InputError(
            f"{name} of port {port} is a number from {least:,} to {most:,}, not {text!r:.40}", code="no-port-setting"
        )
    return given


def _target(text: str) -> UpstreamTarget:
    provider, separator, url = text.partition("=")
    if separator and "/" not in provider:
        if provider not in PROVIDERS:
            raise InputError(f"{provider!r} is no provider; there are {', '.join(PROVIDERS)}", code="not-an-upstream")
        return UpstreamTarget(provider, _address(url))
    return UpstreamTarget(None, PROVIDERS.get(text) or _address(text))


def _address(url: str) -> str:
    """An upstream's address without a slash at its end."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(
            f"{url!r:.80} is no upstream; pass {', '.join(PROVIDERS)} or an address like http://localhost:11434",
            code="not-an-upstream",
        )
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise InputError(
            "an upstream's address has no query, fragment or password; keys go with each request",
            code="not-an-upstream",
        )
    return url.rstrip("/")
