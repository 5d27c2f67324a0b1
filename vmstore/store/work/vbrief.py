"""Sessions as vBRIEF documents, and the four tools of that format as functions: `store.work.vbrief`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from msgspec import to_builtins

from vmstore.core.address import page_name
from vmstore.core.page import Standing
from vmstore.errors import InputError, UnknownError
from vmstore.store.host import SessionHost, StoreHost
from vmstore.store.work.calls import past_calls, user_sessions, watched
from vmstore.store.work.observations import WorkSearch, disclosed, observations, title_of, todos_of
from vmstore.work.disclosure import loading_summary
from vmstore.work.observation import Observation
from vmstore.work.vbrief import (
    PlaybookEntry,
    SessionFacts,
    SessionStatus,
    VBriefDocument,
    document,
    learnings,
    merged,
    shortened,
)
from vmstore.work.watch import CallWatch

AGENT = "agent"
TIER_MAX = 4


def brief(session: SessionHost) -> VBriefDocument:
    """The document of a session as it stands."""
    seen = observations(session)
    return document(_facts(session, seen), seen, disclosed(session, None, seen))


def _facts(session: SessionHost, seen: list[Observation]) -> SessionFacts:
    info = session.info()
    gotchas = [alarm for alarm in watched(past_calls(session), CallWatch(None, None)) if alarm.times > 1]
    return SessionFacts(
        session.name,
        info.began_at,
        None if info.status == Standing.ACTIVE.word else info.last_at,
        info.agent or AGENT,
        title_of(session),
        cast(SessionStatus, info.status),
        todos_of(seen),
        [(alarm.text, [page_name(call.page) for call in alarm.calls]) for alarm in gotchas],
    )


class VBriefTools:
    """The tools of the format, their arguments called as there: each gives an object of JSON."""

    def __init__(self, store: StoreHost, search: Any) -> None:
        self._store = store
        self._search = search

    def vbrief_memory_search(
        self, query: str, tokenBudget: int = 2_000, optimizeFor: str = "relevance"
    ) -> dict[str, Any]:
        """Sessions that answer a query, in tiers with their costs, and which to load within the budget."""
        found: WorkSearch = self._search(query, token_budget=tokenBudget, optimize_for=optimizeFor)
        answer: dict[str, Any] = to_builtins(found)
        for result in answer["results"]:
            result["memoryTiers"] = [{"tier": step.pop("step"), **step} for step in result.pop("steps")]
            result["recommendedTier"] = result.pop("recommendedStep")
        for load in answer["recommendedLoad"]:
            load["tiers"] = load.pop("steps")
        return answer

    def vbrief_load_session(self, sessionId: str, maxTier: int = 1, tokenBudget: int = 2_000) -> dict[str, Any]:
        """The tiers of a session up to one, as far as the budget goes, and what more would cost."""
        if type(maxTier) is not int or not 0 <= maxTier <= TIER_MAX:
            raise InputError(f"maxTier {maxTier!r:.40} is no tier; there are 0 to {TIER_MAX}")
        steps = disclosed(self._store.session(sessionId))
        loaded, spent = [], 0
        for step in steps:
            if step.step > maxTier or spent + step.token_cost > tokenBudget:
                break
            loaded.append(step)
            spent += step.token_cost
        last = loaded[-1].step if loaded else 0
        return {
            "sessionId": sessionId,
            "content": "\n".join(step.content for step in loaded),
            "loadedTiers": [step.step for step in loaded],
            "totalTokens": spent,
            "budgetRemaining": tokenBudget - spent,
            "summary": loading_summary(steps, last, tokenBudget),
        }

    def vbrief_expand_memory(self, contentRef: str) -> dict[str, Any]:
        """The whole of an observation by its reference, `sessions/NAME/PAGE`."""
        parts = contentRef.split("/") if isinstance(contentRef, str) else []
        if len(parts) < 3 or parts[0] != "sessions":
            raise InputError(f"{contentRef!r:.60} refers to nothing; a reference is like sessions/monday/p12")
        name, page = "/".join(parts[1:-1]), parts[-1]
        seen = observations(self._store.session(name))
        one = next((one for one in seen if page in (one.page, one.result)), None)
        if one is None:
            raise UnknownError(f"session {name!r} has no observation {page!r:.40}", code="no-page")
        return {"contentRef": contentRef, "content": one.text, "tokens": one.tokens, "originalObservation": one.page}

    def vbrief_compress_playbook(
        self,
        targetRatio: float = 0.1,
        categories: Sequence[str] | None = None,
        user: str | None = None,
    ) -> dict[str, Any]:
        """The learnings of a user's sessions, or of all, said once each and within a share of their tokens."""
        found = shortened(self.playbook(user), targetRatio, categories)
        before = sum(entry.compression_metadata.original_tokens for entry in found)
        after = sum(entry.compression_metadata.compressed_tokens for entry in found)
        return {"learnings": to_builtins(found), "originalTokens": before, "compressedTokens": after}

    def playbook(self, user: str | None = None) -> list[PlaybookEntry]:
        """The learnings of a user's sessions, or of all, those that say the same as one."""
        names = (
            [name for _, name in user_sessions(self._store._ns, user)]
            if user is not None
            else [info.session for info in self._store.sessions()]
        )
        found = []
        for name in names:
            session = self._store.session(name)
            seen = observations(session)
            found += [(name, entry) for entry in learnings(_facts(session, seen), seen)]
        return merged(found)
