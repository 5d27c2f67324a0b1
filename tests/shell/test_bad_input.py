"""Bad input: store paths that are none, names and moments that do not exist; and asking never writes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import vmstore
from tests.shell.conftest import Run

QUESTIONS: list[list[str]] = [
    ["info"],
    ["sessions"],
    ["turns", "s1"],
    ["calls", "s1"],
    ["context", "s1", "--call", "2"],
    ["context", "s1", "--turn", "2", "--messages"],
    ["context", "s1", "--render"],
    ["diff", "s1", "--calls", "1", "4"],
    ["pages", "s1"],
    ["page", "s1", "p4"],
    ["history", "s1", "p4"],
    ["sources", "s1", "p4"],
    ["derived", "s1", "p4"],
    ["tail"],
    ["verify"],
    ["du"],
]
CHANGES = [["fork", "s1", "--at-turn", "1", "--as", "x"], ["rebuild"]]


def ids(words: list[str]) -> str:
    return " ".join(words)


def on(store: Path, words: list[str]) -> list[object]:
    """A command's words with the store in its place."""
    return [words[0], store, *words[1:]]


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """Paths that are no store: a file, an empty folder, another folder, nothing, a link to nothing."""
    (tmp_path / "file").write_text("hello")
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("x")
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    return {name: tmp_path / name for name in ("file", "empty", "other", "nothing", "dangling")}


SAID = {
    "file": "is a file, and a store is a folder; name another path",
    "empty": "is an empty folder, not a store; remove it",
    "other": "is a folder of something else (it holds notes.txt); name another path",
    "nothing": "there is no store at",
    "dangling": "is a link to nothing",
}


@pytest.mark.parametrize("words", [*QUESTIONS, *CHANGES], ids=ids)
@pytest.mark.parametrize("place", SAID)
def test_a_path_that_is_no_store(run: Run, places: dict[str, Path], place: str, words: list[str]) -> None:
    """Each kind of wrong path is its own error with the remedy, and nothing is made or touched."""
    before = sorted((path, path.lstat().st_mtime_ns) for path in places["file"].parent.rglob("*"))
    done = run(*on(places[place], words), "--json")
    assert done.code == 1 and done.out == ""
    assert done.err.startswith("vmstore: ") and SAID[place] in done.err and done.err.count("\n") == 1
    assert before == sorted((path, path.lstat().st_mtime_ns) for path in places["file"].parent.rglob("*"))


@pytest.mark.parametrize("place", ["file", "empty", "other", "dangling"])
def test_import_refuses_a_path_that_is_no_store(run: Run, places: dict[str, Path], chat: Path, place: str) -> None:
    """Import touches no path that is something else, and says so before it speaks of the file."""
    for file in (chat, places["file"]):
        done = run("import", places[place], file)
        assert done.code == 1 and done.out == "" and SAID[place] in done.err
    assert places["file"].read_text() == "hello" and list(places["empty"].iterdir()) == []
    assert [path.name for path in places["other"].iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["context", "s3"], "there is no session 's3'; the nearest is 's"),
        (["context", "s1", "--call", "99"], "call 99 does not exist: the nearest is call 4"),
        (["context", "s1", "--turn", "99"], "turn 99 does not exist: the nearest is turn 2"),
        (["context", "s1", "--turn", "0"], "turn 0 made no call; the nearest turn with one is turn 1"),
        (["context", "s1", "--position", "9999"], "position 9999 does not exist: the nearest is position"),
        (["context", "s1", "--position", "1"], "the first call is at position"),
        (["context", "s1", "--call", "-1"], "call -1 is before the beginning"),
        (["context", "s1", "--time", "someday"], "is no time; write it like"),
        (["diff", "s1", "--calls", "1", "99"], "the nearest is call 4"),
        (["page", "s1", "p5"], "there is no page 'p5' in session 's1'; the nearest is p4"),
        (["page", "s1", "p9999@turn:1"], "there is no page 'p9999'"),
        (["page", "s1", "p4", "--level", "3"], "p4 has no content at level 3; level 0 always has"),
        (["page", "s1", "a//b"], "a name is missing"),
        (["page", "s1", "p4@turn:1", "--call", "1"], "names its turn already"),
        (["page", "s1", "vm://default/s2/p4"], "names a page of session 's2', and this is 's1'"),
        (["page", "vm://elsewhere/s1/p4"], "has no namespace 'elsewhere'; name one"),
        (["page", "vm://elsewhere/s1/p4", "--namespace", "default"], "stands in namespace 'elsewhere'"),
        (["history", "s1", "p99"], "there is no page 'p99'"),
        (["sources", "s1", "p4", "--kinds", "likes"], "there is no kind of link 'likes'; the kinds are derives"),
        (["pages", "s1", "--type", "thing"], "'thing' is no type; there are transcript"),
        (["tail", "--after", "never"], "'never' is no cursor"),
        (["rebuild", "--view", "page"], "there is no view 'page'; the views are"),
        (["fork", "s1", "--at-call", "99", "--as", "x"], "the nearest is call 4"),
        (["fork", "s1", "--at-call", "1", "--as", "s2"], "the name is taken"),
        (["fork", "s1", "--at-call", "1", "--as", ""], "needs a name"),
        (["info", "--namespace", "two"], "has no namespace 'two'; name one"),
        (["context"], "holds 2; give the beginning of a name, or - for the newest"),
        (["history", "p4"], "could be any of vm://default/s1/p4, vm://default/s2/p4"),
        (["history", "s1"], "'s1' is a session; name one of its pages after it"),
    ],
    ids=lambda value: ids(value) if isinstance(value, list) else "",
)
def test_what_does_not_exist_names_the_nearest(run: Run, two: Path, words: list[str], text: str) -> None:
    """An unknown name or moment is one line on stderr with what does exist, exit code 1, no JSON."""
    before = (two / "default" / "log.sqlite").read_bytes()
    done = run(*on(two, words), "--json")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("vmstore: ") and text in done.err and done.err.count("\n") == 1
    assert before == (two / "default" / "log.sqlite").read_bytes()


def test_an_empty_store_says_how_to_fill_it(run: Run, store_path: Path) -> None:
    """A store without a session answers counts of 0, and a question about a session names import."""
    vmstore.open(store_path).close()
    assert run("info", store_path, "--json").json["sessions"] == 0
    assert run("sessions", store_path, "--json").json["sessions"] == []
    assert run("verify", store_path, "--json").json["ok"] is True
    done = run("context", store_path)
    assert done.code == 1 and f"import one: vmstore import {store_path} FILE" in done.err


@pytest.mark.parametrize("words", QUESTIONS, ids=ids)
def test_asking_never_writes(run: Run, recorded: Path, words: list[str]) -> None:
    """No question changes a byte of the log, as text, as JSON, or with the views to fold first."""
    before = (recorded / "default" / "log.sqlite").read_bytes()
    assert run(*on(recorded, words)).code == 0
    for views in recorded.rglob("views-*"):
        views.unlink()
    assert run(*on(recorded, words), "--json").code == 0
    assert before == (recorded / "default" / "log.sqlite").read_bytes()


@pytest.mark.parametrize("words", QUESTIONS, ids=ids)
def test_a_store_that_cannot_be_written_still_answers(
    run: Run, recorded: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the folder is not writable a question answers the same, and no file in it changes at all."""
    wanted = run(*on(recorded, words), "--json")
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in recorded.rglob("*") if path.is_file()}
    asked: list[Path] = []
    monkeypatch.setattr("vmstore.shell.open_store.os.access", lambda path, mode: asked.append(path))
    done = run(*on(recorded, words), "--json")
    assert asked and done.code == 0
    if words == ["info"]:
        assert {**done.json, "bytes_views": 0} == {**wanted.json, "bytes_views": 0}
    elif words == ["du"]:
        assert done.json["kinds"] == wanted.json["kinds"]
    else:
        assert done.out == wanted.out
    for path, seen in before.items():
        assert seen == (path.stat().st_mtime_ns, path.read_bytes()), path


@pytest.mark.parametrize("words", CHANGES, ids=ids)
def test_a_change_is_refused_where_nothing_can_be_written(
    run: Run, recorded: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fork and rebuild say that the store is not writable, rather than change a copy nobody sees."""
    monkeypatch.setattr("vmstore.shell.open_store.os.access", lambda path, mode: False)
    done = run(*on(recorded, words))
    assert done.code == 1 and done.out == "" and "is not writable for you" in done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission_is_asked_in_place(run: Run, recorded: Path, tmp_path: Path) -> None:
    """A store on a read-only medium answers, without a file being made beside its log."""
    copy = tmp_path / "frozen.vms"
    shutil.copytree(recorded, copy)
    folder = copy / "default"
    folder.chmod(0o555)
    try:
        assert run("context", copy, "--json").code == 0
    finally:
        folder.chmod(0o755)
