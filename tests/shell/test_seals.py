"""The commands that seal, verify against a seal and prove, and what they say where they refuse."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

import vmstore
from tests.shell.conftest import Run


@pytest.fixture
def key(run: Run, tmp_path: Path) -> Path:
    """A key made by the command."""
    assert run("seal", "--new-key", "--key", tmp_path / "key").code == 0
    return tmp_path / "key"


def test_a_new_key_is_made_where_the_reader_keeps_things(
    run: Run, tmp_path: Path, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a file named the key lies in the configuration folder, 0600, and is found there again."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    refused = run("seal", recorded)
    assert refused.code == 1 and "--new-key" in refused.err
    made = run("seal", "--new-key", "--json").json
    file = Path(made["key"])
    assert file == tmp_path / "config" / "vmstore" / "seal.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    sealed = run("seal", recorded, "--json").json
    assert sealed["key"] == made["public"] and Path(sealed["path"]).parent == recorded.with_name("agent.vms.seals")


def test_seal_and_verify(run: Run, recorded: Path, key: Path, tmp_path: Path) -> None:
    """A seal is written, said, and held against the store; who signed it is said to be unchecked without the key."""
    done = run("seal", recorded, "--key", key, "--out", tmp_path / "seal")
    assert done.code == 0 and done.out.startswith("sealed: 1 session up to commit") and "apart" in done.out
    verify = ["verify", recorded, "--seal", tmp_path / "seal"]
    assert "was not checked" in run(*verify).out
    clean = run(*verify, "--public-key", f"{key}.pub")
    assert clean.code == 0 and clean.out.endswith("sealed: all that was sealed is there\n")
    assert run(*verify, "--json").json["ok"]


def test_verify_names_what_a_seal_finds(run: Run, two: Path, key: Path, tmp_path: Path) -> None:
    """Another store, another key and a damaged seal each leave with 1, the problem and a remedy."""
    assert run("seal", two, "--key", key, "--out", tmp_path / "seal").code == 0
    run("seal", "--new-key", "--key", tmp_path / "other")
    other = run("verify", two, "--seal", tmp_path / "seal", "--public-key", f"{tmp_path / 'other'}.pub")
    assert other.code == 1 and "another key" in other.out and "find out who wrote" in other.out
    (tmp_path / "seal").write_text((tmp_path / "seal").read_text().replace("1", "2", 3))
    damaged = run("verify", two, "--seal", tmp_path / "seal")
    assert damaged.code == 1 and "no sound seal" in damaged.out
    missing = run("verify", two, "--seal", tmp_path / "none")
    assert missing.code == 1 and "name a file" in missing.err
    assert "--seal" in run("verify", two, "--public-key", f"{key}.pub").err


def test_prove_and_check(run: Run, recorded: Path, key: Path, tmp_path: Path) -> None:
    """A proof is written with its content beside it, and checked without the store."""
    run("seal", recorded, "--key", key)
    proof, content = tmp_path / "proof.json", tmp_path / "salted"
    page = run("context", recorded, "--call", 1, "--json").json["pages"][0]["page"]
    done = run("prove", recorded, page, "--call", 1, "--out", proof, "--content", content)
    assert done.code == 0 and done.out.startswith(f"proven: page {page} of session")
    assert stat.S_IMODE(content.stat().st_mode) == 0o600
    check = ["prove", "--check", proof, "--public-key", f"{key}.pub"]
    assert run(*check).out.startswith("proven: page")
    assert "with this content" in run(*check, "--content", content, "--json").json["proves"]
    content.write_bytes(content.read_bytes() + b"!")
    wrong = run(*check, "--content", content)
    assert wrong.code == 1 and "content is another one" in wrong.err


def test_what_a_live_call_was_sent_is_proven_without_a_page(
    run: Run, recorded: Path, key: Path, tmp_path: Path
) -> None:
    """A session and a call without a page prove the request, which is written beside the proof and checked with it."""
    with vmstore.open(recorded) as store:
        live = store.live_session("live", l0_tokens_max=4_000)
        live.user("Where is Kyoto?")
        request = live.pack().request
    run("seal", recorded, "--key", key)
    proof, content = tmp_path / "proof.json", tmp_path / "request.json"
    done = run("prove", recorded, "live", "--call", 1, "--out", proof, "--content", content)
    assert done.code == 0 and "was sent in the recorded context of call 1 " in done.out
    assert json.loads(content.read_bytes()) == request
    check = ["prove", "--check", proof, "--public-key", f"{key}.pub"]
    assert "with this content" in run(*check, "--content", content, "--json").json["proves"]
    content.write_bytes(content.read_bytes().replace(b"Kyoto", b"Osaka"))
    assert "content is another one" in run(*check, "--content", content).err
    refused = run("prove", recorded, "s1", "--call", 1, "--out", tmp_path / "none")
    assert refused.code == 1 and "prove its pages" in refused.err
    unnamed = run("prove", recorded, "--call", 1, "--out", tmp_path / "none")
    assert unnamed.code == 1 and "holds 2; give the beginning of a name" in unnamed.err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["seal"], "name the store"),
        (["prove"], "--call"),
        (["prove", "STORE", "p4"], "--call"),
        (["prove", "STORE", "p4", "--call", "1"], "--out"),
        (["prove", "--check", "none"], "--public-key"),
        (["prove", "--check", "none", "--public-key", "12"], "no public key"),
        (["prove", "--check", "none", "--public-key", "ab" * 32], "cannot be read"),
        (["prove", "STORE", "p4", "--call", "1", "--out", "STORE"], "is there already"),
        (["prove", "STORE", "p4", "--call", "1", "--out", "proof"], "run `vmstore seal`"),
        (["seal", "STORE", "--key", "none"], "--new-key"),
    ],
)
def test_what_is_missing_is_named(
    run: Run, recorded: Path, words: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that lacks something says what, and leaves nothing behind."""
    monkeypatch.chdir(tmp_path)
    done = run(*(recorded if word == "STORE" else word for word in words))
    assert done.code == 1 and reason in done.err
    assert not (tmp_path / "proof").exists()


def test_an_altered_proof_is_refused(run: Run, recorded: Path, key: Path, tmp_path: Path) -> None:
    """A proof with a number changed, or that is another file, proves nothing and leaves with 1."""
    run("seal", recorded, "--key", key)
    page = run("context", recorded, "--call", 1, "--json").json["pages"][0]["page"]
    run("prove", recorded, page, "--call", 1, "--out", tmp_path / "proof")
    for content in ((tmp_path / "proof").read_bytes().replace(b",1,", b",2,", 1), b"", b"\xff", b"{}", b"[" * 99_999):
        (tmp_path / "proof").write_bytes(content)
        done = run("prove", "--check", tmp_path / "proof", "--public-key", f"{key}.pub")
        assert done.code == 1 and "proves nothing" in done.err


def test_growth_is_proven_between_two_seals(run: Run, recorded: Path, key: Path, tmp_path: Path) -> None:
    """A later seal is proven to hold what an older one did, checked without the store, and never the other way."""
    older, later, proof = (tmp_path / name for name in ("older", "later", "growth"))
    run("seal", recorded, "--key", key, "--out", older)
    run("fork", recorded, "s1", "--at-call", 1, "--as", "s2")
    run("seal", recorded, "--key", key, "--out", later)
    made = run("prove", recorded, "--since", older, "--seal", later, "--out", proof)
    assert made.code == 0 and made.out.startswith("proven: what was sealed of 1 session at commit")
    check = ["prove", "--check", proof, "--since", older, "--seal", later]
    assert run(*check, "--public-key", f"{key}.pub", "--json").json["sessions_later"] == 2
    assert "--public-key" in run(*check).err
    assert "--seal" in run("prove", recorded, "--since", older, "--out", tmp_path / "x").err
    assert "--out" in run("prove", "--since", older, "--seal", later).err
    backwards = run("prove", recorded, "--since", later, "--seal", older, "--out", tmp_path / "x")
    assert backwards.code == 1 and "has not grown" in backwards.err
    proof.write_bytes(proof.read_bytes().replace(b"growth 1", b"growth 2"))
    assert run(*check, "--public-key", f"{key}.pub").code == 1
