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


class SealableStore(NamedTuple):
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
            return [f"{problem.kind} {problem.where}: {problem.what}" for problem in store.verify(seals=seals).problems]

    def say(self, session: str, *texts: str) -> None:
        """Records a call."""
        with vmstore.open(self.path) as store:
            store.record(session, chat(*texts), answer(f"so {len(texts)}"))


@pytest.fixture
def sealable(tmp_path: Path) -> SealableStore:
    """A store with two sessions and a fork."""
    key = vmstore.new_key(tmp_path / "key", ids=SeededIds(1))
    talk = SealableStore(tmp_path / "a.vms", key, ManualClock(1_700_000_000_000_000, 1_000_000))
    talk.say("s", "one")
    talk.say("s", "one", "so 1", "two")
    talk.say("t", "other")
    with vmstore.open(talk.path) as store:
        store.session("s").fork("f", call=1)
    return talk


def test_seals_are_kept_beside_the_store(sealable: SealableStore) -> None:
    """A seal lies in a folder beside the store that is no part of it, named by namespace, commit and time."""
    sealable.seal()
    sealable.say("s", "three")
    sealable.seal()
    names = sorted(file.name for file in sealable.path.with_name("a.vms.seals").iterdir())
    assert [name.split("-")[0] for name in names] == ["default", "default"]
    assert names == sorted(set(names)) and names[0].endswith("20231114T221320.000000Z.seal")
    assert not [file for file in sealable.path.rglob("*") if "seal" in file.name]


def test_a_store_that_grew_is_clean(sealable: SealableStore) -> None:
    """Calls, sessions, forks, packing, a rebuild and an import after a seal leave the verdict clean."""
    seals = [sealable.seal()]
    sealable.say("s", "one", "so 1", "two", "so 3", "three")
    sealable.say("new", "hello")
    with vmstore.open(sealable.path) as store:
        store.session("f").fork("g")
        store.admin.compact()
        store.admin.rebuild()
    assert sealable.problems(*seals, sealable.seal()) == []


def test_an_old_copy_put_back_is_named(sealable: SealableStore) -> None:
    """A whole, sound, older copy is clean without the seal, and with it every session that has grown is named."""
    shutil.copytree(sealable.path, sealable.path.with_name("old"))
    sealable.say("s", "one", "so 1", "two", "so 3", "three")
    sealable.say("new", "hello")
    seal = sealable.seal()
    shutil.rmtree(sealable.path)
    shutil.copytree(sealable.path.with_name("old"), sealable.path)
    assert sealable.problems() == []
    problems = sealable.problems(seal)
    assert len(problems) == 2 and all(problem.startswith("seal session") for problem in problems)
    assert "older copy" in problems[0] and "older copy" in problems[1]


def test_an_old_copy_used_on_is_named(sealable: SealableStore) -> None:
    """An old copy that grew on another way, past what was sealed, is named as rewritten."""
    shutil.copytree(sealable.path, sealable.path.with_name("old"))
    sealable.say("s", "one", "so 1", "two", "so 3", "three")
    seal = sealable.seal()
    shutil.rmtree(sealable.path)
    shutil.copytree(sealable.path.with_name("old"), sealable.path)
    sealable.say("s", "one", "so 1", "two", "so 3", "another three")
    sealable.say("s", "one", "so 1", "two", "so 3", "another three", "so 5", "and on")
    assert sealable.problems() == []
    (problem,) = sealable.problems(seal)
    assert problem.startswith("seal session s (") and "rewritten" in problem


def test_what_lost_its_seal_is_not_sealed_again(sealable: SealableStore) -> None:
    """A store that no longer holds its last seal is refused another one, until the seals are moved away."""
    shutil.copytree(sealable.path, sealable.path.with_name("old"))
    sealable.say("s", "three")
    sealable.seal()
    shutil.rmtree(sealable.path)
    shutil.copytree(sealable.path.with_name("old"), sealable.path)
    with refused("seal-broken"):
        sealable.seal()
    sealable.path.with_name("a.vms.seals").rename(sealable.path.with_name("elsewhere"))
    sealable.seal()


def test_what_is_broken_is_not_sealed(sealable: SealableStore) -> None:
    """A log whose chain does not hold is refused a seal, which would bless it."""
    edit(sealable.path, "UPDATE commits SET at = at + 1 WHERE ordinal = 2")
    with vmstore.open(sealable.path, "r") as store, refused("not-sound", CorruptError, "commit 2"):
        vmstore.seal(store, sealable.key)


def test_what_is_empty_is_not_sealed(tmp_path: Path, sealable: SealableStore) -> None:
    """A namespace without a session, and a store in memory without a file named, are refused."""
    with vmstore.open(tmp_path / "empty.vms") as store, refused("nothing-to-seal"):
        vmstore.seal(store, sealable.key)
    memory = vmstore.memory_store()
    memory.record("s", chat("hello"), None)
    with refused("in-memory", InputError):
        vmstore.seal(memory, sealable.key)
    info = vmstore.seal(memory, sealable.key, tmp_path / "m.seal")
    assert memory.verify(seals=[vmstore.read_seal(info.path)]).ok


def test_a_backup_holds_the_seal(sealable: SealableStore) -> None:
    """A backup made after a seal, restored elsewhere, is clean against it, one made before is not."""
    vmstore.backup(sealable.path, sealable.path.with_name("before.bak"))
    sealable.say("s", "three")
    seal = sealable.seal()
    vmstore.backup(sealable.path, sealable.path.with_name("after.bak"))
    for name in ("before", "after"):
        vmstore.restore(sealable.path.with_name(f"{name}.bak"), sealable.path.with_name(f"{name}.vms"))
    assert sealable.problems(seal, path=sealable.path.with_name("after.vms")) == []
    assert sealable.problems(seal, path=sealable.path.with_name("before.vms")) != []


def test_sessions_moved_exactly_keep_what_was_sealed(sealable: SealableStore) -> None:
    """A bundle taken in exactly has the very chains, so each session holds its seal under other keys and ordinals."""
    seal = sealable.seal()
    with vmstore.open(sealable.path) as store:
        store.export(sealable.path.with_name("b.jsonl"), exact=True)
    with vmstore.open(sealable.path.with_name("c.vms")) as store:
        store.import_file(sealable.path.with_name("b.jsonl"), exact=True)
        problems = store.verify(seals=[seal]).problems
    assert [problem.where for problem in problems if problem.where != "log"] == []


def test_a_cut_end_is_named_with_what_forked_from_it(sealable: SealableStore) -> None:
    """Commits deleted from the end of the log, cells and all, are clean to verify and named by the seal."""
    seal = sealable.seal()
    log = SqliteLog(sealable.path / LOG)
    last = log.tail(log.ordinal - 1, 1)[0]
    log.close()
    edit(sealable.path, f"DELETE FROM commits WHERE ordinal = {last.ordinal}")
    if last.cell_count:
        edit(sealable.path, f"DELETE FROM frames WHERE first >= {last.cell}")
    for views in sealable.path.rglob("views-*"):
        views.unlink()
    assert sealable.problems() == []
    (problem,) = sealable.problems(seal)
    assert "no such session" in problem, "the last commit opened the fork"


# ---- proofs


def test_every_page_of_every_context_can_be_proven(sealable: SealableStore) -> None:
    """Each page of each call of each session, a fork's inherited calls among them, has a proof that holds."""
    sealable.seal()
    count = 0
    with vmstore.open(sealable.path) as store:
        for info in store.sessions():
            session = store.session(info.session)
            for call in range(1, info.calls + 1):
                context = session.context(call=call)
                for page in context.pages:
                    proof = store.trust.prove(session, page.page, call=call)
                    assert proof.says == check(proof.proof, sealable.key.public)
                    assert f"page {page.page} of" in proof.says
                    assert check(proof.proof, sealable.key.public, proof.content).endswith(", with this content")
                    assert proof.content is not None
                    assert proof.content[16:] == context.contents()[page.page]
                    count += 1
    assert count > 8


def test_a_proof_names_the_oldest_seal_that_covers_it(sealable: SealableStore) -> None:
    """Of several seals the oldest that covers a call proves it, unless another one is named."""
    first = sealable.seal()
    sealable.say("s", "one", "so 1", "two", "so 3", "three")
    second = sealable.seal()
    with vmstore.open(sealable.path) as store:
        session = store.session("s")
        page = session.context(call=1).pages[0].page
        assert "22:13:20" in store.trust.prove(session, page, call=1).says
        assert "22:13:21" in store.trust.prove(session, page, call=1, seal=second).says
        assert "22:13:21" in store.trust.prove(session, page, call=3).says
        with refused("not-sealed", UnknownError, "call 3"):
            store.trust.prove(session, page, call=3, seal=first)


def test_what_cannot_be_proven_says_why(sealable: SealableStore) -> None:
    """Without a seal, for a page that was not in the context, and for no page at all there is no proof."""
    with vmstore.open(sealable.path) as store:
        session = store.session("s")
        first, last = session.context(call=1).pages[0].page, session.context(call=2).pages[-1].page
        with refused("not-sealed", UnknownError):
            store.trust.prove(session, first, call=1)
        vmstore.seal(store, sealable.key)
        with refused("page-came-later", UnknownError):
            store.trust.prove(session, last, call=1)
        with pytest.raises(UnknownError):
            store.trust.prove(session, "p9999", call=1)
        with pytest.raises(UnknownError):
            store.trust.prove(session, first, call=9)


def test_a_session_that_was_changed_proves_nothing(sealable: SealableStore) -> None:
    """Where a session is not what was sealed, no proof is made of it."""
    seal = sealable.seal()
    heads = tuple(head._replace(history=bytes(32)) for head in seal.heads)
    with vmstore.open(sealable.path) as store, refused("not-as-sealed", CorruptError):
        session = store.session("s")
        store.trust.prove(
            session, session.context(call=1).pages[0].page, call=1, seal=msgspec.structs.replace(seal, heads=heads)
        )
