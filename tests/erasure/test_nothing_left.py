"""Everything a user's agents ever wrote is planted somewhere, erased, and looked for in every byte of every file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.engine.stories import answer
from tests.erasure.found import found_in
from vmstore.erasure.erase import erase, plan_erasure
from vmstore.maintenance.archive import archive
from vmstore.retention.apply import keep, rules
from vmstore.search import index
from vmstore.search.folder import IndexFolder
from vmstore.search.place import analyzer
from vmstore.testing.simulate_live import SETTINGS, picture

WORDS = {
    name: f"{name}-zqx{number:02}-kestrel"
    for number, name in enumerate(
        (
            "content", "long", "hint", "tag", "anchor", "session", "user", "title", "agent", "request", "thought",
            "input", "claim", "fork", "short", "annotated", "mark", "system", "tool", "stop", "query", "meta", "live",
            "livesession", "liveclaim", "liveuser", "segment", "attached", "caption", "livetool", "argument",
        )
    )
}  # fmt: skip
IMAGE = picture(40) + b"image-zqx-kestrel"
PLANTED = [word.encode() for word in WORDS.values()] + [b"image-zqx-kestrel"]


def recorded(store: vmstore.Store) -> None:
    """A recorded session with all that a request can hold, shortened and changed later, and a fork that goes on."""
    user: dict[str, Any] = {"role": "user", "content": f"Mind {WORDS['content']} please. " + "More of it. " * 40}
    long = {"role": "user", "content": (WORDS["long"] + " and so on; ") * 4_000}
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": f'{{"a": "{WORDS["input"]}"}}'}}
    asked = {"role": "assistant", "content": None, "reasoning_content": WORDS["thought"], "tool_calls": [call]}
    fields = {"role": "tool", "tool_call_id": "c1", "content": f"It says {WORDS['tool']}. " + "Row upon row. " * 60}
    system = {"role": "system", "content": WORDS["system"]}
    request = {"model": "m", "metadata": {"note": WORDS["meta"]}, "messages": [system, user]}
    name, who = WORDS["session"], {"user": WORDS["user"], "title": WORDS["title"], "agent": WORDS["agent"]}
    store.session(name, create=True, **who)
    reply = {"choices": [{"message": asked, "finish_reason": WORDS["stop"]}]}
    store.record(name, request, reply, request_id=WORDS["request"])
    request["messages"] += [asked, fields, long]
    store.record(name, request, answer("Right."))
    request["messages"][3] = {**fields, "content": f"It says … {WORDS['short']}"}
    store.record(name, request, answer("Right."))
    session = store.session(name)
    page = session.pages()[1].page
    session.annotate(page, tags=[WORDS["tag"]], anchors={WORDS["annotated"]: WORDS["anchor"]})
    fork = session.fork(WORDS["fork"] + "-name")
    fork.record({"model": "m", "messages": [system, {"role": "user", "content": WORDS["fork"]}]}, answer("So."))


def lived(store: vmstore.Store) -> None:
    """A live session with files, claims, thoughts, tools, segments, searches, marks, in a prompt that is too small."""
    live = store.live_session(WORDS["livesession"], user=WORDS["user"], **{**SETTINGS, "l0_tokens_max": 1_200})
    live.user(f"Let's go with {WORDS['live']} for the store. " + "It is settled. " * 30)
    live.pack()
    asked = {"name": "read", "arguments": f'{{"path": "{WORDS["argument"]}"}}'}
    call = {"id": "c9", "type": "function", "function": asked}
    live.assistant(
        {"role": "assistant", "content": "Yes.", "reasoning_content": WORDS["liveuser"], "tool_calls": [call]}
    )
    live.tool("c9", f"{WORDS['livetool']} " * 300)
    live.claim(f"It is {WORDS['liveclaim']}.", name=WORDS["claim"])
    live.attach(IMAGE, "image/png", name=WORDS["attached"], words=WORDS["caption"])
    live.mark(WORDS["mark"])
    live.pack()
    live.search(WORDS["query"])
    live.segment(WORDS["segment"])
    for n in range(12):
        live.user(f"And {n}? " * 40)
        live.pack()
        live.assistant(f"{n} it is, says {WORDS['live']}. " * 20)


def hinted(store: vmstore.Store, folder: Path) -> None:
    """An imported file whose pages have names."""
    file = folder / "said.jsonl"
    line = f'{{"role": "user", "content": "named", "vm": {{"hint": "{WORDS["hint"]}"}}}}'
    file.write_text(line + "\n")
    store.import_file(file, session=WORDS["hint"] + "-session")
    file.unlink()


def indexed(path: Path) -> set[str]:
    """Which of two planted texts the text index knows, whose files hold words in a form of their own."""
    folder = path / "default" / "text"
    if not folder.exists():
        return set()
    actual_folder = IndexFolder(folder)
    segments, wrong = actual_folder.segments(actual_folder.mark())
    assert wrong is None
    terms = {term.decode() for segment in segments for term in segment.every_term()}
    return {name for name in ("live", "content") if not terms.isdisjoint(analyzer().terms(WORDS[name])[1:2])}


def granted(path: Path) -> None:
    """What the namespace's own session says of a user: a grant to them, one by them, a rule about them."""
    with vmstore.open(path) as store:
        vmstore.share(store, to=f"user:{WORDS['user']}", may="read,write,grant")
        keep(store, "90d", user=WORDS["user"], name="theirs")
        keep(store, "9y", name="everybody's")


@pytest.mark.parametrize("resting", [False, True])
def test_nothing_of_a_user_is_left(tmp_path: Path, resting: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that was planted is found before, packed, archived or not; then no file has any of it, and all is sound."""
    monkeypatch.setattr(index, "WRITTEN", 0)
    folder = tmp_path / "kept"
    folder.mkdir()
    path = folder / "a.vms"
    with vmstore.open(path) as other, vmstore.open(path, "r") as reader:
        store = vmstore.open(path)
        store.record("another", {"model": "m", "messages": [{"role": "user", "content": "I stay."}]}, answer("Good."))
        recorded(store)
        store.admin.compact()
        lived(store)
        hinted(store, tmp_path)
        granted(path)
        for case in (store, other, reader):
            case.search(WORDS["content"])
            case.sessions()
        store.admin.rebuild("columns")
        if resting:
            done = archive(store, [WORDS["session"], WORDS["fork"] + "-name"], grace_s=0)
            assert [session.session for session in done.sessions] == [WORDS["session"], WORDS["fork"] + "-name"]
        assert {name for name, files in found_in(folder, PLANTED).items() if files} == set(PLANTED)
        fork = plan_erasure(store, user=WORDS["user"])
        assert fork.cells > 60 and len([session for session in fork.sessions if session.whole]) == 3
        assert indexed(path) == {"live", "content"}
        erase(store, user=WORDS["user"])
        assert indexed(path) == set()
        erase(store, session=WORDS["hint"] + "-session")
        assert found_in(folder, PLANTED) == {}
        assert [rule.name for rule in rules(store)] == ["everybody's"]
        for case in (store, other, reader):
            assert case.verify().ok
            assert next(info.session for info in case.sessions()) == "another"
            assert case.search(WORDS["content"]) == []
            assert indexed(path) == set()
            assert case.session("another").context().request()["messages"][0]["content"] == "I stay."
        assert found_in(folder, PLANTED) == {}
        other.record("another", {"model": "m", "messages": [{"role": "user", "content": "On."}]}, answer("Good."))
        store.admin.compact()
        store.admin.rebuild()
        assert store.verify().ok
        store.close()
        assert found_in(folder, PLANTED) == {}
    assert found_in(folder, PLANTED) == {}
