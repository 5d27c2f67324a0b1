"""The commands for an agent's work: what its calls teach, and what it plans."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vmstore.errors import InputError, UnknownError
from vmstore.shell.commands.arguments import (
    Command,
    Parser,
    add_moment,
    add_session,
    add_store,
    add_workers,
    whole_number,
)
from vmstore.shell.open_store import moment_of, open_to_ask, open_to_change, session_of
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.store.session import Session
    from vmstore.store.store import Store
    from vmstore.store.work.observations import ObservationInfo

GUARDS = ("failure", "runaway", "ungrounded", "budget")


def learn(arguments: argparse.Namespace, screen: Screen) -> int:
    """Shows failures to avoid, skills and plans of a store, a user or a session, and writes what is new if asked."""
    from vmstore.shell.terminal import format_work

    if arguments.session is not None and (arguments.user is not None or arguments.together):
        raise InputError("--user and --together ask many sessions; leave the session out")
    if arguments.session is not None and (arguments.workers is not None or arguments.results is not None):
        raise InputError("--workers and --results are for many sessions; leave the session out")
    with (open_to_change if arguments.write else open_to_ask)(arguments) as store:
        if arguments.session is not None:
            work: Any = session_of(store, arguments).work
            bounds: dict[str, Any] = {}
        else:
            work, bounds = store.work, {"user": arguments.user, "together": arguments.together}
            if arguments.workers is not None or arguments.results is not None:
                with screen.progress("reading") as tell:
                    file = None if arguments.results is None else Path(arguments.results)
                    work = work.read_by(arguments.workers, results=file, progress=tell)
        written = work.learn(**bounds) if arguments.write else None
        guards = [guard for guard in work.alarms(**bounds) if arguments.guard in (None, guard.type)]
        skills = work.found_skills(least=arguments.least, **bounds)
        plans = _plans(store, arguments, "active")
    shown = slice(arguments.limit)
    answer = {"guards": guards[shown], "skills": skills[shown], "plans": plans[shown]}
    if arguments.json:
        totals = {name: len(listed) for name, listed in (("guards", guards), ("skills", skills), ("plans", plans))}
        screen.json({**answer, "totals": totals, "written": written})
        return 0
    if written is not None:
        screen.note(f"written: {_count(written.guards, 'guard')} and {_count(written.skills, 'skill')} that are new")
    screen.show(*format_work.lessons(guards, skills, plans, arguments.limit))
    return 0


def observations(arguments: argparse.Namespace, screen: Screen) -> int:
    """Lists what a session's tools did, a line each; or the session in steps, with their costs; or one whole."""
    from vmstore.shell.terminal import format_work
    from vmstore.work.observation import statistics

    with open_to_ask(arguments) as store:
        session, moment = session_of(store, arguments), moment_of(arguments)
        if arguments.step is not None:
            steps = session.work.steps(moment)
            if arguments.json:
                screen.json({"session": session.name, "steps": steps})
            else:
                screen.show(*format_work.disclosure(steps, arguments.step))
            return 0
        if arguments.together:
            return _together(arguments, screen, session)
        seen = session.work.observations(moment)
        saved = statistics(seen)
        if arguments.expand is not None:
            return _expanded(arguments, screen, session, seen)
    if arguments.json:
        screen.json({"session": session.name, "observations": seen, "savings": saved})
    elif seen:
        screen.show(format_work.observations(seen))
        before, after = saved["original_tokens"], saved["compressed_tokens"]
        screen.note(f"{len(seen):,} observations of {before:,} tokens, {after:,} in their shorter forms")
    else:
        screen.note("no tool was called")
    return 0


def _together(arguments: argparse.Namespace, screen: Screen, session: Session) -> int:
    """Lists one form of those that did the same kind of thing in a row."""
    from vmstore.shell.terminal import format_work
    from vmstore.work.observation import statistics

    forms = session.work.forms.together(moment_of(arguments))
    saved = statistics(forms)
    if arguments.json:
        screen.json({"session": session.name, "aggregates": forms, "savings": saved})
    elif forms:
        screen.show(format_work.aggregates(forms))
        before, after = saved["original_tokens"], saved["compressed_tokens"]
        many = sum(len(form.pages) for form in forms)
        screen.note(f"{many:,} observations of {before:,} tokens in {len(forms):,} forms of {after:,}")
    else:
        screen.note("no tool was called")
    return 0


def brief(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints a session as a vBRIEF document, or the schema that every one follows."""
    from vmstore.work.vbrief import schema

    if arguments.schema:
        screen.json(schema())
        return 0
    with open_to_ask(arguments) as store:
        screen.json(session_of(store, arguments).work.brief())
    return 0


def _expanded(arguments: argparse.Namespace, screen: Screen, session: Session, seen: list[ObservationInfo]) -> int:
    """Prints one observation, and the answer it had to the last byte."""
    one = next((one for one in seen if arguments.expand in (one.page, one.result)), None)
    if one is None:
        raise UnknownError(f"{arguments.expand!r:.40} is no observation; leave --expand out to list them")
    output = session.content(one.result, moment_of(arguments)).decode("utf-8", "replace")
    if arguments.json:
        screen.json({"observation": one, "output": output})
    else:
        screen.show(one.summary, "", output)
    return 0


def plans(arguments: argparse.Namespace, screen: Screen) -> int:
    """Lists plans, those of a session as of a moment; of one plan its steps."""
    from vmstore.shell.terminal import format_work

    if arguments.user is not None and arguments.session is not None:
        raise InputError("--user asks all of a user's sessions; leave the session out")
    with open_to_ask(arguments) as store:
        found = _plans(store, arguments, arguments.status)
    if arguments.json:
        screen.json({"plans": found})
    elif not found:
        screen.note("no plan" + ("" if arguments.status is None else f" is {arguments.status}"))
    else:
        screen.show(format_work.plans(found))
        for plan in found if arguments.steps else ():
            screen.show("", format_work.steps(plan))
    return 0


def _plans(store: Store, arguments: argparse.Namespace, status: str | None) -> list[Any]:
    """The plans of a session, at a moment where the command takes one, else of all sessions, of a user or of all."""
    if arguments.session is not None:
        moment = moment_of(arguments) if hasattr(arguments, "turn") else None
        return session_of(store, arguments).work.plans.all(moment, status=status)
    sessions = store.sessions(user=arguments.user)
    if arguments.user is not None and not sessions:
        raise UnknownError(
            f"no session is of user {arguments.user!r:.60}; `vmstore sessions` lists them", code="no-user"
        )
    return [plan for info in sessions for plan in store.session(info.session).work.plans.all(status=status)]


def _count(listed: list[Any], noun: str) -> str:
    return f"{len(listed)} {noun}{'s' * (len(listed) != 1)}"


def _add_learn(parser: Parser) -> None:
    parser.add_argument("--user", metavar="U", help="of a user, whose sessions count together")
    parser.add_argument("--together", action="store_true", help="count all sessions together, as runs of one agent")
    parser.add_argument("--guard", choices=GUARDS, help="one kind of failure alone")
    parser.add_argument("--least", type=whole_number, default=5, metavar="N", help="successes that make a skill: 5")
    parser.add_argument("--limit", type=whole_number, default=20, metavar="N", help="so many of each, by itself 20")
    parser.add_argument("--write", action="store_true", help="log what is new: guards with warnings, pages of skills")


def _add_observations(parser: Parser) -> None:
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--step", type=int, choices=range(5), metavar="N", help="the session in steps, up to step N")
    shown.add_argument("--together", action="store_true", help="one form of those of a kind in a row")
    shown.add_argument("--expand", metavar="PAGE", help="one observation, whole")


def _add_brief(parser: Parser) -> None:
    parser.add_argument("--schema", action="store_true", help="the JSON Schema of a document")


def _add_plans(parser: Parser) -> None:
    parser.add_argument("--user", metavar="U", help="of all sessions of a user")
    parser.add_argument("--status", choices=("active", "completed", "abandoned"), help="those that stand so")
    parser.add_argument("--steps", action="store_true", help="the steps of each")


COMMANDS = (
    Command(
        "learn",
        "query",
        "failures to avoid, sequences that succeed, plans under way",
        "Shows what the calls of tools teach, without a model: which failures repeat and how, which sequences of\n"
        "tools succeed again and again and with what, and which plans are active, each with its evidence. Calls of\n"
        "one user count together, those of nobody by their session. Nothing is written unless --write says so.",
        (
            "vmstore learn agent.vms",
            "vmstore learn agent.vms --user ada --write",
            "vmstore learn runs.vms --workers 2 --results learned.jsonl",
        ),
        learn,
        (add_store, add_session, _add_learn, add_workers),
    ),
    Command(
        "observations",
        "query",
        "what each tool did, a line each; a session in steps",
        "Lists what the tools of a session did, each on a line that takes less than 20 tokens of a prompt. With\n"
        "--step the session in steps of 20, 50, 200, 800 and 2,000 tokens, each with what the next one takes.",
        (
            "vmstore observations agent.vms",
            "vmstore observations agent.vms --together",
            "vmstore observations agent.vms --expand p56",
        ),
        observations,
        (add_store, add_session, _add_observations, add_moment),
    ),
    Command(
        "brief",
        "export",
        "a session as a vBRIEF document",
        "Prints a session as a vBRIEF 0.2 document: who worked on what, its steps with their costs, todos, learnings,\n"
        "and what shorter forms of its observations save. It is JSON with and without --json.",
        (
            "vmstore brief agent.vms",
            "vmstore brief agent.vms monday > monday.vbrief.json",
            "vmstore brief agent.vms --schema",
        ),
        brief,
        (add_store, add_session, _add_brief),
    ),
    Command(
        "plans",
        "query",
        "plans of agents: steps, progress, decisions",
        "Lists the plans of all sessions, of a user, or of a session as of a moment.",
        ("vmstore plans agent.vms", "vmstore plans agent.vms monday --steps --turn 12"),
        plans,
        (add_store, add_session, _add_plans, add_moment),
    ),
)
