"""A live session as its users hold it: what they tell it, what it decides of that, what it packs.

Each call is one durable commit: what happened, then the kernel's decisions with their reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Unpack

import msgspec

from vmstore.capture.record import measured
from vmstore.core.address import page_name
from vmstore.core.aliases import old_keywords_of_methods
from vmstore.core.asof import AsOf, Moment, When, one_moment
from vmstore.core.clock import within
from vmstore.core.decision import FaultReason, Recaller
from vmstore.core.draft import TokenUsage
from vmstore.core.mutation import Search
from vmstore.core.page import Level, LinkKind, PageType, Role
from vmstore.core.recalls import each_once
from vmstore.errors import InputError, RefusedError, UnknownError
from vmstore.live import compaction, extraction, messages, page_moves, prefetch
from vmstore.live.messages import LoggedMessage
from vmstore.live.pack import SHAPES, PackedRequest, pack
from vmstore.live.prompt_pages import PromptPages
from vmstore.live.rewind import rewind
from vmstore.live.runtime import Act, Runtime
from vmstore.live.settings import chosen, configure
from vmstore.namespace.namespace import session_name
from vmstore.namespace.results import FaultAnswer, Hits, RecordedCall, SessionInfo
from vmstore.providers import take_reply
from vmstore.providers.parts import media_of
from vmstore.providers.reply import COUNT_MAX
from vmstore.store.live.acts import PageActions, faulted
from vmstore.store.live.checkpoints import Checkpoint, checkpoint_at, target, then
from vmstore.store.live.child import begin_child, call_of, children_of, opening_of, result_of, taken_in
from vmstore.store.live.copy_page import here, remembered, take
from vmstore.store.live.driver import Streamed, calling, hearing, plain_tools, runnable, texts
from vmstore.store.live.edits import delete, flush, link, unlink, update
from vmstore.store.live.host_tool import HostTools
from vmstore.store.live.kept_values import keep, kept_at, kept_now, value_of
from vmstore.store.live.lesson import inject, promote, take_answers, take_tool
from vmstore.store.live.memory_tools import MemoryTools, ToolAnswer, unfit
from vmstore.store.live.options import LiveOptions
from vmstore.store.live.page_names import titled
from vmstore.store.live.prompt import Prompt
from vmstore.store.reads.annotations import share
from vmstore.store.reads.sent_request import stood
from vmstore.store.recall.searches import log_search
from vmstore.store.recorder import used
from vmstore.views.reads.resolve_asof import basis
from vmstore.vm.kernel.keywords import LiveSettings
from vmstore.vm.kernel.settings import KernelSettings, Shape
from vmstore.vm.kernel.window import chosen as sent
from vmstore.vm.metrics.report import Measures
from vmstore.vm.protocol.dialects.dialect import ToolCall
from vmstore.vm.protocol.functions import offered, schema_of
from vmstore.vm.protocol.loop import ROUNDS_MAX, Rounds, RunResult, rounds
from vmstore.vm.protocol.prompt_page import MEDIA
from vmstore.vm.protocol.select import Selection

ASKED_CHARS_MAX = 200  # of what no page is called


@old_keywords_of_methods(at="at_us", latency="latency_us", valid_from="valid_from_us", valid_to="valid_to_us")
class Live(PageActions):
    """A session with a budget: its memory is managed, and every decision can be asked for its reasons."""

    # ---- what happens

    def user(self, content: Any, *, at_us: int | None = None) -> list[str]:
        """A person says something: a text, or chat-completions content parts; the names of its pages.

        Before anything else what it speaks of is looked for: pages it may need come in, decisions
        it makes become claims.
        """
        brought = remembered(self, content) if self._looks_elsewhere() else []

        def do(act: Act) -> LoggedMessage:
            """Logs what the user says, and what it brings to mind."""
            spoke = messages.user(act, content)
            take(act, brought)
            extraction.notice(act, spoke)
            prefetch.prefetch(act, spoke)
            return spoke

        pages = self._noticed(self._act(do, at_us).pages)
        inject(self)
        return self._names(pages)

    def assistant(
        self, message: Any, *, tokens_in: int | None = None, tokens_cached: int | None = None,
        tokens_out: int | None = None, cost: float | None = None, at_us: int | None = None,
    ) -> list[str]:  # fmt: skip
        """The model answers the last call: a text, or a chat-completions message; the names of its pages.

        Citations in it (`[ref: p17]`) are logged, decisions become claims. Token counts are the
        provider's and correct the estimate; `cost` is in dollars.
        """
        for count in (tokens_in, tokens_cached, tokens_out):
            if count is not None and (type(count) is not int or not 0 <= count <= COUNT_MAX):
                raise InputError(f"{count!r:.40} is no number of tokens")
        usage = TokenUsage(tokens_in, tokens_cached, tokens_out, used(None, cost).cost)

        def do(act: Act) -> LoggedMessage:
            """Logs what the model says, and what is found in it."""
            sent = extraction.unanswered(act)
            spoke = messages.assistant(act, message, usage, counted=self._counted(act, usage))
            compaction.hear(act, [spoke], sent)
            return spoke

        pages = self._names(self._act(do, at_us).pages)
        self._tagged()
        return pages

    def record(
        self,
        request: dict[str, Any],
        response: Any = None,
        *,
        at_us: int | None = None,
        latency_us: int | None = None,
        cost: float | None = None,
        request_id: str | None = None,
    ) -> RecordedCall:
        """Takes in what came back for the prompt that was packed: the provider's response, as `Store.record` takes it.

        The prompt stands in the log already, so `request` is not looked at. What a tool of the
        provider's answered by itself is in its response.
        """
        if request_id is not None:
            raise InputError("a session that manages its memory takes each answer once; leave request_id out")
        return self._took(response, at=at_us, usage=used(latency_us, cost))

    def _took(
        self,
        response: Any,
        calls: Sequence[ToolCall] = (),
        *,
        at: int | None = None,
        usage: TokenUsage | None = None,
        check: Callable[[Act], None] | None = None,
    ) -> RecordedCall:
        """Takes in a response, a list of its stream's parts, or an exception; its calls have these ids.

        `check` may refuse it where the session stands otherwise than when the model was asked.
        """

        def do(act: Act) -> RecordedCall:
            """Logs the answer as the provider gave it."""
            if check is not None:
                check(act)
            reply = measured(take_reply(SHAPES[act.shape], response), usage or used(None, None))
            reply = messages.identified(reply, [call.id for call in calls])
            sent = extraction.unanswered(act)
            compaction.hear(act, messages.answered(act, reply, counted=self._counted(act, reply.usage)), sent)
            return RecordedCall(self.name, act.state.call, act.state.turn, act.state.position)

        call = self._act(do, at)
        self._tagged()
        return call

    def _counted(self, act: Act, usage: TokenUsage) -> int:
        """The estimate of the answered call, where the provider states its true size."""
        return act.state.sent_tokens if usage.tokens_in else 0

    def tool(self, call_id: str, content: Any, *, name: str | None = None, at_us: int | None = None) -> list[str]:
        """A tool answers the call of an id; the names of its pages. What is too large is shown shorter."""
        return self._names(take_tool(self, call_id, content, name, at_us))

    def _answered(self, results: Sequence[ToolAnswer]) -> None:
        """Takes in what several tools answer, as one commit: the kernel decides on all of it at once."""
        take_answers(self, results)

    def attach(
        self, data: bytes, mime: str, *, name: str | None = None, words: str | None = None, at_us: int | None = None
    ) -> str:
        """Takes a file in as a page, whole, and shows a shorter form of it in the prompt; the page's name.

        `words` say what a picture shows, or are what is spoken in sound or film.
        """
        if not isinstance(data, bytes) or not isinstance(mime, str) or not mime:
            raise InputError(f"a file is bytes and a content type like 'text/plain', not {data!r:.40} and {mime!r:.40}")
        titled(name)
        modality, known, mime_name = media_of(mime)
        if words is not None and (modality not in MEDIA or not isinstance(words, str) or not words.strip()):
            raise InputError(f"words tell of a picture, sound or film, and {words!r:.40} of {mime!r:.40} does not")

        def do(act: Act) -> int:
            """Logs the artifact as a page."""
            number = messages.page(
                act,
                PageType.ARTIFACT,
                data,
                role=Role.USER,
                name=name,
                modality=modality,
                mime=known,
                mime_name=mime_name,
            )
            page_moves.show_shorter(act, number, words or "")
            return number

        return self._name(self._act(do, at_us))

    def claim(
        self,
        text: str,
        *,
        name: str | None = None,
        sources: Iterable[str | int] = (),
        supersedes: str | int | None = None,
        importance: float = 0.95,
        at_us: int | None = None,
    ) -> str:
        """States a fact that is to last: a claim page, with where it comes from and what it replaces; its name."""
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"a claim says something in words, and {text!r:.40} does not")
        titled(name)
        listed = [sources] if isinstance(sources, str) else list(sources)

        def do(act: Act) -> int:
            """Logs the claim, and what it takes the place of."""
            links = [(int(LinkKind.DERIVES), self._number(act, source)) for source in listed]
            old = None if supersedes is None else self._number(act, supersedes)
            if old is not None and act.state.pages[old].type is not PageType.CLAIM:
                raise InputError(f"{page_name(old)} is no claim, so nothing can take its place; name a claim's page")
            return extraction.state(act, text, name, links, old, weight=share(importance))

        return self._name(self._act(do, at_us))

    # ---- what is asked

    def page_fault(
        self, page: str | int, level: int = 0, *, reason: str = "resolve_reference", by_model: bool = False,
        at_us: int | None = None,
    ) -> FaultAnswer:  # fmt: skip
        """Asks for a page at a level, 0 for its exact bytes; what came of it, with the reason where it was denied.

        A fault `by_model` counts against the turn's limits. A page nobody knows is logged as asked for,
        one of a region that may be read is copied in first.
        """
        why = FaultReason.of(reason) if isinstance(reason, str) else None
        if why is None:
            words = ", ".join(reason_known.word for reason_known in FaultReason)
            raise InputError(f"{reason!r:.60} is no reason for a fault; there are {words}", code="no-fault-reason")
        if isinstance(level, bool) or not isinstance(level, int) or level not in tuple(Level):
            raise InputError(
                f"there is no level {level!r}; levels are 0 full, 1 reduced, 2 abstract and 3 reference",
                code="no-level",
            )
        asked, page = str(page)[:ASKED_CHARS_MAX], here(self, page)

        def do(act: Act) -> FaultAnswer:
            """Brings the page in, or says why not."""
            number = self._called.asked(act, page)
            found = page_moves.fault(
                act, number or 0, level, FaultReason(why), by_model=by_model, name="" if number else asked
            )
            return faulted(act, found, asked)

        return self._act(do, at_us)

    def search(
        self, query: str, at: When | None = None, *, limit: int | None = 10, score: str | None = None,
        explain: bool = False, **moment: Unpack[Moment],
    ) -> Hits:  # fmt: skip
        """Searches the session's pages for the agent, best first, and logs what it found, except of the past."""
        hits = super().search(query, at, limit=limit, score=score, explain=explain, **moment)
        if at is None and not moment:
            pages, scores = [int(hit.page[1:]) for hit in hits], [hit.score for hit in hits]
            self._searched(Recaller.SEARCH, query, pages, len(hits), 0, scores)
        return hits

    def _ranked(self, query: str, limit: int) -> tuple[list[tuple[int, float]], int]:
        """Searches for the model, by the score of every search: pages and scores, and how many there are; logged."""
        if brought := remembered(self, query, 1):
            self._act(lambda act: take(act, brought))
        answer = self.memory._found(self.memory._moments(None, {}), query)
        hits = [(hit.page, hit.score) for hit in answer.hits]
        return self._act(lambda act: prefetch.look_for(act, query, hits, answer.total, limit))

    def _searched(
        self, recaller: Recaller, query: str, pages: Sequence[int], total: int, tokens: int,
        scores: Sequence[float] = (),
    ) -> None:  # fmt: skip
        """Logs what the agent recalled of its own session: what was found, and how many tokens of it were given."""
        found, scored = each_once(pages, scores)
        log_search(self, query, Search(0, found, total, int(recaller), tokens, scores=scored))

    def _untold(self, pages: Sequence[int]) -> frozenset[int]:
        """Those of some pages that recall tells nobody: retracted ones, values, and what the memory itself answered."""
        return self.look(lambda runtime: frozenset(page for page in pages if unfit(runtime, page)))

    def _looks_elsewhere(self) -> bool:
        """Whether a message brings in what the user's other sessions hold."""
        settings = self.look(lambda runtime: runtime.state.settings)
        return settings is not None and settings.prefetch and settings.paging != "model"

    def pack(self, *, at_us: int | None = None, **settings: Unpack[LiveSettings]) -> Prompt:
        """Makes and logs the prompt of the next call: what is in it, within the budget, ready to send.

        Settings change with it, as by `configure`: `window_tokens_max=8_000, model="small"` packs for a
        model whose window is smaller than L0, which stays as it is, until they are changed again.
        Raises RefusedError where what cannot leave the prompt takes more than the budget.
        """
        return self._act(lambda act: self._packed(act, pack(act, dict(settings))), at_us)

    def run(
        self,
        model_call: Callable[[dict[str, Any]], Any],
        *,
        tools: Mapping[str, Callable[..., Any]] | Sequence[Any] = (),
        shape: Shape | None = None,
        rounds_max: int = ROUNDS_MAX,
        parallel: bool = True,
        on_text: Callable[[str], Any] | None = None,
    ) -> RunResult:
        """Calls the model with one pack after another until it answers, and answers the tools it calls; all is logged.

        `model_call` takes a request and gives the provider's response, in the session's `shape`, or the parts
        of its stream. `tools` are functions by name, called with the model's arguments, several calls at once
        in threads if `parallel`; where they are schemas, a call of one ends the run: answer it with `tool`, and
        run again. `on_text` is called with the text as it comes, without citations. One run at a time: RefusedError
        where another is under way.
        """
        options: dict[str, Any] = {"shape": shape, "rounds_max": rounds_max, "parallel": parallel}
        hearing(on_text)
        with self.stream(model_call, tools=tools, **options) as streamed:
            for text in streamed:
                if on_text is not None:
                    on_text(text)
            return streamed.ran

    def stream(
        self,
        model_call: Callable[[dict[str, Any]], Any],
        *,
        tools: Mapping[str, Callable[..., Any]] | Sequence[Any] = (),
        shape: Shape | None = None,
        rounds_max: int = ROUNDS_MAX,
        parallel: bool = True,
    ) -> Streamed:
        """The words of a `run` as they come, without citations: it begins with the first and ends with the last.

        `ran` of what it gives says how it ended. Left before the end, close it.
        """
        own = tools if isinstance(tools, Mapping) else {}
        runnable(model_call, tools, rounds_max)
        plain_tools(own)
        return Streamed(
            texts(model_call, self._rounds(tools, shape, rounds_max), HostTools(self, own), parallel=parallel)
        )

    def _rounds(
        self, tools: Mapping[str, Callable[..., Any]] | Sequence[Any], shape: Shape | None, rounds_max: int
    ) -> Rounds:
        """The rounds of a run, for the code that drives them; see `vmstore.vm.protocol.loop`."""
        own = tools if isinstance(tools, Mapping) else {}
        schemas = [schema_of(name, function) for name, function in own.items()] if own else list(tools)
        with self._running():
            if shape is not None and shape != self.settings.shape:
                self.configure(shape=shape)
            self._act(
                lambda act: messages.offer(act, [offered(schema, act.shape) for schema in schemas] if own else schemas)
            )
            inject(self)
            speaks = self.settings.shape or "chat"
            memory = MemoryTools(self, self._took, self._answered, self._ranked, self._ns.clock.now, speaks)
            return (yield from rounds(memory, own=own, rounds_max=rounds_max, shape=speaks))

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Keeps other runs of the session out: two would answer each other's calls."""
        with self._ns.lock:
            if self._key in self._ns.running:
                raise RefusedError(
                    f"session {self.name!r} is being run already; wait until that ends, or fork it",
                    code="running-already",
                )
            self._ns.running.add(self._key)
        try:
            yield
        finally:
            with self._ns.lock:
                self._ns.running.discard(self._key)

    @property
    def developer_message(self) -> str:
        """Rules, manifest and all pages as one message, of the prompt as it is now; nothing is logged."""
        return self.look(self._now).developer_message

    # ---- settings, numbers, forks

    def configure(self, *, at_us: int | None = None, **settings: Unpack[LiveSettings]) -> KernelSettings:
        """Changes settings from here on; the settings that hold then."""

        def do(act: Act) -> KernelSettings:
            """Logs the settings that change."""
            return configure(act, dict(settings))

        return self._act(do, at_us)

    def _ends(self) -> None:
        promote(self)

    @property
    def settings(self) -> KernelSettings:
        """The settings that hold now."""
        return self.look(lambda act: chosen(act.state))

    def stats(self) -> Measures:
        """Metrics of the session's memory so far: faults, evictions, load, and the targets."""
        return self.look(lambda runtime: runtime.metrics.measures(runtime.state))

    # ---- what is changed by hand

    def update(self, page: str | int, content: str | bytes, *, at_us: int | None = None) -> int:
        """Gives a claim, a file or another page that no message holds another content; its version then.

        RefusedError for what was said in a message, which stays, and where what is pinned would not fit.
        """
        return self._act(lambda act: update(act, self._number(act, page), content), at_us)

    def link(
        self,
        source: str | int,
        target: str | int,
        kind: str = "related_to",
        *,
        valid_from_us: int | None = None,
        valid_to_us: int | None = None,
        at_us: int | None = None,
    ) -> None:
        """Says how a page relates to another: `derives` where it was made from it."""

        def do(act: Act) -> None:
            """Logs the link."""
            since, until = within("valid_from", valid_from_us), within("valid_to", valid_to_us)
            link(act, self._number(act, source), self._number(act, target), kind, since, until)

        self._act(do, at_us)

    def unlink(
        self, source: str | int, target: str | int, kind: str = "related_to", *, at_us: int | None = None
    ) -> None:
        """Ends every link of a kind from a page to another, those made when it was too; earlier moments have them."""
        with self._ns.lock:

            def do(act: Act) -> None:
                """Logs that the link holds no more."""
                first, other = self._number(act, source), self._number(act, target)
                near = self.lineage.ancestors(first, depth=1)
                linked = any((edge.kind, edge.target) == (kind, page_name(other)) for edge in near)
                unlink(act, first, other, kind, linked=linked or self.runtime().in_block)

            self._act(do, at_us)

    def delete(self, page: str | int, *, at_us: int | None = None) -> None:
        """Takes a page out of prompt, search and faults from here on; the log keeps it, `annotate` brings it back."""
        self._act(lambda act: delete(act, self._number(act, page)), at_us)

    def flush(self, page: str | int | None = None, *, at_us: int | None = None) -> list[str]:
        """Says that a page, or each that is dirty, is up to date with what it was made from; the names of those."""
        with self._ns.lock:
            found = [dirty.page for dirty in self.pages(dirty=True)] if page is None else [page]
            return self._names(self._act(lambda act: flush(act, [self._number(act, dirty) for dirty in found]), at_us))

    # ---- values, moments to come back to

    def keep(self, name: str, value: Any, *, at_us: int | None = None) -> str:
        """Keeps a JSON value under a name, never in a prompt, each change a version; the name of its page."""
        return self._name(self._act(lambda act: keep(act, name, value), at_us))

    def kept(self, name: str, at: When | None = None, **moment: Unpack[Moment]) -> Any:
        """The value kept under a name, now or at a moment; UnknownError names the nearest where there is none."""
        return value_of(name, self._values(at, moment, name))

    def values(self, at: When | None = None, **moment: Unpack[Moment]) -> dict[str, Any]:
        """Every value that is kept, by its name."""
        found = self._values(at, moment)
        return {name: value_of(name, found) for name in found}

    def _values(self, at: When | None, moment: Moment, name: str | None = None) -> dict[str, bytes]:
        if at is None and not moment:
            return self.look(kept_now)
        when = one_moment(at, moment)
        with self._ns.asking():
            lane = self._lane()
            pages = kept_at(lane, basis(lane, when).position)
            wanted = pages if name is None else {key: page for key, page in pages.items() if key == name}
            found = {value_name: self.content(page, when) for value_name, page in wanted.items()}
            return dict.fromkeys(pages, b"null") | found

    def checkpoint(self, name: str, *, at_us: int | None = None) -> Checkpoint:
        """Names this moment, to fork at and to go back to by `rewind`. It is a `mark` of the prompt."""
        self.mark(name, at_us=at_us)
        return self.checkpoints()[-1]

    def checkpoints(self) -> list[Checkpoint]:
        """The moments that were named, in order; those of a parent before the fork too."""
        with self._ns.lock:
            named = self.look(lambda runtime: list(runtime.spoken.checkpoints))
            with self._ns.asking():
                return [checkpoint_at(self._lane(), position, name) for position, name in named]

    def rewind(self, to: str | AsOf, *, at_us: int | None = None) -> list[FaultAnswer]:
        """Sets the session back to a checkpoint, by its name or as a moment, and continues from there.

        What came after is out of the prompt, of search and of what is kept, and settings, pins and contents are
        as they were; the log keeps what was undone, and turns and calls count on. What came of each page that had
        left the prompt since. Going on beside it instead is `fork`.
        """

        def do(act: Act) -> list[FaultAnswer]:
            """Undoes what came after, and says of each page how it went."""
            lane = self._lane()
            position, name = target(act, lane, to)
            return [faulted(act, fault, "") for fault in rewind(act, then(self._ns, act, lane, position), name)]

        with self._running():  # what its model was asked would be undone under way
            return self._act(do, at_us)

    # ---- sub-agents, forks

    def child(self, name: str, *, call: str | None = None, **options: Unpack[LiveOptions]) -> Live:
        """A session of its own for a part of the work: it has this one's user and settings, but for those given.

        It sees nothing of this session; say what it needs with `user`, or as its `system`. `call` is the id of the
        tool call that begins it, by itself the one that a run is answering. What it came to comes back by `join`.
        Where it is there already it is gone on with.
        """
        with self._ns.lock:
            call = call if call is not None else self.look(lambda runtime: calling(runtime.spoken.calls))
            opening = self.look(lambda runtime: opening_of(self, runtime, session_name(name), call))
            key = begin_child(self, opening, msgspec.structs.asdict(self.settings), dict(options))
            return Live(self._ns, self._recording, key, opening.name)

    def children(self) -> list[SessionInfo]:
        """The sessions that this one began."""
        with self._ns.asking():
            return children_of(self)

    def join(
        self, child: Live | str, text: str | None = None, *, call: str | None = None, at_us: int | None = None
    ) -> list[str]:
        """Takes in what a child came to, its last answer or `text`, and where it comes from; the names of its pages.

        It answers the tool call that began the child, or `call`; where there is none it is a page of its own.
        `vmstore.origin` says where a page comes from. In a run a tool just returns the child.
        """
        other = child if isinstance(child, Live) else self._child(child)
        result = other.look(lambda runtime: result_of(self, other, runtime, text))

        def do(act: Act) -> list[int]:
            """Logs the result and what it rests on."""
            answers = call if call is not None else call_of(act, self, other._key)
            return taken_in(act, other.name, result, answers)

        return self._names(self._act(do, at_us))

    def _child(self, name: str) -> Live:
        key = self._ns.key(session_name(name))
        if key is None:
            known = [info.session for info in self.children()]
            raise UnknownError(f"there is no session {name!r}; {self._ns.nearest(name, known)}", code="no-session")
        return Live(self._ns, self._recording, key, name)

    def fork(self, name: str, at: When | None = None, **moment: Unpack[Moment]) -> Live:
        """A new live session that shares this one's past up to a moment, and nothing after."""
        child = super().fork(name, at, **moment)
        return Live(self._ns, self._recording, child._key, child.name)

    def _packed(self, at: Act | Runtime, made: PackedRequest | Selection | None) -> Prompt:
        choice = made.now.choice if isinstance(made, PackedRequest) else made
        sent = made if isinstance(made, PackedRequest) else None
        position = at.state.position

        @contextmanager
        def look() -> Iterator[PromptPages]:
            with self._ns.lock:
                if (runtime := self.runtime()).state.position == position:
                    yield runtime.leaves(choice)
                    return
            with stood(self._ns, self._lane(), position) as past:
                yield past.leaves(choice)

        return Prompt(self.name, chosen(at.state), at.state, choice, look, sent)

    def _now(self, at: Act | Runtime) -> Prompt:
        """The prompt as it is now."""
        return self._packed(at, sent(at.state))
