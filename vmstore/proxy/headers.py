"""Headers of a request on its way: which go on, which are the proxy's own, which are keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import parse_qsl

from multidict import CIMultiDict

from vmstore.proxy.bodies import READABLE

SESSION = "x-vmstore-session"
OURS = "x-vmstore-"
HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
     "transfer-encoding", "upgrade", "expect", "http2-settings")
)  # fmt: skip
KEYS = ("authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie")
KEY_PARAMETERS = ("key", "api_key", "apikey", "api-key", "access_token", "token")
SECRET_CHARS_MIN = 16  # shorter ones stand for no key, and would be cut out of words

RawHeaders = Sequence[tuple[bytes, bytes]]


def passed_on(headers: RawHeaders, *, to_upstream: bool) -> CIMultiDict[str]:
    """The headers that go on, as they were written and in their order; the proxy's own and the hop's do not."""
    decoded = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
    hop = set(HOP_BY_HOP)
    for name, value in decoded:
        if name.lower() == "connection":
            hop.update(part.strip().lower() for part in value.split(","))
    passed: CIMultiDict[str] = CIMultiDict()
    for name, value in decoded:
        small = name.lower()
        if small in hop or (to_upstream and (small == "host" or small.startswith(OURS))):
            continue
        passed.add(name, _readable(value) if to_upstream and small == "accept-encoding" else value)
    return passed


def _readable(accepted: str) -> str:
    """The accepted encodings that can also be recorded; `identity` where there is none of them."""
    parts = [part.strip() for part in accepted.split(",")]
    return ", ".join(part for part in parts if part.partition(";")[0].strip().lower() in READABLE) or "identity"


def secrets_of(headers: Mapping[str, str], query: str) -> list[str]:
    """The keys that a request carries in its headers and in its address; these are never recorded."""
    values: list[str] = []
    for name in KEYS:
        values += _tokens(headers.get(name, ""))
    values += [value for name, value in parse_qsl(query) if name.lower() in KEY_PARAMETERS]
    return sorted({value for value in values if len(value) >= SECRET_CHARS_MIN}, key=len, reverse=True)


def _tokens(value: str) -> Iterable[str]:
    """A header's value, what follows its scheme, and the value of each cookie."""
    yield value.strip()
    yield value.partition(" ")[2].strip()
    for part in value.split(";"):
        yield part.partition("=")[2].strip()
