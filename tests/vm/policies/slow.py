"""The policies as anybody would write them down: a list of pages, and every one looked at for each choice."""

from __future__ import annotations

import copy
import itertools
from decimal import Decimal

from vmstore.core.page import Modality, PageType
from vmstore.vm.policies.fixed_point import OCTAVE, exp2, log2
from vmstore.vm.policies.policy import PolicyMoment, ScoredPage
from vmstore.vm.policies.resident import Resident

CLASS = 2**50
KEPT = {PageType.SUMMARY: 1, PageType.PROCEDURE: 1, PageType.CLAIM: 2, PageType.INDEX: 2}
MEDIA = [Modality.VIDEO, Modality.AUDIO, Modality.IMAGE]


class Slow:
    """The pages here as they are, and when each was ever used."""

    def __init__(self) -> None:
        self.here: dict[int, Resident] = {}
        self.used: dict[int, list[int]] = {}

    def enter(self, page: Resident, now: PolicyMoment) -> None:
        """A page comes."""
        self.touch(page, now)

    def touch(self, page: Resident, now: PolicyMoment) -> None:
        """A page is used, or changes."""
        self.here[page.page] = copy.copy(page)
        uses = self.used.setdefault(page.page, [])
        if page.used not in uses:
            uses.append(page.used)

    def leave(self, page: Resident, now: PolicyMoment, *, evicted: bool) -> None:
        """A page goes."""
        del self.here[page.page]

    def score(self, page: Resident, now: PolicyMoment) -> int:
        """What a page is worth within its class."""
        raise NotImplementedError

    def victims(self, now: PolicyMoment) -> list[ScoredPage]:
        """Every page, by class and score, older first."""
        return sorted(
            ScoredPage(CLASS * KEPT.get(item.type, 0) + self.score(item, now), item.page) for item in self.here.values()
        )


class SlowLRU(Slow):
    def score(self, page: Resident, now: PolicyMoment) -> int:
        return page.used


class SlowImportance(Slow):
    def score(self, page: Resident, now: PolicyMoment) -> int:
        return 1_000_000 * page.used + 16 * 3 * page.importance  # at a budget of 3,000


class SlowModality(Slow):
    def score(self, page: Resident, now: PolicyMoment) -> int:
        rank = MEDIA.index(page.modality) if page.modality in MEDIA else len(MEDIA)
        return 2**46 * rank + page.used


class SlowRecency(Slow):
    def score(self, page: Resident, now: PolicyMoment) -> int:
        left = 500_000 * (Decimal("-0.1") * (now.turn - page.used_turn)).exp()
        return int(left)


class SlowRecency2(SlowRecency):
    def score(self, page: Resident, now: PolicyMoment) -> int:
        return super().score(page, now) + (300 * page.similarity + 200 * page.anchor) // 1000


class SlowLFU(Slow):
    """Ages by the score of what it sent away."""

    def __init__(self) -> None:
        super().__init__()
        self.age = 0
        self.ages: dict[int, int] = {}

    def enter(self, page: Resident, now: PolicyMoment) -> None:
        self.ages[page.page] = self.age
        super().enter(page, now)

    def touch(self, page: Resident, now: PolicyMoment) -> None:
        if page.used == now.reference:
            self.ages[page.page] = self.age
        super().touch(page, now)

    def leave(self, page: Resident, now: PolicyMoment, *, evicted: bool) -> None:
        if evicted:
            self.age = max(self.age, self.score(self.here[page.page], now))
        super().leave(page, now, evicted=evicted)

    def score(self, page: Resident, now: PolicyMoment) -> int:
        return self.ages[page.page] + (1 + page.uses) * (300_000 + page.importance)


class SlowDemand(Slow):
    """Adds up every use of a page again."""

    def __init__(self) -> None:
        super().__init__()
        self.first: dict[int, int] = {}

    def touch(self, page: Resident, now: PolicyMoment) -> None:
        self.first.setdefault(page.page, page.uses)
        super().touch(page, now)

    def score(self, page: Resident, now: PolicyMoment) -> int:
        uses = self.used[page.page]
        apart = [late for early, late in itertools.pairwise(uses) if late - early > 32]
        weight = (2 + self.first[page.page]) * exp2(64 * uses[0] // 4000) + sum(exp2(64 * at // 4000) for at in apart)
        size = 200 * OCTAVE // 1000 * page.tokens.bit_length()
        rate = log2(weight) + 4 * OCTAVE * (page.importance - 500_000) // 1_000_000 - now.reference * OCTAVE // 4000
        start = log2(2 * exp2(0)) + log2(208) * 3 // 2
        return size + max(rate, start - log2(now.reference - page.used + 8) * 3 // 2)


class SlowDemand2(SlowDemand):
    """The same with what results and calls of tools are worth."""

    def score(self, page: Resident, now: PolicyMoment) -> int:
        """The greater of warmth and rate."""
        uses, bits = self.used[page.page], page.tokens.bit_length()
        apart = [late for early, late in itertools.pairwise(uses) if late - early > 32]
        weight = (2 + self.first[page.page]) * exp2(64 * uses[0] // 4000) + sum(exp2(64 * at // 4000) for at in apart)
        rate = log2(weight) + 4 * OCTAVE * (page.importance - 500_000) // 1_000_000 - now.reference * OCTAVE // 4000
        warm = log2(2 * exp2(0)) + log2(216) * 3 // 2 - log2(now.reference - page.used + 16) * 3 // 2
        tool = page.type is PageType.ARTIFACT
        if tool or page.modality is Modality.STRUCTURED:
            doublings = (page.uses + 1).bit_length() - 1
            warm += (800 if tool else 500) * OCTAVE // 1000 + 250 * OCTAVE // 1000 * (bits - 8)
            warm -= 300 * OCTAVE // 1000 * doublings
            rate -= 6 * OCTAVE
        return 200 * OCTAVE // 1000 * bits + max(rate, warm)


class SlowS3FIFO(Slow):
    """Two lists for each class, walked through for each choice and put back as they were."""

    def __init__(self, budget: int) -> None:
        super().__init__()
        self.most = budget // 10
        self.short: dict[int, list[int]] = {0: [], 1: [], 2: []}
        self.long: dict[int, list[int]] = {0: [], 1: [], 2: []}
        self.left: dict[int, list[int]] = {0: [], 1: [], 2: []}
        self.hits: dict[int, int] = {}

    def enter(self, page: Resident, now: PolicyMoment) -> None:
        kept = KEPT.get(page.type, 0)
        back = page.page in self.left[kept]
        if back:
            self.left[kept].remove(page.page)
        (self.long if back else self.short)[kept].append(page.page)
        self.hits[page.page] = 0
        super().touch(page, now)

    def touch(self, page: Resident, now: PolicyMoment) -> None:
        if page.uses > self.here[page.page].uses:
            self.hits[page.page] = min(3, self.hits[page.page] + 1)
        super().touch(page, now)

    def leave(self, page: Resident, now: PolicyMoment, *, evicted: bool) -> None:
        kept = KEPT.get(page.type, 0)
        if evicted:
            self.walk(kept, until=page.page)
            if page.page in self.short[kept]:
                self.left[kept].append(page.page)
        for queue in (self.short[kept], self.long[kept]):
            if page.page in queue:
                queue.remove(page.page)
        if evicted:
            most = max(10, len(self.long[kept]))
            self.left[kept] = self.left[kept][-most:]
        super().leave(page, now, evicted=evicted)

    def walk(self, kept: int, until: int | None) -> list[ScoredPage]:
        """The order of going; with a page, everything is moved on as far as it, but what may not go."""
        short, long, hits = list(self.short[kept]), list(self.long[kept]), dict(self.hits)
        pages: list[ScoredPage] = []
        stuck_short: list[int] = []
        stuck_long: list[int] = []
        steps = 0
        while short or long:
            from_short = bool(short) and (sum(self.here[item].tokens for item in short) > self.most or not long)
            page = (short if from_short else long).pop(0)
            if hits[page]:
                hits[page] = 0 if from_short else hits[page] - 1
                long.append(page)
            else:
                (stuck_short if from_short else stuck_long).append(page)
                pages.append(ScoredPage(CLASS * kept + steps, page))
                if page == until:
                    self.short[kept], self.long[kept] = stuck_short + short, stuck_long + long
                    self.hits = hits
                    break
            steps += 1
        return pages

    def victims(self, now: PolicyMoment) -> list[ScoredPage]:
        return [scored for kept in range(3) for scored in self.walk(kept, until=None)]
