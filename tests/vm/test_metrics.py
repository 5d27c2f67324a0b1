"""The counters of a session's memory say what happened to it."""

from __future__ import annotations

import pytest

from tests.replay.told import Life, lived, shorten
from vmstore.core import mutation as m
from vmstore.core.decision import FaultReason, Signal, Use
from vmstore.core.page import Role
from vmstore.replay.whatif import as_recorded
from vmstore.vm.kernel.state import State
from vmstore.vm.metrics.metrics import Metrics
from vmstore.vm.metrics.report import Measures


def measured(life: Life, price: int | None = None) -> Measures:
    """The numbers of a session as it was."""
    return as_recorded(life.stimuli, shorten, price=price).measures


def turned(life: Life, *references: m.Reference) -> None:
    """One turn with its references, and a call."""
    life.tell(m.Turn(life.state.turn + 1))
    for reference in references:
        life.tell(reference)
    life.act(pack=True)


def asked(page: int, reason: FaultReason = FaultReason.RESOLVE_REFERENCE, level: int = 0) -> m.Reference:
    """The model asks for a page."""
    return m.Reference(page, Use.FAULT, level=level, reason=reason)


def out(life: Life, page: int) -> None:
    """A page leaves because somebody asked."""
    life.tell(m.Evict(page, 5, life.state.pages[page].tokens))
    life.act()


def roomy() -> tuple[Life, int]:
    """A session with room for everything, and a page of it that is out of the prompt."""
    life = Life(budget=20_000)
    page = life.say(Role.TOOL, 50)
    life.act(pack=True)
    out(life, page)
    return life, page


def test_a_hit_is_no_fault() -> None:
    """What was in the prompt at the level asked for is a hit, for the model and for tools, a wish is neither."""
    life, page = roomy()
    turned(life, asked(page), m.Reference(page, Use.QUOTE), m.Reference(page, Use.SIGNAL, signal=Signal.TOPIC))
    turned(life, m.Reference(page, Use.TOOL), asked(0))
    measures = measured(life)
    assert (measures.references, measures.faults, measures.hits) == (4, 2, 2)
    assert (measures.served, measures.denied, measures.denials) == (1, 1, {"no_page": 1})
    assert (measures.fault_tokens, measures.fault_rate, measures.hit_rate) == (50, 0.5, 0.5)
    assert (measures.model_faults, measures.faults_a_turn, measures.faults_a_turn_max) == (2, 1.0, 1)


def test_each_reason_has_its_share_and_its_success() -> None:
    """Of what the model asked for, each reason has a share, and what was not denied of it is its success."""
    life, page = roomy()
    recall = FaultReason.USER_REQUESTED_RECALL
    turned(life, asked(page, recall), asked(page, FaultReason.SPECULATIVE), asked(0, recall), asked(0, recall))
    measures = measured(life)
    assert (
        measures.reasons["user_requested_recall"].asked == 3 and measures.reasons["user_requested_recall"].denied == 2
    )
    assert measures.reasons["user_requested_recall"].share == 0.75
    assert measures.reasons["user_requested_recall"].success == pytest.approx(1 / 3, abs=1e-6)
    assert measures.reasons["speculative"].share == 0.25
    assert measures.reasons["tool_prereq"].success is None
    assert any(flag.startswith("speculative is 25% of the model's faults") for flag in measures.flags)
    assert not any(flag.startswith("user_requested_recall") for flag in measures.flags), (
        "75 % is no red flag for recalls"
    )
    assert measures.targets["fault_rate"] is False and measures.targets["recall_success"] is None


def test_thrash_counts_faults_that_come_again() -> None:
    """A page that is asked for again within five turns counts over the turns of the window, and then no more."""
    life, page = roomy()
    for turn in range(1, 4):
        turned(life, asked(page))
        out(life, page)
        assert measured(life).thrash_now == pytest.approx((turn - 1) / turn)
    for _ in range(5):
        turned(life)
    measures = measured(life)
    assert measures.thrash_now == 0 and measures.thrash_peak == pytest.approx(2 / 3, abs=1e-6)
    windows = [0, 1 / 2, 2 / 3, 2 / 4, 2 / 5, 1 / 5, 0, 0]
    assert measures.thrash_index == pytest.approx(sum(windows) / 8, abs=1e-5)
    assert measures.targets["thrash_index"] is True


def test_a_prefetch_is_right_where_the_page_is_used_before_it_leaves() -> None:
    """Used or cited in the prompt it is a hit, once; gone before it is used it is none."""
    life, page = roomy()
    other = life.say(Role.TOOL, 40)
    life.act(pack=True)
    out(life, other)
    wish = [m.Reference(case, Use.SIGNAL, signal=Signal.CLAIM) for case in (page, other)]
    turned(life, *wish)
    out(life, other)
    turned(life, m.Reference(page, Use.QUOTE), m.Reference(page, Use.QUOTE), m.Reference(other, Use.QUOTE))
    measures = measured(life)
    assert (measures.prefetches, measures.prefetch_hits, measures.prefetch_hit_rate) == (2, 1, 0.5)


def test_what_a_cache_loses_is_counted_and_priced() -> None:
    """Nothing where pages come at the end; from the first that left on, all that stood behind it."""
    life = Life(budget=20_000)
    pages = [life.say(Role.TOOL, size) for size in (10, 20, 30, 40)]
    life.act(pack=True)
    pages.append(life.say(Role.TOOL, 50))
    life.act(pack=True)
    assert measured(life).prefix_voided == 0
    out(life, pages[2])
    life.act(pack=True)
    measures = measured(life, price=2_000)
    assert measures.prefix_voided == 30 + 40 + 50
    assert measures.prefix_cost == pytest.approx(120 * 2e-6) and measured(life).prefix_cost is None
    assert measures.prefix_voided_a_call == 40.0


def test_what_was_cited_is_effective() -> None:
    """The tokens of pages that an answer cites or quotes, once a call, of all that the calls were sent."""
    life = Life(budget=20_000)
    first, second = life.say(Role.TOOL, 100), life.say(Role.TOOL, 300)
    life.act(pack=True)
    life.tell(m.Cite(first, second))
    life.tell(m.Reference(first, Use.QUOTE, 1))
    life.act()
    assert measured(life).effective == pytest.approx(100 / 900, abs=1e-6), "500 are the system prompt's"
    life.act(pack=True)
    life.tell(m.Reference(second, Use.REUSE, 2))
    life.act()
    assert measured(life).effective == pytest.approx(400 / 1_800, abs=1e-6)


def test_recalls_and_forms_are_counted() -> None:
    """A recall is a success unless it was corrected; abstracts are weighed against their pages."""
    life = Life(budget=20_000)
    page = life.say(Role.TOOL, 800)
    life.act(pack=True)
    for corrected in (0, 0, 0, 1):
        life.tell(m.Recall(page, corrected))
    life.act()
    assert measured(life).recall_success == 0.75 and measured(life).compression is None
    for seed in range(3):
        value = lived(seed)
        forms = [mutation for c in value.commits for _, mutation in c.mutations if isinstance(mutation, m.Compress)]
        whole = [next(o.tokens for c in value.commits for p, o in c.mutations if p == form.page) for form in forms]
        abstracts = [(made.tokens, full) for made, full in zip(forms, whole, strict=True) if made.level == 2]
        measures = measured(value)
        assert measures.forms == len(forms)
        assert measures.compression == pytest.approx(
            sum(a for a, _ in abstracts) / sum(b for _, b in abstracts), abs=1e-6
        )


def test_the_counters_are_what_the_log_holds() -> None:
    """Evictions, prefetches, faults, the peak and the use of the budget are those of the mutations themselves."""
    for seed in range(4):
        value = lived(seed)
        log = [mutation for commit in value.commits for _, mutation in commit.mutations]
        measures = measured(value)
        assert measures.evictions == sum(isinstance(mutation, m.Evict) and mutation.level is None for mutation in log)
        assert measures.compressions == sum(
            isinstance(mutation, m.Evict) and mutation.level is not None for mutation in log
        )
        assert measures.served == sum(isinstance(mutation, m.FaultIn) for mutation in log)
        assert measures.denied == sum(isinstance(mutation, m.FaultDenied) for mutation in log)
        packs = [mutation.tokens for mutation in log if isinstance(mutation, m.Pack)]
        assert measures.l0_peak == max(packs) and measures.calls == len(packs)
        assert measures.utilisation == pytest.approx(sum(packs) / len(packs) / 8_000, abs=1e-5)
        assert measures.calls_over_budget == 0
        assert measures.pages["L0"] + measures.pages["L2"] == sum(isinstance(mutation, m.Create) for mutation in log)


def test_nothing_is_counted_before_there_is_a_budget() -> None:
    """A session that was recorded as it was has no numbers, and shares of nothing are none."""
    state, metrics = State(lambda position, ref: b"{}"), Metrics()
    for position, case in enumerate([m.Create(0, 0, 1, 0, 0, None, 0, 5), m.Reference(1, Use.FAULT)], 1):
        state.apply(position, case)
        metrics.note(state, position, case)
    measures = metrics.measures(state)
    assert measures.references == measures.calls == 0
    assert measures.fault_rate is measures.utilisation is measures.effective is measures.thrash_index is None
