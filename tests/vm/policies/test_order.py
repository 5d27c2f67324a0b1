"""Every policy orders its pages like a list scan that an afternoon's reading can check."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vm.policies.slow import (
    Slow,
    SlowDemand,
    SlowDemand2,
    SlowImportance,
    SlowLFU,
    SlowLRU,
    SlowModality,
    SlowRecency,
    SlowRecency2,
    SlowS3FIFO,
)
from vmstore.core.page import Modality, PageType
from vmstore.vm.policies.demand import Demand1
from vmstore.vm.policies.policy import Policy, PolicyMoment
from vmstore.vm.policies.registry import SHIPPED, full_name, policy
from vmstore.vm.policies.resident import Resident

BUDGET = 3_000
SLOW: dict[str, Callable[[], Slow]] = {
    "lru@1": SlowLRU,
    "importance@1": SlowImportance,
    "modality@1": SlowModality,
    "recency@1": SlowRecency,
    "recency@2": SlowRecency2,
    "lfu@1": SlowLFU,
    "s3fifo@1": lambda: SlowS3FIFO(BUDGET),
    "demand@1": SlowDemand,
    "demand@2": SlowDemand2,
}

ppm = st.integers(0, 1_000_000)
deeds = st.one_of(
    st.tuples(st.just("new"), st.sampled_from(PageType), st.sampled_from(Modality), st.integers(0, 2_000), ppm),
    st.tuples(st.just("use"), st.integers(0, 30)),
    st.tuples(st.just("change"), st.integers(0, 30), st.integers(0, 2_000), ppm),
    st.tuples(st.just("evict"), st.integers(0, 3)),
    st.tuples(st.just("leave"), st.integers(0, 30)),
    st.tuples(st.just("wait"), st.integers(1, 5_000)),
    st.tuples(st.just("turn")),
)


class Story:
    """A session's pages, told to several policies at once."""

    def __init__(self, value: Sequence[Any]) -> None:
        self.told = value
        self.pages: list[Resident] = []
        self.here: list[Resident] = []
        self.reference = 0
        self.turn = 1

    @property
    def now(self) -> PolicyMoment:
        """When it is."""
        return PolicyMoment(self.reference, self.turn)

    def play(self, deed: tuple[Any, ...]) -> None:
        """One thing that happens."""
        what, *rest = deed
        if what == "new":
            kind, modality, tokens, importance = rest
            page = len(self.pages) + 1
            made = Resident(page, tokens, kind, modality, importance, used=self.reference, used_turn=self.turn)
            self.pages.append(made)
            self.come(made)
        elif what == "use" and self.pages:
            self.use(self.pages[rest[0] % len(self.pages)])
        elif what == "change" and self.here:
            page = self.here[rest[0] % len(self.here)]
            page.tokens, page.importance, page.similarity = rest[1], rest[2], 1_000_000 - rest[2]
            page.anchor = rest[2] if rest[0] % 2 else 0
            self.tell("touch", page)
        elif what == "evict" and self.here:
            order = list(self.told[0].victims(self.now))
            self.go(order[min(rest[0], len(order) - 1)].page, evicted=True)
        elif what == "leave" and self.here:
            self.go(self.here[rest[0] % len(self.here)].page, evicted=False)
        elif what == "wait":
            self.reference += rest[0]
        elif what == "turn":
            self.turn += 1

    def use(self, page: Resident) -> None:
        """A page is used, and comes back if it was away."""
        self.reference += 1
        page.uses += 1
        page.used, page.used_turn = self.reference, self.turn
        if page in self.here:
            self.tell("touch", page)
        else:
            self.come(page)

    def come(self, page: Resident) -> None:
        """A page comes into the prompt."""
        self.here.append(page)
        self.tell("enter", page)

    def go(self, number: int, *, evicted: bool) -> None:
        """A page leaves it."""
        page = next(each_row for each_row in self.here if each_row.page == number)
        self.here.remove(page)
        for row in self.told:
            row.leave(page, self.now, evicted=evicted)

    def tell(self, what: str, page: Resident) -> None:
        """Says it to every policy."""
        for item in self.told:
            getattr(item, what)(page, self.now)


def differs(fast: Policy, slow: Slow, value: Sequence[tuple[Any, ...]]) -> bool:
    """Whether two policies ever disagree about order or scores."""
    story = Story([fast, slow])
    for deed in value:
        story.play(deed)
        if list(fast.victims(story.now)) != list(slow.victims(story.now)):
            return True
    return False


@pytest.mark.parametrize("name", SLOW)
@settings(max_examples=150, deadline=None)
@given(value=st.lists(deeds, max_size=60))
def test_a_policy_orders_like_a_list_scan(name: str, value: list[tuple[Any, ...]]) -> None:
    """Whatever happens to pages, the order and every score are those of the obvious reference."""
    assert not differs(policy(name, BUDGET), SLOW[name](), value)


def test_every_policy_has_a_reference() -> None:
    """No policy is shipped that was not held against a list scan."""
    assert set(SLOW) == {full_name(policy) for policy in SHIPPED}


def long_story(seed: int, count: int = 600) -> list[tuple[Any, ...]]:
    """Deeds as a session has them: mostly uses, some of them far back."""
    chance = random.Random(seed)
    kinds, modalities = list(PageType), list(Modality)
    rows: list[tuple[Any, ...]] = []
    for _ in range(count):
        kind = chance.random()
        if kind < 0.2:
            tokens, importance = chance.randrange(1, 2_000), chance.randrange(1_000_001)
            rows.append(("new", chance.choice(kinds), chance.choice(modalities), tokens, importance))
        elif kind < 0.75:
            rows.append(("use", chance.randrange(200)))
        elif kind < 0.9:
            rows.append(("evict", chance.choice((0, 0, 0, 1))))
        else:
            rows.append(chance.choice([("turn",), ("wait", 40), ("change", chance.randrange(200), 500, 900_000)]))
    return rows


@pytest.mark.parametrize("name", SLOW)
def test_a_long_session_is_ordered_like_a_list_scan(name: str) -> None:
    """With a hundred pages and hundreds of uses, the order is that of the obvious reference."""
    assert not differs(policy(name, BUDGET), SLOW[name](), long_story(7))


class Forgetful(Demand1):
    """What a page is worth cold is forgotten."""

    def worth(self, page: int, score: int, now: PolicyMoment) -> int:
        return score


@pytest.mark.parametrize(
    ("fast", "slow"),
    [(Forgetful(BUDGET, {}), SlowDemand()), (policy("lru", BUDGET), SlowImportance()), (policy("lfu", 1), SlowLRU())],
)
def test_a_wrong_order_is_seen(fast: Policy, slow: Slow) -> None:
    """Where a policy forgets one of its rules, the comparison finds it."""
    assert differs(fast, slow, long_story(7))


@pytest.mark.parametrize("name", SLOW)
def test_asking_changes_nothing(name: str) -> None:
    """A policy that is asked at every step, for as much as somebody likes, decides like one that never was."""
    asked, left_alone = policy(name, BUDGET), policy(name, BUDGET)
    story = Story([asked, left_alone])
    for n, deed in enumerate(long_story(3, 300)):
        story.play(deed)
        list(itertools.islice(asked.victims(story.now), n % 7))
    assert list(asked.victims(story.now)) == list(left_alone.victims(story.now))
