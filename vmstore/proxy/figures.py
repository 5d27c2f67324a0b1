"""The counts of a proxy: for its status and for Prometheus."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

PROBLEMS_MAX = 50

METRICS = {
    "forwarded": ("counter", "requests passed to an upstream"),
    "refused": ("counter", "requests that the proxy itself refused"),
    "unreachable": ("counter", "requests whose upstream could not be reached"),
    "calls": ("counter", "calls to a model among the requests"),
    "recorded": ("counter", "calls that are in the store"),
    "gaps": ("counter", "calls that could not be recorded"),
    "waiting": ("gauge", "calls that ended and are not in the store yet"),
    "open": ("gauge", "calls under way"),
    "waiting_bytes": ("gauge", "bytes on their way to the writer"),
    "writer_restarts": ("counter", "times the writer ended and was started again"),
}


@dataclass
class ProxyFigures:
    """Counts of one proxy, all its ports together; `problems` are its last ones as text."""

    forwarded: int = 0
    refused: int = 0
    unreachable: int = 0
    calls: int = 0
    recorded: int = 0
    gaps: int = 0
    waiting: int = 0
    open: int = 0
    waiting_bytes: int = 0
    writer_restarts: int = 0
    problems: deque[str] = field(default_factory=lambda: deque(maxlen=PROBLEMS_MAX))

    def numbers(self) -> dict[str, int]:
        """Every count by its name."""
        return {name: getattr(self, name) for name in METRICS}

    def prometheus(self) -> str:
        """The counts in the text format of Prometheus."""
        lines = []
        for name, (kind, about) in METRICS.items():
            full = f"vmstore_proxy_{name}" + ("_total" if kind == "counter" else "")
            lines += [f"# HELP {full} {about}", f"# TYPE {full} {kind}", f"{full} {getattr(self, name)}"]
        return "\n".join(lines) + "\n"
