"""A window is smaller than L0: what goes in, at which level, what stays out and why."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from tests.vm.protocol.leaves import form, leaf, leaves
from vmstore.core.page import Modality, PageType, Role
from vmstore.errors import InputError
from vmstore.vm.assembly.choice import NO_ROOM
from vmstore.vm.protocol import PromptPage, Selection, select
from vmstore.vm.protocol.select import LONELY, SAME_ORIGIN, SUMMARISED


def user_page(name: str, turn: int, tokens: int = 10, **fields: Any) -> PromptPage:
    """Something a user said in a turn."""
    return leaf(name, "words", turn=turn, tokens=tokens, role=fields.pop("role", Role.USER), **fields)


def shown(choice: Selection) -> dict[str, int]:
    """The pages shown and their levels."""
    return {page.name: page.level for page in choice.shown}


def out(choice: Selection) -> dict[str, str]:
    """The pages left out and why."""
    return {page.name: page.why for page in choice.left}


def required(page: PromptPage) -> bool:
    """Whether a page may never be left out."""
    return page.instructs or page.task or page.pinned


# ---- the conversation feel, rule by rule


def test_the_last_turns_are_shown_in_full() -> None:
    """The newest three turns stand as they were said, where older ones give way to them."""
    pages = [user_page(f"p{turn}", turn, others=(form(2, 2),)) for turn in range(1, 8)]
    choice = select(pages, 32)
    assert shown(choice) == {"p5": 0, "p6": 0, "p7": 0, "p4": 2}


def test_turns_that_do_not_fit_fall_back_by_level_then_by_turn() -> None:
    """The oldest turn of the window gives a level first, and a whole turn goes only when levels do not help."""
    pages = [user_page(f"p{turn}", turn, 30, others=(form(1, 20), form(2, 10))) for turn in (1, 2, 3)]
    assert shown(select(pages, 80)) == {"p1": 1, "p2": 0, "p3": 0}
    assert shown(select(pages, 60)) == {"p1": 1, "p2": 1, "p3": 1}
    assert shown(select(pages, 30)) == {"p1": 2, "p2": 2, "p3": 2}
    assert shown(select(pages, 25)) == {"p2": 2, "p3": 2}
    assert out(select(pages, 25)) == {"p1": NO_ROOM}


def test_the_newest_turn_keeps_its_question() -> None:
    """Where not even the newest turn fits, its question stays and the largest answer of a tool falls back."""
    pages = [
        user_page("p1", 1, 10),
        user_page("p2", 1, 5_000_000, role=Role.TOOL, others=(form(3, 4),)),
        user_page("p3", 1, 15, role=Role.TOOL),
    ]
    choice = select(pages, 20)
    assert shown(choice) == {"p1": 0, "p2": 3}
    assert out(choice) == {"p3": NO_ROOM}


def test_an_older_segment_is_its_one_summary() -> None:
    """An older segment is shown by its newest summary, abstract; its pages and other summaries stay out, saying so."""
    pages = [
        user_page("p1", 1, segment=1),
        user_page("p2", 2, segment=1),
        leaf("s0", "older", type=PageType.SUMMARY, segment=1, tokens=4, turn=1),
        leaf("s1", "newer", type=PageType.SUMMARY, segment=1, tokens=9, turn=2, others=(form(2, 3), form(3, 1))),
        user_page("p3", 3, segment=2),
        leaf("s2", "other", type=PageType.SUMMARY, segment=2, tokens=4, turn=3),
        user_page("p9", 9),
    ]
    choice = select(pages, 30)
    assert shown(choice) == {"s1": 2, "s2": 0, "p9": 0}
    assert out(choice) == {"p1": SUMMARISED, "p2": SUMMARISED, "s0": SUMMARISED, "p3": SUMMARISED}
    assert {page.name: page.instead for page in choice.left} == {"p1": "s1", "p2": "s1", "s0": "s1", "p3": "s2"}


def test_the_open_segment_has_no_summary_to_stand_for_it() -> None:
    """A summary of no older segment is known like a claim, and keeps no talk out."""
    pages = [
        user_page("p1", 1),
        user_page("p2", 2, 40),
        leaf("s1", "so far", type=PageType.SUMMARY, tokens=5, turn=2),
        user_page("p9", 9),
    ]
    choice = select(pages, 30)
    assert shown(choice) == {"p1": 0, "s1": 0, "p9": 0}
    assert out(choice) == {"p2": NO_ROOM}


def test_what_is_left_out_can_be_loaded() -> None:
    """Every page that is not shown is named with its tokens, so that the manifest can offer it."""
    pages = [user_page(f"p{turn}", turn) for turn in range(1, 12)]
    choice = select(pages, 45)
    assert [page.name for page in choice.left] == [p.name for p in pages if p.name not in shown(choice)]
    assert all(page.tokens == 10 and page.why == NO_ROOM for page in choice.left)


def test_media_is_told_in_words_once_its_turn_is_over() -> None:
    """A picture is shown in full in the turn it was brought or loaded in, and by its caption ever after."""
    picture = leaf("p1", content=b"\x89PNG", mime="image/png", modality=Modality.IMAGE, tokens=1_000, turn=1)
    picture = msgspec.structs.replace(picture, others=(form(1, 300, mime="image/png"), form(2, 5)))
    assert shown(select([picture, user_page("p2", 1)], 5_000)) == {"p1": 0, "p2": 0}
    assert shown(select([picture, user_page("p2", 2)], 5_000)) == {"p1": 2, "p2": 0}
    sound = leaf("p3", content=b"RIFF", mime="audio/wav", modality=Modality.AUDIO, tokens=90, turn=1)
    sound = msgspec.structs.replace(sound, others=(form(1, 20), form(2, 5)))
    assert shown(select([sound, user_page("p2", 2)], 5_000)) == {"p3": 1, "p2": 0}


# ---- classes, origins, pairs


def test_what_instructs_and_the_plan_are_never_left_out() -> None:
    """The system prompt, the plan and pins stay where even the newest turn must go; others give way before them."""
    pages = [
        leaf("sys", "be kind", role=Role.SYSTEM, tokens=20, others=(form(1, 10),)),
        leaf("plan", "goals", task=True, tokens=20, others=(form(1, 10),)),
        leaf("pin", "kept", pinned=True, tokens=20, others=(form(2, 5),)),
        user_page("p1", 9, 100),
    ]
    assert shown(select(pages, 60)) == {"sys": 0, "plan": 0, "pin": 0}
    assert shown(select(pages, 45)) == {"sys": 0, "plan": 0, "pin": 2}
    assert shown(select(pages, 35)) == {"sys": 0, "plan": 1, "pin": 2}
    with refused("over-budget", InputError):
        select(pages, 24)


def test_a_page_and_what_stands_for_it_are_never_both_shown() -> None:
    """Of a picture and the caption page written for it one is shown: the picture in its turn, else the caption."""
    picture = user_page("p1", 1, 50)
    caption = leaf("p2", "a plan", origin="p1", turn=1, tokens=5)
    choice = select([picture, caption, user_page("p3", 1)], 500)
    assert shown(choice) == {"p1": 0, "p3": 0}
    assert [(page.name, page.why, page.instead) for page in choice.left] == [("p2", SAME_ORIGIN, "p1")]
    assert shown(select([picture, caption, user_page("p3", 2)], 500)) == {"p2": 0, "p3": 0}
    pinned = leaf("p1", "x", pinned=True, tokens=50, turn=1)
    assert shown(select([pinned, caption, user_page("p3", 2)], 500)) == {"p1": 0, "p3": 0}


def test_a_stand_in_of_a_stand_in_stands_for_the_first() -> None:
    """Of a page, its caption and a shorter caption of that one is shown, and a circle of origins is no trap."""
    chain = [
        user_page("p1", 1),
        leaf("p2", "x", origin="p1", turn=1),
        leaf("p3", "x", origin="p2", turn=1),
        user_page("p4", 2),
    ]
    assert shown(select(chain, 500)) == {"p3": 0, "p4": 0}
    circle = [leaf("p1", "x", origin="p2"), leaf("p2", "x", origin="p1"), leaf("p3", "x", origin="p3")]
    assert shown(select(circle, 500)) == {"p2": 0, "p3": 0}


def test_a_call_goes_with_its_result() -> None:
    """Where a tool's answer has no room its call is left out too, saying so."""
    pages = [
        user_page("p1", 1, 10, role=Role.ASSISTANT, call_id="c", is_call=True),
        user_page("p2", 1, 900, role=Role.TOOL, call_id="c", is_result=True),
        user_page("p3", 1, 10),
    ]
    choice = select(pages, 50)
    assert shown(choice) == {"p3": 0}
    assert out(choice) == {"p1": LONELY, "p2": NO_ROOM}


def test_what_is_known_goes_before_older_talk_by_score() -> None:
    """Claims are taken before older talk, the more important and newer first, text before media."""
    pages = [
        leaf("c1", "x", type=PageType.CLAIM, tokens=10, turn=1, importance=900_000),
        leaf("c2", "x", type=PageType.CLAIM, tokens=10, turn=1, importance=500_000),
        leaf("c3", "x", type=PageType.CLAIM, tokens=10, turn=5, importance=400_000),
        leaf("c4", "x", type=PageType.CLAIM, tokens=10, turn=1, importance=900_000, modality=Modality.VIDEO),
        user_page("p1", 2),
        user_page("p9", 9),
    ]
    order = ["p9", "c1", "c3", "c2", "c4", "p1"]
    for count in range(1, 7):
        assert sorted(shown(select(pages, count * 10, turns=1))) == sorted(order[:count])


def test_where_everything_fits_everything_is_shown() -> None:
    """A window as large as L0 shows it as it is, summaries beside what they sum up."""
    pages = [
        user_page("p1", 1, segment=1),
        leaf("s1", "s", type=PageType.SUMMARY, segment=1, tokens=5),
        user_page("p9", 9),
    ]
    choice = select(pages, 25)
    assert shown(choice) == {"p1": 0, "s1": 0, "p9": 0}
    assert (choice.left, choice.lowered, choice.tokens) == ((), (), 25)


# ---- any pages, any window


@given(leaves(), st.integers(0, 600), st.integers(1, 4))
def test_a_selection_keeps_its_promises(pages: list[PromptPage], budget: int, turns: int) -> None:
    """Within budget, in order, each page shown or named once, what must stay there, no page twice, no lonely call."""
    try:
        choice = select(pages, budget, turns=turns)
    except InputError:
        assert any(map(required, pages))
        return
    names = [page.name for page in pages]
    kept, left = [page.name for page in choice.shown], [page.name for page in choice.left]
    assert choice.tokens == sum(page.tokens for page in choice.shown) <= budget
    assert kept == [name for name in names if name in kept]
    assert sorted(kept + left) == sorted(names)
    assert all(page.name in kept or why(choice, page) == SAME_ORIGIN for page in pages if required(page))
    assert not [page for page in choice.shown if set(stands_for(page, pages)) & set(kept)]
    given_forms = {page.name: page.forms for page in pages}
    assert all(page.form in given_forms[page.name] for page in choice.shown)
    levels = {page.name: page.level for page in pages}
    assert {(page.name, page.level_before) for page in choice.lowered} == {
        (page.name, levels[page.name]) for page in choice.shown if page.level > levels[page.name]
    }
    answers = {page.call_id for page in pages if page.is_result}
    there = {page.call_id for page in choice.shown if page.is_result}
    assert not any(page.is_call and page.call_id in answers - there and not required(page) for page in choice.shown)
    assert select(pages, budget, turns=turns) == choice


def stands_for(page: PromptPage, pages: list[PromptPage]) -> list[str]:
    """The pages a page stands for, itself left out: its origin, the origin of that, and so on."""
    origins = {other.name: other.origin for other in pages}
    texts: list[str] = []
    name = page.origin
    while name and name not in texts and name != page.name:
        texts.append(name)
        name = origins.get(name, "")
    return texts


def why(choice: Selection, page: PromptPage) -> str:
    """Why a page is left out, nothing where it is not."""
    return out(choice).get(page.name, "")


@given(leaves(), st.integers(0, 600))
def test_a_wider_window_refuses_nothing_more(pages: list[PromptPage], budget: int) -> None:
    """A window that holds what must stay holds it when it is wider too."""
    try:
        select(pages, budget)
    except InputError:
        return
    select(pages, budget + 50)
