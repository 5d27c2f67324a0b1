"""Commands about sessions as a whole: which there are, what they cost, their compactions, and a search over all."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from vmstore.shell.commands.arguments import (
    Command,
    Parser,
    add_moment,
    add_owner,
    add_prices,
    add_session,
    add_store,
    positive_number,
    whole_number,
)
from vmstore.shell.commands.queries.inspect import listed
from vmstore.shell.open_store import moment_of, open_to_ask, session_of
from vmstore.shell.terminal import format_overview
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.store.store import Store

ORDERS = ("newest", "oldest", "name", "turns", "calls", "tokens", "cost", "outcome")
PARTS = ("turn", "call", "day", "model")


def sessions(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints the sessions, newest first."""
    owners = {"user": arguments.user, "agent": arguments.agent}
    chosen = {
        "matching": arguments.matching,
        "model": arguments.model,
        "outcome": arguments.outcome,
        "since": arguments.since,
    }
    with open_to_ask(arguments) as store:
        found = store.catalog.overview(order_by=arguments.order_by, limit=arguments.limit, **owners, **chosen)
        prices = store.prices.dated
    if arguments.json:
        screen.json({"sessions": found, "prices_dated": prices})
    elif found:
        screen.show(format_overview.sessions(found), *format_overview.sessions_total(found, prices))
    elif any(value is not None for value in (*owners.values(), *chosen.values())):
        screen.note("no session is like that; `vmstore sessions` without options lists all")
    else:
        screen.note(f"no session yet; `vmstore import {arguments.store} FILE` brings one")
    return 0


def cost(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints what a session cost, by turn, call, day or model."""
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        found, prices = session.wire.costs(arguments.by), store.prices.dated
    if arguments.json:
        screen.json({"session": session.name, "by": arguments.by, "costs": found, "prices_dated": prices})
    elif found:
        screen.show(format_overview.costs(found, arguments.by), *format_overview.costs_total(found, prices))
    else:
        screen.note(f"{session.name} has no call yet, so it cost nothing")
    return 0


def compactions(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints every compaction of a session."""
    return listed(
        arguments,
        screen,
        "compactions",
        lambda session: session.lineage.compactions(moment_of(arguments)),
        format_overview.compactions,
        "no summary replaced pages in {}",
    )


def search(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints the pages that answer a search, of all sessions or of one."""
    words = " ".join(arguments.words)
    with open_to_ask(arguments) as store:
        hits = (store if arguments.session is None else session_of(store, arguments)).search(
            words, limit=arguments.limit
        )
        notes = [*hits.notes, *_mistaken(store, arguments)]
    if arguments.json:
        screen.json({"query": words, "hits": hits, "notes": notes})
        return 0
    for note in notes:
        screen.note(note)
    if hits:
        screen.show(format_overview.hits(hits))
    else:
        screen.note(f"no page has {words!r:.80}")
    return 0


def _mistaken(store: Store, arguments: argparse.Namespace) -> Iterator[str]:
    """A note where the first word is the name of a session: other commands take one there."""
    first, *others = arguments.words
    if others and arguments.session is None and any(info.session == first for info in store.sessions()):
        yield f"{first!r} was looked for as a word; to search that session alone, give --session {shlex.quote(first)}"


def _add_choice(parser: Parser) -> None:
    parser.add_argument(
        "--matching", metavar="WORDS", help="only sessions with these words in name, title or first line"
    )
    parser.add_argument("--model", metavar="M", help="only sessions that last asked a model with M in its name")
    parser.add_argument("--outcome", metavar="O", help="only sessions their source calls so, like failed")
    parser.add_argument("--since", metavar="T", help="only sessions in which something happened at T or later")
    parser.add_argument(
        "--order-by", choices=ORDERS, default="newest", metavar="O", help=f"{', '.join(ORDERS)} (default: newest)"
    )
    parser.add_argument("--limit", type=whole_number, metavar="N", help="at most N sessions")


def _add_by(parser: Parser) -> None:
    parser.add_argument("--by", choices=PARTS, default="turn", metavar="P", help=f"{', '.join(PARTS)} (default: turn)")


def _add_search(parser: Parser) -> None:
    parser.add_argument("words", metavar="WORDS", nargs="+", help='words, "phrases", prefix*, -not')
    parser.add_argument("--session", metavar="SESSION", help="only in this session")
    parser.add_argument("--limit", type=positive_number, default=10, metavar="N", help="at most N pages (default: 10)")


COMMANDS = (
    Command(
        "sessions",
        "query",
        "every session: when, what about, how long, what it cost",
        "Lists the sessions, newest first: when something happened last, turns, calls, tokens, cost, how many calls\n"
        "were recorded as they were sent, and the title or what was said first. A cost after ≈ is estimated by a list\n"
        "of prices; a date is left out where the source held no times.",
        (
            "vmstore sessions agent.vms",
            "vmstore sessions agent.vms --order-by cost --limit 10",
            "vmstore sessions agent.vms --matching refund --since 2026-03-01",
        ),
        sessions,
        (add_store, _add_choice, add_owner, add_prices),
    ),
    Command(
        "cost",
        "query",
        "what a session cost, by turn, call, day or model",
        "Shows what the calls of a session cost, with a bar for each turn and the sum so far. What the source\n"
        "recorded is shown as it is; where it recorded nothing, the cost is estimated by a dated list of prices and\n"
        "marked ≈.",
        (
            "vmstore cost agent.vms planning-220",
            "vmstore cost agent.vms planning-220 --by model",
            "vmstore cost agent.vms - --prices prices.json --json",
        ),
        cost,
        (add_store, add_session, _add_by, add_prices),
    ),
    Command(
        "compactions",
        "query",
        "what each compaction threw away",
        "Lists the compactions of a session: the call at which a summary replaced pages of the prompt, how many\n"
        "pages and tokens left, what stands in their place, and how many came back since. `vmstore diff --calls`\n"
        "shows the pages themselves.",
        (
            "vmstore compactions agent.vms planning-220",
            "vmstore compactions agent.vms planning-220 --json",
        ),
        compactions,
        (add_store, add_session, add_moment),
    ),
    Command(
        "search",
        "query",
        "pages with some words, in all sessions",
        "Finds pages by their words, in the context or not, best first: the session and the line with the words.\n"
        "`vmql` asks the same with more choices: SEARCH 'words' ACROSS SESSIONS.",
        (
            "vmstore search agent.vms retention policy",
            "vmstore search agent.vms --session planning-220 '\"raw EDI\"' --limit 3",
        ),
        search,
        (add_store, _add_search),
    ),
)
