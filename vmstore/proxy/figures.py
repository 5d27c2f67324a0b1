"""The counts of a proxy: for its status and for Prometheus."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from vmstore.core.text.prometheus import PrometheusFigure, exposition

PROBLEMS_MAX = 50

METRICS = {  # by name: whether it only grows, and what it counts
    "forwarded": (True, "requests passed to an upstream"),
    "refused": (True, "requests that the proxy itself refused"),
    "unreachable": (True, "requests whose upstream could not be reached"),
    "managed": (True, "requests that went on as the memory made them"),
    "unmanaged": (True, "requests that went on as they came although a window was asked, because the memory failed"),
    "rounds": (True, "answers of the memory to a model, within one answer to its client"),
    "calls": (True, "calls to a model among the requests"),
    "recorded": (True, "calls that are in the store"),
    "gaps": (True, "calls that could not be recorded"),
    "waiting": (False, "calls that ended and are not in the store yet"),
    "open": (False, "calls under way"),
    "waiting_bytes": (False, "bytes on their way to the writer"),
    "writer_restarts": (True, "times the writer ended and was started again"),
}


@dataclass
class ProxyFigures:
    """Counts of one proxy, all its ports together; `problems` are its last ones as text."""

    forwarded: int = 0
    refused: int = 0
    unreachable: int = 0
    managed: int = 0
    unmanaged: int = 0
    rounds: int = 0
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
        """The counts as Prometheus scrapes them."""
        return exposition(
            PrometheusFigure(f"vmstore_proxy_{name}", grows, about, {"": getattr(self, name)})
            for name, (grows, about) in METRICS.items()
        )
