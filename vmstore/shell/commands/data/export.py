"""Commands that hand on: sessions out as files."""

from __future__ import annotations

import argparse
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from vmstore.errors import InputError
from vmstore.shell.commands.arguments import Command, Parser, add_moment, add_store
from vmstore.shell.open_store import moment_of, open_to_ask
from vmstore.shell.terminal.format import count, listing, size
from vmstore.shell.terminal.layout import Line, StyledText
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.namespace.reports import ExportReport
    from vmstore.store.spans.exporter import SpanExporter

STDOUT = "-"
NOTHING = "nothing is masked in it"
EXPORTS = ("jsonl", "parquet", "sqlite", "markdown", "chat", "otlp", "notes")
POLL_S = 1.0  # between looks for new calls, while it follows
TABLES = ("parquet", "sqlite")
ENDINGS = {
    ".chat.jsonl": "chat",  # before what it ends with
    ".otlp.jsonl": "otlp",
    ".jsonl": "jsonl",
    ".md": "markdown",
    ".parquet": "parquet",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
}


def export(arguments: argparse.Namespace, screen: Screen) -> int:
    """Writes sessions to a file or to stdout, or posts their calls to a collector."""
    from vmstore.namespace.results import to_json

    if arguments.spans_to is not None:
        return _export_spans(arguments, screen)
    if arguments.follow or arguments.header or arguments.no_content:
        raise InputError("--follow, --header and --no-content go with --spans-to; name a collector, or leave them out")
    if arguments.export_format == "notes":
        from vmstore.shell.commands.data.notes import export_notes

        return export_notes(arguments, screen)
    if arguments.only or arguments.overwrite:
        raise InputError("--only and --overwrite are of --format notes; leave them out")
    piped = arguments.out == STDOUT
    arguments.export_format = _format_of(arguments)
    if piped and arguments.json:
        raise InputError("stdout cannot hold both the export and the answer; name a file with --out, or drop --json")
    if piped and arguments.export_format in TABLES:
        raise InputError(f"{arguments.export_format} is no stream; name the path it shall have with --out")
    if piped and screen.terminal and arguments.export_format != "markdown":
        raise InputError(
            f"{arguments.export_format} is no reading for a terminal; name a file with --out, or send it to one with >"
        )
    with open_to_ask(arguments) as store, screen.progress("exporting") as tell:
        options: dict[str, Any] = {"format": arguments.export_format, "at": moment_of(arguments), "progress": tell}
        options |= {"exact": arguments.exact, "redact": not arguments.no_redact}
        out: Path | BinaryIO = sys.stdout.buffer if piped else Path(arguments.out)
        report = store.export(out, arguments.sessions or None, **options)
    if arguments.no_redact:
        screen.warn("nothing is masked: whatever secrets and personal data the sessions hold are in the export")
    if arguments.json:
        screen.json({**to_json(report), "out": arguments.out})
    elif piped:
        screen.note(_summary(report, "stdout"))
        screen.note(_masked_summary(report))
    elif not screen.quiet:
        screen.show(_summary(report, arguments.out), _masked_summary(report))
    return 0


def _export_spans(arguments: argparse.Namespace, screen: Screen) -> int:
    """Posts calls as spans, until Ctrl-C where it follows."""
    from vmstore.core.asof import Head
    from vmstore.store.spans.exporter import SpanExporter

    if arguments.exact or arguments.out != STDOUT or arguments.export_format not in (None, "otlp"):
        raise InputError("--spans-to posts spans and writes no file; leave --out, --format and --exact out")
    if moment_of(arguments) != Head():
        raise InputError(
            "--spans-to posts whatever has ended; leave the moment out, or write a file with --format otlp"
        )
    headers = dict(_header(text) for text in arguments.header)
    with open_to_ask(arguments) as store:
        options: dict[str, Any] = {"content": not arguments.no_content, "redact": not arguments.no_redact}
        exporter = SpanExporter(store, arguments.spans_to, headers=headers, **options)
        if arguments.follow:
            _follow(exporter, arguments, screen)
        else:
            exporter.export(arguments.sessions or None)
    if arguments.json:
        screen.json({"calls": exporter.posted, "to": arguments.spans_to})
    else:
        screen.show(f"posted {count(exporter.posted, 'call')} as spans to {arguments.spans_to}")
    return 0


def _follow(exporter: SpanExporter, arguments: argparse.Namespace, screen: Screen) -> None:
    """Posts what ends until Ctrl-C; what is wrong with a collector is said once."""
    from vmstore.errors import SpanExportError

    problem = ""
    with suppress(KeyboardInterrupt):
        while True:
            before = exporter.posted
            try:
                exporter.export(arguments.sessions or None)
                problem = ""
            except SpanExportError as error:
                if str(error) != problem:
                    problem = str(error)
                    screen.warn(f"{problem}; tried again until it is well")
            if exporter.posted > before:
                screen.note(f"posted {count(exporter.posted, 'call')} to {arguments.spans_to}")
            threading.Event().wait(POLL_S)


def _header(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name.strip() or not text.isprintable():
        raise InputError("a header is NAME=VALUE, as in --header authorization='Bearer …'", code="not-a-header")
    return name.strip(), value.strip()


def _format_of(arguments: argparse.Namespace) -> str:
    """The format that is named, or that the ending of the path says; InputError where they differ or it says none."""
    said: str | None = arguments.export_format
    name = Path(arguments.out).name.lower()
    ending = next((format for suffix, format in ENDINGS.items() if name.endswith(suffix)), None)
    if said in ("chat", "otlp") and name.endswith(".jsonl") and ending == "jsonl":
        ending = said  # its lines are JSON too
    if said is not None and ending is not None and said != ending:
        raise InputError(
            f"--format {said} and the ending of {arguments.out} differ; leave --format out, or end the path otherwise",
            code="unlike-ending",
        )
    if said is None and ending is None and Path(name).suffix:
        raise InputError(
            f"no format has the ending {Path(name).suffix}; end the path with {', '.join(ENDINGS)}, or name a --format",
            code="no-format",
        )
    return said or ending or "jsonl"


def _masked_summary(report: ExportReport) -> str:
    """Summarises the redaction: a count for each kind, never a value."""
    if not report.redacted:
        return f"nothing is masked in it, as {listing(report.approved)} approved" if report.approved else NOTHING
    kinds = ", ".join(f"{kind} {times}" for kind, times in report.masked.items())
    unread = f"; {count(report.unseen, 'content')} left out that cannot be read" if report.unseen else ""
    return f"masked: {kinds}{unread}" if kinds else f"nothing needed masking{unread}"


def _summary(report: ExportReport, place: str) -> Line:
    amount = f"{count(report.commits, 'commit')}, {count(report.mutations, 'mutation')}, {size(report.bytes)}"
    past = f", with the past of {listing(report.ancestors)}" if report.ancestors else ""
    return (StyledText("exported", "good"), f" {listing(report.sessions)}{past} to {place}: {amount}")


def _add_export(parser: Parser) -> None:
    parser.add_argument("sessions", metavar="SESSION", nargs="*", help="which sessions (default: all)")
    parser.add_argument(
        "--format",
        dest="export_format",
        choices=EXPORTS,
        metavar="F",
        help="jsonl, parquet, sqlite, markdown, chat, otlp, notes (default: by the ending of the path, else jsonl)",
    )
    parser.add_argument("--out", metavar="PATH", default="-", help="a path where nothing is yet; - (default) is stdout")
    notes = parser.add_argument_group("notes, a folder of Markdown by tag that is brought up to date")
    notes.add_argument("--only", metavar="TYPE,…", help="pages of these types: claim, summary, transcript and others")
    notes.add_argument("--overwrite", action="store_true", help="also files that were edited and not imported")
    spans = parser.add_argument_group("calls as spans of OpenTelemetry, to a collector")
    spans.add_argument("--spans-to", metavar="URL", help="post them to URL/v1/traces, as OTLP in JSON; no file")
    spans.add_argument("--follow", action="store_true", help="go on with calls as they end, until Ctrl-C")
    spans.add_argument(
        "--header", metavar="NAME=VALUE", action="append", default=[], help="a header of each post; may be given again"
    )
    spans.add_argument("--no-content", action="store_true", help="leave out what was said, not the counts and times")
    hidden = parser.add_argument_group("what is secret, or says who somebody is, is masked")
    hidden.add_argument("--exact", action="store_true", help="of jsonl: the very commits and hashes, nothing masked")
    hidden.add_argument("--no-redact", action="store_true", help="mask nothing")


COMMANDS = (
    Command(
        "export",
        "export",
        "sessions as a file that others read",
        "Writes sessions to a file: jsonl is a bundle that `vmstore import` takes in again, with the very\n"
        "same commits and hashes with --exact; parquet is a folder of tables, sqlite a database with\n"
        "full text that Datasette opens; markdown is for people, chat a line of messages a session, as programs\n"
        "that train or test models read them; otlp holds spans of OpenTelemetry, one a call, which `vmstore import`\n"
        "reads too; notes is a folder of Markdown, a file a page, for git, which `vmstore import` takes in. A fork\n"
        "brings the past it shares. What is written appears when it is whole.",
        (
            "vmstore export agent.vms planning-220 --turn 42 > part.jsonl",
            "vmstore export agent.vms --format notes --out notes",
            "vmstore export agent.vms --spans-to http://localhost:4318 --follow",
        ),
        export,
        (add_store, _add_export, add_moment),
    ),
)
