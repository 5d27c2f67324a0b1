"""The command that has texts embedded, and says how many are."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

import vmstore
from vmstore.errors import InputError
from vmstore.shell.commands.arguments import Command, Parser, add_store, positive_number
from vmstore.shell.open_store import open_to_ask, open_to_change
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import StyledText
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.namespace.reports import EmbeddedShare, EmbeddingReport


def embed(arguments: argparse.Namespace, screen: Screen) -> int:
    """Embeds what has no vector yet; 1 where the embedder stopped it."""
    if arguments.url is None and not arguments.hash:
        from vmstore.maintenance.vector_coverage import vector_coverage

        with open_to_ask(arguments) as store:
            shares = vmstore.embedded(store)
            with store._ns.asking():
                coverage = vector_coverage(store._ns.views)
        lines = [_share(one) for one in shares] or ["nothing is embedded"]
        lines += [f"to be embedded: {coverage.due}"] if coverage is not None and coverage.due is not None else []
        return screen.answer(arguments, {"models": shares, "coverage": coverage}, *lines)
    embedder = _embedder(arguments)
    with open_to_change(arguments) as store, screen.progress("embedding") as tell:
        store.embedder = embedder
        report = store.index.embed(
            arguments.session or None, inherited=arguments.inherited, batch=arguments.batch, progress=tell
        )
        shares = [one for one in vmstore.embedded(store) if one.model == report.model]
    if arguments.json:
        screen.json({"report": report, "models": shares})
    elif not screen.quiet or report.stopped is not None:
        _show(report, shares, screen)
    return 1 if report.stopped is not None or report.failed else 0


def _embedder(arguments: argparse.Namespace) -> object:
    from vmstore.embedders.hash_grams import HashGrams
    from vmstore.embedders.http import HttpEmbedder

    if arguments.hash:
        return HashGrams()
    if arguments.model is None:
        raise InputError("--url needs --model, the name the server knows")
    key = None
    if arguments.key_env is not None:
        key = os.environ.get(arguments.key_env)
        if not key:
            raise InputError(f"the environment has no {arguments.key_env}; set it to the key, or leave --key-env out")
    return HttpEmbedder(
        arguments.url, arguments.model, api_key=key, dimension=arguments.dimension, timeout_s=float(arguments.timeout)
    )


def _share(one: EmbeddedShare) -> str:
    return f"{one.model}: {one.embedded:,} of {count(one.texts, 'text')}"


def _show(report: EmbeddingReport, shares: list[EmbeddedShare], screen: Screen) -> None:
    copied = f", {report.copied:,} of them copied" if report.copied else ""
    screen.show(
        (StyledText("embedded", "good"), f": {count(report.contents, 'text')} in {report.vectors:,} vectors{copied}")
    )
    for why, times in report.failed.items():
        screen.show((StyledText("failed", "bad"), f": {count(times, 'text')}: {why}"))
    if report.stopped is not None:
        screen.show((StyledText("stopped", "bad"), f": {report.stopped}; {count(report.left, 'text')} left"))
    for one in shares:
        screen.show(_share(one))


def _add_embed(parser: Parser) -> None:
    parser.add_argument("--session", metavar="SESSION", action="append", help="only this one; may be given again")
    parser.add_argument("--url", metavar="URL", help="the server's address, like https://host/v1")
    parser.add_argument("--model", metavar="M", help="the model's name, as the server knows it")
    parser.add_argument("--key-env", metavar="VAR", help="the environment's variable that holds the server's key")
    parser.add_argument("--dimension", type=positive_number, metavar="N", help="ask for vectors of N numbers")
    parser.add_argument("--hash", action="store_true", help="no server: hashed runs of four characters, no meaning")
    parser.add_argument("--inherited", action="store_true", help="also what a fork has of its past")
    parser.add_argument("--batch", type=positive_number, metavar="N", default=64, help="chunks at once (default: 64)")
    parser.add_argument("--timeout", type=positive_number, metavar="S", default=30, help="of a question (default: 30)")


COMMANDS = (
    Command(
        "embed",
        "maintain",
        "ask an embedder about texts that have no vector yet",
        "Asks an embedder about every text that has no vector of it yet, a batch at a time, and logs what it\n"
        "answers. It may be stopped at any moment and resumes where it was. Secrets are masked before a text\n"
        "is sent. Without --url and --hash it says how many texts have vectors, and sends nothing.",
        (
            "vmstore embed agent.vms --hash",
            "vmstore embed agent.vms --url http://localhost:11434/v1 --model nomic-embed-text",
            "vmstore embed agent.vms --url https://api.openai.com/v1 --model text-embedding-3-small --key-env KEY",
        ),
        embed,
        (add_store, _add_embed),
    ),
)
