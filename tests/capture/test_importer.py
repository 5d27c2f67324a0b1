"""Importing: the same file again changes nothing, a grown one adds its new part, a changed one forks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.capture.imports import FILES, all_seen, chat, claude, in_lines, pi, seen, write
from tests.capture.words import lines, message, model_text, user
from vmstore.errors import InputError
from vmstore.store.store import Store, memory_store

LINED = ["chat lines", "exchanges", "pi", "claude-code", "responses lines", "anthropic lines"]


def size_of(store: Store) -> tuple[int, list[str]]:
    """How much a store holds: its mutations and its sessions."""
    return store.info().mutations, [info.session for info in store.sessions(hidden=True)]


@pytest.mark.parametrize("kind", FILES)
def test_the_same_file_again_changes_nothing(kind: str, tmp_path: Path) -> None:
    """A second and third import write no mutation and report the totals of the first."""
    file = write(tmp_path / "talk.jsonl", kind, 3)
    with memory_store() as store:
        first = store.import_file(file)
        before = size_of(store)
        for _ in range(2):
            again = store.import_file(file)
            assert (again.new, again.sessions) == (0, first.sessions)
            assert size_of(store) == before


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("steps", [[1, 4], [1, 2, 3, 4], [3, 3, 4]])
def test_a_grown_file_adds_only_its_new_part(kind: str, steps: list[int], tmp_path: Path) -> None:
    """Imported as it grew, a file ends as the same session as imported at once, with each record once."""
    file = tmp_path / "talk.jsonl"
    with memory_store() as grown, memory_store() as whole:
        new = sum(grown.import_file(write(file, kind, turns)).new for turns in steps)
        at_once = whole.import_file(file)
        assert new == at_once.new
        assert all_seen(grown) == all_seen(whole)
        totals = [(t.messages, t.pages, t.raw, t.turns, t.calls) for t in at_once.sessions]
        assert [(t.messages, t.pages, t.raw, t.turns, t.calls) for t in grown.import_file(file).sessions] == totals
        assert grown.verify().ok


@pytest.mark.parametrize("kind", LINED)
def test_a_file_may_grow_by_single_lines(kind: str, tmp_path: Path) -> None:
    """Whatever line an import met last, the next goes on there: between a call and its result, within a turn."""
    made, spelled = FILES[kind]
    records = made(2)
    file = tmp_path / "talk.jsonl"
    with memory_store() as grown, memory_store() as whole:
        for end in range(1, len(records) + 1):
            file.write_text(spelled(records[:end]))
            assert grown.import_file(file, format="claude-code" if kind == "claude-code" else None).new == 1
        whole.import_file(file)
        assert all_seen(grown) == all_seen(whole)


@pytest.mark.parametrize("kind", LINED)
def test_a_torn_last_line_is_left_for_the_next_import(kind: str, tmp_path: Path) -> None:
    """A line cut within is not taken, said so, and taken whole once it is there."""
    made, spelled = FILES[kind]
    text = spelled(made(2))
    file = tmp_path / "talk.jsonl"
    count = text.count("\n")
    with memory_store() as store, memory_store() as whole:
        file.write_text(text[: text.rindex('"') - 3])
        first = store.import_file(file)
        assert (first.torn, first.new, first.problems) == (count, count - 1, [])
        assert store.import_file(file).torn == count
        file.write_text(text)
        second = store.import_file(file)
        assert (second.torn, second.new) == (None, 1)
        whole.import_file(file)
        assert all_seen(store) == all_seen(whole)


@pytest.mark.parametrize("kind", FILES)
def test_a_shortened_file_changes_nothing(kind: str, tmp_path: Path) -> None:
    """What a file no longer holds stays: the past does not move."""
    file = tmp_path / "talk.jsonl"
    with memory_store() as store:
        first = store.import_file(write(file, kind, 3))
        before = size_of(store)
        again = store.import_file(write(file, kind, 2))
        assert (again.new, again.sessions) == (0, first.sessions)
        assert size_of(store) == before


CHANGES = [0, 1, 3, 4, 7]


@pytest.mark.parametrize("at", CHANGES)
@pytest.mark.parametrize("kind", ["lines", "list"])
def test_a_changed_record_forks_at_the_last_common_one(kind: str, at: int, tmp_path: Path) -> None:
    """The changed file goes on in a fork; the original keeps every answer it gave, and both stay themselves."""
    file = tmp_path / "talk.jsonl"
    changed = chat(2)
    changed[at] = {**changed[at], "content": "something else was said here"}
    spelled = in_lines if kind == "lines" else json.dumps
    with memory_store() as store, memory_store() as whole:
        file.write_text(spelled(chat(2)))
        store.import_file(file)
        original = seen(store.session("talk"))
        file.write_text(spelled(changed))
        done = store.import_file(file)
        whole.import_file(file)
        assert [info.session for info in store.sessions()] == ["talk", "talk-2"]
        assert done.sessions[0].session == "talk-2" and done.new == len(changed) - at
        fork = store.session("talk-2").info()
        assert (fork.origin, fork.parent) == ("fork", "talk")
        assert seen(store.session("talk")) == original
        assert seen(store.session("talk-2")) == seen(whole.session("talk"))
        assert store.verify().ok


@pytest.mark.parametrize("at", CHANGES)
def test_after_a_fork_each_form_of_the_file_finds_its_own(at: int, tmp_path: Path) -> None:
    """Original, changed file and a grown one of either are recognised; none forks again."""
    file = tmp_path / "talk.jsonl"
    first, other = chat(2), chat(2)
    other[at] = {**other[at], "content": "something else was said here"}
    with memory_store() as store:
        for records in (first, other):
            store.import_file(lines(file, records))
        for records, name in ((other, "talk-2"), (first, "talk"), (other, "talk-2")):
            again = store.import_file(lines(file, records))
            assert (again.new, [taken.session for taken in again.sessions]) == (0, [name])
        more = [message(user("And?")), message(model_text("That is all."))]
        for records, name in ((other, "talk-2"), (first, "talk")):
            again = store.import_file(lines(file, records + more))
            assert (again.new, [taken.session for taken in again.sessions]) == (2, [name])
        assert len(store.sessions()) == 2


def test_a_fork_of_a_changed_file_may_change_again(tmp_path: Path) -> None:
    """Each change forks off the form that shares most with it, also before the first fork's own records."""
    file = tmp_path / "talk.jsonl"
    forms: list[list[dict[str, Any]]] = []
    for at, text in ((None, ""), (7, "first change"), (8, "second change"), (3, "third change")):
        records = [dict(record) for record in (forms[-1] if forms else chat(2))]
        if at is not None:
            records[at]["content"] = text
        forms.append(records)
    with memory_store() as store, memory_store() as whole:
        for number, records in enumerate(forms, 1):
            store.import_file(lines(file, records))
            alone = lines(tmp_path / f"alone{number}.jsonl", records)
            whole.import_file(alone)
        names = ["talk", "talk-2", "talk-3", "talk-4"]
        assert [info.session for info in store.sessions()] == names
        assert [store.session(name).info().parent for name in names] == [None, "talk", "talk-2", "talk"]
        for number, name in enumerate(names, 1):
            assert seen(store.session(name)) == seen(whole.session(f"alone{number}"))
        assert store.verify().ok


def test_exchanges_among_messages_are_found_again_when_the_file_grows(tmp_path: Path) -> None:
    """Where requests and bare messages are mixed in one file, a later import still knows which is which."""
    request = {"model": "m", "messages": [message(user("aside"))]}
    records = [
        message(user("first")),
        message(model_text("second")),
        {"request": request, "response": {"choices": [{"message": {"role": "assistant", "content": "aside too"}}]}},
        message(user("third")),
        message(model_text("fourth")),
        message(user("fifth")),
        message(model_text("sixth")),
    ]
    file = tmp_path / "talk.jsonl"
    with memory_store() as grown, memory_store() as whole:
        for end in (5, 7):
            grown.import_file(lines(file, records[:end]))
        whole.import_file(file)
        assert all_seen(grown) == all_seen(whole)


@pytest.mark.parametrize("kind", ["pi", "claude-code"])
def test_a_copied_file_is_the_same_source(kind: str, tmp_path: Path) -> None:
    """A file that names its session is known by that name wherever it lies: a copy changes nothing."""
    file = write(tmp_path / "talk.jsonl", kind, 2)
    copy = tmp_path / "copy.jsonl"
    shutil.copy(file, copy)
    with memory_store() as store:
        first = store.import_file(file)
        assert store.import_file(copy).sessions == first.sessions
        assert len(store.sessions()) == 1
        grown = store.import_file(write(copy, kind, 3))
        assert grown.sessions[0].session == first.sessions[0].session and grown.new == 4


@pytest.mark.parametrize("kind", ["chat lines", "chat list", "exchanges"])
def test_two_files_that_begin_alike_never_merge(kind: str, tmp_path: Path) -> None:
    """Files without a session of their own are known by their path: equal beginnings stay two sessions."""
    first, other = write(tmp_path / "one.json", kind, 2), write(tmp_path / "two.json", kind, 3)
    with memory_store() as store:
        for file in (first, other, first, other):
            store.import_file(file)
        infos = store.sessions()
        assert [(info.session, info.turns, info.origin) for info in infos] == [("one", 2, "new"), ("two", 3, "new")]


def test_two_sessions_of_one_id_and_other_pasts_stay_apart(tmp_path: Path) -> None:
    """A file under the same session id whose first record differs is a fork that shares nothing said."""
    first, other = pi(1), pi(1)
    other[0] = {**other[0], "cwd": "/elsewhere"}
    with memory_store() as store:
        store.import_file(lines(tmp_path / "a.jsonl", first))
        done = store.import_file(lines(tmp_path / "b.jsonl", other))
        assert done.sessions[0].messages == 4
        assert [info.session for info in store.sessions()] == ["pi-1", "pi-1-2"]
        assert store.import_file(tmp_path / "b.jsonl").new == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\x00\x01\x02\xff" * 99, "binary"),
        (b"\xff\xfe" + "{}".encode("utf-16-le"), "UTF-8|binary"),
        (b"[" * 50_000, "no known format|nested"),
        (b"dear diary", "no known format"),
        (b'{"a": 1}', "no known format"),
        (b"[]", "no known format"),
    ],
)
def test_a_file_nobody_can_read_is_refused_before_the_first_commit(content: bytes, reason: str, tmp_path: Path) -> None:
    """No format, no text, nothing at all: refused with the reason, and the store is as it was."""
    file = tmp_path / "talk.jsonl"
    file.write_bytes(content)
    with memory_store() as store:
        with pytest.raises(InputError, match=reason):
            store.import_file(file)
        assert store.info().commits == 0


def test_an_import_tells_how_far_it_is(tmp_path: Path) -> None:
    """Progress only grows, from the first records to all of them, forks' inherited ones included."""
    records = claude(120)
    records.append(
        {**records[1], "uuid": "x1", "parentUuid": "d3", "type": "user", "message": {"role": "user", "content": "no"}}
    )
    rows: list[tuple[int, int]] = []
    with memory_store() as store:
        store.import_file(lines(tmp_path / "talk.jsonl", records), progress=lambda *both: rows.append(both))
    assert [done for done, _ in rows] == sorted({done for done, _ in rows}) and len(rows) > 2
    assert {total for _, total in rows} == {rows[-1][0]}


def test_a_file_that_is_not_there_or_of_no_such_format_is_refused(tmp_path: Path) -> None:
    """A missing file, a folder and a format that does not fit are errors that name the file."""
    file = write(tmp_path / "talk.jsonl", "pi", 1)
    with memory_store() as store:
        for path in (tmp_path / "none.jsonl", tmp_path):
            with pytest.raises(InputError, match=path.name):
                store.import_file(path)
        for format in ("claude-code", "nonsense"):
            with pytest.raises(InputError, match=format):
                store.import_file(file, format=format)
        assert store.info().commits == 0


def test_lines_nobody_can_read_are_kept_to_the_byte(tmp_path: Path) -> None:
    """Malformed, unknown and deep lines are raw pages with exact bytes, counted, named with file and line."""
    bad = [b"{broken", b'{"type": "strange", "n": 1.50}', b"\xff\xfe\x00", b"[" * 300 + b"]" * 300, b'"text"']
    good = in_lines(claude(2)).encode().splitlines()
    file = tmp_path / "talk.jsonl"
    file.write_bytes(b"\n".join([good[0], *bad, *good[1:]]) + b"\n")
    with memory_store() as store:
        done = store.import_file(file)
        assert [problem.line for problem in done.problems] == [2, 3, 4, 5, 6]
        assert all(problem.reason for problem in done.problems)
        session = store.session(done.sessions[0].session)
        raw = [page for page in session.pages() if page.type == "raw"]
        assert [session.content(page.page) for page in raw] == bad
        assert done.sessions[0].raw == 5 and all(page.message is None for page in raw)
        details = [session.lineage.history(page.page)[0].detail for page in raw]
        assert all(str(detail).startswith(f"talk.jsonl:{n}: ") for n, detail in enumerate(details, 2))
        assert [call.pages for call in session.calls()] == [2, 4, 6, 8]  # the opaque page, and none of them
        assert store.import_file(file).new == 0
