"""What each SDK sends, however it is asked, is what the store holds: the SDK's own bytes, as a server received them."""

from __future__ import annotations

import importlib
import importlib.util

import pytest

from tests.sdk.scenarios import SCENARIOS, play

PACKAGES = {
    "openai": ("tests.sdk.openai_scenarios",),
    "anthropic": ("tests.sdk.anthropic_scenarios",),
}

for package, modules in PACKAGES.items():
    if importlib.util.find_spec(package) is not None:
        for module in modules:
            importlib.import_module(module)


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_a_scenario_is_recorded_as_it_was_sent(name: str) -> None:
    """Each request is recorded equal to what the server received, each answer equal to what it sent."""
    play(SCENARIOS[name])
