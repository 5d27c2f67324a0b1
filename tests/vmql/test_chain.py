"""VERIFY of one session reads what that session stands on, and nothing else."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import vmstore


def test_verify_reads_the_chain_of_one_session(tmp_path: Path) -> None:
    """VERIFY SESSION names a flipped byte of the session and of those that inherit it, and finds none in another."""
    path = tmp_path / "agent.vms"
    with vmstore.open(path) as made:
        for name, text in (("trip", "Where is Kyoto?"), ("other", "Where is Nara?")):
            made.record(name, {"messages": [{"role": "user", "content": text}]}, None, at_us=1)
        made.session("trip").fork("trip-b", call=1)
        assert list(made.query("VERIFY SESSION trip")) == []
    log = apsw.Connection(str(path / "default" / "log.sqlite"))
    log.execute("UPDATE frames SET content = CAST(replace(content, 'Kyoto', 'Otsu!') AS BLOB)")
    log.close()
    with vmstore.open(path) as made:
        for name, kinds in (("trip", ["cell"]), ("trip-b", ["cell"]), ("other", [])):
            result = made.query(f"VERIFY SESSION '{name}'")
            assert [row["kind"] for row in result.to_dicts()] == kinds, name
            assert result.basis["ok"] is not bool(kinds)


def test_a_changed_commit_and_a_lost_cell_are_named(tmp_path: Path) -> None:
    """A commit whose time was changed no longer matches its hash, and a cell that is gone is missing."""
    path = tmp_path / "agent.vms"
    with vmstore.open(path) as made:
        for text in ("Where is Kyoto?", "Where is Nara?"):
            made.record("trip", {"messages": [{"role": "user", "content": text}]}, None, at_us=1)
    log = apsw.Connection(str(path / "default" / "log.sqlite"))
    log.execute("UPDATE commits SET at = at + 1 WHERE ordinal = 1")
    log.execute("DELETE FROM frames WHERE first = (SELECT max(first) FROM frames)")
    log.close()
    with vmstore.open(path) as made:
        rows = made.query("VERIFY SESSION trip").to_dicts()
        assert {row["kind"] for row in rows} == {"hash", "cell"}
        assert {row["where"] for row in rows if row["kind"] == "hash"} == {"commit 1"}
        assert {row["what"] for row in rows if row["kind"] == "cell"} == {"it is missing"}


@pytest.mark.parametrize("damage", ["count = 5000000000000", "count = -7", "request = -5000000000", "at = 1 << 62"])
def test_a_number_no_commit_can_have_is_named(tmp_path: Path, damage: str) -> None:
    """Where a damaged number does not even fit into what is hashed, VERIFY of one session or all names the commit."""
    path = tmp_path / "agent.vms"
    with vmstore.open(path) as made:
        for text in ("Where is Kyoto?", "Where is Nara?"):
            made.record("trip", {"messages": [{"role": "user", "content": text}]}, None, at_us=1)
    log = apsw.Connection(str(path / "default" / "log.sqlite"))
    log.execute(f"UPDATE commits SET {damage} WHERE ordinal = 1")
    log.close()
    with vmstore.open(path) as made:
        for text in ("VERIFY SESSION trip", "VERIFY"):
            rows = {(row["kind"], row["where"]) for row in made.query(text).to_dicts()}
            assert ("hash", "commit 1") in rows, text
