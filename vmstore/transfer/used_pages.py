"""Detects the pages that calls of a recorded session used, and the topics of its pages, and logs both.

A call used a page where the answer to it, or what a person says before it, quotes, names or repeats the page. It
costs what a second pass over the session does, so it is done where somebody asks. What is logged already is not
logged again, so a session that grew gets what is new.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from vmstore.core import mutation as m
from vmstore.core.erasure import ErasedContent
from vmstore.core.page import Modality, Role
from vmstore.core.tags import TOPIC
from vmstore.live.messages import TOPIC_BYTES_MAX
from vmstore.live.redrive import NeededPages
from vmstore.live.session_log import SessionLog
from vmstore.namespace.namespace import Namespace
from vmstore.views.branch import Branch
from vmstore.vm.recall.topics import topics

COMMIT_MAX = 2_000  # mutations
_SAID = (Role.USER, Role.ASSISTANT)


def observe(ns: Namespace, session: int) -> int:
    """Logs the uses of a session's own calls and the topics of its own pages that are not logged yet; how many."""

    def write() -> int:
        """Logs what is lacking as of now; how many."""
        ns.follow()
        lane = Branch(ns.views, session)
        batch = ns.engine.batch(session)
        at = ns.clock.now()
        count = 0
        for page, about in _topics(ns, lane):
            tags = batch.cell(msgspec.json.encode([TOPIC + topic for topic in about]))
            batch.add(m.Annotate(page, tags=tags))
            count += 1
            if not count % COMMIT_MAX:
                batch.end(at)
        for reference in _uses(ns, lane):
            batch.add(reference)
            count += 1
            if not count % COMMIT_MAX:
                batch.end(at)
        if count:
            batch.commit(at, dense=True)
        return count

    found = ns.retried(write)
    ns.follow()
    return found


def _uses(ns: Namespace, lane: Branch) -> Iterator[m.Reference]:
    """The uses of the calls the session made itself, in order."""
    before: int = ns.views.execute("SELECT call_before FROM sessions WHERE session = ?", (lane.session,)).get
    logged = {
        (mutation.call, mutation.page)
        for commit in SessionLog(ns.log, lane).after(0)
        for _, mutation in commit.mutations
        if isinstance(mutation, m.Reference)
    }
    last = ns.session_info(lane.session).calls
    for call, pages in sorted(NeededPages(SessionLog(ns.log, lane)).by_call.items()):
        for page, use in sorted(pages.items()):
            if before < call <= last and (call, page) not in logged:
                yield m.Reference(page, use, call)


def _topics(ns: Namespace, lane: Branch) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The topics of what was said in the session itself, of pages that have none."""
    facts = SessionLog(ns.log, lane)
    known = {page for (page,) in ns.views.execute(_TAGGED, (lane.session, f"{TOPIC}%"))}
    for commit in facts.after(0):
        for position, made in commit.mutations:
            if not isinstance(made, m.Create) or made.content is None or lane.owner(position) != lane.session:
                continue
            if made.message and made.role in _SAID and made.modality == Modality.TEXT and position not in known:
                content = facts.cell(position, made.content)
                about = (
                    ()
                    if isinstance(content, ErasedContent)
                    else topics(content[:TOPIC_BYTES_MAX].decode("utf-8", "replace"))
                )
                if about:
                    yield position, about


_TAGGED = "SELECT DISTINCT page FROM tags WHERE session = ? AND tag LIKE ?"
