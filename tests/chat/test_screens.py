"""The chat's screens, driven by Textual's own pilot against a provider on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.chat.conftest import Begin
from tests.sdk.provider import Provider

pytest.importorskip("textual", reason="python3 tools/check.py installs it")

from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from vmstore.chat.chat import ChatSession
from vmstore.chat.screens.app import ChatApp
from vmstore.chat.screens.help import Help
from vmstore.chat.screens.inspector import Inspector
from vmstore.chat.screens.panels import BudgetBar, MessagePanel, PromptInput, TopicsPanel
from vmstore.store.store import Store

Act = Callable[[ChatApp, Pilot[None]], Awaitable[None]]
WIDE, SMALL = (120, 40), (80, 24)
TRIES = 400


def on_screen(chat: ChatSession, act: Act, size: tuple[int, int] = WIDE) -> None:
    """Runs the chat on a screen of a size, and what a test does there."""

    async def run() -> None:
        app = ChatApp(chat)
        async with app.run_test(size=size) as pilot:
            await act(app, pilot)

    asyncio.run(run())


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """Waits until something holds."""
    for _ in range(TRIES):
        if holds():
            return
        await pilot.pause(0.02)
    raise AssertionError("it never came to hold")


async def say(app: ChatApp, pilot: Pilot[None], text: str) -> None:
    """Types a line and sends it."""
    app.talk.query_one(PromptInput).text = text
    await pilot.press("enter")


async def ask(app: ChatApp, pilot: Pilot[None], text: str) -> None:
    """Says something, and waits for the end of the answer."""
    await say(app, pilot, text)
    await until(pilot, lambda: app.talk._answering is None and not app.talk.query_one(PromptInput).text)


def messages(app: ChatApp) -> list[str]:
    """The texts of what is shown as said, as the store has them."""
    return [panel.entry.text if panel.entry else "" for panel in app.talk.query(MessagePanel)]


def state(app: ChatApp) -> str:
    """The line over the input."""
    return str(app.talk.query_one("#state", Static).content)


def text_of(app: ChatApp, query: str) -> str:
    """The text of a widget of the screen that is on top."""
    return str(app.screen.query_one(query, Static).content)


def test_an_answer_is_shown_with_topics_and_budget(begin: Begin) -> None:
    """What is typed is said, the answer is shown, and the panels tell its topics and the parts of its prompt."""

    async def act(app: ChatApp, pilot: Pilot[None]) -> None:
        await ask(app, pilot, "Which paint for the garden fence, and does the fence need primer?")
        assert messages(app)[1] == "In Japan." and app.talk.query(MessagePanel)[1].markdown.source == "In Japan."
        assert "fence" in str(app.talk.query_one(TopicsPanel).render())
        bar = app.talk.query_one(BudgetBar)
        assert "conversation" in str(bar.render()) and "32,000" in str(bar.render())
        assert "call 1: 9 tokens in, 3 out" in state(app)

    on_screen(begin(), act)


def test_everything_said_is_in_the_store(begin: Begin) -> None:
    """What the screen showed is what a query of the store answers afterwards."""

    async def act(app: ChatApp, pilot: Pilot[None]) -> None:
        await ask(app, pilot, "Where is Kyoto?")

    chat = begin()
    on_screen(chat, act)
    rows = chat.store.query("MESSAGES role, status", session="trip").to_dicts()
    assert rows == [{"role": "user", "status": None}, {"role": "assistant", "status": "ok"}]


def test_an_answer_is_shown_while_it_comes(begin: Begin, provider: Provider) -> None:
    """The first words of an answer stand on the screen before its last are there."""

    async def act(app: ChatApp, pilot: Pilot[None]) -> None:
        await say(app, pilot, "Where is Kyoto?")
        await until(
            pilot, lambda: len(messages(app)) == 2 and app.talk.query(MessagePanel)[1].markdown.source == "In J"
        )
        provider.released.set()
        await until(pilot, lambda: messages(app)[-1] == "In Japan.")

    on_screen(begin("waits"), act)


def test_ctrl_c_stops_an_answer_and_loses_nothing(begin: Begin, provider: Provider) -> None:
    """A stopped answer is kept as far as it came, the message too, and Ctrl+R asks for it again."""

    async def act(app: ChatApp, pilot: Pilot[None]) -> None:
        await say(app, pilot, "Where is Kyoto?")
        await until(pilot, lambda: len(messages(app)) == 2 and bool(app.talk.query(MessagePanel)[1].markdown.source))
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app.talk._answering is None)
        assert messages(app) == ["Where is Kyoto?", "In J"] and "Ctrl+R" in state(app)
        provider.released.set()
        await pilot.press("ctrl+r")
        await until(pilot, lambda: messages(app) == ["Where is Kyoto?", "In Japan."])

    chat = begin("waits")
    on_screen(chat, act)
    assert [call.status for call in chat.session.calls()] == ["aborted", "ok"]


def test_a_provider_that_fails_is_told_and_the_message_kept(begin: Begin) -> None:
    """The refusal stands on the screen, and the message in the store."""

    async def act(app: ChatApp, pilot: Pilot[None]) -> None:
        await ask(app, pilot, "Where is Kyoto?")
        assert messages(app) == ["Where is Kyoto?"]
        assert "slow down" in state(app) and "kept" in state(app)

    chat = begin("down")
    on_screen(chat, act)
    assert chat.awaits_answer()


def test_a_message_that_is_refused_stays_typed(begin: Begin, store: Store) -> None:
    """What the session does not take is refused with the reason, and is still there to be changed."""
    secret = "password = hunter2hunter2"

    async def act(app: ChatApp, pilot: Pilot[None]) -> None:
        await say(app, pilot, f"Use {secret}, please")
        await until(pilot, lambda: app.talk.query_one("#state").has_class("bad"))
        assert secret in app.talk.query_one(PromptInput).text and messages(app) == []

    store.live_session("trip", l0_tokens_max=4_000, redaction="refuse")
    on_screen(begin(), act)


def test_a_resumed_session_shows_where_it_was(begin: Begin, provider: Provider) -> None:
    """Opened again, the screen shows what was said, the topics, and that an answer is missing."""

    async def act(app: ChatApp, pilot: Pilot[None]) -> None:
        await pilot.pause()
        assert messages(app) == ["Where is Kyoto?", "In Japan.", "And Osaka?"]
        assert "kyoto" in str(app.talk.query_one(TopicsPanel).render()) and "Ctrl+R" in state(app)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: messages(app)[-1] == "In Japan." and len(messages(app)) == 4)

    chat = begin()
    chat.say("Where is Kyoto?")
    list(chat.answer())
    chat.say("And Osaka?")
    on_screen(begin(), act)


def test_the_inspector_says_what_was_sent_and_why(begin: Begin) -> None:
    """On the message under the cursor it lists the pages of its prompt, why each is there, and the request."""

    async def act(app: ChatApp, pilot: Pilot[None]) -> None:
        await ask(app, pilot, "Where is Kyoto?")
        await ask(app, pilot, "And Osaka?")
        await pilot.press("ctrl+b", "ctrl+b", "tab")
        await until(pilot, lambda: isinstance(app.screen, Inspector))
        table = app.screen.query_one(DataTable)
        await until(pilot, lambda: table.row_count == 4)
        assert [str(table.get_row_at(row)[-1]) for row in range(4)] == [
            "And Osaka?",
            "Be kind.",
            "Where is Kyoto?",
            "In Japan.",
        ]
        await pilot.press("down", "down")
        await until(pilot, lambda: "in every call since call 1" in text_of(app, "#page-facts"))
        await pilot.press("r")
        assert '"content": "And Osaka?"' in text_of(app, "#page-facts")
        await pilot.press("escape")
        assert app.screen is app.talk

    on_screen(begin(system="Be kind."), act)


def test_an_answer_ends_behind_the_inspector(begin: Begin, provider: Provider) -> None:
    """An answer that ends while another screen is on top is shown when that is closed."""

    async def act(app: ChatApp, pilot: Pilot[None]) -> None:
        await say(app, pilot, "Where is Kyoto?")
        await until(pilot, lambda: len(messages(app)) == 2)
        await pilot.press("tab")
        await until(pilot, lambda: isinstance(app.screen, Inspector))
        provider.released.set()
        await until(pilot, lambda: messages(app)[-1] == "In Japan.")
        await pilot.press("escape")
        assert app.screen is app.talk

    on_screen(begin("waits"), act)


def test_brief_messages_ask_for_short_answers(begin: Begin, provider: Provider) -> None:
    """Ctrl+T adds the wish for two lines to each message until it is pressed again."""

    async def act(app: ChatApp, pilot: Pilot[None]) -> None:
        await pilot.press("ctrl+t")
        await ask(app, pilot, "Where is Kyoto?")
        await pilot.press("ctrl+t")
        await ask(app, pilot, "And Osaka?")

    on_screen(begin(), act)
    messages_sent = provider.seen[-1].body["messages"]
    users = [message["content"] for message in messages_sent if message["role"] == "user"]
    assert ["two lines" in text for text in users] == [True, False]


def test_compaction_puts_summaries_in_the_place_of_turns(begin: Begin) -> None:
    """Ctrl+K sums up what was said before the last turns, and says how many summaries stand for it."""

    async def act(app: ChatApp, pilot: Pilot[None]) -> None:
        for number in range(6):
            await ask(app, pilot, f"Carriage {number} of the train has {number + 7} wheels and a bell. " * 9)
        await pilot.press("ctrl+k")
        assert "summar" in state(app)
        await ask(app, pilot, "And now?")
        assert "summaries" in str(app.talk.query_one(BudgetBar).render())

    on_screen(begin(), act)


def test_an_export_is_written_and_named(begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl+S writes the session for people, /export to the file that is named; a name that is taken is refused."""
    monkeypatch.chdir(tmp_path)

    async def act(app: ChatApp, pilot: Pilot[None]) -> None:
        await ask(app, pilot, "Where is Kyoto?")
        await pilot.press("ctrl+s")
        assert "trip.md" in state(app)
        for expected in ("exported to b.jsonl", "b.jsonl"):
            await say(app, pilot, "/export b.jsonl")
            await until(pilot, lambda wanted=expected: wanted in state(app))
        assert app.talk.query_one("#state").has_class("bad")

    on_screen(begin(), act)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.jsonl", "trip.md"]


def test_the_cursor_goes_further_back_than_is_shown(begin: Begin) -> None:
    """Before the first message that is shown Ctrl+B brings in those said earlier."""
    chat = begin()
    for number in range(22):
        chat.say(f"Message {number}")
        list(chat.answer())

    async def act(app: ChatApp, pilot: Pilot[None]) -> None:
        await pilot.pause()
        assert messages(app)[0] == "Message 2"
        await pilot.press(*["ctrl+b"] * 41)
        await until(pilot, lambda: messages(app)[0] == "Message 0")
        assert app.talk._cursor is not None and app.talk._cursor.entry is not None
        assert app.talk._cursor.entry.text == "In Japan." and app.talk._cursor.entry.turn == 2

    on_screen(chat, act)


def test_help_and_unknown_commands_say_what_there_is(begin: Begin) -> None:
    """F1 and /help list the keys; a slip of the keyboard is told the nearest command, and sends nothing."""

    async def act(app: ChatApp, pilot: Pilot[None]) -> None:
        await pilot.press("f1")
        assert isinstance(app.screen, Help)
        await pilot.press("escape")
        await say(app, pilot, "/compat")
        assert "/compact" in state(app) and messages(app) == []

    on_screen(begin(), act, SMALL)


def test_the_topics_have_room_only_on_a_wide_screen(begin: Begin) -> None:
    """At 80 columns the topics are hidden until Ctrl+O asks for them."""

    async def act(app: ChatApp, pilot: Pilot[None]) -> None:
        side = app.talk.query_one("#side")
        assert not side.display
        await pilot.press("ctrl+o")
        assert side.display

    on_screen(begin(), act, SMALL)


def test_a_text_drives_no_terminal(begin: Begin) -> None:
    """Control characters of a message are shown as escapes."""

    async def act(app: ChatApp, pilot: Pilot[None]) -> None:
        await pilot.pause()
        shown = app.talk.query(MessagePanel).first().query_one(".words", Static).content
        assert "\x1b" not in str(shown) and "\\x1b[2J" in str(shown)

    chat = begin()
    chat.say("Clear \x1b[2J it [/b] [red]")
    on_screen(chat, act)


def test_leaving_during_an_answer_logs_it(begin: Begin, provider: Provider) -> None:
    """Ctrl+Q during an answer stops it, waits until it is logged, and then leaves."""

    async def act(app: ChatApp, pilot: Pilot[None]) -> None:
        await say(app, pilot, "Where is Kyoto?")
        await until(pilot, lambda: len(messages(app)) == 2 and bool(app.talk.query(MessagePanel)[1].markdown.source))
        await pilot.press("ctrl+q")
        await until(pilot, lambda: app.talk._answering is None)

    chat = begin("waits")
    on_screen(chat, act)
    assert chat.session.calls()[-1].status == "aborted" and chat.entries(limit=1)[0].text == "In J"
