"""The stand-alone verifier: its signatures are RFC 8032's, and it takes a proof to the last byte or not at all."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

import vmstore
from tests.lanes import spread
from vmstore.cells import verify_proof
from vmstore.cells.verify_proof import ORDER, check, climb, main, raw, signed
from vmstore.core.clock import ManualClock, SeededIds

FILE = Path(verify_proof.__file__)
DEMO = Path(vmstore.__file__).parent / "shell" / "demo.jsonl"

# RFC 8032, section 7.1: public key, message, signature.
PUBLISHED = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
        "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]


class Proven(NamedTuple):
    """A proof, the key it is checked with, and the content that goes with it."""

    proof: bytes
    public: bytes
    content: bytes


@pytest.fixture(scope="module")
def proven(tmp_path_factory: pytest.TempPathFactory) -> Proven:
    """A proof of one page in a context of a thousand, of a store with a few sessions and a hundred commits."""
    folder = tmp_path_factory.mktemp("proven")
    key = vmstore.new_key(folder / "key", ids=SeededIds(3))
    with vmstore.open(folder / "a.vms", clock=ManualClock(1_700_000_000_000_000), ids=SeededIds(4)) as store:
        for number in range(40):
            store.record(f"s{number % 5}", {"model": "m", "messages": [{"role": "user", "content": f"{number}"}]})
        messages = [{"role": "user", "content": f"message {number}"} for number in range(1000)]
        store.record("long", {"model": "m", "messages": messages}, None)
        vmstore.seal(store, key, clock=ManualClock(1_700_000_001_000_000))
        session = store.session("long")
        page = session.context(call=1).page_ids[517]
        proof = store.trust.prove(session, page, call=1)
        assert proof.content is not None, "the page has content"
        return Proven(proof.proof, key.public, proof.content)


@pytest.mark.parametrize(("public", "message", "signature"), PUBLISHED)
def test_the_published_signatures_hold(public: str, message: str, signature: str) -> None:
    """The signatures of RFC 8032 hold, and with any one of their bytes flipped they do not."""
    key, fromhex, sign = bytes.fromhex(public), bytes.fromhex(message), bytes.fromhex(signature)
    assert signed(key, fromhex, sign)
    for at in range(64):
        assert not signed(key, fromhex, sign[:at] + bytes([sign[at] ^ 1]) + sign[at + 1 :])
    assert not signed(key, fromhex + b"x", sign)


@settings(max_examples=30)
@given(secret=st.binary(min_size=32, max_size=32), message=st.binary(max_size=200))
def test_signatures_are_those_of_another_library(secret: bytes, message: bytes) -> None:
    """What the library signs holds here; under another key, for another message, or with S grown by the order, not."""
    key = Ed25519PrivateKey.from_private_bytes(secret)
    public, sign = key.public_key().public_bytes_raw(), key.sign(message)
    assert signed(public, message, sign)
    assert not signed(public, message + b"x", sign)
    other = Ed25519PrivateKey.from_private_bytes(bytes(31) + b"o").public_key().public_bytes_raw()
    assert other == public or not signed(other, message, sign)
    grown = int.from_bytes(sign[32:], "little") + ORDER
    assert not signed(public, message, sign[:32] + grown.to_bytes(32, "little"))


@pytest.mark.parametrize("public", [b"", bytes(31), (2**255 - 19).to_bytes(32, "little"), b"\2" + bytes(31)])
def test_what_is_no_public_key_is_refused(public: bytes) -> None:
    """A key of another length, of a number beyond the field or of no point of the curve is refused."""
    with pytest.raises(ValueError, match="public key"):
        signed(public, b"", bytes(64))


def test_a_number_has_one_form_up_to_the_order() -> None:
    """Where S may be 0 it may not be the order of the base point, which says the same in other bytes."""
    nothing = (1).to_bytes(32, "little")  # the point that changes nothing, as key and as R: any message then holds
    assert signed(nothing, b"any", nothing + bytes(32))
    assert not signed(nothing, b"any", nothing + ORDER.to_bytes(32, "little"))


@pytest.mark.parametrize("text", ["", "ab" * 31, "ab" * 33, "AB" * 32, "ab" * 31 + "a ", "ab" * 31 + " ab", "é" * 64])
def test_bytes_are_written_in_one_way(text: str) -> None:
    """Hex of another length, in capitals, with blanks or with other digits is refused."""
    assert raw("ab" * 32) == b"\xab" * 32 and raw("ab" * 16, 16) == b"\xab" * 16
    with pytest.raises(ValueError):
        raw(text)
    with pytest.raises(ValueError):
        raw("ab" * 32, 16)


def test_a_proof_holds_and_is_small(proven: Proven) -> None:
    """A proof of a page in a context of a thousand says what it proves, in under 4 KB."""
    value = check(proven.proof, proven.public, proven.content)
    assert "version 1, level 0" in value and "recorded context of call 1" in value and "with this content" in value
    assert "with this content" not in check(proven.proof, proven.public)
    assert len(proven.proof) < 4096
    assert proven.content[16:] == b"message 517"


def test_a_proof_stays_small(proven: Proven) -> None:
    """With ways as long as a thousand pages, a million commits and ten thousand sessions make them it is under 4 KB."""
    document = json.loads(proven.proof)
    for part, high, numbers in ((1, 10, (1,)), (2, 20, (0,)), (3, 14, (1, 2))):
        document[part][-1] = ["ab" * 32] * high
        for number in (*numbers, -2):
            document[part][number] = 10**7
    assert 3500 < len(json.dumps(document, separators=(",", ":"))) < 4096


def test_every_byte_of_a_proof_counts(proven: Proven) -> None:
    """With any one byte changed a proof is refused: in the bit that tells capitals apart, or in another one."""
    passed = []
    for at in spread(len(proven.proof)):
        for bit in (0, 5) if at < 200 else (5 * (at % 2),):
            wrong = bytearray(proven.proof)
            wrong[at] ^= 1 << bit
            try:
                check(bytes(wrong), proven.public)
            except Exception:
                continue
            passed.append((at, bit))
    assert passed == []


def test_a_proof_from_the_demo_holds_and_no_altered_one(tmp_path: Path) -> None:
    """A proof from the session that ships with vmstore passes the stand-alone file, and with any byte changed none."""
    key = vmstore.new_key(tmp_path / "key", ids=SeededIds(3))
    with vmstore.open(tmp_path / "a.vms", clock=ManualClock(1_700_000_000_000_000), ids=SeededIds(4)) as store:
        store.import_file(DEMO)
        vmstore.seal(store, key, clock=ManualClock(1_700_000_001_000_000))
        (info,) = store.sessions()
        session = store.session(info.session)
        page = session.context(call=info.calls).page_ids[-1]
        proof = store.trust.prove(session, page, call=info.calls)
    (tmp_path / "proof").write_bytes(proof.proof)
    done = run(tmp_path, str(tmp_path / "proof"), str(tmp_path / "key.pub"))
    assert (done.returncode, done.stdout) == (0, f"proven: {proof.says}\n")
    assert "in the derived context" in proof.says
    for at in spread(len(proof.proof)):
        with pytest.raises((ValueError, TypeError, IndexError, struct.error)):
            check(proof.proof[:at] + bytes([proof.proof[at] ^ 1]) + proof.proof[at + 1 :], key.public)


def test_every_byte_of_the_content_counts(proven: Proven) -> None:
    """With any one byte flipped, or one more or less, the content is refused."""
    wrong = [proven.content + b"x", proven.content[:-1], proven.content[16:]]
    wrong += [
        proven.content[:at] + bytes([proven.content[at] ^ 1]) + proven.content[at + 1 :]
        for at in range(len(proven.content))
    ]
    for content in wrong:
        with pytest.raises(ValueError, match="content is another"):
            check(proven.proof, proven.public, content)


def test_another_key_proves_nothing(proven: Proven) -> None:
    """A proof is refused under another key, also where the proof names that one."""
    other = bytes.fromhex(PUBLISHED[0][0])
    with pytest.raises(ValueError, match="key"):
        check(proven.proof, other)
    with pytest.raises(ValueError, match="not what was signed"):
        check(proven.proof.replace(proven.public.hex().encode(), other.hex().encode()), other)


@pytest.mark.parametrize(
    "change",
    [
        lambda value: [*value, 1],
        lambda row: [*row[:1], [*row[1], 1], *row[2:]],
        lambda row: [*row[:4], row[4] + [1]],
        lambda row: ["vmstore proof 2", *row[1:]],
        lambda row: [*row[:1], [*row[1][:6], row[1][6] + ["00" * 32]], *row[2:]],
        lambda row: [*row[:1], [*row[1][:6], row[1][6][:-1]], *row[2:]],
        lambda row: [*row[:1], [*row[1][:5], -1, row[1][6]], *row[2:]],
        lambda row: [*row[:1], [row[1][0].upper(), *row[1][1:]], *row[2:]],
        lambda row: [*row[:2], [*row[2][:3], False, *row[2][4:]], *row[3:]],
        lambda row: [*row[:2], [float(row[2][0]), *row[2][1:]], *row[3:]],
        lambda value: {"proof": value},
        lambda value: None,
    ],
)
def test_what_is_said_beside_is_refused(proven: Proven, change: object) -> None:
    """A proof with something more, less or otherwise written is refused, however well the rest holds."""
    document = json.loads(proven.proof)
    assert callable(change)
    with pytest.raises((ValueError, TypeError, IndexError, struct.error)):
        check(json.dumps(change(document), separators=(",", ":")).encode() + b"\n", proven.public)


@pytest.mark.parametrize("word", [True, False])
@pytest.mark.parametrize(("part", "number"), [(1, 1), (1, 3), (2, 3), (4, 1)])
def test_a_truth_value_is_no_number(proven: Proven, word: bool, part: int, number: int) -> None:
    """True where 1 stood would be signed alike, so a proof that says true or false anywhere is refused by its bytes."""
    document = json.loads(proven.proof)
    document[part][number] = word
    with pytest.raises(ValueError, match="not as they were written"):
        check(json.dumps(document, separators=(",", ":")).encode() + b"\n", proven.public)


def test_a_place_in_a_tree_of_one_is_a_whole_number(tmp_path: Path) -> None:
    """Where a tree has one leaf nothing hashes its place: 0.0 is refused by its bytes there too."""
    key = vmstore.new_key(tmp_path / "key", ids=SeededIds(3))
    with vmstore.open(tmp_path / "a.vms") as store:
        store.record("s", {"model": "m", "messages": [{"role": "user", "content": "Alone."}]}, None)
        vmstore.seal(store, key)
        proof = store.trust.prove("s", "p4", call=1).proof
    assert check(proof, key.public)
    for part, place in ((1, 5), (3, 4)):
        for other in (0.0, -0.0):
            document = json.loads(proof)
            assert document[part][place] == 0
            document[part][place] = other
            with pytest.raises(ValueError, match="not as they were written"):
                check(json.dumps(document, separators=(",", ":")).encode() + b"\n", key.public)


def test_a_proof_is_written_in_one_way(proven: Proven) -> None:
    """The same proof with a blank, a line or an escape more, or its end missing, is refused by its bytes."""
    proof = proven.proof
    for again in (
        b" " + proof,
        proof + b"\n",
        proof[:-1],
        proof.replace(b",", b", ", 1),
        proof.replace(b"v", b"\\u0076", 1),
    ):
        assert json.loads(again) == json.loads(proof)
        with pytest.raises(ValueError, match="not as they were written"):
            check(again, proven.public)


@pytest.mark.parametrize(("place", "size"), [(1, 1), (-1, 1), (2, 2), (-1, 2), (3, 3), (8, 5), (0, 0)])
def test_a_place_outside_its_tree_is_refused(place: int, size: int) -> None:
    """A leaf that would stand before the first or beyond the last is none, whatever way is told for it."""
    for length in range(5):
        with pytest.raises(ValueError, match="outside its tree"):
            climb(b"leaf", size, place, ["ab" * 32] * length)


def test_it_says_what_was_proven_and_no_more(
    proven: Proven, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence names page, session, version, level, commitment, call, both times, and content if it was read."""
    body = json.loads(proven.proof)
    says = (
        f"page p{body[1][1]} of session {body[1][0]}, version 1, level 0, commitment {body[1][4]}, was in the recorded "
        f"context of call 1 of session {body[3][0]} at 2023-11-14 22:13:20.000125+00:00, "
        "sealed at 2023-11-14 22:13:21+00:00"
    )
    (tmp_path / "proof").write_bytes(proven.proof)
    (tmp_path / "content").write_bytes(proven.content)
    assert check(proven.proof, proven.public) == says
    main(str(tmp_path / "proof"), proven.public.hex(), str(tmp_path / "content"))
    assert capsys.readouterr().out == f"proven: {says}, with this content\n"
    with pytest.raises(SystemExit, match="not proven: the content is another one"):
        main(str(tmp_path / "proof"), proven.public.hex(), str(tmp_path / "proof"))


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the file as a stranger would: Python alone, no packages, no vmstore."""
    verifier = folder / "verify_proof.py"
    verifier.write_bytes(FILE.read_bytes())
    return subprocess.run([sys.executable, "-I", "-S", str(verifier), *words], capture_output=True, text=True)


def test_a_stranger_checks_it_without_vmstore(proven: Proven, tmp_path: Path) -> None:
    """Copied elsewhere the file checks a proof with Python's own library alone, by a key in hex or in a file."""
    files = {"proof": proven.proof, "content": proven.content, "key": proven.public.hex().encode() + b"\n"}
    files |= {"wrong": proven.proof.replace(b"1", b"2", 1)}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    proof, key = str(tmp_path / "proof"), str(tmp_path / "key")
    for words in ((proof, key), (proof, proven.public.hex(), str(tmp_path / "content"))):
        done = run(tmp_path, *words)
        assert (done.returncode, done.stdout[:7]) == (0, "proven:"), done.stderr
    for words in ((str(tmp_path / "wrong"), key), (proof, key, proof), (proof, "00" * 32), (proof, "no key")):
        done = run(tmp_path, *words)
        assert (done.returncode, done.stdout) == (1, "") and done.stderr.startswith("not proven: ")


def test_it_imports_nothing_but_pythons_own() -> None:
    """The file imports only modules of Python's own library, and is short enough to be read."""
    lines = FILE.read_text().splitlines()
    imported = {line.split()[1] for line in lines if line.startswith(("import ", "from "))}
    assert imported <= sys.stdlib_module_names
    assert len(lines) <= 120
