"""Who may ask a server what: by tokens alone, each as far as it reaches, through every route."""

from __future__ import annotations

import http.client
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.refusals import refused
from tests.serve.conftest import KEY, WORDS, Serve, Team
from vmstore.errors import InputError
from vmstore.serve.server import Listening
from vmstore.serve.tokens import ROLES

GETS = (
    *("", "page.js", "metrics", "export", "export?format=chat", "export?format=markdown", "export?format=otlp"),
    *("api/store", "api/film", "api/texts?at=4", "api/request?call=1", "api/search?q=by", "api/progress"),
    *("api/vmql?q=SESSIONS", "api/until?q=p4+LEAVES+L0", "api/export", "api/complete?q=PAG", "api/digests"),
    *("api/film?budget=8000", "api/sweep?budgets=8000", "api/nothing", "nothing"),
)


@pytest.mark.parametrize("target", GETS)
def test_a_token_of_another_namespace_sees_nothing(team: Team, target: str) -> None:
    """Through every route a namespace that a token does not reach is answered as one that is not there."""
    other, own = team.token("b", "unmasked", "team-b"), team.token("a", "unmasked", "team-a")
    hidden, absent = team.ask(f"/n/team-a/{target}", other), team.ask(f"/n/nowhere/{target}", other)
    assert hidden.status == absent.status == 404
    assert hidden.body.replace(b"team-a", b"nowhere") == absent.body
    assert target.endswith("nothing") or team.ask(f"/n/team-a/{target}", own).status in (200, 400)


def test_no_route_of_ones_own_namespace_tells_of_another(team: Team) -> None:
    """Statements, addresses, lists and figures of one namespace hold no word, name or count of another."""
    token = team.token("b", "unmasked", "team-b")
    asked = ("SESSIONS ACROSS SESSIONS", "SEARCH 'apricots'", "PAGES ACROSS SESSIONS", "MUTATIONS ACROSS SESSIONS")
    for statement in (*asked, "CONTEXT AT CALL 1 IN SESSION 'of-team-a'", "HISTORY OF vm://team-a/of-team-a/p4"):
        answer = team.query("team-b", token, query=statement)
        assert b"apricots" not in answer.body and (b"of-team-a" not in answer.body or answer.status in (400, 404))
    team.ask("/n/team-a/api/store", team.token("a", "read", "team-a"))
    for target in ("/namespaces", "/metrics", "/n/team-b/api/store", "/n/team-b/export"):
        answer = team.ask(target, token)
        assert answer.status == 200 and b"team-a" not in answer.body and b"team-b" in answer.body


def test_each_sees_its_own(team: Team) -> None:
    """A token that reaches a namespace reads what was said there: the control of the tests above."""
    for namespace, words in WORDS.items():
        token = team.token(namespace, "unmasked", namespace)
        answer = team.query(namespace, token, query="PAGES page, line LIMIT 1")
        assert answer.status == 200 and answer.json["rows"][0]["line"] == words
        assert team.ask("/namespaces", token).json == {"namespaces": [namespace]}
        assert words.encode() in team.ask(f"/n/{namespace}/export?format=chat", token).body


@pytest.mark.parametrize("target", ["/", "/namespaces", "/metrics", "/n/team-a/", "/n/team-a/api/store", "/nothing"])
def test_nothing_is_answered_without_a_token(team: Team, target: str) -> None:
    """Without a token, with one that is none, and with one in the address, nothing is told."""
    good = team.token("a", "unmasked")
    for bearer in (None, "vms_" + "0" * 64, good[:-1], good + "x", ""):
        answer = team.ask(target, bearer)
        assert answer.status == 401 and answer.headers["www-authenticate"] == "Bearer", bearer
    for name in ("token", "access_token"):
        answer = team.ask(f"{target}?{urlencode({name: good})}", good)
        assert answer.status == 400 and good.encode() not in answer.body
    assert team.ask(target, good).status in (200, 404)


def test_a_role_is_no_more_than_it_is(team: Team) -> None:
    """One of figures reads figures alone; one that reads sees secrets masked everywhere; unmasked sees them."""
    figures, read, plain = (team.token(role, role) for role in ROLES)
    assert team.ask("/metrics", figures).status == 200
    for target in ("/", "/namespaces", "/n/team-a/", "/n/team-a/api/store", "/n/team-a/export", "/n/team-a/api/live"):
        assert team.ask(target, figures).status == 403, target
    assert team.query("team-a", figures, query="PAGES").status == 403
    shown = ("api/texts?at=4", "api/film", "api/request?call=1", "api/vmql?q=PAGES+line", "export?format=chat")
    for target in (*shown, "export", "export?format=markdown", "export?format=otlp", "api/search?q=apricots"):
        hidden, whole = team.ask(f"/n/team-a/{target}", read), team.ask(f"/n/team-a/{target}", plain)
        assert hidden.status == whole.status == 200 and KEY.encode() not in hidden.body, target
        if target != "export" and target != "api/film":
            assert KEY.encode() in whole.body, target
    assert KEY.encode() in team.query("team-a", plain, query="PAGES line").body
    assert KEY.encode() not in team.query("team-a", read, query="PAGES line").body
    missed = team.query("team-a", read, query=f"PAGES IN SESSION '{KEY}'")
    assert missed.status == 400 and b"API_KEY" in missed.body and KEY.encode() not in missed.body


def test_a_revocation_is_heeded_at_once(team: Team) -> None:
    """A token that was taken back opens nothing more, and ends what it listened to; another goes on."""
    ada, bob = team.token("ada"), team.token("bob")
    listener = http.client.HTTPConnection("127.0.0.1", team.port, timeout=30)
    listener.request("GET", "/n/team-a/api/live", headers={"Authorization": f"Bearer {ada}"})
    stream = listener.getresponse()
    assert stream.readline() == b"retry: 2000\n"
    team.tokens.revoke("ada")
    assert team.ask("/namespaces", ada).status == 401
    assert (stream.readline(), stream.readline()) == (b"\n", b"")  # its end; a sign of life where it goes on
    assert team.ask("/namespaces", bob).status == 200
    listener.close()


def test_a_damaged_file_of_tokens_lets_nobody_in(team: Team) -> None:
    """Where the file cannot be read the server says so and answers nobody, and goes on once it is whole."""
    token = team.token("ada")
    good = team.tokens.path.read_bytes()
    team.tokens.path.write_bytes(b"{")
    answer = team.ask("/namespaces", token)
    assert answer.status == 503 and str(team.tokens.path).encode() not in answer.body
    assert team.ask("/ready").status == 503 and team.ask("/health").status == 200
    team.tokens.path.write_bytes(good)
    assert team.ask("/namespaces", token).status == 200


def test_a_browser_gives_its_token_once(team: Team) -> None:
    """A page leads to the login, which keeps the token in a cookie that no script reads, and leaving drops it."""
    token = team.token("ada", "read", "team-a")
    there = team.ask("/n/team-a/", Accept="text/html,*/*")
    assert (there.status, there.headers["location"]) == (303, "/login")
    form = team.ask("/login")
    assert form.status == 200 and b'name="token" type="password"' in form.body
    assert "form-action 'self'" in form.headers["content-security-policy"]

    def logged_in(text: str, **headers: str) -> tuple[int, dict[str, str]]:
        body = urlencode({"token": text}).encode()
        kind = "application/x-www-form-urlencoded"
        answer = team.ask("/login", method="POST", body=body, Content_Type=kind, **headers)
        return answer.status, answer.headers

    status, headers = logged_in(token[:-1])
    assert status == 403 and "set-cookie" not in headers
    assert logged_in(token, Origin="https://evil.example")[0] == 403
    status, headers = logged_in(token)
    cookie, *attributes = headers["set-cookie"].split("; ")
    assert (status, headers["location"]) == (303, "/") and "HttpOnly" in attributes
    assert "SameSite=strict" in attributes and "Path=/" in attributes
    index = team.ask("/", Cookie=cookie)
    assert (index.status, index.headers["location"]) == (303, "/n/team-a/")
    page = team.ask("/n/team-a/", Cookie=cookie)
    assert page.status == 200 and "script-src 'self'" in page.headers["content-security-policy"]
    assert team.ask("/n/team-a", Cookie=cookie).headers["location"] == "/n/team-a/"
    assert team.ask("/n/team-a/page.js", Cookie=cookie).body == b"0"
    left = team.ask("/logout", method="POST", body=b"", Cookie=cookie)
    assert "Max-Age=0" in left.headers["set-cookie"]
    team.tokens.revoke("ada")
    assert team.ask("/n/team-a/", Cookie=cookie).status == 401


def test_other_sites_and_names_are_refused(team: Team) -> None:
    """A page of another site and a name that is not the server's are turned away, token or not."""
    token = team.token("ada")
    for headers in (
        {"Origin": "https://evil.example"},
        {"Referer": "https://evil.example/"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Host": "evil.example"},
    ):
        answer = team.ask("/namespaces", token, **headers)
        assert answer.status == 403, headers
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert team.ask("/namespaces", token, method=method).status == 405
    assert team.ask("/namespaces", token, method="POST", body=b"").status == 404


def test_it_answers_by_its_public_name(serve: Serve, path: Path) -> None:
    """Behind another server its public name and origin are its own, the cookie is for TLS alone, and no other is."""
    team = serve(path, where=Listening(port=0, public="https://memory.example"))
    token = team.token("ada")
    fields = {"Host": "memory.example", "Origin": "https://memory.example"}
    assert team.ask("/namespaces", token, **fields).status == 200
    body = urlencode({"token": token}).encode()
    assert "Secure" in team.ask("/login", method="POST", body=body, **fields).headers["set-cookie"]
    for host, origin in (("memory.example:81", ""), ("memory.example", "https://evil.example"), ("a.example", "")):
        fields = {"Host": host, **({"Origin": origin} if origin else {})}
        assert team.ask("/namespaces", token, **fields).status == 403


def test_others_are_not_let_in_without_tokens(serve: Serve, path: Path) -> None:
    """A server that other machines reach is refused where there is no file of tokens, and this machine's is not."""
    for where in (Listening("0.0.0.0", 0), Listening(port=0, public="https://memory.example")):
        with refused("tokens-needed", InputError, "--tokens"):
            serve(path, tokens=False, where=where)
    for public in ("memory.example", "https://a.example/path", "https://me@a.example", "ftp://a.example"):
        with refused("not-an-address", InputError):
            serve(path, where=Listening(port=0, public=public))
    alone = serve(path, tokens=False)
    assert alone.ask("/namespaces").json == {"namespaces": ["team-a", "team-b"]}
    assert KEY.encode() in alone.ask("/n/team-a/api/texts?at=4").body
    assert b"/n/team-a/" in alone.ask("/").body and b"logout" not in alone.ask("/").body


def test_a_server_may_be_limited_itself(serve: Serve, path: Path) -> None:
    """One that serves some namespaces answers about no other, whatever a token reaches."""
    team = serve(path, only=frozenset(["team-b"]))
    token = team.token("all", "unmasked")
    assert team.ask("/namespaces", token).json == {"namespaces": ["team-b"]}
    assert team.ask("/n/team-a/api/store", token).status == 404
    assert b"team-a" not in team.ask("/metrics", token).body
