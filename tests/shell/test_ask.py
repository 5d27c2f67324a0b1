"""The commands that ask: the shapes of their JSON, field by field, and their text in a pipe."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

import vmstore
from tests.shell.conftest import OUTPUT, Process, Run, answer, requests

BASIS = ["session", "position", "turn", "call"]
PAGE = ["order", "page", "message", "role", "type", "level", "tokens", "pinned", "since_turn", "since_call"]
SEEN = ["page", "session", "message", "type", "role", "modality", "mime", "tier", "level", "version", "tokens", "bytes"]
SEEN += ["importance", "pinned", "tags", "hint", "actor", "status", "valid_from", "valid_to", "anchors", "represents"]
SEEN += ["created_turn", "created_call", "created_at", "last_access_turn", "access_count", "position"]


def test_info_shape(run: Run, two: Path) -> None:
    """`info --json` counts sessions, commits, mutations and pages, sizes the parts, and places each view."""
    document = run("info", two, "--json").json
    names = ["sessions", "commits", "mutations", "pages", "bytes_log", "bytes_views", "bytes_blobs", "positions"]
    assert list(document) == names
    assert document["sessions"] == 2 and document["pages"] == 14 and document["bytes_blobs"] == 0
    assert document["bytes_log"] >= (two / "default" / "log.sqlite").stat().st_size
    assert set(document["positions"].values()) == {document["commits"]} and "residency" in document["positions"]
    text = run("info", two).out
    assert f"mutations   {document['mutations']:>6}\n".split() == text.splitlines()[2].split()


@pytest.mark.parametrize("moment", [["--call", "4"], ["--turn", "2"], [], ["--time", "2999-01-01"]])
def test_context_shape(run: Run, recorded: Path, moment: list[str]) -> None:
    """`context --json` has the promised fields, whichever moment leads to the call."""
    document = run("context", recorded, "s1", *moment, "--json").json
    assert list(document)[:4] == ["basis", "fidelity", "tokens", "tokens_reported"]
    assert list(document["basis"]) == BASIS
    assert {**document["basis"], "position": 0} == {"session": "s1", "position": 0, "turn": 2, "call": 4}
    assert document["fidelity"] == "recorded" and document["tokens_reported"] is None
    assert "messages" not in document and "text" not in document
    assert [list(page)[:10] for page in document["pages"]] == [PAGE] * 7
    assert [page["order"] for page in document["pages"]] == [1, 2, 3, 4, 5, 6, 7]
    assert [page["role"] for page in document["pages"]][-2:] == ["tool", "user"]
    assert document["tokens"] == sum(page["tokens"] for page in document["pages"])
    short = document["pages"][5]
    assert (short["type"], short["level"], short["pinned"], short["since_call"]) == ("artifact", 3, False, 3)


def test_context_of_a_position_is_the_call_before(run: Run, recorded: Path) -> None:
    """A position stands for the last call at or before it, and the basis says which."""
    third = run("context", recorded, "--call", "3", "--json").json["basis"]
    again = run("context", recorded, "--position", third["position"] + 1, "--json").json["basis"]
    assert again == third


@pytest.mark.parametrize("call", [1, 2, 3, 4])
def test_context_messages_are_the_request(run: Run, recorded: Path, call: int) -> None:
    """`--messages --json` gives back the messages of a recorded call, equal in every field."""
    document = run("context", recorded, "--call", call, "--messages", "--json").json
    assert document["messages"] == requests()[call - 1]


def test_context_messages_as_text(run: Run, recorded: Path) -> None:
    """As text the messages read as a transcript: who speaks, what is said, which tool is asked."""
    lines = run("context", recorded, "--call", "3", "--messages").out.splitlines()
    assert "1 system" in lines and "   You are helpful." in lines
    assert "   → list_files({})" in lines and "6 tool c1" in lines
    assert lines.count("   naïve.py 漢字.txt") == 40


def test_context_render(run: Run, recorded: Path) -> None:
    """`--render` prints the VM:CONTEXT text and nothing else; in JSON the same stands under `text`."""
    done = run("context", recorded, "--call", "1", "--render")
    assert done.out.startswith("<VM:CONTEXT>\nY (p4): ") and done.out.endswith("</VM:CONTEXT>\n")
    text = run("context", recorded, "--call", "1", "--render", "--json").json["text"]
    assert done.out == text + "\n" and done.err == ""


def test_context_says_derived(run: Run, planned: Path) -> None:
    """A derived call says so in JSON, above its table, above its messages, and beside its rendering."""
    assert run("context", planned, "--json").json["fidelity"] == "derived"
    assert "\nderived: this file doesn't contain" in run("context", planned).out
    assert "\nderived: this file doesn't contain" in run("context", planned, "--messages").out
    done = run("context", planned, "--render")
    assert done.err.startswith("derived: ") and "derived" not in done.out


def test_context_as_text(run: Run, recorded: Path) -> None:
    """In a pipe the context is plain: no escape sequence, one line a page, levels as words."""
    done = run("context", recorded, "--call", "4")
    assert "\x1b" not in done.out and done.err == ""
    head, fidelity, tokens, blank, titles, *rows = done.out.splitlines()
    assert head.startswith("s1, call 4 of turn 2, position ") and fidelity.startswith("recorded: ")
    assert "tokens estimated, the provider reported none · 7 pages" in tokens and blank == ""
    assert titles.split()[:4] == ["page", "role", "type", "level"] and len(rows) == 7
    assert "reference" in rows[5] and rows[5].endswith("Old output omitted") and "full" in rows[4]


def test_reported_tokens_stand_beside_estimated_ones(run: Run, recorded: Path) -> None:
    """Where the provider counted tokens, its number is given as the provider's."""
    done = run("context", recorded, "--call", "1")
    assert "7 tokens estimated, 12 reported by the provider" in done.out
    assert run("context", recorded, "--call", "1", "--json").json["tokens_reported"] == 12


def test_diff_shape(run: Run, recorded: Path) -> None:
    """`diff --json` has both bases and one entry for each page that entered, left or changed."""
    document = run("diff", recorded, "s1", "--calls", "3", "4", "--json").json
    assert list(document) == ["before", "after", "tokens_before", "tokens_after", "unchanged", "changes"]
    assert (document["before"]["call"], document["after"]["call"], document["unchanged"]) == (3, 4, 5)
    fields = ["change", "page", "message", "role", "type", "tokens_before", "tokens_after"]
    fields += ["level_before", "level_after", "text"]
    assert [list(change) for change in document["changes"]] == [fields, fields]
    kinds = {change["change"]: (change["level_before"], change["level_after"]) for change in document["changes"]}
    assert kinds == {"compressed": (0, 3), "entered": (None, 0)}
    turns = run("diff", recorded, "--turns", "1", "2", "--json").json
    ends = [turns[side]["position"] for side in ("before", "after")]
    assert run("diff", recorded, "--positions", *ends, "--json").json == turns


def test_diff_as_text(run: Run, recorded: Path) -> None:
    """Each changed page is a line with its sign; the same call twice changed nothing."""
    lines = run("diff", recorded, "--calls", "3", "4").out.splitlines()
    assert lines[0] == "s1 call 3 (turn 2) → call 4 (turn 2)" and "5 pages unchanged" in lines[1]
    signs = {line[0]: line for line in lines[4:]}
    assert set(signs) - {" "} == {"~", "+"}
    assert "full → reference" in signs["~"] and signs["+"].endswith("and now?")
    back = run("diff", recorded, "--calls", "4", "3").out.splitlines()
    assert {line[0] for line in back[4:]} - {" "} == {"~", "-"}
    assert run("diff", recorded, "--calls", "2", "2").out.splitlines()[-1] == "nothing changed"


def test_sessions_turns_and_calls(run: Run, two: Path) -> None:
    """Sessions, turns and calls answer as lists of objects under their own name."""
    sessions = run("sessions", two, "--json").json["sessions"]
    assert sorted(session["session"] for session in sessions) == ["s1", "s2"]
    first = next(session for session in sessions if session["session"] == "s1")
    assert (first["turns"], first["calls"], first["fidelity"]) == (2, 4, "recorded")
    turns = run("turns", two, "s1", "--json").json
    assert turns["session"] == "s1" and [(t["turn"], t["calls"]) for t in turns["turns"]] == [(1, 1), (2, 3)]
    calls = run("calls", two, "s2", "--json").json["calls"]
    assert [(c["call"], c["turn"], c["status"]) for c in calls][:2] == [(1, 1, "ok"), (2, 2, "ok")]
    assert (calls[0]["model"], calls[0]["tokens_reported"], calls[0]["stop"]) == ("gpt-4o", 12, "stop")
    assert len(run("calls", two, "s1").out.splitlines()) == 7
    assert run("turns", two, "s1").out.splitlines()[1].split()[:2] == ["1", "1"]
    assert [line.split()[0] for line in run("sessions", two, "--order-by", "name").out.splitlines()[1:3]] == [
        "s1",
        "s2",
    ]


def test_pages_in_and_out_of_context(run: Run, recorded: Path) -> None:
    """`pages` lists every page of the moment with tier and size, of one type where asked."""
    document = run("pages", recorded, "s1", "--call", "3", "--json").json
    assert list(document) == ["session", "pages"] and [list(page) for page in document["pages"]] == [SEEN] * 6
    assert {page["tier"] for page in document["pages"]} == {0}
    artifacts = run("pages", recorded, "--type", "artifact", "--json").json["pages"]
    assert [page["role"] for page in artifacts] == ["tool"]
    assert run("pages", recorded, "--type", "claim", "--json").json["pages"] == []
    assert run("pages", recorded).out.splitlines()[1].split()[:2] == ["p4", "L0"]


def test_page_is_exact(process: Process, recorded: Path) -> None:
    """In a pipe a page's content is written byte for byte, at level 0 the full one and else what was shown."""
    with vmstore.open(recorded, "r") as store:
        name = next(page.page for page in store.session("s1").pages() if page.role == "tool")
    assert process("page", recorded, name).stdout == OUTPUT.encode()
    assert process("page", recorded, f"vm://default/s1/{name}#level=3").stdout == b"Old output omitted"
    assert process("page", recorded, "s1", name, "--level", "3").stdout == b"Old output omitted"


def test_page_shape(run: Run, store_path: Path) -> None:
    """`page --json` has the content as text, or as base64 where it is none."""
    image = base64.b64encode(b"\x89PNG\xff\x00").decode()
    source = {"type": "base64", "media_type": "image/png", "data": image}
    parts = [{"type": "image", "source": source}, {"type": "text", "text": "?"}]
    request = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": parts}]}
    with vmstore.open(store_path) as store:
        store.record("s", request, None)
        pages = store.session("s").pages()
    jsons = [run("page", store_path, page.page, "--json").json for page in pages]
    assert all(list(document)[:4] == ["page", "level", "bytes", "content"] for document in jsons)
    assert jsons[0]["page"]["page"] == pages[0].page and jsons[0]["level"] == 0
    assert "?" in [document["content"] for document in jsons]
    whole = [document for document in jsons if document["content"] is None]
    assert [base64.b64decode(record["base64"]) for record in whole] == [b"\x89PNG\xff\x00"]


def test_history_shape(run: Run, recorded: Path) -> None:
    """`history` is the page's events in order, up to the moment asked."""
    name = run("pages", recorded, "--type", "artifact", "--json").json["pages"][0]["page"]
    document = run("history", recorded, name, "--json").json
    assert list(document) == ["session", "page", "events"] and document["page"] == name
    assert [event["event"] for event in document["events"]] == ["create", "link", "enter", "compress", "shown"]
    fields = ["position", "turn", "call", "event", "level", "version", "tokens", "method", "detail"]
    assert all(list(event) == fields for event in document["events"])
    before = run("history", recorded, f"{name}@call:3", "--json").json["events"]
    assert before == run("history", recorded, name, "--call", "3", "--json").json["events"] == document["events"][:3]
    lines = run("history", recorded, name).out.splitlines()
    assert lines[0].startswith(f"{name} of s1, tool artifact") and "shortened" in lines[5]
    assert "caused by p" in lines[3] and "reference, replaced, 5 tokens" in lines[5]


def test_sources_and_derived_shape(run: Run, planned: Path) -> None:
    """A walk's relations name source, kind and target, whichever way it goes; kinds and depth bound it."""
    pages = {page["hint"]: page["page"] for page in run("pages", planned, "--json").json["pages"]}
    up = run("sources", planned, "m4", "--json").json
    assert list(up) == ["session", "page", "relations"] and up["page"] == pages["m4"]
    assert all(list(r) == ["depth", "source", "kind", "target", "position", "text", "status"] for r in up["relations"])
    walked = {(r["depth"], r["kind"], r["target"]) for r in up["relations"]}
    assert {(1, "derives", pages["m3"]), (1, "supersedes", pages["m2"]), (2, "derives", pages["m1"])} <= walked
    near = run("sources", planned, "m4", "--depth", "1", "--kinds", "supersedes", "--json").json["relations"]
    assert [(r["source"], r["target"]) for r in near] == [(pages["m4"], pages["m2"])]
    down = run("derived", planned, "m1", "--kinds", "derives,supersedes", "--json").json["relations"]
    assert {(pages["m2"], pages["m1"]), (pages["m4"], pages["m2"])} <= {(r["source"], r["target"]) for r in down}


def test_lineage_as_a_tree(run: Run, planned: Path) -> None:
    """As text a walk is an indented tree with hints, relations in words and the beginning of each page."""
    pages = {page["hint"]: page["page"] for page in run("pages", planned, "--json").json["pages"]}
    lines = run("sources", planned, "m4", "--kinds", "supersedes,derives").out.splitlines()
    assert lines[0].startswith(f"{pages['m4']} m4 of plan, assistant claim")
    assert f"├─ supersedes {pages['m2']} m2  SQLite." in lines
    assert f"│  └─ made from {pages['m1']} m1  Which database?" in lines
    assert f"└─ made from {pages['m3']} m3  Too slow for us." in lines
    down = run("derived", planned, "m2").out.splitlines()
    assert down[1] == f"└─ superseded by {pages['m4']} m4  Postgres."
    assert run("sources", planned, "m1").out.splitlines()[1] == "nothing it was made from is known"


def test_tail_resumes_from_its_cursor(run: Run, two: Path) -> None:
    """Tails of a few mutations each, resumed by their cursors, give what one tail gives."""
    whole = run("tail", two, "--json").json
    assert list(whole) == ["entries", "cursor"]
    fields = ["cursor", "session", "position", "kind", "at", "logged_at", "mutation"]
    assert all(list(entry) == fields for entry in whole["entries"])
    assert len(whole["entries"]) == run("info", two, "--json").json["mutations"]
    pieces, cursor = [], None
    while True:
        piece = run("tail", two, "--limit", "10", *(["--after", cursor] if cursor else []), "--json").json
        if not piece["entries"]:
            break
        pieces += piece["entries"]
        cursor = piece["cursor"]
    assert pieces == whole["entries"] and piece["cursor"] == cursor == whole["cursor"]
    assert len(run("tail", two).out.splitlines()) == len(pieces)
    assert run("tail", two, "--limit", "0").out == ""


def test_the_session_may_be_left_out(run: Run, recorded: Path) -> None:
    """With one session in the store its name may be left out, and a reference in full names it too."""
    for words in (["context"], ["calls"], ["turns"], ["pages"], ["history", "p4"], ["page", "p4"], ["sources", "p4"]):
        named = [words[0], recorded, "s1", *words[1:], "--json"]
        assert run(words[0], recorded, *words[1:], "--json") == run(*named)
    vmstore.open(recorded).record("s2", {"model": "m", "messages": requests()[0]}, None)
    assert run("page", recorded, "vm://default/s1/p4").out == run("page", recorded, "s1", "p4").out


def test_lone_surrogates_are_printed(process: Process, store_path: Path) -> None:
    """Half a character, as models do emit, comes out escaped in text and exact in JSON."""
    text = "cut \ud83d here"
    with vmstore.open(store_path) as store:
        store.record("s", {"model": "m", "messages": [{"role": "user", "content": text}]}, answer("ok"))
    done = process("context", store_path, "--messages", "--json")
    assert json.loads(done.stdout)["messages"][0]["content"] == text
    for words in (["context"], ["context", "--messages"], ["context", "--render"], ["diff", "--calls", "1", "1"]):
        done = process(words[0], store_path, *words[1:])
        assert done.returncode == 0 and done.stderr == b"", done.stderr
    assert rb"cut \ud83d here" in process("context", store_path, "--messages").stdout


def test_an_output_without_unicode(process: Process, recorded: Path) -> None:
    """Where the output's encoding has no such character JSON stays valid, and tables use plain signs."""
    plain = process("context", recorded, "--call", "3", "--messages", "--json", PYTHONIOENCODING="ascii")
    assert json.loads(plain.stdout.decode("ascii"))["messages"] == requests()[2]
    table = process("context", recorded, "--call", "3", PYTHONIOENCODING="ascii")
    assert table.returncode == 0 and b"#" in table.stdout and b"\\u2588" not in table.stdout


def test_context_response_is_what_came_back(run: Run, tmp_path: Path) -> None:
    """`--response --json` gives back a response equal in every field; in words it says how it is known."""
    path = tmp_path / "answered.vms"
    fields = {"role": "assistant", "content": "Here.", "refusal": None, "annotations": []}
    body = {"id": "c", "choices": [{"index": 0, "message": fields, "finish_reason": "stop"}], "service_tier": None}
    with vmstore.open(path) as store:
        for response in (body, ConnectionError("reset"), [{"choices": [{"index": 0, "delta": {"content": "He"}}]}]):
            store.record("s", {"model": "m", "messages": [{"role": "user", "content": "Where?"}]}, response)
    document = run("context", path, "--call", "1", "--response", "--json").json
    assert document["body"] == body and document["fidelity"] == "recorded"
    assert "equal in every field" in run("context", path, "--call", "1", "--response").out
    assert "ConnectionError" in run("context", path, "--call", "2", "--response").out
    assert "derived: put together from the parts" in run("context", path, "--call", "3", "--response").out
