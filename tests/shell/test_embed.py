"""The command that has texts embedded."""

from __future__ import annotations

from pathlib import Path

from tests.embedders.test_http import EmbeddingServer, failing
from tests.shell.conftest import Run


def test_embed_shape(run: Run, recorded: Path) -> None:
    """`embed` says how much has vectors, embeds by hashing or by a server, and goes on where it stopped."""
    assert run("embed", recorded).out == "nothing is embedded\n"
    first = run("embed", recorded, "--hash")
    assert first.code == 0 and first.out.startswith("embedded: ") and "hash-4grams@1/256: " in first.out
    again = run("embed", recorded, "--hash", "--json").json
    assert again["report"]["contents"] == 0 and again["report"]["stopped"] is None
    (share,) = again["models"]
    assert share["embedded"] == share["texts"] > 0
    assert run("embed", recorded, "--json").json["models"] == [share]
    assert run("embed", recorded, "--hash", "--quiet") == (0, "", "")


def test_a_server_is_asked(run: Run, recorded: Path) -> None:
    """A server's vectors are logged under its model's name; one that refuses ends the run with 1 and its reason."""
    server = EmbeddingServer()
    try:
        document = run("embed", recorded, "--url", server.url, "--model", "m", "--json").json
        assert (
            document["report"]["model"] == "m"
            and document["report"]["contents"] > 0
            and document["report"]["dimension"] == 2
        )
        assert "Authorization" not in server.headers[0]
        server.replies = [failing(401, "no key")] * 9
        refused = run("embed", recorded, "--url", server.url, "--model", "other")
        assert refused.code == 1 and "stopped: " in refused.out and "401: no key" in refused.out
    finally:
        server.server.shutdown()
        server.server.server_close()


def test_wrong_arguments_are_told(run: Run, recorded: Path) -> None:
    """An address without a model, a variable that is not set and an unknown session are told with what to do."""
    assert "--model" in run("embed", recorded, "--url", "http://localhost:1/v1").err
    done = run("embed", recorded, "--url", "http://localhost:1/v1", "--model", "m", "--key-env", "NO_SUCH_KEY")
    assert done.code == 1 and "NO_SUCH_KEY" in done.err
    assert "no session 'nope'" in run("embed", recorded, "--hash", "--session", "nope").err
