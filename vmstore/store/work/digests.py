"""Digests of a session's tasks, cards of what its user's sessions taught, and both packed into a budget."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from vmstore.core.address import Address, page_position, parse
from vmstore.core.asof import Moment, When
from vmstore.errors import InputError
from vmstore.search.passages import texts_of
from vmstore.store.host import SessionHost
from vmstore.store.work.lessons import guards_of, skills_of
from vmstore.store.work.plans import AgentPlan, Plans, content_of
from vmstore.views.branch import NEVER, Branch
from vmstore.work import digest as digests
from vmstore.work.digest import Expansion, PackedDigests, TaskDigest


class Digests:
    """The digests of a session: `session.work.digests`. Each is made as it is asked for; nothing is written."""

    def __init__(self, session: SessionHost) -> None:
        self._session = session

    def all(self, at: When | None = None, **moment: Unpack[Moment]) -> list[TaskDigest]:
        """The digest of each task, which is a plan, oldest first, now or at a moment."""
        return [digests.digest(plan.page, content_of(plan)) for plan in Plans(self._session).all(at, **moment)]

    def get(self, task: str | int, at: When | None = None, **moment: Unpack[Moment]) -> TaskDigest:
        """The digest of a task by its page or its title."""
        plan = Plans(self._session).get(task, at, **moment)
        return digests.digest(plan.page, content_of(plan))

    def system(self) -> str:
        """A line on what the memory holds."""
        info = self._session.info()
        of = f" of {info.user}" if info.user else ""
        tasks = ", ".join(f"{plan.title} ({plan.page})" for plan in Plans(self._session).all(status="active")[-3:])
        return digests.card(
            f"Session {info.session}{of}: {_counted(info.pages, 'page')}, {_counted(info.turns, 'turn')}."
            + (f" Active tasks: {tasks}." if tasks else "")
        )

    def cards(self, limit: int = digests.CARDS) -> list[str]:
        """Lessons of the sessions of the session's user, of its own alone where it has none, the surest first."""
        if type(limit) is not int or limit < 0:
            raise InputError(f"limit is {limit!r:.40}; give a number of cards from 0 up", code="not-a-limit")
        ns, user = self._session._ns, self._session.info().user
        scope = None if user is not None else self._session.name
        found = [(min(0.9, 0.5 + 0.1 * guard.count), guard.text) for guard in guards_of(ns, scope, user)]
        for skill in skills_of(ns, scope, user):
            text = f"{' → '.join(skill.tools)} succeeded {skill.successes} of {skill.tries} times."
            found.append((skill.importance, text))
        ordered = sorted(found, key=lambda one: -one[0])
        return list(dict.fromkeys(digests.card(text) for _, text in ordered if text))[:limit]

    def expand(self, uri: str, token_budget: int = 2_000) -> str:
        """Opens `expand://task/p7?depth=2`: 0 a sentence, 1 a paragraph, 2 the steps, 3 the decisions in their words.

        Each depth is checked against the budget; InputError names the one that has no room.
        """
        page, depth = digests.reference(uri)
        return digests.opened(self._shards(Plans(self._session).get(page)), depth, _budget(token_budget))

    def pack(
        self,
        token_budget: int,
        *,
        task: str | int | None = None,
        cards: int = digests.CARDS,
        expand: Iterable[str] = (),
    ) -> PackedDigests:
        """The digests of the system and a task, cards, and expansions in the order asked for, within a budget.

        Without `task` the newest active one. What has no room is named in `dropped`: expansions from the last, each
        opened less far first, then cards from the last.
        """
        plans = Plans(self._session)
        if task is None:
            active = plans.all(status="active")
            about = digests.digest(active[-1].page, content_of(active[-1])) if active else None
        else:
            about = self.get(task)
        asked = [digests.reference(uri) for uri in ([expand] if isinstance(expand, str) else expand)]
        expansions = [Expansion(page, self._shards(plans.get(page))[: depth + 1]) for page, depth in asked]
        return digests.pack(self.system(), about, self.cards(cards), expansions, _budget(token_budget))

    def _shards(self, plan: AgentPlan) -> list[str]:
        return digests.shards(content_of(plan), [self._decision(plan.session, each) for each in plan.decisions])

    def _decision(self, session: str, address: str) -> str:
        """The words of a decision; those of one that was erased are gone."""
        ns, found = self._session._ns, parse(address)
        key = ns.key(found.session or session) if isinstance(found, Address) else None
        page = page_position(found.page or "") if isinstance(found, Address) else None
        if key is None or page is None:
            return f"{address}, which is no longer there"
        with ns.asking():
            lane = Branch(ns.views, key).alone()
            texts = texts_of(ns.log, lane, {key: NEVER}, [page])
            return next((text for _, text in texts), f"{address}, which is no longer there")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _budget(tokens: int) -> int:
    if type(tokens) is not int or tokens < 1:
        raise InputError(f"the budget is {tokens!r:.40}; give a number of tokens from 1 up", code="not-a-limit")
    return tokens
