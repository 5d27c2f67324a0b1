"""The file of tokens: digests alone, read again when it changed, and trusted only where it may be."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.refusals import refused
from tests.serve.conftest import TestClock
from vmstore.core.clock import SystemIds
from vmstore.errors import ConflictError, InputError, UnknownError
from vmstore.serve.tokens import DAY_US, AccessToken, TokenFile

GOLDEN = """{
  "format": 1,
  "tokens": [
    {
      "name": "ada",
      "role": "read",
      "sha256": "3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0",
      "made": 1700000000000000,
      "namespaces": [
        "team-a"
      ],
      "until": 1700086400000000
    }
  ]
}
"""


@pytest.fixture
def file(tmp_path: Path) -> TokenFile:
    """A file of tokens that is not there yet."""
    return TokenFile(tmp_path / "tokens.json", TestClock(), SystemIds())


def test_a_token_stands_in_no_file(file: TokenFile, tmp_path: Path) -> None:
    """What is shown once lets its bearer in, and no file holds it; nobody else may read the file."""
    secret = file.add("ada", "read", ("team-a",))
    entry = file.bearer(secret)
    assert entry is not None and (entry.name, entry.role, entry.namespaces) == ("ada", "read", ("team-a",))
    assert len(secret) == len("vms_") + 64
    for each in tmp_path.iterdir():
        assert secret.removeprefix("vms_").encode() not in each.read_bytes()
    assert [each.name for each in tmp_path.iterdir()] == ["tokens.json"]
    assert file.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("change", [lambda s: s[:-1], lambda s: s + "0", str.upper, lambda s: "", lambda s: "\udcff"])
def test_nothing_near_a_token_is_one(file: TokenFile, change: object) -> None:
    """A token with a character less, more or otherwise lets nobody in."""
    secret = file.add("ada", "read")
    assert callable(change) and file.bearer(change(secret)) is None


def test_a_revoked_token_is_none_at_once(file: TokenFile) -> None:
    """Another handle on the file heeds a revocation at its next look, and the other tokens stay."""
    ada, bob = file.add("ada", "read"), file.add("bob", "read")
    other = TokenFile(file.path, TestClock(), SystemIds())
    assert other.bearer(ada) and other.bearer(bob)
    file.revoke("ada")
    assert other.bearer(ada) is None and other.bearer(bob)


def test_a_token_ends(file: TokenFile) -> None:
    """A token made for a day is one until that day is over."""
    clock = TestClock()
    file = TokenFile(file.path, clock, SystemIds())
    secret = file.add("ada", "read", None, 1)
    clock.ahead_us = DAY_US - 60 * 10**6
    assert file.bearer(secret)
    clock.ahead_us = DAY_US
    assert file.bearer(secret) is None


def test_names_are_taken_and_known(file: TokenFile) -> None:
    """A name is given once, what is unknown is refused with what is near, and no name drives a terminal."""
    file.add("ada", "read")
    with refused("name-taken", ConflictError, "ada"):
        file.add("ada", "read")
    with refused("no-token", UnknownError, "adda", "'ada'"):
        file.revoke("adda")
    for name in ("", " ", "a\x1b[2J", "x" * 101):
        with refused("not-a-token-name", InputError):
            file.add(name, "read")


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"format": 1, "tokens": [{"name": "a"}]}'])
def test_what_is_no_file_of_tokens_lets_nobody_in(file: TokenFile, content: bytes) -> None:
    """A file that was damaged is refused by its name, also where it was whole before."""
    secret = file.add("ada", "unmasked")
    assert file.bearer(secret)
    file.path.write_bytes(content)
    with refused("unreadable-tokens", InputError, "tokens.json"):
        file.bearer(secret)


def test_a_newer_file_is_not_guessed_at(file: TokenFile) -> None:
    """A file of another format is refused by its number."""
    file.path.write_bytes(b'{"format": 2, "tokens": []}')
    with refused("unreadable-tokens", InputError, "format 2"):
        file.all()


def test_a_file_that_others_may_change_is_refused(file: TokenFile) -> None:
    """Another user who may write the file could let themselves in, so it is not read."""
    file.add("ada", "read")
    file.path.chmod(0o660)
    with refused("tokens-in-the-open", InputError, "chmod"):
        file.all()


def test_the_bytes_of_the_file(tmp_path: Path) -> None:
    """The file is as it was laid down, and is read as that."""
    path = tmp_path / "tokens.json"
    path.write_text(GOLDEN)
    path.chmod(0o600)
    file = TokenFile(path, TestClock(), SystemIds())
    digest = "3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0"
    assert file.all() == (AccessToken("ada", "read", digest, 1700000000000000, ("team-a",), 1700086400000000),)
    file.add("bob", "metrics")
    file.revoke("bob")
    assert path.read_text() == GOLDEN


def test_those_who_change_it_at_once_lose_nothing(file: TokenFile) -> None:
    """Tokens that threads make at the same time are all in the file."""
    makers = [
        threading.Thread(target=lambda n=n: TokenFile(file.path, TestClock(), SystemIds()).add(f"t{n}", "read"))
        for n in range(12)
    ]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert sorted(token.name for token in file.all()) == sorted(f"t{n}" for n in range(12))
