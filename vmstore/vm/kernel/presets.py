"""Presets: settings of a live session that go together, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from vmstore.core.text.suggest import suggest
from vmstore.errors import InputError
from vmstore.vm.kernel.keywords import LiveSettings
from vmstore.vm.kernel.settings import KernelSettings, changed

PRESETS: dict[str, LiveSettings] = {
    "default": LiveSettings(l0_tokens_max=128_000),
    "coding": LiveSettings(
        l0_tokens_max=128_000, recall_tools=True, tags="keyword", compaction=True, learning="session"
    ),
    "chat": LiveSettings(l0_tokens_max=32_000, remembers="user", tags="keyword", compaction=True, facts=True),
    "small": LiveSettings(l0_tokens_max=6_000, rules="short", paging="runtime", recall_share=0.15),
}
"""What each preset changes of the defaults."""

ABOUT = {
    "default": "what holds where nothing is said",
    "coding": "an agent with tools: topics are summed up, failures become warnings, the model may recall",
    "chat": "talks with a user over many sessions: facts, topics, and what was said in others",
    "small": "a model with a window of 8,000 tokens: short rules, and pages come without its asking",
}
assert ABOUT.keys() == PRESETS.keys(), "every preset says what it is for"
assert all(changed(KernelSettings(), dict(values)) for values in PRESETS.values()), "every preset can be taken"


def preset(name: str, **changes: Any) -> LiveSettings:
    """The settings of a preset, with changes: `store.live_session("talk", **preset("chat", l0_tokens_max=8_000))`.

    Raises InputError for a name that no preset has, and for a setting that cannot be.
    """
    if name not in PRESETS:
        near = suggest(str(name), PRESETS)
        meant = f"; did you mean {near}? There" if near else "; there"
        raise InputError(f"there is no preset {name!r:.60}{meant} are {', '.join(PRESETS)}", code="no-preset")
    settings = {**PRESETS[name], **changes}
    changed(KernelSettings(), settings)
    return cast(LiveSettings, settings)


def settings_from(values: Mapping[str, Any]) -> LiveSettings:
    """Settings as a file has them: a `preset` where one is named, and its changes. Raises as `preset` does."""
    changes = {name: value for name, value in values.items() if name != "preset"}
    return preset(values.get("preset", "default"), **changes)


def faults_of(values: Mapping[str, Any]) -> list[str]:
    """Every fault of settings as a file has them: each value is tried by itself, then all together."""
    faults: list[str] = []
    for name, value in values.items():
        try:
            settings_from({name: value})
        except InputError as error:
            faults.append(str(error))
    if not faults:
        try:
            settings_from(values)
        except InputError as error:
            faults.append(str(error))
    return faults
