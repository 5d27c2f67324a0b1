"""The command that decides sessions again: checks them, or tells what would have been."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vmstore.errors import InputError
from vmstore.namespace.results import to_json
from vmstore.replay.check import Checked
from vmstore.replay.whatif import Run
from vmstore.shell.open_store import open_to_ask, open_to_change, session_of
from vmstore.shell.terminal.format import count, number, size
from vmstore.shell.terminal.layout import Block, Column, Line, Span, Table
from vmstore.shell.terminal.render import Screen
from vmstore.store.replay_sweep import flat, live_sessions, replays, told, what_ifs
from vmstore.store.store import Store


def replay(arguments: argparse.Namespace, screen: Screen) -> int:
    """Decides a session again, or all; 1 where a check finds a difference."""
    if arguments.until is not None:
        from vmstore.shell.commands.queries.breakpoints import stop

        return stop(arguments, screen)
    if arguments.after is not None:
        raise InputError("--after says where --until goes on; say until what, or leave it out")
    changes = what_ifs(arguments.policy, arguments.budget)
    if arguments.check:
        return _check(arguments, screen, changes)
    if arguments.keep is not None:
        return _keep(arguments, screen, changes)
    with open_to_ask(arguments) as store, screen.progress("replaying") as tell:
        found = replays(
            store,
            _sessions(store, arguments),
            [one for one in changes if one],
            results=None if arguments.results is None else Path(arguments.results),
            price=None if arguments.price is None else round(arguments.price * 1_000),
            progress=tell,
        )
    listed = [told(name, runs) for name, runs in found.items()]
    if arguments.json:
        screen.json({"sessions": listed} if arguments.all else listed[0])
        return 0
    for name, runs in found.items():
        screen.show(*([Span(name, "head")] if arguments.all else []), _table(runs))
        if not screen.quiet:
            screen.show(*_remarks(runs))
    return 0


def _sessions(store: Store, arguments: argparse.Namespace) -> list[str]:
    if not arguments.all:
        return [session_of(store, arguments).name]
    if arguments.session is not None:
        raise InputError(f"--all is every session, and {arguments.session!r} is one; leave one of them out")
    found = live_sessions(store)
    if not found:
        raise InputError("no session of this store has a budget; import one with --vm budget=TOKENS")
    return found


def _check(arguments: argparse.Namespace, screen: Screen, changes: list[dict[str, Any]]) -> int:
    if changes != [{}] or arguments.keep is not None:
        raise InputError("--check decides under the recorded settings; leave --policy, --budget and --keep out")
    with open_to_ask(arguments) as store:
        checked = [store.session(name).debug.check() for name in _sessions(store, arguments)]
    if arguments.json:
        told = [{**to_json(one), "ok": one.ok} for one in checked]
        screen.json({"sessions": told} if arguments.all else told[0])
    else:
        for one in checked:
            _say(one, screen)
    return 0 if all(one.ok for one in checked) else 1


def _say(one: Checked, screen: Screen) -> None:
    if one.difference is not None:
        screen.show((Span("differs", "bad"), f": {one.difference}"))
    elif not screen.quiet:
        screen.show(
            (Span("ok", "good"), f": {one.session}, {count(one.decisions, 'decision')}; each is decided as it was")
        )


def _keep(arguments: argparse.Namespace, screen: Screen, changes: list[dict[str, Any]]) -> int:
    if arguments.all or len(changes) != 1:
        raise InputError("--keep stores one what-if of one session; give one policy and one budget at most")
    with open_to_change(arguments) as store:
        session = session_of(store, arguments)
        change = changes[0]
        run = session.debug.replay(policy=change.get("policy"), budget=change.get("l0_tokens_max"), keep=arguments.keep)
    if arguments.json:
        screen.json({"session": session.name, "runs": [flat(run)]})
        return 0
    screen.show(_table([run]))
    if run.kept is not None and not screen.quiet:
        cost = f"{count(run.kept.mutations, 'mutation')} and {size(run.kept.bytes)} of contents"
        screen.show((Span(run.kept.session, "head"), f" is a session now; it took {cost}, as long as {session.name}"))
    return 0


# ---- how it looks


def _table(runs: Sequence[Run]) -> Table:
    columns = [Column("run"), Column("policy", style="name"), Column("budget", right=True)]
    titles = (
        "faults",
        "optimum",
        "their tokens",
        "fault rate",
        "denied",
        "thrash",
        "evicted",
        "shortened",
        "full",
        "voided",
    )
    columns += [Column(title, right=True) for title in titles]
    return Table([*columns, Column("first other decision")], [_row(run) for run in runs])


def _row(run: Run) -> tuple[Line, ...]:
    found = run.measures
    cost = "" if found.prefix_cost is None else f" (${found.prefix_cost:,.2f})"
    return (
        "recorded" if run.recorded else "what if",
        run.policy,
        number(run.budget),
        number(found.faults),
        "" if run.optimum is None else number(run.optimum.faults),
        number(found.fault_tokens),
        _percent(found.fault_rate),
        number(found.denied),
        "" if found.thrash_index is None else f"{found.thrash_index:.3f}",
        number(found.evictions),
        number(found.compressions),
        _percent(found.utilisation),
        number(found.prefix_voided) + cost,
        _first(run),
    )


def _first(run: Run) -> Line:
    if run.divergence is None:
        return "" if run.recorded else Span("none", "dim")
    where = f"turn {run.divergence.turn}: "
    return (where, run.divergence.found or "nothing", Span(f", not {run.divergence.recorded or 'nothing'}", "dim"))


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _remarks(runs: Sequence[Run]) -> list[Block]:
    """What the numbers rest on, and what should give pause."""
    lines: list[Block] = []
    if forms := sum(run.fallbacks for run in runs):
        lines.append(Span(f"{count(forms, 'form')} that nobody had recorded: made without a model", "dim"))
    if pins := sum(run.refused for run in runs):
        lines.append(Span(f"{count(pins, 'pin')} left out: no room, or the page was not there", "dim"))
    recorded = next((run for run in runs if run.recorded), None)
    lines += [(Span("mind ", "warn"), flag) for flag in (recorded.measures.flags if recorded else [])]
    return lines
