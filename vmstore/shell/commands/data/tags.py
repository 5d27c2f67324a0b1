"""The commands for what sessions are about: tags listed, given and taken away, names that mean the same; segments."""

from __future__ import annotations

import argparse

from vmstore.errors import InputError
from vmstore.shell.commands.arguments import Command, Parser, add_moment, add_session, add_store
from vmstore.shell.open_store import moment_of, open_to_ask, open_to_change, session_of
from vmstore.shell.terminal import format_tags
from vmstore.shell.terminal.render import Screen


def tags(arguments: argparse.Namespace, screen: Screen) -> int:
    """Changes tags and aliases where it is told to, then lists them."""
    changes = bool(arguments.add or arguments.remove or arguments.alias or arguments.keyword)
    if (arguments.add or arguments.remove) and arguments.page is None:
        raise InputError("--add and --remove change a page's tags; name it with --page, like p17 or the message m4")
    if arguments.page is not None and not (arguments.add or arguments.remove):
        raise InputError("--page says whose tags change; give --add T or --remove T, or ask `vmstore page`")
    with (open_to_change if changes else open_to_ask)(arguments) as store:
        session = session_of(store, arguments)
        memory = session.memory
        if arguments.page is not None:
            memory.tags.give(arguments.page, *arguments.add, remove=arguments.remove)
        if arguments.keyword:
            turns = memory.turns.tag()
            screen.note(f"{turns} turn{'s' * (turns != 1)} tagged by words")
        for name, canonical in map(_alias, arguments.alias):
            memory.tags.alias(name, canonical)
        when = moment_of(arguments)
        suggested = memory.tags.suggest_aliases(when) if arguments.suggest else []
        found = [] if arguments.suggest else memory.tags.all(when)
    if arguments.json:
        screen.json({"session": session.name, **({"suggestions": suggested} if arguments.suggest else {"tags": found})})
    elif suggested or found:
        screen.show(format_tags.suggestions(suggested) if arguments.suggest else format_tags.tags(found))
    else:
        none = (
            "no two tags of {} look alike"
            if arguments.suggest
            else "{} has no tag yet; --keyword tags its turns by their words"
        )
        screen.note(none.format(session.name))
    return 0


def segments(arguments: argparse.Namespace, screen: Screen) -> int:
    """Lists the segments, or what came before or after one."""
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        memory, when = session.memory, moment_of(arguments)
        if arguments.before is not None:
            found = memory.segments.ancestors(arguments.before, when)
        elif arguments.after is not None:
            found = memory.segments.descendants(arguments.after, when)
        else:
            found = memory.segments.all(when)
    if arguments.json:
        screen.json({"session": session.name, "segments": found})
    elif found:
        screen.show(format_tags.segments(found))
    else:
        screen.note(f"{session.name} has no such segment: nothing was said there yet")
    return 0


def _add_segments(parser: Parser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--before", type=int, metavar="N", help="those before segment N, of earlier sessions too")
    group.add_argument("--after", type=int, metavar="N", help="those after segment N, of later sessions too")


def _alias(text: str) -> tuple[str, str | None]:
    name, equals, canonical = text.partition("=")
    if not equals:
        raise InputError(f"alias {text!r} says not of what; give NAME=TAG, or NAME= to take it back")
    return name, canonical or None


def _add_tags(parser: Parser) -> None:
    parser.add_argument("--page", metavar="P", help="whose tags change: a page like p17, or each page of a message, m4")
    parser.add_argument("--add", action="append", default=[], metavar="T", help="a tag it gains")
    parser.add_argument("--remove", action="append", default=[], metavar="T", help="a tag it loses")
    parser.add_argument(
        "--alias", action="append", default=[], metavar="NAME=TAG", help="a name that counts as a tag; NAME= takes back"
    )
    parser.add_argument("--keyword", action="store_true", help="tag the turns that have no tag by their words")
    parser.add_argument("--suggest", action="store_true", help="names that may mean the same, instead of the tags")


COMMANDS = (
    Command(
        "tags",
        "maintain",
        "what a session is about, and names that mean the same",
        "Lists the tags of a session's pages, each with its turns, tokens and what stands beside it. Tags can be\n"
        "given and taken away, and a name can be said to count as another; what was listed before stays asked as\n"
        "of then. Names that may mean the same are suggested by their spelling: plurals, slips, short forms.",
        (
            "vmstore tags agent.vms planning-220",
            "vmstore tags agent.vms planning-220 --page m4 --add storage",
            "vmstore tags agent.vms planning-220 --alias db=database --turn 12",
        ),
        tags,
        (add_store, add_session, _add_tags, add_moment),
    ),
    Command(
        "segments",
        "maintain",
        "stretches of a session about one thing, and what sums them up",
        "Lists the segments of a session: from which turn to which, what they are about, the tokens of what was said\n"
        "and of what stands for it, the page that sums it up, and whether that is up to date. The summaries of tags\n"
        "come last.",
        (
            "vmstore segments agent.vms planning-220",
            "vmstore segments agent.vms planning-220 --turn 12",
            "vmstore segments agent.vms planning-220 --before 3",
        ),
        segments,
        (add_store, add_session, _add_segments, add_moment),
    ),
)
