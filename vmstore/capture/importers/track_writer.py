"""Feeds the steps of one track to a conversation: the derived twin of recording.

`line` is the conversation as the source tells it: what the next derived call would hold.
"""

from __future__ import annotations

from bisect import bisect_right, insort_right
from collections.abc import Callable, Sequence
from itertools import islice

from vmstore.capture.conversation.conversation import Conversation
from vmstore.capture.conversation.message_state import MessageState
from vmstore.capture.record import drafts_as_values, take_draft, write
from vmstore.capture.steps import (
    CallStep,
    ContinuationStep,
    DetachedPages,
    MessageRef,
    MessageStep,
    MetadataStep,
    RewriteStep,
    Step,
    SummaryStep,
    UnreadableStep,
)
from vmstore.core.draft import Draft, ReplyDraft
from vmstore.core.mutation import CellRef
from vmstore.core.page import Fidelity, PageType, Role, Slot
from vmstore.core.text.skeleton import dumps
from vmstore.engine.batch import Batch


class TrackWriter:
    """One track on its way into a session."""

    def __init__(self, source: str, steps: Sequence[Step], start: Conversation | Callable[[int], bytes]) -> None:
        self.conversation = start if isinstance(start, Conversation) else Conversation(start)
        self.session = 0
        self.problems: list[tuple[int, str]] = []
        self._source = source
        self._steps = steps
        self._line: list[tuple[int, MessageState]] = []
        self._shown: list[MessageState] = []  # the line as a call shows it, by slots
        self._since = 0  # how many of those the last pack showed in their places
        self._said: dict[int, list[MessageState]] = {}  # by the step that brought them

    def resume(self, positions: Sequence[int]) -> None:
        """Finds the conversation again as it stood after the records that end at these positions."""
        messages, at = self.conversation.messages, 0
        for index, (step, end) in enumerate(zip(self._steps, positions, strict=False)):
            answers = []
            while at < len(messages) and messages[at].message <= end:
                answers.append(messages[at])
                at += 1
            self._said[index] = answers
            match step:
                case SummaryStep():
                    self._compact(step, index, answers[0])
                case RewriteStep():
                    self._recast(step, index, answers)
                case CallStep(request=None, joins=True) | MessageStep() | ContinuationStep():
                    self._lengthen(index, answers)

    def needs_log(self, index: int) -> bool:
        """Whether the next step reads what was written, so that it must be in the log by then."""
        step = self._steps[index] if index < len(self._steps) else None
        return isinstance(step, CallStep) and step.request is not None

    def take(self, index: int, batch: Batch, at: int) -> CellRef | None:
        """Takes one step in; the cell of what its mark keeps beside it, if anything."""
        conversation, step = self.conversation, self._steps[index]
        conversation.batch = batch
        self._unnamed(step)
        match step:
            case MessageStep():
                self._join(index, [conversation.say(step.draft, at=at)])
            case CallStep(request=None):
                self._answer(index, step, at)
            case CallStep():
                assert step.request is not None, "the case before took the others"
                values = drafts_as_values(step.request)
                fidelity, rest = Fidelity.DERIVED if step.derived else Fidelity.RECORDED, _rest(step)
                write(
                    conversation, batch, values, take_draft, step.reply, at=at, rest=rest, shape=step.shape,
                    fidelity=fidelity,
                )  # fmt: skip
                self._since = 0
            case ContinuationStep():
                conversation.reckon(step.reply.usage, conversation.context)
                self._join(index, conversation.reply(step.reply, batch.head.call, at=at))
            case SummaryStep():
                summary = conversation.say(step.draft, at=at, type_=PageType.SUMMARY)
                conversation.sum_up(summary, self._compact(step, index, summary))
            case RewriteStep():
                new = [(draft, conversation.say(draft, at=at)) for draft in _drafts(step)]
                left = self._recast(step, index, [state for _, state in new])
                for draft, state in new:
                    if any(part.type is PageType.SUMMARY for part in draft.parts):
                        conversation.sum_up(state, left)
                return None if step.aside is None else batch.cell(step.aside)
            case DetachedPages():
                conversation.apart(step.draft)
            case MetadataStep():
                return batch.cell(step.aside)
            case UnreadableStep():
                conversation.raw(step.raw, f"{self._source}:{step.line}", step.reason)
                self.problems.append((step.line, step.reason))
        return None

    def _unnamed(self, step: Step) -> None:
        """Notes links to messages that the source does not hold."""
        for name in {hint for draft in _drafts(step) for _, hint in draft.links if hint not in self.conversation.hints}:
            self.problems.append((step.line, f"refers to {name!r}, but no earlier message has that ID"))

    def _answer(self, index: int, step: CallStep, at: int) -> None:
        conversation = self.conversation
        conversation.reckon(step.reply.usage, self._shown)
        since, self._since = self._since, len(self._shown)
        call = conversation.pack(self._shown, fidelity=Fidelity.DERIVED, at=at, rest=_rest(step), since=since)
        self._said[index] = states = conversation.reply(step.reply, call, at=at)
        if step.joins:
            self._join(index, states)

    def _join(self, index: int, states: list[MessageState]) -> None:
        """Appends the messages of a step to the conversation."""
        self._said[index] = states
        self._lengthen(index, states)

    def _lengthen(self, index: int, states: list[MessageState]) -> None:
        """Puts messages at the end of the line, and each in its place among those of its slot."""
        self._line += [(index, state) for state in states]
        for state in states:
            if not self._shown or self._shown[-1].slot <= state.slot:
                self._shown.append(state)
            else:
                self._since = min(self._since, bisect_right(self._shown, state.slot, key=_slot))
                insort_right(self._shown, state, key=_slot)

    def _redraw(self, line: list[tuple[int, MessageState]]) -> None:
        """Has another line stand."""
        self._line, self._shown, self._since = line, sorted((state for _, state in line), key=_slot), 0

    def _compact(self, step: SummaryStep, index: int, summary: MessageState) -> list[MessageState]:
        """Puts a summary in the place of what it replaces; the messages replaced."""
        kept_from = len(self._steps) if step.kept_from is None else step.kept_from
        before = [(i, h) for i, h in self._line if _stays(h)]
        replaced = [h for i, h in self._line if not _stays(h) and i < kept_from]
        kept = [(i, h) for i, h in self._line if not _stays(h) and i >= kept_from]
        self._redraw([*before, (index, summary), *kept])
        self._said[index] = [summary]
        return replaced

    def _recast(self, step: RewriteStep, index: int, new: list[MessageState]) -> list[MessageState]:
        """Puts what a step lists in the place of the conversation, its `new` messages in order; what left."""
        self._said[index], drafted = new, iter(new)
        line = [(i, state) for i, state in self._line if state.slot is not Slot.MESSAGES]
        for stand in step.stands:
            if not isinstance(stand, MessageRef):
                line += [(index, state) for state in islice(drafted, 1)]
            elif stand.nth < len(answers := self._said.get(stand.step, [])):
                line.append((stand.step, answers[stand.nth]))
        stays = {state.message for _, state in line}
        left = [state for _, state in self._line if state.message not in stays]
        self._redraw(line)
        return left


def _slot(state: MessageState) -> Slot:
    """The slot that a call orders messages by."""
    return state.slot


def _drafts(step: Step) -> tuple[Draft, ...]:
    """The messages a step brings, those of a recorded request aside."""
    match step:
        case MessageStep() | SummaryStep() | DetachedPages():
            return (step.draft,)
        case RewriteStep():
            return tuple(stand for stand in step.stands if isinstance(stand, Draft))
        case CallStep() | ContinuationStep():
            return step.reply.drafts
    return ()


def _stays(state: MessageState) -> bool:
    """Whether a message stands outside what a compaction replaces: instructions and tools do."""
    return state.slot is not Slot.MESSAGES or state.role in (Role.SYSTEM, Role.DEVELOPER)


def _rest(step: CallStep) -> bytes | None:
    """The other fields of a call's request: all of them, or the model alone."""
    if step.rest is not None:
        return step.rest
    reply: ReplyDraft = step.reply
    return dumps({"model": reply.model}) if reply.model else None
