"""Commands that ask: each opens the store, asks one question, prints the answer."""

from __future__ import annotations

import argparse
import base64
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from vmstore.core.address import parse
from vmstore.core.asof import Call, Position, Turn
from vmstore.core.text.skeleton import bytes_text
from vmstore.errors import InputError
from vmstore.namespace.results import Relation, Response, to_json
from vmstore.shell.open_store import moment_of, open_to_ask, session_of
from vmstore.shell.terminal import format_page, format_session
from vmstore.shell.terminal.format import size
from vmstore.shell.terminal.layout import Block, Line, one_line_each
from vmstore.shell.terminal.render import Screen
from vmstore.shell.terminal.transcript import response_lines, transcript
from vmstore.store.session import Session

T = TypeVar("T")


def info(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints what a store holds."""
    with open_to_ask(arguments) as store:
        found = store.info()
    if arguments.json:
        screen.json(to_json(found))
    else:
        screen.show(*format_session.info(found))
    return 0


def sessions(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints every session."""
    with open_to_ask(arguments) as store:
        found = store.sessions(user=arguments.user, agent=arguments.agent)
    if arguments.json:
        screen.json({"sessions": to_json(found)})
    elif found:
        screen.show(format_session.sessions(found))
    elif arguments.user is not None or arguments.agent is not None:
        screen.note("no session of theirs; `vmstore sessions` without --user and --agent lists all")
    else:
        screen.note(f"no session yet; `vmstore import {arguments.store} FILE` brings one")
    return 0


def turns(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints a session's turns."""
    return listed(arguments, screen, "turns", Session.turns, format_session.turns, "{} has no turn yet")


def calls(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints a session's calls."""
    return listed(arguments, screen, "calls", Session.calls, format_session.calls, "{} has no call yet")


def listed(
    arguments: argparse.Namespace,
    screen: Screen,
    what: str,
    ask: Callable[[Session], list[T]],
    look: Callable[[list[T]], Block],
    none: str,
) -> int:
    """Prints what a session has many of; `none` says of its name that it has not one."""
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        found = ask(session)
    if arguments.json:
        screen.json({"session": session.name, what: to_json(found)})
    elif found:
        screen.show(look(found))
    else:
        screen.note(none.format(session.name))
    return 0


def context(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints what the model saw at a call."""
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        found = session.context(moment_of(arguments))
        if arguments.response:
            _response(screen, session.wire.response(Call(found.basis.call)), json=arguments.json)
        elif arguments.json:
            screen.json(found.to_dict(messages=arguments.messages, render=arguments.render))
        elif arguments.render:
            if found.fidelity == "derived":  # the text itself stays clean, so it can be piped on
                screen.note(format_session.fidelity(found.fidelity))
            _text(screen, found.text())
        elif arguments.messages:
            screen.show(*format_session.context_head(found), *transcript(found.messages()))
        else:
            screen.show(*format_session.context(found))
    return 0


def _response(screen: Screen, found: Response, *, json: bool) -> None:
    """Prints what came back for a call."""
    if json:
        screen.json(to_json(found))
    else:
        screen.show(*format_session.response_head(found), *response_lines(found))


def diff(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints what changed between two contexts."""
    kinds = (("turns", Turn), ("calls", Call), ("positions", Position))
    first, last = next(
        (kind(numbers[0]), kind(numbers[1])) for word, kind in kinds if (numbers := getattr(arguments, word))
    )
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        found = session.diff(first, last)
    if arguments.json:
        screen.json(to_json(found))
    else:
        screen.show(*format_session.diff(found))
    return 0


def page(arguments: argparse.Namespace, screen: Screen) -> int:
    """Writes a page's exact content."""
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        moment = moment_of(arguments)
        found = session.page(arguments.page, moment)
        level = parse(arguments.page).level if arguments.level is None else arguments.level
        content = session.content(arguments.page, moment, level=level)
    if arguments.json:
        told: dict[str, Any] = {"page": to_json(found), "level": level or 0, "bytes": len(content)}
        try:
            screen.json({**told, "content": bytes_text(content)})
        except UnicodeDecodeError:
            screen.json({**told, "content": None, "base64": base64.b64encode(content).decode()})
    elif not screen.terminal:
        screen.raw(content)
    else:
        _text(screen, _readable(arguments.page, found.mime, content))
    return 0


def history(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints what happened to a page."""
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        moment = moment_of(arguments)
        asked = session.page(arguments.page, moment)
        found = session.lineage.history(arguments.page, moment)
    if arguments.json:
        screen.json({"session": session.name, "page": asked.page, "events": to_json(found)})
    else:
        screen.show(format_page.page_head(asked, session.name), format_page.history(found))
    return 0


def sources(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints where a page comes from."""
    return _lineage(arguments, screen, up=True)


def derived(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints what came of a page."""
    return _lineage(arguments, screen, up=False)


def _lineage(arguments: argparse.Namespace, screen: Screen, *, up: bool) -> int:
    kinds = None if arguments.kinds is None else [kind.strip() for kind in arguments.kinds.split(",")]
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        asked = session.page(arguments.page)
        walk = session.lineage.ancestors if up else session.lineage.descendants
        found = walk(arguments.page, depth=arguments.depth, kinds=kinds)
        if arguments.json:
            screen.json({"session": session.name, "page": asked.page, "relations": to_json(found)})
        else:
            tree = lineage(session, asked.page, found, up=up)
            screen.show(format_page.page_head(asked, session.name), one_line_each(tree))
    return 0


def lineage(session: Session, root: str, found: Sequence[Relation], *, up: bool) -> list[Line]:
    """A walk as a tree, each page with its hint and its beginning."""
    hints = {page.page: page.hint for page in session.pages() if page.hint}
    return format_page.tree(root, found, hints, up=up)


def tail(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints mutations in the order they were logged."""
    with open_to_ask(arguments) as store:
        entries = store.tail(arguments.after, limit=arguments.limit)
        if arguments.json:
            found = list(entries)
            cursor = found[-1].cursor if found else arguments.after
            screen.json({"entries": to_json(found), "cursor": cursor})
        else:
            for entry in entries:
                screen.show(format_session.entry(entry))
    return 0


def _text(screen: Screen, text: str) -> None:
    """Prints a text as it is in a pipe, and made harmless on a terminal."""
    if screen.terminal:
        for line in text.split("\n"):
            screen.show(line.rstrip("\r"))
    else:
        screen.raw(text.encode("utf-8", "backslashreplace") + b"\n")


def _readable(name: str, mime: str, content: bytes) -> str:
    try:
        if b"\0" in content:
            raise UnicodeDecodeError("utf-8", content, 0, 1, "binary")
        return content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise InputError(
            f"{name} is {size(len(content))} of {mime}, no text; send it to a file: … > {name}.bin"
        ) from None
