"""What a client may ask of a store over MCP, and what it is told where it asks wrongly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")

from mcp.shared.exceptions import MCPError

import vmstore
from tests.integrations.mcp.serving import as_process, fill, in_process
from vmstore.integrations.mcp.server import MemoryServer

NINE = {
    *("recall_context", "recall_all", "remember_when", "compact_context", "domain_status"),
    *("expand_topic", "collapse_topic", "find_quote", "query_facts"),
}
VBRIEF = {"vbrief_memory_search", "vbrief_load_session", "vbrief_expand_memory", "vbrief_compress_playbook"}
HISTORY = [
    {"role": "user", "content": "The launch is on the 3rd of May."},
    {"role": "assistant", "content": "The 3rd of May is noted."},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with the sessions trip and harbour."""
    return fill(tmp_path / "agent.vms")


def asked(path: Path, tool: str, *, writes: bool = False, session: str | None = None, **arguments: Any) -> Any:
    """The result of one tool of a server over a store."""
    with vmstore.open(path, "rw" if writes else "r") as store:
        return in_process(
            MemoryServer(store, session=session, writes=writes), lambda client: client.call_tool(tool, arguments)
        )


def answer(path: Path, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a tool that is not refused."""
    result = asked(path, tool, **arguments)
    assert not result.is_error, result.content
    content: dict[str, Any] = result.structured_content
    return content


def refusal(path: Path, tool: str, **arguments: Any) -> str:
    """The words a tool is refused in."""
    result = asked(path, tool, **arguments)
    assert result.is_error
    text: str = result.content[0].text
    return text


def test_the_surface_is_what_the_page_lists(path: Path) -> None:
    """The server has the nine tools, the four of vBRIEF and VMQL, two resources and two prompts, each described."""

    async def surface(client: Any) -> Any:
        templates = await client.list_resource_templates()
        return (
            (await client.list_tools()).tools,
            [resource.uri for resource in (await client.list_resources()).resources],
            [template.uri_template for template in templates.resource_templates],
            {prompt.name for prompt in (await client.list_prompts()).prompts},
        )

    tools, resources, templates, prompts = as_process(path, surface)
    assert {tool.name for tool in tools} == NINE | VBRIEF | {"ask_vmql"}
    assert all(tool.description and tool.annotations.read_only_hint for tool in tools)
    assert (resources, templates) == (["virtualcontext://domains"], ["virtualcontext://domains/{tag}"])
    assert prompts == {"recall", "summarize_session"}


def test_a_context_is_recalled_within_its_budget(path: Path) -> None:
    """recall_context brings back what was said of the message, in the tokens it was given."""
    context = answer(path, "recall_context", message="what is the budget for Kyoto?", session="trip", tokens=900)
    assert "900 euros" in context["context"] + " ".join(context["recent"]) and context["tokens"] <= 900


def test_the_past_can_be_recalled(path: Path) -> None:
    """A turn asks as the session stood then: what was said later is not there."""
    early = answer(path, "find_quote", text="hotel Maple", session="trip", turn=1)
    late = answer(path, "find_quote", text="hotel Maple", session="trip")
    assert [quote["match"] for quote in early["quotes"] if quote["match"] == "exact"] == []
    assert late["quotes"][0]["match"] == "exact"


def test_quotes_are_found_in_all_sessions(path: Path) -> None:
    """Without a session find_quote looks into each, with one into that alone."""
    assert answer(path, "find_quote", text="harbour master")["quotes"][0]["session"] == "harbour"
    assert answer(path, "find_quote", text="harbour master", session="trip")["quotes"] == []


def test_times_are_times(path: Path) -> None:
    """remember_when takes a preset and tells times a model can read."""
    pages = answer(path, "remember_when", preset="today", session="trip")
    assert pages["from"].endswith("T00:00:00+00:00") and len(pages["passages"]) > 0


def test_a_topic_is_expanded(path: Path) -> None:
    """expand_topic gives all that was said of a topic, and says that a server that only reads keeps nothing."""
    topic = answer(path, "expand_topic", tag="money", session="trip")
    assert [text["text"] for text in topic["texts"]] == ["The budget of the trip to Kyoto is 900 euros."]
    assert topic["kept"] is False


def test_topics_are_kept_where_the_server_may_write(path: Path) -> None:
    """A server that may write logs how much of a topic is shown, as the session's memory does."""
    answer(path, "expand_topic", tag="money", session="trip", writes=True)
    with vmstore.open(path) as store:
        assert {tag.depth for tag in store.session("trip").memory.tags.all() if tag.tag == "money"} == {"full"}
    answer(path, "collapse_topic", tag="money", session="trip", writes=True)
    with vmstore.open(path) as store:
        assert {tag.depth for tag in store.session("trip").memory.tags.all() if tag.tag == "money"} == {"summary"}


def test_a_history_is_compacted(path: Path) -> None:
    """compact_context takes a conversation in once, sums it up, and a second time takes nothing."""
    first = answer(path, "compact_context", messages=HISTORY, session="launch", writes=True)
    again = answer(path, "compact_context", messages=HISTORY, session="launch", writes=True)
    assert (first["messages_taken"], first["segments_compacted"], again["messages_taken"]) == (2, 1, 0)
    assert answer(path, "find_quote", text="3rd of May", session="launch")["quotes"][0]["match"] == "exact"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("compact_context", {"messages": HISTORY}), ("collapse_topic", {"tag": "money", "session": "trip"})],
)
def test_nothing_is_written_unless_it_is_told(path: Path, tool: str, arguments: dict[str, Any]) -> None:
    """A server that only reads refuses the tools that write, names the remedy, and the log stays as it was."""
    before = (path / "default" / "log.sqlite").read_bytes()
    words = refusal(path, tool, **arguments)
    assert "--write" in words and "[read-only]" in words
    assert (path / "default" / "log.sqlite").read_bytes() == before


def test_a_server_that_only_reads_writes_nothing_to_a_store_that_may_be_written(path: Path) -> None:
    """Over a store open for writing, with a session that logs what is recalled, no tool writes, nor does FORK."""
    asked: dict[str, dict[str, Any]] = {
        "recall_context": {"message": "the budget", "session": "trip"},
        "recall_all": {"session": "trip"},
        "remember_when": {"query": "budget", "session": "trip"},
        "find_quote": {"text": "900 euros", "session": "trip"},
        "query_facts": {"session": "trip"},
        "domain_status": {"session": "trip"},
        "expand_topic": {"tag": "money", "session": "trip"},
        "collapse_topic": {"tag": "money", "session": "trip"},
        "compact_context": {"messages": HISTORY, "session": "trip"},
        "ask_vmql": {"statement": "FORK SESSION trip AT TURN 1 AS 'other'"},
        "vbrief_memory_search": {"query": "budget"},
        "vbrief_load_session": {"sessionId": "trip"},
        "vbrief_compress_playbook": {"targetRatio": 0.5},
    }
    refused: list[str] = []

    async def work(client: Any) -> set[str]:
        for tool, arguments in asked.items():
            result = await client.call_tool(tool, arguments)
            refused.extend([tool] if result.is_error and "[read-only]" in result.content[0].text else [])
            assert result.is_error == (tool in refused), result.content
        return {tool.name for tool in (await client.list_tools()).tools}

    with vmstore.open(path) as store:
        store.live_session("trip")
        before = store.admin.log.ordinal
        assert in_process(MemoryServer(store), work) - asked.keys() == {"vbrief_expand_memory"}
        assert store.admin.log.ordinal == before
    assert refused == ["collapse_topic", "compact_context", "ask_vmql"]


def test_tools_that_may_write_say_so(path: Path) -> None:
    """Where the server may write, the tools that can are not announced as reading, FORK's among them, and it forks."""

    async def work(client: Any) -> set[str]:
        await client.call_tool("ask_vmql", {"statement": "FORK SESSION trip AT TURN 1 AS 'other'"})
        return {tool.name for tool in (await client.list_tools()).tools if not tool.annotations.read_only_hint}

    with vmstore.open(path) as store:
        assert in_process(MemoryServer(store, writes=True), work) == {
            "compact_context", "expand_topic", "collapse_topic", "ask_vmql"
        }  # fmt: skip
        assert store.session("other").info().parent == "trip"


def test_facts_are_asked_for(path: Path) -> None:
    """query_facts gives the facts of all sessions, or of one."""
    with vmstore.open(path) as store:
        store.session("trip").memory.facts.state("user", "lives in", "Oslo", attribute="home")
    facts = answer(path, "query_facts", subject="user")
    assert [fact["what"] for fact in facts["facts"]] == ["Oslo"]
    assert answer(path, "query_facts", subject="user", session="harbour")["facts"] == []


def test_vmql_answers_why(path: Path) -> None:
    """ask_vmql gives columns and rows as of any moment, and points at what is wrong with a statement."""
    rows = answer(path, "ask_vmql", statement="CALLS call, turn IN SESSION trip AS OF TURN 1")
    assert rows["rows"] == [{"call": 1, "turn": 1}]
    assert "CALLS" in refusal(path, "ask_vmql", statement="CALS call")


def test_vbrief_has_its_own_words(path: Path) -> None:
    """The four tools of vBRIEF take and give the names of that format."""
    hits = answer(path, "vbrief_memory_search", query="budget", tokenBudget=500)
    assert hits["results"][0]["sessionId"] == "trip"
    loaded = answer(path, "vbrief_load_session", sessionId="trip", maxTier=0)
    assert loaded["loadedTiers"] == [0]
    assert "learnings" in answer(path, "vbrief_compress_playbook", targetRatio=0.5, categories=["x"])
    assert "refers to nothing" in refusal(path, "vbrief_expand_memory", contentRef="p12")


def test_resources_give_the_topics(path: Path) -> None:
    """The first resource lists the topics, the second gives one; an unknown one is refused with the remedy."""

    async def work(client: Any) -> Any:
        listed = await client.read_resource("virtualcontext://domains")
        money = await client.read_resource("virtualcontext://domains/money")
        with pytest.raises(MCPError) as refused:
            await client.read_resource("virtualcontext://domains/nothing")
        assert "'nothing'" in str(refused.value) and "[no-topic]" in str(refused.value)
        return listed.contents[0].text, money.contents[0].text

    with vmstore.open(path, "r") as store:
        listed, money = in_process(MemoryServer(store, session="trip"), work)
    assert '"money"' in listed and "900 euros" in money


def test_prompts_name_the_tools(path: Path) -> None:
    """The prompt recall names its topic, summarize_session the tool that compacts."""

    async def work(client: Any) -> list[str]:
        prompts = [
            await client.get_prompt("recall", {"topic": "tea"}),
            await client.get_prompt("summarize_session", {"session": "trip"}),
        ]
        return [prompt.messages[0].content.text for prompt in prompts]

    with vmstore.open(path, "r") as store:
        recall, summarize = in_process(MemoryServer(store), work)
    assert "tea" in recall and "recall_context" in recall
    assert "compact_context" in summarize and "'trip'" in summarize


def test_an_unknown_session_is_named_with_the_nearest(path: Path) -> None:
    """A session that is not there is refused with its code and those there are; a beginning of a name is none."""
    words = refusal(path, "recall_context", message="hi", session="tri")
    assert "[no-session]" in words and "'trip'" in words


def test_a_store_without_sessions_says_so(tmp_path: Path) -> None:
    """Of an empty store a tool says that there is no session, and not that nothing was found."""
    vmstore.open(tmp_path / "empty.vms").close()
    assert "holds no session" in refusal(tmp_path / "empty.vms", "recall_all")


def test_the_newest_session_is_asked(path: Path) -> None:
    """Without a session the newest is asked, or that of the server, which is refused where there is none."""
    assert answer(path, "domain_status")["session"] == "harbour"
    assert answer(path, "domain_status", session="trip")["session"] == "trip"


def test_what_others_write_is_seen(path: Path) -> None:
    """A server that only reads sees what another process wrote since it was started."""

    async def work(client: Any) -> Any:
        with vmstore.open(path) as store:
            later = {"model": "m", "messages": [{"role": "user", "content": "The tide is at nine."}]}
            store.record("tide", later, None)
        return await client.call_tool("find_quote", {"text": "tide is at nine"})

    with vmstore.open(path, "r") as reader:
        answers = in_process(MemoryServer(reader), work)
    assert answers.structured_content["quotes"][0]["session"] == "tide"


def test_a_topic_tells_no_file_that_waits(path: Path, tmp_path: Path) -> None:
    """Of the pages of a topic a file is told once somebody approved it, where its session asks for that."""
    (tmp_path / "report.md").write_text("The vendor is Acme.")
    with vmstore.open(path) as store:
        live = store.live_session("offers", l0_tokens_max=8_000, artifacts="ask")
        live.user("What does the report say?")
        page = live.work.artifacts.add("report.md", root=tmp_path).page
        live.annotate(page, tags=["vendors"])
    assert "Acme" not in str(answer(path, "expand_topic", tag="vendors", session="offers"))
    with vmstore.open(path) as store:
        store.session("offers").work.artifacts.approve(page, who="Ann")
    assert "Acme" in str(answer(path, "expand_topic", tag="vendors", session="offers"))


TELLING = (
    "PAGES page, text, line IN SESSION offers",
    "PAGES page, hint ACROSS SESSIONS WHERE text MATCHES 'Acme' OR line LIKE '%Acme%' OR text LIKE '%vendor%'",
    "SEARCH 'vendor Acme' page, text, snippet ACROSS SESSIONS",
    "SEARCH 'vendor Acme' page, line WITHIN 900 TOKENS IN SESSION offers",
    "EXPLAIN ANALYZE SEARCH 'vendor Acme' page, snippet IN SESSION offers",
    "VERSIONS page, text IN SESSION offers",
    "FAULTS page, page.text IN SESSION offers",
    "CONTEXT page, text AT CALL 1 IN SESSION offers",
    "CONTEXT max(text) PER CALL IN SESSION offers",
    "CONTEXT RENDER AT CALL 1 IN SESSION offers",
    "CONTEXT MESSAGES AT CALL 1 IN SESSION offers",
    "CALLS call IN SESSION offers WHERE CONTEXT MATCHES 'Acme'",
    "DIFF CONTEXT CALL 2 TO CALL 3 IN SESSION offers",
    "SOURCES OF noted IN SESSION offers",
    "PATH FROM noted TO report IN SESSION offers",
    "SOURCES OF noted VIA evidence IN SESSION offers",
    "HISTORY OF report IN SESSION offers",
    "WHY report IN CONTEXT AT CALL 1 IN SESSION offers",
    "ARTIFACTS IN SESSION offers",
    "MUTATIONS page, detail IN SESSION offers",
)
NAMING = TELLING[-4:]
"""Those that name the page and show no content of any."""


@pytest.fixture(scope="module")
def denied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a file that was in two prompts, until somebody denied it; another waits."""
    folder = tmp_path_factory.mktemp("denied")
    (folder / "report.md").write_text("The vendor is Acme.")
    with vmstore.open(folder / "s.vms") as store:
        live = store.live_session("offers", l0_tokens_max=8_000)
        live.user("What does the report say?")
        page = live.work.artifacts.add("report.md", root=folder).page
        live.page_fault(page, 0, reason="user_requested_recall")
        live.pack()
        live.claim("It names who sells it.", name="noted", sources=[page])
        live.pack()
        live.work.artifacts.approve(page, who="Ann", granted=False)
        live.user("And now?")
        live.pack()
    return folder / "s.vms"


@pytest.mark.parametrize("statement", TELLING)
def test_no_statement_tells_a_file_that_was_denied(denied: Path, statement: str) -> None:
    """Whatever a model asks in VMQL, it is not told what a file holds that no prompt may hold, nor whether."""
    with vmstore.open(denied) as store:
        page = store.session("offers").work.artifacts.all()[0].page
    result = asked(denied, "ask_vmql", statement=statement.replace("report", page))
    shown = str(result.structured_content["rows"] if not result.is_error else result.content[0].text)
    assert "vendor is" not in shown and "Acme." not in shown and ("CALLS" not in statement or shown == "[]")
    assert "[not approved]" in shown or "not-approved" in shown or page not in shown or statement in NAMING
