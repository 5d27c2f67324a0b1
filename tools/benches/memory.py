"""Memory: a story's decisions asked for long after, of vmstore and of a window with a summary or BM25 beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from bootstrap import ROOT

import vmstore
from benches.parts.rivals import RIVALS, Rival
from benches.parts.rounds import LOWER, Bench, Goal, MissingError, Row, row
from benches.parts.tale import Deed, Question, Statement, Tale, tale
from benches.parts.unseen import UNSEEN
from benches.parts.wordings import FIRST
from benches.parts.wordings_file import RIGHT, WRONG, FileTale, Sought, file_tale

SYSTEM = "You help a team build a shop. Answer from what was said."
SEEDS = (1, 2)
TURNS, DECISIONS = (300, 60), (60, 15)
CACHED, WRITTEN = 0.1, 1.25  # what a token costs that the provider has kept, and one that it has not
FAULTS = 3
WINDOW_FROM = 1e6  # what stands in a window is later than what was brought back into it
HELD_OUT = ROOT / "tests" / "vm" / "decisions.jsonl"

SETS = {"unseen": UNSEEN, "first": FIRST}


FILE = "--wordings FILE"
FILE_BUDGETS = (8_000, 4_000, 16_000)


def goals(name: str) -> dict[int, dict[str, Goal]]:
    """What must hold of a set's story, by budget and column; nobody tunes on the set `unseen` or on a file."""
    fields = {
        8_000: {
            "now": Goal(f"{name}, 8,000 tokens: current decision at first look, per cent", 93),
            "now_after": Goal(f"{name}, 8,000 tokens: current decision after faults, per cent", 97),
            "then": Goal(f"{name}, 8,000 tokens: earlier value and why at first look, per cent", 92),
            "stale": Goal(f"{name}, 8,000 tokens: stale answers, per cent of what was taken back", 2, LOWER),
        },
        4_000: {"now": Goal(f"{name}, 4,000 tokens: current decision at first look, per cent", 92)},
        16_000: {"now": Goal(f"{name}, 16,000 tokens: current decision at first look, per cent", 93)},
    }
    return {budget: fields[budget] for budget in (FILE_BUDGETS if name == FILE else SETS[name].budgets)}


OVER = Goal("calls over budget, all budgets", 0, LOWER)
AHEAD = {
    name: Goal(f"{name}, 8,000 tokens: columns in which window plus BM25 is ahead", 0, LOWER) for name in (*SETS, FILE)
}
GOALS = (
    *(goal for name in (*SETS, FILE) for columns in goals(name).values() for goal in columns.values()),
    *AHEAD.values(),
    OVER,
)


Asked = Question | Sought


class Score(NamedTuple):
    """How a contender did: shares in per cent, tokens and cost a call.

    `charged` is the cost where the requests that a miss takes on top are charged to the call that missed: those that
    were sent, or, of who cannot look for pages, the same request once more.
    """

    now: float
    now_after: float
    then: float
    then_after: float
    stale: float
    tokens: float
    cost: float
    charged: float
    over: int
    calls: int
    faults: float


def measure(bench: Bench) -> Iterator[Row]:
    """Every contender at every budget, on the same stories; the set that nobody tuned on comes first."""
    seeds = SEEDS[: bench.size(len(SEEDS), 1)]
    held_out = HELD_OUT if bench.held_out else None
    if held_out is not None and not held_out.is_file():
        raise MissingError(f"{held_out} is not there")
    over: list[float] = []
    ahead: dict[str, list[float]] = {}
    for name, tales in _stories(bench, seeds, held_out):
        for budget, columns in goals(name).items():
            scores: dict[str, list[Score]] = {}
            for each_tale in tales:
                scores.setdefault("vmstore", []).append(Watch(budget, each_tale).live())
                for contender, rival in RIVALS.items():
                    scores.setdefault(contender, []).append(Watch(budget, each_tale).rival(rival(budget, SYSTEM)))
            for contender, other_score in scores.items():
                figures = "  ".join(f"{k} {mean(v):.4g}" for k, v in _columns(other_score))
                bench.say(f"  {name} {budget:6,} {contender:22}{figures}")
            ours = scores["vmstore"]
            over += [score.over for score in ours]
            for column, goal in columns.items():
                yield row(goal, [getattr(score, column) for score in ours])
            if name not in ahead:
                theirs = scores["window+bm25"]
                ahead[name] = [_ahead(a, b) for a, b in zip(ours, theirs, strict=True)]
    for name, counts in ahead.items():
        yield row(AHEAD[name], counts)
    yield row(OVER, over)


def _stories(
    bench: Bench, seeds: Sequence[int], held_out: Path | None
) -> Iterator[tuple[str, Sequence[Tale | FileTale]]]:
    """The stories of each set by its name; with a file its story alone, the questions in the order of each seed."""
    if bench.wordings is None:
        for name, words in SETS.items():
            yield name, [tale(seed, bench.size(*TURNS), bench.size(*DECISIONS), held_out, words) for seed in seeds]
        return
    if not bench.wordings.is_file():
        raise MissingError(f"{bench.wordings} is no file")
    most = bench.size(0, DECISIONS[1]) or None
    yield FILE, [file_tale(bench.wordings, seed, most) for seed in seeds]


def _columns(scores: Sequence[Score]) -> list[tuple[str, list[float]]]:
    return [(name, [float(getattr(score, name)) for score in scores]) for name in Score._fields]


def _ahead(ours: Score, theirs: Score) -> int:
    """In how many columns another is ahead."""
    more = ("now", "now_after", "then", "then_after")
    less = ("stale", "tokens", "cost", "over")
    return sum(getattr(theirs, name) > getattr(ours, name) for name in more) + sum(
        getattr(theirs, name) < getattr(ours, name) for name in less
    )


class Watch:
    """Sees each request of one contender as it is sent, and keeps what it costs and what can be read in it."""

    def __init__(self, budget: int, other_tale: Tale | FileTale) -> None:
        self.budget = budget
        self.tale = other_tale
        self.tokens: list[int] = []
        self.costs: list[float] = []
        self.faults = 0
        self.misses: list[str] = []
        self._again = 0  # requests sent because the one before missed
        self._unsent = 0.0  # what such requests would cost of who sends none
        self._last = ""
        self._seen: list[tuple[Asked, str | None, str | None]] = []  # what it answers at first look, and in the end

    def sees(self, request: dict[str, Any], again: bool = False) -> None:
        """Counts a request: what it has in common with the one before is cached; `again` where that one missed."""
        self._again += again
        text = json.dumps(request, ensure_ascii=False, separators=(",", ":"))
        same = common(text, self._last)
        self.tokens.append(-(-len(text) // 4))
        self.costs.append((CACHED * same + WRITTEN * (len(text) - same)) / 4)
        self._last = text

    # ---- contenders

    def rival(self, each_rival: Rival) -> Score:
        """A contender without a store: it makes a request of what it was told."""
        for deed in self.tale.deeds:
            self._tell(each_rival, deed)
        for question in self.tale.questions:
            each_rival.user(question.text)
            request = each_rival.request()
            self.sees(request)
            answer = reads(request, question)
            self._unsent += CACHED * self.tokens[-1] if answer is None else 0.0
            each_rival.assistant("I see.")
            self._seen.append((question, answer, answer))
        return self.score()

    def _tell(self, rival: Rival, deed: Deed) -> None:
        if deed.role == "user":
            rival.user(deed.texts[0])
            return
        self.sees(rival.request())
        if deed.role == "assistant":
            rival.assistant(deed.texts[0])
        else:
            rival.tools(deed.texts)

    def live(self) -> Score:
        """vmstore, with its own loop for the questions."""
        with vmstore.memory_store() as store:
            session = store.live_session("tale", l0_tokens_max=self.budget, system=SYSTEM)
            for number, deed in enumerate(self.tale.deeds):
                if deed.role == "user":
                    session.user(deed.texts[0])
                    continue
                self.sees(session.pack().request)
                if deed.role == "assistant":
                    session.assistant(deed.texts[0])
                    continue
                ids = [f"call_{number}_{nth}" for nth in range(len(deed.texts))]
                session.assistant(asking(ids))
                for name, text in zip(ids, deed.texts, strict=True):
                    session.tool(name, text)
            for question in self.tale.questions:
                session.user(question.text)
                reader = Reader(self, question)
                session.run(reader)
                self._seen.append((question, reader.first, reader.last))
                self.faults += reader.faults
        return self.score()

    def score(self) -> Score:
        """What came of it."""
        now = [row for row in self._seen if row[0].then is None]
        then = [row for row in self._seen if row[0].then is not None]
        changed = [row for row in now if row[0].stale]
        self.misses = [
            f"{q.wording} {'same' if q.same else 'other'}: {q.text}" for q, _, last in self._seen if last != RIGHT
        ]
        self.first_misses = [q for q, first, _ in self._seen if first != RIGHT]
        return Score(
            _share(first == RIGHT for _, first, _ in now),
            _share(last == RIGHT for _, _, last in now),
            _share(first == RIGHT for _, first, _ in then),
            _share(last == RIGHT for _, _, last in then),
            _share(last == WRONG for _, _, last in changed),
            mean(self.tokens),
            mean(self.costs),
            (sum(self.costs) + self._unsent) / (len(self.costs) - self._again),
            sum(tokens > self.budget for tokens in self.tokens),
            len(self.tokens),
            self.faults / max(1, len(self._seen)),
        )  # fmt: skip


def _share(actual: Iterable[bool]) -> float:
    hits = list(actual)
    return 100 * sum(hits) / len(hits) if hits else 0.0


def common(text: str, other: str) -> int:
    """How many characters two texts begin with that are the same."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text[:middle] == other[:middle] else (low, middle - 1)
    return low


def asking(ids: Sequence[str]) -> dict[str, Any]:
    """An assistant's message that calls a tool for each id."""
    function = {"name": "read", "arguments": '{"path": "notes"}'}
    calls = [{"id": name, "type": "function", "function": function} for name in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


# ---- the reader


def reads(request: dict[str, Any], question: Asked) -> str | None:
    """What somebody who reads a request, and nothing else, answers: rightly, with what was taken back, or not at all.

    Of two statements the later holds: the one of the greater number in its label, a claim before all that was said.
    """
    lines = list(_lines(request))
    if isinstance(question, Sought):
        return question.read(lines)
    now, old = _last(lines, question.now, question.subject), None
    for statement in (question.then,) if question.then else question.stale:
        old = max(
            (case for case in (old, _last(lines, statement, question.subject, question.now.value)) if case is not None),
            default=None,
        )
    if question.then is not None:
        texts = [_line_with(lines, question.now), _line_with(lines, question.then)]
        return RIGHT if all(text is not None for text in texts) or (texts[0] and _has(question, texts[0])) else None
    if now is None:
        return None if old is None else WRONG
    return RIGHT if old is None or old <= now else WRONG


def _has(question: Question, text: str) -> bool:
    """Whether what took a decision back tells both what held before and why."""
    return question.then is not None and question.then.value in text


def _last(lines: Sequence[tuple[float, str]], statement: Statement, subject: str, new: str = "") -> float | None:
    """Where a statement stands last, or a claim that says the same; None where it cannot be read.

    A claim that says the `new` value beside it tells that this one is past.
    """
    numbers: list[float] = []
    thing = subject.removeprefix("the ").casefold().split()
    for number, (at, text) in enumerate(lines):
        claim = re.search(r"Decision: (.*)", text, re.DOTALL)
        value = all(each_text in text for each_text in statement.texts)
        if claim is None:
            numbers += [at] if value else []
            continue
        casefold = claim[1].casefold()
        if value or (statement.value.casefold() in casefold and all(word in casefold for word in thing)):
            numbers += [] if new and new.casefold() in casefold else [1e9 + number]
    return max(numbers, default=None)


def _line_with(lines: Sequence[tuple[float, str]], statement: Statement) -> str | None:
    return next((text for _, text in lines if all(each_text in text for each_text in statement.texts)), None)


def _lines(request: dict[str, Any]) -> Iterator[tuple[float, str]]:
    """The texts of a request, each with the number of the page or message it is labelled with.

    A message of the talk without a label stands in a window: it is later than what was brought back with one.
    """
    for number, message in enumerate(request["messages"]):
        later = WINDOW_FROM + number if message["role"] in ("user", "assistant") else 0.0
        content = message.get("content") or ""
        text = content if isinstance(content, str) else "\n\n".join(part.get("text", "") for part in content)
        for line in re.split(r"\n(?=[A-Z] \()|\n\n(?=\[p?\d)", text):
            label = re.match(r"[A-Z] \(p(\d+)|\[p?(\d+)", line)
            body = re.match(r"[A-Z] \([^)]*\): (\".*\")\s*\Z", line, re.DOTALL)
            if body:
                with suppress(ValueError):
                    line = json.loads(body[1])
            yield (float(label[1] or label[2]) if label else later), line


class Reader:
    """A model that reads and does not think: where the answer is missing it searches, then asks for pages."""

    def __init__(self, watch: Watch, question: Asked) -> None:
        self.first: str | None = None
        self.last: str | None = None
        self.faults = 0
        self._watch, self._question = watch, question
        self._calls = 0

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        """The response to a request."""
        self._watch.sees(request, again=self._calls > 0)
        self.last = reads(request, self._question)
        if not self._calls:
            self.first = self.last
        self._calls += 1
        if self.last is None and self.faults < FAULTS:
            if self._calls == 1:
                return _calls("search_pages", {"query": self._question.text, "limit": 5}, self._calls)
            if self.faults < len(pages := _results(request)):
                self.faults += 1
                return _calls("page_fault", {"page_id": pages[self.faults - 1], "target_level": 0}, self._calls)
        return {"choices": [{"message": {"role": "assistant", "content": "I see."}, "finish_reason": "stop"}]}


def _results(request: dict[str, Any]) -> list[str]:
    """The pages that the last search found."""
    texts: list[str] = []
    for message in request["messages"]:
        if message["role"] == "tool" and '"results"' in str(message["content"]):
            text = str(message["content"])
            document = json.loads(text[text.index("{") :])
            texts = [result["page_id"] for result in document.get("results", [])]
    return texts


def _calls(tool: str, arguments: dict[str, Any], number: int) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"vm_{number}", "type": "function", "function": function}],
    }
    return {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
