"""Refusals by their code: what a test asks of an error, so that its words may change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from vmstore.errors import RefusedError, VmstoreError


@contextmanager
def refused(
    code: str, kind: type[VmstoreError] = RefusedError, *names: str
) -> Iterator[pytest.ExceptionInfo[VmstoreError]]:
    """Holds where an error of a kind is raised that has this code, and whose text has these names and numbers."""
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.code == code, f"{caught.value} has the code {caught.value.code!r}, not {code!r}"
    missing = [name for name in names if name not in str(caught.value)]
    assert not missing, f"{caught.value} does not name {', '.join(missing)}"
