"""Claude Code trees: every record on the line of conversation it belongs to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capture.claude_transcript import answer, forks, lines, reading, result, steps, system, tool, user
from vmstore.capture.importers.formats import read
from vmstore.capture.steps import CallStep, ContinuationStep, MessageStep
from vmstore.core.page import Origin


def test_null_and_unknown_parents_continue(tmp_path: Path) -> None:
    """A record that names no parent, or one the file does not have, continues the record before."""
    actual_reading = reading(tmp_path, [user("a", None), answer("b", None), user("c", "gone"), answer("d", None)])
    assert lines(actual_reading) == {"": [1, 2, 3, 4]}


def test_a_second_child_is_a_fork_at_the_common_record(tmp_path: Path) -> None:
    """The first child continues; the second inherits up to and with the parent; what follows follows it."""
    actual_reading = reading(
        tmp_path,
        [
            user("a", None),
            answer("b", "a"),
            user("c", "b"),
            answer("d", "c"),
            user("e", "b"),  # b again: the person went back
            answer("f", "e"),
            user("g", None),  # continues the record before: the fork
            user("h", "d"),  # the main line again
        ],
    )
    assert lines(actual_reading) == {"": [1, 2, 3, 4, 8], "e": [5, 6, 7]}
    assert forks(actual_reading) == {"e": ("", 2)}
    assert [track.key for track in actual_reading.tracks] == ["s1", "s1#e"]


def test_forks_of_forks_count_what_they_inherit(tmp_path: Path) -> None:
    """A fork off a fork's own record counts its inherited steps; off an inherited one it forks there."""
    actual_reading = reading(
        tmp_path,
        [
            user("a", None),
            answer("b", "a"),
            user("c", "b"),
            user("d", "b"),  # fork d at 2
            answer("e", "d"),
            user("f", "e"),
            user("g", "e"),  # fork of the fork: a b d e
            user("h", "b"),  # a third child of b: off the main line
            user("i", "g"),
        ],
    )
    assert lines(actual_reading) == {"": [1, 2, 3], "d": [4, 5, 6], "g": [7, 9], "h": [8]}
    assert forks(actual_reading) == {"d": ("", 2), "g": ("d", 4), "h": ("", 2)}


def test_forks_may_nest_as_deep_as_they_like(tmp_path: Path) -> None:
    """Two thousand forks, each off the one before, are read without running out of stack."""
    records = [user("u0", None)]
    for n in range(2000):
        records += [user(f"a{n}", f"u{n}"), user(f"u{n + 1}", f"u{n}")]
    actual_reading = reading(tmp_path, records)
    assert len(actual_reading.tracks) == 2001
    assert actual_reading.tracks[-1].inherits == 2000


def test_tool_results_never_fork(tmp_path: Path) -> None:
    """Results of parallel calls name one parent and stay on its line, and so does who comes after."""
    actual_reading = reading(
        tmp_path,
        [
            user("a", None),
            answer("b", "a", tool("t1"), tool("t2")),
            result("r1", "b", "t1"),
            result("r2", "b", "t2"),
            user("c", "b"),  # an interrupting word: the first that continues b
            user("d", "b"),
        ],
    )
    assert lines(actual_reading) == {"": [1, 2, 3, 4, 5], "d": [6]}
    assert forks(actual_reading) == {"d": ("", 2)}


def test_lines_of_one_message_are_one_call(tmp_path: Path) -> None:
    """The first line of a message id is the call, the others are more of it, results between or not."""
    actual_steps = steps(
        tmp_path,
        user("a", None),
        answer("b1", "a", {"type": "text", "text": "look"}, mid="m1"),
        answer("b2", "b1", tool("t1"), mid="m1"),
        result("r1", "b2", "t1"),
        answer("b3", "a", tool("t2"), mid="m1"),  # a sibling of b1 by name: still no fork
        result("r2", "b3", "t2"),
        answer("c", "r2", mid="m2"),
    )
    assert [type(step) for step in actual_steps] == [
        MessageStep,
        CallStep,
        ContinuationStep,
        MessageStep,
        ContinuationStep,
        MessageStep,
        CallStep,
    ]


def test_lines_of_a_forked_message_stay_on_the_fork(tmp_path: Path) -> None:
    """A later line of a message id joins the line of conversation its first line is on."""
    actual_reading = reading(
        tmp_path,
        [
            user("a", None),
            answer("b", "a", mid="m1"),
            answer("c1", "a", mid="m2"),  # tried again: a fork
            answer("c2", "a", tool("t"), mid="m2"),
        ],
    )
    assert lines(actual_reading) == {"": [1, 2], "c1": [3, 4]}
    assert [type(step) for step in actual_reading.tracks[1].steps] == [CallStep, ContinuationStep]


def test_a_line_of_an_earlier_message_makes_no_second_call(tmp_path: Path) -> None:
    """A message id that comes back after another call is said again, not called again."""
    again = answer("c", "b", mid="m1")
    actual_steps = steps(tmp_path, answer("a", None, mid="m1"), answer("b", "a", mid="m2"), again)
    assert [type(step) for step in actual_steps] == [CallStep, CallStep, MessageStep]


def test_a_repeated_uuid_is_a_record_of_its_own(tmp_path: Path) -> None:
    """It continues the line its own parent names, and stands for that name from then on."""
    actual_reading = reading(
        tmp_path,
        [user("a", None), answer("b", "a"), user("a", "b"), answer("c", "a"), answer("d", "a")],
    )
    assert lines(actual_reading) == {"": [1, 2, 3, 4], "d": [5]}
    assert forks(actual_reading) == {"d": ("", 3)}


def test_a_fork_beginning_with_a_repeated_uuid_has_a_name_of_its_own(tmp_path: Path) -> None:
    """Two forks whose first records share a uuid are told apart."""
    actual_reading = reading(tmp_path, [user("a", None), user("b", "a"), user("c", "a"), user("c", "a")])
    assert [track.part for track in actual_reading.tracks] == ["", "c", "c-2"]


def test_bookkeeping_is_passed_through(tmp_path: Path) -> None:
    """A system line neither forks nor continues: who names it continues, or forks off, its parent."""
    actual_reading = reading(
        tmp_path,
        [
            user("a", None),
            answer("b", "a"),
            system("n1", "b"),
            user("c", "n1"),
            answer("d", "c"),
            system("n2", "b"),
            user("e", "n2"),
        ],
    )
    assert lines(actual_reading) == {"": [1, 2, 3, 4, 5, 6], "e": [7]}
    assert forks(actual_reading) == {"e": ("", 2)}


def test_malformed_lines_stay_where_they_stand(tmp_path: Path) -> None:
    """A line that cannot be parsed is a step of the line before it, also on a fork."""
    file = tmp_path / "t"
    rows = [json.dumps(r) for r in (user("a", None), user("b", "a"), user("c", "a"))]
    file.write_text("\n".join([*rows, '{"type": "user", "uu', json.dumps(user("d", "b"))]) + "\n")
    assert lines(read(file)) == {"": [1, 2, 5], "c": [3, 4]}


def test_other_sessions_records_stay_in_the_file(tmp_path: Path) -> None:
    """One file is one session: the first id named."""
    actual_reading = reading(tmp_path, [user("a", None), {**user("b", "a"), "sessionId": "other"}])
    assert [track.key for track in actual_reading.tracks] == ["s1"]
    assert lines(actual_reading) == {"": [1, 2]}


def test_a_sidechain_is_spawned_by_the_call_with_its_prompt(tmp_path: Path) -> None:
    """Of two open calls each sidechain belongs to the one whose prompt it begins with."""
    side = {"isSidechain": True}
    actual_reading = reading(
        tmp_path,
        [
            user("a", None),
            answer("b", "a", tool("t1", "Task", "find it"), tool("t2", "Agent", "fix it")),
            user("p", None, "find it", **side),
            answer("q", "p", **side),
            user("x", None, "fix it", **side),
            answer("y", "x", **side),
            answer("r", "q", **side),
            result("r1", "b", "t1"),
            answer("c", "r1"),
        ],
    )
    assert lines(actual_reading) == {"": [1, 2, 8, 9], "p": [3, 4, 7], "x": [5, 6]}
    spawned = {track.part: (track.origin, track.parent, track.spawned_by) for track in actual_reading.tracks[1:]}
    assert spawned == {"p": (Origin.SPAWN, "", "t1"), "x": (Origin.SPAWN, "", "t2")}
    assert [track.inherits for track in actual_reading.tracks] == [0, 0, 0]


def test_a_sidechain_nobody_asked_for_names_no_call(tmp_path: Path) -> None:
    """Without an open call of its prompt the spawning call is unknown, not guessed."""
    actual_reading = reading(
        tmp_path,
        [
            answer("a", None, tool("t1", "Task", "find it"), tool("t2", "Bash")),
            result("r", "a", "t1"),
            user("p", None, "find it", isSidechain=True),
            user("q", None, "warm up", isSidechain=True),
        ],
    )
    assert {track.part: track.spawned_by for track in actual_reading.tracks[1:]} == {"p": None, "q": None}


def test_a_sidechain_forks_and_continues_like_any_line(tmp_path: Path) -> None:
    """Inside a sidechain the rules are the same; a lost parent continues it and never the main line."""
    side = {"isSidechain": True}
    actual_reading = reading(
        tmp_path,
        [
            user("a", None),
            user("p", None, "go", **side),
            answer("q", "p", **side),
            answer("q2", "p", mid="again", **side),
            result("s", None, "t", **side),
            user("u", "lost", **side),
            user("b", None),
        ],
    )
    assert lines(actual_reading) == {"": [1, 7], "p": [2, 3], "q2": [4, 5, 6]}
    assert forks(actual_reading) == {"q2": ("p", 1)}


def test_a_main_record_never_joins_a_sidechain(tmp_path: Path) -> None:
    """A record of the main line that names a sidechain's as its parent continues the main line."""
    side = {"isSidechain": True}
    actual_reading = reading(tmp_path, [user("a", None), user("p", None, "go", **side), user("b", "p")])
    assert lines(actual_reading) == {"": [1, 3], "p": [2]}


def test_agents_are_told_apart_by_their_names(tmp_path: Path) -> None:
    """Interleaved sidechains of named agents each keep to their own line."""
    first, two = ({"isSidechain": True, "agentId": name} for name in ("one", "two"))
    actual_reading = reading(
        tmp_path,
        [
            user("a", None),
            user("p", None, "go", **first),
            user("x", None, "go", **two),
            answer("q", None, **first),
            answer("y", None, **two),
            user("z", None, "more", **first),
        ],
    )
    assert lines(actual_reading) == {"": [1], "p": [2, 4, 6], "x": [3, 5]}


def test_an_agents_own_file_is_a_session_of_its_own(tmp_path: Path) -> None:
    """A file that begins with an agent's record is that agent's, and no other source of the session."""
    side = {"isSidechain": True, "agentId": "ab12"}
    actual_reading = reading(tmp_path, [user("p", None, "go", **side), answer("q", "p", **side)])
    (track,) = actual_reading.tracks
    assert (track.key, track.name, track.origin) == ("s1#agent-ab12", "s1-agent-ab12", Origin.NEW)
    assert lines(actual_reading) == {"": [1, 2]}


NAMES = st.one_of(st.none(), st.sampled_from([f"u{n}" for n in range(12)]))
SIDES: list[dict[str, Any]] = [{}, {}, {"isSidechain": True}, {"isSidechain": True, "agentId": "ag"}]


@st.composite
def transcripts(draw: st.DrawFn) -> list[Any]:
    """Any mix of records, on any tree, with repeated and lost names."""

    def record() -> Any:
        uuid, parent, more = draw(NAMES), draw(NAMES), draw(st.sampled_from(SIDES))
        kind = draw(st.integers(0, 6))
        if kind == 0:
            return user(uuid, parent, draw(st.sampled_from(["go", "hi", "find it"])), **more)
        if kind == 1:
            return answer(uuid, parent, mid=draw(st.sampled_from(["m1", "m2", "m3"])), **more)
        if kind == 2:
            return answer(uuid, parent, tool("t1", "Task", "find it"), **more)
        if kind == 3:
            return result(uuid, parent, "t1", **more)
        if kind == 4:
            return system(uuid or "n", parent, **more)
        if kind == 5:
            return {**user(uuid, parent, **more), "message": "broken"}
        summary = user(uuid, parent, "s", isCompactSummary=True, **more)
        return draw(st.sampled_from([{"silly": "this"}, 42, summary]))

    return [user("u0", None), *(record() for _ in range(draw(st.integers(0, 25))))]


@given(transcripts())
def test_every_line_is_placed_exactly_once(tmp_path_factory: pytest.TempPathFactory, records: list[Any]) -> None:
    """Whatever the tree, each line is one step of one track, in the file's order within it."""
    actual_reading = reading(tmp_path_factory.mktemp("t"), records)
    placed = lines(actual_reading)
    assert sorted(n for numbers in placed.values() for n in numbers) == list(range(1, len(records) + 1))
    assert all(numbers == sorted(numbers) for numbers in placed.values())
    assert len({track.key for track in actual_reading.tracks}) == len(actual_reading.tracks) == len(placed)


@given(transcripts(), st.data())
def test_a_longer_file_never_moves_what_was_placed(
    tmp_path_factory: pytest.TempPathFactory, records: list[Any], pick: st.DataObject
) -> None:
    """Reading the beginning of a file gives the beginning of its tracks, forked at the same records."""
    cut = pick.draw(st.integers(1, len(records)))
    path = tmp_path_factory.mktemp("t")
    early, late = reading(path, records[:cut]).tracks, reading(path, records).tracks
    assert len(early) <= len(late)
    for before, after in zip(early, late, strict=False):
        assert (before.key, before.origin, before.parent, before.inherits, before.spawned_by) == (
            after.key,
            after.origin,
            after.parent,
            after.inherits,
            after.spawned_by,
        )
        old, new = list(before.steps), list(after.steps)
        assert new[: len(old)] == old


@given(transcripts())
def test_a_fork_never_inherits_more_than_its_parent_has(
    tmp_path_factory: pytest.TempPathFactory, records: list[Any]
) -> None:
    """A parent stands before its forks and holds the steps they inherit, after its own inherited ones."""
    length: dict[str | None, int] = {}
    for track in reading(tmp_path_factory.mktemp("t"), records).tracks:
        if track.origin is Origin.FORK:
            first = next(iter(track.steps)).line
            assert 0 < track.inherits <= length[track.parent]
            assert first > 1
        else:
            assert track.inherits == 0
            assert track.parent is None or track.parent in length
        length[track.part] = track.inherits + len(list(track.steps))
