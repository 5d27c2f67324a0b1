"""Which session a call belongs to, also where several proxies and their heirs write one store."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.proxy.running import chat, proxied
from tests.proxy.upstream import saying, upstream
from vmstore.proxy.past import past_calls


def calls(path: Path, **options: str) -> dict[str, int]:
    """How many calls each session of a store has."""
    with vmstore.open(path, "r", **options) as store:
        return {info.session: len(store.session(info.session).calls()) for info in store.sessions()}


def test_a_header_names_the_session_and_goes_no_further(path: Path) -> None:
    """Calls with the header are in the session it names; the upstream never sees it."""
    with upstream(saying()) as far, proxied(path, "--upstream", far.url) as proxy:
        proxy.say("hello", headers={"X-Vmstore-Session": "planning"})
        proxy.settled(1)
        assert far.seen[0].header("x-vmstore-session") is None
    assert calls(path) == {"planning": 1}


def test_each_conversation_has_a_session_of_its_own(path: Path) -> None:
    """Without a name calls are told apart by what their requests begin with."""
    with upstream(saying()) as far, proxied(path, "--upstream", far.url) as proxy:
        proxy.say("Where is Kyoto?")
        proxy.say("Where is Nara?")
        proxy.say("Where is Kyoto?", "In Japan.", "And Osaka?")
        proxy.settled(3)
    assert sorted(calls(path).values()) == [1, 2]


def test_a_conversation_goes_on_after_the_proxy_was_started_again(path: Path) -> None:
    """A new proxy finds in the store the session that a request continues."""
    with upstream(saying()) as far:
        with proxied(path, "--upstream", far.url) as proxy:
            proxy.say("Where is Kyoto?")
            proxy.say("Where is Nara?")
            proxy.settled(2)
        with proxied(path, "--upstream", far.url) as proxy:
            proxy.say("Where is Kyoto?", "In Japan.", "And Osaka?")
            proxy.say("Where is Kyoto?", "In Japan.", "And Osaka?", "In Japan.", "Thanks")
            proxy.settled(2)
    assert sorted(calls(path).values()) == [1, 3]


def test_two_proxies_write_one_store(path: Path) -> None:
    """A conversation may change from one proxy to the other: its writers queue, and it stays one session."""
    with upstream(saying()) as far:
        with proxied(path, "--upstream", far.url) as value, proxied(path, "--upstream", far.url) as other:
            texts = ["Where is Kyoto?"]
            for n in range(6):
                proxy = (value, other)[n % 2]
                proxy.say(*texts)
                proxy.settled(n // 2 + 1)
                texts += ["In Japan.", f"And {n}?"]
    assert list(calls(path).values()) == [6]


def test_ports_have_upstreams_and_settings_of_their_own(path: Path) -> None:
    """Each port sends to its upstream and records in its session, its namespace and under its redaction."""
    with upstream(saying("one")) as first, upstream(saying("two")) as second:
        ports = (f"0={first.url},session=first", "--port", f"0={second.url},namespace=team,session=second,redact=mask")
        with proxied(path, "--port", *ports, port=None) as proxy:
            assert proxy.say("mail dana@example.org", port=0).json()["choices"][0]["message"]["content"] == "one"
            assert proxy.say("mail dana@example.org", port=1).json()["choices"][0]["message"]["content"] == "two"
            assert len(second.seen) == 1 and b"dana@example.org" in second.seen[0].body
            proxy.settled(2)
    assert calls(path) == {"first": 1}
    assert calls(path, namespace="team") == {"second": 1}
    with vmstore.open(path, "r") as store:
        assert "dana@example.org" in str(store.session("first").wire.request(call=1))
    with vmstore.open(path, "r", namespace="team") as store:
        assert "dana@example.org" not in str(store.session("second").wire.request(call=1))


def test_each_provider_s_requests_go_to_its_own_upstream(path: Path) -> None:
    """On one port a request goes where its format belongs."""
    with upstream(saying()) as upstreams, upstream(saying()) as two, upstream(saying()) as three:
        words = [word for name, far in zip(("openai", "anthropic", "gemini"), (upstreams, two, three), strict=True)
                 for word in ("--upstream", f"{name}={far.url}")]  # fmt: skip
        with proxied(path, *words) as proxy:
            proxy.say("a")
            proxy.ask({"model": "m", "input": "b"}, path="/v1/responses")
            proxy.say("c", path="/v1/messages")
            proxy.send("GET", "/v1/models", headers={"anthropic-version": "2023-06-01"})
            proxy.ask({"contents": []}, path="/v1beta/models/g:generateContent")
            proxy.send("GET", "/v1beta/models?key=k")
            proxy.send("GET", "/v1/models")
        seen = [[request.line.split()[1] for request in far.seen] for far in (upstreams, two, three)]
    assert seen[0] == ["/v1/chat/completions", "/v1/responses", "/v1/models"]
    assert seen[1] == ["/v1/messages", "/v1/models"]
    assert seen[2] == ["/v1beta/models/g:generateContent", "/v1beta/models?key=k"]


@pytest.mark.parametrize("name", ["live", "x" * 501])
def test_a_session_that_takes_no_calls_has_its_gap_elsewhere(path: Path, name: str) -> None:
    """A call for a session that manages its memory, or for a name that is none, passes and is a gap that says which."""
    with vmstore.open(path) as store:
        store.live_session("live", l0_tokens_max=9_000)
    with upstream(saying()) as far, proxied(path, "--upstream", far.url) as proxy:
        assert proxy.say("hello", headers={"x-vmstore-session": name}).status == 200
        proxy.say("hello", headers={"x-vmstore-session": "good"})
        assert proxy.settled(2)["gaps"] == 1
    with vmstore.open(path, "r") as store:
        (gaps,) = [info.session for info in store.sessions() if info.session not in ("live", "good")]
        ((status, error),) = [(call.status, call.error) for call in store.session(gaps).calls()]
    assert status == "gap" and name[:40] in str(error)


def test_a_key_of_the_environment_is_for_stores_that_are_encrypted(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain store is recorded in as it is, and a new one is encrypted with the key that the environment names."""
    key = tmp_path / "store.key"
    vmstore.new_store_key(key)
    with vmstore.open(path) as store:
        store.record("s", {"messages": [{"role": "user", "content": "before"}]})
    monkeypatch.setenv("VMSTORE_KEY_FILE", str(key))
    new = tmp_path / "new.vms"
    with upstream(saying()) as far:
        for place in (path, new):
            with proxied(place, "--upstream", far.url) as proxy:
                proxy.say("hello", headers={"x-vmstore-session": "s"})
                assert proxy.settled(1)["recorded"] == 1
    assert calls(path) == {"s": 2}
    assert calls(new, key=str(key)) == {"s": 1}


def test_conversations_of_before_are_the_64_written_to_last() -> None:
    """The newest come first, a session that was gone on with among them, and those that are known are not read."""
    with vmstore.memory_store() as store:
        for number in range(70):
            store.record(f"s{number}", chat(f"Question {number}."), None)
        store.record("s0", chat("Question 0.", "Yes.", "And?"), None)
        names = [name for name, _, _ in past_calls(store, frozenset({"s69"}))]
        assert names == ["s0", *(f"s{number}" for number in range(68, 6, -1))]
