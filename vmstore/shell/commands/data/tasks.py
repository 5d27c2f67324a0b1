"""The commands for tasks: what is worked on, told in few tokens and opened; their digest for a prompt; their files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from vmstore.errors import InputError
from vmstore.shell.commands.arguments import Command, Parser, add_moment, add_session, add_store, positive_number
from vmstore.shell.open_store import moment_of, open_to_ask, open_to_change, session_of
from vmstore.shell.terminal.render import Screen

BUDGET = 2_000


def tasks(arguments: argparse.Namespace, screen: Screen) -> int:
    """Lists tasks; or tells one as far as it is opened, and writes a brief of it if asked."""
    from vmstore.shell.terminal import format_tasks

    _check(arguments)
    with open_to_ask(arguments) as store:
        if arguments.task is not None:
            return _one(arguments, screen, session_of(store, arguments))
        if arguments.session is None:
            found = store.work.tasks(user=arguments.user, status=arguments.status)
        else:
            session = session_of(store, arguments)
            found = session.work.digests.tasks(moment_of(arguments), status=arguments.status)
    if arguments.json:
        screen.json({"tasks": found})
    elif found:
        screen.show(format_tasks.tasks(found))
    else:
        screen.note("no task" + ("" if arguments.status is None else f" is {arguments.status}"))
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if arguments.user is not None and arguments.session is not None:
        raise InputError("--user asks all of a user's sessions; leave the session out")
    lists = {"--status": arguments.status, "--user": arguments.user}
    bound = next((name for name, value in lists.items() if value is not None), None)
    if bound is not None and arguments.task is not None:
        raise InputError(f"{bound} chooses among tasks and --task names one, of its session; leave {bound} out")
    opens = {"--depth": arguments.depth, "--budget": arguments.budget, "--brief": arguments.brief}
    named = next((name for name, value in opens.items() if value is not None), None)
    if named is not None and arguments.task is None:
        raise InputError(f"{named} is of one task; name it with --task TASK")


def _one(arguments: argparse.Namespace, screen: Screen, session: Any) -> int:
    """Tells one task, opened to a depth within a budget; or writes its brief."""
    digests, moment = session.work.digests, moment_of(arguments)
    if arguments.brief is not None:
        if moment != moment_of(argparse.Namespace()):
            raise InputError("a brief is of a task as it stands now; leave the moment out")
        brief = digests.report(arguments.task, arguments.brief, topic=arguments.topic)
        if arguments.json:
            screen.json({"brief": brief})
        else:
            screen.show(f"written: {brief.markdown}, with {brief.bundle.name} and {brief.sidecar.name}")
            masked = ", ".join(f"{kind} {times}" for kind, times in brief.masked.items())
            screen.note(f"masked: {masked}" if masked else "nothing needed masking")
        return 0
    digest = digests.get(arguments.task, moment)
    depth = 1 if arguments.depth is None else arguments.depth
    if depth < 2:
        text = (digest.short, digest.paragraph)[depth]
    else:
        text = digests.expand(f"expand://task/{digest.task}?depth={depth}", arguments.budget or BUDGET, moment)
    if arguments.json:
        screen.json({"digest": digest, "depth": depth, "text": text})
    else:
        screen.show(*text.splitlines())
        costs = ", ".join(f"{at} {tokens}" for at, tokens in enumerate(digest.costs))
        stale = f"; the digest written as {digest.written} is stale" if digest.stale else ""
        screen.note(f"tokens by depth: {costs}{stale}")
    return 0


def digest(arguments: argparse.Namespace, screen: Screen) -> int:
    """Packs the digests of a session, cards and expansions into a budget, as text for a prompt."""
    with open_to_ask(arguments) as store:
        session = session_of(store, arguments)
        packed = session.work.digests.pack(
            arguments.budget, task=arguments.task, cards=arguments.cards, expand=arguments.expand
        )
    if arguments.json:
        screen.json({"session": session.name, **{name: getattr(packed, name) for name in packed.__struct_fields__}})
        return 0
    screen.show(*packed.text.splitlines())
    screen.note(f"{packed.tokens:,} of {arguments.budget:,} tokens")
    for what, listed in (("left out or cut", packed.dropped), ("not approved", packed.denied)):
        for each in listed:
            screen.note(f"{what}: {each}")
    return 0


def artifacts(arguments: argparse.Namespace, screen: Screen) -> int:
    """Lists the files of a session; or takes some in, says what somebody decided, or looks for what changed."""
    from vmstore.shell.terminal import format_tasks

    said = arguments.approve or arguments.deny
    if said and not arguments.by:
        raise InputError("say by whose word: --by WHO")
    changes = bool(said or arguments.add)
    if changes and moment_of(arguments) != moment_of(argparse.Namespace()):
        raise InputError("the past does not change; leave the moment out")
    with (open_to_change if changes else open_to_ask)(arguments) as store:
        session = session_of(store, arguments)
        files = session.work.artifacts
        _all_there(files, arguments)
        for path in arguments.add:
            files.add(path, root=arguments.root, task=arguments.task)
        for granted, names in ((True, arguments.approve), (False, arguments.deny)):
            for name in names:
                files.approve(name, who=arguments.by, granted=granted)
        found = files.all(moment_of(arguments), task=None if arguments.add else arguments.task)
        checks = files.check(arguments.root) if arguments.check else None
    if arguments.json:
        screen.json({"session": session.name, "artifacts": found, "checks": checks})
    elif checks is not None:
        screen.show(format_tasks.checks(checks)) if checks else screen.note("no file was taken in")
    elif found:
        screen.show(format_tasks.artifacts(found))
    else:
        screen.note("the session has no files")
    return 0 if checks is None or all(check.state in ("same", "masked") for check in checks) else 1


def _all_there(files: Any, arguments: argparse.Namespace) -> None:
    """Refuses the command before anything is written where one of what it names is not there."""
    from vmstore.work.artifact import project_file

    for path in arguments.add:
        project_file(path, arguments.root)
    coming = {str(path) for path in arguments.add}
    for name in (*arguments.approve, *arguments.deny):
        if name not in coming:
            files.get(name)


def _add_tasks(parser: Parser) -> None:
    parser.add_argument("--user", metavar="U", help="of all sessions of a user")
    parser.add_argument("--status", choices=("active", "completed", "abandoned"), help="those that stand so")
    one = parser.add_argument_group("one task")
    one.add_argument("--task", metavar="TASK", help="tell one, by its page or its title")
    one.add_argument(
        "--depth", type=int, choices=range(4), metavar="N", help="0 a sentence, 1 a paragraph, 2 steps, 3 all of it"
    )
    one.add_argument("--budget", type=positive_number, metavar="N", help=f"tokens that it may take: {BUDGET:,}")
    one.add_argument("--brief", type=Path, metavar="FOLDER", help="write a brief below a folder: storage/briefs/…")
    one.add_argument("--topic", metavar="WORDS", help="what the brief is called; by itself the task's title")


def _add_digest(parser: Parser) -> None:
    parser.add_argument("--budget", type=positive_number, default=500, metavar="N", help="tokens it may take: 500")
    parser.add_argument("--task", metavar="TASK", help="which task; by itself the newest active one")
    parser.add_argument("--cards", type=int, default=6, metavar="N", help="cards at most: 6")
    parser.add_argument(
        "--expand", action="append", default=[], metavar="URI", help="expand://task/p7?depth=2, or artifact://p12"
    )


def _add_artifacts(parser: Parser) -> None:
    parser.add_argument("--add", action="append", default=[], metavar="PATH", help="take a file of the project in")
    parser.add_argument("--root", type=Path, metavar="FOLDER", help="the project's folder; by itself this one")
    parser.add_argument("--task", metavar="TASK", help="the task they are a part of")
    parser.add_argument("--check", action="store_true", help="compare each with its file as it is now")
    parser.add_argument("--approve", action="append", default=[], metavar="FILE", help="a prompt may hold it")
    parser.add_argument("--deny", action="append", default=[], metavar="FILE", help="no prompt may hold it")
    parser.add_argument("--by", metavar="WHO", help="who decided so")


COMMANDS = (
    Command(
        "tasks",
        "query",
        "what agents work on, told in few tokens and opened",
        "Lists tasks of all sessions, of a user, or of a session as of a moment: a task is a plan. With --task it\n"
        "tells one: in a sentence, a paragraph, its steps, or with all that is a part of it, each with its page; or\n"
        "writes a brief of it for people. Secrets are masked.",
        (
            "vmstore tasks agent.vms --status active",
            "vmstore tasks agent.vms monday --task login --depth 3",
            "vmstore tasks agent.vms monday --task login --brief . --topic 'login review'",
        ),
        tasks,
        (add_store, add_session, _add_tasks, add_moment),
    ),
    Command(
        "digest",
        "query",
        "tasks and what was learned, packed for a prompt",
        "Packs what a session's memory holds, its task, cards of what its user's sessions taught and what is to be\n"
        "opened into a budget of tokens, as text for a prompt. What has no room is named: expansions go before cards.",
        (
            "vmstore digest agent.vms monday --budget 300",
            "vmstore digest agent.vms monday --expand 'expand://task/p7?depth=3' --expand artifact://p12",
        ),
        digest,
        (add_store, add_session, _add_digest),
    ),
    Command(
        "artifacts",
        "query",
        "files of a session: path, digest, who approved them",
        "Lists the files that a session holds, with their SHA-256 and what was said of them. With --add it takes\n"
        "files of the project in, with --approve and --deny it logs somebody's word on whether a prompt may hold\n"
        "one, with --check it compares each with its file as it is now: exit code 1 where one changed or is gone.",
        (
            "vmstore artifacts agent.vms monday --add report.md --task login",
            "vmstore artifacts agent.vms monday --approve report.md --by Ada",
            "vmstore artifacts agent.vms monday --check",
        ),
        artifacts,
        (add_store, add_session, _add_artifacts, add_moment),
    ),
)
