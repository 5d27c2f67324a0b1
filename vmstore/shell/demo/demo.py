"""`vmstore demo`: a tour through the session that ships, in a store of its own."""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vmstore.shell.commands.arguments import Command, Parser
from vmstore.shell.terminal import format_session
from vmstore.shell.terminal.layout import StyledText
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.shell.demo.tour import Tour, TourStep
    from vmstore.store.store import Store

SHIPPED = Path(__file__).parent.with_name("demo.jsonl")
STORE = "demo.vms"


def demo(arguments: argparse.Namespace, screen: Screen) -> int:
    """Imports the shipped session and shows what can be asked of it."""
    start = time.monotonic()
    with _folder(arguments.keep) as folder:
        path = folder / STORE
        named = str(path) if arguments.keep else STORE
        if not arguments.json:
            screen.show((StyledText("vmstore demo", "head"), ": an agent and its user plan a system over many turns."))
            screen.show(StyledText("Nothing is prepared: each answer is computed from the store as you watch.", "dim"))
        steps = [_show_step(step, number, arguments, screen) for number, step in enumerate(_steps(path, named), 1)]
        seconds = round(time.monotonic() - start, 1)
        if arguments.json:
            summaries = [{"title": s.title, "command": s.command, "facts": s.facts} for s in steps]
            screen.json({"steps": summaries, "seconds": seconds})
        else:
            screen.show("", (StyledText(f"{seconds} seconds. ", "bold"), _farewell(arguments.keep, named)))
    return 0


def _steps(path: Path, named: str) -> Iterator[TourStep]:
    """The tour, one step after the other; each asks the store only when it is reached."""
    from vmstore.shell.demo.live_session import STORE as MANAGED
    from vmstore.shell.demo.live_session import managed
    from vmstore.shell.demo.tamper import tampered, views_again
    from vmstore.shell.demo.tour import Tour, changed, compacted, lineage_of, packed, still_there, taught
    from vmstore.store.store import open_store

    store = open_store(path)
    try:
        yield _imported(store, named)
        asks: tuple[Callable[[Tour], TourStep], ...] = (packed, changed, lineage_of, compacted, still_there)
        tour = Tour(store, store.import_file(SHIPPED).sessions[0].session, named)
        for ask in asks:
            yield ask(tour)
        decision = tour.decision_gone()
        cell, name = tour.cell_of(decision), decision.hint or decision.page
    finally:
        store.close()
    yield views_again(path, named)
    yield tampered(path, cell, name, named)
    yield managed(path.with_name(MANAGED), SHIPPED, str(Path(named).with_name(MANAGED)))
    with open_store(path, "r") as store:
        yield taught(Tour(store, store.sessions()[0].session, named))


def _imported(store: Store, named: str) -> TourStep:
    from vmstore.shell.demo.tour import TourStep

    start = time.monotonic()
    report = store.import_file(SHIPPED)
    main = report.sessions[0]
    took = time.monotonic() - start
    return TourStep(
        "A session goes in",
        f"Every message becomes pages, every change a mutation in the log; it took {took:.1f} s.",
        f"vmstore import {named} {SHIPPED}",
        [format_session.imported(report.sessions)],
        {"session": main.session, "turns": main.turns, "calls": main.calls, "mutations": main.mutations},
    )


def _show_step(step: TourStep, number: int, arguments: argparse.Namespace, screen: Screen) -> TourStep:
    if not arguments.json:
        screen.show("", (StyledText(f"{number}. {step.title}", "head")), StyledText(step.why, "dim"))
        screen.show(StyledText(f"$ {step.command}", "good"), "", *step.blocks)
    return step


def _farewell(keep: str | None, named: str) -> str:
    if keep:
        return f"The store is in {named}; ask it more."
    return "`vmstore demo --keep DIR` keeps the store, so that each command above can be run."


@contextmanager
def _folder(keep: str | None) -> Iterator[Path]:
    """The folder the demo's store stands in: the one named, or one that is forgotten afterwards."""
    if keep is not None:
        folder = Path(keep)
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    folder = Path(tempfile.mkdtemp(prefix="vmstore-demo-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _add_keep(parser: Parser) -> None:
    parser.add_argument("--keep", metavar="DIR", help="keep the store in DIR, to ask it more (default: forget it)")


COMMANDS = (
    Command(
        "demo",
        "more",
        "a tour through a session of 220 turns",
        "Imports a session that ships with vmstore into a store of its own and shows, step by step, what\n"
        "can be asked of it, each with the command that asks the same.",
        ("vmstore demo", "vmstore demo --keep /tmp/demo"),
        demo,
        (_add_keep,),
    ),
)
