"""Certificates say what was destroyed without a word of it, and keep backups from bringing it back."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

import vmstore
from tests.engine.stories import answer, chat, open_seeded
from tests.erasure.found import found_in
from tests.refusals import refused
from vmstore.cells.cell import commit
from vmstore.erasure.certificates import beside, certificates, read_certificate, signed
from vmstore.erasure.erase import erase
from vmstore.errors import CorruptError, ErasedError, StoreError
from vmstore.namespace.signing_keys import new_key

SECRET = "the combination is 4711-violet-9"


def test_a_backup_does_not_bring_it_back(tmp_path: Path) -> None:
    """A store restored from before an erasure is erased again, by a commit that says so, before anybody can read it."""
    path, saved = tmp_path / "a.vms", tmp_path / "saved"
    with vmstore.open(path) as store:
        store.record("s", chat(SECRET), answer("Noted."))
        store.record("t", chat("Stay."), answer("Noted."))
        store.backup(saved)
        erase(store, session="s")
        name = store.sessions()[0].session
    (path / "default").rename(tmp_path / "gone")
    path.rmdir()
    with refused("effect-not-allowed"):
        vmstore.restore(saved, path)
    looked = vmstore.restore(saved, path, dry_run=True)
    assert (looked.done, looked.erased, len(looked.effects)) == (False, 9, 1) and not path.exists()
    report = vmstore.restore(saved, path, agreed=True)
    assert (report.certificates, report.erased, report.signed) == (1, 9, 0)
    assert found_in(path, [SECRET.encode()]) == {}
    with vmstore.open(path) as store:
        assert store.verify().ok
        assert [info.session for info in store.sessions()] == [name, "t"]
        with pytest.raises(ErasedError):
            store.session(name).content("p6")
        assert store.session("t").content("p6") == b"Stay."
        reasons = [erasure.reason for erasure in certificates(beside(path))]
        assert reasons == ["asked", "restored"]


def test_a_ledger_from_elsewhere_is_heeded(tmp_path: Path) -> None:
    """Beside another path nothing is known of erasures, and the answer says so, unless their folder is named."""
    path, saved = tmp_path / "a.vms", tmp_path / "saved"
    with vmstore.open(path) as store:
        store.record("s", chat(SECRET), answer("Noted."))
        store.backup(saved)
        erase(store, page="p6")
    blind = vmstore.restore(saved, tmp_path / "b.vms")
    assert (blind.certificates, blind.erased) == (0, 0)
    assert found_in(tmp_path / "b.vms", [SECRET.encode()])
    report = vmstore.restore(saved, tmp_path / "c.vms", erasures=beside(path), agreed=True)
    assert (report.certificates, report.erased) == (1, 1)
    assert not found_in(tmp_path / "c.vms", [SECRET.encode()])


def test_what_is_not_the_same_is_left(tmp_path: Path) -> None:
    """A certificate touches only cells that were sealed as it says: a store that went on otherwise keeps its own."""
    path, saved = tmp_path / "a.vms", tmp_path / "saved"
    with vmstore.open(path) as store:
        store.record("s", chat("Hello."), answer("Noted."))
        store.backup(saved)
        store.record("s", chat("Hello.", "Noted.", SECRET), answer("Noted."))
        erase(store, page=next(hit.page for hit in store.search("violet")))
    report = vmstore.restore(saved, tmp_path / "b.vms", erasures=beside(path))
    assert (report.certificates, report.erased) == (1, 0)


def test_only_a_named_key_is_obeyed(tmp_path: Path) -> None:
    """A certificate of the named key is obeyed unasked; one of another key asks; one that was changed is refused."""
    key, other = new_key(tmp_path / "key"), new_key(tmp_path / "other")
    path, saved, public = tmp_path / "a.vms", tmp_path / "saved", tmp_path / "key.pub"
    with vmstore.open(path) as store:
        store.record("s", chat(SECRET), answer("Noted."))
        store.backup(saved)
        done = erase(store, page="p6", key=key)
    report = vmstore.restore(saved, tmp_path / "b.vms", erasures=beside(path), public_key=public)
    assert (report.certificates, report.signed, report.erased, report.effects) == (1, 1, 1, [])
    with refused("effect-not-allowed"):
        vmstore.restore(saved, tmp_path / "c.vms", erasures=beside(path), public_key=tmp_path / "other.pub")
    file = Path(done.certificate or "")
    made = read_certificate(file)
    forged = msgspec.structs.replace(made, cells=9)
    for case in (forged, msgspec.structs.replace(made, signature="00" * 64), msgspec.structs.replace(made, key=None)):
        file.write_bytes(msgspec.json.encode(case))
        with refused("bad-signature", CorruptError):
            vmstore.restore(saved, tmp_path / "c.vms", erasures=beside(path), public_key=public, agreed=True)
    file.write_bytes(msgspec.json.encode(signed(msgspec.structs.replace(made, signature=None), other)))
    with refused("effect-not-allowed"):
        vmstore.restore(saved, tmp_path / "c.vms", erasures=beside(path), public_key=public)
    assert not (tmp_path / "c.vms").exists()


def test_a_certificate_holds_no_word(tmp_path: Path) -> None:
    """It names cells by uid, place and commitment; each commitment is that of the cell, while it can be checked."""
    path = tmp_path / "a.vms"
    with open_seeded(path) as store:
        store.record("s", chat(SECRET), answer("Noted."))
        (commit_,) = store.admin.log.tail(1, 1)
        cell = store.admin.log.cells([commit_.cell + 3])[commit_.cell + 3]
        done = erase(store, page="p6", reason="secret")
        assert done.certificate is not None
        made = read_certificate(Path(done.certificate))
    named = made.erasures[0].cells
    assert [(rows.position, rows.index) for rows in named] == [(commit_.first, 3)]
    assert named[0].commitment == commit(cell.salt, SECRET.encode()).hex()
    assert (made.reason, made.cells, made.size) == ("secret", 1, len(SECRET))
    assert found_in(beside(path), [SECRET.encode(), b"Noted", b'"s"']) == {}


def test_a_certificate_can_be_signed(tmp_path: Path) -> None:
    """With a key it carries a signature over all the rest, and one that is damaged is refused by name."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = new_key(tmp_path / "key")
    with vmstore.open(tmp_path / "a.vms") as store:
        store.record("s", chat(SECRET), answer("Noted."))
        done = erase(store, page="p6", key=key)
    assert done.certificate is not None
    made = read_certificate(Path(done.certificate))
    assert made.key == key.public.hex() and made.signature is not None
    public = Ed25519PublicKey.from_public_bytes(key.public)
    public.verify(bytes.fromhex(made.signature), made.signing)
    with pytest.raises(InvalidSignature):
        public.verify(bytes.fromhex(made.signature), msgspec.structs.replace(made, cells=2).signing)
    Path(done.certificate).write_text("{}")
    with refused("not-a-certificate", CorruptError):
        list(certificates(beside(tmp_path / "a.vms")))


def test_what_a_copy_of_files_brought_back_is_erased_again(tmp_path: Path) -> None:
    """A store whose files were put back by other means loses again what a signed certificate names, asked once."""
    pytest.importorskip("cryptography")
    path, key = tmp_path / "a.vms", new_key(tmp_path / "key")
    with vmstore.open(path) as store:
        store.record("s", chat(SECRET), answer("Noted."))
        store.record("t", chat("Stay."), answer("Noted."))
    shutil.copytree(path, tmp_path / "copy")
    with vmstore.open(path) as store:
        erase(store, session="s", key=key)
    shutil.rmtree(path)
    (tmp_path / "copy").rename(path)
    ledger = beside(path)
    with vmstore.open(path) as store:
        with refused("effect-not-allowed"):
            store.trust.erase_again(ledger)
        with refused("no-ledger", StoreError):
            store.trust.erase_again(tmp_path / "nowhere")
        report = store.trust.erase_again(ledger, public_key=key.public.hex())
        assert (report.certificates, report.signed, report.done) == (1, 1, True) and report.cells > 0
        assert store.trust.erase_again(ledger).cells == 0 and store.verify().ok
        assert len(list(certificates(ledger))) == 2
    assert found_in(path, [SECRET.encode()]) == {}
