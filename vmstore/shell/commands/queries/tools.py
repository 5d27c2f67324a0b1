"""The command for tool calls: listed with what they were given and how they ended."""

from __future__ import annotations

import argparse
from typing import Any

from vmstore.shell.commands.arguments import (
    MOMENTS,
    Command,
    Parser,
    add_moment,
    add_session,
    add_store,
    whole_number,
)
from vmstore.shell.open_store import open_to_ask, session_of
from vmstore.shell.terminal.render import Screen

COLUMNS = (
    *("session", "call", "tool", "status", "tokens", "duration_ms", "path", "arguments", "page", "result"),
    *("seen_call", "outcome", "outcome_by", "tool_call", "at"),
)
CHOICES = ("tool", "status", "path")


def tools(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints the tool calls that are wanted, of one session or of all."""
    from vmstore.shell.terminal import format_tools

    chosen = {word: getattr(arguments, word) for word in CHOICES if getattr(arguments, word) is not None}
    with open_to_ask(arguments) as store:
        session = None if arguments.all else session_of(store, arguments).name
        found = store.query(_statement(arguments, chosen), session=session, params=_given(arguments, chosen)).to_dicts()
    if arguments.json:
        screen.json({"session": session, "tools": found})
    elif found:
        screen.show(format_tools.tools(found))
    else:
        screen.note("no tool was called" + "".join(f", {word} {value}" for word, value in chosen.items()))
    return 0


def _statement(arguments: argparse.Namespace, chosen: dict[str, str]) -> str:
    """The statement of VMQL that answers."""
    parts = [f"TOOLS {', '.join(COLUMNS)}"]
    parts += ["ACROSS SESSIONS"] if arguments.all else []
    parts += [f"AS OF {word.upper()} $moment" for word in (*MOMENTS, "time") if getattr(arguments, word) is not None]
    parts += ["WHERE " + " AND ".join(f"{word} = ${word}" for word in chosen)] if chosen else []
    order = "duration_ms" if arguments.slowest else "tokens" if arguments.largest else None
    parts += [f"ORDER BY {order} DESC"] if order else []
    parts += ["LIMIT $limit"] if arguments.limit is not None else []
    return " ".join(parts)


def _given(arguments: argparse.Namespace, chosen: dict[str, str]) -> dict[str, Any]:
    """Its parameters."""
    moment = next((at for word in (*MOMENTS, "time") if (at := getattr(arguments, word)) is not None), None)
    given = {**chosen, "moment": moment, "limit": arguments.limit}
    return {name: value for name, value in given.items() if value is not None}


def _add_tools(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help="of all sessions")
    parser.add_argument("--tool", metavar="T", help="only calls of this tool")
    parser.add_argument("--status", metavar="S", choices=("open", "ok", "failed"), help="open, ok or failed")
    parser.add_argument("--path", metavar="FILE", help="only calls whose arguments name this file")
    order = parser.add_mutually_exclusive_group()
    order.add_argument("--slowest", action="store_true", help="those that took longest first")
    order.add_argument("--largest", action="store_true", help="those with the longest results first")
    parser.add_argument("--limit", metavar="N", type=whole_number, help="so many at most")


COMMANDS = (
    Command(
        "tools",
        "query",
        "tool calls: what they were given, how they ended",
        "Lists the tool calls of a session in their order, each with the call of the model that asked for it, whether\n"
        "its answer is an error, and what it was given. `vmql` asks for more of them, and for sums: TOOLS count(*) BY\n"
        "tool, status.",
        (
            "vmstore tools agent.vms planning-220 --limit 20",
            "vmstore tools agent.vms planning-220 --status failed",
            "vmstore tools agent.vms --all --tool bash --slowest --limit 10",
        ),
        tools,
        (add_store, add_session, _add_tools, add_moment),
    ),
)
