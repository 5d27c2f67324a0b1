"""Commands about what is known of pages: choosing them, their versions, their company, and saying more."""

from __future__ import annotations

import argparse
from typing import Any

from vmstore.core.asof import Time, as_of
from vmstore.errors import InputError
from vmstore.namespace.results import to_json
from vmstore.shell.commands.queries.inspect import listed
from vmstore.shell.open_store import moment_of, open_to_ask, open_to_change, session_of
from vmstore.shell.terminal import format_page
from vmstore.shell.terminal.layout import Span
from vmstore.shell.terminal.render import Screen

CHOICES = ("type", "role", "modality", "tier", "level", "tag", "actor", "importance_min")
PLACE = ("order_by", "limit", "after")


def pages(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints the pages that are wanted, of one session or of many."""
    chosen = {word: getattr(arguments, word) for word in CHOICES if getattr(arguments, word) is not None}
    chosen |= {"dirty": True} if arguments.dirty else {}
    told: dict[str, Any] = {**chosen, **{word: getattr(arguments, word) for word in PLACE}}
    whose = {word: getattr(arguments, word) for word in ("user", "agent")}
    many = arguments.all or any(whose.values())
    if many and arguments.session is not None:
        raise InputError(f"--user, --agent and --all ask many sessions, {arguments.session!r} one; leave either out")
    with open_to_ask(arguments) as store:
        session = None if many else session_of(store, arguments)
        moment = moment_of(arguments)
        found = store.pages(moment, **whose, **told) if session is None else session.pages(moment, **told)
    if arguments.json:
        screen.json({"session": None if session is None else session.name, "pages": to_json(found)})
    elif found:
        screen.show(format_page.pages(found, sessions=session is None))
    else:
        screen.note(f"no page with {_words(chosen)} at that moment" if chosen else "no page at that moment")
    return 0


def _words(chosen: dict[str, Any]) -> str:
    return ", ".join(f"{word.replace('_', ' ')} {value}" for word, value in chosen.items())


def faults(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints every return of a page to the context."""
    none = "no page of {} came back to the context after it had left"
    return listed(
        arguments,
        screen,
        "faults",
        lambda asked: asked.debug.faults(moment_of(arguments)),
        format_page.faults,
        none,
    )


def versions(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints the versions of a page."""
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        moment = moment_of(arguments)
        asked = session.page(arguments.page, moment)
        found = session.lineage.versions(arguments.page, moment, delta=arguments.delta)
    if arguments.json:
        screen.json({"session": session.name, "page": asked.page, "versions": to_json(found)})
    else:
        screen.show(format_page.page_head(asked, session.name), format_page.versions(found))
        for one in found if arguments.delta else ():
            screen.show(*format_page.delta(one))
    return 0


def affinity(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints the pages a page stood in the context with."""
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        moment = moment_of(arguments)
        asked = session.page(arguments.page, moment)
        found = session.lineage.affinity(arguments.page, moment, limit=arguments.limit)
    if arguments.json:
        screen.json({"session": session.name, "page": asked.page, "affinities": to_json(found)})
    elif found:
        screen.show(format_page.page_head(asked, session.name), format_page.affinities(found))
    else:
        screen.note(f"no call saw {asked.page} together with another page")
    return 0


def annotate(arguments: argparse.Namespace, screen: Screen) -> int:
    """Says what is known of a page."""
    with open_to_change(arguments) as store:
        session = session_of(store, arguments)
        found = session.annotate(
            arguments.page,
            importance=arguments.importance,
            status=arguments.status,
            valid_from_us=_time(arguments.valid_from),
            valid_to_us=_time(arguments.valid_to),
            tags=arguments.tag,
            untags=arguments.untag,
            anchors=dict(_anchor(text) for text in arguments.anchor),
        )
    if arguments.json:
        screen.json({"session": session.name, "page": to_json(found)})
    elif not screen.quiet:
        screen.show((Span(found.page, "head"), f" of {session.name}: {format_page.known(found)}"))
    return 0


def close(arguments: argparse.Namespace, screen: Screen) -> int:
    """Says that a session ended."""
    with open_to_change(arguments) as store:
        found = session_of(store, arguments).close(arguments.status, arguments.because)
    if arguments.json:
        screen.json(to_json(found))
    elif not screen.quiet:
        screen.show((Span(found.session, "head"), f" is {found.status}"))
    return 0


def _time(text: str | None) -> int | None:
    """A time as microseconds since 1970."""
    moment = as_of(time=text)
    return moment.at if isinstance(moment, Time) else None


def _anchor(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"anchor {text!r} has no value; give NAME=VALUE, or NAME= to take it away")
    return name, value or None
