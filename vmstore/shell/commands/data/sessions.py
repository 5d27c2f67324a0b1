"""Commands that change sessions: fork, annotate, close."""

from __future__ import annotations

import argparse

import vmstore
from vmstore.errors import InputError
from vmstore.shell.commands.arguments import MOMENTS, Command, Parser, add_page, add_session, add_store
from vmstore.shell.open_store import moment_of, open_to_change, session_of
from vmstore.shell.terminal import format_page
from vmstore.shell.terminal.layout import StyledText
from vmstore.shell.terminal.render import Screen


def fork(arguments: argparse.Namespace, screen: Screen) -> int:
    """Makes a session that shares another's past."""
    with open_to_change(arguments) as store:
        parent = session_of(store, arguments)
        child = parent.fork(arguments.name, moment_of(arguments)).info()
    place = f"turn {child.turns}, call {child.calls}, position {child.fork_position}"
    return screen.answer(
        arguments, child, (StyledText(child.session, "head"), f" shares the past of {parent.name} up to {place}")
    )


def annotate(arguments: argparse.Namespace, screen: Screen) -> int:
    """Says what is known of a page."""
    with open_to_change(arguments) as store:
        session = session_of(store, arguments)
        page = session.annotate(
            arguments.page,
            importance=arguments.importance,
            status=arguments.status,
            valid_from_us=_microseconds(arguments.valid_from),
            valid_to_us=_microseconds(arguments.valid_to),
            tags=arguments.tag,
            untags=arguments.untag,
            anchors=dict(_anchor(text) for text in arguments.anchor),
        )
    return screen.answer(
        arguments,
        {"session": session.name, "page": page},
        (StyledText(page.page, "head"), f" of {session.name}: {format_page.known(page)}"),
    )


def close(arguments: argparse.Namespace, screen: Screen) -> int:
    """Says that a session ended, or that those did in which nothing was said for long."""
    if arguments.idle is not None:
        if arguments.session is not None or arguments.because is not None:
            raise InputError("--idle closes all it finds and says why itself; leave SESSION and --because out")
        with open_to_change(arguments) as store:
            names = store.admin.close_idle(arguments.idle)
        lines = [(StyledText(name, "head"), " is completed") for name in names]
        none = (StyledText("no session was silent for so long", "quiet"), "")
        return screen.answer(arguments, {"closed": names}, *(lines or [none]))
    with open_to_change(arguments) as store:
        info = session_of(store, arguments).close(arguments.status, arguments.because)
    return screen.answer(arguments, info, (StyledText(info.session, "head"), f" is {info.status}"))


def _microseconds(text: str | None) -> int | None:
    """A time as microseconds since 1970."""
    from vmstore.core.asof import as_of

    moment = as_of(time=text)
    return moment.at if isinstance(moment, vmstore.Time) else None


def _anchor(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"anchor {text!r} has no value; give NAME=VALUE, or NAME= to take it away")
    return name, value or None


def _add_fork(parser: Parser) -> None:
    group = parser.add_mutually_exclusive_group(required=True)
    for word in MOMENTS:
        group.add_argument(f"--at-{word}", type=int, metavar="N", dest=word, help=f"share the past up to {word} N")
    parser.add_argument("--as", dest="name", metavar="NAME", required=True, help="the new session's name")


def _add_annotate(parser: Parser) -> None:
    parser.add_argument("--importance", type=float, metavar="X", help="how important it is, from 0 to 1")
    parser.add_argument("--tag", action="append", default=[], metavar="T", help="a tag it gains; may be given again")
    parser.add_argument("--untag", action="append", default=[], metavar="T", help="a tag it loses")
    parser.add_argument("--status", metavar="S", help="active, planned, completed, abandoned, recurring or superseded")
    parser.add_argument("--valid-from", metavar="T", help="from when what it says holds, like 2026-11-21")
    parser.add_argument("--valid-to", metavar="T", help="until when")
    parser.add_argument(
        "--anchor", action="append", default=[], metavar="NAME=VALUE", help="a value by name; NAME= takes it away"
    )


def _add_close(parser: Parser) -> None:
    parser.add_argument("--status", default="completed", metavar="S", help="completed (default) or abandoned")
    parser.add_argument("--because", metavar="TEXT", help="why it ended")
    parser.add_argument(
        "--idle", type=float, metavar="HOURS", help="close every session in which nothing was said for so long"
    )


COMMANDS = (
    Command(
        "fork",
        "maintain",
        "a new session that shares another's past",
        "Makes a new session that shares a session's past up to a moment and nothing after. It copies\n"
        "nothing; parent and child never see each other's later mutations.",
        ("vmstore fork agent.vms planning-220 --at-turn 42 --as try-b",),
        fork,
        (add_store, add_session, _add_fork),
    ),
    Command(
        "annotate",
        "maintain",
        "say what is known of a page",
        "Says what is known of a page from here on: how important it is, its tags, how what it says stands\n"
        "and when it holds. What is left out stays as it was; what was said before stays asked as of then.",
        (
            "vmstore annotate agent.vms planning-220 p17 --importance 0.9 --tag decision",
            "vmstore annotate agent.vms claim_storage_4 --untag open --status completed",
            "vmstore annotate agent.vms p4 --anchor user.name=Ada --valid-from 2026-03-02",
        ),
        annotate,
        (add_store, add_session, add_page, _add_annotate),
    ),
    Command(
        "close",
        "maintain",
        "say that a session ended",
        "Says that a session was completed or abandoned, and why; with --idle, that every one is completed in which\n"
        "nothing was said for so many hours. Nothing is deleted, and every question about it\n"
        "is answered as before; a later message takes it up again.",
        (
            "vmstore close agent.vms planning-220",
            "vmstore close agent.vms planning-221 --status abandoned --because 'the plan changed'",
            "vmstore close agent.vms --idle 24",
        ),
        close,
        (add_store, add_session, _add_close),
    ),
)
