"""Figures in the text format that Prometheus scrapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class PrometheusFigure(NamedTuple):
    """One figure: its name, whether it only grows, what it is, and its values by their labels."""

    name: str
    grows: bool
    about: str
    values: Mapping[str, float]
    """By the labels as text, `status="ok"`; one without labels stands under ""."""


def exposition(metrics: Iterable[PrometheusFigure]) -> str:
    """The figures, each with its help and its type; one that grows ends in `_total`."""
    lines = []
    for metric in metrics:
        name = f"{metric.name}_total" if metric.grows else metric.name
        lines += [f"# HELP {name} {metric.about}", f"# TYPE {name} {'counter' if metric.grows else 'gauge'}"]
        lines += [
            f"{name}{{{labels}}} {value}" if labels else f"{name} {value}" for labels, value in metric.values.items()
        ]
    return "\n".join(lines) + "\n"
