"""METRICS as the facts say them: each number counted by itself, from the first settings on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, pairwise, takewhile
from typing import Any

from tests.vmql.worked import USES
from vmstore.core import mutation as m
from vmstore.core.decision import Cause, FaultReason, Use
from vmstore.core.page import Level, PageType

Row = dict[str, Any]
CREDITED = (Use.TOOL, Use.QUOTE, Use.REUSE)
# Of each number with a target what it should be: under or over a limit, or between two.
TARGETS = {
    **{"fault_rate": "under 0.05", "hit_rate": "over 0.8", "compression": "under 0.1", "utilisation": "over 0.9"},
    **{"prefetch_hit_rate": "over 0.6", "fault_latency_p95_ms": "under 500", "overhead": "under 0.1"},
    **{"recall_success": "over 0.95", "thrash_index": "under 0.5", "effective": "over 0.6"},
    **{"share_user_requested_recall": "0.4 to 0.6", "share_resolve_reference": "0.2 to 0.4"},
    **{"share_tool_prereq": "0.1 to 0.2", "share_speculative": "0 to 0.1"},
}
FLAGS = {
    "user_requested_recall": (0.2, 1.0, "the model asks on its own account too often"),
    "resolve_reference": (0.0, 0.6, "what is needed is too often not in the prompt"),
    "tool_prereq": (0.0, 0.4, "tools do not find the pages they need"),
    "speculative": (0.0, 0.2, "the budget goes into guesses"),
}


def metrics(naive: Any, session: str, position: int) -> list[Row]:
    """Every number of a session's memory; none of a session without a kernel."""
    settings = naive.model.settings(session, position)
    if settings is None:
        return []
    policy = {"default": "demand@2", "lru": "lru@1"}[settings.get("policy", "default")]
    rows = []
    for name, value in _Measured(naive.model, session, position).numbers():
        target = TARGETS.get(name)
        word = name.removeprefix("share_") if name.startswith("share_") else None
        rows.append(
            {
                "session": session,
                "policy": policy,
                "budget": settings.get("l0_tokens_max", 128_000),
                "metric": name,
                "value": value,
                "target": target,
                "met": None if target is None or value is None else _met(target, value),
                "flag": None if word is None else _flag(word, value),
            }
        )
    return rows


def _met(target: str, value: float) -> bool:
    if " to " in target:
        low, high = target.split(" to ")
        return float(low) <= value <= float(high)
    way, limit = target.split()
    return value < float(limit) if way == "under" else value > float(limit)


def _flag(reason: str, share: float | None) -> str | None:
    low, high, means = FLAGS[reason]
    if share is None or low <= share <= high:
        return None
    return f"{reason} is {share:.0%} of the model's faults: {means}"


def _share(part: float, whole: float) -> float | None:
    return round(part / whole, 6) if whole else None


class _Here:
    """What the prompt holds as the kernel's decisions have it, after the facts up to a position."""

    def __init__(self, facts: list[tuple[Any, int, int]]) -> None:
        self.forms: dict[int, dict[int, int | None]] = {}  # the tokens of each page at each level of its last version
        self.version: dict[int, int] = {}
        self.shown: dict[int, int] = {}  # at which level each page is in the prompt
        live = False
        for fact, _, _ in facts:
            live = live or isinstance(fact.mutation, m.Settings)
            self._take(fact.position, fact.mutation, live)

    def _take(self, position: int, mutation: Any, live: bool) -> None:
        match mutation:
            case m.Create(type=kind, tokens=tokens):
                self.forms[position], self.version[position] = {0: tokens}, 1
                if live and kind not in (PageType.RAW, PageType.VALUE):
                    self.shown[position] = 0
            case m.Update(page=page, version=version, tokens=tokens):
                self.forms[page], self.version[page] = {0: tokens}, version
                if page in self.shown:
                    self.shown[page] = 0
            case m.Compress(page=page, version=version, level=level, tokens=tokens) if version == self.version[page]:
                self.forms[page][level] = tokens
            case m.FaultIn(page=page, level=level) | m.Prefetch(page=page, level=level):
                if live and level in self.forms[page]:
                    self.shown[page] = level
            case m.Evict(page=page, level=level) if page in self.shown and (level or 0) in self.forms[page]:
                del self.shown[page]
                if level is not None:
                    self.shown[page] = level

    @property
    def tokens(self) -> int:
        """What they take."""
        return sum(self.forms[page][level] or 0 for page, level in self.shown.items())


class _Measured:
    """The numbers of one session up to a position."""

    def __init__(self, model: Any, session: str, position: int) -> None:
        self.model, self.session, self.position = model, session, position
        self.facts = list(model.moments(session, position))
        first = next(at for at, (fact, _, _) in enumerate(self.facts) if isinstance(fact.mutation, m.Settings))
        self.live = self.facts[first:]
        self.turn = self.facts[-1][1]

    # ---- what is asked again and again

    def of(self, *kinds: type) -> list[tuple[Any, int, Any]]:
        """Position, turn and mutation of each of some kinds since there is a budget."""
        return [(f.position, turn, f.mutation) for f, turn, _ in self.live if isinstance(f.mutation, kinds)]

    def before(self, position: int) -> _Here:
        """The prompt as it is at a position."""
        return _Here([row for row in self.facts if row[0].position <= position])

    def factor(self, position: int) -> int:
        """What makes real tokens of estimated ones, in parts per million."""
        configured = [
            f.mutation for f, _, _ in self.facts if isinstance(f.mutation, m.Configure) and f.position <= position
        ]
        return configured[-1].factor_ppm if configured else 1_000_000

    def budget(self, position: int) -> int:
        """What a prompt may hold there, in estimated tokens."""
        tokens = self.model.settings(self.session, position).get("l0_tokens_max", 128_000)
        return int(tokens * 1_000_000 // self.factor(position))

    # ---- the numbers

    def numbers(self) -> Iterator[tuple[str, float | None]]:
        """Each by name."""
        head, last = self.before(self.position), self.position
        yield from self._faults()
        yield from self._decided()
        packs = self.of(m.Pack)
        shares = [pack.tokens * 1_000_000 // budget if (budget := self.budget(at)) else 0 for at, _, pack in packs]
        yield "utilisation", _share(sum(shares), len(packs) * 1_000_000)
        yield "utilisation_peak", max(shares) / 1_000_000 if packs else None
        yield "l0_peak", max((pack.tokens * self.factor(at) // 1_000_000 for at, _, pack in packs), default=0)
        yield "l0_tokens", head.tokens * self.factor(last) // 1_000_000
        yield "l0_available", max(0, (self.budget(last) - head.tokens) * self.factor(last) // 1_000_000)
        yield "calls_over_budget", sum(pack.tokens > self.budget(at) for at, _, pack in packs)
        yield from self._prefix()
        made = self.of(m.Compress)
        yield "forms", len(made)
        abstracts = [(at, act) for at, _, act in made if act.level == Level.ABSTRACT]
        yield (
            "compression",
            _share(
                sum(act.tokens for _, act in abstracts),
                sum(self.before(at).forms[act.page][0] or 0 for at, act in abstracts),
            ),
        )
        recalls = [act.corrected for _, _, act in self.of(m.Recall)]
        yield "recalls", len(recalls)
        yield "recall_success", _share(len(recalls) - sum(recalls), len(recalls))
        yield "effective", _share(self._cited(), sum(pack.tokens for _, _, pack in packs))
        yield from self._times()
        yield "call_cost", _share(self._cost(), 100 * len(packs))
        lost = zip(packs, self._voided(), strict=True)
        yield "invalidated", sum(tokens if pack.voided is None else pack.voided for (_, _, pack), tokens in lost)
        yield from self._searched()
        yield "pages_l0", len(head.shown)
        yield "pages_l2", len(head.forms) - len(head.shown)
        yield from self._reasons()

    def _faults(self) -> Iterator[tuple[str, float | None]]:
        turns, references = self.of(m.Turn), [r for r in self.of(m.Reference) if r[2].use != Use.SIGNAL]
        served, denied = self.of(m.FaultIn), self.of(m.FaultDenied)
        faults = len(served) + len(denied)
        yield "turns", len(turns)
        yield "calls", len(self.of(m.Pack))
        yield "references", len(references)
        yield "hits", len(references) - faults
        yield "faults", faults
        yield "served", len(served)
        yield "denied", len(denied)
        yield "fault_tokens", sum(act.tokens for _, _, act in served)
        yield "fault_rate", _share(faults, len(references))
        yield "hit_rate", _share(len(references) - faults, len(references))
        yield "faults_a_turn", _share(faults, len(turns))
        each = [len(list(some)) for _, some in groupby(turn for _, turn, _ in sorted(served + denied, key=_first))]
        yield "faults_a_turn_max", max(each, default=0)
        yield "model_faults", sum(self._asked(*row[1:], row[0]) is not None for row in served + denied)
        closed = [(turn - 1, at) for at, turn, _ in turns[1:]]
        indexes = [self._repeated(turn, at) for turn, at in closed]
        now = self._repeated(self.turn, self.position + 1)
        yield "thrash_index", _share(sum(indexes) + now, len(turns) * 1_000_000)
        yield "thrash_peak", max([*indexes, now]) / 1_000_000
        yield "thrash_now", now / 1_000_000

    def _asked(self, turn: int, answer: Any, at: int) -> Any:
        """The fault of the model that an answer answers, unless it stands in another turn or was answered before."""
        references = self.of(m.Reference)
        asked = next((row for row in references if row[0] == answer.reference and row[1] == turn), None)
        earlier = [row for row in self.of(m.FaultIn, m.FaultDenied) if row[0] < at and row[1] == turn]
        if asked is None or asked[2].use != Use.FAULT or any(row[2].reference == answer.reference for row in earlier):
            return None
        return asked[2]

    def _repeated(self, turn: int, upto: int) -> int:
        """Faults of what was missed in the five turns up to one already, a turn, in parts per million."""
        missed = [
            self._topic(act.page)
            for at, when, act in self.of(m.FaultIn, m.FaultDenied)
            if act.page and turn - 5 < when and at < upto
        ]
        return (len(missed) - len(set(missed))) * 1_000_000 // max(1, min(5, turn))

    def _topic(self, page: int) -> Any:
        """The first topic that a page was said to be about as it was made; the page itself where none was."""
        born = next((act for at, _, act in self.of(m.Create) if at == page), None)
        labels = b"" if born is None or born.labels is None else self.model.cell(self.session, page, born.labels)
        matched = re.search(rb'"topic:([^"]*)"', labels)
        return page if matched is None or not matched[1] else matched[1]

    def _decided(self) -> Iterator[tuple[str, float | None]]:
        gone = [act for _, _, act in self.of(m.Evict) if act.cause != Cause.THOUGHT]
        yield "evictions", sum(act.level is None for act in gone)
        yield "freed_tokens", sum(act.tokens for act in gone)
        yield "compressions", sum(act.level is not None for act in gone)
        waiting, hits = set[int](), 0
        for fact, _, _ in self.live:
            match fact.mutation:
                case m.Prefetch(page=page):
                    waiting.add(page)
                case m.Evict(page=page, level=None, cause=cause) if cause != Cause.THOUGHT:
                    waiting.discard(page)
                case m.Cite(page=page) | m.Reference(page=page) as used if page in waiting:
                    if isinstance(used, m.Cite) or used.use != Use.SIGNAL:
                        waiting.discard(page)
                        hits += page in self.before(fact.position).shown
        fetched = len(self.of(m.Prefetch))
        yield "prefetches", fetched
        yield "prefetch_hits", hits
        yield "prefetch_hit_rate", _share(hits, fetched)

    # ---- what packs show

    def _prompts(self) -> list[dict[int, tuple[int, int, int, int]]]:
        """Rank, page, content and tokens of each page that the packs since the settings put into each prompt."""
        here: dict[int, tuple[int, int, int, int]] = {}
        prompts = []
        for at, _, pack in self.of(m.Pack):
            forms = self.before(at).forms
            here = {page: shown for page, shown in here.items() if page not in pack.left}
            for page, content, level, rank in pack.entered:
                here[page] = rank, page, content, forms[page].get(level) or 0
            prompts.append(dict(here))
        return prompts

    def _voided(self) -> list[int]:
        """The tokens of each request before from the first place on where the next has another content."""
        prompts = [sorted(prompt.values()) for prompt in [{}, *self._prompts()]]
        lost = []
        for before, after in pairwise(prompts):
            pairs = zip(before, after, strict=False)
            same = len(list(takewhile(lambda pair: pair[0][1:3] == pair[1][1:3], pairs)))
            lost.append(sum(shown[3] for shown in before[same:]))
        return lost

    def _prefix(self) -> Iterator[tuple[str, float | None]]:
        voided = self._voided()
        yield "prefix_voided", sum(voided)
        yield "prefix_voided_a_call", _share(sum(voided), len(voided))
        yield "prefix_cost", None

    def _cost(self) -> int:
        """What all calls cost: a tenth of a token where it was kept, one and a quarter where it was not."""
        cost = before = 0
        for (_, _, pack), lost in zip(self.of(m.Pack), self._voided(), strict=True):
            cached = min(pack.tokens, max(0, before - lost))
            cost += 10 * cached + 125 * (pack.tokens - cached)
            before = pack.tokens
        return cost

    def _cited(self) -> int:
        """The tokens of what each call was sent and was cited, quoted or read again before the next, each page once."""
        prompts, cited = [{}, *self._prompts()], set[tuple[int, int]]()
        packs = 0
        for fact, _, call in self.live:
            packs += isinstance(fact.mutation, m.Pack)
            match fact.mutation:
                case m.Cite(page=page):
                    cited.add((packs, page))
                case m.Reference(page=page, use=use, call=of) if use in CREDITED:
                    cited.add((packs + (of > call), page))
        return sum(prompts[at][page][3] for at, page in cited if at < len(prompts) and page in prompts[at])

    # ---- the clock, searches, reasons

    def _times(self) -> Iterator[tuple[str, float | None]]:
        began, ended = self.live[0][0].at, max(0, *(fact.at for fact, _, _ in self.live))
        evictions = sum(act.level is None and act.cause != Cause.THOUGHT for _, _, act in self.of(m.Evict))
        yield "evictions_a_minute", round(evictions * 60_000_000 / (ended - began), 6) if ended > began else None
        waiting, took = list[Any](), list[int]()
        for fact, _, _ in self.live:
            if isinstance(fact.mutation, m.FaultIn):
                waiting.append(fact)
            elif isinstance(fact.mutation, m.Pack):
                took += [max(0, fact.at - asked.at) for asked in waiting if asked.cells is not fact.cells]
                waiting = []
        took.sort()
        yield "fault_latency_p95_ms", took[-(-len(took) * 95 // 100) - 1] / 1000 if took else None
        mutations = [fact.mutation for fact, _, _ in self.live]
        written = sum(len(m.wire(act)) + 64 * _cells(act) for act in mutations)
        yield "overhead", _share(written, sum(act.size for act in mutations if isinstance(act, m.Create | m.Update)))

    def _searched(self) -> Iterator[tuple[str, float | None]]:
        searches, pages_given, used, there = self.of(m.Search), 0, 0, 0
        uses = [
            (at, turn, act.page)
            for at, turn, act in self.of(m.Cite, m.Reference)
            if isinstance(act, m.Cite) or act.use in USES
        ]
        for at, turn, search in searches:
            pages, here = set(search.found), self.before(at).shown
            pages_given += len(pages)
            used += len(pages & {page for later, when, page in uses if later > at and when < turn + 2})
            there += len(pages & here.keys())
        yield "searches", len(searches)
        yield "searched_pages", pages_given
        yield "searched_used", used
        yield "searched_used_share", _share(used, pages_given)
        yield "searched_in_prompt", there
        yield "searched_tokens", sum(search.tokens for _, _, search in searches)

    def _reasons(self) -> Iterator[tuple[str, float | None]]:
        asked = [act.reason for _, _, act in self.of(m.Reference) if act.use == Use.FAULT]
        answered = [self._asked(turn, act, at) for at, turn, act in self.of(m.FaultDenied)]
        refused = [act.reason for act in answered if act is not None]
        for reason in FaultReason:
            count = asked.count(reason)
            yield f"share_{reason.word}", _share(count, len(asked))
            yield f"success_{reason.word}", _share(count - refused.count(reason), count)


def _first(row: tuple[Any, ...]) -> Any:
    return row[0]


def _cells(mutation: Any) -> int:
    """How many single cells a mutation names."""
    kinds = type(mutation).__annotations__.items()
    return sum(getattr(mutation, name) is not None for name, form in kinds if form.startswith("CellRef"))
