"""What each statement asks for, one function each."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from vmstore.core.address import page_position
from vmstore.core.asof import AsOf, Call, Position
from vmstore.core.page import LinkKind
from vmstore.core.text.json_text import shown
from vmstore.core.text.tool_outcome import ToolOutcome
from vmstore.core.times import iso
from vmstore.errors import InputError, RefusedError, UnknownError
from vmstore.views.reads.reasons import word_of
from vmstore.views.reads.resolve_asof import basis as resolve
from vmstore.views.reads.resolve_asof import happened_at
from vmstore.views.reads.tools import NO_TOOL, PageTool, tools_at
from vmstore.vmql.execution.query import Query, Row, rows_of
from vmstore.vmql.execution.result import Result
from vmstore.vmql.functions import as_text
from vmstore.vmql.host import PageLineage, StoredContext
from vmstore.vmql.planner.clause_checks import check_context, check_diff
from vmstore.vmql.planner.plan import Plan
from vmstore.vmql.planner.scope import OneSession, Scope, as_of, given, key_of, meant_by, query_error
from vmstore.vmql.relations import describe as shows
from vmstore.vmql.relations import python_rows
from vmstore.vmql.relations.catalog import RELATIONS
from vmstore.vmql.relations.links import RESIDENCIES, VERSIONS
from vmstore.vmql.relations.pages import SEARCH
from vmstore.vmql.relations.relation import LANE, Relation
from vmstore.vmql.syntax import nodes
from vmstore.vmql.syntax.errors import fault

if TYPE_CHECKING:
    from vmstore.vmql.execution.query import Make
    from vmstore.vmql.execution.search import FoundRow
    from vmstore.vmql.execution.walk import WalkedLink


def one(query: Query, tail: nodes.Tail) -> OneSession:
    """The one session a statement is asked of."""
    scope = query.scope(tail)
    if not isinstance(scope, OneSession):
        span = tail.scope.span if tail.scope is not None else nodes.SourceSpan(0, 0)
        raise fault("this is asked of one session", "which-session", span, hint="name one: IN SESSION …")
    return scope


@contextmanager
def faults_at(span: nodes.SourceSpan, code: str) -> Iterator[None]:
    """What the store refuses within is a fault of the text, at a place of it."""
    try:
        yield
    except (UnknownError, InputError) as error:
        raise query_error(error, span, code) from error


# ---- relations


def relation(query: Query, statement: nodes.RelationQuery) -> Result:
    """The rows of a relation."""
    found = shows.named(statement.name, RELATIONS, statement.span)
    with query.asking():
        scope = query.scope(statement.tail, wide=found.wide)
        make = maker_of(query, found, scope, statement.tail)
        if found.now and not statement.tail.ever:
            scope.basis["valid_at"] = iso(scope.need("valid_at"))
        return query.select(found, statement.columns, statement.tail, scope, make=make, ready=found.name == "MUTATIONS")


def maker_of(query: Query, relation: Relation, scope: Scope, tail: nodes.Tail) -> Make | None:
    """What makes the rows of a relation: most relations are SQL, and load nothing for it."""
    if not relation.made:
        return None
    from vmstore.vmql.execution.streams import maker

    return maker(query, relation, scope, tail)


def watch(query: Query, statement: nodes.Watch) -> Result:
    """The mutations after a cursor, in the order of the log."""
    from vmstore.vmql.execution import streams

    return streams.watch(query, statement)


# ---- contexts


def context(query: Query, statement: nodes.ContextAt) -> Result:
    """What the model saw at a call."""
    check_context(statement)
    tail = statement.tail
    if tail.per is not None:
        return contexts(query, statement, tail.per)
    with query.asking():
        bare = msgspec.structs.replace(tail, as_of=None)
        scope = one(query, bare)
        seen = _seen(query, scope, statement.moment or tail.as_of, statement.span)
        scope.asked = (msgspec.structs.replace(bare, as_of=_position(seen.basis.position)), query.params)
        basis = {**msgspec.to_builtins(seen.basis), "fidelity": seen.fidelity}
        if statement.form != "pages":
            _check_approved(query, scope, seen, statement)
        if statement.form == "render":
            text = rows_of([(seen.text(),)])
            return query.select(python_rows.RENDERED, (), nodes.Tail(), scope, make=text, kind="text", basis=basis)
        if statement.form == "messages":
            message = [(at, _role(message), _json(message)) for at, message in enumerate(seen.messages(), 1)]
            return query.select(
                python_rows.CHAT, (), nodes.Tail(), scope, make=rows_of(message), kind="messages", basis=basis
            )

        def make(found: Plan) -> Callable[[], Iterable[Row]]:
            pages = _pages(query, scope, seen, found.wanted, _tools(scope, found.wanted), shown=found.plain is not None)
            return lambda: pages

        return query.select(
            python_rows.CONTEXT, statement.columns, bare, scope, make=make, kind="context", basis=basis, ready=True
        )


def contexts(query: Query, statement: nodes.ContextAt, per: str) -> Result:
    """What the model saw at each call, or at the last call of each turn, that is asked about."""
    with query.asking():
        scope = one(query, statement.tail)
        calls = list(query.kept(RELATIONS["CALLS"], nodes.columns_named("turn", "call"), scope))
        moments = calls if per == "call" else list(dict(calls).items())  # of each turn the last
        session = query.world.session(scope.name)

        def make(found: Plan) -> Callable[[], Iterable[Row]]:
            rows, tools = list[Row](), _tools(scope, found.wanted)
            for turn, call in moments:
                query.watch.check()
                seen = session.context(Call(call))
                rows += ((*page, turn, call) for page in _pages(query, scope, seen, found.wanted, tools, shown=False))
            return lambda: rows

        return query.select(python_rows.CONTEXTS, statement.columns, statement.tail, scope, make=make)


def _tools(scope: OneSession, wanted: Collection[str]) -> dict[int, PageTool]:
    """The tools of pages, where a column wants them."""
    return {} if {"tool", "tool_call", "outcome"}.isdisjoint(wanted) else tools_at(scope.lane, scope.at.position)


def _check_approved(query: Query, scope: OneSession, seen: StoredContext, statement: nodes.ContextAt) -> None:
    """Refuses to tell a context as a whole where it holds a file that no prompt may hold by now."""
    if barred := [page for page in seen.page_ids if not query.tells(scope.lane.owner(page), page)]:
        message = f"p{barred[0]} is a file that nobody approved, or that somebody denied, and this context holds it"
        hint = f"without {statement.form.upper()} the other pages are told"
        raise fault(message, "not-approved", statement.span, hint)


def _pages(
    query: Query,
    scope: OneSession,
    seen: StoredContext,
    wanted: Collection[str],
    tools: dict[int, PageTool],
    *,
    shown: bool,
) -> Iterable[Row]:
    """The rows of a context as they are shown, or as they are kept, with tools and texts where they are wanted."""
    contents = seen.contents() if "text" in wanted else {}

    def text(name: str) -> str | None:
        content = contents.get(name)
        return None if content is None else query.text_for_answer(scope.lane, _number(name) or 0, as_text(content))

    pages: Iterable[Row] = map(msgspec.structs.astuple, seen.pages)
    pages = ((*page, *_tool(tools, page[1]), text(page[1])) for page in pages)
    return pages if shown else ((page[0], _number(page[1]), _number(page[2]), *page[3:]) for page in pages)


def _position(number: int) -> nodes.MomentNode:
    return nodes.MomentNode(unit="position", value=nodes.Value(value=number))


def _seen(query: Query, scope: OneSession, moment: nodes.MomentNode | None, span: nodes.SourceSpan) -> StoredContext:
    """The context of a call."""
    when = as_of(moment, query.params, query.world.now())
    with faults_at(moment.span if moment is not None else span, "no-such-moment"):
        return query.world.session(scope.name).context(when)


def _tool(tools: dict[int, PageTool], page: str) -> tuple[str | None, str | None, str | None]:
    """The tool of a page, the id of the call, the word of its outcome."""
    tool, name, outcome = tools.get(page_position(page) or 0, NO_TOOL)
    return tool, name, word_of(ToolOutcome, outcome)


def _number(name: str | None) -> int | None:
    return int(name[1:]) if name else None


def _role(message: Any) -> str | None:
    return message.get("role") if isinstance(message, dict) else None


def _json(value: Any) -> str:
    return shown(value)


def diff_context(query: Query, statement: nodes.DiffContext) -> Result:
    """What changed between two contexts of a session."""
    check_diff(statement)
    with query.asking():
        scope = one(query, statement.tail)
        ends = [(scope.name, _when(query, moment)) for moment in (statement.before, statement.after)]
        try:
            return _diff(query, scope, statement.tail, *ends)
        except (UnknownError, InputError):
            for moment in (statement.before, statement.after):
                _seen(query, scope, moment, moment.span)  # points at the one that is not there
            raise


def diff_session(query: Query, statement: nodes.DiffSession) -> Result:
    """What differs between the contexts of two sessions."""
    check_diff(statement)
    with query.asking():
        ends, when = [], _when(query, statement.moment)
        for node in (statement.before, statement.after):
            name = meant_by(query.world, node, query.params)
            scope = one(
                query, nodes.Tail(scope=nodes.InSession(name=nodes.Value(value=name, span=node.span), span=node.span))
            )
            ends.append((name, when))
        with faults_at(statement.span, "no-such-moment"):
            return _diff(query, scope, statement.tail, *ends)


def _when(query: Query, moment: nodes.MomentNode | None) -> AsOf:
    return as_of(moment, query.params, query.world.now())


def _diff(query: Query, scope: Scope, tail: nodes.Tail, before: tuple[str, AsOf], after: tuple[str, AsOf]) -> Result:
    changes, basis = query.world.differences(before, after)

    def text(owner: str, change: Any) -> str:
        if query.untold is None:
            return change.text or ""
        lane = query.world.lane(key_of(query.world, owner, nodes.NOWHERE))
        return query.text_for_answer(lane, page_position(change.page) or 0, change.text) or ""

    listed = [
        (
            *(page_position(change.page), owner, change.change, change.tokens_after - change.tokens_before),
            *(change.tokens_before, change.tokens_after, _number(change.message), change.role, change.type),
            *(change.level_before, change.level_after, text(owner, change)),
        )
        for owner, change in changes
    ]
    return query.select(python_rows.DIFF, (), tail, scope, make=rows_of(listed), kind="diff", basis=dict(basis))


# ---- pages


def of_page(query: Query, statement: nodes.OfPage) -> Result:
    """What happened to a page, where it stayed, what it held."""
    if statement.what == "history":
        return history(query, statement)
    found = RESIDENCIES if statement.what == "residencies" else VERSIONS
    with query.asking():
        scope = one(query, statement.tail)
        scope.values["page"] = _page(query, scope, statement.page)
        return query.select(found, (), statement.tail, scope, path="page")


def history(query: Query, statement: nodes.OfPage) -> Result:
    """What happened to a page up to a moment."""
    with query.asking():
        scope = one(query, statement.tail)
        name = str(given(statement.page, query.params))
        with faults_at(statement.page.span, "unknown-page"):
            events = query.world.session(scope.name).lineage.history(name, Position(scope.at.position))
        listed = [
            (*msgspec.structs.astuple(event), happened_at(scope.lane, event.position))
            for event in events
            if scope.since < event.position <= scope.until
        ]
        return query.select(python_rows.HISTORY, (), statement.tail, scope, make=rows_of(listed), kind="history")


def _page(query: Query, scope: OneSession, page: nodes.Name) -> int:
    """The position of the page that a statement names."""
    return scope.position_of(str(given(page, query.params)), page.span)


def _walk(query: Query, statement: nodes.LineageQuery | nodes.PathQuery) -> tuple[Any, list[str]]:
    """How deep a walk goes, and over which kinds of link: over all where it says none."""
    depth = None if statement.depth is None else given(statement.depth, query.params)
    return depth, [str(given(kind, query.params)).lower() for kind in statement.kinds]


def lineage(query: Query, statement: nodes.LineageQuery) -> Result:
    """The links met on a walk from a page, as the log had them at the moment."""
    with query.asking():
        scope = one(query, statement.tail)
        page = _page(query, scope, statement.page)
        depth, kinds = _walk(query, statement)
        session = query.world.session(scope.name)
        if EVIDENCE in kinds:
            return _evidence(query, statement, scope, page)
        walk = session.lineage.ancestors if statement.up else session.lineage.descendants
        with faults_at(statement.span, "unknown-word"):
            found = walk(f"p{page}@position:{scope.at.position}", depth=depth, kinds=kinds or None)
        listed = []
        for e in found:
            source, target = page_position(e.source) or 0, page_position(e.target) or 0
            text = query.text_for_answer(scope.lane, target if statement.up else source, e.text)
            if scope.since < e.position <= scope.until:
                listed.append((e.depth, source, e.kind, target, e.position, text, e.status))
        if statement.up and not listed and not (kinds or statement.tail.since or statement.tail.until):
            query.notes.append(f"no link was logged; SOURCES OF p{page} VIA evidence ranks what it may have come from")
        return query.select(python_rows.LINEAGE, (), statement.tail, scope, make=rows_of(listed), kind="lineage")


def path(query: Query, statement: nodes.PathQuery) -> Result:
    """The shortest walk from a page to another over the links that hold at the moment, either way along each."""
    from vmstore.vmql.execution.walk import WalkedLink, kinds_of, shortest

    with query.asking():
        scope = one(query, statement.tail)
        first, last = (_page(query, scope, page) for page in (statement.source, statement.target))
        depth, kinds = _walk(query, statement)
        with faults_at(statement.span, "unknown-word"):
            known = kinds_of(kinds)
        columns = nodes.columns_named("source", "target", "kind", "position")
        held = query.kept(RELATIONS["LINKS"], columns, scope)
        walk = shortest([WalkedLink(*link) for link in held if not known or link[2] in known], first, last, depth)
        lineage = query.world.session(scope.name).lineage
        listed = [_step(query, lineage, scope, number, *step) for number, step in enumerate(walk, 1)]
        return query.select(python_rows.LINEAGE, (), statement.tail, scope, make=rows_of(listed))


def _step(query: Query, lineage: PageLineage, scope: OneSession, number: int, edge: WalkedLink, here: int) -> Row:
    """A step of a walk from a page as a row: the link, and what is known of the page on its far side."""
    look = lineage.ancestors if edge.source == here else lineage.descendants
    kind = LinkKind(edge.kind).word
    names = (f"p{edge.source}", kind, f"p{edge.target}")
    found = look(f"p{here}@position:{scope.at.position}", depth=1, kinds=[kind])
    far = next(event for event in found if (event.source, event.kind, event.target) == names)
    text = query.text_for_answer(scope.lane, edge.target if edge.source == here else edge.source, far.text)
    return (number, edge.source, kind, edge.target, edge.position, text, far.status)


EVIDENCE = "evidence"


def _evidence(query: Query, statement: nodes.LineageQuery, scope: OneSession, page: int) -> Result:
    """What an answer may have come from, by its words and by what was new to its call: none of it was logged."""
    if len(statement.kinds) > 1 or not statement.up or statement.depth is not None:
        message = "evidence is no link, so it stands in no walk with links"
        hint = f"write SOURCES OF p{page} VIA evidence, alone and without DEPTH"
        raise fault(message, "clause-unused", statement.kinds[0].span, hint)
    found = query.world.session(scope.name).lineage.evidence(page, limit=None)
    listed = [
        (
            *(one.rank, page_position(one.page), one.role, one.type, one.call, int(one.new)),
            *(one.score, one.text, json.dumps(one.shared)),
        )
        for one in found
        if query.tells(scope.lane.owner(at := page_position(one.page) or 0), at)
    ]
    return query.select(python_rows.EVIDENCE, (), statement.tail, scope, make=rows_of(listed))


def why(query: Query, statement: nodes.WhyQuery) -> Result:
    """Why a page is in the context of a call, or is not."""
    from vmstore.vmql.execution.why import chain

    with query.asking():
        scope = one(query, nodes.Tail(scope=statement.scope))
        page = _page(query, scope, statement.page)
        seen = _seen(query, scope, statement.moment, statement.span)
        when = as_of(statement.moment, query.params, query.world.now())
        listed = list(chain(scope, page, seen, max(seen.basis.position, resolve(scope.lane, when).position)))
        basis = {**msgspec.to_builtins(seen.basis), "fidelity": seen.fidelity}
        return query.select(python_rows.WHY, (), nodes.Tail(), scope, make=rows_of(listed), kind="why", basis=basis)


# ---- sessions


def _in(session: nodes.Name | None) -> nodes.InSession | None:
    """The session that a statement names."""
    return None if session is None else nodes.InSession(name=session, span=session.span)


def fork(query: Query, statement: nodes.Fork) -> Result:
    """Makes a session that shares another's past: the one statement that writes."""
    name = str(given(statement.name, query.params))
    with query.asking():
        scope = one(query, nodes.Tail(scope=_in(statement.session), as_of=statement.moment))
    try:
        query.world.session(scope.name).fork(name, Position(scope.at.position))
    except (InputError, RefusedError) as error:
        if statement.moment is not None and "name_is_free" not in str(error) and isinstance(error, RefusedError):
            raise query_error(error, statement.moment.span) from error
        raise query_error(error, statement.name.span, "bad-name") from error
    row = (name, scope.name, *scope.at)
    return query.select(python_rows.FORKED, (), nodes.Tail(), scope, make=rows_of([row]))


def replay(query: Query, statement: nodes.Replay) -> Result:
    """What a session's memory did, and what it would have done under other settings."""
    for said in statement.given:
        if said.name.lower() == "keep":  # the store's own word for writing it down
            hint = "keep it with `vmstore replay --keep`"
            raise fault("a query keeps no session", "not-replayed", said.span, hint=hint)
    with query.asking():
        scope = one(query, nodes.Tail(scope=_in(statement.session)))
    changes = {assignment.name: given(assignment.value, query.params) for assignment in statement.given}
    with faults_at(statement.span, "not-replayed"):
        runs = [query.world.replayed(scope.name, {}, query.watch.check)]
        if changes:
            runs.append(query.world.replayed(scope.name, changes, query.watch.check))
    names = list(python_rows.REPLAYED.fields)
    return query.select(python_rows.REPLAYED, (), nodes.Tail(), scope, make=rows_of([_run(run, names) for run in runs]))


def _run(run: Any, names: Sequence[str]) -> Row:
    """A run as a row."""
    measured = {**msgspec.structs.asdict(run.measures), "policy": run.policy, "budget": run.budget}
    measured["run"] = "recorded" if run.recorded else "what if"
    if run.divergence is not None:
        measured |= msgspec.structs.asdict(run.divergence)
    return tuple(measured.get(name) for name in names)


def verify(query: Query, statement: nodes.Verify) -> Result:
    """Checks every hash, view and rule; no row where all is well."""
    name = None if statement.session is None else str(given(statement.session, query.params))
    with query.asking():
        scope = query.scope(nodes.Tail(scope=_in(statement.session)), wide=True)
    verdict = query.world.verified(name, query.watch.check)
    listed = [(problem.kind, problem.where, problem.what) for problem in verdict.problems]
    basis = {**scope.basis, "ok": verdict.ok, "commits": verdict.commits, "mutations": verdict.mutations}
    return query.select(python_rows.PROBLEMS, (), nodes.Tail(), scope, make=rows_of(listed), basis=basis)


# ---- what can be asked for


def show(query: Query, statement: nodes.Show) -> Result:
    """The relations or the functions there are."""
    what = statement.what.lower()
    if what not in shows.SHOWN:
        raise shows.refused(what, statement.span)
    listed = shows.relations() if what == "relations" else shows.functions()
    return plain(query, python_rows.RELATIONS_SHOWN if what == "relations" else python_rows.FUNCTIONS, listed)


def describe(query: Query, statement: nodes.Describe) -> Result:
    """The columns of a relation."""
    return plain(query, python_rows.COLUMNS, shows.columns(statement.relation, statement.span))


def set_(query: Query, statement: nodes.Set) -> Result:
    """Refuses: settings belong to the caller."""
    message, hint = f"a store keeps no setting {statement.name!r}", "set it in the shell, or pass session=… to query"
    raise fault(message, "no-settings", statement.span, hint)


def plain(query: Query, of: Relation, listed: list[Row]) -> Result:
    """Rows that are of no session and no moment."""
    found = query.runner.planned(("", of.name), of, (), nodes.Tail(), LANE, None)
    assert found.plain is not None, "nothing is asked of the rows"
    return query.result("table", {}, found, iter(listed))


def search(query: Query, statement: nodes.SearchQuery) -> Result:
    """Pages that hold words, the best first."""
    words = str(given(statement.query, query.params))
    query.world.ask(words)
    with query.asking():
        scope = query.scope(statement.tail)
        scope.values["words"] = words
        with faults_at(statement.query.span, "no-words"):
            scope.values["hits"] = json.dumps(_hits(query, statement, scope, words))
        return query.select(SEARCH, statement.columns, statement.tail, scope, path="found")


def _hits(query: Query, statement: nodes.SearchQuery, scope: Scope, words: str) -> list[FoundRow]:
    """What a search found, all of it, or what so many tokens have room for: of what WHERE lets through alone."""
    from vmstore.vmql.execution.explain import WHY_FOUND
    from vmstore.vmql.execution.search import FoundRow, best, fitting

    found, vectors, query.searched = best(
        scope, words, query.watch.check, not WHY_FOUND.isdisjoint(nodes.names_of(statement))
    )
    query.notes += [vectors] if vectors is not None else []
    found = [row for row in found if query.tells(row.session, row.page)]
    if statement.within is None:
        return found
    tokens = given(statement.within, query.params)
    if isinstance(tokens, bool) or not isinstance(tokens, int) or not 0 < tokens < 1 << 31:
        message = f"WITHIN {tokens!r} TOKENS is no room for anything"
        raise fault(message, "wrong-type", statement.within.span, expected=("a whole number from 1 up",))
    allowed = None if query.untold is None else {(row.session, row.page) for row in found}
    if statement.tail.where is not None:
        scope.values["hits"] = json.dumps(found)
        columns = nodes.columns_named("session", "page")
        tail = nodes.Tail(scope=statement.tail.scope, as_of=statement.tail.as_of, where=statement.tail.where)
        passed = query.passed(SEARCH, columns, tail, scope, "found")
        let = {(session, page_position(page)) for session, page in passed}
        names = dict(scope.world.views.execute("SELECT session, name FROM sessions"))
        allowed = {(row.session, row.page) for row in found if (names[row.session], row.page) in let}
    why = {(row.session, row.page): row[4:] for row in found if row.features is not None}
    return [
        FoundRow(*row[:4], *why.get(row[:2], (None, None)))
        for row in fitting(scope, words, tokens, allowed, query.watch.check)
        if query.tells(row.session, row.page)
    ]


def explained(query: Query, statement: nodes.Explain) -> Result:
    """Answers EXPLAIN."""
    from vmstore.vmql.execution.explain import explain

    return explain(query, statement, answer)


def answer(query: Query, statement: Any) -> Result:
    """Answers a statement."""
    return ANSWERS[type(statement)](query, query.dated(statement))


ANSWERS: dict[type, Callable[[Query, Any], Result]] = {
    nodes.RelationQuery: relation,
    nodes.ContextAt: context,
    nodes.DiffContext: diff_context,
    nodes.DiffSession: diff_session,
    nodes.OfPage: of_page,
    nodes.LineageQuery: lineage,
    nodes.PathQuery: path,
    nodes.Fork: fork,
    nodes.Replay: replay,
    nodes.Verify: verify,
    nodes.Watch: watch,
    nodes.SearchQuery: search,
    nodes.Show: show,
    nodes.Describe: describe,
    nodes.Set: set_,
    nodes.WhyQuery: why,
    nodes.Explain: explained,
}
