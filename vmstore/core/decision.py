"""Requests to the kernel and its decisions: one frozen struct for each, with its words.

Stimuli are `settings`, `segment`, `reference`, `cite`, `search`, `recall`, and the pins, evictions and
levels somebody asked for; the others are decisions, and each carries its reasons (law 4).
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from vmstore.core.mutation_kind import CellRef, Mutation
from vmstore.core.page import Tier, WordEnum


class Use(WordEnum):
    """Signs of use that a reference records."""

    FAULT = 0  # the model asked for the page
    TOOL = 1  # a tool read it
    QUOTE = 2  # its words came back
    REUSE = 3  # something in it was used again: a path, a name, a number
    ASKED = 4  # the embedding program asked
    SIGNAL = 5  # the next message may need it: a wish, no use


class FaultReason(WordEnum):
    """Reasons to ask for a page."""

    USER_REQUESTED_RECALL = 0
    RESOLVE_REFERENCE = 1
    TOOL_PREREQ = 2
    SPECULATIVE = 3


class Signal(WordEnum):
    """Signals on which a page is prefetched."""

    NONE = 0
    RECALL = 1  # the message speaks of what was said before
    TOPIC = 2  # it is about what the page is about
    SUMMARY = 3  # the last segment's summary
    CLAIM = 4  # one of the weightiest claims
    TOOL = 5  # a tool that is likely now needs it
    NEIGHBOUR = 6  # it stood in the segment of a page that was asked for
    NEXT = 7  # it stands after a page that was asked for


class Recaller(WordEnum):
    """Ways in which an agent recalled something."""

    SEARCH = 0  # its handle's search, or the model's search_pages
    RECALL = 1
    SEARCH_PAGES = 2
    FIND_QUOTE = 3
    REMEMBER_WHEN = 4
    RECALL_ALL = 5
    RECALL_USER = 6  # of the user's other sessions
    ASSEMBLE = 7  # what a prompt was put together of, beside the conversation


class Denial(WordEnum):
    """Reasons to deny a fault."""

    NO_PAGE = 0
    FAULTS_A_TURN = 1
    TOKENS_A_TURN = 2
    REASON = 3  # it is below the confidence asked for
    NO_ROOM = 4
    NO_LEVEL = 5
    PAGING = 6  # the session pages by itself, the model may not ask
    APPROVAL = 7  # nobody allowed it
    RETRACTED = 8  # it is superseded, and only a program may ask for it


class Cause(WordEnum):
    """Causes of an eviction or compression."""

    PRESSURE = 0  # the prompt is fuller than its high mark
    FAULT = 1  # a page that was asked for needs the room
    BUDGET = 2  # the budget became smaller
    ARRIVAL = 3  # what arrived is larger than what may be
    SEGMENT = 4  # its segment ended
    ASKED = 5  # somebody asked
    RESTORE = 6  # the context was set back to a mark
    THOUGHT = 7  # it is a model's thinking, which is not sent back
    ERASED = 8  # what it says was erased
    RETRACTED = 9  # it is superseded
    UNAPPROVED = 10  # it is a file, and nobody approved what it holds


class Holder(WordEnum):
    """Holders that keep a page in the prompt."""

    HAND = 0
    SYSTEM = 1
    TOOLS = 2
    PLAN = 3
    TURNS = 4  # it is of one of the last turns
    PREFERENCE = 5


class Load(WordEnum):
    """Load of the prompt: under the low mark, under the high one, under the budget, at it."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2
    CRITICAL = 3


class Why(NamedTuple):
    """The contest a decision came from.

    `policy` is the number of its name and version; `budget` what the prompt may hold, `used` what
    it held, `need` what had to go or to come, all in tokens; `winner` the page it was for, 0 where
    it was for none. `candidates` could have been chosen; `cutoff` is the last score that was, and
    `losers` are the (score, page) of the three nearest that were not.
    """

    policy: int
    budget: int
    used: int
    need: int
    winner: int
    candidates: int
    cutoff: int
    losers: tuple[tuple[int, int], ...]


class PromptPart(WordEnum):
    """The parts of an assembled prompt, in the order they are counted."""

    CORE = 0  # what instructs, and the message itself
    IDENTITY = 1  # who the user is
    RULES = 2  # what is to be kept to where a topic comes up
    SUMMARIES = 3  # what topics and segments came to
    HINT = 4  # which topics there are to ask for
    CONVERSATION = 5  # the newest turns, as they were said
    FACTS = 6  # what is known and holds
    RECALLED = 7  # what was said before and answers the message
    EARLIER = 8  # what the user said before the conversation, in short
    EXPANDED = 9  # the segments of a topic that somebody asked for, or all that was said in them


class PromptContest(NamedTuple):
    """The choice within a part of an assembled prompt.

    `part` is the number of the part, `pages` how many of the pages found stand in it, `candidates` how many texts
    could have been chosen; `used` of `budget` tokens it took. `cutoff` is the least score that was chosen, and
    `losers` are the (score, page) of the three nearest that were not, in parts per million.
    """

    part: int
    pages: int
    candidates: int
    used: int
    budget: int
    cutoff: int
    losers: tuple[tuple[int, int], ...]


class Segment(Mutation, frozen=True, array_like=True, tag=3):
    """A segment of the session ends here; `summary` is the page that stands for it, `title` a cell."""

    NUMBER: ClassVar[int] = 3
    number: int
    summary: int | None = None
    title: CellRef | None = None


class Settings(Mutation, frozen=True, array_like=True, tag=7):
    """Settings of the kernel from here on: a cell of JSON with the changes (see specs/kernel.md)."""

    NUMBER: ClassVar[int] = 7
    told: CellRef


class FaultIn(Mutation, frozen=True, array_like=True, tag=20):
    """A page that was asked for comes into the prompt at `level`, or is shown in full again.

    `reference` is the position of what asked; `content` the position of what is shown; `tier` where
    the page was.
    """

    NUMBER: ClassVar[int] = 20
    page: int
    content: int
    level: int
    tokens: int
    reference: int
    why: Why
    tier: int = int(Tier.L2)


class FaultDenied(Mutation, frozen=True, array_like=True, tag=21):
    """A page that was asked for stays where it is; 0 where there is no such page."""

    NUMBER: ClassVar[int] = 21
    page: int
    reference: int
    because: int
    why: Why


class Prefetch(Mutation, frozen=True, array_like=True, tag=24):
    """A page comes into the prompt before anybody asks; `reference` is the wish it follows."""

    NUMBER: ClassVar[int] = 24
    page: int
    content: int
    level: int
    tokens: int
    reference: int
    why: Why


class Evict(Mutation, frozen=True, array_like=True, tag=25):
    """A page gives way: it leaves the prompt, or stays in it at a higher `level`, showing `content`.

    `tokens` is the room this makes. `why` is the contest; of those that went together the first
    tells it, and `first` is its position in the others. Where somebody asked there was none.
    """

    NUMBER: ClassVar[int] = 25
    page: int
    cause: int
    tokens: int
    score: int = 0
    level: int | None = None
    content: int | None = None
    why: Why | None = None
    first: int = 0


class Pin(Mutation, frozen=True, array_like=True, tag=27):
    """A page is held in the prompt from here on."""

    NUMBER: ClassVar[int] = 27
    page: int
    holder: int = 0


class Unpin(Mutation, frozen=True, array_like=True, tag=28):
    """A page is held no more; `why` where it had to yield."""

    NUMBER: ClassVar[int] = 28
    page: int
    holder: int = 0
    why: Why | None = None


class Reference(Mutation, frozen=True, array_like=True, tag=31):
    """A page is used, hit or miss alike, or wanted; `page` is 0 where no page has the name asked for.

    `level` is the one asked for, `reason` of a fault, `signal` of a wish; `evidence` a cell with the
    words that show it, `call` the one it was seen at.
    """

    NUMBER: ClassVar[int] = 31
    page: int
    use: int
    call: int = 0
    level: int = 0
    reason: int = 0
    signal: int = 0
    evidence: CellRef | None = None


class Cite(Mutation, frozen=True, array_like=True, tag=32):
    """The page `by`, which the model wrote, cites a page; `evidence` is a cell with the citation."""

    NUMBER: ClassVar[int] = 32
    page: int
    by: int
    evidence: CellRef | None = None


class Search(Mutation, frozen=True, array_like=True, tag=60):
    """The agent searched its pages: a cell with the query, what was found, how much there was.

    `recaller` is how it was asked, `tokens` what was given of it in words. Of an assembled prompt `contests` tell
    the choice within each part, in the order of its pages in `found`. `scores` are those that the pages of `found`
    were returned with, in their order and in parts per million; none where the answer had none.
    """

    NUMBER: ClassVar[int] = 60
    query: CellRef
    found: tuple[int, ...] = ()
    total: int = 0
    recaller: int = 0
    tokens: int = 0
    contests: tuple[PromptContest, ...] = ()
    scores: tuple[int, ...] = ()


class Recall(Mutation, frozen=True, array_like=True, tag=61):
    """Something was recalled from a page, and was right, or `corrected` by the user."""

    NUMBER: ClassVar[int] = 61
    page: int
    corrected: int = 0


class Pressure(Mutation, frozen=True, array_like=True, tag=62):
    """The load of the prompt changed class; `used` of `budget` tokens."""

    NUMBER: ClassVar[int] = 62
    level: int
    used: int
    budget: int


HANDED_IN = 0
"""The number of a policy that a program handed in: its decisions have their scores, and nobody can repeat them."""

POLICY_NAMES: dict[int, str] = {
    1: "lru@1", 2: "importance@1", 3: "modality@1", 4: "recency@1", 5: "lfu@1", 6: "s3fifo@1", 7: "demand@1",
    8: "recency@2", 9: "demand@2",
}  # fmt: skip
"""What the number of a policy stands for: its name and version. A number is never used for another."""

assert len(set(POLICY_NAMES.values())) == len(POLICY_NAMES), "a name and version is of one policy"
assert all("@" in name for name in POLICY_NAMES.values()), "a decision of long ago names the version that made it"
