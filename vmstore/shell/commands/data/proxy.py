"""The command that records what passes between an agent and its model."""

from __future__ import annotations

import argparse
import asyncio
import secrets
from typing import TYPE_CHECKING

from vmstore.errors import InputError
from vmstore.shell.commands.arguments import Command, Parser, add_store
from vmstore.shell.open_store import key_named, namespace_of
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.proxy.serve import BoundPort


def proxy(arguments: argparse.Namespace, screen: Screen) -> int:
    """Forwards requests and records the calls among them until Ctrl-C."""
    from vmstore.capture.client.wrap import stamp
    from vmstore.core.clock import SystemClock
    from vmstore.core.system.waits import WAIT_S
    from vmstore.debug.guard import is_loopback

    try:
        from vmstore.proxy.serve import Proxy, bound
    except ImportError as error:
        raise InputError(f"the proxy needs aiohttp ({error}); get it with: pip install 'vmstore[proxy]'") from error
    from vmstore.proxy.frames import OpenStore
    from vmstore.proxy.ports import PORT, port_settings, upstreams_of

    clock = SystemClock()
    upstreams = upstreams_of(arguments.upstream)
    token = None if is_loopback(arguments.host) else secrets.token_urlsafe(32)
    settings = [port_settings(text, upstreams, markers=arguments.markers) for text in arguments.port or [str(PORT)]]
    ports = bound(settings, arguments.host, token)
    opening = OpenStore(
        path=str(arguments.store),
        namespace=namespace_of(arguments),
        key=arguments.store_key,
        encrypted_key=key_named(None),
        wait_s=WAIT_S if arguments.wait is None else arguments.wait,
        base=f"proxy-{stamp(clock.now())}",
        redaction=arguments.redact,
    )

    async def run() -> int:
        return await Proxy(opening, ports, clock).run(lambda: _show_started(ports, token, arguments, screen))

    unwritten = asyncio.run(run())
    if unwritten:
        screen.warn(f"{count(unwritten, 'call')} not written yet; the writer stays until the store takes them")
    return 1 if unwritten else 0


def _show_started(ports: list[BoundPort], token: str | None, arguments: argparse.Namespace, screen: Screen) -> None:
    """Says where the proxy listens, and what a client needs to be told."""
    urls = [port.address._replace(token=None).url.rstrip("/") for port in ports]
    if arguments.json:
        entries = [
            {"url": url, "port": port.address.port, "upstreams": port.settings.upstreams}
            for url, port in zip(urls, ports, strict=True)
        ]
        screen.json({"ports": entries, "token": token}, one_line=True)
    else:
        for url, port in zip(urls, ports, strict=True):
            targets = sorted(set(port.settings.upstreams.values()))
            screen.show(f"{url}  to {', '.join(targets)}")
        if token is not None:
            screen.show(f"x-vmstore-token: {token}")
        screen.note(f"ANTHROPIC_BASE_URL={urls[0]}  OPENAI_BASE_URL={urls[0]}/v1  GOOGLE_GEMINI_BASE_URL={urls[0]}")
        screen.note(f"recorded in {arguments.store}; figures at {urls[0]}/vmstore; Ctrl-C stops it")
    screen.out.flush()


def _add_proxy(parser: Parser) -> None:
    parser.add_argument(
        "--upstream",
        metavar="URL",
        action="append",
        default=[],
        help="send requests there; PROVIDER=URL only those of anthropic, openai or gemini (default: their own APIs)",
    )
    parser.add_argument(
        "--port",
        metavar="N[=UPSTREAM][,SETTING=VALUE…]",
        action="append",
        help="listen there; may be given again, each with an upstream and settings of its own: session, redact, "
        "namespace, markers, window, rounds (default: 5757)",
    )
    parser.add_argument(
        "--markers",
        action="store_true",
        help="put a marker into each answer that says which session its conversation is, and cut it out of requests",
    )
    parser.add_argument(
        "--redact",
        choices=("off", "mask", "refuse"),
        metavar="off|mask|refuse",
        help="what to do with secrets and personal data in what is recorded (default: as the session has it)",
    )
    parser.add_argument(
        "--host", metavar="H", default="127.0.0.1", help="let other machines in, with a token (default: 127.0.0.1)"
    )


COMMANDS = (
    Command(
        "proxy",
        "import",
        "record what an agent sends to its model, as an HTTP proxy",
        "Forwards requests to OpenAI, Anthropic and Gemini byte for byte, and records each call to a model as it\n"
        "was sent and answered. Point the agent's base URL at it. A port with window=TOKENS sends what is larger as\n"
        "the memory assembles it. A store that cannot be written to never harms a call: it waits, or stands as a\n"
        "gap. Keys pass through and are not recorded. Ctrl-C stops it.",
        (
            "vmstore proxy agent.vms",
            "vmstore proxy agent.vms --upstream openai=http://localhost:11434",
            "vmstore proxy agent.vms --port 8001=anthropic,window=60000 --port 8002=openai,redact=mask",
        ),
        proxy,
        (add_store, _add_proxy),
    ),
)
