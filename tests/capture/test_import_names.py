"""What imported sessions are called: the name given, the file's own id, its stem, and suffixes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.capture.imports import chat, claude, claude_record, seen, write
from tests.capture.words import lines, message, model_text, request, user
from tests.refusals import refused
from vmstore.errors import InputError, UnknownError, VmstoreError
from vmstore.store.store import memory_store, open_store


def names(store: object) -> list[str]:
    """The sessions of a store."""
    return [info.session for info in store.sessions()]  # type: ignore[attr-defined]


def test_a_file_with_an_id_is_called_by_it(tmp_path: Path) -> None:
    """The session's own id names it; a file without one is called by its stem."""
    with memory_store() as store:
        for kind in ("pi", "claude-code", "chat lines"):
            store.import_file(write(tmp_path / f"{kind} file.jsonl", kind, 1))
        assert names(store) == ["chat lines file", "pi-1", "s-1"]


def test_a_taken_name_gets_a_suffix(tmp_path: Path) -> None:
    """Files of one stem in several folders, and one called like a recorded session, are told apart."""
    with memory_store() as store:
        store.record("talk", request([user("mine")]))
        for folder in ("a", "b", "c"):
            (tmp_path / folder).mkdir()
            store.import_file(write(tmp_path / folder / "talk.jsonl", "chat lines", 1))
        assert names(store) == ["talk", "talk-2", "talk-3", "talk-4"]
        assert store.session("talk").info().calls == 1


def test_a_name_given_is_the_name(tmp_path: Path) -> None:
    """`session` names the main session, with a suffix where it is taken; again it finds its file."""
    first, other = write(tmp_path / "one.jsonl", "pi", 1), write(tmp_path / "two.jsonl", "chat lines", 1)
    with memory_store() as store:
        assert store.import_file(first, session="mine").sessions[0].session == "mine"
        assert store.import_file(other, session="mine").sessions[0].session == "mine-2"
        assert store.import_file(first, session="mine").sessions[0].session == "mine"
        assert store.import_file(first, session="another").sessions[0].session == "mine"
        assert names(store) == ["mine", "mine-2"]


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 501])
def test_an_impossible_name_is_refused_before_the_first_commit(name: str, tmp_path: Path) -> None:
    """A name that cannot be printed is refused and nothing is imported."""
    file = write(tmp_path / "talk.jsonl", "pi", 1)
    with memory_store() as store:
        with refused("not-a-name", InputError):
            store.import_file(file, session=name)
        assert store.info().commits == 0


def test_a_name_given_to_several_tracks_is_suffixed_by_each(tmp_path: Path) -> None:
    """Forks and runs of one file carry the given name and which of them they are."""
    forked = [*claude(2), claude_record("user", "x1", "d0", "another way?")]
    runs = [{"task_id": t, "trial": n, "reward": 1.0, "traj": chat(1)} for t in (1, 2) for n in (0, 1)]
    (tmp_path / "runs.json").write_text(json.dumps(runs))
    with memory_store() as store:
        taken = store.import_file(lines(tmp_path / "tree.jsonl", forked), session="mine").sessions
        assert [item.session for item in taken] == ["mine", "mine-x1"]
        taken = store.import_file(tmp_path / "runs.json", session="tau").sessions
        assert [item.session for item in taken] == [f"tau-task{t}-trial{n}" for t in (1, 2) for n in (0, 1)]


def test_one_object_a_line_is_one_session_each(tmp_path: Path) -> None:
    """Conversations in the lines of one file are sessions of their own, and a new line is a new one."""
    talks = [{"messages": [message(user(f"question {n}")), message(model_text(f"answer {n}"))]} for n in range(3)]
    file = tmp_path / "talks.jsonl"
    with memory_store() as store:
        store.import_file(lines(file, talks[:2]))
        before = [seen(store.session(name)) for name in names(store)]
        again = store.import_file(lines(file, talks))
        assert names(store) == ["talks-1", "talks-2", "talks-3"]
        assert again.new == 2 and len(again.sessions) == 3
        assert [seen(store.session(name)) for name in names(store)[:2]] == before


def test_a_sources_name_is_made_printable(tmp_path: Path) -> None:
    """Control characters in a file's own id, and ids without end, become names people can type."""
    for number, own in enumerate(("a\nb\x00c", "y" * 600, "", "é 会")):
        records = [{"type": "session", "id": own}, {"type": "message", "message": {"role": "user", "content": "hi"}}]
        lines(tmp_path / f"file{number}.jsonl", records)
    with memory_store() as store:
        for number in range(4):
            store.import_file(tmp_path / f"file{number}.jsonl")
            store.import_file(tmp_path / f"file{number}.jsonl")
        actual_names = names(store)
        assert len(actual_names) == 4 and "é 会" in actual_names and "a_b_c" in actual_names
        assert all(name.isprintable() and 0 < len(name) <= 500 for name in actual_names)


def test_the_files_path_is_taken_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file reached by another path of the same place is the same source."""
    (tmp_path / "sub").mkdir()
    write(tmp_path / "talk.jsonl", "chat lines", 1)
    with open_store(tmp_path / "s.vms") as store:
        store.import_file(tmp_path / "talk.jsonl")
        monkeypatch.chdir(tmp_path)
        assert store.import_file("talk.jsonl").new == 0
        assert store.import_file("sub/../talk.jsonl").new == 0
        assert len(names(store)) == 1


def test_a_session_imported_goes_on_when_recorded(tmp_path: Path) -> None:
    """An agent that resumes an imported conversation finds its messages as pages."""
    file = write(tmp_path / "talk.jsonl", "chat lines", 2)
    with memory_store() as store:
        store.import_file(file)
        session = store.session("talk")
        pages = session.info().pages
        body = {"model": "m", "messages": [*chat(2), message(user("And now?"))]}
        done = store.record("talk", body)
        assert (done.call, done.turn) == (5, 3)
        assert session.info().pages == pages + 1
        assert session.wire.request() == body
        assert session.context(call=4).fidelity == "derived"


def test_an_import_not_yet_whole_cannot_be_recorded_into(tmp_path: Path) -> None:
    """A hidden session is no session: a call recorded under its name is never lost in it."""
    file = write(tmp_path / "talk.jsonl", "chat lines", 300)

    def stop(done: int, total: int) -> None:
        if done:
            raise InterruptedError

    with memory_store() as store:
        with pytest.raises(InterruptedError):
            store.import_file(file, progress=stop)
        assert names(store) == []
        with pytest.raises(UnknownError):
            store.session("talk")
        try:
            done = store.record("talk", request([user("mine")]))
        except VmstoreError:
            assert names(store) == []
        else:
            assert store.session(done.session).wire.request(call=done.call) == request([user("mine")])
        store.import_file(file)
        assert any(info.calls == 600 for info in store.sessions())
