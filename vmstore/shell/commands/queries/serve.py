"""The commands that serve a store to a team, and make the tokens that it is asked with."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vmstore.errors import InputError
from vmstore.shell.commands.arguments import Command, Parser, add_store, port_number, positive_number
from vmstore.shell.open_store import opened_to_ask
from vmstore.shell.terminal.layout import TableColumn, TextTable
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    import vmstore
    from vmstore.serve.server import Listening, TeamServer
    from vmstore.serve.tokens import AccessToken, TokenFile

ROLES = ("metrics", "read", "unmasked")


def serve(arguments: argparse.Namespace, screen: Screen) -> int:
    """Serves a store until it is stopped, by SIGTERM or Ctrl-C."""
    from vmstore.debug.guard import is_loopback

    where = _where(arguments)
    server = _server(arguments, where)
    url = where.public or server.door.url.rstrip("/")
    if arguments.json:
        screen.json({"url": url, "port": server.door.port, "tokens": arguments.tokens}, one_line=True)
    else:
        screen.show(url)
        if where.tls is None and where.public is None and not is_loopback(where.host):
            screen.warn("tokens and memory pass unencrypted; give --cert and --key, or --public where TLS ends before")
        screen.note("SIGTERM or Ctrl-C stops it; nothing is written to the store")
    screen.out.flush()
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # raised again once every answer is out
    try:
        server.run()
    finally:
        signal.signal(signal.SIGTERM, before)
        server.close()
    return 0


def _where(arguments: argparse.Namespace) -> Listening:
    try:
        from vmstore.debug.serve import TlsFiles
        from vmstore.serve.server import Listening
    except ImportError as error:
        raise InputError(
            f"the server needs starlette and uvicorn ({error}); get them with: pip install 'vmstore[debug]'",
            code="not-installed",
        ) from error
    if (arguments.cert is None) != (arguments.key is None):
        raise InputError("--cert and --key go together: a certificate, and the key that it is of", code="half-of-tls")
    for file in filter(None, (arguments.cert, arguments.key)):
        if not Path(file).is_file():
            raise InputError(f"there is no file {file}; --cert and --key name files in PEM", code="half-of-tls")
    tls = None if arguments.cert is None else TlsFiles(arguments.cert, arguments.key)
    public = None if arguments.public is None else arguments.public.rstrip("/")
    return Listening(arguments.host, arguments.port, tls, public)


def _server(arguments: argparse.Namespace, where: Listening) -> TeamServer:
    """The server, bound to its port."""
    from vmstore.core.clock import SystemClock
    from vmstore.core.system.waits import WAIT_S
    from vmstore.debug import assets
    from vmstore.namespace.backends.address import backend_of
    from vmstore.serve.server import TeamServer

    backend = backend_of(arguments.store)
    only = _namespaces(arguments)
    backend.check()
    for name in only or ():
        backend.check(name)
    key, prices = arguments.store_key, arguments.prices
    wait_s = WAIT_S if arguments.wait is None else arguments.wait

    def opened(name: str) -> vmstore.Store:
        return opened_to_ask(arguments.store, name, store_key=key, prices=prices, wait_s=wait_s)

    options: dict[str, Any] = {
        "clock": SystemClock(),
        "tokens": None if arguments.tokens is None else _file(arguments),
        "only": None if only is None else frozenset(only),
        "open_metrics": arguments.open_metrics,
    }
    return TeamServer(backend, opened, assets.read(assets.FOLDER), where, **options)


def token(arguments: argparse.Namespace, screen: Screen) -> int:
    """Makes, lists or revokes tokens."""
    file = _file(arguments)
    if arguments.act == "list":
        return _list(file, arguments, screen)
    if arguments.name is None:
        raise InputError(f"which token? write its name: vmstore token {arguments.act} NAME", code="which-token")
    if arguments.act == "revoke":
        file.revoke(arguments.name)
        return screen.answer(arguments, {"revoked": arguments.name}, f"{arguments.name}: revoked")
    only = _namespaces(arguments)
    secret = file.add(arguments.name, arguments.role, None if only is None else tuple(only), arguments.days)
    made = next(token for token in file.all() if token.name == arguments.name)
    if arguments.json:
        screen.json({"token": secret, **_shown(made)})
    else:
        screen.show(secret)
        screen.note("it is shown this once, and stands nowhere; send it as Authorization: Bearer TOKEN")
    return 0


def _list(file: TokenFile, arguments: argparse.Namespace, screen: Screen) -> int:
    tokens = file.all()
    if arguments.json:
        screen.json({"tokens": [_shown(token) for token in tokens]})
        return 0
    if not tokens:
        screen.note(f"no token; `vmstore token add NAME --tokens {file.path}` makes one")
        return 0
    rows = [
        (token.name, token.role, ", ".join(token.namespaces or ("all",)), _day(token.made), _day(token.until))
        for token in tokens
    ]
    columns = (TableColumn("token", style="name"), *map(TableColumn, ("role", "namespaces", "made", "until")))
    screen.show(TextTable(columns, rows))
    return 0


def _shown(token: AccessToken) -> dict[str, Any]:
    """What is told of a token: not its digest."""
    return {
        "name": token.name,
        "role": token.role,
        "namespaces": token.namespaces,
        "made": token.made,
        "until": token.until,
    }


def _day(at: int | None) -> str:
    from vmstore.core.times import iso

    return "for ever" if at is None else iso(at)[:10]


def _file(arguments: argparse.Namespace) -> TokenFile:
    from vmstore.core.clock import SystemClock, SystemIds
    from vmstore.serve.tokens import TokenFile

    return TokenFile(Path(arguments.tokens), SystemClock(), SystemIds())


def _namespaces(arguments: argparse.Namespace) -> list[str] | None:
    """The namespaces that are named, with commas between; None where none is."""
    from vmstore.namespace.folder import check_name

    if arguments.namespace is None:
        return None
    names = [name.strip() for name in arguments.namespace.split(",")]
    for name in names:
        check_name(name)
    return names


def _add_serve(parser: Parser) -> None:
    parser.add_argument("--tokens", metavar="FILE", help="let in who has a token of this file (`vmstore token add`)")
    parser.add_argument(
        "--port", type=port_number, metavar="N", help="this port; 0 takes any (default: 7119, or the next)"
    )
    parser.add_argument(
        "--host", metavar="H", default="127.0.0.1", help="let other machines in; needs --tokens (default: 127.0.0.1)"
    )
    parser.add_argument("--cert", metavar="FILE", help="serve over TLS with this certificate and its chain, in PEM")
    parser.add_argument("--key", metavar="FILE", help="the key of the certificate, in PEM")
    parser.add_argument("--public", metavar="URL", help="its address where a server stands before it")
    parser.add_argument("--open-metrics", action="store_true", help="answer /metrics without a token")
    parser.add_argument("--prices", metavar="FILE", help="estimate by the prices in this JSON file")


def _add_token(parser: Parser) -> None:
    parser.add_argument("act", metavar="ACT", choices=("add", "list", "revoke"), help="add, list or revoke")
    parser.add_argument("name", metavar="NAME", nargs="?", help="what the token is called: whose it is, or what for")
    parser.add_argument("--tokens", metavar="FILE", required=True, help="the file of tokens; made where there is none")
    parser.add_argument(
        "--role", choices=ROLES, metavar="R", default="read",
        help="metrics: figures alone; read (default): all, secrets masked; unmasked: all as it is",
    )  # fmt: skip
    parser.add_argument("--days", type=positive_number, metavar="N", help="let it end after so many days")


COMMANDS = (
    Command(
        "serve",
        "query",
        "serve a store to a team: the debugger, VMQL, exports, figures",
        "Serves the namespaces of a store over HTTP: the debugger's page, statements of VMQL by POST, exports,\n"
        "/health, /ready and /metrics for Prometheus. Who has a token of --tokens may ask, as far as the token\n"
        "reaches; without --tokens it is of this machine alone. Nothing is written to the store. --namespace takes\n"
        "several with commas between.",
        (
            "vmstore serve agent.vms",
            "vmstore serve postgresql://team@db.example/agents --tokens team.tokens --host 0.0.0.0 "
            "--cert server.pem --key server.key",
            "vmstore serve agent.vms --tokens team.tokens --public https://memory.example",
        ),
        serve,
        (add_store, _add_serve),
    ),
    Command(
        "token",
        "query",
        "make, list and revoke tokens of `vmstore serve`",
        "Makes a token and shows it once; the file holds a digest. Of --role metrics it reads figures alone, of read\n"
        "everything with secrets masked, of unmasked everything as it is. --namespace limits it, with commas between\n"
        "several. A server that runs heeds a change at its next request.",
        (
            "vmstore token add ada --tokens team.tokens --role read --namespace team-a --days 30",
            "vmstore token list --tokens team.tokens",
            "vmstore token revoke ada --tokens team.tokens",
        ),
        token,
        (_add_token,),
    ),
)
