"""Replays a session up to the first moment at which a condition holds, and shows what is there."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from vmstore.core.asof import Call
from vmstore.errors import InputError
from vmstore.namespace.results import to_json
from vmstore.shell.open_store import NAMESPACE, namespace_of, open_to_ask, session_of
from vmstore.shell.terminal import format_session
from vmstore.shell.terminal.layout import StyledText
from vmstore.shell.terminal.render import Screen
from vmstore.store.breakpoints import Breakpoint, until
from vmstore.store.session import Session
from vmstore.vmql.syntax.errors import QueryError


def stop(arguments: argparse.Namespace, screen: Screen) -> int:
    """Stops a replay at the first moment after the start, or after a position; 1 where there is none."""
    _check_options(arguments)
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        name = session.name
        policy, budget = (next(iter(option), None) for option in (arguments.policy, arguments.budget))
        if policy is not None or budget is not None:
            from vmstore.debug.whatif import WhatIfs

            store, session, _ = WhatIfs(store).chosen(name, policy, budget)
        try:
            place = until(store, session, arguments.until, arguments.after)
        except QueryError as error:
            screen.warn(str(error))
            for line in error.pointed().splitlines():
                screen.note(line)
            return 1
        command = _next_command(arguments, name, None if place is None else place.position)
        if arguments.json:
            screen.json(_answer(name, place, session, command))
        elif place is None:
            after = "" if arguments.after is None else f" after position {arguments.after}"
            screen.show(
                (StyledText("never", "warn"), f": {arguments.until} does not hold at any moment of {name}{after}")
            )
        else:
            _show_stop(place, session, command, screen)
    return 0 if place is not None else 1


def _check_options(arguments: argparse.Namespace) -> None:
    """Refuses what a stop has no use for."""
    given = {"--check": arguments.check, "--keep": arguments.keep, "--all": arguments.all}
    given |= {"--results": arguments.results, "--price": arguments.price}
    refused = [option for option, value in given.items() if value not in (None, False)]
    if refused:
        raise InputError(f"--until stops one replay, and {refused[0]} is of whole ones; leave one of them out")
    if len(arguments.policy) > 1 or len(arguments.budget) > 1:
        raise InputError("--until stops one replay; give one policy and one budget at most")


def _next_command(arguments: argparse.Namespace, name: str, position: int | None) -> str | None:
    """The command that resumes where it stopped."""
    if position is None:
        return None
    words = ["vmstore", "replay", arguments.store, name]
    words += ["--policy", *arguments.policy] if arguments.policy else []
    words += ["--budget", *map(str, arguments.budget)] if arguments.budget else []
    words += ["--until", arguments.until, "--after", str(position)]
    namespace = namespace_of(arguments)
    words += ["--namespace", namespace] if namespace != NAMESPACE else []
    return shlex.join(words + (["--store-key", arguments.store_key] if arguments.store_key else []))


def _answer(name: str, place: Breakpoint | None, session: Session, command: str | None) -> dict[str, Any]:
    if place is None:
        return {"session": name, "found": False}
    context = session.context(Call(place.call)).to_dict() if place.call else None
    return {**to_json(place), "session": name, "found": True, "context": context, "again": command}


def _show_stop(place: Breakpoint, session: Session, command: str | None, screen: Screen) -> None:
    where = f": position {place.position}, turn {place.turn}, call {place.call}"
    screen.show((StyledText("stopped", "good"), where), (StyledText(place.event, "bold"),), "")
    if place.call:
        screen.show(*format_session.context(session.context(Call(place.call))))
    else:
        screen.show(StyledText("no call was made yet, so nothing is in the prompt", "dim"))
    if not screen.quiet:
        screen.show("", (StyledText("go on: ", "dim"), command or ""))
