"""The MCP server: tools, resources and prompts over one store."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError

import vmstore
from vmstore.errors import VmstoreError
from vmstore.integrations.mcp.tools import Answer, McpTools, answering
from vmstore.store.store import Store

INSTRUCTIONS = (
    "The memory of an agent's sessions. recall_context gives what it holds for a message, recall_all an overview, "
    "find_quote the words that were said, remember_when what was said in a time, query_facts what was stated. "
    "Names of sessions are whole names, as domain_status lists them; without one the newest session is asked."
)
READERS = ("recall_context", "recall_all", "remember_when", "domain_status", "find_quote", "query_facts")
WRITERS = ("compact_context", "expand_topic", "collapse_topic", "ask_vmql")  # where the server may
VBRIEF = ("vbrief_memory_search", "vbrief_load_session", "vbrief_expand_memory", "vbrief_compress_playbook")
DOMAINS = "virtualcontext://domains"


class MemoryServer(MCPServer[Any]):
    """An MCP server over an open store; `session` is asked where a call names none, by default the newest.

    Without `writes` the store is only read, in whatever mode it is open.
    """

    def __init__(self, store: Store, *, session: str | None = None, writes: bool = False) -> None:
        super().__init__("vmstore", instructions=INSTRUCTIONS, version=vmstore.__version__, log_level="ERROR")
        tools = McpTools(store, session, writes=writes)
        for name in (*READERS, *WRITERS):
            self._offer(getattr(tools, name), reads=name in READERS or not writes)
        brief = store.work.vbrief
        for name in VBRIEF:
            self._offer(getattr(brief, name), reads=True)
        self._describe(tools)

    async def serve(self, read: Any, write: Any) -> None:
        """Answers a pair of streams until the first is closed."""
        await self._lowlevel_server.run(read, write, self._lowlevel_server.create_initialization_options())

    def _offer(self, function: Any, *, reads: bool) -> None:
        hints = types.ToolAnnotations(read_only_hint=reads, destructive_hint=False, open_world_hint=False)
        description = "\n".join(line.strip() for line in (function.__doc__ or "").strip().splitlines())
        self.add_tool(answering(function), description=description, annotations=hints)

    def _describe(self, tools: McpTools) -> None:
        """The resources and the prompts."""

        def domains() -> str:
            return _read(lambda: {"domains": tools.domains()})

        def domain(tag: str) -> str:
            return _read(lambda: tools.domain(tag))

        def recall(topic: str) -> str:
            return (
                f"Before you answer, recall what is known about: {topic}\n"
                f"Call recall_context with that as its message; where it is not enough, find_quote and expand_topic."
            )

        def summarize_session(session: str = "") -> str:
            named = f" with the session {session!r}" if session else ""
            return f"Call compact_context{named} and all messages of this conversation, then say what was summed up."

        self.resource(DOMAINS, name="domains", description="The topics of the session", mime_type="application/json")(
            domains
        )
        self.resource(
            DOMAINS + "/{tag}", name="domain", description="The summaries of a topic", mime_type="application/json"
        )(domain)
        self.prompt("recall", description="Recall what is known of a topic before an answer")(recall)
        self.prompt("summarize_session", description="Sum up the conversation so far")(summarize_session)


def _read(answer: Callable[[], Answer]) -> str:
    """An answer as JSON; a refusal in the words of the store."""
    try:
        return json.dumps(answer(), ensure_ascii=False)
    except VmstoreError as error:
        raise ResourceError(f"{error} [{error.code}]") from error
