"""Keys: written for their owner alone, read back, and refused with a reason where they are none."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from tests.refusals import refused
from vmstore.cells.verify_proof import signed
from vmstore.errors import InputError, StoreError
from vmstore.namespace.signing_keys import new_key, public_key, read_key


def test_a_new_key_is_its_owners_alone(tmp_path: Path) -> None:
    """A new key's file may be read and written by its owner and by nobody else, and comes back as it was."""
    key = new_key(tmp_path / "key")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    again = read_key(tmp_path / "key")
    assert again.public == key.public and again.sign(b"m") == key.sign(b"m")
    assert signed(key.public, b"m", key.sign(b"m"))
    assert new_key(tmp_path / "other").public != key.public


def test_a_public_key_is_told_in_two_ways(tmp_path: Path) -> None:
    """The public half is 64 hex digits, or the file beside the secret that holds them."""
    key = new_key(tmp_path / "key")
    assert public_key(tmp_path / "key.pub") == public_key(key.public.hex()) == key.public


@pytest.mark.parametrize("taken", ["key", "key.pub"])
def test_a_key_is_never_written_over(tmp_path: Path, taken: str) -> None:
    """Where either file is there already, it stays, and no half of a key is left."""
    (tmp_path / taken).write_text("precious")
    with refused("path-taken", StoreError):
        new_key(tmp_path / "key")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [(taken, "precious")]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666, 0o610])
def test_a_key_that_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    """A secret that others may read, write or run is refused with the command that mends it."""
    new_key(tmp_path / "key")
    (tmp_path / "key").chmod(mode)
    with refused("key-in-the-open", InputError, "600"):
        read_key(tmp_path / "key")


def pem(secret: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey, password: bytes | None = None) -> bytes:
    """A secret key as a PEM file."""
    lock = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return secret.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no secret key"),
        (b"hello", "no secret key"),
        (b"ab" * 32, "no secret key"),
        (pem(ec.generate_private_key(ec.SECP256R1())), "another kind"),
        (pem(ed25519.Ed25519PrivateKey.generate(), b"secret"), "no secret key"),
    ],
)
def test_what_is_no_key_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    """A file of something else, of another kind of key or of a locked one is refused with the reason."""
    file = tmp_path / "key"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(InputError, match=reason):
        read_key(file)


def test_a_key_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    """A missing key is refused with the command that makes it."""
    with refused("unreadable-key", InputError):
        read_key(tmp_path / "none")


@pytest.mark.parametrize("text", ["", "12", "zz" * 32, "/nowhere/key.pub", "ab" * 31, "ab" * 33])
def test_what_is_no_public_key_is_refused(text: str) -> None:
    """A text that is neither 64 hex digits nor a file of them is refused."""
    with refused("not-a-key", InputError):
        public_key(text)


def test_without_the_extra_the_remedy_is_named(tmp_path: Path) -> None:
    """Where cryptography is not installed, signing says what to install."""
    code = "import sys; sys.modules['cryptography'] = None\nimport vmstore\nvmstore.new_key(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "key")], capture_output=True, text=True)
    assert "pip install 'vmstore[trust]'" in done.stderr
