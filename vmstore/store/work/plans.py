"""Plans of a session: pages that stay in the prompt while they are active, and go on in the user's next session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, Unpack

import msgspec

from vmstore.core.address import Address, page_name, page_position, parse
from vmstore.core.asof import Moment, When, one_moment
from vmstore.core.decision import Holder
from vmstore.core.draft import Draft, Part
from vmstore.core.mutation import Annotate, Unpin
from vmstore.core.page import LinkKind, Mime, Modality, PageType, Role, Standing
from vmstore.core.text.json_text import plain
from vmstore.errors import ErasedError, InputError, RefusedError, UnknownError
from vmstore.live import extraction, page_moves
from vmstore.live.messages import alone, hidden
from vmstore.live.runtime import Act
from vmstore.log.port import Log
from vmstore.namespace.namespace import Namespace
from vmstore.search.passages import texts_of
from vmstore.store.host import SessionHost
from vmstore.views.branch import NEVER, Branch
from vmstore.views.projectors.pages import object_of
from vmstore.views.reads.annotations import tagged
from vmstore.views.reads.resolve_asof import basis
from vmstore.work import plan as contents
from vmstore.work.plan import PlanContent, PlanStep

T = TypeVar("T")


class PlanHost(SessionHost, Protocol):
    """A session that manages its memory, as its plans use it."""

    def _act(self, do: Callable[[Act], T], at: int | None = None) -> T: ...

    def _number(self, act: Act, page: str | int) -> int: ...


class AgentPlan(msgspec.Struct, frozen=True):
    """A plan as it stands: its page, what it is for, its steps and those that can be taken now.

    `status` is active, completed or abandoned, `progress` a share from 0 to 1, `decisions` are addresses of
    claims. `continues` is the address of the plan that it goes on with, of an earlier session.
    """

    page: str
    session: str
    title: str
    status: str
    progress: float
    goals: list[str]
    steps: list[PlanStep]
    ready: list[str]
    decisions: list[str]
    continues: str | None = None


class Plans:
    """The plans of a session: `session.work.plans`. They are written in a session that manages its memory."""

    def __init__(self, session: SessionHost) -> None:
        self._session = session

    # ---- asking

    def all(self, at: When | None = None, *, status: str | None = None, **moment: Unpack[Moment]) -> list[AgentPlan]:
        """The plans of the session, oldest first, now or at a moment; with `status` those that stand so."""
        stands = Standing.of(status) if isinstance(status, str) else None
        if status is not None and stands not in contents.STATUSES:
            words = ", ".join(standing.word for standing in contents.STATUSES)
            raise UnknownError(f"{status!r:.40} is no status of a plan; it is {words}", code="no-status")
        ns = self._session._ns
        with ns.asking():
            lane = self._session._lane()
            plans = plans_at(ns.log, lane, self._session.name, basis(lane, one_moment(at, moment)).position)
        return [plan for plan in plans if status in (None, plan.status)]

    def get(self, plan: str | int, at: When | None = None, **moment: Unpack[Moment]) -> AgentPlan:
        """A plan by its page or its title, the newest of that title; UnknownError names those there are."""
        plans = self.all(at, **moment)
        name = page_name(plan) if isinstance(plan, int) else plan
        found = next((one for one in reversed(plans) if name in (one.page, one.title)), None)
        if found is None:
            refuse_erased(self._session, str(name))
            near = Namespace.nearest(str(name), [one.title for one in plans]) if plans else "the session has none"
            raise UnknownError(f"there is no plan {name!r:.60}; {near}", code="no-plan")
        return found

    def elsewhere(self) -> list[AgentPlan]:
        """The active plans of the user's other sessions that no session goes on with, the newest session first."""
        user = self._session.info().user
        return [] if user is None else open_plans(self._session._ns, user, self._session._key)

    # ---- writing

    def create(
        self,
        title: str,
        *,
        goals: Iterable[str] = (),
        steps: Sequence[str | Mapping[str, Any]] = (),
        at_us: int | None = None,
    ) -> AgentPlan:
        """Begins a plan: its page is held in the prompt while it is active. RefusedError where it does not fit."""
        content = contents.made(title, goals, steps)
        return self.get(self._live._act(lambda act: begin(act, content), at_us))

    def update(
        self,
        plan: str | int,
        *,
        goals: Iterable[str] | None = None,
        steps: Sequence[str | Mapping[str, Any]] | None = None,
        progress: float | None = None,
        at_us: int | None = None,
    ) -> AgentPlan:
        """Gives an active plan other goals or steps, or says how much of one without steps is done."""

        def change(content: PlanContent) -> PlanContent:
            if goals is not None:
                content = contents.with_goals(content, goals)
            if steps is not None:
                content = contents.with_steps(content, steps)
            return content if progress is None else contents.with_progress(content, progress)

        return self._changed(plan, change, at_us)

    def done(self, plan: str | int, *steps: str, at_us: int | None = None) -> AgentPlan:
        """Says that steps of an active plan are done."""
        return self._changed(plan, lambda content: contents.with_done(content, steps), at_us)

    def decide(self, plan: str | int, text: str, *, sources: Iterable[str | int] = (), at_us: int | None = None) -> str:
        """States a decision of an active plan: a claim that is a part of it, made from `sources`; its page."""
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"a decision says something in words, and {text!r:.40} does not", code="not-a-text")
        listed = [sources] if isinstance(sources, str) else list(sources)
        live, (page, content) = self._live, self._active(plan)

        def do(act: Act) -> int:
            links = [(int(LinkKind.DERIVES), live._number(act, source)) for source in listed]
            links.append((int(LinkKind.PART_OF), page))
            claim = extraction.state(act, text, None, links, None, weight=contents.IMPORTANCE_ACTIVE)
            decisions = (*content.decisions, str(Address(session=live.name, page=page_name(claim))))
            rewrite(act, page, msgspec.structs.replace(content, decisions=decisions))
            return claim

        return page_name(live._act(do, at_us))

    def complete(self, plan: str | int, *, at_us: int | None = None) -> AgentPlan:
        """Ends a plan as completed: it may leave the prompt, and is found as before."""
        return self._ended(plan, Standing.COMPLETED, at_us)

    def abandon(self, plan: str | int, *, at_us: int | None = None) -> AgentPlan:
        """Ends a plan as abandoned: it may leave the prompt, and is found as before."""
        return self._ended(plan, Standing.ABANDONED, at_us)

    def resume(self, title: str | None = None, *, at_us: int | None = None) -> AgentPlan:
        """Goes on with an active plan of an earlier session of the user, by its title, else with the newest.

        UnknownError where there is none. The earlier session keeps the plan as it was.
        """
        live, others = self._live, self.elsewhere()
        found = next((plan for plan in others if title in (None, plan.title)), None)
        if found is None:
            near = Namespace.nearest(str(title), [plan.title for plan in others]) if others else "the user has none"
            raise UnknownError(f"there is no active plan {title or ''!r:.60} to go on with; {near}", code="no-plan")
        return self.get(live._act(lambda act: go_on(act, found, live._ns.name), at_us))

    # ---- parts

    @property
    def _live(self) -> PlanHost:
        session: Any = self._session
        if not hasattr(session, "_act"):
            raise RefusedError(
                f"session {session.name!r} was recorded, so nothing holds a plan in its prompt; plan in one that "
                f"goes on from it: live_session(…, continues={session.name!r})",
                code="recorded-session",
            )
        host: PlanHost = session
        return host

    def _active(self, plan: str | int) -> tuple[int, PlanContent]:
        found = self.get(plan)
        if found.status != Standing.ACTIVE.word:
            raise InputError(f"plan {found.title!r:.60} is {found.status}; begin another", code="plan-ended")
        return int(found.page[1:]), content_of(found)

    def _changed(self, plan: str | int, change: Callable[[PlanContent], PlanContent], at: int | None) -> AgentPlan:
        live, (page, content) = self._live, self._active(plan)
        changed = change(content)
        live._act(lambda act: rewrite(act, page, changed), at)
        return self.get(page)

    def _ended(self, plan: str | int, status: Standing, at: int | None) -> AgentPlan:
        live, (page, content) = self._live, self._active(plan)

        def do(act: Act) -> None:
            rewrite(act, page, msgspec.structs.replace(content, plan_status=status.word))
            act.tell(Annotate(page, importance=contents.IMPORTANCE_ENDED, status=int(status)))
            if act.state.pages[page].holders >> Holder.PLAN & 1:
                act.tell(Unpin(page, Holder.PLAN))

        live._act(do, at)
        return self.get(page)


# ---- pages


def begin(act: Act, content: PlanContent, origin: str | None = None) -> int:
    """Writes an active plan as a page that is held in the prompt; its number."""
    part = _part(content)
    weight, tags = contents.IMPORTANCE_ACTIVE, (contents.TAG,)
    page = alone(
        act, Draft(Role.ASSISTANT, b"", (part,), hint=content.plan, tags=tags, importance=weight, origin=origin)
    )
    act.tell(Annotate(page, importance=weight, status=int(Standing.ACTIVE)))
    page_moves.pin(act, page, Holder.PLAN)
    return page


def rewrite(act: Act, page: int, content: PlanContent) -> None:
    """Gives the page of a plan another content, as a version."""
    (part,) = hidden(act, Draft(Role.ASSISTANT, b"", (_part(content),))).parts
    page_moves.rewrite(act, page, part.content)


def _part(content: PlanContent) -> Part:
    return Part(contents.encoded(content), Modality.STRUCTURED, Mime.JSON, PageType.CLAIM)


def go_on(act: Act, plan: AgentPlan, namespace: str) -> int:
    """Begins a plan that goes on with one of another session, in the same bytes; its page."""
    source = Address(namespace=namespace, session=plan.session, page=plan.page)
    return begin(act, content_of(plan), str(source))


def refuse_erased(session: Any, name: str) -> None:
    """Raises ErasedError where a name is that of a page that was erased."""
    try:
        if page_position(name):
            session.content(name)
    except ErasedError:
        raise
    except UnknownError:
        return


def content_of(plan: AgentPlan) -> PlanContent:
    """The content of the page of a plan."""
    return PlanContent(
        plan.title,
        plan.status,
        tuple(plan.goals),
        tuple(plan.steps),
        tuple(plan.decisions),
        plan.progress,
    )


def plans_at(log: Log, lane: Branch, session: str, position: int) -> list[AgentPlan]:
    """The plans of a session at a position, oldest first; one whose content was erased is none."""
    pages = tagged(lane, position, contents.TAG)
    origins = {page: object_of(labels).get("origin") for page, labels in lane.rows(_LABELS, pages) if labels}
    found = []
    for page, text in texts_of(log, lane, {lane.session: position}, pages):
        plan = contents.decoded(text.encode("utf-8", "surrogatepass"))
        if plan is not None:
            ready = plan.ready if plan.plan_status == Standing.ACTIVE.word else []
            lists = list(plan.goals), list(plan.steps), ready, list(plan.decisions)
            origin = plain(origins.get(page))
            name = page_name(page)
            found.append(AgentPlan(name, session, plan.plan, plan.plan_status, plan.progress, *lists, origin))
    return found


def open_plans(ns: Namespace, user: str, beside: int = 0) -> list[AgentPlan]:
    """The active plans of a user that no session goes on with, those of the newest session first.

    Plans of the session `beside`, by its key, are left out.
    """
    with ns.asking():
        rows: list[Any] = ns.views.execute(_SESSIONS, (user,)).fetchall()
        plans = [
            (key, plan)
            for key, name in rows
            for plan in reversed(plans_at(ns.log, Branch(ns.views, key).alone(), name, NEVER))
        ]
    origins = [parse(plan.continues) for _, plan in plans if plan.continues is not None]
    taken = {(origin.session, origin.page) for origin in origins}
    return [
        plan
        for key, plan in plans
        if plan.status == Standing.ACTIVE.word and key != beside and (plan.session, plan.page) not in taken
    ]


_SESSIONS = "SELECT session, name FROM sessions WHERE user = ? AND hidden = 0 ORDER BY session DESC"
_LABELS = "SELECT page, labels FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"
