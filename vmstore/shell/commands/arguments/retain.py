"""What `vmstore retain` is told."""

from __future__ import annotations

import argparse

from vmstore.shell.commands.arguments.arguments import Command, add_store


def add_retain(parser: argparse.ArgumentParser) -> None:
    """A rule to state or take away, or that the rules are applied."""
    parser.add_argument("--keep", metavar="TIME", help="state a rule: keep for so long, like 90d, 12h, 6w or 2y")
    parser.add_argument("--where", metavar="VMQL", help="with --keep: the pages for which a condition on PAGES holds")
    parser.add_argument("--user", metavar="U", help="with --keep: in sessions of this user alone")
    parser.add_argument("--name", metavar="R", help="with --keep: what the rule is called (default: default)")
    parser.add_argument("--remove", metavar="R", help="take a rule away")
    parser.add_argument("--apply", action="store_true", help="erase what is due by the rules")
    parser.add_argument("--key", metavar="FILE", help="with --apply: sign the certificate with this secret key")
    parser.add_argument("--dry-run", action="store_true", help="with --apply: only say what is due")
    parser.add_argument("--yes", action="store_true", help="do not ask; needed where nobody can be asked")


RETAIN = Command(
    "retain",
    "keep",
    "rules for how long contents are kept",
    "States rules for how long contents are kept, lists them, and erases what is due by them: sessions that\n"
    "were not used for so long, or pages that were made so long ago. Pages that are tagged `hold` or pinned\n"
    "by hand stay, and the sessions they are in. --apply is meant for cron; it leaves a certificate.",
    (
        "vmstore retain agent.vms --keep 90d",
        'vmstore retain agent.vms --keep 30d --where "role = tool" --name tools',
        "vmstore retain agent.vms --apply --yes",
    ),
    ("vmstore.shell.commands.trust.retain", "retain"),
    (add_store, add_retain),
)
