"""Values that are longer than anybody judges them by: nothing of them is left behind the placeholder."""

from __future__ import annotations

import json
import random
import string
from pathlib import Path

import pytest

import vmstore
from vmstore.redact.find import spans
from vmstore.redact.mask import Mask

LENGTHS = (199, 201, 301, 700, 5_000, 100_000)
LETTERS = string.ascii_letters + string.digits + "+/"


def value(length: int, letters: str = LETTERS) -> str:
    """A value drawn at random, the same each time."""
    return "".join(random.Random(length).choices(letters, k=length))


def jwt(length: int) -> str:
    """A token in three parts, its payload as long as asked for."""
    return f"eyJ{value(40, LETTERS[:-2])}.eyJ{value(length, LETTERS[:-2])}.{value(43, LETTERS[:-2])}"


WAYS = {
    "settings": "AWS_SESSION_TOKEN={}\nnext",
    "exported": 'export AWS_SESSION_TOKEN="{}"\naws s3 ls',
    "yaml": "session_token: {}\nregion: eu",
    "quoted": "secret_access_key = '{}'; x()",
    "json": '{{"refresh_token": "{}", "n": 1}}',
    "json in json": '{{"body": "{{\\"refresh_token\\": \\"{}\\"}}"}}',
    "address": "https://example.org/a?access_token={}&page=2",
    "password in an address": "postgres://ada:{}@db/x",
    "header": "Authorization: Bearer {}",
    "cookie": "Cookie: theme=dark; sessionid={}; x=1",
    "tag": "<clientSecret>{}</clientSecret>",
    "option": "vmctl --token {} --region eu",
    "sentence": "the password is {} and it is long",
    "named pair": '{{"name": "API_TOKEN", "value": "{}"}}',
    "vendor": "we use sk-ant-api03-a1B2{} for it",
    "netrc": "machine example.org login ada password {}\n",
    "folded": "token: >\n  {}\n  abcdefghij0123456789\nkind: x",
}


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("way", WAYS)
def test_no_tail_is_left(way: str, length: int) -> None:
    """However long a value is and whatever names it, none of its pieces of eight characters is left."""
    other_value = value(
        length, LETTERS[:-2] if way in ("password in an address", "vendor", "cookie", "address") else LETTERS
    )
    shown = Mask().text(WAYS[way].format(other_value), "")
    pieces = {other_value[at : at + 8] for at in range(0, length - 7, 8)} | {other_value[-8:]}
    assert not [piece for piece in pieces if piece in shown]


@pytest.mark.parametrize("length", [*LENGTHS[:-1], 20_000, pytest.param(LENGTHS[-1], marks=pytest.mark.nightly)])
def test_tokens_in_parts_and_blocks_are_taken_whole(length: int) -> None:
    """A token in three parts and a private key in lines are one find each, to their last character."""
    lines = "\n".join(value(length)[at : at + 64] for at in range(0, length, 64))
    block = f"-----BEGIN RSA PRIVATE{' '}KEY-----\n{lines}\n-----END RSA PRIVATE{' '}KEY-----"
    for case in (jwt(length), block):
        assert [span[:2] for span in spans(f"a {case} b")] == [(2, 2 + len(case))]


def bytes_of(folder: Path) -> bytes:
    """All that the files of a store hold."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.parametrize("length", [700, 5_000, 100_000])
def test_no_tail_reaches_the_log(tmp_path: Path, length: int) -> None:
    """Told to a session that masks, a long value is in no file and in no cell of its store, wherever it stood."""
    other_value = value(length)
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": json.dumps({"token": other_value})}}
    messages = [
        {"role": "user", "content": f"AWS_SESSION_TOKEN={other_value}\nthen go on"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": json.dumps({"refresh_token": other_value, "ok": True})},
        {"role": "user", "content": f'again: secret_access_key = "{other_value}"'},
    ]
    for redaction in ("mask", None):
        folder = tmp_path / f"{redaction}.vms"
        with vmstore.open(folder) as store:
            store.record(
                "s", {"model": "m", "messages": messages, "metadata": {"api_key": other_value}}, redaction=redaction
            )
            last = store.admin.log.tail(store.admin.log.ordinal - 1, 1)[0].cell
            cells = [store.admin.log.cells([number]) for number in range(1, last + 99)]
            sealed = b"\n".join(cell.content for actual_cell in cells for cell in actual_cell.values())
        everything = bytes_of(folder) + sealed
        left = [at for at in range(0, length - 12, 12) if other_value[at : at + 12].encode() in everything]
        assert bool(left) == (redaction is None), "the value is found where nothing hides it, and only there"
