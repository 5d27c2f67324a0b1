"""The command assemble: a prompt for a message out of what a session remembers, and how it was chosen."""

from __future__ import annotations

import argparse

from vmstore.shell.commands.arguments import Command, Parser, add_moment, add_session, add_store, positive_number
from vmstore.shell.open_store import moment_of, open_to_ask, session_of
from vmstore.shell.terminal import format_prompt
from vmstore.shell.terminal.render import Screen
from vmstore.shell.terminal.transcript import transcript


def assemble(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints the prompt that a message would be sent in."""
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        options = {} if arguments.tokens is None else {"tokens": arguments.tokens}
        prompt = session.memory.assemble(
            arguments.message, moment_of(arguments), across=arguments.across, shape=arguments.shape, **options
        )
    if arguments.json:
        screen.json(prompt)
    elif arguments.messages:
        screen.show(format_prompt.head(prompt), *transcript(prompt.messages))
    else:
        screen.show(*format_prompt.prompt(prompt))
    return 0


def _add_message(parser: Parser) -> None:
    parser.add_argument("message", metavar="MESSAGE", nargs="?", help="what is said; left out, what was said last")
    parser.add_argument("--tokens", type=positive_number, metavar="N", help="the budget of the prompt (default: 8,000)")
    parser.add_argument("--across", action="store_true", help="look into the user's other sessions too")
    parser.add_argument("--shape", metavar="SHAPE", help="chat, responses, anthropic, gemini (default: its own)")
    parser.add_argument("--messages", action="store_true", help="the messages themselves, not how they were chosen")


COMMANDS = (
    Command(
        "assemble",
        "query",
        "a prompt for a message, within so many tokens",
        "Puts a prompt together of what instructs, the newest turns, and what the memory holds of a message: its\n"
        "parts with their tokens, what was chosen and why, what was left out. Nothing is logged by asking here.",
        (
            'vmstore assemble agent.vms planning-220 --tokens 3000 "which database did we agree on?"',
            'vmstore assemble agent.vms planning-220 "and since when?" --turn 42 --messages',
        ),
        assemble,
        (add_store, add_session, _add_message, add_moment),
    ),
)
