"""The approve command: lifts redaction for what leaves, puts it back, lists both."""

from __future__ import annotations

import argparse

from vmstore.core.asof import Time, as_of
from vmstore.errors import InputError
from vmstore.namespace.results import to_json
from vmstore.shell.open_store import open_to_ask, open_to_change
from vmstore.shell.terminal.format import moment
from vmstore.shell.terminal.layout import Column, Table
from vmstore.shell.terminal.render import Screen
from vmstore.store.approvals import Approved, approvals, approve


def approve_artifacts(arguments: argparse.Namespace, screen: Screen) -> int:
    """Lifts or puts back redaction for artifacts; without one, lists what was said."""
    if arguments.artifacts:
        if arguments.by is None:
            raise InputError("an approval is somebody's; say whose with --by")
        ends = as_of(time=arguments.until)
        with open_to_change(arguments) as store:
            found = approve(
                store,
                arguments.artifacts,
                arguments.of or None,
                who=arguments.by,
                until_us=ends.at if isinstance(ends, Time) else None,
                granted=not arguments.withdraw,
            )
    elif arguments.withdraw or arguments.by or arguments.until:
        raise InputError("name what is approved: jsonl, parquet, sqlite, html or all")
    else:
        with open_to_ask(arguments) as store:
            found = approvals(store)
    if arguments.json:
        screen.json({"approvals": to_json(found)})
    elif found and not screen.quiet:
        screen.show(_table(found))
    elif not screen.quiet:
        screen.show("nothing is approved: all that leaves for others is masked")
    return 0


def _table(found: list[Approved]) -> Table:
    columns = (
        Column("session", style="name"), Column("artifact"), Column("said"), Column("by"), Column("at (UTC)"),
        Column("until"), Column("now"),
    )  # fmt: skip
    rows = [
        (
            one.session, one.artifact, "granted" if one.granted else "withdrawn", one.who or "", moment(one.at),
            "" if one.until is None else moment(one.until), "not masked" if one.in_force else "masked",
        )
        for one in found
    ]  # fmt: skip
    return Table(columns, rows)
