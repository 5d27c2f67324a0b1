"""The catalog's commands: pages chosen, their versions and company, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.decided import Live
from tests.shell.conftest import Run
from tests.store.kept import tell
from vmstore.namespace.results import to_json


@pytest.fixture
def kept(store_path: Path) -> Path:
    """A store with two sessions: one of ada's with tools and a summary, one of bob's."""
    with vmstore.open(store_path) as store:
        store.session("s", create=True, user="ada", agent="planner")
        tell(store)
        store.session("t", create=True, user="bob", agent="planner")
        tell(store, "t", calls=2)
    return store_path


def test_pages_are_chosen(run: Run, kept: Path) -> None:
    """Each choice, order, limit and cursor of the command is that of `Session.pages`."""
    asked = {
        ("--role", "tool"): {"role": "tool"},
        ("--modality", "structured"): {"modality": "structured"},
        ("--tier", "L0", "--level", "0"): {"tier": 0, "level": 0},
        ("--actor", "user", "--importance-min", "0.5"): {"actor": "user", "importance_min": 0.5},
        ("--order-by", "tokens", "--limit", "2"): {"order_by": "tokens", "limit": 2},
        ("--after", "p4", "--limit", "1"): {"after": "p4", "limit": 1},
        ("--dirty", "--call", "2"): {"dirty": True, "call": 2},
    }
    with vmstore.open(kept) as store:
        session = store.session("s")
        for words, value in asked.items():
            document = run("pages", kept, "s", *words, "--json").json
            assert document == {"session": "s", "pages": to_json(session.pages(**value))}  # type: ignore[arg-type]
        everybody = run("pages", kept, "--all", "--role", "user", "--json").json
        assert everybody == {"session": None, "pages": to_json(store.pages(role="user"))}
        theirs = run("pages", kept, "--user", "bob", "--agent", "planner", "--after", "t/p4", "--json").json
        assert theirs["pages"] == to_json(store.pages(user="bob", after="t/p4"))


def test_a_table_says_what_somebody_said(run: Run, kept: Path) -> None:
    """Importance and tags have columns where a page listed has any, and the session where many are asked."""
    titles = run("pages", kept, "s").out.splitlines()[0].split()
    assert "importance" not in titles and "tags" not in titles and "session" not in titles
    done = run("annotate", kept, "s", "p4", "--importance", "0.9", "--tag", "why", "--tag", "now")
    assert done.out == "p4 of s: importance 0.9, tagged now, why\n"
    lines = run("pages", kept, "--all", "--tag", "why").out.splitlines()
    assert lines[0].split()[:2] == ["session", "page"] and "importance" in lines[0] and "tags" in lines[0]
    assert len(lines) == 2 and lines[1].split()[:2] == ["s", "p4"] and "now why" in lines[1]
    none = run("pages", kept, "s", "--tag", "never", "--role", "user")
    assert none.out == "" and "no page with role user, tag never at that moment" in none.err
    both = run("pages", kept, "s", "--all")
    assert both.code == 1 and "ask many sessions" in both.err


def test_what_is_said_of_a_page(run: Run, kept: Path) -> None:
    """`annotate` says everything a page can hold, answers with the page, and takes nothing for granted."""
    texts = [
        "--status",
        "active",
        "--valid-from",
        "1970-01-01",
        "--valid-to",
        "1970-01-02",
        "--anchor",
        "user.name=Ada",
    ]
    document = run("annotate", kept, "s", "p4", *texts, "--json").json
    page = document["page"]
    assert document["session"] == "s" and (page["status"], page["anchors"]) == ("active", {"user.name": "Ada"})
    assert (page["valid_from"], page["valid_to"]) == (0, 86_400_000_000)
    words = run("annotate", kept, "s", "p4", "--anchor", "user.name=", "--tag", "x").out
    assert words == (
        "p4 of s: importance 0.5, tagged x, active, valid from 1970-01-01 00:00:00, valid to 1970-01-02 00:00:00\n"
    )
    assert "annotated" in run("history", kept, "s", "p4").out
    assert run("annotate", kept, "s", "p4", "--untag", "x", "--quiet").out == ""
    for wrong, why in (
        (["p4"], "nothing is given"),
        (["p4", "--anchor", "name"], "give NAME=VALUE"),
        (["p4", "--importance", "7"], "no share"),
        (["p4@call:1", "--tag", "x"], "holds from now on"),
        (["p4", "--valid-to", "soon"], "soon"),
    ):
        refused = run("annotate", kept, "s", *wrong)
        assert refused.code == 1 and why in refused.err and refused.out == ""


def test_versions_and_what_they_changed(run: Run, kept: Path) -> None:
    """`versions` lists every content with what it added, and with --delta what changed line by line."""
    with vmstore.open(kept) as store:
        session = store.session("s")
        (page,) = [page for page in session.pages() if len(session.lineage.versions(page.page)) > 1]
        text = to_json(session.lineage.versions(page.page, delta=True))
    assert run("versions", kept, "s", page.page, "--delta", "--json").json == {
        "session": "s",
        "page": page.page,
        "versions": text,
    }
    out = run("versions", kept, "s", page.page, "--delta").out
    assert all(word in out for word in ("version", "added", "size", text[1]["method"] or "full"))
    assert "\n--- " in out and "\n+" in out
    assert "\n--- " not in run("versions", kept, "s", page.page).out
    assert run("versions", kept, "s", f"{page.page}@call:2", "--json").json["versions"] == [
        {**item, "delta": None} for item in text[:1]
    ]


def test_affinity_and_faults(run: Run, kept: Path) -> None:
    """`affinity` lists the pages a page stood with, `faults` those that came back, each says where there are none."""
    with vmstore.open(kept) as store:
        session = store.session("s")
        near = to_json(session.lineage.affinity("p4", limit=3))
        faults = to_json(session.debug.faults())
        last = session.pages()[-1].page
    assert run("affinity", kept, "s", "p4", "--limit", "3", "--json").json["affinities"] == near
    assert near[0]["page"] in run("affinity", kept, "s", "p4").out.splitlines()[2]
    assert run("faults", kept, "s", "--json").json == {"session": "s", "faults": faults}
    assert f"no call saw {last} together" in run("affinity", kept, "s", last).err
    assert "no page of t came back" in run("faults", kept, "t").err


def test_a_fault_is_a_line(run: Run, store_path: Path) -> None:
    """A page that left and came back is a line with when, since when it was out and its tokens."""
    system, user = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "one"}
    with vmstore.open(store_path) as store:
        for messages in ([system, user], [user], [system, user]):
            store.record("s", {"model": "m", "messages": messages}, None)
        (fault,) = store.session("s").debug.faults()
    lines = run("faults", store_path).out.splitlines()
    assert lines[0].split() == ["turn", "call", "position", "page", "out", "since", "tokens"]
    assert lines[1].split() == [str(fault.turn), "3", str(fault.position), fault.page, str(fault.out_since), "3"]


def test_sessions_of_a_user(run: Run, kept: Path) -> None:
    """`sessions` lists those of a user or an agent, and says where there are none."""
    assert [session["session"] for session in run("sessions", kept, "--user", "ada", "--json").json["sessions"]] == [
        "s"
    ]
    planned = run("sessions", kept, "--agent", "planner", "--order-by", "name", "--json").json["sessions"]
    assert [record["session"] for record in planned] == ["s", "t"]
    assert "no session is like that" in run("sessions", kept, "--user", "eve").err


def test_decisions_are_shown(run: Run, store_path: Path) -> None:
    """Tables tell what was asked of a kernel, and a history what it decided and why."""
    with vmstore.open(store_path) as store:
        live = Live(store)
    asked = run("faults", store_path, "live")
    assert "user_requested_recall" in asked.out and "no_room" in asked.out
    done = run("history", store_path, "live", f"p{live.a}")
    for words in ("gave way", "60 tokens, pressure; score 40; lru@1", "asked for in vain", "came when asked for"):
        assert words in done.out
