"""Commands about pages: pages, faults, versions, affinity."""

from __future__ import annotations

import argparse
from typing import Any

from vmstore.errors import InputError
from vmstore.shell.commands.arguments import (
    Command,
    Parser,
    add_moment,
    add_owner,
    add_page,
    add_session,
    add_store,
    whole_number,
)
from vmstore.shell.open_store import moment_of, open_to_ask, session_of
from vmstore.shell.terminal import format_page
from vmstore.shell.terminal.render import Screen

CHOICES = ("type", "role", "modality", "tier", "level", "tag", "actor", "importance_min")
PLACE = ("order_by", "limit", "after")
ORDERS = ("position", "importance", "tokens", "recency")


def pages(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints the pages that are wanted, of one session or of many."""
    chosen = {word: getattr(arguments, word) for word in CHOICES if getattr(arguments, word) is not None}
    chosen |= {"dirty": True} if arguments.dirty else {}
    options: dict[str, Any] = {**chosen, **{word: getattr(arguments, word) for word in PLACE}}
    owners = {word: getattr(arguments, word) for word in ("user", "agent")}
    many = arguments.all or any(owners.values())
    if many and arguments.session is not None:
        raise InputError(f"--user, --agent and --all ask many sessions, {arguments.session!r} one; leave either out")
    with open_to_ask(arguments) as store:
        session = None if many else session_of(store, arguments)
        moment = moment_of(arguments)
        chosen_pages = store.pages(moment, **owners, **options) if session is None else session.pages(moment, **options)
    if arguments.json:
        screen.json({"session": None if session is None else session.name, "pages": chosen_pages})
    elif chosen_pages:
        screen.show(format_page.pages(chosen_pages, sessions=session is None))
    else:
        screen.note(f"no page with {_words(chosen)} at that moment" if chosen else "no page at that moment")
    return 0


def _words(chosen: dict[str, Any]) -> str:
    return ", ".join(f"{word.replace('_', ' ')} {value}" for word, value in chosen.items())


def faults(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints every return of a page to the context."""
    from vmstore.shell.commands.queries.inspect import listed

    none = "no page of {} came back to the context after it had left"
    return listed(
        arguments,
        screen,
        "faults",
        lambda session: session.debug.faults(moment_of(arguments)),
        format_page.faults,
        none,
    )


def versions(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints the versions of a page."""
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        moment = moment_of(arguments)
        page = session.page(arguments.page, moment)
        all_versions = session.lineage.versions(arguments.page, moment, delta=arguments.delta)
    if arguments.json:
        screen.json({"session": session.name, "page": page.page, "versions": all_versions})
    else:
        screen.show(format_page.page_head(page, session.name), format_page.versions(all_versions))
        for version in all_versions if arguments.delta else ():
            screen.show(*format_page.delta(version))
    return 0


def affinity(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints the pages a page stood in the context with."""
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        moment = moment_of(arguments)
        page = session.page(arguments.page, moment)
        affinities = session.lineage.affinity(arguments.page, moment, limit=arguments.limit)
    if arguments.json:
        screen.json({"session": session.name, "page": page.page, "affinities": affinities})
    elif affinities:
        screen.show(format_page.page_head(page, session.name), format_page.affinities(affinities))
    else:
        screen.note(f"no call saw {page.page} together with another page")
    return 0


def _add_choice(parser: Parser) -> None:
    group = parser.add_argument_group("only pages that")
    group.add_argument("--type", metavar="TYPE", help="are of this type, like claim or summary")
    group.add_argument("--role", metavar="ROLE", help="have this role, like user or tool")
    group.add_argument("--modality", metavar="M", help="hold this, like text or image")
    group.add_argument("--tier", metavar="TIER", help="are there: L0 is the prompt, L2 the store")
    group.add_argument("--level", type=int, choices=range(4), metavar="0-3", help="are shown so: 0 full to 3 reference")
    group.add_argument("--tag", metavar="TAG", help="have this tag")
    group.add_argument("--actor", metavar="WHO", help="were made by them: whom a page names, else its role")
    group.add_argument("--importance-min", type=float, metavar="X", help="are this important or more, from 0 to 1")
    group.add_argument("--dirty", action="store_true", help="were made from a page that changed since")
    order = parser.add_argument_group("in which order")
    order.add_argument(
        "--order-by", choices=ORDERS, default="position", metavar="O", help=f"{', '.join(ORDERS)} (default: position)"
    )
    order.add_argument("--limit", type=whole_number, metavar="N", help="at most N pages")
    order.add_argument("--after", metavar="PAGE", help="go on after the last page of an answer")


def _add_all(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help="the pages of all sessions")


def _add_delta(parser: Parser) -> None:
    parser.add_argument("--delta", action="store_true", help="show what changed, line by line")


def _add_limit(parser: Parser) -> None:
    parser.add_argument("--limit", type=whole_number, default=20, metavar="N", help="at most N pages (default: 20)")


COMMANDS = (
    Command(
        "pages",
        "query",
        "every page there was at a moment, in context or not, or those wanted",
        "Lists every page there was at a moment: where it is (L0 is the prompt), its level and size; or those\n"
        "that are wanted, in the order that is. With --user, --agent or --all the pages of many sessions,\n"
        "each as the session that made it has it.",
        (
            "vmstore pages agent.vms planning-220 --type claim",
            "vmstore pages agent.vms planning-220 --turn 42 --tier L0 --order-by tokens --limit 5",
            "vmstore pages agent.vms --all --tag todo --importance-min 0.8",
        ),
        pages,
        (add_store, add_session, add_moment, _add_choice, add_owner, _add_all),
    ),
    Command(
        "faults",
        "query",
        "the pages that came back to the context",
        "Lists every time a page came back to the context after it had left: when, since when it was out,\n"
        "and the tokens it shows.",
        ("vmstore faults agent.vms planning-220", "vmstore faults agent.vms --turn 42 --json"),
        faults,
        (add_store, add_session, add_moment),
    ),
    Command(
        "versions",
        "query",
        "the versions of a page, and what each added",
        "Lists every content a page was given, its shorter forms included, each with what it added to the one\n"
        "it was made from; with --delta the difference of texts, line by line.",
        ("vmstore versions agent.vms planning-220 p17", "vmstore versions agent.vms p17 --delta"),
        versions,
        (add_store, add_session, add_page, _add_delta, add_moment),
    ),
    Command(
        "affinity",
        "query",
        "which pages a page stood in the context with",
        "Lists the pages that were in the context together with a page, nearest first: the share of calls\n"
        "that saw both among those that saw either.",
        ("vmstore affinity agent.vms planning-220 p17", "vmstore affinity agent.vms p17 --limit 5 --turn 42"),
        affinity,
        (add_store, add_session, add_page, _add_limit, add_moment),
    ),
)
