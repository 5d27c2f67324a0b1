"""Settings of a live session: checked against what is pinned, logged when they change."""

from __future__ import annotations

from typing import Any

import msgspec

from vmstore.core import mutation
from vmstore.core.times import zone_of
from vmstore.errors import InputError, RefusedError
from vmstore.live.runtime import Act
from vmstore.vm.kernel.settings import KernelSettings, changed, encoded
from vmstore.vm.kernel.state import State
from vmstore.vm.policies.registry import full_name, policy, shipped


def configure(act: Act, changes: dict[str, Any]) -> KernelSettings:
    """Changes settings from here on; the settings that hold then. What is as it was is not logged.

    The first time every setting is logged, a policy by name and version, so that no later default moves the past.
    """
    before = act.state.settings
    new = changed(before or KernelSettings(), changes)
    new = msgspec.structs.replace(new, policy=full_name(shipped(new.policy)))  # by its version, which stays
    if before is None or new.zone != before.zone:
        zone_of(new.zone)  # refuses what is none; a log of one unknown here is opened all the same
    policy(new.policy, new.l0_tokens_max, **new.parameters)  # refuses what it does not know
    room = max(0, act.state.tokens(new.room) - act.state.beside)
    if act.state.pinned > room:
        raise RefusedError(
            f"{act.state.pinned:,} tokens are pinned, and {new.l0_tokens_max:,} with the reserves leave {room:,}; "
            "unpin something first, or leave more (law pins_fit)",
            code="pins-over-budget",
        )
    values = msgspec.structs.asdict(new)
    old = {} if before is None else msgspec.structs.asdict(before)
    differing = {name: value for name, value in values.items() if before is None or value != old[name]}
    if differing:
        act.tell(mutation.Settings(act.cell(encoded(differing))))
    return new


def chosen(state: State) -> KernelSettings:
    """The settings of a live session; InputError where it was recorded and has none."""
    if state.settings is None:
        raise InputError("this session has no budget: give it one with l0_tokens_max, and its memory is managed")
    return state.settings
