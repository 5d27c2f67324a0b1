"""Figures in the text format that Prometheus scrapes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class PrometheusFigure(NamedTuple):
    """One figure: its name, whether it only grows, what it is, and its values by their labels."""

    name: str
    grows: bool
    about: str
    values: Mapping[str, float]
    """By the labels as text, `status="ok"`; one without labels stands under ""."""


class Buckets:
    """How often something was measured, by the smallest bound that it does not exceed, and the sum of it all."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)  # the last is of what exceeds every bound
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Counts one measurement."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class PrometheusHistogram(NamedTuple):
    """One histogram: its name, what it is, and its buckets by their labels."""

    name: str
    about: str
    values: Mapping[str, Buckets]


def label(name: str, value: str) -> str:
    """A label as text, with what would end it escaped."""
    return name + '="' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def labelled(labels: str, figures: Iterable[PrometheusFigure]) -> Iterator[PrometheusFigure]:
    """The figures with labels before those that each value has."""
    for figure in figures:
        yield figure._replace(values={_joined(labels, own): value for own, value in figure.values.items()})


def merged(figures: Iterable[PrometheusFigure]) -> list[PrometheusFigure]:
    """Figures of one name as one: the format has each name once."""
    found: dict[str, PrometheusFigure] = {}
    for figure in figures:
        before = found.get(figure.name)
        found[figure.name] = figure if before is None else before._replace(values={**before.values, **figure.values})
    return list(found.values())


def exposition(metrics: Iterable[PrometheusFigure], histograms: Iterable[PrometheusHistogram] = ()) -> str:
    """The figures, each with its help and its type; one that grows ends in `_total`."""
    lines = []
    for metric in metrics:
        name = f"{metric.name}_total" if metric.grows else metric.name
        lines += [f"# HELP {name} {metric.about}", f"# TYPE {name} {'counter' if metric.grows else 'gauge'}"]
        lines += [
            f"{name}{{{labels}}} {value}" if labels else f"{name} {value}" for labels, value in metric.values.items()
        ]
    for histogram in histograms:
        lines += [f"# HELP {histogram.name} {histogram.about}", f"# TYPE {histogram.name} histogram"]
        for labels, buckets in histogram.values.items():
            lines += _bucket_lines(histogram.name, labels, buckets)
    return "\n".join(lines) + "\n"


def _bucket_lines(name: str, labels: str, buckets: Buckets) -> Iterator[str]:
    """The lines of one histogram: the format counts in each bucket what lies in the smaller ones too."""
    total = 0
    for bound, count in zip([*map(str, buckets.bounds), "+Inf"], buckets.counts, strict=True):
        total += count
        yield f"{name}_bucket{{{_joined(labels, label('le', bound))}}} {total}"
    shown = f"{{{labels}}}" if labels else ""
    yield f"{name}_sum{shown} {buckets.sum}"
    yield f"{name}_count{shown} {total}"


def _joined(*labels: str) -> str:
    return ",".join(filter(None, labels))
