"""Commands that share namespaces and tell what is shared."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from vmstore.core.grants import principal
from vmstore.namespace.folder import find
from vmstore.namespace.results import to_json
from vmstore.shares import regions as told
from vmstore.shell.open_store import key_named, key_of
from vmstore.shell.terminal.format import count, moment
from vmstore.shell.terminal.layout import Column, Span, Table
from vmstore.shell.terminal.render import Screen
from vmstore.store.store import Store, open_store

T = TypeVar("T")


def share(arguments: argparse.Namespace, screen: Screen) -> int:
    """Grants something."""
    found = _done(arguments, lambda region: told.share(region, arguments.to, arguments.may))
    if arguments.json:
        screen.json({"region": arguments.region, **to_json(found)})
    elif not screen.quiet:
        screen.show((Span("shared", "good"), f": {found.to} may {', '.join(found.may)} in {arguments.region}"))
    return 0


def revoke(arguments: argparse.Namespace, screen: Screen) -> int:
    """Takes something back, and says what is left."""

    def taken(region: Store) -> tuple[list[told.Granting], list[told.Granting]]:
        left = told.revoke(region, arguments.whose, arguments.may)
        return left, [one for one in told.grants(region) if one.scope == "global"]

    left, everybody = _done(arguments, taken)
    whose = str(principal(arguments.whose))
    if arguments.json:
        screen.json({"region": arguments.region, "from": whose, "left": [to_json(one) for one in left]})
    elif not screen.quiet:
        may = ", ".join(dict.fromkeys(word for one in left for word in one.may))
        what = f": {whose} may {may} in {arguments.region}" if left else f": {whose} has no grant in {arguments.region}"
        screen.show((Span("taken back", "good"), what))
        if everybody and whose != "global":
            screen.show(Span(f"everybody may still {', '.join(everybody[0].may)} there", "warn"))
    return 0


def regions(arguments: argparse.Namespace, screen: Screen) -> int:
    """Lists what is shared."""
    when = {} if arguments.time is None else {"time": arguments.time}
    found = told.regions(arguments.store, of=arguments.of, key=key_named(arguments.store_key), **when)
    if arguments.json:
        screen.json({"regions": [to_json(one) for one in found]})
        return 0
    if not found:
        whom = "" if arguments.of is None else f" with {principal(arguments.of)}"
        screen.show(f"nothing of {arguments.store} was shared{whom}{' then' if when else ''}")
        return 0
    rows = [
        (one.region, grant.to, ", ".join(grant.may), moment(grant.at), grant.by or "", count(one.sessions, "session"))
        for one in found
        for grant in one.grants
    ]
    titles = ("region", "who", "may", "since", "granted by", "holds")
    screen.show(Table([Column(title, style="name" if title == "region" else "") for title in titles], rows))
    return 0


def _done(arguments: argparse.Namespace, act: Callable[[Store], T]) -> T:
    """What comes of something done in a region: as who keeps it, or in the name of a namespace."""
    path = Path(arguments.store)

    def key(namespace: str) -> str | None:
        return key_of(arguments.store_key, arguments.store, namespace)

    if arguments.namespace in (None, arguments.region):
        find(path, arguments.region, create=False)
        with open_store(path, namespace=arguments.region, key=key(arguments.region)) as region:
            return act(region)
    find(path, arguments.namespace, create=False)
    home_key = key(arguments.namespace)
    with (
        open_store(path, namespace=arguments.namespace, key=home_key) as home,
        home.sharing.region(arguments.sharing.region) as region,
    ):
        return act(region)
