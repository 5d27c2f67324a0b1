"""The engine of two calls: `on_message_inbound` before a model is asked, `on_turn_complete` after it answered.

It is thin: a live session takes in what was said, `session.memory.assemble` chooses what goes beside a message, and
a segment stands for what was said long ago. Nothing it does can lose a message: where the memory fails, the message
and its history go on as they came, and the reason is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from vmstore.core.page import Modality, PageType
from vmstore.core.text.token_estimate import estimate
from vmstore.errors import InputError, VmstoreError
from vmstore.providers.text_model import TextModel
from vmstore.relevance.time.times import times_in
from vmstore.store.live.live_session import Live
from vmstore.store.recall.assembly.assemble import spoken_by
from vmstore.store.recall.assembly.results import AssembledPrompt
from vmstore.store.store import Store
from vmstore.store.virtual_context.chat_message import ClientMessage, Spoken, new_ones, plain, spoken, talk
from vmstore.views.projectors.pages import TYPED
from vmstore.views.reads.tags import turns_of_tags
from vmstore.vm import signals
from vmstore.vm.assembly.history import is_whole, kept_turns, turns_of

WINDOW_TOKENS = 60_000
SOFT, HARD = 0.70, 0.85
PROTECTED_TURNS = 3
L0_TOKENS_MIN = 8_000  # what the session's own kernel works with, whatever window its caller has
SUMMARY_PROMPT = (
    "Sum up this part of a conversation in a few sentences. Keep decisions, names, numbers and states exactly as they "
    "were stated: what is so is so, and is not planned. Write nothing else.\n\n"
)
Summarizer = Callable[[str], str] | TextModel


class InboundContext(msgspec.Struct, frozen=True):
    """Context to send with a message.

    `prepend_text` goes before the system prompt; empty while nothing was compacted and all fits, as `suppressed`
    says. `matched_tags` are the topics of the message; `messages` the history to send, with the message last, in
    the shape it came in. `prompt` is the whole prompt for who would rather send that; None where the memory failed,
    and `note` says why.
    """

    prepend_text: str
    matched_tags: list[str]
    messages: list[Any]
    is_temporal: bool = False
    suppressed: bool = False
    tokens: int = 0
    breakdown: dict[str, int] = {}
    prompt: AssembledPrompt | None = None
    note: str = ""


class TurnReport(msgspec.Struct, frozen=True):
    """Compaction at the end of a turn: segments, tokens freed, and whether it was forced (`hard`)."""

    segments_compacted: int
    tokens_freed: int
    summaries: list[str]
    hard: bool = False
    note: str = ""


class VirtualContextEngine:
    """Memory around somebody's own model call, in a store and one of its sessions.

    `window_tokens` is what a prompt may take, `summarizer` a function or a text model that sums up what is compacted;
    without one, or where it fails, the session's own key points stand. Not for several threads at once.
    """

    def __init__(
        self, store: Store, session: str = "default", *, window_tokens: int = WINDOW_TOKENS, user: str | None = None,
        summarizer: Summarizer | None = None, soft: float = SOFT, hard: float = HARD,
        protected_turns: int = PROTECTED_TURNS, across: bool = False,
    ) -> None:  # fmt: skip
        if not 0 < soft <= hard <= 1:
            raise InputError(
                f"thresholds {soft!r:.20}, {hard!r:.20} are no shares of the window; 0 < soft <= hard <= 1",
                code="not-a-share",
            )
        most = max(L0_TOKENS_MIN, window_tokens)
        self._live: Live = store.live_session(session, l0_tokens_max=most, user=user, rules="passive")
        self._window, self._soft, self._hard = window_tokens, soft, hard
        self._protected, self._across, self._summarizer = protected_turns, across, summarizer
        self._seen: list[Spoken] | None = None

    @property
    def session(self) -> Live:
        """The session that holds what was said."""
        return self._live

    def on_message_inbound(
        self, message: str, conversation_history: Sequence[ClientMessage | dict[str, Any]] = ()
    ) -> InboundContext:
        """The context to send with a message: earlier statements about it, and the part of the history to keep."""
        history = [plain(one) for one in conversation_history]
        sent = [*history, {"role": "user", "content": message}]
        try:
            self.ingest_history(conversation_history)
            prompt = self._live.memory.assemble(
                message, tokens=self._window, protected=self._protected, across=self._across
            )
            is_temporal = signals.asks_for_the_past(message) or bool(times_in(message, self._now(), question=True))
            suppressed = not self._compacted() and _tokens(sent) <= self._window * self._soft
        except VmstoreError as error:
            return InboundContext("", [], sent, note=f"sent as it came: {error}")
        prepend = "" if suppressed else "\n\n".join(text for text in (prompt.prepend, prompt.beside) if text)
        kept = sent if suppressed else self._filtered(history, message, prompt, is_temporal)
        return InboundContext(
            prepend, prompt.topics, kept, is_temporal, suppressed, prompt.tokens, prompt.breakdown, prompt, prompt.note
        )

    def on_turn_complete(self, messages: Sequence[ClientMessage | dict[str, Any]]) -> TurnReport | None:
        """Takes in what was said, with the answer; what was compacted, None where there was no need."""
        self.ingest_history(messages)
        used, hard = self._open_tokens(), False
        if used < self._window * self._soft:
            return None
        hard = used >= self._window * self._hard
        return self.compact(hard=hard)

    def ingest_history(self, messages: Sequence[ClientMessage | dict[str, Any]]) -> int:
        """Takes in what of some messages is new; how many were."""
        said = talk(map(spoken, messages))
        seen = self._known()
        new = new_ones(seen, said)
        with self._live.turn():
            for one in new:
                self._take(one)
        seen += new
        return len(new)

    def compact(self, *, hard: bool = False) -> TurnReport:
        """Ends the segment under way: a summary stands for what was said in it."""
        before, text, note = self._open_tokens(), self._open_text(), ""
        summary: str | None = None
        if self._summarizer is not None:
            try:
                summary = self._summed_up(text)
            except Exception as error:  # the caller's own code, or a server: the key points stand instead
                note = f"the summarizer failed ({error!r:.120}); its key points stand for it"
        page = self._live.segment(summary=summary or None)
        after = self._live.page(page).tokens
        return TurnReport(1, max(0, before - after), [page], hard, note)

    def _summed_up(self, text: str) -> str:
        assert self._summarizer is not None, "asked only where there is one"
        if callable(self._summarizer):
            answer = self._summarizer(text)
        else:
            answer = self._summarizer.complete(SUMMARY_PROMPT + text).text
        if not isinstance(answer, str) or not answer.strip():
            raise InputError("it answered no text")
        return answer if len(answer) < len(text) else ""

    def _take(self, one: Spoken) -> None:
        """Tells the live session one message."""
        for call, result in one.results:
            self._live.tool(call, result, at_us=one.at_us)
        if one.role == "assistant":
            calls = [
                {"id": call, "type": "function", "function": {"name": name, "arguments": arguments}}
                for call, name, arguments in one.calls
            ]
            self._live.pack()
            answer = {"role": "assistant", "content": one.text or None, **({"tool_calls": calls} if calls else {})}
            self._live.assistant(answer, at_us=one.at_us)
        elif one.text.strip():
            self._live.user(one.text, at_us=one.at_us)

    def _known(self) -> list[Spoken]:
        """The messages of the session so far, read back once."""
        if self._seen is None:
            self._seen = talk(spoken(value) for value in spoken_by(self._live))
        return self._seen

    def _filtered(self, history: list[Any], message: str, prompt: AssembledPrompt, is_temporal: bool) -> list[Any]:
        """The history of the topics at hand: the last turns always, a call never without its result."""
        turns = turns_of(history)
        topics = frozenset(prompt.topics)
        tags = self._tags_of(len(turns))
        kept = kept_turns(tags, topics, protected=self._protected, is_temporal=is_temporal)
        some = [[history[at] for at in turn] for turn, stays in zip(turns, kept, strict=True) if stays]
        room = self._window - prompt.tokens
        chosen: list[list[Any]] = []
        for place, turn in enumerate(reversed(some)):
            room -= _tokens(turn)
            if place >= self._protected and (room < 0 or not is_whole(turn)):
                break
            chosen.append(turn)
        return [*(one for turn in reversed(chosen) for one in turn), {"role": "user", "content": message}]

    def _tags_of(self, turns: int) -> list[frozenset[str]]:
        """The tags of the last turns of the session, the last one last."""
        ns = self._live._ns
        with ns.asking():
            info = self._live.info()
            by_turn = turns_of_tags(self._live._lane(), info.position)
        return [frozenset(by_turn.get(turn, ())) for turn in range(info.turns - turns + 1, info.turns + 1)]

    def _compacted(self) -> bool:
        return self._open()[0] > 0

    def _open_tokens(self) -> int:
        """The tokens of what was said since the last segment ended."""
        return sum(tokens for _, tokens in self._open()[1])

    def _open(self) -> tuple[int, list[tuple[int, int]]]:
        """The page of the last summary, 0 where there is none, and the pages said since with their tokens."""
        ns, live = self._live._ns, self._live
        with ns.asking():
            stretches = live._lane().upto(live.info().position)
            lane = live._lane()
            last = max((lane.db.execute(_LAST, each[:3]).get or 0 for each in stretches), default=0)
            rows: list[Any] = []
            for session, low, high, *_ in reversed(stretches):
                rows += lane.db.execute(_SINCE, (session, max(low, last), high))
        return last, rows

    def _open_text(self) -> str:
        said = [self._live.page(page) for page, _ in self._open()[1]]
        return "\n".join(f"{page.role}: {self._live.content(page.page).decode('utf-8', 'replace')}" for page in said)

    def _now(self) -> int:
        return self._live._ns.clock.now()


_LAST = f"""SELECT max(page) FROM pages INDEXED BY pages_type
  WHERE {TYPED} AND type = {int(PageType.SUMMARY)} AND session = ? AND page > ? AND page <= ?"""
_SINCE = f"""SELECT page, tokens FROM pages WHERE session = ? AND page > ? AND page <= ?
  AND type = {int(PageType.TRANSCRIPT)} AND message > 0"""


def _tokens(messages: Sequence[Any]) -> int:
    return sum(estimate(msgspec.json.encode(one), Modality.TEXT) for one in messages)
