"""One store by three doors at once: a LangGraph agent, an MCP client, and a request that goes through the proxy."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("langgraph.graph", reason="runs in the lane of tools/integrations.py")
pytest.importorskip("mcp", reason="needs the extra mcp")
pytest.importorskip("aiohttp", reason="needs the extra proxy")
pytest.importorskip("starlette", reason="needs the extra debug")

import vmstore
from tests.integrations.langgraph.graphs import parrot, thread, words
from tests.integrations.mcp.serving import as_process
from tests.proxy.running import CHAT, chat, proxied
from tests.proxy.upstream import saying, upstream
from vmstore.integrations.langgraph import VmstoreSaver

CHECKOUT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(CHECKOUT / "tools"))

from serving import served  # noqa: E402

SAID = {"graph": "The harbour is closed.", "claude": "The budget is 900 euros.", "curl": "Where is Kyoto?"}


def curl(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """What curl prints of a chat that it posts, its session named in a header."""
    headers = ["-H", "content-type: application/json", "-H", "x-vmstore-session: curl"]
    command = ["curl", "-sS", url, *headers, "-d", json.dumps(body)]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def asked(url: str, way: str) -> Any:
    """What the debugger answers."""
    with urllib.request.urlopen(url.partition("#")[0].rstrip("/") + way) as answer:
        return json.loads(answer.read())


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_three_doors_write_one_store_and_the_debugger_shows_all(tmp_path: Path) -> None:
    """While the proxy runs, a graph and an MCP client write the same store; each session is whole and shown."""
    path = tmp_path / "agent.vms"
    talk = [{"role": "user", "content": SAID["claude"]}, {"role": "assistant", "content": "Noted."}]
    with upstream(saying("In Japan.")) as far, proxied(path, "--upstream", far.url) as proxy:
        with vmstore.open(path) as store:
            parrot(VmstoreSaver(store)).invoke(words(SAID["graph"]), thread("graph"))
        as_process(
            path,
            lambda client: client.call_tool("compact_context", {"messages": talk, "session": "claude"}),
            "--write",
        )
        assert curl(proxy.url + CHAT, chat(SAID["curl"]))["choices"][0]["message"]["content"] == "In Japan."
        proxy.settled(1)
        with served(path) as url:
            sessions = {row["session"]: row for row in asked(url, "/api/store")["sessions"]}
            for name, text in SAID.items():
                (session,) = [each for each in sessions if name in each]
                rows = asked(url, f"/api/vmql?session={quote(session)}&q=PAGES%20text")["rows"]
                assert [row["text"] for row in rows].count(text) == 1, session
    with vmstore.open(path, "r") as store:
        assert store.verify().ok and len(store.sessions()) == len(SAID)
