"""Files of records: every byte is a record, a named problem, or the torn end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from vmstore.capture.importers.formats import FORMATS, jsonl, read
from vmstore.capture.importers.formats.jsonl import moment, open_source, split, too_deep
from vmstore.capture.steps import UnreadableStep
from vmstore.errors import InputError


def problems(data: bytes) -> list[str | None]:
    return [line.problem for line in split(data)[0]]


def test_lines_keep_their_bytes_and_numbers() -> None:
    """A line is its bytes without the line's end, numbered with the blank lines counted."""
    lines, torn = split(b'{"a": 1}\r\n\n  \n{"b":2 }\n')
    assert [(line.number, line.raw, line.value) for line in lines] == [
        (1, b'{"a": 1}', {"a": 1}),
        (4, b'{"b":2 }', {"b": 2}),
    ]
    assert torn is None


def test_a_last_line_that_parses_is_a_record() -> None:
    """A missing newline at the end loses nothing and changes no bytes."""
    whole, cut = split(b'{"a":1}\n{"b":2}\n'), split(b'{"a":1}\n{"b":2}')
    assert cut == whole


def test_a_torn_last_line_is_left_and_said() -> None:
    """A last line that ends inside a value is no record yet."""
    lines, torn = split(b'{"a":1}\n{"b":')
    assert [line.value for line in lines] == [{"a": 1}]
    assert torn is not None
    assert (torn.line, torn.bytes) == (2, 5)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b'{"a":1}{"b":2}', "not JSON: Extra data at column 8"),
        (b"\0\0\0\0", "not JSON"),
        (b'{"a":"\xff"}', "not UTF-8: invalid start byte at byte 7"),
        (b"[" * 100_000, "nested over"),
        (b"[" * 201 + b"]" * 201, "nested over"),
        (b"9" * 5000, "not JSON that can be read"),
    ],
)
def test_a_malformed_line_is_kept_with_its_reason(raw: bytes, why: str) -> None:
    """Glued, zeroed, undecodable, deep and oversized values are problems of their own line only."""
    lines, torn = split(b'{"a":1}\n' + raw + b'\n{"c":3}\n')
    assert torn is None
    assert [line.raw for line in lines] == [b'{"a":1}', raw, b'{"c":3}']
    assert lines[1].problem is not None
    assert why in lines[1].problem
    assert (lines[0].problem, lines[2].problem) == (None, None)


def test_a_gigantic_line_is_never_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line over the limit is kept as it stands although it is valid JSON."""
    monkeypatch.setattr(jsonl, "LINE_BYTES_MAX", 10)
    assert problems(b'{"a":1234}\n{"a":12345}\n') == [None, "gigantic: 11 bytes, read up to 10"]


def test_a_byte_order_mark_belongs_to_no_line() -> None:
    """A file saved with a mark in front reads like one without."""
    assert split(b'\xef\xbb\xbf{"a":1}\n') == split(b'{"a":1}\n')


ROWS = st.lists(st.binary(max_size=12).map(lambda row: row.translate(None, b"\r\n")), min_size=1)


@given(ROWS, st.booleans())
def test_no_byte_of_a_file_is_lost(rows: list[bytes], closed: bool) -> None:
    """Lines and the torn end together are all that a file holds and is not blank."""
    data = b"\n".join(rows) + (b"\n" if closed else b"")
    lines, torn = split(data)
    kept = b"".join(line.raw for line in lines)
    unmarked = (rows[0].removeprefix(b"\xef\xbb\xbf"), *rows[1:])
    bare = b"".join(row for row in unmarked if row.strip())
    assert len(kept) + (torn.bytes if torn else 0) == len(bare)
    assert bare.startswith(kept)


@pytest.mark.parametrize(
    ("written", "at"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01T00:00:00.000250+00:00", 250),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:02", 2_000_000),
        (1500, 1_500_000),
        (0.5, 500),
        ("last tuesday", None),
        ("", None),
        (True, None),
        (float("nan"), None),
        (1e300, None),
        ({"t": 1}, None),
        (None, None),
    ],
)
def test_a_moment_is_read_or_none(written: object, at: int | None) -> None:
    """ISO texts and milliseconds are moments; whatever else stands there is none and fails nothing."""
    assert moment(written) == at


def test_depth_is_counted_exactly() -> None:
    """The limit itself is still allowed, one level more is not."""
    for innermost in (0, [], {}):
        value: object = [[innermost]]
        levels = 2 if innermost == 0 else 3
        assert not too_deep(value, levels)
        assert too_deep(value, levels - 1)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is empty"),
        (b" \n\t\n", "is empty"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)), "is binary"),
        ('{"role": "user"}\n'.encode("utf-16"), "is UTF-16; save it as UTF-8"),
        (b"caf\xe9 au lait\n", "is not UTF-8 text"),
        (b"a diary, not a session\n", "seen: text that is not JSON"),
        (b'{"silly": "this"}\n{"other": 1}\n', "seen: 2 JSON lines, among them an object with the keys s"),
        (b"[]", "seen: an empty list"),
        (b'[{"a": 1}]', "seen: a list of 1, first an object with the keys a"),
        (b"[" * 300 + b"]" * 300, "nested over 200 levels deep"),
    ],
)
def test_a_file_nobody_can_read_is_refused_by_name(tmp_path: Path, data: bytes, why: str) -> None:
    """Empty, binary, undecodable and unknown files are refused, and the error names the file."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read(path)
    assert why in str(caught.value)
    assert str(path) in str(caught.value)


def test_an_unknown_file_lists_the_formats(tmp_path: Path) -> None:
    """Who gives a foreign file is told what could have been given."""
    path = tmp_path / "s.jsonl"
    path.write_text('{"silly": "this"}\n')
    with pytest.raises(InputError) as caught:
        read(path)
    assert all(name in str(caught.value) for name in FORMATS)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    """A path without a file is bad input, not a crash."""
    for path in (tmp_path, tmp_path / "none.jsonl"):
        with refused("unreadable-file", InputError):
            read(path)


def test_an_unknown_or_wrong_format_is_refused(tmp_path: Path) -> None:
    """A format that is none, or not this file's, is named beside those that are."""
    path = tmp_path / "s.jsonl"
    path.write_text('{"role": "user", "content": "hi"}\n')
    with refused("no-format", InputError, "'pie'"):
        read(path, "pie")
    with refused("other-format", InputError):
        read(path, "pi")


def test_a_file_with_some_lines_undecodable_is_read(tmp_path: Path) -> None:
    """One line of foreign bytes, even the first, does not make a file binary."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(b'\0\0\xff\n{"role": "user", "content": "hi"}\n')
    steps = list(read(path).tracks[0].steps)
    assert isinstance(steps[0], UnreadableStep)
    assert steps[0].raw == b"\0\0\xff"
    assert len(steps) == 2


def test_a_pretty_printed_object_is_one_document(tmp_path: Path) -> None:
    """An object over several lines is not mistaken for lines."""
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "hi"}]}, indent=1))
    source = open_source(path)
    assert source.lines == []
    assert len(list(read(path).tracks[0].steps)) == 1
