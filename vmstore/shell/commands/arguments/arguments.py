"""The arguments commands take, and a parser that says what is wrong with them.

Nothing here loads the store, so help answers at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from vmstore.core.text.suggest import suggest

USAGE = 2
MOMENTS = ("turn", "call", "position")
TAKING = ("--namespace", "--store-key", "--wait")  # what every command has that takes a value
SECONDS_MAX = 1_000_000
ORDERS = ("position", "importance", "tokens", "recency")
EXPORTS = ("jsonl", "parquet", "sqlite")


class Parser(argparse.ArgumentParser):
    """A parser whose errors name the remedy and leave with 2."""

    def __init__(self, prog: str, description: str, epilog: str = "", *, add_help: bool = True) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            add_help=add_help,
            allow_abbrev=False,  # a later option must not change what a script's short form means
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

        self.wrong: Callable[[argparse.Namespace], str | None] = lambda told: None

    def parse_intermixed_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The arguments, told apart; leaves where they do not go together."""
        told = super().parse_intermixed_args(args, namespace)
        if (wrong := self.wrong(told)) is not None:
            self.error(wrong)
        return told

    def error(self, message: str) -> NoReturn:
        """Says what is wrong with the arguments, and leaves."""
        wrong = message.removeprefix("unrecognized arguments: ").split(" ")[0].partition("=")[0]
        if message.startswith("unrecognized") and wrong.startswith("-"):
            close = suggest(wrong, self._option_string_actions)
            message = f"there is no option {wrong}" + (f"; the nearest is {close}" if close else "")
        self.exit(USAGE, f"vmstore: {message}; `{self.prog} --help` shows how\n")


class Command(NamedTuple):
    """One command: its arguments, the function that runs it, and what it says of itself."""

    name: str
    group: str
    summary: str
    description: str
    examples: tuple[str, ...]
    run: tuple[str, str]  # module and function, loaded when the command runs
    arguments: tuple[Callable[[argparse.ArgumentParser], None], ...]

    def parser(self) -> Parser:
        """The command's own parser."""
        examples = "examples:\n" + "\n".join(f"  {example}" for example in self.examples)
        parser = Parser(f"vmstore {self.name}", self.description, examples)
        for add in self.arguments:
            add(parser)
        add_common(parser)
        return parser


def add_common(parser: argparse.ArgumentParser) -> None:
    """The options every command has."""
    options = parser.add_argument_group("common options")
    options.add_argument("--namespace", metavar="NS", help="which namespace of the store (default: default)")
    options.add_argument("--store-key", metavar="FILE", help="the key of an encrypted store (or VMSTORE_KEY_FILE)")
    options.add_argument(
        "--wait", type=_seconds, metavar="S", help="how long to wait for another process at work (default: 30 seconds)"
    )
    options.add_argument("--json", action="store_true", help="answer with one JSON object")
    options.add_argument("--quiet", action="store_true", help="only the answer: no remarks, no progress")


def add_store(parser: argparse.ArgumentParser) -> None:
    """Which store."""
    parser.add_argument("store", metavar="STORE", help="the store's folder, like agent.vms")


def add_session(parser: argparse.ArgumentParser) -> None:
    """Which session."""
    parser.add_argument("session", metavar="SESSION", nargs="?", help="may be left out where the store holds only one")


def add_page(parser: argparse.ArgumentParser) -> None:
    """Which page."""
    parser.add_argument("page", metavar="PAGE", help="a name like p17, a hint, or vm://default/session/p17@turn:3")


def add_moment(parser: argparse.ArgumentParser) -> None:
    """As of when."""
    group = parser.add_argument_group("as of (default: now)").add_mutually_exclusive_group()
    group.add_argument("--turn", type=int, metavar="N", help="the end of turn N")
    group.add_argument("--call", type=int, metavar="N", help="the moment of call N, before its answer")
    group.add_argument("--position", type=int, metavar="N", help="the session's mutation N")
    group.add_argument("--time", metavar="T", help="a time like 2026-11-21T22:55:01Z")


def add_walk(parser: argparse.ArgumentParser) -> None:
    """How far a lineage is walked."""
    parser.add_argument("--depth", type=steps, metavar="N", help="how many steps to walk (default: all)")
    parser.add_argument(
        "--kinds", metavar="KINDS", help="only links of these kinds, like derives,supersedes (default: all)"
    )


def steps(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 up")
    return int(text)


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= SECONDS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0 to {SECONDS_MAX:,}")
    return found


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 up")
    return int(text)


def add_level(parser: argparse.ArgumentParser) -> None:
    """How much of a page."""
    parser.add_argument(
        "--level", type=int, choices=range(4), metavar="0-3", help="0 full, as accepted (default), to 3 reference"
    )


def add_import(parser: argparse.ArgumentParser) -> None:
    """What to import, into which store, and how."""
    parser.add_argument("store", metavar="STORE", nargs="?", help="the store's folder, like agent.vms")
    parser.add_argument("files", metavar="FILE", nargs="*", help="a session file")
    found = parser.add_argument_group("sessions on this machine")
    found.add_argument(
        "--discover", action="store_true", help="list those of Claude Code, Codex and pi, newest first; needs no STORE"
    )
    found.add_argument("--all", action="store_true", help="with --discover and a STORE: import them all")
    if isinstance(parser, Parser):
        parser.wrong = _wrong_import
    parser.add_argument("--session", metavar="NAME", help="call the session NAME, not by its own id or the file")
    parser.add_argument(
        "--format",
        metavar="F",
        help="pi, claude-code, codex, swe-agent, tau-bench, letta, locomo, responses, anthropic, gemini, "
        "chat-completions, bundle (default: seen)",
    )
    parser.add_argument(
        "--exact", action="store_true", help="of a bundle: the very same commits, salts and hashes, under their names"
    )
    parser.add_argument(
        "--yes", action="store_true", help="let erasures and settings in an exact bundle take effect here"
    )
    parser.add_argument(
        "--vm",
        metavar="budget=N,…",
        help="say each session again to one that manages its memory, NAME-vm: budget=8000,policy=lru,pinned_turns=2",
    )
    parser.add_argument(
        "--redact",
        choices=("off", "mask", "refuse"),
        metavar="off|mask|refuse",
        help="what to do with secrets and personal data (default: as the session has it; off for a new one)",
    )
    parser.add_argument("--uses", action="store_true", help="log what each call used of the pages, and topics: slower")
    parser.add_argument("--follow", action="store_true", help="go on importing as the files grow, until Ctrl-C")


def _wrong_import(told: argparse.Namespace) -> str | None:
    """What does not go together in the arguments of `import`."""
    if told.all and not told.discover:
        return "--all goes with --discover"
    if not told.discover:
        missing = [word for word, given in (("STORE", told.store), ("FILE", told.files)) if not given]
        return f"the following arguments are required: {', '.join(missing)}" if missing else None
    if told.files:
        return "--discover finds files itself; leave FILE out, or --discover"
    return "--all needs a STORE to import into" if told.all and told.store is None else None


def add_export(parser: argparse.ArgumentParser) -> None:
    """What leaves the store, in which form and where to."""
    parser.add_argument("sessions", metavar="SESSION", nargs="*", help="which sessions (default: all)")
    parser.add_argument(
        "--format",
        dest="export_format",
        choices=EXPORTS,
        default="jsonl",
        metavar="F",
        help="jsonl (default), parquet, sqlite",
    )
    parser.add_argument("--out", metavar="PATH", default="-", help="a path where nothing is yet; - (default) is stdout")
    hidden = parser.add_argument_group("what is secret, or says who somebody is, is masked")
    hidden.add_argument("--exact", action="store_true", help="of jsonl: the very commits and hashes, nothing masked")
    hidden.add_argument("--no-redact", action="store_true", help="mask nothing")


def add_backup(parser: argparse.ArgumentParser) -> None:
    """What is backed up, and where to."""
    add_store(parser)
    parser.add_argument("to", metavar="DEST", help="the backup's folder; nothing may stand there yet")


def add_restore(parser: argparse.ArgumentParser) -> None:
    """Which backup, and where the store shall be."""
    parser.add_argument("backup", metavar="BACKUP", help="a folder that `vmstore backup` made")
    parser.add_argument("store", metavar="STORE", help="the store's folder; nothing may stand there yet")
    parser.add_argument("--erasures", metavar="FOLDER", help="certificates to hold it to, besides STORE.erasures")
    parser.add_argument("--public-key", metavar="KEY", help="obey certificates that this key signed: hex, or a file")
    parser.add_argument("--dry-run", action="store_true", help="prove it and say what would happen; nothing is left")
    parser.add_argument(
        "--yes", action="store_true", help="obey other certificates too, and the grants, rules and approvals in it"
    )


def add_context(parser: argparse.ArgumentParser) -> None:
    """In which form a context is shown."""
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--messages", action="store_true", help="the chat messages of the request")
    shown.add_argument("--response", action="store_true", help="what came back for it")
    shown.add_argument("--render", action="store_true", help="the VM:CONTEXT text")


def add_diff(parser: argparse.ArgumentParser) -> None:
    """Between which moments."""
    group = parser.add_mutually_exclusive_group(required=True)
    for word in MOMENTS:
        group.add_argument(f"--{word}s", nargs=2, type=int, metavar=("A", "B"), help=f"from {word} A to {word} B")


def add_fork(parser: argparse.ArgumentParser) -> None:
    """Where to fork, and the new name."""
    group = parser.add_mutually_exclusive_group(required=True)
    for word in MOMENTS:
        group.add_argument(f"--at-{word}", type=int, metavar="N", dest=word, help=f"share the past up to {word} N")
    parser.add_argument("--as", dest="name", metavar="NAME", required=True, help="the new session's name")


def add_view(parser: argparse.ArgumentParser) -> None:
    """Which view."""
    parser.add_argument("--view", metavar="V", help="only this view (default: all); `info` lists them")


def add_sweep(parser: argparse.ArgumentParser) -> None:
    """What is spared."""
    parser.add_argument(
        "--grace", type=_count, metavar="S", default=3600, help="spare files of the last S seconds (default: 3600)"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be deleted")


def add_seals(parser: argparse.ArgumentParser) -> None:
    """What a store is held against."""
    parser.add_argument(
        "--seal", action="append", default=[], metavar="FILE", help="hold it against this seal; may be given again"
    )
    parser.add_argument("--public-key", metavar="KEY", help="64 hex digits, or a file of them: whose seal it must be")


def add_parts(parser: argparse.ArgumentParser) -> None:
    """How much of a store is verified."""
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--log", action="store_true", help="only the log and its cells")
    parts.add_argument("--views", action="store_true", help="the log and the views, without the rules")


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Which pages, in which order, how many."""
    group = parser.add_argument_group("only pages that")
    group.add_argument("--type", metavar="TYPE", help="are of this type, like claim or summary")
    group.add_argument("--role", metavar="ROLE", help="have this role, like user or tool")
    group.add_argument("--modality", metavar="M", help="hold this, like text or image")
    group.add_argument("--tier", metavar="TIER", help="are there: L0 is the prompt, L2 the store")
    group.add_argument("--level", type=int, choices=range(4), metavar="0-3", help="are shown so: 0 full to 3 reference")
    group.add_argument("--tag", metavar="TAG", help="have this tag")
    group.add_argument("--actor", metavar="WHO", help="were made by them: whom a page names, else its role")
    group.add_argument("--importance-min", type=float, metavar="X", help="are this important or more, from 0 to 1")
    group.add_argument("--dirty", action="store_true", help="were made from a page that changed since")
    order = parser.add_argument_group("in which order")
    order.add_argument(
        "--order-by", choices=ORDERS, default="position", metavar="O", help=f"{', '.join(ORDERS)} (default: position)"
    )
    order.add_argument("--limit", type=_count, metavar="N", help="at most N pages")
    order.add_argument("--after", metavar="PAGE", help="go on after the last page of an answer")


def add_owner(parser: argparse.ArgumentParser) -> None:
    """Whose sessions."""
    parser.add_argument("--user", metavar="U", help="only sessions of this user")
    parser.add_argument("--agent", metavar="A", help="only sessions of this agent")


def add_all(parser: argparse.ArgumentParser) -> None:
    """Of which sessions."""
    parser.add_argument("--all", action="store_true", help="the pages of all sessions")


def add_delta(parser: argparse.ArgumentParser) -> None:
    """Whether differences are shown."""
    parser.add_argument("--delta", action="store_true", help="show what changed, line by line")


def add_limit(parser: argparse.ArgumentParser) -> None:
    """How many pages."""
    parser.add_argument("--limit", type=_count, default=20, metavar="N", help="at most N pages (default: 20)")


def add_annotate(parser: argparse.ArgumentParser) -> None:
    """What is said of a page."""
    parser.add_argument("--importance", type=float, metavar="X", help="how important it is, from 0 to 1")
    parser.add_argument("--tag", action="append", default=[], metavar="T", help="a tag it gains; may be given again")
    parser.add_argument("--untag", action="append", default=[], metavar="T", help="a tag it loses")
    parser.add_argument("--status", metavar="S", help="active, planned, completed, abandoned, recurring or superseded")
    parser.add_argument("--valid-from", metavar="T", help="from when what it says holds, like 2026-11-21")
    parser.add_argument("--valid-to", metavar="T", help="until when")
    parser.add_argument(
        "--anchor", action="append", default=[], metavar="NAME=VALUE", help="a value by name; NAME= takes it away"
    )


def add_close(parser: argparse.ArgumentParser) -> None:
    """How a session ended."""
    parser.add_argument("--status", default="completed", metavar="S", help="completed (default) or abandoned")
    parser.add_argument("--because", metavar="TEXT", help="why it ended")


def add_tail(parser: argparse.ArgumentParser) -> None:
    """Which stretch of the log."""
    parser.add_argument("--after", metavar="CURSOR", help="go on after this cursor (default: from the start)")
    parser.add_argument("--limit", type=_count, metavar="N", help="at most N mutations")


def add_keep(parser: argparse.ArgumentParser) -> None:
    """Where the demo's store stays."""
    parser.add_argument("--keep", metavar="DIR", help="keep the store in DIR, to ask it more (default: forget it)")


def add_replay(parser: argparse.ArgumentParser) -> None:
    """Under which settings a session is decided again, and what becomes of it."""
    group = parser.add_argument_group("decided again with (every policy with every budget)")
    group.add_argument("--policy", action="append", default=[], metavar="P", help="this policy; may be given again")
    group.add_argument("--budget", type=_budgets, default=[], metavar="N,N", help="these budgets of tokens")
    group = parser.add_argument_group("stopped at a moment")
    group.add_argument("--until", metavar="PREDICATE", help="stop where this VMQL condition holds first; 1 if never")
    group.add_argument("--after", type=int, metavar="POSITION", help="look after this position (default: the start)")
    parser.add_argument("--check", action="store_true", help="compare every decision with the recorded one instead")
    parser.add_argument("--keep", metavar="NAME", help="store the one what-if as session NAME, a fork")
    parser.add_argument("--all", action="store_true", help="every session that has a budget, over all cores")
    parser.add_argument("--results", metavar="FILE", help="keep what is done in FILE, and go on from there")
    parser.add_argument("--price", type=float, metavar="D", help="dollars that a million tokens cost more uncached")


def _budgets(text: str) -> list[int]:
    numbers = text.replace("_", "").split(",")
    if not all(number.isdecimal() and int(number) for number in numbers):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of tokens like 8000,32000")
    return [int(number) for number in numbers]


def add_debug(parser: argparse.ArgumentParser) -> None:
    """Where the debugger is served."""
    parser.add_argument("--port", type=_port, metavar="N", help="this port; 0 takes any (default: 7117, or the next)")
    parser.add_argument(
        "--host", metavar="H", default="127.0.0.1", help="let other machines in, with a token (default: 127.0.0.1)"
    )
    parser.add_argument("--open", action="store_true", help="open it in the browser")
    group = parser.add_argument_group("written to a file instead")
    group.add_argument("--export", metavar="FILE", help="write the page with the session in it as FILE.html, redacted")
    group.add_argument("--no-redact", action="store_true", help="write everything as it is, secrets too")


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port from 0 to 65535")
    return int(text)


def add_shell(parser: argparse.ArgumentParser) -> None:
    """For which shell."""
    parser.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")
