"""What a server answers: statements within limits, exports, probes, and figures for Prometheus."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest

import vmstore
from tests.serve.conftest import Serve, Team
from vmstore.core.text.prometheus import Buckets, PrometheusFigure, PrometheusHistogram, exposition, label
from vmstore.debug import overview
from vmstore.errors import StoreError
from vmstore.serve import namespaces


def figures(team: Team, token: str | None) -> dict[str, float]:
    """The figures by name and labels; every line must be one of the format."""
    answer = team.ask("/metrics", token)
    assert answer.status == 200 and answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    values = {}
    for line in answer.body.decode().splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP|TYPE) [a-z_]+ .+", line), line
            continue
        name, value = line.rsplit(" ", 1)
        assert re.fullmatch(r'[a-z_]+({([a-z]+="([^"\\\n]|\\.)*",?)*})?', name), line
        assert name not in values, line
        values[name] = float(value)
    return values


# ---- statements


def test_a_statement_is_answered_with_its_values(team: Team) -> None:
    """A statement by POST takes the values of its names, and answers as the debugger does."""
    token = team.token("ada", "unmasked")
    answer = team.query("team-a", token, query="PAGES page, role WHERE role = $who", params={"who": "user"})
    assert answer.status == 200 and answer.headers["content-type"] == "application/json"
    assert answer.json["rows"] == [{"page": "p4", "role": "user"}]
    same = team.ask("/n/team-a/api/vmql?q=PAGES+page,+role+WHERE+role+%3D+user", token)
    assert same.json["rows"] == answer.json["rows"]
    named = team.query("team-a", token, query="CALLS call", session="of-team-a")
    assert named.json["rows"] == [{"call": 1}]


def test_a_statement_stays_within_its_limits(team: Team) -> None:
    """Rows, seconds and bytes are what was asked for and never more than the server allows; each limit has its code."""
    with vmstore.open(_store(team), namespace="team-a") as store:
        for number in range(300):
            store.record("long", {"messages": [{"role": "user", "content": f"word {number} " * 20}]}, None)
    token = team.token("ada", "unmasked")
    few = team.query("team-a", token, query="PAGES page ACROSS SESSIONS", rows=7)
    assert len(few.json["rows"]) == 7 and few.json["limited"] == 7
    whole = team.query("team-a", token, query="PAGES page ACROSS SESSIONS", rows=10_000)
    assert len(whole.json["rows"]) == 302 and "limited" not in whole.json
    small = team.query("team-a", token, query="PAGES ACROSS SESSIONS ORDER BY line", rows=10_000, memory=100_000)
    assert small.status == 400 and small.json["error"]["code"] == "too-large"


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"query": 5}', b'{"query": "PAGES", "rows": 0}', b'{"query": "PAGES", "more": 1}', b"\xff"],
)
def test_what_is_no_statement_is_refused(team: Team, body: bytes) -> None:
    """A body that holds no question is refused with an example, and one of another type before it is read."""
    token = team.token("ada")
    answer = team.ask("/n/team-a/query", token, method="POST", body=body, Content_Type="application/json")
    assert answer.status == 400 and "SESSIONS" in answer.json["error"]["remedy"]
    plain = team.ask("/n/team-a/query", token, method="POST", body=b'{"query": "PAGES"}', Content_Type="text/plain")
    assert plain.status == 415


def test_nothing_is_written_by_asking(team: Team) -> None:
    """FORK and WATCH are refused, a body that is too large too, and the log stands where it stood."""
    token = team.token("ada", "unmasked")
    before = figures(team, token)
    for statement in ("FORK SESSION 'of-team-a' AT CALL 1 AS 'x'", "WATCH MUTATIONS", "EXPLAIN WATCH MUTATIONS"):
        assert team.query("team-a", token, query=statement).json["error"]["code"] == "not-here"
    large = team.query("team-a", token, query="PAGES " + " " * (2 << 20))
    assert large.status == 413
    wrong = team.query("team-a", token, query="PAGES tokns")
    assert wrong.status == 400 and "tokens" in wrong.json["error"]["hint"]
    for namespace in ("team-a", "team-b"):
        name = f'vmstore_log_ordinal{{namespace="{namespace}"}}'
        assert figures(team, token)[name] == before[name] > 0


# ---- exports


def test_sessions_are_sent_as_files(team: Team, tmp_path: Path) -> None:
    """A bundle that was sent is taken in elsewhere with its pages, and tables are no stream."""
    token = team.token("ada", "unmasked")
    sent = team.ask("/n/team-a/export?session=of-team-a", token)
    assert sent.status == 200 and sent.headers["content-disposition"].startswith("attachment")
    (tmp_path / "sent.jsonl").write_bytes(sent.body)
    with vmstore.memory_store() as store:
        store.import_file(tmp_path / "sent.jsonl")
        assert [info.session for info in store.sessions()] == ["of-team-a"]
    assert json.loads(team.ask("/n/team-a/export?format=chat", token).body)["messages"]
    assert team.ask("/n/team-a/export?format=sqlite", token).json["error"]["code"] == "no-stream"
    assert team.ask("/n/team-a/export?session=none", token).status == 404


# ---- probes


def test_probes_need_no_token_and_tell_nothing(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe by any name is answered; where the store does not answer it is 503, its reason for who has a token."""
    for target in ("/health", "/ready"):
        assert team.ask(target, Host="10.0.0.7:80").status == 200
    monkeypatch.setattr(
        namespaces.Namespaces, "check", lambda self: (_ for _ in ()).throw(StoreError("db-7 is away", code="no-store"))
    )
    assert team.ask("/health").status == 200
    blind, named = team.ask("/ready"), team.ask("/ready", team.token("ada", "metrics"))
    assert blind.status == named.status == 503
    assert blind.json["error"]["code"] == named.json["error"]["code"] == "no-store"
    assert b"db-7" not in blind.body and b"db-7" in named.body


def test_a_store_that_is_gone_is_not_ready(team: Team) -> None:
    """Where the folder of the store was moved away it is 503, and 200 again once it is back."""
    path = _store(team)
    path.rename(path.with_name("away"))
    assert team.ask("/ready").status == 503
    path.with_name("away").rename(path)
    assert team.ask("/ready").status == 200


def test_a_store_that_hangs_is_not_ready(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the store does not answer in time it is 503, and probes that follow do not wait each in a thread."""
    begun, free = [], threading.Event()

    def check(self: object) -> None:
        begun.append(1)
        free.wait(30)

    monkeypatch.setattr(namespaces.Namespaces, "check", check)
    monkeypatch.setattr("vmstore.serve.app.READY_S", 0.05)
    answers = [team.ask("/ready") for _ in range(5)]
    free.set()
    assert {(answer.status, answer.json["error"]["code"]) for answer in answers} == {(503, "slow")}
    assert len(begun) == 1


# ---- figures


def test_figures_are_those_of_the_store(team: Team) -> None:
    """Figures stand by namespace, follow what is recorded elsewhere, and say how far views are behind."""
    token = team.token("prom", "metrics")
    before = figures(team, token)
    assert before['vmstore_sessions{namespace="team-a"}'] == 1
    with vmstore.open(_store(team), namespace="team-a") as store:
        for words in ("and more", "and more than that"):
            store.record("more", {"messages": [{"role": "user", "content": words}]}, None)
        after = figures(team, token)
    assert after['vmstore_sessions{namespace="team-a"}'] == 2
    assert after['vmstore_sessions{namespace="team-b"}'] == 1
    grown = after['vmstore_log_ordinal{namespace="team-a"}'] - before['vmstore_log_ordinal{namespace="team-a"}']
    assert 0 < after['vmstore_fold_lag{namespace="team-a"}'] <= grown
    assert figures(team, token)['vmstore_fold_lag{namespace="team-a"}'] == 0
    assert after['vmstore_bytes{namespace="team-a",part="log"}'] > 0
    assert after["process_resident_memory_bytes"] > 1 << 20


def test_questions_are_counted_with_their_seconds(team: Team) -> None:
    """Each question is counted by namespace and kind, all in the bucket without a bound, and errors by their code."""
    token = team.token("ada", "unmasked")
    for _ in range(3):
        team.query("team-a", token, query="SESSIONS")
    team.query("team-a", token, query="PAGES tokns")
    team.ask("/n/team-a/api/film", token)
    team.ask("/n/team-a/api/film?session=none", token)
    team.ask("/namespaces")
    values = figures(team, token)
    labels = 'namespace="team-a",kind="query"'
    assert values[f"vmstore_serve_seconds_count{{{labels}}}"] == 4
    assert values[f'vmstore_serve_seconds_bucket{{{labels},le="+Inf"}}'] == 4
    assert values[f"vmstore_serve_seconds_sum{{{labels}}}"] > 0
    assert values['vmstore_serve_seconds_count{namespace="team-a",kind="film"}'] == 2
    errors = {name: value for name, value in values.items() if name.startswith("vmstore_serve_errors_total")}
    assert errors['vmstore_serve_errors_total{namespace="",code="http-401"}'] == 1
    assert sum(value for name, value in errors.items() if 'namespace="team-a"' in name) == 2


def test_figures_are_open_where_that_was_said(serve: Serve, path: Path, team: Team) -> None:
    """Without a token figures are answered only by a server that was told so, and nothing else is."""
    opened = serve(path, open_metrics=True)
    assert figures(opened, None)['vmstore_sessions{namespace="team-b"}'] == 1
    assert opened.ask("/namespaces").status == 401 and team.ask("/metrics").status == 401
    limited = opened.token("b", "metrics", "team-b")
    assert not any("team-a" in name for name in figures(opened, limited))


def test_a_log_that_stands_still_is_not_counted_again(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scrapes of a store that did not grow ask its views nothing."""
    token = team.token("prom", "metrics")
    figures(team, token)
    counted: list[object] = []
    whole = overview.figures
    monkeypatch.setattr(namespaces, "figures", lambda store: counted.append(store) or whole(store))
    for _ in range(3):
        figures(team, token)
    assert counted == []
    with vmstore.open(_store(team), namespace="team-b") as store:
        store.record("more", {"messages": [{"role": "user", "content": "and more"}]}, None)
    figures(team, token)
    assert len(counted) == 1


def test_the_bytes_of_the_text_format() -> None:
    """Counters, gauges and histograms are written as the format has them, labels escaped."""
    buckets = Buckets((0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 7.0):
        buckets.add(seconds)
    text = exposition(
        [PrometheusFigure("a", True, "all", {label("n", 'q"\\\n'): 2})],
        [PrometheusHistogram("s", "seconds", {label("k", "x"): buckets})],
    )
    assert text == (
        '# HELP a_total all\n# TYPE a_total counter\na_total{n="q\\"\\\\\\n"} 2\n'
        "# HELP s seconds\n# TYPE s histogram\n"
        's_bucket{k="x",le="0.1"} 2\ns_bucket{k="x",le="1.0"} 3\ns_bucket{k="x",le="+Inf"} 4\n'
        's_sum{k="x"} 7.65\ns_count{k="x"} 4\n'
    )


def _store(team: Team) -> Path:
    """The folder of the store that is served."""
    return team.tokens.path.parent / "agent.vms"
