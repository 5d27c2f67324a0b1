"""What every test may ask for: real data, a place for a store, and how hard hypothesis tries."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

CHECKOUT = Path(__file__).resolve().parent.parent
DATA = CHECKOUT.parent / "shared" / "data"

# Shared machines stall, so no example has a deadline and slow drawing is no fault.
# "ci" draws the same examples every time; "long" is for `pytest --hypothesis-profile=long`.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("ci", PATIENT, max_examples=60, derandomize=True, database=None)
settings.register_profile("long", PATIENT, max_examples=2000)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of recorded sessions beside the checkout; it is never committed."""
    if not DATA.is_dir():
        pytest.skip(f"the recorded sessions are not here: no folder {DATA}")
    return DATA


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """Where a test may make its store; nothing is there yet."""
    return tmp_path / "agent.vms"
