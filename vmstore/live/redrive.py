"""Re-drives a recorded session: the same things are said again, to a memory that manages itself.

What the source's own agent put into its requests is left aside, and so is what it shortened or
summed up for itself. Which pages each call needed is read from what was written: a page counts as used at a
call where the model's answer to it quotes, names or repeats it (`vmstore.vm.recall.used_pages`), and a page
the user speaks of counts at the call that follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from vmstore.core import mutation as m
from vmstore.core.decision import Cause, Holder, Use
from vmstore.core.erasure import ErasedContent
from vmstore.core.mutation import decode
from vmstore.core.page import Modality, Role, Slot, Standing
from vmstore.core.tags import TOPIC, TagMethod
from vmstore.core.text.skeleton import dumps
from vmstore.live import compaction, extraction, prefetch
from vmstore.live.likeness import turn
from vmstore.live.messages import TOPIC_BYTES_MAX, LoggedMessage, corrected, hold
from vmstore.live.pack import pack
from vmstore.live.runtime import Act
from vmstore.live.session_log import LoggedCommit, SessionLog
from vmstore.live.topics import boundary, turn_tags
from vmstore.log.commit import Commit
from vmstore.views.projectors.pages import born_tags, object_of
from vmstore.vm.recall.topics import topics
from vmstore.vm.recall.used_pages import Evidence, WrittenPage, references

TEXT_BYTES_MAX = 200_000  # of a page, read for what it uses
USES = {Evidence.CITED: Use.REUSE, Evidence.NAMED: Use.REUSE, Evidence.QUOTED: Use.QUOTE, Evidence.SAME: Use.QUOTE}


class NeededPages:
    """The pages each call needed, by the source's own positions."""

    def __init__(self, facts: SessionLog) -> None:
        self.by_call: dict[int, dict[int, Use]] = {}
        self._calls: dict[int, int] = {}  # who wrote what for which call
        for used in references(self._written(facts)):
            call = self._calls.get(used.by)
            if call is not None:
                self.by_call.setdefault(call, {})[used.page] = USES[used.evidence]

    def _written(self, facts: SessionLog) -> Iterator[WrittenPage]:
        call, answers = 0, 0
        roles: dict[int, int] = {}
        for commit in facts.after(0):
            for position, mutation in commit.mutations:
                match mutation:
                    case m.Pack():
                        call = mutation.call
                    case m.Message():
                        roles[position], answers = mutation.role, mutation.reply_to or 0
                    case m.Create() if mutation.content is not None and mutation.modality in _READ:
                        if mutation.role == Role.ASSISTANT:
                            self._calls[position] = answers or max(call, 1)
                        elif mutation.role == Role.USER:
                            self._calls[position] = call + 1
                        content = facts.cell(position, mutation.content)[:TEXT_BYTES_MAX]
                        content = b"" if isinstance(content, ErasedContent) else content
                        yield WrittenPage(position, content.decode("utf-8", "replace"))


_SPOKEN = (Role.USER, Modality.TEXT)
_READ = (Modality.TEXT, Modality.STRUCTURED)


class RedriveStep(NamedTuple):
    """One act, and when it happened."""

    at: int
    do: Callable[[Act], object]


class Redrive:
    """Feeds what was said to a live session, commit by commit."""

    def __init__(self, facts: SessionLog, uses: NeededPages) -> None:
        self._facts = facts
        self._uses = uses
        self._at: dict[int, int] = {}  # the source's positions -> ours
        self._facts_here: set[int] = set()  # the source's pages that state facts
        self._commit: Commit | None = None  # of the source, under way

    def steps(self) -> Iterator[RedriveStep]:
        """The steps to take, one a call: messages since the last call, and its pack."""
        step: list[LoggedCommit] = []
        for commit in self._facts.after(0):
            kinds = [type(mutation) for _, mutation in commit.mutations]
            if m.Turn in kinds and step:  # a turn begins its commit
                yield RedriveStep(step[-1].at, partial(self._do, step))
                step = []
            step.append(commit)
            if m.Pack in kinds:
                yield RedriveStep(commit.at, partial(self._do, step))
                step = []
        if step:
            yield RedriveStep(step[-1].at, partial(self._do, step))

    def _do(self, commits: Sequence[LoggedCommit], act: Act) -> None:
        messages: dict[int, LoggedMessage] = {}
        for commit in commits:
            self._commit = commit.commit
            for position, mutation in commit.mutations:
                self._tell(act, position, mutation, messages)
        if not act.ended:
            self._notice(act, messages)

    def _begun(self) -> str:
        """The user's text at the beginning of a turn, in the commit under way."""
        mutations = decode(self._commit.body) if self._commit is not None else []
        texts = [
            self._bytes(mutation.content)
            for mutation in mutations
            if isinstance(mutation, m.Create)
            and mutation.content is not None
            and (mutation.role, mutation.modality) == _SPOKEN
        ]
        return "\n".join(text.decode("utf-8", "replace") for text in texts if not isinstance(text, ErasedContent))

    def _bytes(self, ref: m.CellRef) -> bytes:
        assert self._commit is not None, "a cell is read as its commit is met"
        return self._facts.sealed(self._commit, ref)

    def _tell(self, act: Act, position: int, mutation: m.AnyMutation, messages: dict[int, LoggedMessage]) -> None:
        match mutation:
            case m.Turn():
                words = self._begun()
                act.tell(turn(act, words))
                boundary.begin(act, words)
            case m.Message():
                skeleton = self._bytes(mutation.envelope)
                envelope = act.cell(skeleton)
                new = m.Message(mutation.role, mutation.slot, envelope, mutation.human, None, mutation.reply_to)
                self._at[position] = made = act.tell(new)
                messages[made] = LoggedMessage(made, [])
            case m.Create():
                self._create(act, position, mutation, messages)
            case m.Update():
                content = act.cell(self._bytes(mutation.content))
                page = self._at[mutation.page]
                act.tell(m.Update(page, mutation.version, content, mutation.size, mutation.tokens))
            case m.Link():
                act.tell(m.Link(self._at[mutation.source], self._at[mutation.target], mutation.link))
            case m.Unlink():
                act.tell(m.Unlink(self._at[mutation.source], self._at[mutation.target], mutation.link))
            case m.Annotate() if mutation.status == Standing.SUPERSEDED and mutation.page in self._at:
                said_of = None if mutation.anchors is None else act.cell(self._bytes(mutation.anchors))
                self._past(act, m.Annotate(self._at[mutation.page], status=mutation.status, anchors=said_of))
            case m.Delete() if mutation.page in self._at:
                self._past(act, m.Delete(self._at[mutation.page]))
            case m.Flush() if mutation.page in self._at:
                act.tell(m.Flush(self._at[mutation.page]))
            case m.Close():
                said_of = None if mutation.reason is None else act.cell(self._bytes(mutation.reason))
                act.tell(m.Close(mutation.status, said_of))
            case m.Configure():
                act.tell(m.Configure(mutation.estimator, corrected(act.state, mutation.factor_ppm), act.state.beside))
            case m.Tag() if mutation.page in self._at and self._keeps(act, mutation):
                name = act.cell(self._bytes(mutation.tag))
                act.tell(m.Tag(self._at[mutation.page], name, mutation.method, mutation.held))
            case m.Alias():
                end = None if mutation.canonical is None else act.cell(self._bytes(mutation.canonical))
                act.tell(m.Alias(act.cell(self._bytes(mutation.alias)), end))
            case m.Fact() if mutation.page in self._at:
                self._stated(act, mutation)
            case m.Annotate() if mutation.page in self._facts_here:
                stands = {name: getattr(mutation, name) for name in ("status", "valid_from", "valid_to")}
                if any(value is not None for value in stands.values()):
                    act.tell(m.Annotate(self._at[mutation.page], **stands))
            case m.Depth():
                act.tell(m.Depth(act.cell(self._bytes(mutation.tag)), mutation.depth))
            case m.ToolRun() if mutation.call in self._at:
                self._ran(act, mutation)
            case m.GuardTrip() | m.Promote() | m.Approve():
                self._worked(act, mutation)
            case m.Reply():
                act.tell(msgspec.structs.replace(mutation, aside=None, cost=None))  # paid once, by the source
            case m.Pack():
                self._notice(act, messages)
                for page, use in self._uses.by_call.get(mutation.call, {}).items():
                    if page in self._at:
                        act.tell(m.Reference(self._at[page], use, mutation.call))
                pack(act, {})

    @staticmethod
    def _keeps(act: Act, given: m.Tag) -> bool:
        """Whether a tag is taken over: each that somebody gave, and what was found where no rule finds it here."""
        settings = act.state.settings
        return given.method == TagMethod.HAND or settings is None or settings.tags != "keyword"

    def _worked(self, act: Act, said: m.GuardTrip | m.Promote | m.Approve) -> None:
        """Takes over a guard, a skill and somebody's word on a file, as far as their pages are here."""
        match said:
            case m.GuardTrip() if calls := self._moved(said.calls):
                tool, warning = act.cell(self._bytes(said.tool)), self._at.get(said.warning, 0)
                act.tell(m.GuardTrip(said.type, tool, said.count, calls, warning))
            case m.Promote() if said.page in self._at:
                skill, calls = act.cell(self._bytes(said.skill)), self._moved(said.calls)
                act.tell(m.Promote(self._at[said.page], skill, said.count, said.tries, calls))
            case m.Approve() if said.page in self._at:
                who = None if said.who is None else act.cell(self._bytes(said.who))
                act.tell(m.Approve(said.granted, page=self._at[said.page], who=who))

    def _moved(self, pages: Iterable[int]) -> tuple[int, ...]:
        """Pages of the source, as far as they are here."""
        return tuple(self._at[page] for page in pages if page in self._at)

    def _stated(self, act: Act, fact: m.Fact) -> None:
        """Takes over what a page states, which leaves the prompt as each fact does; what was erased states nothing."""
        page = self._at[fact.page]
        refs = {name: getattr(fact, name) for name in ("subject", "verb", "what", "attribute", "method")}
        texts = {name: self._bytes(ref) for name, ref in refs.items() if ref is not None}
        if not any(isinstance(text, ErasedContent) for text in texts.values()):
            words = {name: act.cell(text) for name, text in texts.items()}
            act.tell(msgspec.structs.replace(fact, page=page, **words))
            self._facts_here.add(fact.page)
        if (here := act.state.here.get(page)) is not None:
            act.tell(m.Evict(page, Cause.ASKED, here.tokens))

    def _ran(self, act: Act, ran: m.ToolRun) -> None:
        """Takes over how a tool ran, as far as its pages are here."""
        error, tags = (None if ref is None else act.cell(self._bytes(ref)) for ref in (ran.error, ran.tags))
        effects = {name: self._moved(getattr(ran, name)) for name in ("read", "created", "modified")}
        one = {name: self._at.get(getattr(ran, name), 0) for name in ("result", "reasoning")}
        moved = {**effects, **one, "call": self._at[ran.call], "error": error, "tags": tags}
        act.tell(msgspec.structs.replace(ran, **moved))

    @staticmethod
    def _past(act: Act, mutation: m.Annotate | m.Delete) -> None:
        """Lets a page hold no more, and the claims found meanwhile in what the source took back."""
        act.tell(mutation)
        for claim in act.spoken.claims_of(mutation.page):
            act.tell(m.Annotate(claim, status=Standing.SUPERSEDED))

    def _create(self, act: Act, position: int, made: m.Create, messages: dict[int, LoggedMessage]) -> None:
        links = tuple((kind, self._at[page]) for kind, page in made.links if page in self._at)
        content = None if made.content is None else act.cell(self._bytes(made.content))
        labels = self._labels(act, made, message := self._at.get(made.message, 0))
        new = msgspec.structs.replace(made, content=content, labels=labels, links=links, message=message)
        self._at[position] = page = act.tell(new)
        if message in messages:
            messages[message].pages.append(page)
        holder = self._holder(act, made, message)
        if holder is not None:
            hold(act, (page,), holder)

    def _labels(self, act: Act, made: m.Create, message: int) -> m.CellRef | None:
        """The labels of a page in the source, with what the page is about, as a message written here has them."""
        labels = None if made.labels is None else self._bytes(made.labels)
        if (
            message
            and made.content is not None
            and made.modality == Modality.TEXT
            and not isinstance(labels, ErasedContent)
        ):
            content = self._bytes(made.content)
            known = object_of(labels) if labels is not None else {}
            tags = born_tags(known)
            if not isinstance(content, ErasedContent) and not any(tag.startswith(TOPIC) for tag in tags):
                about = topics(content[:TOPIC_BYTES_MAX].decode("utf-8", "replace"))
                tags += [TOPIC + topic for topic in about]
                labels = dumps({**known, "tags": tags}) if about else labels
        return None if labels is None else act.cell(labels)

    @staticmethod
    def _holder(act: Act, made: m.Create, message: int) -> Holder | None:
        """The holder of a page in front of the conversation: instructions, tools, or a page the source omits."""
        if made.content is None:
            return Holder.SYSTEM
        slot = act.spoken.messages[message].slot if message else Slot.MESSAGES
        if slot is Slot.TOOLS:
            return Holder.TOOLS
        return Holder.SYSTEM if slot is Slot.SYSTEM or made.role in (Role.SYSTEM, Role.DEVELOPER) else None

    @staticmethod
    def _notice(act: Act, messages: dict[int, LoggedMessage]) -> None:
        """Looks for decisions and for what the next call may need, as in any live session."""
        for spoke in messages.values():
            role = act.spoken.messages[spoke.message].role
            if role in (Role.USER, Role.ASSISTANT):
                extraction.notice(act, spoke)
            if role is Role.ASSISTANT:
                turn_tags.tag(act)
            if role is Role.USER:
                prefetch.prefetch(act, spoke)
        if messages:
            compaction.compact(act)
        messages.clear()
