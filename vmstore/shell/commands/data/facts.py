"""The command for what is known: facts listed, chosen by their words, and found in what was said."""

from __future__ import annotations

import argparse

from vmstore.errors import InputError
from vmstore.shell.commands.arguments import Command, Parser, add_moment, add_session, add_store
from vmstore.shell.open_store import moment_of, open_to_ask, open_to_change, session_of
from vmstore.shell.terminal import format_facts
from vmstore.shell.terminal.render import Screen


def facts(arguments: argparse.Namespace, screen: Screen) -> int:
    """Finds facts where it is answer to, then lists those that are known."""
    words = (arguments.subject, arguments.verb, arguments.object, arguments.status, arguments.type)
    whose = arguments.user is not None or arguments.all_sessions
    if whose and (arguments.session is not None or arguments.find):
        raise InputError("--user and --all-sessions ask many sessions; leave the session out, and --find for one")
    added: list[str] = []
    with (open_to_change if arguments.find else open_to_ask)(arguments) as store:
        if whose:
            found = store.memory.facts.query(*words, user=arguments.user, ever=arguments.ever, limit=arguments.limit)
            name = arguments.user or "all sessions"
        else:
            session = session_of(store, arguments)
            name = session.name
            if arguments.find:
                added = session.memory.facts.extract(language=arguments.language)
            bounds = {"ever": arguments.ever, "limit": arguments.limit}
            found = session.memory.facts.query(*words, moment_of(arguments), **bounds)
    if arguments.json:
        answer = {"of": name, "facts": found.facts, "total": found.total, "note": found.note}
        screen.json({**answer, **({"found": added} if arguments.find else {})})
        return 0
    if arguments.find:
        screen.note(f"{len(added)} {'fact' if len(added) == 1 else 'facts'} found in {name}")
    if found.facts:
        screen.show(format_facts.facts(found.facts))
    else:
        remedy = "" if arguments.find or whose else "; --find looks for some in what was said"
        screen.note(f"no fact is known of {name}{remedy}" if not any(words) else f"no fact of {name} fits")
    return 0


def _add_facts(parser: Parser) -> None:
    parser.add_argument("--find", action="store_true", help="find facts in what was said first, and state the new ones")
    parser.add_argument(
        "--language",
        metavar="L",
        help="the patterns to find with: en, de or fr; else those that the namespace declares",
    )
    parser.add_argument("--user", metavar="U", help="of all sessions of a user")
    parser.add_argument("--all-sessions", action="store_true", help="of all sessions")
    parser.add_argument("--ever", action="store_true", help="those too that hold no more, with what replaced them")
    parser.add_argument("--subject", metavar="S", help="whom or what they are about")
    parser.add_argument("--verb", metavar="V", help="what the subject does, or a verb that says the same")
    parser.add_argument("--object", metavar="T", help="words of the object")
    parser.add_argument("--status", metavar="S", help="active, planned, completed, abandoned or recurring")
    parser.add_argument("--type", metavar="T", help="preference, biographical, decision, plan and others")
    parser.add_argument("--limit", metavar="N", type=int, default=1_000, help="so many at most")


COMMANDS = (
    Command(
        "facts",
        "maintain",
        "what is known of whom, since when and from where",
        "Lists the facts of a session, of a user or of all sessions: those that hold and were not replaced. With\n"
        "--find it first looks for facts in what was said, without a model, and states those that are new; asked\n"
        "again it finds no more.",
        (
            "vmstore facts agent.vms planning-220",
            "vmstore facts agent.vms planning-220 --find",
            "vmstore facts agent.vms --user ada --verb likes",
        ),
        facts,
        (add_store, add_session, _add_facts, add_moment),
    ),
)
