"""Tools that a live session runs: what they write with their answers, what is refused, what guards and users bring."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore import Live, Store, ToolMemory, ToolResult, memory_store, tool
from vmstore.core.clock import ManualClock
from vmstore.debug.events import happened
from vmstore.debug.rows import SessionRows
from vmstore.errors import ErasedError, InputError, RefusedError, UnknownError

Asked = tuple[str, dict[str, Any]]


def model_of(calls: Sequence[Asked], heard: list[dict[str, Any]]) -> Callable[[dict[str, Any]], Any]:
    """A model that asks for tools one after another, and then answers; `heard` has its requests."""
    left: Iterator[tuple[int, Asked]] = iter(list(enumerate(calls)))

    def model(request: dict[str, Any]) -> Any:
        heard.append(request)
        number, asked = next(left, (0, None))
        message: dict[str, Any] = {"role": "assistant", "content": "Well."}
        if asked is not None:
            function = {"name": asked[0], "arguments": json.dumps(asked[1])}
            message["tool_calls"] = [{"id": f"c{len(heard)}_{number}", "type": "function", "function": function}]
        return {"choices": [{"message": message}]}

    return model


def ran(live: Live, tools: dict[str, Callable[..., Any]], *calls: Asked) -> list[dict[str, Any]]:
    """Has the model call tools; the requests it was sent."""
    heard: list[dict[str, Any]] = []
    live.user("Go on, please.")
    live.run(model_of(calls, heard), tools=tools)
    return heard


def rows(store: Store, text: str, session: str = "a") -> list[dict[str, Any]]:
    """What a question answers."""
    return store.query(text, session=session).to_dicts()


@pytest.fixture
def store() -> Store:
    """A store in memory."""
    return memory_store()


@pytest.fixture
def live(store: Store) -> Live:
    """A live session that learns of its own calls."""
    return store.live_session("a", l0_tokens_max=8_000, user="ann", learning="session")


@tool(needs="10K tokens", tags=["math"])
def calculate(expression: str, ctx: ToolMemory) -> ToolResult:
    """Calculates."""
    value = sum(map(int, expression.split("+")))
    page = ctx.create_page({"expression": expression, "result": value}, "structured", importance=0.8, tags=["numeric"])
    return ToolResult(value, pages_created=[page.page_id])


@tool
def broken(ctx: ToolMemory, what: str = "x") -> str:
    """Fails after it wrote."""
    ctx.create_page("half")
    ctx.annotate_page("dot", "half")
    raise ValueError("no luck")


def dot(live: Live) -> str:
    """A picture in the session."""
    return live.attach(b"\x89PNG\r\n\x1a\n" + b"0" * 40, "image/png", name="dot")


def test_a_page_of_a_tool_stands_with_its_answer_and_its_call(store: Store, live: Live) -> None:
    """A calculator makes a structured page of importance 0.8 that derives from its answer, and TOOLS names it."""
    ran(live, {"calculate": calculate}, ("calculate", {"expression": "1+1"}))
    (row,) = rows(store, "TOOLS result, status, tags, reasoning, pages_created, pages_read")
    (page,) = row["pages_created"]
    assert (row["status"], row["tags"], row["pages_read"]) == ("ok", ["math"], [])
    assert live.content(page) == b'{"expression": "1+1", "result": 2}' and live.page(page).importance == 0.8
    assert live.page(page).tags == ["numeric"] and live.content(row["reasoning"]) == b"Well."
    assert [link.target for link in live.lineage.ancestors(page, depth=1)] == [row["result"]]
    assert live.content(row["result"]) == b"2" and live.debug.check().difference is None


def test_the_model_is_not_asked_for_the_memory() -> None:
    """The schema of a decorated tool has the parameters that the model gives, and no other."""
    heard = ran(memory_store().live_session("a", l0_tokens_max=8_000), {"calculate": calculate})
    schema = next(tool["function"] for tool in heard[0]["tools"] if tool["function"]["name"] == "calculate")
    assert list(schema["parameters"]["properties"]) == ["expression"]


def test_a_caption_represents_its_picture_and_the_picture_was_read(store: Store, live: Live) -> None:
    """A caption page stands for the picture by both links, and the tool's reading of it counts as a use."""
    picture = dot(live)

    @tool
    def caption(image: str, ctx: ToolMemory) -> str:
        """Says what a picture shows."""
        seen = ctx.get_page(image)
        assert seen.modality == "image" and seen.content.startswith(b"\x89PNG")
        page = ctx.create_page("a red dot", parent_page_id=image, compression_level=2)
        ctx.link_pages(image, page.page_id, "has_caption")
        return "a red dot"

    ran(live, {"caption": caption}, ("caption", {"image": picture}))
    (row,) = rows(store, "TOOLS pages_read, pages_created")
    assert row["pages_read"] == [picture]
    assert live.page(row["pages_created"][0]).represents == [picture]
    assert rows(store, "LINKS source, target WHERE kind = has_caption") == [
        {"source": picture, "target": row["pages_created"][0]}
    ]
    assert {"page": picture, "reason": "tool"} in rows(store, "MUTATIONS page, reason WHERE kind = reference")


def test_a_tool_that_fails_leaves_no_page(store: Store, live: Live) -> None:
    """Neither a page nor a remark is left of a tool that raised; its error is in TOOLS and in what the model reads."""
    picture = dot(live)
    ran(live, {"broken": broken}, ("broken", {}))
    (row,) = rows(store, "TOOLS status, error, pages_created, pages_modified")
    assert row == {"status": "failed", "error": "ValueError: no luck", "pages_created": [], "pages_modified": []}
    assert rows(store, "PAGES page WHERE hint = 'broken:c1_0:1'") == [] and live.page(picture).anchors == {}


def test_a_tool_changes_and_notes_pages_that_no_message_holds(store: Store, live: Live) -> None:
    """An update is a version, an annotation an anchor, and both are among the pages that it modified."""
    claim = live.claim("The port is 80.")

    @tool
    def mend(ctx: ToolMemory) -> None:
        """Mends a claim."""
        ctx.update_page(claim, "The port is 8080.")
        ctx.annotate_page(claim, "checked")

    ran(live, {"mend": mend}, ("mend", {}))
    assert live.content(claim) == b"The port is 8080." and live.page(claim).anchors == {"note": "checked"}
    assert rows(store, "TOOLS pages_modified") == [{"pages_modified": [claim]}]


def test_what_a_tools_text_names_becomes_references(store: Store, live: Live) -> None:
    """Numbers and addresses of pages in what an aware tool writes are links; of other sessions, and in a plain tool's
    answer, they are words."""
    claim = live.claim("The port is 80.")

    @tool
    def note(ctx: ToolMemory) -> str:
        """Writes what it found."""
        ctx.create_page(f"{claim} says so, see vm://default/a/{claim} and vm://default/b/p4, p999999")
        return "noted"

    ran(live, {"note": note, "plain": lambda: f"{claim} says so"}, ("note", {}), ("plain", {}))
    (made,) = rows(store, "TOOLS pages_created WHERE tool = note")[0]["pages_created"]
    assert rows(store, "LINKS source, target WHERE kind = references") == [{"source": made, "target": claim}]


def test_a_search_has_read_what_it_gives_and_nothing_else(store: Store, live: Live) -> None:
    """Of a search for texts the call that holds the words as JSON is not among the pages that the tool read."""
    claim = live.claim("The dot is red.")

    @tool
    def look(ctx: ToolMemory, what: str) -> str:
        """Looks for texts."""
        return ", ".join(page.page_id for page in ctx.search_pages(what, "text"))

    ran(live, {"look": look}, ("look", {"what": "dot red"}))
    ((read,),) = store.query("TOOLS pages_read WHERE tool = look", session="a")
    assert read == [claim]


def user_page(ctx: ToolMemory) -> str:
    """The page of what the user said."""
    return ctx.search_pages("go on please")[0].page_id


BAD: dict[str, tuple[Callable[[ToolMemory], Any], type[Exception], str]] = {
    "50 MB": (lambda ctx: ctx.create_page("x" * (50 << 20)), RefusedError, "tool-writes-too-much"),
    "another namespace": (lambda ctx: ctx.link_pages("vm://x/a/p4", "dot", "derives"), RefusedError, "other-namespace"),
    "another session": (lambda ctx: ctx.get_page("vm://default/b/p4"), RefusedError, "other-namespace"),
    "no page": (lambda ctx: ctx.annotate_page("p999", "x"), UnknownError, "no-page"),
    "no link": (lambda ctx: ctx.link_pages("dot", "dot", "likes"), UnknownError, "no-kind-of-link"),
    "no modality": (lambda ctx: ctx.create_page("x", "smell"), InputError, "no-modality"),
    "a message": (lambda ctx: ctx.update_page(user_page(ctx), "x"), RefusedError, "said-stays"),
    "a link to itself": (lambda ctx: ctx.link_pages("dot", "dot", "references"), InputError, "link-to-itself"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_a_tool_may_not_do_is_refused_by_name_and_leaves_nothing(what: str, store: Store, live: Live) -> None:
    """Each is an error in the tool, or of its call where only the session can tell; the run goes on."""
    dot(live)
    do, kind, code = BAD[what]
    caught: list[Exception] = []

    @tool
    def bad(ctx: ToolMemory) -> str:
        """Does what it may not."""
        try:
            ctx.create_page("beside")
            do(ctx)
        except Exception as error:
            caught.append(error)
            raise
        return "done"

    before = len(rows(store, "PAGES page WHERE type = artifact"))
    ran(live, {"bad": bad}, ("bad", {}))
    assert all(isinstance(error, kind) and error.code == code for error in caught)  # type: ignore[attr-defined]
    assert caught or what == "a link to itself"
    (row,) = rows(store, "TOOLS status, error, pages_created")
    assert row["status"] == "failed" and row["pages_created"] == [] and row["error"]
    assert len(rows(store, "PAGES page WHERE type = artifact")) == before + 1  # its answer
    assert store.verify().ok


def test_an_erased_page_can_be_neither_read_nor_changed(tmp_path: Path) -> None:
    """A tool hears that a page was erased, and nothing of what it wanted is written."""
    with vmstore.open(tmp_path / "s.vms") as store:
        live = store.live_session("a", l0_tokens_max=8_000)
        claim = live.claim("The port is 80.")
        store.trust.erase(page=f"a/{claim}")
        caught: list[Exception] = []

        @tool
        def mend(ctx: ToolMemory) -> None:
            """Changes what is gone."""
            try:
                ctx.update_page(claim, "8080")
            except ErasedError as error:
                caught.append(error)
                raise

        ran(live, {"mend": mend}, ("mend", {}))
        assert len(caught) == 1 and rows(store, "TOOLS status") == [{"status": "failed"}]


def test_a_tool_that_calls_itself_through_its_session_is_refused(live: Live) -> None:
    """A run within a run's tool is refused, and the tool has failed with it."""
    caught: list[RefusedError] = []

    def again() -> str:
        """Runs the session it runs for."""
        try:
            live.run(lambda request: {}, tools={"again": again})
        except RefusedError as error:
            caught.append(error)
            raise
        return ""

    ran(live, {"again": again}, ("again", {}))
    assert [error.code for error in caught] == ["running-already"]


def test_a_context_writes_no_more_once_its_call_is_over(store: Store, live: Live) -> None:
    """A context that a tool kept is of no use after it: what it would write is refused."""
    kept: list[ToolMemory] = []

    @tool
    def keep(ctx: ToolMemory) -> str:
        """Keeps its context."""
        kept.append(ctx)
        return "kept"

    ran(live, {"keep": keep}, ("keep", {}))
    with refused("tool-over"):
        kept[0].create_page("late")


def test_a_tool_without_a_memory_cannot_be_decorated() -> None:
    """The decorator refuses a function that has no place for the memory, and a need nobody can read."""
    with pytest.raises(InputError):
        tool(lambda x: x)
    with refused("no-tool-need", InputError):
        tool(needs="a lot")(broken)


def test_async_tools_await_the_memory() -> None:
    """An async tool of the async twin writes with its answer as a plain one does, and fails as one."""

    async def main() -> list[dict[str, Any]]:
        store = await vmstore.aio.memory_store()
        live = await store.live_session("a", l0_tokens_max=8_000)

        @tool
        async def note(ctx: ToolMemory, fails: bool) -> str:
            """Notes something."""
            page = await ctx.create_page("noted", name=f"note-{fails}")  # type: ignore[misc]
            await ctx.annotate_page(page.page_id, "x")  # type: ignore[func-returns-value]
            if fails:
                raise ValueError("no")
            return "noted"

        heard: list[dict[str, Any]] = []
        await live.user("Go on.")
        await live.run(model_of([("note", {"fails": False}), ("note", {"fails": True})], heard), tools={"note": note})
        result = await store.query("TOOLS status, error, pages_created, pages_modified", session="a")
        answer = [row async for row in result]
        await store.close()
        return [dict(zip(("status", "error", "created", "modified"), row, strict=True)) for row in answer]

    good, bad = asyncio.run(main())
    assert (good["status"], bad["status"], bad["error"]) == ("ok", "failed", "ValueError: no")
    assert len(good["created"]) == 1 and good["modified"] == good["created"] and bad["created"] == []


def test_the_third_failure_is_warned_of_in_the_next_request(store: Store, live: Live) -> None:
    """Two failures say nothing; after the third the model reads of it, and the session knows the guard."""
    heard = ran(live, {"broken": broken}, *[("broken", {"what": str(n)}) for n in range(3)])
    dot(live)
    assert "has failed" not in json.dumps(heard[2]) and "broken has failed 3 times" in json.dumps(heard[3])
    assert [(row["type"], row["count"]) for row in rows(store, "GUARDS type, count")] == [("failure", 3)]
    assert live.debug.check().difference is None


def test_three_warnings_stand_in_a_prompt_at_most(store: Store, live: Live) -> None:
    """The fourth warning takes the place of the first; that one is away, and not lost."""

    def fail(number: int) -> Callable[[], str]:
        def failing() -> str:
            raise ValueError(f"broken {'abcd'[number]}")

        return failing

    tools: dict[str, Callable[..., Any]] = {f"t{n}": fail(n) for n in range(4)}
    for name in tools:
        ran(live, tools, *[(name, {})] * 3)
    here = [page.page for page in live.pages(tier=0) if "warning" in page.tags]
    warned = [row["warning"] for row in rows(store, "GUARDS warning")]
    assert len(warned) == 4 and here == warned[1:]


def test_a_session_that_does_not_learn_writes_no_guard(store: Store) -> None:
    """By default nothing is watched, and what tools did is logged all the same."""
    live = store.live_session("a", l0_tokens_max=8_000)
    ran(live, {"broken": broken}, *[("broken", {})] * 4)
    live.close()
    assert rows(store, "GUARDS") == rows(store, "SKILLS") == [] and len(rows(store, "TOOLS error")) == 4
    assert {row["type"] for row in map(dict, [{"type": alarm.type} for alarm in live.work.alarms()])} == {"failure"}


def test_a_session_leaves_skills_as_it_ends_and_the_next_of_the_user_has_them(store: Store) -> None:
    """What succeeded five times and what failed three times in one session stand in the prompt of the user's next one
    that is offered these tools, and in nobody else's."""
    tools: dict[str, Callable[..., Any]] = {"search": lambda q: "[]", "read": lambda n: "text", "broken": broken}
    first = store.live_session("first", l0_tokens_max=16_000, user="ann", learning="user")
    for _ in range(5):
        ran(first, tools, ("search", {"q": "x"}), ("read", {"n": 1}))
    ran(first, tools, *[("broken", {})] * 3)
    first.close()
    (skill,) = first.work.skills()
    assert (skill.skill, skill.successes) == ("search_then_read", 5)
    second = store.live_session("second", l0_tokens_max=16_000, user="ann", learning="user")
    heard = json.dumps(ran(second, tools)[0])
    assert "broken has failed 3 times" in heard and "search_then_read" in heard
    assert "has failed" not in json.dumps(ran(second, tools)[0]["messages"][:1])
    for name, user, tools_then in (("third", "bob", tools), ("fourth", "ann", {"other": lambda: ""})):
        other = store.live_session(name, l0_tokens_max=16_000, user=user, learning="user")
        heard = json.dumps(ran(other, tools_then)[0])
        assert "has failed" not in heard and "search_then_read" not in heard


def test_a_tool_is_prepared_with_what_it_reads_each_time(store: Store, live: Live) -> None:
    """The page that most calls of a tool have read is brought back into the prompt before the next."""
    home = live.claim("home is Oslo", name="claim_location_1")

    @tool
    def weather(ctx: ToolMemory) -> str:
        """Reads where to look."""
        return str(ctx.get_page("claim_location_1").content)

    ran(live, {"weather": weather}, *[("weather", {})] * 2)
    live.evict(home)
    live.pack()
    assert home not in [page.page for page in live.pages(tier=0)]
    assert live.work.suggest_pages("weather") == ["claim_location_1"]
    assert live.work.prepare("weather") == [home]
    live.pack()
    assert home in [page.page for page in live.pages(tier=0)]


def test_a_tools_duration_is_what_the_clock_says_while_it_runs() -> None:
    """The time that passes in the function is logged in milliseconds, and no other."""
    clock = ManualClock(step=0)
    store = memory_store(clock=clock)
    ran(store.live_session("a", l0_tokens_max=8_000), {"wait": lambda: clock.advance(2_500)}, ("wait", {}))
    assert rows(store, "TOOLS duration_ms") == [{"duration_ms": 2.5}]


def test_no_more_than_three_lessons_of_failure_are_brought_in(store: Store) -> None:
    """Five tools that failed three times each in one session are three warnings in the user's next one."""

    def failing(number: int) -> Callable[[], str]:
        def fail() -> str:
            raise ValueError(f"broken {'abcde'[number]}")

        return fail

    tools: dict[str, Callable[..., Any]] = {f"t{number}": failing(number) for number in range(5)}
    first = store.live_session("first", l0_tokens_max=16_000, user="ann", learning="user")
    for name in tools:
        ran(first, tools, *[(name, {})] * 3)
    second = store.live_session("second", l0_tokens_max=16_000, user="ann", learning="user")
    heard = json.dumps(ran(second, tools)[0])
    assert heard.count("has failed 3 times") == 3 and "t4 has failed" in heard
    assert json.dumps(ran(second, tools)[0]).count("has failed 3 times") == 3


def test_a_warning_says_nothing_that_its_session_masks(store: Store) -> None:
    """In a session that masks, neither the error of a tool nor the warning of it holds the address it names."""
    live = store.live_session("a", l0_tokens_max=8_000, learning="session", redaction="mask")

    def fail() -> str:
        raise ValueError("no mail to ann.smith@example.com")

    ran(live, {"fail": fail}, *[("fail", {})] * 3)
    (guard,) = live.work.guards()
    errors = [row["error"] for row in rows(store, "TOOLS error")]
    assert "example.com" not in guard.text and not any("example.com" in str(error) for error in errors)


def test_a_run_of_tools_is_decided_again_alike_and_rebuilt(store: Store, live: Live) -> None:
    """A session with effects, guards and skills is replayed without a difference, verifies, and redrives."""
    tools: dict[str, Callable[..., Any]] = {"calculate": calculate, "broken": broken, "look": lambda: "fine"}
    dot(live)
    for _ in range(5):
        ran(live, tools, ("calculate", {"expression": "1+1"}), ("look", {}))
    ran(live, tools, *[("broken", {})] * 3)
    live.close()
    assert live.debug.check().difference is None and store.verify().ok
    before = {view: store.query(view, session="a").to_dicts() for view in ("TOOLS", "GUARDS", "SKILLS")}
    assert all(before.values())
    store.admin.rebuild()
    assert {view: store.query(view, session="a").to_dicts() for view in before} == before
    store.admin.redrive("a", "again", l0_tokens_max=8_000)
    assert len(rows(store, "TOOLS pages_created WHERE tool = calculate", "again")) == 5
    assert all(row["pages_created"] for row in rows(store, "TOOLS pages_created WHERE tool = calculate", "again"))
    learned = "GUARDS type, tool, count, text", "SKILLS skill, successes, tries, tools"
    for asked in learned:
        assert rows(store, asked, "again") == rows(store, asked, "a") != []


def test_the_debugger_tells_what_tools_did_and_what_was_learned(store: Store, live: Live) -> None:
    """The events of a session have each tool that ran with its effects, each guard and each skill."""
    tools: dict[str, Callable[..., Any]] = {"calculate": calculate, "broken": broken, "look": lambda: "fine"}
    dot(live)
    for _ in range(5):
        ran(live, tools, ("calculate", {"expression": "1+1"}), ("look", {}))
    ran(live, tools, *[("broken", {})] * 3)
    live.close()
    events = [event for event in film(store, "a") if event[0] in ("tool_call", "guard", "promote")]
    assert [why for kind, why in events if kind == "tool_call"][:2] == ["ok; 1 created", "ok"]
    assert ("tool_call", "error; ValueError: no luck") in events
    assert ("guard", "failure; broken, 3 counted") in events and (
        "promote",
        "calculate_then_look; 5 of 5 tries",
    ) in events


def film(store: Store, name: str) -> list[tuple[str, str | None]]:
    """The events of a session as the debugger has them."""
    lane = store.session(name)._lane()
    rows_then = SessionRows(lane, store.admin.log, store.session(name).info().position)
    return [(event.kind, event.why) for event in happened(lane, store.admin.log, rows_then)]
