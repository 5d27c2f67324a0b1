"""What every test may ask for: real data, a place for a store, and how hard hypothesis tries."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import lanes, recordings

CHECKOUT = Path(__file__).resolve().parent.parent
DATA = CHECKOUT.parent / "shared" / "data"
STAND_INS = "VMSTORE_STAND_INS"  # set, the tests use stand-ins although the recordings are there

lanes.register_profiles()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the choice of a lane, and the command that measures the tests."""
    group = parser.getgroup("vmstore")
    group.addoption("--lane", choices=[*lanes.LANES], default="ci", help="fast: no slow tests; ci: all; nightly: more")
    group.addoption("--time", action="store_true", help=f"write {lanes.TABLE.name} from what each test costs")


def pytest_configure(config: pytest.Config) -> None:
    """Takes the lane that was chosen."""
    config.addinivalue_line("markers", "slow: takes over a second of CPU, as tests/slow.txt says; not in the fast lane")
    config.addinivalue_line("markers", "nightly: a campaign; only in the nightly lane, or when it is named")
    lane = config.getoption("--lane")
    if not config.getoption("--hypothesis-profile", None):
        settings.load_profile(lanes.LANES[lane])
    costs = lanes.table(lanes.TABLE.read_text()) if lanes.TABLE.exists() else {}
    config.pluginmanager.register(lanes.Lane(lane, costs), "vmstore-lane")
    if config.getoption("--time"):
        config.pluginmanager.register(lanes.Meter(), "vmstore-meter")
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(lanes.Record(lanes.TABLE), "vmstore-record")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collects without looking for garbage, and never looks at what was collected again: all of it stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of recorded sessions beside the checkout, which are never committed; without it, of stand-ins."""
    if DATA.is_dir() and not os.environ.get(STAND_INS):
        return DATA
    folder = tmp_path_factory.mktemp("recordings")
    recordings.make(folder)
    return folder


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """Where a test may make its store; nothing is there yet."""
    return tmp_path / "agent.vms"
