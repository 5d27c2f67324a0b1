"""What is found in a text, and what is left alone."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vmstore
from tests.growing import grows_at_most
from vmstore.redact.find import apart, spans
from vmstore.redact.national_ids import luhn
from vmstore.redact.span import SecretKind, SecretSpan


def secrets_in(text: str, kinds: set[SecretKind] | None = None) -> list[tuple[str, str]]:
    """What is found, by kind."""
    listed = spans(text) if kinds is None else spans(text, kinds)
    return [(span.kind.value, text[span.start : span.end]) for span in listed]


def test_the_seeds_example() -> None:
    """Of an example the secret and the password are found, whole and without their names, and the id is not."""
    text = "OAUTH_CLIENT_ID=abc123xyz\nOAUTH_CLIENT_SECRET=super_secret_key_here\nDATABASE_PASSWORD=admin123\n"
    assert secrets_in(text) == [("secret", "super_secret_key_here"), ("password", "admin123")]


def test_our_own_digests_and_names_stay() -> None:
    """Hashes, salts, references and everything else that vmstore prints of a store is nothing to hide."""
    store = vmstore.memory_store()
    store.record("s1", {"model": "m", "messages": [{"role": "user", "content": "Hello there."}]})
    text = "\n".join(str(row) for row in store.query("MUTATIONS position, kind, detail"))
    assert "root" in text
    assert secrets_in(text) == []
    assert secrets_in("p17@turn:3 vm://default/s1/p17@turn:42#level=2 cursor 9223372036854775807.12") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("host 203.0.113.7 port 80", [("ip", "203.0.113.7")]),
        ("from 2001:db8::8a2e:370:7334 ok", [("ip", "2001:db8::8a2e:370:7334")]),
        ("127.0.0.1 and ::1 and 0.0.0.0", []),
        ("version 1.2.3.4567, 1.2.3, v1.2.3.4", []),
        ("at 12:30:45 in std::vector", []),
    ],
)
def test_machines_only_where_asked(text: str, expected: list[tuple[str, str]]) -> None:
    """Addresses of machines are found where they are asked for, and only then."""
    assert secrets_in(text, set(SecretKind)) == expected
    assert secrets_in(text) == []


def test_kinds_are_chosen() -> None:
    """What is not asked for is not found."""
    text = "ada@lovelace.dev, 4111 1111 1111 1111"
    assert secrets_in(text, {SecretKind.CARD}) == [("card", "4111 1111 1111 1111")]
    assert secrets_in(text, set()) == []


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("a <private>x</private> b <private>y</private> c", ["<private>x</private>", "<private>y</private>"]),
        ("a <private>rest\nof it", ["<private>rest"]),
        ("a\n<private>\nall\nof it", ["<private>\nall\nof it"]),
        ("<private>ada@lovelace.dev</private>", ["<private>ada@lovelace.dev</private>"]),
    ],
)
def test_private_blocks(text: str, hidden: list[str]) -> None:
    """A private block goes with its marks; one that is never closed to the end of its line, or of the text."""
    assert secrets_in(text) == [("private", item) for item in hidden]


def test_a_key_that_is_cut_off_is_still_one() -> None:
    """Of a private key without an end, the lines that can be part of it are found, and no prose behind them."""
    text = "-----BEGIN " + "PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\n9w0BAQEFAASC\n\nAnd then: it goes on, doesn't it?"
    assert [text[span.end :] for span in spans(text)] == ["And then: it goes on, doesn't it?"]


@given(st.integers(0, 10**15 - 1))
def test_luhn_sees_every_wrong_digit(number: int) -> None:
    """A card number with its check digit passes, and with any other one does not."""
    right = [digit for digit in "0123456789" if luhn(f"{number:015}{digit}")]
    assert len(right) == 1


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9), st.sampled_from(list(SecretKind))), max_size=8))
def test_spans_do_not_touch_each_other(text: list[tuple[int, int, SecretKind]]) -> None:
    """Whatever overlaps becomes one span, and nothing that was found is left uncovered."""
    listed = [SecretSpan(start, start + long, kind) for start, long, kind in text]
    joined = apart(iter(listed))
    assert all(first.end <= other.start for first, other in pairwise(joined))
    covered = {place for span in joined for place in range(span.start, span.end)}
    assert covered == {place for span in listed for place in range(span.start, span.end)}


PIECES = (
    *("password=", "token: ", "eyJ", "sk-", "ghp_", "AKIA", "@", "a.de", "://u:", "+49 ", "171", "-----BEGIN "),
    *("PRIVATE KEY", "-----", "<private>", "</private>", "bearer ", "basic ", "'", '"', "\\", "\n", " ", "é", "İ"),
    *("4111", "DE89", "key", "api_", "(", "::", "1.2.3.4", "x" * 40, "0" * 40),
)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_any_text_is_read(text: str) -> None:
    """Whatever stands in a text, what is found lies in it, in order, and is never empty."""
    last = 0
    for span in spans(text, set(SecretKind)):
        assert last <= span.start < span.end <= len(text)
        last = span.end


HOSTILE = (
    *("eyJ", "eyJ-", "sk-", "password=", "password ", "token: ", "-----BEGIN PRIVATE KEY-----", "a@", "a@b."),
    *("<private>", "x<private>\n", "1111 ", "DE11", "://a:", "bearer ", "basic ", "authorization:", "1.", "::", "("),
    *("-u ", "password:'", "key-", "xoxb-", "(1", "+1(", "api_key"),
    *("mnemonic ", "a,password,b\n", "snmp", "Cookie: a=", 'password="\\', "token: >\n  ", "backup codes:\n1234 5\n"),
)


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_takes_no_longer_than_its_length(piece: str) -> None:
    """Eight times the text takes at most some twenty times as long, however often it begins to look like a secret."""

    def work(length: int) -> Callable[[], object]:
        text = (piece * (length // len(piece) + 1))[:length]
        return lambda: spans(text, set(SecretKind))

    assert grows_at_most(work(1_000), work(8_000), 20)


LISTINGS = {
    "ls -l": "total 8\n-rw-r--r--@ 1 jane  staff  1234 Dec  9 01:26 notes.md\ndrwxr-xr-x+ 4 root wheel 128 Dec  9 bin",
    "as JSON": '{"text":"total 8\\ndrwx------ 12 jane jane 4.0K Dec 9 01:26 .ssh\\n-rwxr-xr-x 1 node node 12 Dec 9 a"}',
    "tar -tv": "-rw-rw-r-- jane/jane 12 2026-11-26 18:24 a/b.md\n-rw-rw-r-- www-data/root 1 2026-11-26 18:24 c",
    "stat": "Access: (0644/-rw-r--r--)  Uid: ( 1000/    jane)   Gid: ( 1000/    jane)\nUid: (    0/    root)",
}


@pytest.mark.parametrize("listing", LISTINGS.values(), ids=LISTINGS)
def test_owners_of_listed_files_are_users(listing: str) -> None:
    """Each listing's owner is found, its group where it is called the same, and no account of a system."""
    listings = [listing[span.start : span.end] for span in spans(listing, {SecretKind.USER})]
    assert listings == ["jane"] * listing.count("jane") and listings


def test_what_looks_like_a_mode_is_no_listing() -> None:
    """Ranges, options and modes in prose name nobody."""
    text = "use -rw-r--r-- for files; tr -d a-z; ---------- 1 item left 3; drwxr-xr-x is a folder of jane and 2 more"
    assert list(spans(text, {SecretKind.USER})) == []
