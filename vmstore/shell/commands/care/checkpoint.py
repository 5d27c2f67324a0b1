"""The command that publishes folded views for new hosts."""

from __future__ import annotations

import argparse

from vmstore.shell.commands.arguments import Command, add_store
from vmstore.shell.open_store import open_to_change
from vmstore.shell.terminal.format import size
from vmstore.shell.terminal.render import Screen


def checkpoint(arguments: argparse.Namespace, screen: Screen) -> int:
    """Keeps the folded views of a namespace in its database."""
    with open_to_change(arguments) as store:
        published = store.admin.publish_views()
    upto = f"up to ordinal {published.ordinal:,}, {size(published.bytes)} in format {published.format}"
    return screen.answer(arguments, published, f"published the views of {published.namespace} {upto}")


COMMANDS = (
    Command(
        "checkpoint",
        "maintain",
        "publish folded views for new hosts of a database",
        "Keeps the folded views of a namespace in its database, in the place of those kept before: a host that opens\n"
        "the namespace for the first time begins with them and folds only what came since. Only views of the\n"
        "same format are taken, only where the log still has their last commit, and none from before an erasure,\n"
        "which removes them: run this again then, or every night.",
        (
            "vmstore checkpoint 'postgresql://team@db.example/agents?namespace=team-a'",
            "vmstore checkpoint 'postgresql://team@db.example/agents' --namespace team-a --json",
        ),
        checkpoint,
        (add_store,),
    ),
)
