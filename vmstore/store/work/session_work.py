"""The work of one session's agent: how its tools ran, what it is warned of, what it learned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from vmstore.core.address import page_name
from vmstore.core.asof import Head, Moment, When, one_moment
from vmstore.core.mutation import ToolRun
from vmstore.core.text.skeleton import dumps
from vmstore.core.text.tool_outcome import ToolOutcome
from vmstore.errors import InputError, UnknownError
from vmstore.store.recall.fact_reads import engine_of
from vmstore.store.recall.pen import Pen, write
from vmstore.store.work import lessons
from vmstore.store.work.calls import UnsaidBefore, guard_info, past_calls, room_of, watched
from vmstore.store.work.hand_off import HandOff, hand_off
from vmstore.store.work.lessons import WorkHost, guards_of, skill_info, skills_of
from vmstore.store.work.measures import measured
from vmstore.store.work.observations import ObservationInfo, check_share, disclosed, info_of, observations
from vmstore.store.work.plans import Plans
from vmstore.store.work.results import GuardInfo, Lessons, SkillInfo, WorkMeasures
from vmstore.views.reads.resolve_asof import basis
from vmstore.work.cost import cheapest, need
from vmstore.work.disclosure import DisclosureStep
from vmstore.work.failure import avoidance, same_failures
from vmstore.work.observation import RATIO
from vmstore.work.past_call import PastCall
from vmstore.work.skill import commonly_read, skills
from vmstore.work.watch import FAILURES_MIN, KEPT_MAX, CallWatch

if TYPE_CHECKING:
    from vmstore.store.work.artifacts import Artifacts
    from vmstore.store.work.atoms import Atoms
    from vmstore.store.work.digests import Digests
    from vmstore.store.work.forms import Forms
    from vmstore.work.vbrief import VBriefDocument

ERROR_BYTES_MAX = 4 << 10
WARNINGS_MAX = lessons.WARNINGS_MAX
_TOKENS = "TOOLS tool, avg(tokens) AS tokens BY tool WHERE status = ok"


class SessionWork:
    """The work of a session's agent: `session.work`."""

    def __init__(self, session: WorkHost) -> None:
        self._session = session

    @property
    def plans(self) -> Plans:
        """Plans, which stay in the prompt while they are active and go on in the user's next session."""
        return Plans(self._session)

    @property
    def digests(self) -> Digests:
        """Digests of tasks, cards of what was learned, and both packed into a budget."""
        from vmstore.store.work.digests import Digests

        return Digests(self._session)

    @property
    def atoms(self) -> Atoms:
        """Pages that say one thing of the work: facts, decisions, constraints, questions, insights."""
        from vmstore.store.work.atoms import Atoms

        return Atoms(self._session)

    @property
    def artifacts(self) -> Artifacts:
        """Files of the session's project, which a prompt holds where somebody approved them."""
        from vmstore.store.work.artifacts import Artifacts

        return Artifacts(self._session)

    @property
    def forms(self) -> Forms:
        """Shorter forms of observations: of several together, and as a model writes them."""
        from vmstore.store.work.forms import Forms

        return Forms(self._session)

    # ---- what was done

    def observations(
        self, at: When | None = None, *, target_ratio: float = RATIO, **moment: Unpack[Moment]
    ) -> list[ObservationInfo]:
        """The calls of the session with their answers, each with a shorter form of `target_ratio` of its tokens.

        The whole of one is the content of its `page` and its `result`.
        """
        check_share(target_ratio)
        return [info_of(one, target_ratio) for one in observations(self._session, one_moment(at, moment))]

    def steps(self, at: When | None = None, **moment: Unpack[Moment]) -> list[DisclosureStep]:
        """The session in five steps, 20 to 2,000 tokens, each with what it costs: a sentence first, the whole last."""
        return disclosed(self._session, one_moment(at, moment))

    def brief(self) -> VBriefDocument:
        """The session as a vBRIEF document: its steps, todos, learnings, and what shorter forms save."""
        from vmstore.store.work.vbrief import brief

        return brief(self._session)

    def hand_off(self, model: str, *, at_us: int | None = None, **settings: Any) -> HandOff:
        """Hands the memory to another model, with the window and levels that it is given now or was given before.

        `settings` are `window_tokens_max`, `l0_tokens_max`, `compress_level`, `rules`, `paging` and `recall_tools`.
        What changed is logged, and the answer says what the memory offers the new model.
        """
        return hand_off(self._session, model, settings, at_us)

    # ---- how tools ran

    def ran(
        self,
        call: str | int,
        *,
        outcome: str = "ok",
        result: str | int | None = None,
        duration_ms: float | None = None,
        error: str | None = None,
        reasoning: str | int | None = None,
        pages_read: Iterable[str | int] = (),
        pages_created: Iterable[str | int] = (),
        pages_modified: Iterable[str | int] = (),
        tags: Iterable[str] = (),
        at_us: int | None = None,
    ) -> None:
        """Logs how the tool of a call ran, beside what its pages say; said again, the last holds.

        `call` is the page that calls it. Where a host runs the tools itself this is its door; the tools of
        a live session's `run` are logged by themselves.
        """
        ended = ToolOutcome.of(outcome) if isinstance(outcome, str) else None
        if ended is None:
            raise UnknownError(f"{outcome!r:.40} is no outcome of a tool; it is ok or error", code="no-outcome")
        if duration_ms is not None and (
            isinstance(duration_ms, bool) or not isinstance(duration_ms, int | float) or not 0 <= duration_ms < 1e12
        ):
            raise InputError(f"duration_ms is {duration_ms!r:.40}; give milliseconds from 0 up")
        effects = [self._numbers(pages) for pages in (pages_read, pages_created, pages_modified)]
        (page,) = self._numbers([call])
        answer, why = (self._numbers([one])[0] if one is not None else 0 for one in (result, reasoning))
        said, given = None if error is None else shortened(error), list(tags)

        def do(pen: Pen) -> None:
            """Adds the mutation."""
            read, created, modified = map(tuple, effects)
            pen.add(
                ToolRun(
                    page,
                    int(ended),
                    answer,
                    None if duration_ms is None else round(duration_ms * 1_000),
                    None if said is None else pen.cell(said),
                    why,
                    read,
                    created,
                    modified,
                    pen.cell(dumps(given)) if given else None,
                )
            )

        write(self._session, do, at_us)

    def _numbers(self, pages: Iterable[str | int]) -> list[int]:
        listed = [pages] if isinstance(pages, str | int) else list(pages)
        with self._session._ns.asking():
            lane = self._session._lane()
            return [self._session._resolve(lane, page, Head())[0] for page in listed]

    # ---- what guards say

    def alarms(self, at: When | None = None, **moment: Unpack[Moment]) -> list[GuardInfo]:
        """The alarms that the session's calls raise up to a moment; nothing is written.

        They speak at the third failure of a tool for the same reason, at the third call that gives the same answer
        again, of a failed call that names what nothing before it says, and, where the session has a budget, once
        what tools gave in a turn is more than its prompt has room for.
        """
        calls = past_calls(self._session, one_moment(at, moment))
        return [guard_info(self._session.name, alarm) for alarm in watched(calls, self._watch())]

    def guards(self, at: When | None = None, **moment: Unpack[Moment]) -> list[GuardInfo]:
        """The guards that are logged, as GUARDS tells them."""
        when = one_moment(at, moment)
        position = "" if when == Head() else f"AS OF POSITION {self._position(when)}"
        return guards_of(self._session._ns, self._session.name, moment=position)

    def _position(self, when: Any) -> int:
        with self._session._ns.asking():
            return basis(self._session._lane(), when).position

    def avoid(self, tool: str | None = None) -> list[str]:
        """Warnings of what failed three times or more, of a tool or of any: three at most, the newest first.

        The last 200 failures are looked at.
        """
        failures = [call for call in past_calls(self._session) if call.failed and tool in (None, call.tool)]
        failures = failures[-KEPT_MAX:]
        warnings: dict[str, str] = {}
        for end in range(len(failures), 0, -1):
            same = same_failures(failures[:end])
            if len(same) >= FAILURES_MIN:
                warnings.setdefault(_key(same), avoidance(same))
            if len(warnings) == WARNINGS_MAX:
                break
        return list(warnings.values())

    def _watch(self) -> CallWatch:
        return CallWatch(room_of(self._session), UnsaidBefore(self._session))

    # ---- what is learned

    def learn(self, *, at_us: int | None = None) -> Lessons:
        """Writes what the session's calls teach: a guard and its warning for each alarm, a page for each skill.

        Said again it writes what is new since. A live session whose setting `learning` is on does it by itself:
        guards as tools answer, skills when it is closed.
        """
        calls = past_calls(self._session)
        guards = lessons.warn(self._session, watched(calls, self._watch()), at_us)
        return Lessons(guards, lessons.promote(self._session, skills(calls), at_us))

    def skills(
        self, tools: Iterable[str] | None = None, at: When | None = None, **moment: Unpack[Moment]
    ) -> list[SkillInfo]:
        """The skills that are logged; with `tools` those that need no other tool."""
        when = one_moment(at, moment)
        position = "" if when == Head() else f"AS OF POSITION {self._position(when)}"
        found = skills_of(self._session._ns, self._session.name, moment=position)
        return found if tools is None else usable(found, tools)

    def found_skills(self, *, least: int = 5) -> list[SkillInfo]:
        """The sequences of tools that succeeded `least` times or more in the session; nothing is written."""
        return [skill_info(self._session.name, skill) for skill in skills(past_calls(self._session), counted(least))]

    def measures(self) -> WorkMeasures:
        """Measures of the loop so far: failures repeated after a warning, and sequences that became skills."""
        name = self._session.name
        return measured({name: past_calls(self._session)}, self.guards(), len(self.skills()))

    # ---- before a tool runs

    def suggest_pages(self, tool: str, limit: int = 5) -> list[str]:
        """The pages that most successful calls of a tool have read, by name, the most frequent first."""
        calls = [call for call in past_calls(self._session) if call.tool == tool]
        return list(commonly_read(calls, limit))

    def prepare(self, tool: str) -> list[str]:
        """Brings the pages into the prompt that a tool reads most of the time; those that are there then.

        Of a recorded session nothing is in a prompt, so it is refused.
        """
        fault = getattr(self._session, "page_fault", None)
        if fault is None:
            raise InputError(
                f"session {self._session.name!r} was recorded and has no prompt to prepare; `suggest_pages` names them",
                code="no-budget",
            )
        wanted = [page for name in self.suggest_pages(tool) for page in self._named(name)]
        answers = [fault(page, 0, reason="speculative") for page in dict.fromkeys(wanted)]
        return [answer.page for answer in answers if answer.granted]

    def _named(self, name: str) -> list[str]:
        """The pages of a name, or of a pattern with `*`: the last three."""
        if "*" not in name:
            return [page_name(number) for number in self._numbers([name])]
        head, _, tail = name.partition("*")
        rows: Any = engine_of(self._session._ns).ask(
            "PAGES page, hint WHERE hint IS NOT NULL", session=self._session.name, params={}
        )
        found = [page for page, hint in rows if hint.startswith(head) and hint.endswith(tail)]
        return found[-3:]

    def cheapest(self, needs: Mapping[str, str], room: int | None = None) -> list[str]:
        """Tools by what they declare to need, like '10K tokens' or 'creates large pages', the best choice first.

        What their answers took so far counts where that is more. Those that do not fit in the `room`, by default what
        the prompt has left, come last.
        """
        declared = {tool: need(text) for tool, text in needs.items()}
        rows: Any = engine_of(self._session._ns).ask(_TOKENS, session=self._session.name, params={})
        used = {tool: tokens or 0.0 for tool, tokens in rows}
        return cheapest(declared, self._left() if room is None else room, used)

    def _left(self) -> int:
        look = getattr(self._session, "look", None)
        if look is None:
            raise InputError(
                "a recorded session has no prompt; say how many tokens there is room for", code="no-budget"
            )
        left: int = look(lambda runtime: max(0, runtime.state.room - runtime.state.used))
        return left


def usable(found: Iterable[SkillInfo], tools: Iterable[str]) -> list[SkillInfo]:
    """The skills that need no other tools, those with the most successes first."""
    known = frozenset(tools)
    return sorted((skill for skill in found if known.issuperset(skill.tools)), key=lambda skill: -skill.successes)


def counted(least: int) -> int:
    """A number of successes; InputError where it is none."""
    if type(least) is not int or least < 1:
        raise InputError(f"least is {least!r:.40}; give a number of successes from 1 up")
    return least


def shortened(error: str) -> bytes:
    """The error of a tool, as far as a cell of its kind may hold it."""
    if not isinstance(error, str):
        raise InputError(f"{error!r:.60} is no text that says why a tool failed", code="not-a-text")
    cut = error.encode("utf-8", "backslashreplace")[:ERROR_BYTES_MAX]
    return cut.decode("utf-8", "ignore").encode()


def _key(same: list[PastCall]) -> str:
    return f"{same[0].tool} {same[0].page}"
