"""Seals of a store: made, kept beside it, held against it wherever it goes, and proofs by them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

import vmstore
from tests.engine.stories import LOG, answer, chat, edit
from tests.refusals import refused
from vmstore.cells.verify_proof import check
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import CorruptError, InputError, UnknownError
from vmstore.log.sqlite import SqliteLog
from vmstore.namespace.signing_keys import SigningKey
from vmstore.seals.seal import Seal


class Told(NamedTuple):
    """A store on disk, the key it is sealed with, and the clock seals look at."""

    path: Path
    key: SigningKey
    clock: ManualClock

    def seal(self) -> Seal:
        """Seals what is there now."""
        with vmstore.open(self.path) as store:
            return vmstore.read_seal(vmstore.seal(store, self.key, clock=self.clock).path, self.key.public.hex())

    def problems(self, *seals: Seal, path: Path | None = None) -> list[str]:
        """What verify says, held against seals."""
        with vmstore.open(path or self.path) as store:
            return [f"{one.kind} {one.where}: {one.what}" for one in store.verify(seals=seals).problems]

    def say(self, session: str, *texts: str) -> None:
        """Records a call."""
        with vmstore.open(self.path) as store:
            store.record(session, chat(*texts), answer(f"so {len(texts)}"))


@pytest.fixture
def told(tmp_path: Path) -> Told:
    """A store with two sessions and a fork."""
    key = vmstore.new_key(tmp_path / "key", ids=SeededIds(1))
    told = Told(tmp_path / "a.vms", key, ManualClock(1_700_000_000_000_000, 1_000_000))
    told.say("s", "one")
    told.say("s", "one", "so 1", "two")
    told.say("t", "other")
    with vmstore.open(told.path) as store:
        store.session("s").fork("f", call=1)
    return told


def test_seals_are_kept_beside_the_store(told: Told) -> None:
    """A seal lies in a folder beside the store that is no part of it, named by namespace, commit and time."""
    told.seal()
    told.say("s", "three")
    told.seal()
    names = sorted(file.name for file in told.path.with_name("a.vms.seals").iterdir())
    assert [name.split("-")[0] for name in names] == ["default", "default"]
    assert names == sorted(set(names)) and names[0].endswith("20231114T221320.000000Z.seal")
    assert not [file for file in told.path.rglob("*") if "seal" in file.name]


def test_a_store_that_grew_is_clean(told: Told) -> None:
    """Calls, sessions, forks, packing, a rebuild and an import after a seal leave the verdict clean."""
    seals = [told.seal()]
    told.say("s", "one", "so 1", "two", "so 3", "three")
    told.say("new", "hello")
    with vmstore.open(told.path) as store:
        store.session("f").fork("g")
        store.admin.compact()
        store.admin.rebuild()
    assert told.problems(*seals, told.seal()) == []


def test_an_old_copy_put_back_is_named(told: Told) -> None:
    """A whole, sound, older copy is clean without the seal, and with it every session that has grown is named."""
    shutil.copytree(told.path, told.path.with_name("old"))
    told.say("s", "one", "so 1", "two", "so 3", "three")
    told.say("new", "hello")
    seal = told.seal()
    shutil.rmtree(told.path)
    shutil.copytree(told.path.with_name("old"), told.path)
    assert told.problems() == []
    found = told.problems(seal)
    assert len(found) == 2 and all(problem.startswith("seal session") for problem in found)
    assert "older copy" in found[0] and "older copy" in found[1]


def test_an_old_copy_used_on_is_named(told: Told) -> None:
    """An old copy that grew on another way, past what was sealed, is named as rewritten."""
    shutil.copytree(told.path, told.path.with_name("old"))
    told.say("s", "one", "so 1", "two", "so 3", "three")
    seal = told.seal()
    shutil.rmtree(told.path)
    shutil.copytree(told.path.with_name("old"), told.path)
    told.say("s", "one", "so 1", "two", "so 3", "another three")
    told.say("s", "one", "so 1", "two", "so 3", "another three", "so 5", "and on")
    assert told.problems() == []
    (found,) = told.problems(seal)
    assert found.startswith("seal session s (") and "rewritten" in found


def test_what_lost_its_seal_is_not_sealed_again(told: Told) -> None:
    """A store that no longer holds its last seal is refused another one, until the seals are moved away."""
    shutil.copytree(told.path, told.path.with_name("old"))
    told.say("s", "three")
    told.seal()
    shutil.rmtree(told.path)
    shutil.copytree(told.path.with_name("old"), told.path)
    with refused("seal-broken"):
        told.seal()
    told.path.with_name("a.vms.seals").rename(told.path.with_name("elsewhere"))
    told.seal()


def test_what_is_broken_is_not_sealed(told: Told) -> None:
    """A log whose chain does not hold is refused a seal, which would bless it."""
    edit(told.path, "UPDATE commits SET at = at + 1 WHERE ordinal = 2")
    with vmstore.open(told.path, "r") as store, refused("not-sound", CorruptError, "commit 2"):
        vmstore.seal(store, told.key)


def test_what_is_empty_is_not_sealed(tmp_path: Path, told: Told) -> None:
    """A namespace without a session, and a store in memory without a file named, are refused."""
    with vmstore.open(tmp_path / "empty.vms") as store, refused("nothing-to-seal"):
        vmstore.seal(store, told.key)
    memory = vmstore.memory_store()
    memory.record("s", chat("hello"), None)
    with refused("in-memory", InputError):
        vmstore.seal(memory, told.key)
    info = vmstore.seal(memory, told.key, tmp_path / "m.seal")
    assert memory.verify(seals=[vmstore.read_seal(info.path)]).ok


def test_a_backup_holds_the_seal(told: Told) -> None:
    """A backup made after a seal, restored elsewhere, is clean against it, one made before is not."""
    vmstore.backup(told.path, told.path.with_name("before.bak"))
    told.say("s", "three")
    seal = told.seal()
    vmstore.backup(told.path, told.path.with_name("after.bak"))
    for name in ("before", "after"):
        vmstore.restore(told.path.with_name(f"{name}.bak"), told.path.with_name(f"{name}.vms"))
    assert told.problems(seal, path=told.path.with_name("after.vms")) == []
    assert told.problems(seal, path=told.path.with_name("before.vms")) != []


def test_sessions_moved_exactly_keep_what_was_sealed(told: Told) -> None:
    """A bundle taken in exactly has the very chains, so each session holds its seal under other keys and ordinals."""
    seal = told.seal()
    with vmstore.open(told.path) as store:
        store.export(told.path.with_name("b.jsonl"), exact=True)
    with vmstore.open(told.path.with_name("c.vms")) as store:
        store.import_file(told.path.with_name("b.jsonl"), exact=True)
        found = store.verify(seals=[seal]).problems
    assert [problem.where for problem in found if problem.where != "log"] == []


def test_a_cut_end_is_named_with_what_forked_from_it(told: Told) -> None:
    """Commits deleted from the end of the log, cells and all, are clean to verify and named by the seal."""
    seal = told.seal()
    log = SqliteLog(told.path / LOG)
    last = log.tail(log.ordinal - 1, 1)[0]
    log.close()
    edit(told.path, f"DELETE FROM commits WHERE ordinal = {last.ordinal}")
    if last.cell_count:
        edit(told.path, f"DELETE FROM frames WHERE first >= {last.cell}")
    for views in told.path.rglob("views-*"):
        views.unlink()
    assert told.problems() == []
    (found,) = told.problems(seal)
    assert "no such session" in found, "the last commit opened the fork"


# ---- proofs


def test_every_page_of_every_context_can_be_proven(told: Told) -> None:
    """Each page of each call of each session, a fork's inherited calls among them, has a proof that holds."""
    told.seal()
    count = 0
    with vmstore.open(told.path) as store:
        for info in store.sessions():
            session = store.session(info.session)
            for call in range(1, info.calls + 1):
                context = session.context(call=call)
                for page in context.pages:
                    proof = session.prove(page.page, call=call)
                    assert proof.says == check(proof.proof, told.key.public)
                    assert f"page {page.page} of" in proof.says
                    assert check(proof.proof, told.key.public, proof.content).endswith(", with this content")
                    assert proof.content is not None
                    assert proof.content[16:] == context.contents()[page.page]
                    count += 1
    assert count > 8


def test_a_proof_names_the_oldest_seal_that_covers_it(told: Told) -> None:
    """Of several seals the oldest that covers a call proves it, unless another one is named."""
    first = told.seal()
    told.say("s", "one", "so 1", "two", "so 3", "three")
    second = told.seal()
    with vmstore.open(told.path) as store:
        session = store.session("s")
        page = session.context(call=1).pages[0].page
        assert "22:13:20" in session.prove(page, call=1).says
        assert "22:13:21" in session.prove(page, call=1, seal=second).says
        assert "22:13:21" in session.prove(page, call=3).says
        with refused("not-sealed", UnknownError, "call 3"):
            session.prove(page, call=3, seal=first)


def test_what_cannot_be_proven_says_why(told: Told) -> None:
    """Without a seal, for a page that was not in the context, and for no page at all there is no proof."""
    with vmstore.open(told.path) as store:
        session = store.session("s")
        first, last = session.context(call=1).pages[0].page, session.context(call=2).pages[-1].page
        with refused("not-sealed", UnknownError):
            session.prove(first, call=1)
        vmstore.seal(store, told.key)
        with refused("page-came-later", UnknownError):
            session.prove(last, call=1)
        with pytest.raises(UnknownError):
            session.prove("p9999", call=1)
        with pytest.raises(UnknownError):
            session.prove(first, call=9)


def test_a_session_that_was_changed_proves_nothing(told: Told) -> None:
    """Where a session is not what was sealed, no proof is made of it."""
    seal = told.seal()
    heads = tuple(head._replace(history=bytes(32)) for head in seal.heads)
    with vmstore.open(told.path) as store, refused("not-as-sealed", CorruptError):
        session = store.session("s")
        session.prove(session.context(call=1).pages[0].page, call=1, seal=msgspec.structs.replace(seal, heads=heads))
