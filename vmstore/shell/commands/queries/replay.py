"""The command that decides sessions again: checks them, or tells what would have been."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import vmstore
from vmstore.errors import InputError
from vmstore.shell.commands.arguments import Command, Parser, add_session, add_store, add_workers
from vmstore.shell.open_store import open_to_ask, open_to_change, session_of
from vmstore.shell.terminal.format import count, number, size
from vmstore.shell.terminal.layout import Block, Line, StyledText, TableColumn, TextTable, table
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.replay.check import ReplayCheck
    from vmstore.replay.whatif import Run


def replay(arguments: argparse.Namespace, screen: Screen) -> int:
    """Decides a session again, or all; 1 where a check finds a difference."""
    from vmstore.store.replay_sweep import replays, run_values, what_ifs

    alone = next((word for word in ("until", "check", "keep") if getattr(arguments, word)), None)
    if alone is not None and arguments.workers is not None:
        raise InputError(f"--{alone} is done by one process; leave --workers out")
    if arguments.until is not None:
        from vmstore.shell.commands.queries.breakpoints import stop

        return stop(arguments, screen)
    if arguments.after is not None:
        raise InputError("--after says where --until resumes; say until what, or leave it out")
    changes = what_ifs(arguments.policy, arguments.budget)
    if arguments.check:
        return _check(arguments, screen, changes)
    if arguments.keep is not None:
        return _keep(arguments, screen, changes)
    with open_to_ask(arguments) as store, screen.progress("replaying") as tell:
        replayed = replays(
            store,
            _sessions(store, arguments),
            [change for change in changes if change],
            workers=arguments.workers,
            results=None if arguments.results is None else Path(arguments.results),
            price=None if arguments.price is None else round(arguments.price * 1_000),
            progress=tell,
        )
    answers = [run_values(name, runs) for name, runs in replayed.items()]
    if arguments.json:
        screen.json({"sessions": answers} if arguments.all else answers[0])
        return 0
    for name, runs in replayed.items():
        screen.show(*([StyledText(name, "head")] if arguments.all else []), _table(runs))
        if not screen.quiet:
            screen.show(*_remarks(runs))
    return 0


def _sessions(store: vmstore.Store, arguments: argparse.Namespace) -> list[str]:
    from vmstore.store.replay_sweep import live_sessions

    if not arguments.all:
        return [session_of(store, arguments).name]
    if arguments.session is not None:
        raise InputError(f"--all is every session, and {arguments.session!r} is one; leave one of them out")
    names = live_sessions(store)
    if not names:
        raise InputError("no session of this store has a budget; import one with --vm budget=TOKENS")
    return names


def _check(arguments: argparse.Namespace, screen: Screen, changes: list[dict[str, Any]]) -> int:
    from vmstore.namespace.results import to_json

    if changes != [{}] or arguments.keep is not None:
        raise InputError("--check decides under the recorded settings; leave --policy, --budget and --keep out")
    with open_to_ask(arguments) as store:
        checked = [store.session(name).debug.check() for name in _sessions(store, arguments)]
    if arguments.json:
        answers = [{**to_json(check), "ok": check.ok} for check in checked]
        screen.json({"sessions": answers} if arguments.all else answers[0])
    else:
        for check in checked:
            _show_check(check, screen)
    return 0 if all(check.ok for check in checked) else 1


def _show_check(check: ReplayCheck, screen: Screen) -> None:
    if check.difference is not None:
        screen.show((StyledText("differs", "bad"), f": {check.difference}"))
    elif not screen.quiet:
        screen.show(
            (
                StyledText("ok", "good"),
                f": {check.session}, {count(check.decisions, 'decision')}; each is decided as it was",
            )
        )


def _keep(arguments: argparse.Namespace, screen: Screen, changes: list[dict[str, Any]]) -> int:
    from vmstore.store.replay_sweep import flat

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
        screen.show(
            (StyledText(run.kept.session, "head"), f" is a session now; it took {cost}, as long as {session.name}")
        )
    return 0


# ---- how it looks


def _table(runs: Sequence[Run]) -> TextTable:
    cells: dict[TableColumn, Callable[[Run], Line]] = {
        TableColumn("run"): lambda run: "recorded" if run.recorded else "what if",
        TableColumn("policy", style="name"): lambda run: run.policy,
        TableColumn("budget", right=True): lambda run: number(run.budget),
        TableColumn("faults", right=True): lambda run: number(run.measures.faults),
        TableColumn("optimum", right=True): lambda run: "" if run.optimum is None else number(run.optimum.faults),
        TableColumn("their tokens", right=True): lambda run: number(run.measures.fault_tokens),
        TableColumn("fault rate", right=True): lambda run: _percent(run.measures.fault_rate),
        TableColumn("denied", right=True): lambda run: number(run.measures.denied),
        TableColumn("thrash", right=True): lambda run: (
            "" if run.measures.thrash_index is None else f"{run.measures.thrash_index:.3f}"
        ),
        TableColumn("evicted", right=True): lambda run: number(run.measures.evictions),
        TableColumn("shortened", right=True): lambda run: number(run.measures.compressions),
        TableColumn("full", right=True): lambda run: _percent(run.measures.utilisation),
        TableColumn("voided", right=True): lambda run: _voided(run),
        TableColumn("first other decision"): lambda run: _first(run),
    }
    return table(runs, cells)


def _voided(run: Run) -> str:
    cost = run.measures.prefix_cost
    return number(run.measures.prefix_voided) + ("" if cost is None else f" (${cost:,.2f})")


def _first(run: Run) -> Line:
    if run.divergence is None:
        return "" if run.recorded else StyledText("none", "dim")
    where = f"turn {run.divergence.turn}: "
    return (
        where,
        run.divergence.found or "nothing",
        StyledText(f", not {run.divergence.recorded or 'nothing'}", "dim"),
    )


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _remarks(runs: Sequence[Run]) -> list[Block]:
    """Returns remarks on fallbacks, dropped pins and flags."""
    lines: list[Block] = []
    if forms := sum(run.fallbacks for run in runs):
        lines.append(StyledText(f"{count(forms, 'form')} that nobody had recorded: made without a model", "dim"))
    if pins := sum(run.refused for run in runs):
        lines.append(StyledText(f"{count(pins, 'pin')} left out: no room, or the page was not there", "dim"))
    recorded = next((run for run in runs if run.recorded), None)
    lines += [(StyledText("mind ", "warn"), flag) for flag in (recorded.measures.flags if recorded else [])]
    return lines


def _add_replay(parser: Parser) -> None:
    group = parser.add_argument_group("decided again with (every policy with every budget)")
    group.add_argument("--policy", action="append", default=[], metavar="P", help="this policy; may be given again")
    group.add_argument("--budget", type=_budgets, default=[], metavar="N,N", help="these budgets of tokens")
    group = parser.add_argument_group("stopped at a moment")
    group.add_argument("--until", metavar="PREDICATE", help="stop where this VMQL condition holds first; 1 if never")
    group.add_argument("--after", type=int, metavar="POSITION", help="look after this position (default: the start)")
    parser.add_argument("--check", action="store_true", help="compare every decision with the recorded one instead")
    parser.add_argument("--keep", metavar="NAME", help="store the one what-if as session NAME, a fork")
    parser.add_argument("--all", action="store_true", help="every session that has a budget")
    parser.add_argument("--price", type=float, metavar="D", help="dollars that a million tokens cost more uncached")


def _budgets(text: str) -> list[int]:
    numbers = text.replace("_", "").split(",")
    if not all(number.isdecimal() and int(number) for number in numbers):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of tokens like 8000,32000")
    return [int(number) for number in numbers]


COMMANDS = (
    Command(
        "replay",
        "query",
        "what another policy or budget would have done",
        "Decides a session that has a budget again, from the same references and without a model: under\n"
        "other policies and budgets beside the recorded run, or, with --check, under its own, when it\n"
        "leaves with 1 and names the first decision that is another. What the model would have asked\n"
        "otherwise, no replay can know. With --until it stops where a condition holds first, in any session.",
        (
            "vmstore replay agent.vms s1 --policy lru --policy default --budget 8000,32000",
            "vmstore replay agent.vms --all --budget 8000,32000 --workers 4 --results runs.jsonl",
            "vmstore replay agent.vms s1 --until 'p42 LEAVES L0'",
        ),
        replay,
        (add_store, add_session, _add_replay, add_workers),
    ),
)
