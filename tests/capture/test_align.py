"""Alignment: which message of a request is which message of the request before."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from vmstore.capture.conversation.align import Gap, SettledMessages, align, pair


class Entry(NamedTuple):
    """A message as alignment sees it."""

    key: str
    place: str | int = 0


def entries(text: str) -> list[Entry]:
    """One entry a letter; capitals speak in another role."""
    return [Entry(letter, int(letter.isupper())) for letter in text]


def same(old: str, new: str, *, last_is_new: bool = False) -> dict[int, int]:
    """Which new letter is which old one."""
    return align(entries(old), entries(new), last_is_new=last_is_new).same


def gaps(old: str, new: str) -> list[Gap]:
    """What lies between the matches."""
    return align(entries(old), entries(new)).gaps


def pairs(old: list[Entry], new: list[Entry]) -> list[tuple[int, int]]:
    """The changed forms in the one gap of two requests."""
    alignment = align(old, new)
    taken = SettledMessages(set(alignment.same.values()), set(alignment.same))
    return [both for gap in alignment.gaps for both in pair(gap, old, new, taken)]


def test_what_says_the_same_is_matched_in_order() -> None:
    """Equal messages match first to first, and the rest is a gap at the end."""
    assert same("abc", "abcd") == {0: 0, 1: 1, 2: 2}
    assert gaps("abc", "abcd") == [Gap(range(3, 3), range(3, 4), False)]
    assert same("aab", "aaab") == {0: 0, 1: 1, 3: 2}


def test_an_inner_gap_says_so() -> None:
    """What changed before a match stands in the middle, what changed after the last at the end."""
    assert gaps("axb", "ayb") == [Gap(range(1, 2), range(1, 2), True)]
    assert gaps("ax", "ay") == [Gap(range(1, 2), range(1, 2), False)]
    assert gaps("axbz", "ayb") == [Gap(range(1, 2), range(1, 2), True), Gap(range(3, 4), range(3, 3), False)]


def test_equal_requests_have_no_gap() -> None:
    """Nothing new, nothing gone: no gap."""
    assert gaps("abc", "abc") == [] == gaps("", "")


def test_moved_messages_are_matched_and_open_no_gap() -> None:
    """A message in another place is the same message."""
    assert same("abc", "cab") == {0: 2, 1: 0, 2: 1}
    assert gaps("abc", "cab") == []


def test_a_new_last_word_is_never_an_earlier_one() -> None:
    """What a person says last matches only what stood last before."""
    assert same("aba", "aba", last_is_new=True) == {0: 0, 1: 1, 2: 2}
    assert same("ab", "aba", last_is_new=True) == {0: 0, 1: 1}
    assert same("ba", "a", last_is_new=True) == {0: 1}


def test_results_of_one_call_are_forms_of_each_other() -> None:
    """A message that answers the same tool call is its changed form, wherever it stands in the gap."""
    old = [Entry("a"), Entry("x", "c1"), Entry("y", "c2"), Entry("z")]
    assert pairs(old, [Entry("a"), Entry("Y", "c2"), Entry("z")]) == [(2, 1)]
    assert sorted(pairs(old, [Entry("a"), Entry("Y", "c2"), Entry("X", "c1"), Entry("z")])) == [(1, 2), (2, 1)]


def test_as_many_of_the_same_speakers_are_forms_in_order() -> None:
    """A gap of equal length and speakers on both sides is edited one by one."""
    assert pairs(entries("axYb"), entries("auVb")) == [(1, 1), (2, 2)]


def test_other_speakers_or_counts_are_not_paired() -> None:
    """Where speakers or numbers differ, nothing is another form of anything."""
    assert pairs(entries("axYb"), entries("aUvb")) == []
    assert pairs(entries("axyb"), entries("azb")) == []


letters = st.text("aabbcD", max_size=12)


@given(letters, letters, st.booleans())
def test_a_match_is_of_equals_and_of_one_each(old: str, new: str, last_is_new: bool) -> None:
    """Whatever the requests, matched messages say the same and none is matched twice."""
    counts = same(old, new, last_is_new=last_is_new)
    assert all(old[o] == new[n] for n, o in counts.items())
    assert len(set(counts.values())) == len(counts)


@given(letters, letters)
def test_all_that_can_match_does(old: str, new: str) -> None:
    """As many messages are matched as both requests have in common."""
    assert len(same(old, new)) == (Counter(old) & Counter(new)).total()


@given(letters, letters, st.booleans())
def test_gaps_hold_whatever_is_not_matched(old: str, new: str, last_is_new: bool) -> None:
    """Each unmatched message lies in exactly one gap, gaps follow each other, and only the last is no inner one."""
    alignment = align(entries(old), entries(new), last_is_new=last_is_new)
    covered_old = Counter(i for gap in alignment.gaps for i in gap.old)
    covered_new = Counter(i for gap in alignment.gaps for i in gap.new)
    assert all(covered_old[i] == 1 for i in range(len(old)) if i not in alignment.same.values())
    assert all(covered_new[i] == 1 for i in range(len(new)) if i not in alignment.same)
    assert all(a.new.stop <= b.new.start and a.old.stop <= b.old.start for a, b in pairwise(alignment.gaps))
    assert all(gap.inner for gap in alignment.gaps[:-1])


@given(letters, letters)
def test_a_form_has_one_original_of_the_same_place(old: str, new: str) -> None:
    """Paired messages are unmatched ones of the same speaker, each in one pair at most."""
    before, after = entries(old), entries(new)
    alignment = align(before, after)
    taken = SettledMessages(set(alignment.same.values()), set(alignment.same))
    both = [p for gap in alignment.gaps for p in pair(gap, before, after, taken)]
    assert all(before[o].place == after[n].place for o, n in both)
    assert len({o for o, _ in both}) == len({n for _, n in both}) == len(both)
    assert not {o for o, _ in both} & set(alignment.same.values())
    assert not {n for _, n in both} & set(alignment.same)
