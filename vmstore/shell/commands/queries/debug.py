"""The command that serves the debugger."""

from __future__ import annotations

import argparse
import secrets
import webbrowser
from typing import TYPE_CHECKING
from urllib.parse import quote

import vmstore
from vmstore.errors import InputError
from vmstore.shell.commands.arguments import Command, Parser, add_session, add_store, port_number
from vmstore.shell.open_store import namespace_of, open_to_ask, session_of
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.debug.api import DebugApi
    from vmstore.debug.serve import BoundServer


def debug(arguments: argparse.Namespace, screen: Screen) -> int:
    """Serves the debugger of a store until Ctrl-C, or writes one of its sessions to a file."""
    if arguments.export is not None:
        from vmstore.shell.commands.queries.debug_export import share

        return share(arguments, screen)
    if arguments.no_redact:
        raise InputError("--no-redact is of --export; what is served on this machine is never masked")
    with open_to_ask(arguments) as store:
        session = None if arguments.session is None else session_of(store, arguments).name
        answers, listening = _listening(store, arguments)
        url = listening.door.url + ("" if session is None else f"#session={quote(answers.shown(session))}")
        if arguments.json:
            screen.json({"url": url, "port": listening.door.port}, one_line=True)
        else:
            screen.show(url)
            screen.note("Ctrl-C stops it; nothing is written to the store")
        screen.out.flush()
        if arguments.open:
            webbrowser.open(url)
        listening.run()
    return 0


def _listening(store: vmstore.Store, arguments: argparse.Namespace) -> tuple[DebugApi, BoundServer]:
    """Creates the API and the server; the server's packages are loaded only now."""
    try:
        from vmstore.debug.serve import BoundServer
    except ImportError as error:
        raise InputError(
            f"the debugger needs starlette and uvicorn ({error}); get them with: pip install 'vmstore[debug]'"
        ) from error
    from vmstore.debug import assets
    from vmstore.debug.api import DebugApi
    from vmstore.debug.guard import is_loopback
    from vmstore.debug.json_bytes import masked

    alone = is_loopback(arguments.host)
    answers = DebugApi(store, str(arguments.store), namespace_of(arguments), None if alone else masked)
    token = None if alone else secrets.token_urlsafe(32)
    page = assets.read(assets.FOLDER)
    return answers, BoundServer(store, answers, page, host=arguments.host, port=arguments.port, token=token)


def _add_debug(parser: Parser) -> None:
    parser.add_argument(
        "--port", type=port_number, metavar="N", help="this port; 0 takes any (default: 7117, or the next)"
    )
    parser.add_argument(
        "--host", metavar="H", default="127.0.0.1", help="let other machines in, with a token (default: 127.0.0.1)"
    )
    parser.add_argument("--open", action="store_true", help="open it in the browser")
    group = parser.add_argument_group("written to a file instead")
    group.add_argument("--export", metavar="FILE", help="write the page with the session in it as FILE.html, redacted")
    group.add_argument("--no-redact", action="store_true", help="write everything as it is, secrets too")


COMMANDS = (
    Command(
        "debug",
        "query",
        "scrub through a session's memory in the browser",
        "Serves a page on this machine that shows what the model saw at each call, what came and went,\n"
        "and why; what-ifs beside the original, and a line for VMQL. A session that is still written is\n"
        "followed. Nothing is written to the store. Ctrl-C stops it. With --export the page and a session\n"
        "become one file for others, secrets and personal data masked.",
        (
            "vmstore debug agent.vms --open",
            "vmstore debug agent.vms planning-220 --port 8000",
            "vmstore debug agent.vms planning-220 --export planning.html",
        ),
        debug,
        (add_store, add_session, _add_debug),
    ),
)
