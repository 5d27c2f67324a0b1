"""An index of a live session's pages by stems: ranks them for words, and finds pages that belong together.

It is kept in memory and follows the session: a text is read once, when words are first looked for after it came.
What is found follows from the session alone, not from when it was read: a process that starts afresh finds the same.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import NamedTuple

from vmstore.core.erasure import ErasedContent
from vmstore.core.page import Modality, PageType, Role
from vmstore.core.text.stems import terms
from vmstore.live.content_cache import ContentCache
from vmstore.live.transcript import Transcript
from vmstore.vm import signals
from vmstore.vm.claims.claims import values as values_of
from vmstore.vm.kernel.managed_page import ManagedPage
from vmstore.vm.kernel.state import State
from vmstore.vm.protocol.tool_calls import tool_called
from vmstore.vm.protocol.tools import memory_tools
from vmstore.vm.recall.postings import WINDOW_CHARS, Postings

ANSWER_CHARS_MAX = 120  # a shorter message says little without what it answers
SAYING_NOTHING = 2  # terms, up to which a message says nothing itself
READ = 256  # texts read at once
BEFORE, AFTER = 0.35, 0.15  # of the scores of its neighbours that a message gains
REPORTED = 0.8  # what a model says it did, beside what somebody decides or proposes
TOOL_OUTPUT = 0.5  # weight of what a tool printed, relative to what was said
SHARED, RAREST = 0.4, 3  # what later messages share of the weight of a page's rarest terms, of so many
LATER_MAX = 3
_READ = (Modality.TEXT, Modality.STRUCTURED)


class RecallMatch(NamedTuple):
    """A page that answers some words: its score, the terms it has of them, the pages that belong with it.

    `of` is the page that it belongs with itself, where it answers them only so.
    """

    page: int
    score: float
    terms: tuple[str, ...]
    beside: tuple[int, ...] = ()
    of: int = 0
    after: tuple[int, ...] = ()  # what may have taken its place: it is not to be shown without these
    share: float = 1.0  # of the weight of what is asked, as far as anybody said it, what it has


class RecallIndex:
    """The pages of one session by what they say."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        # A word that is rare in what people say may be in every log.
        self._said, self._printed = Postings(), Postings()
        self._turns = Postings()  # messages that may say that something is otherwise now
        self._turning: dict[int, None] = {}  # those of them with a word of change or decision
        self._read = 0  # pages looked at, in order
        self._updated = 0
        self._order: list[int] = []  # what user and model said, in order
        self._place: dict[int, int] = {}
        self._pairs: dict[int, int] = {}  # a short answer -> what it answers, and the other way round
        self._stating: dict[int, None] = {}  # pages that say something, and neither ask nor set a task alone
        self._likely: dict[int, float] = {}  # how likely a message is what somebody looks for, where not 1
        self._open: dict[int, None] = {}  # messages of the model that propose or ask
        self._unfit: dict[int, None] = {}  # calls of the memory's own tools

    @property
    def looked_at(self) -> int:
        """How many pages it looked at."""
        return self._read

    def follow(self, state: State, spoken: Transcript, forms: ContentCache) -> None:
        """Reads what came since."""
        new = [page for page in islice(spoken.pages, self._read, None) if _is_text(state.pages[page], spoken)]
        come = frozenset(new)
        updated = (page for page in dict.fromkeys(spoken.updated[self._updated :]) if page not in come)
        changed = [page for page in updated if _is_text(state.pages[page], spoken)]
        if any(state.pages[page].message for page in changed):  # what others are read by, as their neighbour or call
            self._forget()
            return self.follow(state, spoken, forms)
        self._read, self._updated = len(spoken.pages), len(spoken.updated)
        self._drop(changed)
        for some in _portions([*new, *changed]):
            first = {page: form.position for page in some if (form := state.pages[page].forms[0]) is not None}
            contents = forms.all(first.values())
            for page, position in first.items():
                if not isinstance(contents[position], ErasedContent):  # what stands for it says nothing of the page
                    self._add(state.pages[page], contents[position].decode("utf-8", "replace"), forms, state)
        return None

    def _drop(self, pages: Sequence[int]) -> None:
        """Forgets what pages said that stand in no message."""
        for postings in (self._said, self._printed):
            postings.drop(pages)
        for page in pages:
            for known in (self._likely, self._stating, self._open):
                known.pop(page, None)

    def _add(self, managed: ManagedPage, text: str, forms: ContentCache, state: State) -> None:
        called = tool_called(text) if managed.role == Role.ASSISTANT else ""
        own = memory_tools(state.settings is not None and state.settings.recall_tools)
        if called in own or (managed.answers < managed.page and managed.answers in self._unfit):
            if managed.message:
                self._unfit[managed.page] = None
            return
        if called:  # no answer by itself: a search finds it
            return
        if managed.role == Role.TOOL:
            self._printed.add(managed.page, text)
            return
        self._said.add(managed.page, text, self._answered(managed, text, forms, state) if managed.message else "")
        proposes = managed.role == Role.ASSISTANT and signals.proposes(text)
        reports = managed.message and managed.role == Role.ASSISTANT and not proposes
        if (likely := signals.likely(text) * (REPORTED if reports else 1.0)) != 1:
            self._likely[managed.page] = likely
        if signals.states(text):
            self._stating[managed.page] = None
        if proposes or (managed.role == Role.ASSISTANT and text.rstrip().endswith("?")):
            self._open[managed.page] = None
        if managed.message and (managed.role == Role.USER or proposes) and managed.page in self._stating:
            self._turns.add(managed.page, text)
            if signals.turns(text):
                self._turning[managed.page] = None

    def _answered(self, managed: ManagedPage, text: str, forms: ContentCache, state: State) -> str:
        """Takes in where a message stands; what a short answer says, in the words of what it answers."""
        if managed.role not in (Role.USER, Role.ASSISTANT):
            return ""
        if managed.page not in self._place:
            self._place[managed.page] = len(self._order)
            self._order.append(managed.page)
        before = self._neighbour(managed.page, -1)
        if managed.role != Role.USER or not before or len(text) > ANSWER_CHARS_MAX:
            return ""
        answers = before in self._open and signals.states(text)  # a task answers nothing, nor is a report answered
        if not answers and len(set(terms(text))) > SAYING_NOTHING:
            return ""
        self._pairs[managed.page], self._pairs[before] = before, managed.page
        form = state.pages[before].forms[0]
        content = b"" if form is None else forms.of(form.position)
        return "" if isinstance(content, ErasedContent) else content.decode("utf-8", "replace")[-WINDOW_CHARS:]

    def __contains__(self, page: int) -> bool:
        return page in self._said or page in self._printed

    def decides(self, page: int) -> bool:
        """Whether a page says how something is to be, which may have changed since: no report, no question or task."""
        return page in self._turns or (page in self._said and page not in self._place)

    def stated(self, term: str) -> int:
        """How many statements have a term."""
        return self._turns.frequency(term)

    def turns(self, page: int) -> bool:
        """Whether a statement has a word of deciding or of change."""
        return page in self._turning

    def tells(self, page: int) -> bool:
        """Whether a page is worth bringing back: it says something, or a tool printed it."""
        return page in self._stating or page in self._printed

    def names_since(self, page: int, whole: frozenset[str], telling: AbstractSet[str], new: Container[int]) -> bool:
        """Whether something stated after a page, but for what is new, has all of some terms or one of the telling."""
        since = self._turns.matches(
            dict.fromkeys(sorted(whole | telling), 1.0), lambda other: other > page and other not in new
        )
        return any(whole.issubset(match.terms) or not telling.isdisjoint(match.terms) for match in since.values())

    def later(self, page: int, text: str, topic: str, topic_of: Callable[[int], str]) -> tuple[int, ...]:
        """Messages after a page that may say otherwise of the same thing.

        Each names the whole `topic`, or speaks of a change and names what it was, and a part of the topic, unless it
        is heard to be about another one (`topic_of`); where the topic is one word or none it speaks of a change, and
        shares rare terms.
        """
        words, about = dict.fromkeys(terms(text), 1.0), dict.fromkeys(terms(topic), 1.0)
        of = frozenset(about)
        values = values_of(topic, text) if of else set()
        weights = {term: self._said.weight(term) for term in words}
        least = SHARED * sum(sorted(weights.values())[-RAREST:])
        near: list[tuple[bool, float, int]] = []
        for number, match in self._turns.matches(words | about, lambda other: other > page).items():
            shared, turns = frozenset(match.terms), number in self._turning
            weight = sum(weights.get(term, 0.0) for term in match.terms)
            whole = len(shared) > 1 and of <= shared and (len(of) > 1 or (turns and weight >= least))
            part = not values.isdisjoint(shared) and not of.isdisjoint(shared)
            if whole or (part and not apart(topic, topic_of(number))):
                near.append((turns, weight, number))
        return tuple(sorted(number for _, _, number in sorted(near)[-LATER_MAX:]))

    def ranked(self, asked: Mapping[str, float], looked_at: Callable[[int], bool]) -> list[RecallMatch]:
        """The pages that answer some weighted terms, best first; of equal ones the newer first.

        Terms that nearly all pages have find nothing.
        """
        ranked: list[RecallMatch] = []
        printed, spoken = _weights(self._printed, asked, self._printed), _weights(self._said, asked, self._turns)
        for page, match in self._printed.matches(asked, looked_at, common=False).items():
            ranked.append(RecallMatch(page, TOOL_OUTPUT * match.score, match.terms, share=_share(match.terms, printed)))
        found = self._said.matches(asked, looked_at, common=False)
        for page, match in found.items():
            score = match.score * self._likely.get(page, 1.0)
            for step, share in ((-1, BEFORE), (1, AFTER)):
                near = found.get(self._neighbour(page, step))
                score += share * near.score if near else 0.0
            pair = self._pairs.get(page)
            beside = () if pair is None else (pair,)
            ranked.append(RecallMatch(page, score, match.terms, beside, share=_share(match.terms, spoken)))
        ranked.sort(key=lambda one: (-one.score, -one.page))
        return ranked

    def _neighbour(self, page: int, step: int) -> int:
        """The message before or after one; 0 where there is none."""
        place = self._place.get(page)
        if place is None or not 0 <= place + step < len(self._order):
            return 0
        return self._order[place + step]


def apart(one: str, other: str) -> bool:
    """Whether two topics are of different things: each has a term that the other has not."""
    these, those = frozenset(terms(one)), frozenset(terms(other))
    return bool(these - those and those - these)


def _is_text(managed: ManagedPage, spoken: Transcript) -> bool:
    """Whether a page says something that may be asked for; it always does, or never, whatever becomes of it."""
    if managed.opaque or managed.modality not in _READ or managed.type in (PageType.RAW, PageType.VALUE):
        return False
    instructs = managed.message and managed.role in (Role.SYSTEM, Role.DEVELOPER)
    return not instructs and managed.page not in spoken.thoughts


def _weights(postings: Postings, asked: Mapping[str, float], stated: Postings) -> dict[str, float]:
    """Weights of terms that occur in anything stated; a term that occurs nowhere counts against no page."""
    return {term: weight * postings.weight(term) for term, weight in asked.items() if stated.has(term)}


def _share(having: Iterable[str], weights: Mapping[str, float]) -> float:
    """How much of some terms a page has, by what they weigh."""
    whole = sum(weights.values())
    return sum(weights.get(term, 0.0) for term in having) / whole if whole else 0.0


def _portions(pages: list[int]) -> list[list[int]]:
    return [pages[at : at + READ] for at in range(0, len(pages), READ)]
