"""What each SDK sends, however it is asked, is what the store holds: the SDK's own bytes, as a server received them."""

from __future__ import annotations

import importlib
import importlib.util

import pytest

from tests.sdk.scenarios import SCENARIOS, play

PACKAGES = {
    "openai": ("tests.sdk.openai_scenarios",),
    "anthropic": ("tests.sdk.anthropic_scenarios",),
    "httpx_aiohttp": ("tests.sdk.aiohttp_scenarios",),
    "litellm": ("tests.sdk.litellm_scenarios",),
    "langchain_openai": ("tests.sdk.langchain_openai_scenarios",),
    "langchain_anthropic": ("tests.sdk.langchain_anthropic_scenarios",),
    "langgraph": ("tests.sdk.langgraph_scenarios",),
    "instructor": ("tests.sdk.instructor_scenarios",),
    "agents": ("tests.sdk.agents_scenarios",),
    "google.genai": ("tests.sdk.genai_scenarios",),
}


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False


for package, modules in PACKAGES.items():
    if _installed(package):
        for module in modules:
            importlib.import_module(module)


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_a_scenario_is_recorded_as_it_was_sent(name: str) -> None:
    """Each request is recorded equal to what the server received, each answer equal to what it sent."""
    play(SCENARIOS[name])
