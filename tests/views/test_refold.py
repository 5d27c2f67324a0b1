"""A view that folds otherwise has another version: a store keeps the rows of each version in a file of its own.

Without a raised version a store that was folded before would keep answering by the rows it has.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.golden.make_views import VIEWS, folded
from vmstore.views.projection import PROJECTORS

GOLDEN = json.loads(VIEWS.read_text(encoding="utf-8"))
AGAIN = "then write the golden file again: PYTHONPATH=. python tests/golden/make_views.py"


@pytest.fixture(scope="module")
def actual() -> dict[str, Any]:
    """The views of the golden logs as they are folded now."""
    return folded()


def test_the_logs_that_are_folded_are_the_same(actual: dict[str, Any]) -> None:
    """What is folded below did not change, so that another digest is of another fold."""
    assert actual["logs"] == GOLDEN["logs"], f"other logs are written: see that no view folds otherwise, {AGAIN}"


@pytest.mark.parametrize("view", [projector.name for projector in PROJECTORS])
def test_a_view_that_folds_otherwise_has_another_version(actual: dict[str, Any], view: str) -> None:
    """The same logs under the same version give the same rows."""
    version = actual["views"][view][0]
    assert actual["views"][view] == GOLDEN["views"].get(view), (
        f"the view {view!r} has other rows: raise its version, which is {version}, and {AGAIN}"
    )
