"""A port that manages its window: what the model is sent, what the store holds of it, what happens where it fails."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

import vmstore
from tests.proxy.running import RunningProxy, chat, proxied
from tests.proxy.upstream import (
    Act,
    RawRequest,
    answer,
    begin_stream,
    end_stream,
    events,
    piece,
    saying,
    send,
    upstream,
)
from vmstore.proxy.frames import WindowAsk
from vmstore.proxy.window import Window
from vmstore.store.recorder import record_asked

WINDOW = 2_000
MANAGED = f"0,window={WINDOW}"
FACT = "The harbour master keeps the ledger in drawer seven."
QUESTION = "Where does the harbour master keep the ledger?"
ANSWER = "In drawer seven."
BEFORE = [FACT]
for number in range(60):
    BEFORE += [
        f"Noted, number {number}. " + "It is so and will stay so for a while. " * 5,
        f"Then tell of town number {number}, its bridges and its mills, at length. " * 4,
    ]
TALK = [*BEFORE[:-1], QUESTION]


def asked(far: Any, place: int = -1) -> dict[str, Any]:
    """A request as the upstream got it."""
    body: dict[str, Any] = json.loads(far.seen[place].body)
    return body


def one_session(path: Path) -> Any:
    """The only session of a store, for as long as its store is open."""
    store = vmstore.open(path)
    (info,) = store.sessions()
    return store, store.session(info.session)


def test_what_fits_the_window_passes_byte_for_byte(path: Path) -> None:
    """A request within the window is sent as it came, and offers no tool."""
    body = b'{ "model":"m" , "messages": [{"role":"user","content":"caf\\u00e9"}] }'
    with upstream(saying()) as far, proxied(path, "--upstream", far.url, port=MANAGED) as proxy:
        assert proxy.ask(body).body == answer()
        assert proxy.settled(1)["managed"] == 0
        assert far.seen[0].body == body


def test_a_large_request_is_sent_within_the_window_with_what_answers_it(path: Path) -> None:
    """What goes out fits, ends with the question, and says what was stated first of all."""
    with upstream(saying(ANSWER)) as far, proxied(path, "--upstream", far.url, port=f"{MANAGED},rounds=0") as proxy:
        assert proxy.say(*TALK).body == answer(ANSWER)
        figures = proxy.settled(1)
        sent = asked(far)
    assert len(json.dumps(sent)) <= 4 * WINDOW < len(json.dumps(chat(*TALK)))
    assert sent["messages"][-1]["content"] == QUESTION
    assert "drawer seven" in json.dumps(sent) and "tools" not in sent
    assert (figures["managed"], figures["unmanaged"]) == (1, 0)


def test_the_context_of_a_call_is_what_was_sent_and_the_session_holds_what_was_asked(path: Path) -> None:
    """The first request's history becomes turns and pages, each request reads back as it went out."""
    with upstream(saying(ANSWER)) as far, proxied(path, "--upstream", far.url, port=f"{MANAGED},rounds=0") as proxy:
        proxy.say(*TALK)
        proxy.say(*TALK, ANSWER, "Are you sure?")
        proxy.settled(2)
        sent = [asked(far, 0), asked(far, 1)]
    store, session = one_session(path)
    with store:
        assert [session.wire.request(call=call.call) for call in session.calls()] == sent
        assert (session.info().turns, session.info().calls) == (62, 2)
        transcript = [session.content(page.page).decode() for page in session.pages() if page.type == "transcript"]
        assert sorted(transcript) == sorted([*TALK, ANSWER, "Are you sure?", ANSWER])
        assert session.wire.response(call=1).beside["window"] == {"packed": True, "tokens_max": WINDOW, "round": 0}
        assert store.verify().ok


def test_what_the_memory_told_is_told_to_nobody_again(path: Path) -> None:
    """The blocks that were sent are pages of the memory's own, which neither recall nor a next request repeats."""
    with upstream(saying(ANSWER)) as far, proxied(path, "--upstream", far.url, port=f"{MANAGED},rounds=0") as proxy:
        proxy.say(*TALK)
        proxy.say(*TALK, ANSWER, QUESTION.replace("Where", "In which drawer"))
        proxy.settled(2)
        assert json.dumps(asked(far)).count("<recalled") <= 1
    store, session = one_session(path)
    with store:
        own = {page.page for page in session.pages(type="index")}
        assert own and not own & {quote.page for quote in session.memory.find_quote("drawer seven").quotes}
        assert "virtual-context" not in json.dumps(session.memory.assemble(tokens=100_000).request)


def calling(tool: str = "find_quote", *, beside: tuple[str, ...] = ()) -> Act:
    """Asks a tool once where tools are offered, others beside it, then answers; as a stream where one is asked for."""

    def act(request: RawRequest, connection: socket.socket) -> None:
        body = json.loads(request.body)
        if not body.get("tools") or body["messages"][-1]["role"] == "tool":
            if body.get("stream"):
                begin_stream(connection)
                for data in events("In drawer ", "seven."):
                    piece(connection, data)
                end_stream(connection)
            else:
                send(connection, answer(ANSWER))
            return
        calls = [
            {
                "index": n,
                "id": f"c{n}",
                "type": "function",
                "function": {"name": name, "arguments": '{"text": "ledger"}'},
            }
            for n, name in enumerate([tool, *beside])
        ]
        message = {"role": "assistant", "content": "Let me look.", "tool_calls": calls}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
            send(
                connection,
                json.dumps({"id": "c-0", "object": "chat.completion", "model": "m", "choices": [choice]}).encode(),
            )
            return
        begin_stream(connection)
        for delta, finish in (
            ({**message, "tool_calls": None}, None),
            ({"tool_calls": calls}, None),
            ({}, "tool_calls"),
        ):
            value = {"id": "c-0", "object": "chat.completion.chunk", "model": "m"}
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            piece(connection, b"data: " + json.dumps({**value, "choices": [choice]}).encode() + b"\n\n")
        piece(connection, b"data: [DONE]\n\n")
        end_stream(connection)

    return act


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_of_the_memory_s_is_answered_within_one_answer(path: Path, stream: bool) -> None:
    """The client of OpenAI gets one answer with the words of both rounds, and no call; the store has both calls."""
    with upstream(calling()) as far, proxied(path, "--upstream", far.url, port=MANAGED) as proxy:
        client = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="sk-0", max_retries=0)
        messages: Any = chat(*TALK)["messages"]
        if stream:
            with client.chat.completions.stream(model="m", messages=messages) as parts:
                choice = parts.get_final_completion().choices[0]
        else:
            choice = client.chat.completions.create(model="m", messages=messages).choices[0]
        assert (choice.message.content, choice.finish_reason) == (f"Let me look.\n\n{ANSWER}", "stop")
        assert not choice.message.tool_calls and choice.message.role == "assistant"
        assert proxy.settled(2)["rounds"] == 1
        last = asked(far)["messages"]
        assert last[-1]["role"] == "tool" and FACT in json.loads(last[-1]["content"])["quotes"][0]["excerpt"]
        sent = [asked(far, 0), asked(far, 1)]
    store, session = one_session(path)
    with store:
        assert [session.wire.request(call=call.call) for call in session.calls()] == sent
        assert {call.turn for call in session.calls()} == {61}
        assert [call.component for call in session.calls()] == [None, "tool_loop"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_of_the_client_s_is_the_client_s(path: Path, stream: bool) -> None:
    """Beside one of the memory's it alone reaches the client, numbered as the first, and no further round is asked."""
    own = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
    with upstream(calling(beside=("read",))) as far, proxied(path, "--upstream", far.url, port=MANAGED) as proxy:
        client = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="sk-0", max_retries=0)
        fields: Any = {"model": "m", "messages": chat(*TALK)["messages"], "tools": [own]}
        if stream:
            with client.chat.completions.stream(**fields) as parts:
                choice: Any = parts.get_final_completion().choices[0]
        else:
            choice = client.chat.completions.create(**fields).choices[0]
        assert [call.function.name for call in choice.message.tool_calls] == ["read"]
        assert choice.finish_reason == "tool_calls" and len(far.seen) == 1


def test_a_tool_of_the_client_s_with_the_same_name_stays_the_client_s(path: Path) -> None:
    """The memory's tool of that name is not offered."""
    own = {"type": "function", "function": {"name": "find_quote", "parameters": {"type": "object", "properties": {}}}}
    with upstream(calling()) as far, proxied(path, "--upstream", far.url, port=MANAGED) as proxy:
        calls = proxy.ask(chat(*TALK, tools=[own])).json()["choices"][0]["message"]["tool_calls"]
        assert [call["function"]["name"] for call in calls] == ["find_quote"]
        assert [tool["function"]["name"] for tool in asked(far)["tools"]] == [
            "find_quote",
            "remember_when",
            "recall_all",
        ]


def test_a_model_that_only_asks_is_stopped(path: Path) -> None:
    """After its rounds it is told that there are none, and what the client gets then ends as an answer."""

    def act(request: RawRequest, connection: socket.socket) -> None:
        call = {"id": "c", "type": "function", "function": {"name": "recall_all", "arguments": "{}"}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        send(
            connection, json.dumps({"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]}).encode()
        )

    with upstream(act) as far, proxied(path, "--upstream", far.url, port=f"{MANAGED},rounds=2") as proxy:
        choice = proxy.say(*TALK).json()["choices"][0]
        assert choice["finish_reason"] == "stop" and "tool_calls" not in choice["message"]
        assert len(far.seen) == 4
        assert "no_rounds_left" in asked(far)["messages"][-1]["content"]


def anthropic_act(request: RawRequest, connection: socket.socket) -> None:
    """Answers as Anthropic does: asks the memory first."""
    body = json.loads(request.body)
    last = body["messages"][-1]["content"]
    is_answered = isinstance(last, list) and last[0].get("type") == "tool_result"
    blocks: list[Any] = [{"type": "text", "text": ANSWER}]
    if not is_answered:
        asks = {"type": "tool_use", "id": "t1", "name": "find_quote", "input": {"text": "ledger"}}
        blocks = [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "text", "text": "I look."},
            asks,
        ]
    stop = "end_turn" if is_answered else "tool_use"
    usage = {"input_tokens": 9, "output_tokens": 5}
    head = {"id": "m1", "type": "message", "role": "assistant", "model": "claude-x"}
    if not body.get("stream"):
        whole = {**head, "content": blocks, "stop_reason": stop, "stop_sequence": None, "usage": usage}
        return send(connection, json.dumps(whole).encode())
    begin_stream(connection)
    start = {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    parts: list[Any] = [{"type": "message_start", "message": start}]
    for n, block in enumerate(blocks):
        begun = {**block, **{key: "" for key in ("text", "thinking", "signature") if key in block}}
        deltas = {
            "text": [{"type": "text_delta", "text": block.get("text")}],
            "thinking": [
                {"type": "thinking_delta", "thinking": block.get("thinking")},
                {"type": "signature_delta", "signature": block.get("signature")},
            ],
            "tool_use": [{"type": "input_json_delta", "partial_json": json.dumps(block.get("input"))}],
        }[block["type"]]
        if block["type"] == "tool_use":
            begun["input"] = {}
        parts.append({"type": "content_block_start", "index": n, "content_block": begun})
        parts += [{"type": "content_block_delta", "index": n, "delta": delta} for delta in deltas]
        parts.append({"type": "content_block_stop", "index": n})
    parts.append({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage})
    for part in [*parts, {"type": "message_stop"}]:
        piece(connection, f"event: {part['type']}\ndata: {json.dumps(part)}\n\n".encode())
    return end_stream(connection)


@pytest.mark.parametrize("stream", [False, True])
def test_anthropic_s_client_gets_one_message_of_all_rounds(path: Path, stream: bool) -> None:
    """Blocks are numbered on, thoughts go back to the model with their signature, and the call is the memory's."""
    with upstream(anthropic_act) as far, proxied(path, "--upstream", far.url, port=MANAGED) as proxy:
        client = anthropic.Anthropic(base_url=proxy.url, api_key="sk-0", max_retries=0)
        fields: Any = {
            "model": "claude-x",
            "max_tokens": 99,
            "system": "Be brief.",
            "messages": chat(*TALK)["messages"],
        }
        if stream:
            with client.messages.stream(**fields) as parts:
                message = parts.get_final_message()
        else:
            message = client.messages.create(**fields)
        texts = [block.text for block in message.content if block.type == "text"]
        assert texts == ["I look.", ANSWER] and message.stop_reason == "end_turn"
        assert not any(block.type == "tool_use" for block in message.content)
        proxy.settled(2)
        sent = asked(far)
    assert sent["messages"][-2]["content"][0] == {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    assert sent["system"] == "Be brief." and FACT in json.dumps(sent["messages"][-1])
    store, session = one_session(path)
    with store:
        assert session.wire.request(call=2) == sent


@pytest.mark.parametrize("stream", [False, True])
def test_gemini_s_calls_of_the_memory_are_answered_too(path: Path, stream: bool) -> None:
    """A stream of events, or a whole answer: the client gets the words alone."""

    def act(request: RawRequest, connection: socket.socket) -> None:
        body = json.loads(request.body)
        is_answered = "functionResponse" in body["contents"][-1]["parts"][0]
        call = {"functionCall": {"name": "find_quote", "args": {"text": "ledger"}}}
        content = {"role": "model", "parts": [{"text": ANSWER} if is_answered else call]}
        value = json.dumps({"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}).encode()
        if not stream:
            return send(connection, value)
        begin_stream(connection)
        piece(connection, b"data: " + value + b"\r\n\r\n")
        return end_stream(connection)

    contents = [{"role": ("user", "model")[n % 2], "parts": [{"text": text}]} for n, text in enumerate(TALK)]
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    with upstream(act) as far, proxied(path, "--upstream", far.url, port=MANAGED) as proxy:
        reply = proxy.ask({"contents": contents}, path=f"/v1beta/models/g:{method}").body
        value = json.loads(reply.removeprefix(b"data: "))
        assert value["candidates"][0]["content"]["parts"] == [{"text": ANSWER}]
        assert FACT in json.dumps(asked(far)["contents"][-1]) and len(far.seen) == 2


@pytest.mark.parametrize(("texts", "shown"), [(TALK, True), (["Well. " * 1_000, "Noted.", QUESTION], False)])
def test_nobody_speaks_twice_in_a_row(path: Path, texts: list[str], shown: bool) -> None:
    """User and assistant take turns in what is sent, as they do in what came, whatever the memory puts between."""
    with upstream(saying()) as far, proxied(path, "--upstream", far.url, port=f"{MANAGED},window=1000") as proxy:
        proxy.say(*texts)
        assert proxy.settled(1)["managed"] == 1
        roles = [message["role"] for message in asked(far)["messages"]]
    assert roles == [("user", "assistant")[place % 2] for place in range(len(roles))]
    assert ("<virtual-context" in json.dumps(asked(far))) is shown


def test_a_masked_session_is_managed_and_the_model_is_sent_what_was_said(path: Path) -> None:
    """The upstream gets the messages as they came, what the memory tells and the store hold placeholders."""
    texts = [f"{FACT} Write to ada.lovelace@example.org.", *TALK[1:-1], "Mail ada.lovelace@example.org: where is it?"]
    with upstream(saying(ANSWER)) as far, proxied(path, "--upstream", far.url, port=f"{MANAGED},redact=mask") as proxy:
        proxy.say(*texts)
        assert proxy.settled(1)["managed"] == 1
        messages = asked(far)["messages"]
    assert messages[-1]["content"] == texts[-1]
    assert sum("ada.lovelace" in message["content"] for message in messages) == 1 and FACT in json.dumps(messages)
    store, session = one_session(path)
    with store:
        assert "ada.lovelace" not in json.dumps(session.wire.request(call=1)) and session.info().turns == 61
        assert session.wire.messages(call=1)[-1]["content"] == "Mail [EMAIL 1]: where is it?"
        assert b"ada.lovelace" not in b"".join(session.content(page.page) for page in session.pages())


def test_a_cut_goes_through_no_secret(path: Path) -> None:
    """Of a long message that is cut nothing of a masked value reaches the store, wherever the cut falls."""
    key = "sk-proj-" + "Zk3vQ8xW1bT7yR5n" * 3
    places = range(144, 164, 4)  # words before it; a text is cut after some 800 characters
    with upstream(saying()) as far, proxied(path, "--upstream", far.url, port=f"{MANAGED},redact=mask") as proxy:
        for words in places:
            proxy.say("Hi.", "Noted.", f"{'word ' * words}{key} {'word ' * 2_000}", headers={"x-vmstore-session": "s"})
            assert "[…]" in json.dumps(asked(far), ensure_ascii=False)
        assert proxy.settled(len(places))["managed"] == len(places)
    store, session = one_session(path)
    with store:
        sent = json.dumps([session.wire.request(call=call.call) for call in session.calls()])
        assert key[8:12] not in sent and "[API_KEY 1]" in sent


def test_a_small_window_is_managed_without_tools() -> None:
    """Where the definitions of all tools leave no room for a prompt, none are offered."""
    own = {"type": "function", "function": {"name": "read", "description": "read " * 300}}
    asks = chat("I live in Oslo.", "Noted.", "word " * 1_200, "Noted.", "And?", tools=[own])
    with vmstore.memory_store() as store:
        record_asked(store, "s", asks, None)
        session = store.session("s")
        session.memory.facts.extract()
        session.memory.tags.give(session.pages()[0].page, "home")
        made = Window().managed(store, "s", asks, asks, WindowAsk("s", 1_000, 10, [], b""))
        assert made.body is not None and (made.tools, len(made.body) <= 4_000) == ((), True)
        wider = Window().managed(store, "s", asks, asks, WindowAsk("s", 1_800, 10, [], b""))
        assert len(wider.tools) == 6


def test_topics_and_facts_are_asked_where_there_are_any(path: Path) -> None:
    """A session that has topics and facts offers their tools; what is collapsed is told less of from then on."""
    answers = iter(
        [
            ("expand_topic", {"tag": "harbour"}),
            ("query_facts", {"subject": "user"}),
            ("collapse_topic", {"tag": "harbour", "depth": "none"}),
            ("expand_topic", {"tag": "nothing"}),
        ]
    )

    def act(request: RawRequest, connection: socket.socket) -> None:
        if not (offers := json.loads(request.body).get("tools")) or (asking := next(answers, None)) is None:
            return send(connection, answer(ANSWER))
        assert {tool["function"]["name"] for tool in offers} >= {"query_facts", "expand_topic", "collapse_topic"}
        function = {"name": asking[0], "arguments": json.dumps(asking[1])}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": function}],
        }
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        return send(connection, json.dumps({"id": "c", "object": "chat.completion", "choices": [choice]}).encode())

    with vmstore.open(path) as store:
        record_asked(store, "s", chat(*TALK), None)
        session = store.session("s")
        session.memory.tags.give(session.memory.find_quote("drawer seven").quotes[0].page, "harbour")
        record_asked(store, "s", chat(*TALK, "Noted.", "I live in Oslo."), None)
        assert session.memory.facts.extract()
    with upstream(act) as far, proxied(path, "--upstream", far.url, port=f"{MANAGED},session=s") as proxy:
        assert proxy.say(*TALK, "Noted.", QUESTION).json()["choices"][0]["message"]["content"] == ANSWER
        proxy.settled(5)
        results = [json.loads(message["content"]) for message in asked(far)["messages"] if message["role"] == "tool"]
    assert results[0]["texts"][0]["text"] == FACT and results[0]["depth"] == "full"
    assert results[1]["facts"][0]["object"] == "Oslo"
    assert results[2]["depth"] == "none" and "its topics are harbour" in results[3]["error"]["message"]
    store, session = one_session(path)
    with store:
        assert session.memory.tags.all()[0].depth == "none"


def test_a_memory_that_fails_lets_the_request_pass_and_says_so(path: Path) -> None:
    """A window that holds nothing sends the client's own bytes on, and the call says that it was not packed."""
    body = json.dumps({**chat(*TALK), "tools": [{"type": "function", "function": {"name": "x" * 9_000}}]}).encode()
    with upstream(saying()) as far, proxied(path, "--upstream", far.url, port="0,window=1000") as proxy:
        assert proxy.ask(body).status == 200
        figures = proxy.settled(1)
        assert far.seen[0].body == body
        assert (figures["managed"], figures["unmanaged"]) == (0, 1)
        assert "a window of 1,000 tokens" in figures["problems"][-1]
    store, session = one_session(path)
    with store:
        window = session.wire.response(call=1).beside["window"]
        assert window["packed"] is False and "a window of 1,000 tokens" in window["why"]
        assert session.wire.request(call=1) == json.loads(body) and session.info().turns == 61


def test_a_writer_that_is_killed_lets_the_request_pass(path: Path) -> None:
    """While another one is started the client's own request goes on."""
    import subprocess

    with upstream(saying()) as far, proxied(path, "--upstream", far.url, port=MANAGED) as proxy:
        writer = subprocess.run(["pgrep", "-P", str(proxy.process.pid)], capture_output=True, text=True, check=True)
        subprocess.run(["kill", "-9", *writer.stdout.split()], check=True)
        assert proxy.say(*TALK).status == 200
        assert asked(far)["messages"] == chat(*TALK)["messages"]


def test_a_key_in_the_conversation_goes_on_and_is_not_recorded(path: Path) -> None:
    """The upstream is sent it, the store has what stands for it, and the window is managed all the same."""
    key = "sk-proj-Zk3vQ8xW1bT7yR5n"
    texts = [*TALK[:-1], f"{QUESTION} My key is {key}."]
    with upstream(saying()) as far, proxied(path, "--upstream", far.url, port=f"{MANAGED},rounds=0") as proxy:
        proxy.say(*texts, headers={"authorization": f"Bearer {key}"})
        assert proxy.settled(1)["managed"] == 1
        assert asked(far)["messages"][-1]["content"] == texts[-1]
    store, session = one_session(path)
    with store:
        assert not any(key.encode() in session.content(page.page) for page in session.pages())


def test_a_proxy_that_was_started_again_goes_on_with_a_managed_conversation(path: Path) -> None:
    """What it was sent of it does not matter: the client's next request is known by its end."""

    def once(proxy: RunningProxy, *texts: str) -> None:
        proxy.say(*texts)
        proxy.settled(1)

    with upstream(saying(ANSWER)) as far:
        for texts in (TALK, [*TALK, ANSWER, "And the seal?"]):
            with proxied(path, "--upstream", far.url, port=f"{MANAGED},rounds=0") as proxy:
                once(proxy, *texts)
                assert proxy.stop() == 0
    store, session = one_session(path)
    with store:
        assert (session.info().calls, session.info().turns) == (2, 62)


@pytest.mark.parametrize("setting", ["window=12", "window=many", "rounds=11", "markers=yes"])
def test_a_setting_that_cannot_be_is_refused(path: Path, setting: str) -> None:
    """The command says which, and does not start."""
    from vmstore.proxy.ports import port_settings, upstreams_of

    with pytest.raises(vmstore.InputError) as raised:
        port_settings(f"8001,{setting}", upstreams_of([]))
    assert raised.value.code == "no-port-setting"
