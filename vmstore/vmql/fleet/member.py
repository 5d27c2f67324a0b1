"""A namespace of a fleet: the columns that tell its rows from those of others, and the engine that answers for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from vmstore.errors import VmstoreError
from vmstore.vmql.execution.engine import QueryEngine
from vmstore.vmql.syntax.errors import QueryError


class FleetMember(NamedTuple):
    """A namespace of a fleet: the columns that tell it from others, and what answers its queries."""

    place: Mapping[str, str]
    engine: QueryEngine

    @property
    def name(self) -> str:
        """Its name in messages."""
        return "namespace " + " of ".join(repr(part) for part in reversed([*self.place.values()]))

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Names the namespace in an error of the store within: a right that was taken back, a log that is damaged."""
        try:
            yield
        except QueryError:
            raise
        except VmstoreError as error:
            error.args = (f"{self.name}: {error}",)
            raise
