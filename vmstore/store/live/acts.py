"""A session that acts: each call one durable commit, what happened and then the kernel's decisions.

And what somebody moves by hand in its prompt: pins, evictions, levels, marks, segments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from vmstore.capture.facts import FactAnswer
from vmstore.core.address import page_name
from vmstore.core.aliases import old_keywords_of_methods
from vmstore.core.clock import within
from vmstore.core.decision import Denial, Holder
from vmstore.core.mutation import Annotate, Cite, Evict, FaultDenied, FaultIn, Link, Recall
from vmstore.core.page import LinkKind, Role, Standing
from vmstore.engine.batch import Batch
from vmstore.errors import InputError, OvertakenError, UnknownError
from vmstore.facts.addition import Addition
from vmstore.live import compaction, extraction, page_moves
from vmstore.live.fact_pages import state
from vmstore.live.page_moves import PageAnswer
from vmstore.live.regeneration import Renewal, write
from vmstore.live.runtime import Act, Runtime
from vmstore.live.settings import chosen
from vmstore.live.snapshots.snapshot import Snapshot
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.results import FaultAnswer, SessionInfo
from vmstore.store.live.page_names import PageFinder, titled
from vmstore.store.reads.sent_request import stood
from vmstore.store.recall.assembly.message_values import valued
from vmstore.store.recall.fact_finder import find_facts
from vmstore.store.recall.fact_model import FactExtractor
from vmstore.store.recall.turns.turn_tags import tag_turns
from vmstore.store.session import Session
from vmstore.views.reads.spoken_turns import SpokenMessage


def faulted(act: Act, found: PageAnswer, asked: str) -> FaultAnswer:
    """The answer to a fault: what is shown, and what had to give way."""
    denied = [m for m in found.decided if isinstance(m, FaultDenied) and m.page == found.page]
    resident = act.state.here.get(found.page)
    content = b""
    if resident is not None:
        content = act.forms.of(resident.residence[1])
    evicted = [page_name(m.page) for m in found.decided if isinstance(m, Evict) and m.level is None]
    return FaultAnswer(
        page=page_name(found.page) if found.page else asked,
        number=found.page,
        granted=not denied and resident is not None,
        denied_because=Denial(denied[0].because).word if denied else None,
        level=found.level,
        tokens=resident.tokens if resident is not None else 0,
        content=content,
        came=any(isinstance(m, FaultIn) for m in found.decided),
        evicted=evicted,
    )


T = TypeVar("T")
RUNTIMES_MAX = 64  # live sessions at hand, those used last


@old_keywords_of_methods(at="at_us", latency="latency_us", valid_from="valid_from_us", valid_to="valid_to_us")
class PageActions(Session):
    """A session whose memory is managed, as far as pages are moved in it by hand."""

    def runtime(self) -> Runtime:
        """The runtime, shared by all handles on a session of one store; one that rested long is loaded again."""
        runtimes = self._ns.live
        runtime = runtimes.pop(self._key, None)
        if runtime is None:
            self._ns.follow()
            callbacks = self._ns.callbacks.get(self._key, ())
            folder = self._ns.snapshots
            snapshot = None if folder is None else Snapshot(folder, self._key)
            runtime = Runtime(self._ns.reader, self._lane(), *callbacks, snapshot=snapshot)
        runtimes[self._key] = runtime
        idle = (key for key, one in runtimes.items() if not one.in_block)
        if len(runtimes) > RUNTIMES_MAX and (key := next(idle, None)) is not None:
            del runtimes[key]
        return runtime

    def _act(self, do: Callable[[Act], T], at: int | None = None) -> T:
        """Does something as one commit; decided again where another process was first."""
        within("at", at)
        with self._ns.lock:
            engine = self._ns.engine  # refuses where the handle is for reading
            happened = engine.clock.now() if at is None else at
            runtime = self.runtime()

            def managed(act: Act) -> T:
                chosen(act.state)
                return do(act)

            return engine.retried(lambda: runtime.act(managed, happened, self._commit))

    def _commit(self, batch: Batch) -> None:
        self._ns.group_commit.commit(self.name, batch)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Writes what this thread does within at once: commits as without it, durable together when the block ends.

        A process that ends before loses all of it, and none of it is in the log half; what asks the log (calls,
        pages, search) does not see it before. An error that leaves the block does not undo what was done; where an
        act fails half-way, or another process writes to the session meanwhile, nothing of the block is written.
        """
        with self._ns.lock:
            self._ns.engine  # noqa: B018 - refuses where the handle is for reading
            runtime = self.runtime()
            runtime.begin()
        try:
            yield
        finally:
            with self._ns.lock:
                runtime.end(self._commit)

    # ---- what is held, moved and marked

    def pin(self, page: str | int, *, plan: bool = False, at_us: int | None = None) -> None:
        """Holds a page in the prompt, as the active `plan` or by hand; RefusedError where it cannot fit."""
        holder = Holder.PLAN if plan else Holder.HAND
        self._act(lambda act: page_moves.pin(act, self._number(act, page), holder), at_us)

    def unpin(self, page: str | int, *, at_us: int | None = None) -> None:
        """Unpins a page."""
        self._act(lambda act: page_moves.unpin(act, self._number(act, page)), at_us)

    def evict(self, page: str | int, *, at_us: int | None = None) -> None:
        """Takes a page out of the prompt; nothing of it is lost."""
        self._act(lambda act: page_moves.evict(act, self._number(act, page)), at_us)

    def compress(self, page: str | int, level: int, *, at_us: int | None = None) -> int:
        """Shows a page shorter; the level it is shown at, which is higher where it has no form at the one asked for."""
        return self._act(lambda act: page_moves.compress(act, self._number(act, page), level), at_us)

    def cite(self, page: str | int, *, at_us: int | None = None) -> None:
        """Says that the model's last message leans on a page."""

        def do(act: Act) -> None:
            answers = [
                message for message in act.spoken.messages.values() if message.role is Role.ASSISTANT and message.parts
            ]
            if not answers:
                raise InputError("the model has said nothing yet, so nothing of it cites a page")
            act.tell(Cite(self._number(act, page), answers[-1].parts[0]))

        self._act(do, at_us)

    def recall(self, page: str | int, *, corrected: bool = False, at_us: int | None = None) -> None:
        """Says that something was recalled from a page, and whether the user had to correct it."""
        self._act(lambda act: act.tell(Recall(self._number(act, page), int(corrected))), at_us)

    def mark(self, name: str, pages: Iterable[str | int] | None = None, *, at_us: int | None = None) -> None:
        """Names this moment, with the pages in the prompt or those chosen; `restore` comes back to it."""
        titled(name, needed=True)

        def do(act: Act) -> None:
            page_moves.mark(act, name, None if pages is None else [self._number(act, page) for page in pages])

        self._act(do, at_us)

    def restore(self, name: str, *, at_us: int | None = None) -> list[FaultAnswer]:
        """Sets the prompt back to the pages of a mark; what came of each page that was not there."""

        def do(act: Act) -> list[FaultAnswer]:
            if name not in act.spoken.marks:
                raise UnknownError(f"there is no mark {name!r}; {Namespace.nearest(name, list(act.spoken.marks))}")
            return [faulted(act, fault, "") for fault in page_moves.restore(act, name)]

        return self._act(do, at_us)

    def close(self, status: str = "completed", reason: str | None = None, *, at_us: int | None = None) -> SessionInfo:
        """Says that the session ended, `completed` or `abandoned`, and why; how it stands then.

        Where a model finds its facts, it is asked before how they hang together. With `learning` what its calls
        have shown becomes skills. With compaction the segment under
        way ends, too, and what was said is summed up but for the last turns. A later message takes it up again.
        """
        given = self._ns.fact_models.get(self._key)
        if given is not None:
            FactExtractor(*given).consolidate(self)
        with self._ns.lock:
            self._ends()
            super().close(status, reason, at_us=at_us)
            self._act(compaction.close, at_us)
            return self.info()

    def _ends(self) -> None:
        """Does what is to be done before the session is closed."""

    def compact(self, *, at_us: int | None = None) -> list[str]:
        """Sums up all that was said but for the last turns, a segment at a time; the summaries, oldest first."""
        return self._names(self._act(lambda act: compaction.compact(act, asked=True), at_us))

    def segment(self, title: str = "", *, summary: str | None = None, at_us: int | None = None) -> str:
        """Ends a segment: a summary page, written or made of its key points, stands for what was said in it."""
        if not isinstance(title, str) or not isinstance(summary, str | None):
            raise InputError(f"a segment's title and summary are texts, not {title!r:.40} and {summary!r:.40}")

        def do(act: Act) -> int:
            text = summary if summary is not None else extraction.summed_up(act, title)
            return page_moves.segment(act, title, text.encode("utf-8", "backslashreplace"))

        return self._name(self._act(do, at_us))

    def _noticed(self, pages: list[int]) -> list[int]:
        """The pages of a message, once the facts in it are stated where the settings say so; in a turn, at the next."""
        runtime = self.runtime()
        if runtime.state.settings is not None and runtime.state.settings.facts and not runtime.in_block:
            given, after = self._ns.fact_models.get(self._key), min(pages, default=0) - 1
            if given is None:
                find_facts(self, after=after)
            else:
                FactExtractor(*given).signals(self, after)
        return pages

    def _tagged(self) -> None:
        """Tags the turns that were answered and have no tags, where somebody is to be asked for them.

        The words decide where nobody is; within a turn's block it waits for the next answer.
        """
        runtime = self.runtime()
        settings = runtime.state.settings
        if settings is not None and settings.tags == "asked" and runtime.spoken.final and not runtime.in_block:
            tag_turns(self, self._ns.taggers.get(self._key))

    def _add_facts(
        self, added: Sequence[Addition], at: int | None = None, answer: FactAnswer | None = None
    ) -> list[int]:
        """Writes facts, and what a model answered from which they came; their pages."""
        return self._act(lambda act: state(act, added, answer), at)

    def _renew(self, position: int, marks: Iterable[tuple[int, bytes]], renewals: Iterable[Renewal]) -> list[int]:
        """Marks pages superseded, each with its anchors, and writes rebuilt ones in their place; the new pages.

        OvertakenError where the session stands no longer at `position`, where that was decided.
        """

        def do(act: Act) -> list[int]:
            if act.state.position != position:
                raise OvertakenError(f"session {self.name!r} moved on while it was looked at")
            for page, anchors in marks:
                act.tell(Annotate(page, status=Standing.SUPERSEDED, anchors=act.cell(anchors)))
            made = []
            for renewal in renewals:
                made.append(write(act, renewal))
                act.tell(Link(made[-1], renewal.replaces, LinkKind.SUPERSEDES))
            return made

        return self._act(do)

    # ---- names

    def _spoken_values(self, spoken: Sequence[SpokenMessage], position: int) -> tuple[str, dict[int, list[Any]]]:
        """The values of some messages in the session's shape, as a call would be sent them, by message."""
        with self._ns.lock:
            runtime = self.runtime()
            runtime.current()
            if runtime.state.position == position:
                return valued(runtime, spoken)
        with stood(self._ns, self._lane(), position) as past:
            return valued(past, spoken)

    def _zone(self) -> str:
        return self.look(lambda runtime: chosen(runtime.state).zone)

    def look(self, see: Callable[[Runtime], T]) -> T:
        """Sees the session as it stands at the log's end; nothing is logged."""
        with self._ns.lock:
            runtime = self.runtime()
            runtime.current()
            return see(runtime)

    def _names(self, pages: Iterable[int]) -> list[str]:
        return [page_name(number) for number in pages]

    def _name(self, page: int) -> str:
        return page_name(page)

    def _number(self, act: Act, page: str | int) -> int:
        return self._called.number(act, page)

    @property
    def _called(self) -> PageFinder:
        return PageFinder(self._ns.name, self.name)
