"""Commands that share namespaces: share, revoke, regions."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import vmstore
from vmstore.shell.commands.arguments import Command, Parser, add_store
from vmstore.shell.open_store import key_named, key_of
from vmstore.shell.terminal.format import count, moment
from vmstore.shell.terminal.layout import StyledText, TableColumn, TextTable
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.shares import regions as shares

T = TypeVar("T")


def share(arguments: argparse.Namespace, screen: Screen) -> int:
    """Grants something."""
    from vmstore.namespace.results import to_json
    from vmstore.shares import regions as shares

    grant = _act_in_region(arguments, lambda region: shares.share(region, arguments.to, arguments.may))
    return screen.answer(
        arguments,
        {"region": arguments.region, **to_json(grant)},
        (StyledText("shared", "good"), f": {grant.to} may {', '.join(grant.may)} in {arguments.region}"),
    )


def revoke(arguments: argparse.Namespace, screen: Screen) -> int:
    """Takes something back, and says what is left."""
    from vmstore.core.grants import principal
    from vmstore.shares import regions as shares

    def revoke_in(region: vmstore.Store) -> tuple[list[shares.GrantInfo], list[shares.GrantInfo]]:
        left = shares.revoke(region, arguments.whose, arguments.may)
        return left, [grant for grant in shares.grants(region) if grant.scope == "global"]

    left, everybody = _act_in_region(arguments, revoke_in)
    whose = str(principal(arguments.whose))
    if arguments.json:
        screen.json({"region": arguments.region, "from": whose, "left": left})
    elif not screen.quiet:
        may = ", ".join(dict.fromkeys(word for grant in left for word in grant.may))
        what = f": {whose} may {may} in {arguments.region}" if left else f": {whose} has no grant in {arguments.region}"
        screen.show((StyledText("taken back", "good"), what))
        if everybody and whose != "global":
            screen.show(StyledText(f"everybody may still {', '.join(everybody[0].may)} there", "warn"))
    return 0


def regions(arguments: argparse.Namespace, screen: Screen) -> int:
    """Lists what is shared."""
    from vmstore.core.grants import principal
    from vmstore.shares import regions as shares

    when = {} if arguments.time is None else {"time": arguments.time}
    infos = shares.regions(arguments.store, of=arguments.of, key=key_named(arguments.store_key), **when)
    if arguments.json:
        screen.json({"regions": infos})
        return 0
    if not infos:
        whom = "" if arguments.of is None else f" with {principal(arguments.of)}"
        screen.show(f"nothing of {arguments.store} was shared{whom}{' then' if when else ''}")
        return 0
    rows = [
        (info.region, grant.to, ", ".join(grant.may), moment(grant.at), grant.by or "", count(info.sessions, "session"))
        for info in infos
        for grant in info.grants
    ]
    titles = ("region", "who", "may", "since", "granted by", "holds")
    screen.show(TextTable([TableColumn(title, style="name" if title == "region" else "") for title in titles], rows))
    return 0


def _act_in_region(arguments: argparse.Namespace, act: Callable[[vmstore.Store], T]) -> T:
    """Runs a function on a region, opened as its owner or on behalf of a namespace."""
    from vmstore.namespace.backends.address import backend_of

    path, backend = arguments.store, backend_of(arguments.store)

    def key(namespace: str) -> str | None:
        return key_of(arguments.store_key, arguments.store, namespace)

    if arguments.namespace in (None, arguments.region):
        backend.check(arguments.region)
        with vmstore.open(path, namespace=arguments.region, key=key(arguments.region)) as region:
            return act(region)
    backend.check(arguments.namespace)
    home_key = key(arguments.namespace)
    with (
        vmstore.open(path, namespace=arguments.namespace, key=home_key) as home,
        home.sharing.region(arguments.region) as region,
    ):
        return act(region)


def _add_region(parser: Parser) -> None:
    parser.add_argument("region", metavar="REGION", help="the namespace that is shared")


def _add_grant(parser: Parser) -> None:
    parser.add_argument(
        "--to", metavar="PRINCIPAL", required=True, help="user:NAME, sandbox:NAMESPACE, session:NS/NAME or global"
    )
    parser.add_argument("--may", metavar="VERBS", default="read", help="read, write, grant, or some (default: read)")


def _add_revocation(parser: Parser) -> None:
    parser.add_argument("--from", metavar="PRINCIPAL", required=True, dest="whose", help="who has it now")
    parser.add_argument("--may", metavar="VERBS", help="what they may no longer do (default: all)")


def _add_listing(parser: Parser) -> None:
    parser.add_argument("--of", metavar="PRINCIPAL", help="only those that they may read")
    parser.add_argument("--time", metavar="T", help="as of a time like 2026-11-21T22:55:01Z (default: now)")


COMMANDS = (
    Command(
        "share",
        "privacy",
        "let others use a namespace",
        "Grants a principal some of read, write and grant in a namespace, which is then a region: they open it\n"
        "from their own namespace, as far as this goes. With --namespace it is granted in the name of that one,\n"
        "which must hold what it passes on.",
        (
            "vmstore share agent.vms lessons --to user:ann",
            "vmstore share agent.vms lessons --to sandbox:team-a --may read,write",
            "vmstore share agent.vms lessons --to session:team-b/s1 --namespace team-a",
        ),
        share,
        (add_store, _add_region, _add_grant),
    ),
    Command(
        "revoke",
        "privacy",
        "take back what was granted",
        "Takes verbs back from a principal, by default all. Handles that are open lose it at their next act.\n"
        "What was granted and taken back stays in the log, and can be asked for as of any moment.",
        (
            "vmstore revoke agent.vms lessons --from user:ann",
            "vmstore revoke agent.vms lessons --from sandbox:team-a --may write",
        ),
        revoke,
        (add_store, _add_region, _add_revocation),
    ),
    Command(
        "regions",
        "privacy",
        "the namespaces that are shared, and with whom",
        "Lists the namespaces that are shared, with each grant: who may do what, since when, granted by whom.\n"
        "It is for who keeps the store, and looks into all of its namespaces.",
        ("vmstore regions agent.vms", "vmstore regions agent.vms --of user:ann --time 2026-11-21T22:55:01Z"),
        regions,
        (add_store, _add_listing),
    ),
)
