"""COMPACTIONS: every summary that replaced pages of a prompt, as a statement sees sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from vmstore.core.address import page_name
from vmstore.views.compactions import compactions_at
from vmstore.vmql.relations.relation import ScopedSession


def compactions_of(lanes: Iterable[ScopedSession]) -> Iterator[tuple[Any, ...]]:
    """The rows of COMPACTIONS: each by the session whose pack shows the summary first."""
    for own in lanes:
        name = own.writers()
        for made in compactions_at(own.lane, own.until):
            if made.position > max(own.low, own.since):
                place = (name(made.position), made.call, made.turn, made.position)
                counts = (len(made.left), made.tokens, made.summary, made.summary_tokens, len(made.returned))
                yield (*place, *counts, json.dumps([page_name(page) for page in made.left]))
