"""Hands a store's calls on as spans: to a collector by HTTP as they come, or to a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import msgspec

from vmstore.embedders.http_client import HttpClient
from vmstore.errors import SpanExportError
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.reports import ExportReport
from vmstore.namespace.results import CallInfo, SessionInfo
from vmstore.redact.mask import Mask
from vmstore.store.spans.call_spans import Masking, TracedSession, exported, spans_of
from vmstore.transfer.redacted_export import MaskedCounts
from vmstore.transfer.sessions import SPANS, export_lines
from vmstore.views.projection import Progress
from vmstore.views.selection import Portion

Json = dict[str, Any]
SPANS_MAX = 64  # of one request
REASON_MAX = 200  # characters of what a collector says
PATH = "/v1/traces"
OPEN = "open"
TIMEOUT_S = 10.0


class TracedStore(Protocol):
    """A store whose calls are handed on."""

    _ns: Namespace

    def sessions(self) -> list[SessionInfo]: ...
    def session(self, name: str) -> TracedSession: ...


class SpanExporter:
    """Posts the calls of a store to a collector of OpenTelemetry, as OTLP in JSON, each once.

    `url` is the collector's, as of OTEL_EXPORTER_OTLP_ENDPOINT; `headers` go with each request. What is secret is
    masked unless `redact` is off; without `content` nothing of what was said leaves. SpanExportError where the
    collector cannot be reached or refuses; that is tried again by the next `export`, but for spans that it rejected.
    """

    def __init__(
        self, store: TracedStore, url: str, *, headers: Mapping[str, str] | None = None, content: bool = True,
        redact: bool = True, timeout_s: float = TIMEOUT_S,
    ) -> None:  # fmt: skip
        self._store = store
        self._content = content
        self._mask = Mask() if redact else None
        self._client = HttpClient(url, PATH, SpanExportError, headers=headers, timeout_s=timeout_s)
        self._exported: dict[str, int] = {}  # the last call of each session
        self.posted = 0  # calls so far

    def export(self, sessions: Iterable[str] | None = None) -> int:
        """Posts the calls that ended since it was asked last, of some sessions or of all; how many those were."""
        names = [info.session for info in self._store.sessions()] if sessions is None else list(sessions)
        before = self.posted
        for name in names:
            session = self._store.session(name)
            calls = ended(session, self._exported.get(name, 0))
            for some in batched_calls(calls):
                spans = exported(spans_of(session, some, content=self._content, masked=masking(self._mask)))
                answer = self._client.asked(msgspec.json.encode(spans))
                self._exported[name] = some[-1].call
                self.posted += len(some)
                _check_all_taken(answer)  # what a collector rejects for good is not posted again
        return self.posted - before

    def close(self) -> None:
        """Lets go of the connection to the collector."""
        self._client.close()


def _check_all_taken(answer: bytes) -> None:
    """Raises SpanExportError where a collector took only some spans; it may answer anything else beside its 200."""
    try:
        partly = msgspec.json.decode(answer or b"{}").get("partialSuccess") or {}
        rejected = int(partly.get("rejectedSpans") or 0)
    except (msgspec.DecodeError, AttributeError, ValueError, TypeError):
        return
    if rejected:
        why = str(partly.get("errorMessage") or "it says not why")[:REASON_MAX]
        raise SpanExportError(f"the collector took all but {rejected} spans: {why}", code="taken-in-part")


def export_spans(
    store: TracedStore, out: Path | BinaryIO, portions: Sequence[Portion], progress: Progress | None, *, hide: bool
) -> ExportReport:
    """Writes the calls of portions as spans to a file, without what is secret in them where it is to `hide` that."""
    mask, counts = (Mask(), MaskedCounts()) if hide else (None, None)
    lines = span_lines(store, portions, mask, counts)
    return export_lines(store._ns, out, portions, SPANS, lines, counts, progress)


def span_lines(
    store: TracedStore, portions: Sequence[Portion], mask: Mask | None, counts: MaskedCounts | None
) -> Iterator[bytes]:
    """The calls of sessions, each up to its position, as lines of OTLP in JSON."""
    for portion in portions:
        if portion.asked:
            session = store.session(portion.name)
            calls = [call for call in ended(session, 0) if call.position <= portion.upto]
            for some in batched_calls(calls):
                yield msgspec.json.encode(exported(spans_of(session, some, masked=masking(mask)))) + b"\n"
    if mask is not None and counts is not None:
        counts.counts, counts.values = mask.counts, len(mask.record)


def ended(session: TracedSession, after: int) -> list[CallInfo]:
    """The calls of a session after one; without the last where its answer is still to come."""
    calls = [call for call in session.calls() if call.call > after]
    return calls[:-1] if calls and calls[-1].status == OPEN else calls


def batched_calls(calls: Sequence[CallInfo]) -> Iterator[Sequence[CallInfo]]:
    """Calls in groups that one request takes."""
    for begin in range(0, len(calls), SPANS_MAX):
        yield calls[begin : begin + SPANS_MAX]


def masking(mask: Mask | None) -> Masking | None:
    """The masking of a value."""
    return None if mask is None else lambda value: mask.value(value, "span")
