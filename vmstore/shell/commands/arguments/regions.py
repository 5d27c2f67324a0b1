"""The commands that share, as data: what each says of itself, its examples, its arguments, what runs it."""

from __future__ import annotations

import argparse

from vmstore.shell.commands.arguments.arguments import Command, add_store

ROOM = "vmstore.shell.commands.data.regions"


def add_region(parser: argparse.ArgumentParser) -> None:
    """Which region."""
    parser.add_argument("region", metavar="REGION", help="the namespace that is shared")


def add_grant(parser: argparse.ArgumentParser) -> None:
    """What is granted, to whom."""
    parser.add_argument(
        "--to", metavar="PRINCIPAL", required=True, help="user:NAME, sandbox:NAMESPACE, session:NS/NAME or global"
    )
    parser.add_argument("--may", metavar="VERBS", default="read", help="read, write, grant, or some (default: read)")


def add_revocation(parser: argparse.ArgumentParser) -> None:
    """What is taken back, from whom."""
    parser.add_argument("--from", metavar="PRINCIPAL", required=True, dest="whose", help="who has it now")
    parser.add_argument("--may", metavar="VERBS", help="what they may no longer do (default: all)")


def add_listing(parser: argparse.ArgumentParser) -> None:
    """As of when, and for whom."""
    parser.add_argument("--of", metavar="PRINCIPAL", help="only those that they may read")
    parser.add_argument("--time", metavar="T", help="as of a time like 2026-11-21T22:55:01Z (default: now)")


SHARING: tuple[Command, ...] = (
    Command(
        "share",
        "keep",
        "let others use a namespace",
        "Grants a principal some of read, write and grant in a namespace, which is then a region: they open it\n"
        "from their own namespace, as far as this goes. With --namespace it is granted in the name of that one,\n"
        "which must hold what it passes on.",
        (
            "vmstore share agent.vms lessons --to user:ann",
            "vmstore share agent.vms lessons --to sandbox:team-a --may read,write",
            "vmstore share agent.vms lessons --to session:team-b/s1 --namespace team-a",
        ),
        (ROOM, "share"),
        (add_store, add_region, add_grant),
    ),
    Command(
        "revoke",
        "keep",
        "take back what was granted",
        "Takes verbs back from a principal, by default all. Handles that are open lose it at their next act.\n"
        "What was granted and taken back stays in the log, and can be asked for as of any moment.",
        (
            "vmstore revoke agent.vms lessons --from user:ann",
            "vmstore revoke agent.vms lessons --from sandbox:team-a --may write",
        ),
        (ROOM, "revoke"),
        (add_store, add_region, add_revocation),
    ),
    Command(
        "regions",
        "keep",
        "the namespaces that are shared, and with whom",
        "Lists the namespaces that are shared, with each grant: who may do what, since when, granted by whom.\n"
        "It is for who keeps the store, and looks into all of its namespaces.",
        ("vmstore regions agent.vms", "vmstore regions agent.vms --of user:ann --time 2026-11-21T22:55:01Z"),
        (ROOM, "regions"),
        (add_store, add_listing),
    ),
)
