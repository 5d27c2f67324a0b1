"""Memory as a folder of Markdown: out, edited, and in again, with nothing lost and nothing obeyed that was planted."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import vmstore
from tests.refusals import refused
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import InputError, RefusedError, StoreError
from vmstore.shell.main import main
from vmstore.store.notes.front_matter import parsed, printed
from vmstore.store.store import Store

DAY = 86_400_000_000
KEY = "ghp_" + "a1B2" * 9


@pytest.fixture
def store() -> Iterator[Store]:
    """A store with a talk that was recorded, a fact, and notes of a person with a link between them."""
    with vmstore.memory_store(clock=ManualClock(20_000 * DAY, 1_000), ids=SeededIds(1)) as store:
        messages = [{"role": "user", "content": "Where is Kyoto?"}]
        store.record("trip", {"model": "m", "messages": messages}, None)
        store.session("trip").memory.facts.state("user", "lives in", "Berlin", attribute="home")
        store.session("trip").annotate("p4", tags=["japan"])
        yield store


@pytest.fixture
def folder(store: Store, tmp_path: Path) -> Path:
    """A folder of notes with two of a person's own, taken in."""
    folder = tmp_path / "notes"
    store.export_notes(folder)
    new(folder, "plans/kyoto.md", "Go to Kyoto in April.", session="plans", tags="[japan, spring]")
    new(
        folder, "plans/nara.md", "Nara is a day trip.\n\n<!-- links -->\n\n- part_of [Kyoto](kyoto.md)", session="plans"
    )
    report = store.import_notes(folder, by="ada")
    assert (report.added, report.changed, report.conflicts) == (2, 0, [])
    store.export_notes(folder)
    return folder


def new(folder: Path, path: str, text: str, **fields: str) -> None:
    """Writes a file as a person does."""
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    front = "".join(f"{name}: {value}\n" for name, value in fields.items())
    place.write_text(f"---\n{front}---\n\n{text}\n" if front else f"{text}\n")


def changed(folder: Path, path: str, old: str, text: str) -> None:
    """Edits a file."""
    before = (folder / path).read_text()
    assert old in before
    (folder / path).write_text(before.replace(old, text, 1))


def stands(store: Store) -> int:
    """Where the log stands."""
    return store.admin.log.ordinal


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# ---- out


def test_a_note_is_a_file_that_people_read(store: Store, folder: Path) -> None:
    """A page is a file under its first tag, with front matter, its text, and links to other files."""
    text = (folder / "plans/nara.md").read_text()
    assert text.startswith("---\nid: p3\nuid: ") and "session: plans\ntype: claim\nrole: user\nactor: ada\n" in text
    assert "\n\nNara is a day trip.\n\n<!-- links -->\n\n- part_of [p2 Go to Kyoto in April.](kyoto.md)\n" in text
    assert sorted(contents(folder)) == [
        *("japan/trip.p4.md", "plans/kyoto.md", "plans/nara.md", "untagged/trip.p7.md", "vmstore-notes.json"),
    ]
    assert 'fact: "user | lives in | Berlin"' in (folder / "untagged/trip.p7.md").read_text()


def test_the_same_again_changes_nothing(store: Store, folder: Path, tmp_path: Path) -> None:
    """A folder that was not edited adds nothing, is not written again, and another one is equal to the byte."""
    before, position = contents(folder), stands(store)
    report = store.import_notes(folder)
    assert (report.added, report.changed, report.unchanged, report.conflicts) == (0, 0, 4, [])
    assert store.export_notes(folder).written == 0 and stands(store) == position
    store.export_notes(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(folder) == before


def test_what_changed_is_one_file(store: Store, folder: Path) -> None:
    """One more tag of one page writes that page's file alone, and moves none that a person placed."""
    store.session("plans").annotate("p2", tags=["autumn"])
    before = contents(folder)
    assert store.export_notes(folder).written == 1
    after = contents(folder)
    assert {path for path in after if after[path] != before.get(path)} == {"plans/kyoto.md"}


def test_what_was_erased_is_in_no_file(store: Store, folder: Path) -> None:
    """A page that was erased has no file any more, nor a link, and a file of it that was edited stays and is named."""
    store.trust.erase(page="p2", in_session="plans")
    report = store.export_notes(folder)
    assert report.removed == 1 and report.conflicts == [] and report.left_out == 1
    assert not any(b"Kyoto in April" in content for content in contents(folder).values())
    changed(folder, "plans/nara.md", "day trip", "long day")
    store.trust.erase(page="p3", in_session="plans")
    assert store.export_notes(folder).conflicts == ["plans/nara.md"]
    assert store.import_notes(folder).conflicts == ["plans/nara.md"]
    assert store.export_notes(folder, overwrite=True).removed == 1


def test_secrets_are_masked(store: Store, tmp_path: Path) -> None:
    """A secret is masked in the file, and a file that is masked cannot be taken in as if it were the text."""
    store.record("keys", {"model": "m", "messages": [{"role": "user", "content": f"my key is {KEY}"}]}, None)
    folder = tmp_path / "notes"
    report = store.export_notes(folder)
    assert report.masked == {"api_key": 1} and not any(KEY.encode() in text for text in contents(folder).values())
    path = next(path for path in contents(folder) if path.startswith("untagged/keys"))
    assert store.import_notes(folder).unchanged == 3
    changed(folder, path, "my key", "our key")
    with refused("masked-note", RefusedError, path):
        store.import_notes(folder)
    assert store.export_notes(folder, redact=False, overwrite=True).written == 1
    assert KEY in (folder / path).read_text()


def test_only_what_is_wanted(store: Store, tmp_path: Path) -> None:
    """Sessions and types choose the notes."""
    assert store.export_notes(tmp_path / "a", types=["claim"]).notes == 1
    assert store.export_notes(tmp_path / "b", ["trip"], types=["transcript"]).notes == 1


# ---- in


def test_an_edit_is_a_mutation_with_its_provenance(store: Store, folder: Path) -> None:
    """Text, tags, status, validity and links of a file become the page's, as a version that says where it came from."""
    (folder / ".git/refs/heads").mkdir(parents=True)
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git/refs/heads/main").write_text("c0ffee" + "0" * 34 + "\n")
    changed(folder, "plans/kyoto.md", "in April", "in May")
    changed(folder, "plans/kyoto.md", "tags: [japan, spring]", "tags:\n  - spring\n  - 'may'\nstatus: planned")
    changed(folder, "plans/kyoto.md", "in May.\n", "in May.\n\n<!-- links -->\n\n- related_to [Nara](nara.md)\n")
    changed(folder, "plans/nara.md", "hash:", "valid_from: 2026-05-01\nhash:")
    changed(folder, "plans/nara.md", "- part_of [p2 Go to Kyoto in April.](kyoto.md)\n", "")
    report = store.import_notes(folder, by="bob")
    assert (report.added, report.changed, report.unchanged, report.sessions) == (0, 2, 2, ["plans"])
    plans = store.session("plans")
    page = plans.page("p2")
    assert plans.content("p2") == b"Go to Kyoto in May." and page.version == 2
    assert (sorted(page.tags), page.status) == (["may", "spring"], "planned")
    assert page.anchors["note"] == "plans/kyoto.md" and page.anchors["note_by"] == "bob"
    assert page.anchors["note_commit"] == "c0ffee" + "0" * 34
    assert plans.page("p3").valid_from == 1_777_593_600_000_000
    links = store.query("LINKS source, kind, target", session="plans").to_dicts()
    assert links == [{"source": "p2", "kind": "related_to", "target": "p3"}]
    position = stands(store)
    assert store.import_notes(folder).unchanged == 4 and stands(store) == position
    assert store.export_notes(folder).conflicts == []
    assert store.import_notes(folder).unchanged == 4 and stands(store) == position and store.verify().ok


def test_edits_follow_each_other_without_an_export_between(store: Store, folder: Path) -> None:
    """A file that was taken in may be edited and taken in again, though its hash is of before."""
    for old, text in (("April", "May"), ("May", "June"), ("June", "July")):
        changed(folder, "plans/kyoto.md", old, text)
        assert store.import_notes(folder).changed == 1
    assert store.session("plans").content("p2") == b"Go to Kyoto in July."
    assert [version.version for version in store.session("plans").lineage.versions("p2")] == [1, 2, 3, 4]


def test_links_in_markdown_answer_a_question_of_the_graph(store: Store, folder: Path) -> None:
    """A way through links that people wrote as Markdown is found by PATH, SOURCES and LINKS."""
    new(folder, "plans/temple.md", "See the temple.\n\n<!-- links -->\n\n- part_of [Nara](nara.md)", session="plans")
    store.import_notes(folder)
    (temple,) = [page.page for page in store.session("plans").pages() if page.anchors["note"] == "plans/temple.md"]
    steps = [row[:3] for row in store.query(f"PATH FROM {temple} TO p2 VIA part_of", session="plans")]
    assert [step[0] for step in steps] == [1, 2], steps
    parts = store.query("LINKS source WHERE kind = part_of AND target = p2", session="plans").to_dicts()
    assert parts == [{"source": "p3"}]


def test_what_both_sides_changed_is_named_and_kept(store: Store, folder: Path) -> None:
    """A page that changed in the file and in the store is taken from neither until somebody says from which."""
    with store.session("plans").batch():
        pass
    changed(folder, "plans/kyoto.md", "April", "May")
    changed(folder, "plans/nara.md", "day trip", "long day")
    store.session("plans").annotate("p2", tags=["crowded"])
    before, position = (folder / "plans/kyoto.md").read_text(), stands(store)
    report = store.export_notes(folder)
    assert report.conflicts == ["plans/kyoto.md", "plans/nara.md"] and stands(store) == position
    taken = store.import_notes(folder)
    assert taken.conflicts == ["plans/kyoto.md"] and taken.changed == 1
    assert store.session("plans").content("p2") == b"Go to Kyoto in April."
    assert (folder / "plans/kyoto.md").read_text() == before
    assert store.import_notes(folder, overwrite=True).changed == 1
    assert store.session("plans").content("p2") == b"Go to Kyoto in May."
    assert store.session("plans").content("p2", position=report_position(store)) == b"Go to Kyoto in April."


def report_position(store: Store) -> int:
    """The position before the last version of the page."""
    return store.session("plans").lineage.versions("p2")[-1].position - 1


def test_the_stores_side_may_be_taken_too(store: Store, folder: Path) -> None:
    """With overwrite a file becomes what the store says."""
    changed(folder, "plans/kyoto.md", "April", "May")
    assert store.export_notes(folder, overwrite=True).conflicts == []
    assert "April" in (folder / "plans/kyoto.md").read_text() and store.import_notes(folder).unchanged == 4


def test_a_file_that_is_gone_takes_nothing_away(store: Store, folder: Path) -> None:
    """A note that was removed from the folder is named, and the page stays and is written again."""
    (folder / "plans/nara.md").unlink()
    report = store.import_notes(folder)
    assert report.missing == ["plans/nara.md"] and store.session("plans").content("p3") == b"Nara is a day trip."
    assert store.export_notes(folder).written == 1


@pytest.mark.parametrize(
    ("path", "old", "text", "code"),
    [
        ("japan/trip.p4.md", "Kyoto?", "Nara?", "said-stays"),
        ("untagged/trip.p7.md", "Berlin\n", "Rome\n", "said-stays"),
        ("plans/kyoto.md", "hash:", "valid_from: 2026-05-02\nvalid_to: 2026-05-01\nhash:", "ends-before-it-begins"),
        ("plans/kyoto.md", "Go to Kyoto in April.\n", "\n", "not-a-note"),
    ],
)
def test_what_cannot_be_changed_is_refused_whole(
    store: Store, folder: Path, path: str, old: str, text: str, code: str
) -> None:
    """A change that a page cannot have is refused by its file, and no other of the folder is taken in then."""
    changed(folder, "plans/nara.md", "day trip", "long day")
    changed(folder, path, old, text)
    position = stands(store)
    with refused(code, InputError if code != "said-stays" else RefusedError, path):
        store.import_notes(folder)
    assert stands(store) == position


def test_a_live_session_takes_notes(store: Store, tmp_path: Path) -> None:
    """A note for a session that manages its memory becomes a page of it, and an edit of it a version."""
    live = store.live_session("agent", l0_tokens_max=8_000)
    folder = tmp_path / "notes"
    store.export_notes(folder)
    new(folder, "agent/rule.md", "Never deploy on Friday.", session="agent", type="claim")
    assert store.import_notes(folder, by="ada").added == 1
    changed(folder, "agent/rule.md", "Friday", "Sunday")
    assert store.import_notes(folder).changed == 1
    page = next(page for page in live.pages() if page.anchors.get("note") == "agent/rule.md")
    assert live.content(page.page) == b"Never deploy on Sunday." and page.version == 2


def test_another_store_takes_a_folder_in_once(store: Store, folder: Path) -> None:
    """Notes of another store become new pages with their tags and links, and again nothing."""
    with vmstore.memory_store() as other:
        assert other.import_notes(folder).added == 4
        assert other.import_notes(folder).added == 0
        assert [info.session for info in other.sessions()] == ["plans", "trip"]
        assert len(other.query("LINKS", session="plans").to_dicts()) == 1
        with refused("path-taken", StoreError):
            other.export_notes(folder)


# ---- what somebody planted

BROKEN = {
    "an open fence": ("---\ntags: [a]\n\nno end\n", "not-front-matter"),
    "no field": ("---\njust words\n---\n\ntext\n", "not-front-matter"),
    "a field twice": ("---\ntags: [a]\ntags: [b]\n---\n\ntext\n", "not-front-matter"),
    "a map": ("---\ntags: {a: b}\n---\n\ntext\n", "not-front-matter"),
    "an anchor of YAML": ("---\nsession: &a x\n---\n\ntext\n", "not-front-matter"),
    "an open list": ("---\ntags: [a, b\n---\n\ntext\n", "not-front-matter"),
    "an open quote": ('---\nsession: "a\n---\n\ntext\n', "not-front-matter"),
    "another field": ("---\ncolour: red\n---\n\ntext\n", "not-a-note"),
    "another type": ("---\ntype: poem\n---\n\ntext\n", "not-a-note"),
    "no time": ("---\nvalid_from: soon\n---\n\ntext\n", "not-a-note"),
    "a tag with a control": ('---\ntags: ["a\\u001b[2J"]\n---\n\ntext\n', "not-a-tag"),
    "another kind of link": ("text\n\n<!-- links -->\n\n- loves [x](japan/trip.p4.md)\n", "not-a-note"),
    "no list of links": ("text\n\n<!-- links -->\n\nand so on\n", "not-a-note"),
    "a link out": ("text\n\n<!-- links -->\n\n- references [x](../../secret.md)\n", "leads-out"),
    "a link to the root": ("text\n\n<!-- links -->\n\n- references [x](/etc/passwd)\n", "leads-out"),
    "a link elsewhere": ("text\n\n<!-- links -->\n\n- references [x](https://a.example/x.md)\n", "leads-out"),
    "a link to nothing": ("text\n\n<!-- links -->\n\n- references [x](none.md)\n", "not-a-note"),
    "a link to another session": ("text\n\n<!-- links -->\n\n- references [x](japan/trip.p4.md)\n", "link-not-by-hand"),
    "nothing": ("\n", "not-a-note"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_file_is_named_and_nothing_is_taken(store: Store, folder: Path, what: str) -> None:
    """What cannot be read as a note is refused by its path, and nothing of the folder is written to the store."""
    text, code = BROKEN[what]
    changed(folder, "plans/nara.md", "day trip", "long day")
    (folder / "broken.md").write_text(text)
    position = stands(store)
    with refused(code, InputError, "" if code == "not-a-tag" else "broken.md"):
        store.import_notes(folder)
    assert stands(store) == position


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda path: path.symlink_to("/etc/passwd"), "leads-out"),
        (lambda path: path.write_bytes("Kyoto".encode("utf-16")), "binary-file"),
        (lambda path: path.write_bytes(b"x" * ((8 << 20) + 1)), "unreadable-file"),
        (os.mkfifo, "unreadable-file"),
    ],
)
def test_what_is_no_text_is_not_read(store: Store, folder: Path, make: object, code: str) -> None:
    """A link, another encoding, a file over the limit and a pipe are refused by their path, and never waited for."""
    assert callable(make)
    make(folder / "planted.md")
    with refused(code, InputError, "planted.md"):
        store.import_notes(folder)


def test_a_link_in_the_folder_is_not_written_through(store: Store, folder: Path, tmp_path: Path) -> None:
    """Where a folder or a file was replaced by a link, an export writes nothing that lies behind it."""
    (tmp_path / "outside").mkdir()
    (folder / "japan/trip.p4.md").unlink()
    (folder / "japan").rmdir()
    (folder / "japan").symlink_to(tmp_path / "outside")
    with refused("leads-out", InputError, "japan"):
        store.export_notes(folder)
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_page_cannot_choose_a_path_outside(store: Store, tmp_path: Path) -> None:
    """A path that a page brings from elsewhere is taken only within the folder, in the open, and once."""
    for path in ("../../evil.md", "/etc/evil.md", ".git/hooks/x.md", "a/../b.md", "a\\b.md", "x.txt", "a//b.md"):
        store.session("trip").annotate("p4", anchors={"note": path})
        store.export_notes(tmp_path / "notes")
        assert "japan/trip.p4.md" in contents(tmp_path / "notes"), path
    store.session("trip").annotate("p4", anchors={"note": "own/place.md"})
    store.session("trip").annotate("p7", anchors={"note": "OWN/place.md"})
    store.export_notes(tmp_path / "notes")
    assert {"own/place.md", "untagged/trip.p7.md"} <= contents(tmp_path / "notes").keys()


def test_a_note_is_there_once(store: Store, folder: Path) -> None:
    """A copy of a file is refused with both names, and is a note of its own once it has no id."""
    text = (folder / "plans/kyoto.md").read_text()
    (folder / "copy.md").write_text(text)
    with refused("note-twice", InputError, "copy.md", "plans/kyoto.md"):
        store.import_notes(folder)
    (folder / "copy.md").write_text("Go to Kyoto in April.\n")
    assert store.import_notes(folder).added == 1


def test_a_folder_of_something_else_is_left_alone(store: Store, tmp_path: Path) -> None:
    """An export goes into no folder that holds anything but notes and git."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.md").write_text("mine")
    with refused("path-taken", StoreError, "work"):
        store.export_notes(tmp_path / "work")
    assert contents(tmp_path / "work") == {"thesis.md": b"mine"}
    (tmp_path / "fresh" / ".git").mkdir(parents=True)
    assert store.export_notes(tmp_path / "fresh").notes == 2


def test_files_of_ones_own_stay(store: Store, folder: Path) -> None:
    """A new note that is not taken in yet, and a broken one, stay where they are at an export."""
    (folder / "new.md").write_text("new\n")
    (folder / "plans/nara.md").write_text("---\nbroken\n")
    assert store.export_notes(folder).conflicts == ["plans/nara.md"]
    assert (folder / "new.md").read_text() == "new\n" and (folder / "plans/nara.md").read_text() == "---\nbroken\n"


@pytest.mark.parametrize(
    "value",
    [
        "plain",
        "two words",
        "",
        " ",
        "yes",
        "null",
        "1",
        "a: b",
        "# no",
        "- x",
        '"',
        "'",
        "[a]",
        "{",
        "ü",
        "a,b",
        "\\",
        "\t",
    ],
)
def test_front_matter_comes_back(value: str) -> None:
    """Whatever a field says is read as it was written, alone and in a list."""
    fields = {"a": value or "-", "b": [value, "x", value], "c": []}
    assert parsed(printed(fields) + "\nbody\n", "f") == (fields, "\nbody\n")


# ---- the command


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder goes out and in on the command line, conflicts end with 1, and git sees one line of one file changed."""
    monkeypatch.chdir(tmp_path)
    with vmstore.open("a.vms") as store:
        store.record("trip", {"model": "m", "messages": [{"role": "user", "content": "Where is Kyoto?"}]}, None)
        store.session("trip").memory.facts.state("user", "lives in", "Berlin", attribute="home")
    assert main(["export", "a.vms", "--format", "notes", "--out", "notes"]) == 0
    git = ["git", "-C", "notes", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "notes"]):
        subprocess.run([*git, *words], check=True)
    new(Path("notes"), "rule.md", "Never deploy on Friday.")
    assert main(["import", "a.vms", "notes", "--by", "ada", "--json"]) == 0
    report = json.loads(capsys.readouterr().out.partition("\n")[2] or "{}")
    assert report["added"] == 1 and report["sessions"] == ["notes"]
    with vmstore.open("a.vms") as store:
        head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
        assert store.session("notes").pages()[0].anchors["note_commit"] == head
        store.session("trip").annotate("p4", status="completed")
    assert main(["export", "a.vms", "--format", "notes", "--out", "notes"]) == 0
    seen = subprocess.run([*git, "diff", "--numstat"], check=True, capture_output=True, text=True).stdout
    assert seen.split() == ["2", "1", "untagged/trip.p4.md"]
    changed(Path("notes"), "rule.md", "Friday", "Sunday")
    assert main(["export", "a.vms", "--format", "notes", "--out", "notes"]) == 1
    assert "rule.md" in capsys.readouterr().err
    for words in (["export", "a.vms", "--format", "notes"], ["import", "a.vms", "notes", "--follow"]):
        assert main(words) == 1
    assert main(["import", "a.vms", "a.vms", "--by", "x"]) == 1
