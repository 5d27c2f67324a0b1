"""Two stores become one: chains kept, what both have once, and every conflict named with nothing of it written."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import vmstore
from tests.disasters.child import joined, start
from tests.engine.author import engine_over
from tests.engine.stories import answer, chat
from tests.erasure.found import found_in
from tests.refusals import refused
from tests.store.archives import everything, told_at
from vmstore.engine.head import NewSession
from vmstore.engine.transfer.merge import LogMerge
from vmstore.errors import CorruptError, InputError, StoreError
from vmstore.log.sqlite import SqliteLog
from vmstore.maintenance.archive import archive
from vmstore.namespace.reports import MergeReport
from vmstore.seals.seals import read_seal
from vmstore.transfer.merge import merge

ALL = ["long", "other", "plan", "plan-b", "plan-c"]


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The store to merge from: five sessions, two of them forks."""
    return told_at(tmp_path / "there.vms")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The store to merge into: one session."""
    with vmstore.open(tmp_path / "here.vms") as store:
        store.record("mine", chat("Hello"), answer("Hi."))
    return tmp_path / "here.vms"


def outcomes(report: MergeReport) -> dict[str, tuple[str, int]]:
    """What became of each session, and how many commits came."""
    return {session.session: (session.outcome, session.commits) for session in report.sessions}


def hashes(store: vmstore.Store) -> dict[str, tuple[int, bytes]]:
    """Where each session ends."""
    return {
        name: (end, digest)
        for name, end, digest in store.admin.views.execute("SELECT name, position, hash FROM sessions")
    }  # type: ignore[misc]


def test_sessions_come_with_their_chains(here: Path, there: Path) -> None:
    """All sessions of the other store come with the very hashes and answers they have, and again nothing happens."""
    with vmstore.open(there, "r") as store:
        before, ends = everything(store), hashes(store)
    dry = merge(here, there, dry_run=True)
    with vmstore.open(here) as store:
        assert list(everything(store)) == ["mine"]
    report = merge(here, there)
    assert outcomes(dry) == outcomes(report) and not dry.done and report.conflicts == 0
    assert {name: outcome[0] for name, outcome in outcomes(report).items()} == dict.fromkeys(ALL, "new")
    with vmstore.open(here) as store:
        after = everything(store)
        assert {name: after[name] for name in ALL} == before and "mine" in after
        assert ends.items() <= hashes(store).items() and store.verify().ok
        assert len(list(here.glob("default/blobs/*/*"))) == 1
        ordinal = store.admin.log.ordinal
        again = store.record("plan", chat("Where to?"), answer("North."), request_id="r-1")
        assert again.call == 1 and store.admin.log.ordinal == ordinal  # request ids came along
    assert {outcome[0] for outcome in outcomes(merge(here, there)).values()} == {"same"}


def test_the_longer_past_wins(there: Path, tmp_path: Path) -> None:
    """Of a session that both have the missing end is appended, either way round, and a new fork finds its past."""
    other = tmp_path / "copy.vms"
    shutil.copytree(there, other)
    with vmstore.open(there) as store:
        store.record("plan", chat("Where to?", "More?"), answer("More."))
        store.session("plan").fork("plan-d", call=4)
    with vmstore.open(other) as store:
        store.record("other", chat("Unrelated", "Longer"), answer("Here."))
    other_outcomes = outcomes(merge(other, there))
    assert (
        other_outcomes["plan"][0] == "grew"
        and other_outcomes["other"] == ("behind", 0)
        and other_outcomes["plan-d"][0] == "new"
    )
    other_outcomes = outcomes(merge(there, other))
    assert other_outcomes["other"][0] == "grew" and other_outcomes["plan"] == ("same", 0)
    with vmstore.open(there) as file, vmstore.open(other) as two:
        assert everything(file) == everything(two) and file.verify().ok and two.verify().ok


def test_parted_sessions_are_named(there: Path, tmp_path: Path) -> None:
    """Where both went on differently the position is named and nothing of it comes; forks from before it do come."""
    other = tmp_path / "copy.vms"
    shutil.copytree(there, other)
    with vmstore.open(there) as store:
        end = store.session("plan").info().position
        store.record("plan", chat("Where to?", "This?"), answer("This."))
        store.session("plan").fork("late", call=4)
        store.session("plan").fork("early", call=1)
        store.session("late").fork("later", call=4)
    with vmstore.open(other) as store:
        store.record("plan", chat("Where to?", "That?"), answer("That."))
        before = everything(store)
    report = merge(other, there)
    fields = {session.session: session for session in report.sessions}
    assert (fields["plan"].outcome, fields["plan"].position) == ("parted", end) and f"position {end}" in (
        fields["plan"].why or ""
    )
    assert fields["late"].outcome == fields["later"].outcome == "orphan" and "'plan'" in (fields["late"].why or "")
    assert fields["early"].outcome == "new" and report.conflicts == 3
    with vmstore.open(other) as store:
        after = everything(store)
        assert {name: after[name] for name in before} == before and set(after) == {*before, "early"}
        assert store.verify().ok
    assert outcomes(merge(other, there, dry_run=True))["late"] == ("orphan", 0)


def test_a_taken_name_is_named(here: Path, there: Path, tmp_path: Path) -> None:
    """Another session of the same name stays, the remedy says how both can be there, and following it works."""
    with vmstore.open(here) as store:
        store.record("plan", chat("Mine"), answer("Mine."))
        mine = everything(store)["plan"]
    report = merge(here, there)
    fields = {session.session: session for session in report.sessions}
    assert fields["plan"].outcome == "taken" and "import" in (fields["plan"].why or "")
    assert fields["plan-b"].outcome == fields["plan-c"].outcome == "orphan" and fields["long"].outcome == "new"
    with vmstore.open(there, "r") as store:
        store.export(tmp_path / "one.jsonl", "plan")
    with vmstore.open(here) as store:
        store.import_file(tmp_path / "one.jsonl")
        assert everything(store)["plan"] == mine and "plan-2" in everything(store) and store.verify().ok


def test_hidden_imports_and_namespaces(here: Path, there: Path) -> None:
    """Unfinished imports come hidden, and every namespace comes, one that is not here made; or only the one named."""
    with vmstore.open(there, namespace="work") as store:
        store.record("job", chat("Go"), answer("Gone."))
    log = SqliteLog(there / "default/log.sqlite")
    engine = engine_over(log, seed=3)
    engine.begin(NewSession("half", hidden=True), 5).commit(5)
    log.close()
    assert {session.namespace for session in merge(here, there, namespace="work").sessions} == {"work"}
    with vmstore.open(here) as store:
        assert [session.session for session in store.sessions()] == ["mine"]
    assert len(merge(here, there).sessions) == 7
    with vmstore.open(here) as store:
        assert "half" not in everything(store) and "half" in [
            session.session for session in store.sessions(hidden=True)
        ]
    with vmstore.open(here, namespace="work") as store:
        assert store.verify().ok and [session.session for session in store.sessions()] == ["job"]


def test_archived_sessions_come_too(here: Path, there: Path) -> None:
    """Contents in archives come as all others, and an archive alone can be merged from."""
    with vmstore.open(there) as store:
        before = everything(store)
        named = {session.session: Path(session.file) for session in archive(store, ALL, grace_s=0).sessions}
    assert set(outcomes(merge(here, named["plan-b"]))) == {"plan", "plan-b"}
    assert outcomes(merge(here, there))["plan-b"] == ("same", 0)
    with vmstore.open(here) as store:
        after = everything(store)
        assert {name: after[name] for name in ALL} == before and store.verify().ok


def test_seals_hold(here: Path, there: Path, tmp_path: Path) -> None:
    """A seal of the store that gains holds afterwards."""
    vmstore.new_key(tmp_path / "key")
    with vmstore.open(here) as store:
        sealed = vmstore.seal(store, tmp_path / "key", tmp_path / "seal")
    merge(here, there)
    with vmstore.open(here) as store:
        assert store.verify(seals=[read_seal(sealed.path)]).ok


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("nth", range(1, 6))
def test_a_kill_leaves_whole_sessions(
    here: Path, there: Path, monkeypatch: pytest.MonkeyPatch, nth: int, after: bool
) -> None:
    """Killed around any session's writing, each is there whole or not at all, and merging again ends it."""
    append, times = SqliteLog.append, []

    def killed(*arguments: object, **more: object) -> object:
        times.append(1)
        if len(times) == nth and not after:
            os._exit(9)
        actual = append(*arguments, **more)  # type: ignore[arg-type]
        if len(times) == nth and after:
            os._exit(9)
        return actual

    def work() -> None:
        monkeypatch.setattr(SqliteLog, "append", killed)
        merge(here, there)

    assert joined(start(work)) == 9
    with vmstore.open(there, "r") as store:
        before = everything(store)
    with vmstore.open(here) as store:
        fields = {name: value for name, value in everything(store).items() if name != "mine"}
        assert len(fields) == nth - 1 + after and fields.items() <= before.items() and store.verify().ok
    assert merge(here, there).conflicts == 0
    with vmstore.open(here) as store:
        assert everything(store).items() >= before.items() and store.verify().ok


def test_a_damaged_store_is_not_taken_from(here: Path, there: Path) -> None:
    """A store with a flipped byte is refused, the place named, and nothing of it written."""
    log = SqliteLog(there / "default/log.sqlite")
    with log.file as db:
        db.execute("UPDATE commits SET at = at + 1 WHERE ordinal = 4")
    log.close()
    with refused("not-sound", CorruptError, "commit 4"):
        merge(here, there)
    with vmstore.open(here) as store:
        assert [session.session for session in store.sessions()] == ["mine"]


def test_what_is_no_pair_of_stores(here: Path, there: Path, tmp_path: Path) -> None:
    """A store into itself, into none, or from none is an error that says so."""
    with refused("same-store", InputError):
        merge(here, here.parent / "." / here.name)
    for into, other in ((tmp_path / "none", there), (here, tmp_path / "none"), (here, tmp_path)):
        with pytest.raises(StoreError):
            merge(into, other)
    assert not (tmp_path / "none").exists()


def test_others_write_meanwhile(here: Path, there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another handle writes, or takes a name, between looking and writing, it is looked at again."""
    standing, times = LogMerge.standing, []

    def meddled(self: LogMerge, *arguments: object) -> object:
        actual = standing(self, *arguments)  # type: ignore[arg-type]
        if len(times) < 2:
            times.append(1)
            with vmstore.open(here) as store:
                store.record("long" if len(times) == 2 else "mine", chat("In between"), None)
        return actual

    monkeypatch.setattr(LogMerge, "standing", meddled)
    actual_outcomes = outcomes(merge(here, there))
    assert len(times) == 2 and sum(actual_outcome[0] == "taken" for actual_outcome in actual_outcomes.values()) == 1
    with vmstore.open(here) as store:
        assert store.verify().ok


def test_what_was_erased_there_is_erased_here(tmp_path: Path) -> None:
    """A session that lost a page there since loses it here with the erasure that comes, once somebody agreed."""
    with vmstore.open(tmp_path / "there.vms") as store:
        store.record("s", chat("the kestrel flies at dawn"), answer("So."))
        vmstore.backup(tmp_path / "there.vms", tmp_path / "bak")
        vmstore.erase(store, page=store.search("kestrel")[0].page, in_session="s")
    vmstore.restore(tmp_path / "bak", tmp_path / "here.vms")
    assert found_in(tmp_path / "here.vms", [b"kestrel"])
    (session,) = merge(tmp_path / "here.vms", tmp_path / "there.vms", dry_run=True).sessions
    assert session.destroyed == 1 and "destroys 1 cell of session 's' here for good" in session.effects[0]
    for agreed in (False, lambda effects: len(effects) > 1):
        with refused("effect-not-allowed"):
            merge(tmp_path / "here.vms", tmp_path / "there.vms", agreed=agreed)
    assert found_in(tmp_path / "here.vms", [b"kestrel"])
    (done,) = merge(tmp_path / "here.vms", tmp_path / "there.vms", agreed=lambda effects: len(effects) == 1).sessions
    assert (done.outcome, done.commits, done.destroyed) == ("grew", 1, 1)
    assert not found_in(tmp_path / "here.vms", [b"kestrel"])
    with vmstore.open(tmp_path / "here.vms") as store:
        assert store.verify().ok


def test_grants_do_not_travel(here: Path, there: Path) -> None:
    """What a namespace granted is its own affair: its charter is neither merged nor in the way of the other's."""
    for path, whom in ((here, "user:ann"), (there, "user:bob")):
        with vmstore.open(path) as store:
            vmstore.share(store, whom)
    report = merge(here, there)
    assert report.conflicts == 0 and "vmstore" not in outcomes(report)
    with vmstore.open(here) as store:
        assert [grant.to for grant in vmstore.grants(store)] == ["user:ann"] and store.verify().ok


def test_an_encrypted_store_is_merged_with_its_key(here: Path, tmp_path: Path) -> None:
    """The key opens the one that is encrypted, and is none of the other's; without it nothing is taken."""
    key = tmp_path / "store.key"
    vmstore.new_store_key(key)
    with vmstore.open(tmp_path / "closed.vms", key=key) as store:
        store.record("closed", chat("Hello"), answer("Hi."))
    with refused("encrypted", StoreError):
        merge(here, tmp_path / "closed.vms")
    assert outcomes(merge(here, tmp_path / "closed.vms", key=key)) == {"closed": ("new", 3)}
    with vmstore.open(here) as store:
        assert store.session("closed").wire.request(call=1) == chat("Hello")
