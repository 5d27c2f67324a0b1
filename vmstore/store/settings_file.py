"""Settings of a live session in a file, as TOML or JSON."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from vmstore.errors import InputError
from vmstore.vm.kernel.keywords import LiveSettings
from vmstore.vm.kernel.presets import faults_of, settings_from

BYTES_MAX = 1 << 20


def read_settings(path: str | Path) -> LiveSettings:
    """The settings in a file: `store.live_session("talk", **read_settings("agent.toml"))`.

    The file is TOML, or JSON where its name ends so: settings by name, and `preset` for those to begin with. Raises
    InputError that names every fault of it.
    """
    values = values_in(path)
    if faults := faults_of(values):
        raise InputError(f"{path}: {'; '.join(faults)}", code="not-a-setting")
    return settings_from(values)


def values_in(path: str | Path) -> dict[str, Any]:
    """The values in a file of settings, unchecked; InputError where it cannot be read as what its name says."""
    file = Path(path)
    try:
        content = file.read_bytes()
    except OSError as error:
        what = f"{file} cannot be read ({error.strerror}); name a file of settings"
        raise InputError(what, code="unreadable-file") from error
    if len(content) > BYTES_MAX:
        raise InputError(f"{file} has {len(content):,} bytes, and no file of settings has as many", code="too-large")
    try:
        text = content.decode()
        values: Any = msgspec.json.decode(text) if file.suffix == ".json" else tomllib.loads(text)
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        kind = "JSON" if file.suffix == ".json" else "TOML"
        what = f"{file} is no {kind}: {error}; write a setting by name, like l0_tokens_max = 8000 in TOML"
        raise InputError(what, code="unreadable-file") from error
    if not isinstance(values, dict):
        what = f'{file} holds no settings by name; write an object like {{"l0_tokens_max": 8000}}'
        raise InputError(what, code="not-an-object")
    return values
