"""Commands that ask: each opens the store, asks one question, prints the answer."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import vmstore
from vmstore.errors import InputError
from vmstore.shell.commands.arguments import (
    MOMENTS,
    Command,
    Parser,
    add_moment,
    add_page,
    add_prices,
    add_session,
    add_store,
    positive_number,
    whole_number,
)
from vmstore.shell.open_store import moment_of, open_to_ask, session_of
from vmstore.shell.terminal import format_overview, format_page, format_session
from vmstore.shell.terminal.format import size
from vmstore.shell.terminal.layout import Block, Line
from vmstore.shell.terminal.render import Screen
from vmstore.shell.terminal.transcript import response_lines, transcript

if TYPE_CHECKING:
    from vmstore.namespace.results import PageLink, Response

T = TypeVar("T")
ROWS = 40  # of a long answer on a terminal
FOLLOWED_S = 60.0  # waited for the next mutation at once


def info(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints what a store holds."""
    with open_to_ask(arguments) as store:
        store_info = store.info()
    if arguments.json:
        screen.json(store_info)
    else:
        screen.show(*format_session.info(store_info))
    return 0


def turns(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints a session's turns."""
    return listed(
        arguments, screen, "turns", lambda session: session.turns(), format_session.turns, "{} has no turn yet"
    )


def calls(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints a session's calls."""
    return listed(
        arguments,
        screen,
        "calls",
        lambda session: session.calls(),
        format_session.calls,
        "{} has no call yet",
        format_overview.calls_total,
    )


def listed(
    arguments: argparse.Namespace,
    screen: Screen,
    what: str,
    get: Callable[[vmstore.Session], list[T]],
    table: Callable[[list[T]], Block],
    none: str,
    total: Callable[[list[T]], list[Block]] = lambda _: [],
) -> int:
    """Prints what a session has many of, and what it comes to; `none` says of its name that it has not one."""
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        items = get(session)
    if arguments.json:
        screen.json({"session": session.name, what: items})
    elif items:
        screen.show(table(items), *total(items))
    else:
        screen.note(none.format(session.name))
    return 0


def context(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints what the model saw at a call."""
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        prompt = session.context(moment_of(arguments))
        if arguments.response:
            _response(screen, session.wire.response(vmstore.Call(prompt.basis.call)), json=arguments.json)
        elif arguments.json:
            screen.json(prompt.to_dict(messages=arguments.messages, render=arguments.render))
        elif arguments.render:
            if prompt.fidelity == "derived":  # the text itself stays clean, so it can be piped on
                screen.note(format_session.fidelity(prompt.fidelity))
            _text(screen, prompt.text())
        elif arguments.messages:
            screen.show(*format_session.context_head(prompt), *transcript(prompt.messages()))
        else:
            screen.show(*format_session.context(prompt, rows_of(arguments, screen)))
    return 0


def _response(screen: Screen, response: Response, *, json: bool) -> None:
    """Prints what came back for a call."""
    if json:
        screen.json(response)
    else:
        screen.show(*format_session.response_head(response), *response_lines(response))


def diff(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints what changed between two contexts."""
    if arguments.other is not None:
        return _sessions_diff(arguments, screen)
    kinds = (("turns", vmstore.Turn), ("calls", vmstore.Call), ("positions", vmstore.Position))
    first, last = next(
        (kind(numbers[0]), kind(numbers[1])) for word, kind in kinds if (numbers := getattr(arguments, word))
    )
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        difference = session.diff(first, last)
    if arguments.json:
        screen.json(difference)
    else:
        screen.show(*format_session.diff(difference, rows_of(arguments, screen)))
    return 0


def rows_of(arguments: argparse.Namespace, screen: Screen) -> int | None:
    """How many rows of a long answer are shown; None for all, as in a pipe."""
    if arguments.all or (arguments.limit is None and not screen.terminal):
        return None
    limit: int = ROWS if arguments.limit is None else arguments.limit
    return limit


def _sessions_diff(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints two sessions side by side."""
    with open_to_ask(arguments) as store:
        first, second = (store.catalog.find_session(name) for name in (arguments.session, arguments.other))
        difference = first.debug.compare(second.name)
    if arguments.json:
        screen.json(difference)
    else:
        screen.show(*format_overview.compared(difference, whole=arguments.all))
    return 0


def page(arguments: argparse.Namespace, screen: Screen) -> int:
    """Writes a page's exact content."""
    from vmstore.core.address import parse
    from vmstore.core.text.skeleton import bytes_text

    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        moment = moment_of(arguments)
        page_info = session.page(arguments.page, moment)
        level = parse(arguments.page).level if arguments.level is None else arguments.level
        content = session.content(arguments.page, moment, level=level)
    if arguments.json:
        fields: dict[str, Any] = {"page": page_info, "level": level or 0, "bytes": len(content)}
        try:
            screen.json({**fields, "content": bytes_text(content)})
        except UnicodeDecodeError:
            import base64

            screen.json({**fields, "content": None, "base64": base64.b64encode(content).decode()})
    elif not screen.terminal:
        screen.raw(content)
    else:
        _text(screen, _readable(arguments.page, page_info.mime, content))
    return 0


def history(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints what happened to a page."""
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        moment = moment_of(arguments)
        page = session.page(arguments.page, moment)
        events = session.lineage.history(arguments.page, moment)
    if arguments.json:
        screen.json({"session": session.name, "page": page.page, "events": events})
    else:
        screen.show(format_page.page_head(page, session.name), format_page.history(events))
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
        page = session.page(arguments.page)
        walk = session.lineage.ancestors if up else session.lineage.descendants
        relations = walk(arguments.page, depth=arguments.depth, kinds=kinds)
        evidence = session.lineage.evidence(arguments.page) if up and not relations and kinds is None else []
        if arguments.json:
            found = {"session": session.name, "page": page.page, "relations": relations}
            screen.json({**found, "evidence": evidence} if evidence else found)
        elif evidence:
            screen.show(format_page.page_head(page, session.name), *format_overview.evidence(evidence))
        else:
            tree = lineage(session, page.page, relations, up=up)
            lines = format_page.few_lines(tree, rows_of(arguments, screen))
            screen.show(format_page.page_head(page, session.name), *lines)
    return 0


def lineage(session: vmstore.Session, root: str, relations: Sequence[PageLink], *, up: bool) -> list[Line]:
    """A walk as a tree, each page with its hint and its beginning."""
    hints = {page.page: page.hint for page in session.pages() if page.hint}
    return format_page.tree(root, relations, hints, up=up)


def tail(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints mutations in the order they were logged."""
    with open_to_ask(arguments) as store:
        if arguments.follow:
            _follow(store, arguments, screen)
            return 0
        entries = store.tail(arguments.after, limit=arguments.limit)
        if arguments.json:
            listed = list(entries)
            cursor = listed[-1].cursor if listed else arguments.after
            screen.json({"entries": listed, "cursor": cursor})
        else:
            for entry in entries:
                screen.show(format_session.entry(entry))
    return 0


def _follow(store: vmstore.Store, arguments: argparse.Namespace, screen: Screen) -> None:
    """Prints what is logged until Ctrl-C, or as many as were asked for; as JSON an object a line."""
    cursor, left = arguments.after, arguments.limit
    with suppress(KeyboardInterrupt):
        while left is None or left > 0:
            for entry in store.tail(cursor, limit=left, wait_s=FOLLOWED_S):
                cursor, left = entry.cursor, None if left is None else left - 1
                if arguments.json:
                    screen.json(entry, one_line=True)
                else:
                    screen.show(format_session.entry(entry))


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


def _add_walk(parser: Parser) -> None:
    parser.add_argument("--depth", type=positive_number, metavar="N", help="how many steps to walk (default: all)")
    parser.add_argument(
        "--kinds", metavar="KINDS", help="only links of these kinds, like derives,supersedes (default: all)"
    )


def _add_level(parser: Parser) -> None:
    parser.add_argument(
        "--level", type=int, choices=range(4), metavar="0-3", help="0 full, as accepted (default), to 3 reference"
    )


def _add_context(parser: Parser) -> None:
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--messages", action="store_true", help="the chat messages of the request")
    shown.add_argument("--response", action="store_true", help="what came back for it")
    shown.add_argument("--render", action="store_true", help="the VM:CONTEXT text")


def _add_rows(parser: Parser) -> None:
    rows = parser.add_mutually_exclusive_group()
    rows.add_argument(
        "--limit", type=positive_number, metavar="N", help=f"at most N rows (default: {ROWS}, in a pipe all)"
    )
    rows.add_argument("--all", action="store_true", help="every row")


def _add_diff(parser: Parser) -> None:
    parser.add_argument("other", metavar="OTHER", nargs="?", help="another session, to compare SESSION with")
    group = parser.add_mutually_exclusive_group()
    for word in MOMENTS:
        group.add_argument(f"--{word}s", nargs=2, type=int, metavar=("A", "B"), help=f"from {word} A to {word} B")
    parser.wrong = _what_to_compare


def _what_to_compare(arguments: argparse.Namespace) -> str | None:
    """What is wrong where neither or both of two moments and another session are given."""
    moments = any(getattr(arguments, f"{word}s") for word in MOMENTS)
    if arguments.other is not None:
        return "moments are of one session, and two are named; leave one out" if moments else None
    return None if moments else "name two moments, like --calls 40 42, or two sessions"


def _add_tail(parser: Parser) -> None:
    parser.add_argument("--after", metavar="CURSOR", help="go on after this cursor (default: from the start)")
    parser.add_argument("--limit", type=whole_number, metavar="N", help="at most N mutations")
    parser.add_argument(
        "--follow", action="store_true", help="wait for more until Ctrl-C; with --json an object a line"
    )


COMMANDS = (
    Command(
        "info",
        "query",
        "what a store holds and how large it is",
        "Says what a store holds, how large its parts are and how far each view has followed the log.",
        ("vmstore info agent.vms", "vmstore info agent.vms --json"),
        info,
        (add_store,),
    ),
    Command(
        "turns",
        "query",
        "the turns of a session",
        "Lists the turns of a session: when each opened and how many calls it made.",
        ("vmstore turns agent.vms planning-220",),
        turns,
        (add_store, add_session),
    ),
    Command(
        "calls",
        "query",
        "the calls of a session, with tokens, cost and status",
        "Lists the requests to the model: tokens estimated and as the provider counted them, cost,\n"
        "latency, and how each ended.",
        ("vmstore calls agent.vms planning-220", "vmstore calls agent.vms planning-220 --prices prices.json --json"),
        calls,
        (add_store, add_session, add_prices),
    ),
    Command(
        "context",
        "query",
        "what the model saw at a call",
        "Shows what the model saw at one call, in order; without a moment at the last one. A turn stands\n"
        "for its last call, a position for the last call at or before it.",
        (
            "vmstore context agent.vms planning-220 --call 317",
            "vmstore context agent.vms planning-220 --turn 42 --messages",
            "vmstore context agent.vms --render",
        ),
        context,
        (add_store, add_session, add_moment, _add_context, _add_rows),
    ),
    Command(
        "diff",
        "query",
        "what changed between two contexts, or what two sessions have different",
        "Shows what entered (+), left (-) and changed (~) between the contexts of two moments. Two sessions are\n"
        "aligned by what was said: how far they are the same, and what each says from there on, with the counts,\n"
        "costs and outcomes of both.",
        (
            "vmstore diff agent.vms trial-1 trial-2",
            "vmstore diff agent.vms planning-220 --calls 40 42",
            "vmstore diff agent.vms planning-220 --turns 1 42 --json",
        ),
        diff,
        (add_store, add_session, _add_diff, _add_rows),
    ),
    Command(
        "page",
        "query",
        "a page's exact content",
        "Writes a page's exact content: at level 0 the bytes that were accepted, whether the page is\n"
        "still in the context or not.",
        (
            "vmstore page agent.vms planning-220 p17",
            "vmstore page agent.vms p17 --level 3",
            "vmstore page agent.vms vm://default/planning-220/p17@turn:3 > p17.txt",
        ),
        page,
        (add_store, add_session, add_page, _add_level, add_moment),
    ),
    Command(
        "history",
        "query",
        "what happened to a page",
        "Shows what happened to a page: made, changed, entered the context, left it, linked.",
        (
            "vmstore history agent.vms planning-220 p17",
            "vmstore history agent.vms p17 --turn 42",
        ),
        history,
        (add_store, add_session, add_page, add_moment),
    ),
    Command(
        "sources",
        "query",
        "where a page comes from",
        "Walks from a page towards what it was made from, replaces or refers to. Where nobody logged where an answer\n"
        "comes from, the pages it most likely came from are ranked by what it repeats; that is evidence, and no link.",
        (
            "vmstore sources agent.vms planning-220 claim_storage_7",
            "vmstore sources agent.vms p17 --depth 2 --kinds derives",
        ),
        sources,
        (add_store, add_session, add_page, _add_walk, _add_rows),
    ),
    Command(
        "derived",
        "query",
        "what came of a page",
        "Walks from a page towards what was made from it or refers to it.",
        (
            "vmstore derived agent.vms planning-220 p17",
            "vmstore derived agent.vms p17 --kinds supersedes --json",
        ),
        derived,
        (add_store, add_session, add_page, _add_walk, _add_rows),
    ),
    Command(
        "tail",
        "query",
        "mutations in the order they were logged",
        "Prints mutations as they were logged, from the start or after a cursor that an earlier tail\n"
        "gave: one a line, or with --json one object with the cursor to go on from. --follow waits for more.",
        (
            "vmstore tail agent.vms --limit 20",
            "vmstore tail agent.vms --after 812.3 --json",
            "vmstore tail agent.vms --after 812.3 --follow",
        ),
        tail,
        (add_store, _add_tail),
    ),
)
