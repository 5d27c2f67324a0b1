"""Bundles taken in: exactly, where the session is there already or gone another way, and as new sessions."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

import vmstore
from tests.disasters.child import joined, kill, start
from tests.refusals import refused
from tests.transfer.moved import bundle, chains, filled, filled_in_memory, take, taken
from vmstore.engine.transfer import ingest
from vmstore.engine.transfer.rewrite import rewrite_session
from vmstore.errors import ConflictError, InputError, ReadOnlyError, StoreError
from vmstore.log.commit import NO_REQUEST, seal
from vmstore.store.store import Store, memory_store, open_store
from vmstore.testing.simulate import full_disk, play
from vmstore.testing.strategies import Life, lives
from vmstore.transfer import bundle_import

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "something else"}]}


def answers(store: Store, names: dict[str, str]) -> dict[str, Any]:
    """What sessions say of every call, by the names they have elsewhere."""
    fields: dict[str, Any] = {}
    for name, there in names.items():
        session = store.session(there)
        contexts = [session.context(call=call.call) for call in session.calls()]
        rows = [(context.basis.turn, context.messages(), context.pages, context.fidelity) for context in contexts]
        pages = [replace(page, session="") for page in session.pages()]
        fields[name] = (rows, session.turns(), session.calls(), pages)
    return fields


# ---- exactly


def test_the_same_bundle_again_changes_nothing(tmp_path: Path) -> None:
    """A session that is here with the same hashes is the very same, and importing it again writes nothing."""
    actual_bundle = bundle(filled_in_memory())
    with taken(tmp_path, actual_bundle, exact=True) as store:
        before = store.admin.log.ordinal
        again = take(store, tmp_path, actual_bundle, exact=True)
        assert (again.new, store.admin.log.ordinal) == (0, before)
        assert [session.session for session in again.sessions] == ["s", "odd one", "s.child", "s.grandchild"]


def test_a_session_gains_what_it_lacks(tmp_path: Path) -> None:
    """What a bundle knows beyond a session here is added to it; a bundle that knows less changes nothing."""
    store = filled_in_memory()
    with taken(tmp_path, bundle(store, "s", call=2), exact=True) as other:
        take(other, tmp_path, bundle(store, "s.grandchild"), exact=True)
        take(other, tmp_path, bundle(store), exact=True)
        assert chains(other) == chains(store) and other.verify().ok
        assert take(other, tmp_path, bundle(store, "s", call=2), exact=True).new == 0
        assert other.record("s", REQUEST).call == store.session("s").info().calls + 1


def test_a_session_that_went_on_differently_is_refused(tmp_path: Path) -> None:
    """Where the same session has another past here, nothing is written and the remedy is named."""
    store = filled_in_memory()
    with taken(tmp_path, bundle(store, "s", call=2), exact=True) as other:
        other.record("s", REQUEST)
        before = other.admin.log.ordinal
        with refused("diverged", ConflictError, "'s'"):
            take(other, tmp_path, bundle(store), exact=True)
        assert other.admin.log.ordinal == before and other.verify().ok


def test_a_taken_name_is_refused(tmp_path: Path) -> None:
    """Another session of the same name is in the way of an exact import: nothing is written."""
    with memory_store() as other:
        other.record("odd one", REQUEST)
        before = other.admin.log.ordinal
        with refused("name-taken", ConflictError, "'odd one'"):
            take(other, tmp_path, bundle(filled_in_memory()), exact=True)
        assert other.admin.log.ordinal == before


def test_a_part_of_an_import_is_not_taken_in_unseen(tmp_path: Path) -> None:
    """A moment at which a session's own import was not complete would stay hidden, so it is refused."""
    file = tmp_path / "chat.jsonl"
    file.write_text('{"role": "user", "content": "one"}\n{"role": "assistant", "content": "two"}\n')
    with memory_store() as store, memory_store() as other:
        name = store.import_file(file).sessions[0].session
        actual_bundle = bundle(store, name, call=1)
        with refused("import-unfinished", InputError):
            take(other, tmp_path, actual_bundle, exact=True)
        assert other.admin.log.ordinal == 0
        assert take(other, tmp_path, actual_bundle).sessions[0].session == name
        assert other.session(name).info().calls == 1


def test_exact_is_for_bundles_and_their_names(tmp_path: Path) -> None:
    """Exact commits take no other name, and other files have none."""
    store = filled_in_memory()
    with refused("keeps-its-name", InputError):
        take(store, tmp_path, bundle(store), exact=True, session="x")
    with refused("not-a-bundle", InputError):
        take(store, tmp_path, b'{"role": "user", "content": "one"}\n', exact=True)


def test_a_reader_takes_nothing_in(tmp_path: Path) -> None:
    """A store opened for reading exports, and refuses a bundle."""
    with open_store(tmp_path / "agent.vms") as store:
        filled(store)
    with open_store(tmp_path / "agent.vms", "r") as store:
        actual_bundle = bundle(store)
        with pytest.raises(ReadOnlyError):
            take(store, tmp_path, actual_bundle, exact=True)


def test_a_full_disk_leaves_each_session_whole_or_absent(tmp_path: Path) -> None:
    """An import that cannot be written is a clear error, and nothing of it is seen."""
    with memory_store() as store:
        actual_bundle = bundle(filled_in_memory())
        for exact in (True, False):
            with full_disk(store.admin.log), pytest.raises(StoreError, match="full"):
                take(store, tmp_path, actual_bundle, exact=exact)
            assert store.sessions(hidden=True) == [] and store.verify().ok


@pytest.mark.parametrize("exact", [True, False])
def test_a_killed_import_leaves_each_session_whole_or_absent(tmp_path: Path, exact: bool) -> None:
    """SIGKILL at growing delays: each session is there with all its calls or not at all, and again completes it."""
    store = filled_in_memory()
    actual_bundle = bundle(store)
    calls = {info.session: info.calls for info in store.sessions()}
    (tmp_path / "bundle.jsonl").write_bytes(actual_bundle)
    vmstore.open(tmp_path / "agent.vms").close()

    def work() -> None:
        os.write(writer, b".")
        with vmstore.open(tmp_path / "agent.vms") as other:
            other.import_file(tmp_path / "bundle.jsonl", exact=exact)

    killed = 0
    for number in range(12):
        reader, writer = os.pipe()
        pid = start(work)
        os.read(reader, 1)
        time.sleep(0.004 * number)
        killed += _ended(pid)
        with vmstore.open(tmp_path / "agent.vms") as other:
            assert {info.session: info.calls for info in other.sessions()}.items() <= calls.items()
            assert other.verify().ok
    assert killed, "no import was killed before its end: the delays are too long"
    with vmstore.open(tmp_path / "agent.vms") as other:
        take(other, tmp_path, actual_bundle, exact=exact)
        assert {info.session: info.calls for info in other.sessions()} == calls


def _ended(pid: int) -> bool:
    """Kills a child; whether it was still at work."""
    done, _ = os.waitpid(pid, os.WNOHANG)
    if done:
        return False
    kill(pid)
    return True


def test_a_writer_in_between_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another writes while an exact import looks at what is here, it looks again and loses nothing."""
    with open_store(tmp_path / "agent.vms") as store, open_store(tmp_path / "agent.vms") as other:
        right, busy = ingest.standing, [True]

        def standing(*arguments: Any) -> Any:
            row = right(*arguments)
            if busy and busy.pop():
                other.record("theirs", REQUEST)
            return row

        monkeypatch.setattr(ingest, "standing", standing)
        source = filled_in_memory()
        take(store, tmp_path, bundle(source), exact=True)
        assert not busy and len(store.sessions()) == 5 and store.verify().ok
        assert chains(source).items() <= chains(store).items()


def test_commits_are_read_as_they_are_asked_for() -> None:
    """A slice of a session's commits reads as these commits, each with its cells."""
    source = filled_in_memory()
    commits = ingest.ForeignCommits(source.admin.log, range(1, 6))
    assert [c.ordinal for c in commits[1:3]] == [2, 3] and len(commits[1:3]) == 2
    assert commits[1:3][0] == commits[1] and len(commits[0].cells) == commits[0].cell_count > 0


# ---- as new sessions


def test_a_kind_of_a_later_version_is_taken_in_exactly_or_not(tmp_path: Path) -> None:
    """A session with a mutation this version cannot write is refused as a new one and taken in exactly."""
    source = filled_in_memory()
    end = source.admin.log.tail(source.admin.log.ordinal - 1, 1)[0]
    later = seal(end.hash, end.last + 1, 1, end.at, 0, b"\x91\x92\x63\x01", (), NO_REQUEST)
    source.admin.log.append([later], end.session, end.last)
    actual_bundle = bundle(source)
    with memory_store() as store:
        with refused("unknown-kind", InputError):
            take(store, tmp_path, actual_bundle)
        assert store.sessions(hidden=True) == [] or store.verify().ok
        take(store, tmp_path, actual_bundle, exact=True)
        assert chains(store) == chains(source)


@settings(max_examples=15)
@given(life=lives(steps_max=12))
def test_a_life_told_anew_answers_the_same(life: Life) -> None:
    """Imported without exact, sessions have ids, salts and hashes of their own and answer every question the same."""
    with tempfile.TemporaryDirectory() as folder:
        player = play(life, Path(folder))
        names = [info.session for info in player.store.sessions()]
        if not names:
            return
        with memory_store(clock=player.clock) as store:
            take(store, Path(folder), bundle(player.store))
            assert answers(store, dict(zip(names, names, strict=True))) == answers(
                player.store, dict(zip(names, names, strict=True))
            )
            assert not chains(store).keys() & chains(player.store).keys()
            assert store.verify().ok
        player.close()


def test_a_copy_stands_beside_its_original(tmp_path: Path) -> None:
    """Into the store it came from a bundle brings copies under free names, once, that go on by themselves."""
    store = filled_in_memory()
    actual_bundle = bundle(store)
    names = {info.session: f"{info.session}-2" for info in store.sessions()}
    assert {session.session for session in take(store, tmp_path, actual_bundle).sessions} == set(names.values())
    assert answers(store, names) == answers(store, {name: name for name in names})
    assert take(store, tmp_path, actual_bundle).new == 0
    store.record("s-2", REQUEST)
    assert store.session("s").info().calls + 1 == store.session("s-2").info().calls
    assert store.session("s.child-2").info().parent == "s-2" and store.verify().ok


def test_a_copy_has_the_clock_of_its_store(tmp_path: Path) -> None:
    """What is rewritten happened when it happened and is logged now."""
    store = filled_in_memory()
    with taken(tmp_path, bundle(store, "s")) as other:
        old, new = list(store.tail(limit=3)), list(other.tail(limit=3))
        assert [entry.at for entry in old] == [entry.at for entry in new]
        assert all(then.logged_at < now.logged_at for then, now in zip(old, new, strict=True))


def test_a_copy_answers_a_retry(tmp_path: Path) -> None:
    """A request id of the original is known to the copy, so a retry there writes nothing."""
    store = filled_in_memory()
    odd = {"model": "m", "messages": [{"role": "user", "content": "é☃ \ud800 \u2028 \0"}], "temperature": 0.5}
    with taken(tmp_path, bundle(store, "odd one")) as other:
        before = other.admin.log.ordinal
        assert other.record("odd one", odd, None, request_id="r 1").call == 1
        assert other.admin.log.ordinal == before


def test_one_name_is_for_one_session(tmp_path: Path) -> None:
    """A name can be given to the session asked for; where a bundle holds several, none is chosen."""
    store = filled_in_memory()
    with memory_store() as other:
        took = take(other, tmp_path, bundle(store, "s.child"), session="mine")
        assert [session.session for session in took.sessions] == ["mine", "s"]
        with refused("one-name-for-many", InputError):
            take(other, tmp_path, bundle(store), session="mine")


@pytest.mark.parametrize("exact", [True, False])
def test_two_processes_importing_one_bundle_make_one_copy(tmp_path: Path, exact: bool) -> None:
    """Four processes import the same bundle at once: each ends well, and each session is there once."""
    store = filled_in_memory()
    (tmp_path / "bundle.jsonl").write_bytes(bundle(store))
    vmstore.open(tmp_path / "agent.vms").close()

    def work() -> None:
        with vmstore.open(tmp_path / "agent.vms") as other:
            other.import_file(tmp_path / "bundle.jsonl", exact=exact)

    assert [joined(pid) for pid in [start(work) for _ in range(4)]] == [0] * 4
    with vmstore.open(tmp_path / "agent.vms") as other:
        assert {info.session: info.calls for info in other.sessions(hidden=True)} == {
            info.session: info.calls for info in store.sessions()
        }
        assert other.verify().ok


def test_who_is_second_takes_the_others_copy(store_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another handle takes the same bundle in just before, its sessions are taken and none is written twice."""
    store = filled_in_memory()
    actual_bundle = bundle(store)
    with vmstore.open(store_path) as file, vmstore.open(store_path) as other:
        others: list[int] = []

        def late(*arguments: Any) -> Any:
            if not others:
                others.append(0)
                others[0] = take(other, tmp_path, actual_bundle).new
            return rewrite_session(*arguments)

        monkeypatch.setattr(bundle_import, "rewrite_session", late)
        assert (take(file, tmp_path, actual_bundle).new, others[0] > 0) == (0, True)
        assert [info.session for info in file.sessions()] == [info.session for info in store.sessions()]
        assert file.verify().ok
