"""The command that says in which language the texts of a namespace, or of a session, are."""

from __future__ import annotations

import argparse

from vmstore.shell.commands.arguments import Command, Parser, add_store
from vmstore.shell.open_store import open_to_ask, open_to_change
from vmstore.shell.terminal.render import Screen


def language(arguments: argparse.Namespace, screen: Screen) -> int:
    """States the language, or says which it is."""
    with (open_to_ask if arguments.language is None else open_to_change)(arguments) as store:
        if arguments.language is not None:
            store.index.set_language(arguments.language, arguments.session)
        stated = store.index.language(arguments.session)
        others = store.index.languages() if arguments.session is None else {}
    lines = [stated, *(f"{name}: {language}" for name, language in others.items())]
    return screen.answer(arguments, {"language": stated, "sessions": others}, "\n".join(lines))


def _add_language(parser: Parser) -> None:
    parser.add_argument("language", nargs="?", metavar="CODE", help="like en, de or fr; none takes no endings off")
    parser.add_argument("--session", metavar="NAME", help="of this session and its forks, not of all texts")


COMMANDS = (
    Command(
        "language",
        "maintain",
        "say in which language the texts are, for searching",
        "A search takes texts and questions apart by the rules of a language: its endings and its stop words.\n"
        "It is English until another is stated. A session may have another;\n"
        "a search over several reads each by its own. The text index is rebuilt by the first search after that.",
        (
            "vmstore language agent.vms",
            "vmstore language agent.vms de",
            "vmstore language agent.vms fr --session paris",
        ),
        language,
        (add_store, _add_language),
    ),
)
