"""Re-drives what was imported: `--vm budget=8000,policy=lru`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from vmstore.errors import ConflictError, InputError, RefusedError
from vmstore.namespace.reports import ImportedSession
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.render import Screen
from vmstore.store.store import Store
from vmstore.vm.kernel.presets import settings_from

SUFFIX = "-vm"


def settings_of(text: str) -> dict[str, Any]:
    """The settings a text names, `budget` for l0_tokens_max; InputError where it names none or a wrong one."""
    settings: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, text_of_value = part.partition("=")
        if not equals:
            raise InputError(f"--vm {part!r:.60} is no setting; write budget=8000, and others after a comma")
        settings["l0_tokens_max" if name.strip() == "budget" else name.strip()] = _parse_value(text_of_value.strip())
    settings = dict(settings_from(settings))
    if "l0_tokens_max" not in settings:
        raise InputError("--vm names no budget; write budget=8000, and other settings after a comma, or preset=coding")
    return settings


def redriven(store: Store, imported: Sequence[ImportedSession], settings: dict[str, Any], screen: Screen) -> bool:
    """Re-drives sessions that were imported; whether all could be. One that was re-driven before stays."""
    done = True
    for source in imported:
        name = source.session + SUFFIX
        try:
            with screen.progress(f"re-driving {source.session}") as tell:
                live = store.admin.redrive(source.session, name, progress=tell, **settings)
        except ConflictError as error:
            screen.note(str(error))
        except (InputError, RefusedError) as error:
            screen.warn(str(error))
            done = False
        else:
            calls = live.calls()
            peak = max((call.tokens for call in calls), default=0)
            screen.note(
                f"{name}: {count(len(calls), 'call')}, at most {peak:,} of {live.settings.l0_tokens_max:,} tokens"
            )
    return done


def _parse_value(text: str) -> Any:
    """A setting's value as it is written: a number, true or false, or a word."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
