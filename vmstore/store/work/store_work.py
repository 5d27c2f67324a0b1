"""The work of agents across the sessions of a store, of one user or of all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from vmstore.namespace.namespace import Namespace
from vmstore.store.host import StoreHost
from vmstore.store.work import lessons
from vmstore.store.work.calls import UnsaidBefore, guard_info, past_calls, user_sessions, watched
from vmstore.store.work.lessons import WorkHost, guards_of, skill_info, skills_of
from vmstore.store.work.measures import measured
from vmstore.store.work.observations import SESSIONS_MAX, WorkSearch, found
from vmstore.store.work.results import GuardInfo, Lessons, SkillInfo, WorkMeasures
from vmstore.store.work.session_work import counted, usable
from vmstore.store.work.tasks import AgentTask, tasks_of
from vmstore.work.past_call import PastCall
from vmstore.work.skill import SUCCESSES_MIN, skills
from vmstore.work.watch import Alarm, CallWatch
from vmstore.workers.choice import Choice
from vmstore.workers.executor import Progress

if TYPE_CHECKING:
    from vmstore.store.work.vbrief import VBriefTools

HITS, HITS_OF_ALL = (
    60,
    1_000,
)  # pages of a search, of which each session has its best; more where most may be of other users


class StoreWork:
    """The work of agents across sessions: `store.work`. Of a user what their sessions hold, and of nobody else."""

    def __init__(self, store: StoreHost) -> None:
        self._store = store
        self._ns: Namespace = store._ns
        self._read: dict[str, list[PastCall]] = {}  # the calls of sessions that workers have read

    def read_by(
        self, workers: Choice = None, *, results: Path | None = None, progress: Progress | None = None
    ) -> StoreWork:
        """The same with the calls of all sessions read at once, by a number of processes or a Ray cluster.

        `workers` are a number, `ray` or `ray://host:port`, by default one process a core. What is in a `results` file
        is not read again, so that a run that was killed goes on. What is asked of it is of the moment it was read.
        """
        from vmstore.store.work.read_calls import ReadSession, read_calls

        found = StoreWork(self._store)
        ns = self._ns
        sessions = [ReadSession(info.session, info.position) for info in self._store.sessions()]
        if ns.place is None or ns.views_folder is None:  # nobody else can read it
            found._read = {name: past_calls(self._session(name)) for name, _ in sessions}
        else:
            found._read = read_calls(ns, sessions, workers=workers, results=results, progress=progress)
        return found

    def alarms(self, *, user: str | None = None, together: bool = False) -> list[GuardInfo]:
        """The alarms of a user's calls, one session after another; without `user` those of all users.

        The calls of one user count together, those of nobody by their session; with `together` all do, for a store
        that holds the runs of one agent.
        """
        groups = self._groups(user, together)
        return [guard_info(alarm.call.session, alarm) for group in groups for alarm in self._alarms(self._calls(group))]

    def guards(self, *, user: str | None = None) -> list[GuardInfo]:
        """The guards that are logged, of a user's sessions or of all."""
        return guards_of(self._ns, None, user)

    def learn(self, *, user: str | None = None, together: bool = False) -> Lessons:
        """Writes what calls teach into the sessions that they are of: guards with warnings, skills with pages.

        Of a user all sessions count together: a third failure in a third session is one. Without `user` the sessions
        of each user, and each session of none, are gone through so, or all as one with `together`. Said again it
        writes what is new since.
        """
        guards: list[GuardInfo] = []
        promoted: list[SkillInfo] = []
        for group in self._groups(user, together):
            calls = self._calls(group)
            by_session: dict[str, list[Alarm]] = {}
            for alarm in self._alarms(calls):
                by_session.setdefault(alarm.call.session, []).append(alarm)
            for name, alarms in by_session.items():
                guards += lessons.warn(self._session(name), alarms)
            for skill in skills(calls):
                promoted += lessons.promote(self._session(skill.calls[-1].session), [skill])
        return Lessons(guards, promoted)

    def skills(self, tools: Iterable[str] | None = None, *, user: str | None = None) -> list[SkillInfo]:
        """The skills that are logged of a user's sessions, or of all; with `tools` those that need no other tool."""
        found = skills_of(self._ns, None, user)
        return found if tools is None else usable(found, tools)

    def found_skills(
        self, *, user: str | None = None, least: int = SUCCESSES_MIN, together: bool = False
    ) -> list[SkillInfo]:
        """The sequences of tools that succeeded `least` times or more; nothing is written."""
        least = counted(least)
        return [
            skill_info(skill.calls[-1].session, skill)
            for group in self._groups(user, together)
            for skill in skills(self._calls(group), least)
        ]

    def measures(self, *, user: str | None = None) -> WorkMeasures:
        """Measures of the loop so far: failures repeated after a warning, and sequences that became skills."""
        calls = {name: past_calls(self._session(name)) for group in self._groups(user) for name in group}
        return measured(calls, self.guards(user=user), len(self.skills(user=user)))

    def search(
        self, query: str, *, token_budget: int = 2_000, optimize_for: str = "relevance", user: str | None = None
    ) -> WorkSearch:
        """The sessions that answer a query, in steps with their costs, and which to load within a budget.

        `optimize_for` relevance takes what is worth most a token, coverage the first step of every session first.
        """
        own = None if user is None else {name for _, name in user_sessions(self._ns, user)}
        best: dict[str, float] = {}
        for hit in self._store.search(query, limit=HITS if own is None else HITS_OF_ALL):
            if own is None or hit.session in own:
                best.setdefault(hit.session, hit.score)
        top = max(best.values(), default=1.0) or 1.0
        ranked = [(self._session(name), score / top) for name, score in list(best.items())[:SESSIONS_MAX]]
        return found(ranked, token_budget, optimize_for)

    def tasks(self, *, user: str | None = None, status: str | None = None) -> list[AgentTask]:
        """The tasks of a user's sessions, or of all, by session, oldest first; with `status` those that stand so."""
        return tasks_of(self._ns, user, status)

    @property
    def vbrief(self) -> VBriefTools:
        """The four tools of the vBRIEF format, and the learnings of a user's sessions."""
        from vmstore.store.work.vbrief import VBriefTools

        return VBriefTools(self._store, self.search)

    def _groups(self, user: str | None, together: bool = False) -> list[list[str]]:
        """The names of sessions whose calls count together: those of a user, else one of nobody by itself."""
        if user is not None:
            return [[name for _, name in user_sessions(self._ns, user)]]
        groups: dict[str, list[str]] = {}
        ordered = sorted(self._store.sessions(), key=lambda info: (info.opened_at, info.session))
        if together:
            return [[info.session for info in ordered]]
        for info in ordered:
            groups.setdefault(f"user {info.user}" if info.user else f"session {info.session}", []).append(info.session)
        return list(groups.values())

    def _alarms(self, calls: Iterable[PastCall]) -> list[Alarm]:
        """The alarms of calls that count together, in their order."""
        return watched(
            calls, CallWatch(None, lambda call, words: UnsaidBefore(self._session(call.session))(call, words))
        )

    def _calls(self, group: Iterable[str]) -> list[PastCall]:
        return [call for name in group for call in self._calls_of(name)]

    def _calls_of(self, name: str) -> list[PastCall]:
        return self._read[name] if name in self._read else past_calls(self._session(name))

    def _session(self, name: str) -> WorkHost:
        session: WorkHost = self._store.session(name)
        return session
