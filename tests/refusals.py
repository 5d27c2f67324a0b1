"""Refusals by their code: what a test asks of an error, so that its words may change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from vmstore.errors import RefusedError, VmstoreError


@contextmanager
def refused(code: str, kind: type[VmstoreError] = RefusedError) -> Iterator[None]:
    """Holds where an error of a kind is raised that has this code."""
    with pytest.raises(kind) as caught:
        yield
    assert caught.value.code == code, f"{caught.value} has the code {caught.value.code!r}, not {code!r}"
