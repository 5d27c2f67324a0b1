"""What the debugger answers, on a real server."""

from __future__ import annotations

import base64
import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import vmstore
from tests.debug.conftest import DEMO, Serve, Served
from tests.replay.lives import live
from vmstore.debug.contents import CUT_BYTES
from vmstore.debug.request import request
from vmstore.debug.session_data import film
from vmstore.shell.main import main
from vmstore.store.store import Store

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def say(store: Store, name: str, content: Any) -> None:
    """Records a call of one message."""
    store.record(name, {"model": "m", "messages": [{"role": "user", "content": content}]})


# ---- sessions and films


def test_the_store_is_told(demo: Served) -> None:
    """The page learns which sessions there are, with their counts and when they began and ended."""
    content = demo.read("store")
    assert (content["vmstore"], content["store"], content["namespace"]) == (vmstore.__version__, "agent.vms", "default")
    (session,) = content["sessions"]
    info = demo.store.session(DEMO).info()
    assert (session["session"], session["turns"], session["calls"], session["position"]) == (
        DEMO,
        220,
        525,
        info.position,
    )
    assert session["first_at"] == info.opened_at < session["last_at"] and session["model"] and not session["hidden"]
    assert session["budget"] is session["policy"] is session["parent"] is None


def test_a_fork_names_its_parent(small: Store, serve: Serve) -> None:
    """The parent of a fork is told with the position and the call it begins after, by the store and by its film."""
    small.session("s1").fork("s2", call=1)
    served = serve(small)
    forks = {session["session"]: session["parent"] for session in served.read("store")["sessions"]}
    assert forks == {"s1": None, "s2": {"session": "s1", "position": 5, "call": 1}}
    assert served.read("film", session="s2")["parent"] == forks["s2"]


def test_a_film_is_served(demo: Served) -> None:
    """The film comes as the columns it was made of, packed where the browser can read that, and again the same."""
    plain = demo.get("film", session=DEMO)
    packed = demo.ask(f"/api/film?session={DEMO}", headers={"Accept-Encoding": "br, gzip"})
    assert packed.headers["content-encoding"] == "gzip" and len(packed.body) * 3 < len(plain.body)
    assert gzip.decompress(packed.body) == plain.body == demo.get("film").body
    made = film(demo.store, demo.store.session(DEMO))
    assert plain.json["stays"]["from"] == made.stays.begin and plain.json["words"] == made.words


def test_a_film_grows_with_its_session(small: Store, serve: Serve) -> None:
    """A film is kept while its session stands still, and rebuilt when that went on."""
    served = serve(small)
    assert len(served.read("film")["calls"]["call"]) == 1
    say(small, "s1", "more")
    assert len(served.read("film")["calls"]["call"]) == 2


# ---- contents


def test_texts_are_told_by_position(demo: Served) -> None:
    """Every content a film names can be asked for, and is what the session has."""
    session = demo.store.session(DEMO)
    made = film(demo.store, session)
    wanted = sorted(set(made.stays.content))[:300]
    texts = demo.read("texts", session=DEMO, at=",".join(map(str, wanted)))["texts"]
    assert list(texts) == list(map(str, wanted))
    first = {made.stays.content[n]: made.pages.page[made.stays.page[n]] for n in range(len(made.stays.page))}
    for position in wanted:
        text, page = texts[str(position)], first[position]
        if "missing" in text:
            assert text["text"] == "" and "opaque" not in text
        elif page == f"p{position}":
            assert text["text"].encode() == session.content(page)


def test_a_long_text_is_cut_and_can_be_had_whole(serve: Serve) -> None:
    """A page of 5 MB gives its first 64 KiB and says so, never in the middle of a character, and all of it if asked."""
    with vmstore.memory_store() as store:
        long = "ü" * (5 << 19) + "!"
        say(store, "s1", "x" + long)
        served = serve(store)
        (position,) = served.read("film")["stays"]["content"]
        cut = served.read("texts", at=position)["texts"][str(position)]
        assert cut["cut"] and cut["bytes"] == (5 << 20) + 2
        assert cut["text"] == "x" + "ü" * ((CUT_BYTES - 1) // 2)
        whole = served.read("texts", at=position, whole=1)["texts"][str(position)]
        assert whole == {"text": "x" + long, "bytes": (5 << 20) + 2, "cut": False}


def test_hostile_content_is_only_ever_json(serve: Serve) -> None:
    """Script in contents, names and hints comes back as text in JSON that no browser may take for a page."""
    with vmstore.memory_store() as store:
        say(store, HOSTILE, HOSTILE)
        served = serve(store)
        for path, item in (
            ("store", {}),
            ("film", {}),
            ("texts", {"at": 4}),
            ("request", {"call": 1}),
            ("vmql", {"q": "CONTEXT AT CALL 1 RENDER"}),
            ("film", {"session": "<script>alert(3)</script>"}),
        ):
            answer = served.get(path, **item)
            assert answer.headers["content-type"] == "application/json"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "alert" in json.dumps(answer.json)


def test_pictures_come_as_pictures_and_nothing_else_does(serve: Serve) -> None:
    """A PNG is a data URL; an SVG that calls itself an image is shown as no picture."""
    with vmstore.memory_store() as store:
        svg = base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>").decode()
        for name, url in (
            ("png", f"data:image/png;base64,{base64.b64encode(PNG).decode()}"),
            ("svg", f"data:image/svg+xml;base64,{svg}"),
        ):
            say(store, name, [{"type": "image_url", "image_url": {"url": url}}])
        served = serve(store)
        texts = {}
        for name in ("png", "svg"):
            position = served.read("film", session=name)["stays"]["content"][0]
            texts[name] = served.read("texts", session=name, at=position)["texts"][str(position)]
        assert texts["png"]["text"].startswith("data:image/png;base64,iVBOR")
        assert not texts["svg"]["text"].startswith("data:") and "alert" not in texts["svg"]["text"]


def test_a_lone_surrogate_does_not_break_an_answer(serve: Serve) -> None:
    """What no UTF-8 holds is told as JSON's own escape in a request, and replaced in a text to be shown."""
    with vmstore.memory_store() as store:
        say(store, "s1", "a\ud800b")
        served = serve(store)
        assert served.read("request", call=1)["request"]["messages"][0]["content"] == "a\ud800b"
        assert served.read("texts", at=4)["texts"]["4"]["text"].startswith("a")


def test_the_request_of_a_call(demo: Served, small: Store, serve: Serve) -> None:
    """A recorded request is equal to what was sent; of a derived one its messages are told, and why."""
    content = serve(small).read("request", call=1)
    assert content["request"] == {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    assert content["fidelity"] == "recorded"
    derived = demo.read("request", session=DEMO, call=40, render=1)
    assert derived["request"] is None and derived["why"].startswith("derived")
    assert derived["messages"] == demo.store.session(DEMO).wire.messages(call=40)
    assert derived["text"] == demo.store.session(DEMO).context(call=40).text()


# ---- questions


def test_vmql_is_answered_as_the_command_does(demo_path: Any, demo: Served, capsys: pytest.CaptureFixture[str]) -> None:
    """Basis, columns and rows are those that `vmql --json` prints."""
    from vmstore.shell.vmql.main import main as vmql

    for text in (
        "PAGES page, tokens, tier AS OF TURN 42 WHERE tier = L0 LIMIT 5",
        "WHY claim_storage_4 IN CONTEXT AT CALL 317",
        "DIFF CONTEXT CALL 40 TO CALL 41",
        "SESSIONS",
    ):
        assert vmql([str(demo_path), "--json", "-c", text]) == 0
        right = json.loads(capsys.readouterr().out)
        content = demo.read("vmql", session=DEMO, q=text)
        assert (content["basis"], content["columns"], content["rows"]) == (
            right["basis"],
            right["columns"],
            right["rows"],
        )
        assert content.get("next") == right.get("next")


def test_a_long_answer_is_limited(demo: Served) -> None:
    """A thousand rows are told, that there are more is said, and another limit can be asked for."""
    content = demo.read("vmql", session=DEMO, q="PAGES page")
    assert (len(content["rows"]), content["limited"]) == (1_000, 1_000)
    assert len(demo.read("vmql", session=DEMO, q="PAGES page", limit=5_000)["rows"]) == 1_296
    assert "limited" not in demo.read("vmql", session=DEMO, q="PAGES page LIMIT 7")


def test_a_wrong_question_is_pointed_at(demo: Served) -> None:
    """An error of VMQL has its place, what was meant, and the line with the caret under it."""
    vmql = demo.get("vmql", session=DEMO, q="PAGES tokns")
    error = vmql.error
    assert (vmql.status, error["start"], error["end"], error["code"]) == (400, 6, 11, "unknown-column")
    assert error["hint"] == error["remedy"] == "did you mean tokens?" and error["pointed"].endswith("^^^^^")


@pytest.mark.parametrize(
    "text",
    ["FORK AT TURN 2 AS 'x'", "WATCH MUTATIONS", "REPLAY WITH budget = 9000, keep = 'x'", "SET limit = 3"],
)
def test_what_writes_or_never_ends_is_refused(demo: Served, text: str) -> None:
    """Nothing that is asked makes a session, waits for ever or sets anything."""
    before = demo.store.admin.log.ordinal
    vmql = demo.get("vmql", session=DEMO, q=text)
    assert vmql.status == 400 and vmql.error["remedy"]
    assert demo.store.admin.log.ordinal == before


def test_a_question_is_completed(demo: Served) -> None:
    """Columns, keywords and the store's own names are offered where they fit, up to the cursor."""
    candidates = demo.read("complete", session=DEMO, q="PAGES tok", at=9)["candidates"]
    assert (candidates[0]["text"], candidates[0]["replaces"]) == ("tokens", 3)
    candidates = demo.read("complete", q="PAGES IN SESSION plan")["candidates"]
    assert DEMO in [candidate["text"].strip("'") for candidate in candidates]
    assert demo.read("complete", q="NOTHING of this")["candidates"] == []


# ---- what-ifs


def test_a_what_if_is_a_film_of_its_own(serve: Serve) -> None:
    """Another policy or budget gives the film that `replay --keep` would keep, and the store is not touched."""
    with vmstore.memory_store() as store, vmstore.memory_store() as other:
        for case in (store, other):
            live(case, "s", turns=8)
        served = serve(store)
        before = store.admin.log.ordinal
        actual_content = served.read("film", session="s", policy="lru", budget=5_000)
        assert store.admin.log.ordinal == before and [info.session for info in store.sessions()] == ["s"]
        assert actual_content["whatif"] == {"policy": "lru", "budget": 5_000, "of": "s"}
        assert (actual_content["budget"], actual_content["policy"]) == (5_000, "lru")
        other.session("s").debug.replay(policy="lru", budget=5_000, keep="kept")
        right = json.loads(json.dumps(actual_content["stays"]))
        kept = film(other, other.session("kept"))
        assert (right["page"], right["from"], right["to"]) == (kept.stays.page, kept.stays.begin, kept.stays.end)
        plain = served.read("film", session="s")
        assert plain["stays"] != actual_content["stays"] and plain["whatif"] is None
        content = actual_content["stays"]["content"][-1]
        assert served.read("texts", session="s", policy="lru", budget=5_000, at=content)["texts"]
        assert served.read("vmql", session="s", policy="lru", budget=5_000, q="CALLS count(*)")["rows"]


def test_a_session_without_a_budget_is_said_again(demo: Served) -> None:
    """A recorded session is driven through a memory of the budget told; without one that is said."""
    refused = demo.get("film", session=DEMO, policy="lru")
    assert refused.status == 400 and "give one, like budget=16000" in refused.error["remedy"]
    content = demo.read("film", session=DEMO, policy="lru", budget=12_000)
    assert content["budget"] == 12_000 and len(content["calls"]["call"]) > 100
    assert {"evict", "fault_in"} & {content["words"][kind] for kind in content["events"]["kind"]}
    assert [info.session for info in demo.store.sessions()] == [DEMO]


def test_a_sweep_is_what_the_command_prints(serve: Serve, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Every policy with every budget has the numbers of `vmstore replay --json`."""
    with vmstore.open(tmp_path / "agent.vms") as store:
        live(store, "s", turns=6)
        content = serve(store).read("sweep", session="s", policies="lru,s3fifo", budgets="5000,20000")
    words = [
        "replay",
        str(tmp_path / "agent.vms"),
        "s",
        "--policy",
        "lru",
        "--policy",
        "s3fifo",
        "--budget",
        "5000,20000",
    ]
    assert main([*words, "--json"]) == 0
    assert content == json.loads(capsys.readouterr().out)
    assert [run["optimum"] is not None for run in content["runs"]] == [True] * 4


# ---- what cannot be


@pytest.mark.parametrize(
    ("path", "fields", "status", "words"),
    [
        ("film", {"session": "planing-220"}, 404, "the nearest is 'planning-220'"),
        ("film", {"session": DEMO, "policy": "lruu", "budget": 9000}, 400, "lru"),
        ("film", {"session": DEMO, "budget": "many"}, 400, "budget=17"),
        ("film", {"session": DEMO, "budget": 0}, 400, "from 1 up"),
        ("texts", {"session": DEMO}, 400, "at=4,17"),
        ("texts", {"session": DEMO, "at": "999999"}, 404, "the nearest before it is at position"),
        ("texts", {"session": DEMO, "at": "1"}, 404, "none was made before it"),
        ("texts", {"session": DEMO, "at": "4,x"}, 400, "at=17"),
        ("texts", {"session": DEMO, "at": "4", "whole": "yes"}, 400, "whole=1"),
        ("texts", {"session": DEMO, "at": ",".join(["4"] * 5_001)}, 400, "ask in parts"),
        ("request", {"session": DEMO}, 400, "call=3"),
        ("request", {"session": DEMO, "call": 526}, 404, "the nearest is call 525"),
        ("request", {"session": DEMO, "call": 0}, 404, "the nearest is call 1"),
        ("vmql", {"session": DEMO}, 400, "q=PAGES LIMIT 5"),
        ("sweep", {"session": DEMO}, 400, "policies=lru"),
        ("sweep", {"session": DEMO, "policies": "lru"}, 400, "give one, like budget=16000"),
        ("nothing", {}, 404, "the page is at /"),
    ],
)
def test_what_is_not_there_is_said(demo: Served, path: str, fields: dict[str, Any], status: int, words: str) -> None:
    """Whatever is missing or wrong in an address has its status, a reason and what would do instead."""
    response = demo.get(path, **fields)
    assert response.status == status, response.body
    assert words in f"{response.error['reason']}; {response.error['remedy']}"


def test_an_empty_store_and_one_of_many_say_what_to_do(serve: Serve) -> None:
    """Without a session there is none to ask of; with two one must be named, except of what is asked of all."""
    with vmstore.memory_store() as store:
        served = serve(store)
        assert served.read("store")["sessions"] == []
        assert served.get("film").status == 404 and "import one" in served.get("film").error["remedy"]
        for name in ("s1", "s2"):
            say(store, name, "hello")
        assert served.get("film").error["remedy"] == "name one: session=s1"
        assert len(served.read("vmql", q="SESSIONS session")["rows"]) == 2


def test_a_session_without_a_call_answers(serve: Serve) -> None:
    """Of a session in which no call was made the film is empty, its store row full, and a request is not there."""
    with vmstore.memory_store() as store:
        store.live_session("s", l0_tokens_max=6_000, system="Be kind.")
        served = serve(store)
        (session,) = served.read("store")["sessions"]
        assert (session["calls"], session["budget"]) == (0, 6_000)
        content = served.read("film")
        assert content["calls"]["call"] == content["stays"]["page"] == [] and len(content["pages"]["page"]) == 1
        number = content["pages"]["number"][0]
        assert served.read("texts", at=number)["texts"][str(number)]["text"] == "Be kind."
        refused = served.get("request", call=1)
        assert refused.status == 404 and "the session has no call yet" in refused.error["reason"]


def test_a_fork_has_what_ifs_too(serve: Serve) -> None:
    """What a fork would have been begins with the past it shares, and other sessions do not come into it."""
    with vmstore.memory_store() as store:
        live(store, "s", turns=8).fork("t", turn=5)
        live(store, "other", turns=2)
        served = serve(store)
        content = served.read("film", session="t", budget=4_500)
        plain = served.read("film", session="t")
        assert content["turns"] == plain["turns"] or len(content["turns"]["turn"]) == len(plain["turns"]["turn"]) == 5
        assert content["budget"] == 4_500 and plain["budget"] != 4_500
        sessions = served.read("vmql", session="t", budget=4_500, q="SESSIONS session")["rows"]
        assert "other" not in [row["session"] for row in sessions]


def test_many_ask_at_once(demo: Served) -> None:
    """Answers to questions asked at the same time are those that each would have had alone."""
    asked = [("film", {}), ("texts", {"at": "10,27"}), ("request", {"call": 40}), ("store", {})] * 4
    alone = [demo.get(path, **item).body for path, item in asked]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda row: demo.get(row[0], **row[1]).body, asked))
    assert together == alone


def test_a_request_is_answered_with_what_came_back() -> None:
    """The address of a call's request also has its response, equal in every field, or says why there is none."""
    fields = {"role": "assistant", "content": "Here.", "refusal": None}
    body = {"id": "c", "choices": [{"index": 0, "message": fields, "finish_reason": "stop"}]}
    with vmstore.memory_store() as store:
        store.record("s", {"model": "m", "messages": [{"role": "user", "content": "Where?"}]}, body)
        store.admin.record_gap("s", "it was full")
        assert request(store.session("s"), 1)["response"]["body"] == body
        assert "could not be recorded" in request(store.session("s"), 2)["response"]["why"]


# ---- figures


def test_figures_are_served_for_prometheus(serve: Serve) -> None:
    """Counts of the store, by status and direction, in the text that Prometheus scrapes; of an empty one too."""
    with vmstore.memory_store() as store:
        served = serve(store)
        empty = served.ask("/metrics")
        assert (empty.status, b"vmstore_sessions 0\n" in empty.body) == (200, True)
        answer = {"choices": [{"message": {"role": "assistant", "content": "y"}, "finish_reason": "stop"}]}
        say(store, "a", "x")
        store.record(
            "b",
            {"messages": [{"role": "user", "content": "z"}]},
            answer | {"usage": {"prompt_tokens": 5, "completion_tokens": 2}},
        )
        lines = served.ask("/metrics").body.decode().splitlines()
        assert "# TYPE vmstore_calls_total counter" in lines
        assert {'vmstore_calls_total{status="ok"} 1', 'vmstore_calls_total{status="aborted"} 1'} <= set(lines)
        assert {'vmstore_tokens_total{direction="in"} 5', 'vmstore_tokens_total{direction="out"} 2'} <= set(lines)
