"""The command that talks with a model, on a screen or from a list of prompts."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import vmstore
from vmstore.errors import InputError, VmstoreError
from vmstore.shell.commands.arguments import Command, Parser, add_store, positive_number
from vmstore.shell.open_store import open_to_change, open_to_import
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import StyledText
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.chat.chat import ChatAnswer, ChatSession
    from vmstore.chat.screens.app import ChatApp
    from vmstore.providers.streaming_model import StreamingModel

SESSION = "chat"
KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


def chat(arguments: argparse.Namespace, screen: Screen) -> int:
    """Opens the screen, or asks a list of prompts one after another."""
    is_list = arguments.prompts is not None or arguments.replay is not None
    if not is_list and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError("a chat needs a terminal; without one, give a list of prompts: --prompts FILE, or - for stdin")
    if not is_list and arguments.json:
        raise InputError("--json is for lists of prompts; give one with --prompts or --replay")
    app = None if is_list else _screens()
    model = _model(arguments)
    with (open_to_change if arguments.replay is not None else open_to_import)(arguments) as store:
        prompts, system = _prompts(store, arguments) if is_list else ([], arguments.system)
        talk = _opened(store, arguments, model, system)
        if app is None:
            return _ask_all(talk, prompts, arguments, screen)
        app(talk, light=arguments.light).run()
        screen.note(f"all of it is in session {talk.session.name} of {arguments.store}; the same command goes on")
    return 0


def _screens() -> type[ChatApp]:
    """The screen's class; the package textual is loaded only now."""
    try:
        from vmstore.chat.screens.app import ChatApp
    except ImportError as error:
        raise InputError(
            f"a chat needs the package textual ({error}); get it with: pip install 'vmstore[chat]'"
        ) from error
    return ChatApp


def _model(arguments: argparse.Namespace) -> StreamingModel:
    """The model's address, with a key of the environment; another address gets one only where it is named."""
    from vmstore.providers.streaming_model import StreamingModel

    name = arguments.key_env or (None if arguments.base_url else KEYS[arguments.provider])
    key = os.environ.get(name) if name else None
    if name and not key:
        raise InputError(
            f"the environment has no key {name}; set it, name another with --key-env, or ask a server that needs none: "
            "--base-url http://localhost:11434/v1"
        )
    return StreamingModel(
        arguments.provider, base_url=arguments.base_url, api_key=key, tokens_out_max=arguments.tokens_out
    )


def _opened(
    store: vmstore.Store, arguments: argparse.Namespace, model: StreamingModel, system: str | None
) -> ChatSession:
    """The conversation: begun, or gone on with under the model it had."""
    from vmstore.chat.chat import ChatSession, is_there

    name = _name(store, arguments)
    named = arguments.model
    if named is None and is_there(store, name):
        session = store.session(name)
        named = session.settings.model if isinstance(session, vmstore.Live) else None
    if named is None:
        raise InputError("which model? name it: --model NAME")
    return ChatSession(
        store, name, model, named, budget=arguments.budget, system=system, user=arguments.user, asks=arguments.tools
    )


def _name(store: vmstore.Store, arguments: argparse.Namespace) -> str:
    """The session's name: as given, else of the list that is asked."""
    if arguments.session == "-":
        return store.catalog.find_session("-").name
    if arguments.session is not None:
        return str(arguments.session)
    if arguments.replay is not None:
        return f"{store.catalog.find_session(arguments.replay).name}-{arguments.model or 'again'}"
    if arguments.prompts not in (None, "-"):
        return Path(arguments.prompts).stem
    return SESSION


def _prompts(store: vmstore.Store, arguments: argparse.Namespace) -> tuple[list[str], str | None]:
    """The prompts of a file, of stdin or of a session, and the instructions to ask them under."""
    from vmstore.chat.prompts import instructions_of, prompts_of, said_in

    if arguments.replay is not None:
        source = store.catalog.find_session(arguments.replay)
        if arguments.session == source.name:
            raise InputError(f"{source.name} cannot be asked again in itself; name another SESSION, or none")
        said = said_in(store, source)
        if not said:
            raise InputError(f"nobody says anything in {source.name} that could be asked again")
        return said, instructions_of(source) if arguments.system is None else arguments.system
    if arguments.prompts == "-":
        return prompts_of(sys.stdin.read(), is_jsonl=False), arguments.system
    try:
        text = Path(arguments.prompts).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the prompts cannot be read ({error}); name a text file with one a line") from error
    return prompts_of(text, is_jsonl=arguments.prompts.lower().endswith(".jsonl")), arguments.system


def _ask_all(talk: ChatSession, prompts: list[str], arguments: argparse.Namespace, screen: Screen) -> int:
    """Asks what was not answered yet, and shows what came of each prompt."""
    from vmstore.chat.prompts import PromptRun

    run, whole = PromptRun(talk, prompts), count(len(prompts), "prompt")
    if run.done:
        screen.note(f"{run.done} of {whole} answered before")
    number, answers = 0, run.answers()
    with nullcontext() if screen.terminal else screen.progress("asking") as tell:
        try:
            for number in range(len(prompts)):
                if screen.terminal:
                    screen.wait(f"asking prompt {number + 1} of {len(prompts)}")
                _show(number + 1, next(answers), arguments, screen)
                if tell is not None:
                    tell(number + 1, len(prompts))
        except VmstoreError:
            screen.note(f"{number} of {whole} answered; the same command goes on with the next")
            raise
    screen.note(f"session {talk.session.name}; `vmstore debug {arguments.store}` shows each call")
    return 0


def _show(number: int, answer: ChatAnswer, arguments: argparse.Namespace, screen: Screen) -> None:
    from vmstore.namespace.results import to_json

    if arguments.json:
        screen.json({"prompt": number, **to_json(answer)}, one_line=True)
        screen.out.flush()
    else:
        screen.show(*((StyledText(f"> {line}", "bold"),) for line in answer.asked.splitlines()))
        screen.show(*answer.answer.splitlines(), "")


def _add_chat(parser: Parser) -> None:
    parser.add_argument(
        "session", metavar="SESSION", nargs="?", help="begun or gone on with (default: chat); - the newest"
    )
    parser.add_argument("--model", metavar="NAME", help="as its server calls it (default: the session's last)")
    parser.add_argument("--provider", choices=tuple(KEYS), default="openai", metavar="P",
                        help="whose protocol the server speaks: openai (default) or anthropic")  # fmt: skip
    parser.add_argument("--base-url", metavar="URL", help="the server's address (default: the provider's own)")
    parser.add_argument("--key-env", metavar="VARIABLE", help="the environment variable with the key (default: the "
                        "provider's, and none with --base-url)")  # fmt: skip
    parser.add_argument("--system", metavar="TEXT", help="what instructs the model")
    parser.add_argument(
        "--budget", type=positive_number, metavar="N", help="tokens of a prompt (default: 32,000, or as it was)"
    )
    parser.add_argument("--tokens-out", type=positive_number, metavar="N", help="tokens of an answer at most")
    parser.add_argument("--tools", action="store_true", help="let the model ask for pages of its memory by tools")
    parser.add_argument("--user", metavar="U", help="whose session it is, where it is new")
    parser.add_argument("--light", action="store_true", help="dark letters on a light screen")
    group = parser.add_argument_group("without a screen").add_mutually_exclusive_group()
    group.add_argument("--prompts", metavar="FILE", help="ask these: one a line, or .jsonl; - reads them from stdin")
    group.add_argument("--replay", metavar="SOURCE", help="ask again what the person said in this session")


COMMANDS = (
    Command(
        "chat",
        "import",
        "talk with a model, and see what it is sent and why",
        "A conversation whose prompts a live session packs: beside it stand the topics, the budget by its parts,\n"
        "and for each message what was sent with it and why. With --prompts or --replay a list is asked without a\n"
        "screen; asked again it goes on after the last answer. Everything is in the store as it is said.",
        (
            "vmstore chat agent.vms --model llama3.2 --base-url http://localhost:11434/v1",
            "vmstore chat agent.vms --model gpt-5 --prompts questions.txt --json",
            "vmstore chat agent.vms --model gpt-5 --replay planning-220",
        ),
        chat,
        (add_store, _add_chat),
    ),
)
