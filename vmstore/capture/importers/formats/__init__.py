"""The readers of session files: each knows one format, and nothing of the store.

`read` tells the format from a file's content, never from its name.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from vmstore.capture.importers.formats import claude_code, codex, letta, locomo, otlp, pi, swe_agent, tau_bench
from vmstore.capture.importers.formats.chat_files import read_messages
from vmstore.capture.importers.formats.detect import FORMATS as SHAPED
from vmstore.capture.importers.formats.detect import is_written
from vmstore.capture.importers.formats.jsonl import JsonLine, SourceFile, open_source
from vmstore.capture.steps import ParsedSource
from vmstore.errors import InputError
from vmstore.providers import Shape
from vmstore.providers.message import json_bytes

__all__ = ["FORMATS", "read"]


class _Reader(NamedTuple):
    recognises: Callable[[SourceFile], bool]
    read: Callable[[SourceFile], ParsedSource]


# In the order they are tried: what tells a format apart stands before what many could hold.
READERS = {
    "pi": _Reader(pi.recognises, pi.read_pi),
    "claude-code": _Reader(claude_code.recognises, claude_code.read_claude_code),
    "codex": _Reader(codex.recognises, codex.read_codex),
    "swe-agent": _Reader(swe_agent.recognises, swe_agent.read_swe_agent),
    "tau-bench": _Reader(tau_bench.recognises, tau_bench.read_tau_bench),
    "letta": _Reader(letta.recognises, letta.read_letta),
    "locomo": _Reader(locomo.recognises, locomo.read_locomo),
    "otlp": _Reader(otlp.recognises, otlp.read_otlp),
}
# Chat last: its messages are the plainest.
for shape in (Shape.RESPONSES, Shape.ANTHROPIC, Shape.GEMINI, Shape.CHAT):
    READERS[SHAPED[shape]] = _Reader(partial(is_written, shape), partial(read_messages, shape))
FORMATS: tuple[str, ...] = tuple(READERS)


def read(path: Path, format: str | None = None) -> ParsedSource:
    """The sessions in a file, its format detected from its content unless given."""
    if format is not None and format not in READERS:
        raise InputError(f"unknown format {format!r}; the formats are {', '.join(FORMATS)}", code="no-format")
    source = open_source(path)
    if isinstance(source.document, list):
        lined = _as_lines(source)
        source = lined if any(READERS[name].recognises(lined) for name in LINED) else source
    found = next((name for name, reader in READERS.items() if reader.recognises(source)), None)
    if found is None:
        raise InputError(
            f"{path}: no known format recognised; seen: {_seen(source)}; the formats are {', '.join(FORMATS)}",
            code="unrecognised-format",
        )
    if format is not None and not READERS[format].recognises(source):
        article = "an" if found[0] in "aeiou" else "a"
        raise InputError(
            f"{path} is {article} {found} file, not {format}; leave the format out or name that one",
            code="other-format",
        )
    return READERS[format or found].read(source)


LINED = ("pi", "claude-code", "codex", "otlp")  # whose files are records, a line each


def _as_lines(source: SourceFile) -> SourceFile:
    """A JSON list of records as the lines they were collected from."""
    lines = [JsonLine(number, json_bytes(value), value) for number, value in enumerate(source.document, 1)]
    return SourceFile(path=source.path, lines=lines)


def _seen(source: SourceFile) -> str:
    """Describes a file, for the error that no format recognised it."""
    value: Any = source.document
    if value is None:
        values = [line.value for line in source.lines if line.problem is None]
        if not values:
            return _broken(source.path.read_bytes())
        value = next((v for v in values if isinstance(v, dict)), values[0])
        return f"{len(values)} JSON lines, among them {_kind(value)}"
    return _kind(value)


def _broken(data: bytes) -> str:
    """Text that is no JSON, and where it breaks if it begins as some."""
    if not data.lstrip().startswith((b"{", b"[")):
        return "text that is not JSON"
    try:
        json.loads(data.decode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        return f"JSON that is broken at line {error.lineno}, column {error.colno} ({error.msg})"
    except RecursionError:
        pass
    return "text that is not JSON"


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        keys = [str(key)[:40] for key in list(value)[:6]]
        return f"an object with the keys {', '.join(keys)}" if keys else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}, first {_kind(value[0])}" if value else "an empty list"
    return f"a JSON {type(value).__name__}"
