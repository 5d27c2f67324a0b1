"""What the calls of an imported session used: read after the import, logged once, and nothing where nobody asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import vmstore
from tests.refusals import refused
from vmstore.errors import InputError
from vmstore.shell.main import main
from vmstore.store.store import Store

LEDGER = "The harbour master keeps the winter ledger in drawer seven."
TALK = [
    ("user", LEDGER),
    ("assistant", "Noted."),
    ("user", "Where is it?"),
    ("assistant", f"You said this: {LEDGER}"),
    ("user", "The key to it hangs behind the painting of the old lighthouse. Where do I find it?"),
    ("assistant", "It hangs behind the painting of the old lighthouse, as you say."),
]


def write(path: Path, upto: int) -> Path:
    """A file of a talk, of which so many messages were had so far."""
    rows: list[dict[str, Any]] = [{"type": "session", "version": 3, "id": "u1", "timestamp": "2026-11-21T10:00:00Z"}]
    for n, (role, text) in enumerate(TALK[:upto]):
        fields: dict[str, Any] = {"role": role, "content": [{"type": "text", "text": text}], "timestamp": 1_000 + n}
        if role == "assistant":
            fields |= {"stopReason": "stop", "model": "m-1", "provider": "p", "api": "a"}
        parent = f"e{n - 1}" if n else None
        rows.append(
            {
                "type": "message",
                "id": f"e{n}",
                "parentId": parent,
                "timestamp": "2026-11-21T10:00:01Z",
                "message": fields,
            }
        )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def references(store: Store) -> list[tuple[str, int]]:
    """The pages that were used, and by which call."""
    rows = store.query("MUTATIONS page, detail WHERE kind = reference").to_dicts()
    return [(row["page"], row["detail"]["call"]) for row in rows]


def test_a_call_used_what_its_answer_quotes(tmp_path: Path) -> None:
    """The answer that repeats what was said is logged as its use, by its call; topics tag what was said."""
    store = vmstore.memory_store()
    (actual_session,) = store.import_file(write(tmp_path / "u.jsonl", 4), uses=True).sessions
    session = store.session(actual_session.session)
    first = session.pages(role="user")[0]
    assert (first.page, 2) in references(store)
    assert any(tag.startswith("topic:") for tag in first.tags)
    assert store.verify().ok


def test_nothing_is_logged_where_nobody_asks(tmp_path: Path) -> None:
    """Without the flag an import holds what it did."""
    store = vmstore.memory_store()
    (session,) = store.import_file(write(tmp_path / "u.jsonl", 4)).sessions
    assert references(store) == [] and store.session(session.session).pages(tag="topic:ledger") == []


def test_it_follows_a_file_that_grows(tmp_path: Path) -> None:
    """The same file again logs nothing, a grown one what is new, and all of it is what one import of the whole logs."""
    store, whole = vmstore.memory_store(), vmstore.memory_store()
    store.import_file(write(tmp_path / "u.jsonl", 4), uses=True)
    before = references(store)
    assert store.import_file(tmp_path / "u.jsonl", uses=True).new == 0 and references(store) == before
    assert store.import_file(write(tmp_path / "u.jsonl", 6), uses=True).new == 2
    whole.import_file(tmp_path / "u.jsonl", uses=True)
    assert len(store.sessions()) == 1 and len(references(store)) > len(before)
    texts = [
        sorted((host.session(name).content(page), call) for page, call in references(host))
        for host in (store, whole)
        for name in [host.sessions()[0].session]
    ]
    assert texts[0] == texts[1] and store.verify().ok


def test_what_was_imported_without_is_read_later(tmp_path: Path) -> None:
    """A session that was taken in without the flag gets its uses by the next import that has it."""
    store = vmstore.memory_store()
    store.import_file(write(tmp_path / "u.jsonl", 4))
    store.import_file(tmp_path / "u.jsonl", uses=True)
    assert references(store) != []


def test_the_command_line_and_bundles(tmp_path: Path) -> None:
    """`--uses` does the same; of a bundle, which brings what it has, it is refused."""
    path = tmp_path / "a.vms"
    assert main(["import", str(path), str(write(tmp_path / "u.jsonl", 4)), "--uses", "--quiet"]) == 0
    with vmstore.open(path) as store:
        assert references(store) != []
        store.export(tmp_path / "u.bundle")
        with refused("bundle-as-it-is", InputError):
            vmstore.memory_store().import_file(tmp_path / "u.bundle", uses=True)
        other = vmstore.memory_store()
        other.import_file(tmp_path / "u.bundle")
        assert len(references(other)) == len(references(store))
