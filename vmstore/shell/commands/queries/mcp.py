"""The command that serves a store to clients of the Model Context Protocol."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

import vmstore
from vmstore.errors import InputError
from vmstore.shell.commands.arguments import Command, Parser, add_store, port_number
from vmstore.shell.open_store import open_to_import, open_to_read
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.integrations.mcp.server import MemoryServer

TOKEN = "VMSTORE_MCP_TOKEN"
TOKEN_CHARS_MIN = 16


def mcp(arguments: argparse.Namespace, screen: Screen) -> int:
    """Answers on standard output until standard input ends, or with --http on a port until Ctrl-C."""
    if not arguments.http and (arguments.port is not None or arguments.token_file is not None):
        raise InputError("--port and --token-file are of --http; over standard input only who started this can ask")
    with _opened(arguments) as store:
        server = _server(store, arguments)
        if not arguments.http:
            import anyio

            from vmstore.integrations.mcp.stdio import serve_stdio

            screen.note(f"serving {arguments.store} on standard input and output")
            anyio.run(serve_stdio, server)
            return 0
        from vmstore.integrations.mcp.http import PATH, mcp_http

        http = mcp_http(server, arguments.port, _token(arguments.token_file))
        url = f"http://127.0.0.1:{http.door.port}{PATH}"
        if arguments.json:
            screen.json({"url": url, "port": http.door.port, "token": http.door.token is not None}, one_line=True)
        else:
            screen.show(url)
            screen.note("Ctrl-C stops it; only programs of this machine reach it")
        screen.out.flush()
        http.run()
    return 0


def _opened(arguments: argparse.Namespace) -> vmstore.Store:
    return open_to_import(arguments) if arguments.write else open_to_read(arguments)


def _server(store: vmstore.Store, arguments: argparse.Namespace) -> MemoryServer:
    """The server over a store; the package mcp is loaded only now."""
    try:
        from vmstore.integrations.mcp.server import MemoryServer
    except ImportError as error:
        raise InputError(f"this needs the package mcp ({error}); get it with: pip install 'vmstore[mcp]'") from error
    if arguments.session is not None and not arguments.write:
        store.session(arguments.session)
    return MemoryServer(store, session=arguments.session, writes=arguments.write)


def _token(file: str | None) -> str | None:
    """The token of a file, or else of the environment; None where there is none."""
    if file is None:
        token = os.environ.get(TOKEN) or None
    else:
        try:
            token = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the token cannot be read ({error}); make one: openssl rand -hex 32 > {file}") from error
    if token is not None and (len(token) < TOKEN_CHARS_MIN or not token.isascii() or len(token.split()) != 1):
        raise InputError(
            f"a token is one word of {TOKEN_CHARS_MIN} ASCII characters or more; openssl rand -hex 32 makes one"
        )
    return token


def _add_mcp(parser: Parser) -> None:
    parser.add_argument("--write", action="store_true", help="let clients write; without it they only read")
    parser.add_argument("--session", metavar="NAME", help="the session that is asked where none is named")
    group = parser.add_argument_group("over HTTP instead of standard input and output")
    group.add_argument("--http", action="store_true", help="listen on this machine alone")
    group.add_argument("--port", type=port_number, metavar="N", help="this port; 0 takes any (default: 7118)")
    group.add_argument("--token-file", metavar="FILE", help=f"ask for the token in this file (or {TOKEN})")


COMMANDS = (
    Command(
        "mcp",
        "query",
        "serve a store to Claude and other MCP clients",
        "Gives clients of the Model Context Protocol the memory of a store as tools, resources and prompts. Nothing\n"
        "is written unless --write lets them. A client starts it itself and talks over standard input and output;\n"
        "with --http it listens at http://127.0.0.1:7118/mcp until Ctrl-C. For Claude Code:\n"
        "claude mcp add memory -- vmstore mcp ~/agent.vms",
        (
            "vmstore mcp agent.vms",
            "vmstore mcp agent.vms --session planning-220 --write",
            "vmstore mcp agent.vms --http --token-file token.txt",
        ),
        mcp,
        (add_store, _add_mcp),
    ),
)
