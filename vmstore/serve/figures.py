"""Counts that a server keeps of itself, for Prometheus: questions and their seconds, refusals by code, its process."""

from __future__ import annotations

import resource
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from vmstore import __version__
from vmstore.core.text.prometheus import Buckets, PrometheusFigure, PrometheusHistogram, exposition, label, merged
from vmstore.debug.http_errors import HttpError
from vmstore.errors import VmstoreError

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
NOBODY = ""  # the namespace of a refusal that came before one was known


class ServerFigures:
    """The counts of one server; they are written and read in its event loop alone."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, str], Buckets] = {}  # by namespace and kind of question
        self._refused: Counter[tuple[str, str]] = Counter()  # by namespace and code

    def asked(self, namespace: str, kind: str, seconds: float) -> None:
        """Counts a question that was answered or refused, and how long it took."""
        self._seconds.setdefault((namespace, kind), Buckets(BOUNDS_S)).add(seconds)

    def refused(self, namespace: str, error: Exception) -> None:
        """Counts an error that was answered, by its code."""
        self._refused[namespace, code_of(error)] += 1

    def text(self, about: Iterable[PrometheusFigure], reaches: Callable[[str], bool]) -> str:
        """All figures as Prometheus scrapes them: those handed in, and the counts of namespaces that one may see."""
        refused = {
            f"{label('namespace', name)},{label('code', code)}": float(count)
            for (name, code), count in self._refused.items()
            if name == NOBODY or reaches(name)
        }
        seconds = {
            f"{label('namespace', name)},{label('kind', kind)}": buckets
            for (name, kind), buckets in self._seconds.items()
            if reaches(name)
        }
        about_errors = PrometheusFigure("vmstore_serve_errors", True, "refusals and errors, by their code", refused)
        about_seconds = PrometheusHistogram("vmstore_serve_seconds", "seconds that questions took", seconds)
        return exposition([*_process(), *merged(about), about_errors], [about_seconds])


def code_of(error: Exception) -> str:
    """The code by which an error is counted."""
    if isinstance(error, VmstoreError):
        return error.code
    return f"http-{error.status}" if isinstance(error, HttpError) else "internal"


def _process() -> Iterator[PrometheusFigure]:
    version = {label("version", __version__): 1.0}
    yield PrometheusFigure("vmstore_build_info", False, "the version at work", version)
    yield PrometheusFigure(
        "process_resident_memory_bytes", False, "memory of the process that is in RAM", {"": _resident_bytes()}
    )


def _resident_bytes() -> int:
    """Bytes that the process holds in RAM now; where no system tells, the most that it ever held."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most << 10
