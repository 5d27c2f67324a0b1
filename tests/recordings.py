"""Stand-ins for recorded sessions: files of the formats and shapes of real ones, made where those are absent.

Each has the counts of the recording that it stands in for (484 calls, 18 of them aborted, two
compactions, and so on), so every test runs on either. What is said in them is drawn from a seed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vmstore.core.page import Modality
from vmstore.core.text.token_estimate import estimate

Record = dict[str, Any]

SENTENCES = (
    "Let me check {0}.ts since it moved to packages/{1}/src.",
    "The {0} of `{1}.ts` takes {2} ms, which is over the limit of {3}.",
    "We decided to keep {0} in packages/{1} because the other {2} callers use it.",
    "Running npm run {0} fails with exit code {3} after {2} tests.",
    "I will move the {0} helper next to {1} and update its {2} imports.",
)
NOUNS = ("theme", "loader", "agent", "session", "parser", "router", "cache", "dialog", "export", "prompt")


class Speech:
    """What people, models and tools say, the same for the same seed."""

    def __init__(self, seed: str) -> None:
        self._chance = random.Random(seed)

    def sentences(self, count: int) -> str:
        """Some sentences of a conversation about code."""
        chance = self._chance
        return " ".join(
            chance.choice(SENTENCES).format(
                chance.choice(NOUNS), chance.choice(NOUNS), chance.randint(2, 900), chance.randint(1, 99)
            )
            for _ in range(count)
        )

    def program(self, lines: int) -> str:
        """What a tool prints of a file."""
        made = []
        for n in range(lines):
            name, other = self._chance.choices(NOUNS, k=2)
            made.append(f"    {n}: const {name}{self._chance.randint(1, 999)} = await {other}.{name}(options, {n});")
        return "\n".join(made)

    def pick(self, *among: Any) -> Any:
        """One of some things."""
        return self._chance.choice(among)


def make(folder: Path) -> None:
    """Makes every stand-in in a folder, under the names that the recordings have."""
    for name, text in files():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def files() -> Iterator[tuple[str, str]]:
    """Every stand-in: its name, and what is in it."""
    yield "pi/before-compaction.jsonl", lines(pi())
    yield "tau-bench/airline_even_tasks.json", json.dumps(list(runs()))
    yield "claude-code/representative_messages.jsonl", lines(representative())
    yield "claude-code/edge_cases.jsonl", lines(edge_cases())
    yield "swe-agent/marshmallow-1867_prompt_per_step.traj", json.dumps(prompt_per_step())
    for name, calls, ends, tool in (
        ("i_got_id_demo", 21, True, False),
        ("katy", 18, True, False),
        ("marshmallow-1867_default", 14, True, False),
        ("marshmallow-1867_function_calling", 11, False, True),
    ):
        yield f"swe-agent/{name}.traj", json.dumps(history(name, calls, ends, tool))
    for name in ("customer_service", "max_messages", "memgpt_agent_with_convo"):
        yield f"letta-af/{name}.af", json.dumps(agent(name))
    yield "locomo/locomo_dev5.json", json.dumps([conversation(n) for n in range(5)])


def lines(records: Any) -> str:
    """Records, one on each line."""
    return "".join(json.dumps(record) + "\n" for record in records)


def weight(text: str) -> int:
    """The tokens that a text is taken for."""
    return estimate(text.encode(), Modality.TEXT)


# ---- pi

KEPT = {359: 293, 628: 551}  # compactions: their place in the file, and that of the first entry that stays
PERSONS, USES = 55, 434
DOUBLES, SPARE = 14, 6  # answers with two calls, and how many of them are left to make the places fit
CHANGED, RUN = (8, 30, 120, 240, 400, 480, 770, 800, 850, 880), (640, 700, 760)
ASIDE = sorted([*((n, "change") for n in CHANGED), *((n, "bash") for n in RUN)])
ABORTED = ("",) * 12 + ("t", "t", "wc", "wc", "ccc", "tw")  # the blocks of each: thinking, words, calls
OPAQUE = 2_700  # tokens that pi sends and never writes down


class Pi:
    """One session of pi as it grows, with what its prompt holds."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._speech = Speech("pi")
        self._weights: list[int] = []  # of each entry, in tokens
        self._tools: dict[str, str] = {}  # the tool of each call
        self._first = 0  # the first entry in the prompt
        self._summary = 0

    def add(self, record: Record, text: str = "") -> None:
        """Appends an entry."""
        minute, second = divmod(len(self.records), 60)
        at = f"2025-12-08T{minute // 60:02}:{minute % 60:02}:{second:02}.000Z"
        self.records.append({"type": record["type"], "timestamp": at, **record})
        self._weights.append(weight(text))

    def person(self) -> None:
        """A person asks."""
        words = "Read the sources." if len(self.records) < 3 else self._speech.sentences(2)
        self.message({"role": "user", "content": [{"type": "text", "text": words}]}, words)

    def message(self, message: Record, text: str) -> None:
        """Appends a message."""
        self.add({"type": "message", "message": message}, text)

    def answer(self, blocks: str, stop: str, output: int = 90) -> list[str]:
        """The model answers in some blocks; the names of its calls."""
        content: list[Record] = []
        for kind in blocks:
            if kind == "t":
                content.append({"type": "thinking", "thinking": self._speech.sentences(2), "thinkingSignature": ""})
            elif kind == "w":
                content.append({"type": "text", "text": self._speech.sentences(3)})
            else:
                name, place = self._speech.pick("bash", "read", "edit"), f"call_{len(self.records)}_{len(content)}"
                arguments = {"command": self._speech.sentences(1)}
                self._tools[place] = name
                content.append({"type": "toolCall", "id": place, "name": name, "arguments": arguments})
        sent = self.sent() if blocks else 0
        usage = self._usage(sent, output if blocks else 0)
        text = json.dumps(content) if content else ""
        fields = {"api": "anthropic-messages", "provider": "anthropic", "model": "m-1", "usage": usage}
        self.message({"role": "assistant", "content": content, **fields, "stopReason": stop}, text)
        return [block["id"] for block in content if block["type"] == "toolCall"]

    def sent(self) -> int:
        """The tokens of what the model is sent next."""
        return OPAQUE + 75 + self._summary + sum(self._weights[self._first :]) if len(self.records) > 2 else 2775

    def _usage(self, sent: int, output: int) -> Record:
        cached = sent * 9 // 10 if len(self.records) > 3 else 0
        cost = {"input": (sent - cached) * 5e-6, "output": output * 25e-6, "cacheRead": cached * 5e-7, "cacheWrite": 0}
        usage = {"input": sent - cached, "output": output, "cacheRead": cached, "cacheWrite": 0}
        return {**usage, "totalTokens": sent + output, "cost": {**cost, "total": sum(cost.values())}}

    def result(self, place: str) -> None:
        """A tool answers a call."""
        text = self._speech.program(30)
        fields = {"toolCallId": place, "toolName": self._tools[place], "isError": False}
        self.message({"role": "toolResult", "content": [{"type": "text", "text": text}], **fields}, text)

    def aside(self, kind: str) -> None:
        """What happens beside the conversation: a setting that changes, or a command that a person runs."""
        if kind == "change":
            self.add({"type": "thinking_level_change", "thinkingLevel": "minimal"})
        else:
            fields = {"command": "ls", "output": "AGENTS.md\nLICENSE\n", "exitCode": 0, "cancelled": False}
            self.message({"role": "bashExecution", **fields, "truncated": False}, "AGENTS.md LICENSE")

    def compact(self, first: int) -> None:
        """Puts a summary in the place of all before an entry."""
        summary = "# Context checkpoint\n\n" + "\n".join(f"- {self._speech.sentences(1)}" for _ in range(40))
        self.add({"type": "compaction", "summary": summary, "firstKeptEntryIndex": first, "tokensBefore": self.sent()})
        self._first, self._summary = first, weight(summary)


def pi() -> list[Record]:
    """A session of 484 calls in 31 turns, 18 of them aborted and one failed, compacted twice."""
    made, ends = Pi(), turn_ends()
    made.add({"type": "session", "id": "ffae836b-9420-4060-ac13-7745215f90ff", "cwd": "/w", "provider": "anthropic"})
    uses, doubles, persons = USES, DOUBLES, PERSONS
    aside = iter(ASIDE)
    waiting = next(aside)
    while ends:
        made.person()
        persons -= 1
        turn = -(-uses // len(ends))
        while turn:
            place = len(made.records)
            # What must stand at one place does, in every turn; before it the entries are made to fit.
            room = min((fixed - place for fixed in (*KEPT, *KEPT.values()) if fixed >= place), default=99)
            if place in KEPT:
                made.compact(KEPT[place])
            elif room <= 1:
                made.person()
                persons -= 1
            elif waiting and place >= waiting[0] and room != 2:
                made.aside(waiting[1])
                waiting = next(aside, None)
            else:
                double = room == 3 or (doubles > SPARE and turn == 2) or doubles >= uses
                for name in made.answer(("c", "wc", "tc", "twc")[uses % 4] + "c" * double, "toolUse"):
                    made.result(name)
                uses, doubles, turn = uses - 1, doubles - double, turn - 1
        if len(made.records) in KEPT:
            made.compact(KEPT[len(made.records)])
        if len(made.records) in KEPT.values():
            made.person()
            persons -= 1
        made.answer(*ends.pop())
    for _ in range(persons):
        made.person()
    return made.records


def turn_ends() -> list[tuple[str, str]]:
    """How each turn ends, last first: in words, broken off, or in an error."""
    broken = [*((blocks, "aborted") for blocks in ABORTED), ("", "error")]
    ends = [("w", "stop")] * 31
    for n, end in enumerate(broken):
        ends.insert(1 + 2 * n if n < 15 else 32 + n, end)
    return ends


# ---- tau-bench

ANSWERS = 1163  # of all hundred runs


def runs() -> Iterator[Record]:
    """Twenty-five tasks, each tried four times: a customer of an airline, an agent and its tools."""
    speech = Speech("tau-bench")
    for number in range(100):
        answers = ANSWERS // 100 + (number < ANSWERS % 100)
        records: list[Record] = [{"role": "system", "content": "# Airline agent policy\n\n" + speech.sentences(60)}]
        for n in range(answers):
            if n % 2:
                call = {"id": f"call_{number}_{n}", "type": "function"}
                function = {"name": "get_user_details", "arguments": json.dumps({"user_id": f"user_{number}"})}
                records.append({"content": None, "role": "assistant", "tool_calls": [{**call, "function": function}]})
                booked = {
                    "name": "get_user_details",
                    "content": json.dumps({"flights": [flight(n) for n in range(number, number + 20)]}),
                }
                records.append({"role": "tool", "tool_call_id": call["id"], **booked})
                continue
            asks = f"I want to fly from JFK to SEA on May {n + 1}, and my user id is user_{number}."
            if n == 4 and number % 5 == 0:
                asks = speech.pick("Let's use my credit card for the payment.", "We decided to fly on Monday instead.")
            records.append({"role": "user", "content": asks})
            records.append({"content": f"Flight {n} is free. Shall I book it?", "role": "assistant"})
        info = {"task": {"user_id": f"user_{number}"}, "source": "user"}
        trial = {"task_id": number // 4 * 2, "trial": number % 4}
        yield {**trial, "reward": float(number % 2), "info": info, "traj": records}


def flight(number: int) -> Record:
    """One flight as the airline's tools tell it."""
    ways = (("JFK", "SEA"), ("SFO", "BOS"), ("DEN", "MIA"))
    origin, destination = ways[number % 3]
    times = {"departs": f"{number % 24:02}:15", "arrives": f"{(number + 5) % 24:02}:40"}
    return {"flight_number": f"HAT{number:03}", "origin": origin, "destination": destination, **times}


# ---- Claude Code


def spoken(session: str, number: int, role: str, content: Any, **more: Any) -> Record:
    """One record of Claude Code."""
    name = f"{session}_{number:03}"
    message: Record = {"role": role, "content": content}
    if role == "assistant":
        usage = {"input_tokens": 10 + number, "output_tokens": 20}
        message |= {"id": name, "type": "message", "model": "m-1", "stop_reason": "end_turn", "usage": usage}
    around = {"parentUuid": None, "isSidechain": False, "userType": "human", "cwd": "/tmp", "sessionId": session}
    at = f"2025-06-14T10:{number:02}:00Z"
    return {"type": role, "timestamp": at, **around, "version": "1.0.0", "uuid": name, "message": message, **more}


def words(text: str) -> list[Record]:
    """The content of a message that is only text."""
    return [{"type": "text", "text": text}]


def used(number: int) -> list[Record]:
    """The content of an answer that calls a tool."""
    return [{"type": "tool_use", "id": f"tool_{number}", "name": "Bash", "input": {"command": "ls"}}]


def returned(number: int, text: str) -> list[Record]:
    """The content of a tool's result."""
    return [{"type": "tool_result", "tool_use_id": f"tool_{number}", "content": text, "is_error": False}]


def representative() -> Iterator[Record]:
    """A short conversation as it usually is: four questions, five answers, two of them by a tool."""
    speech, session = Speech("claude"), "test_session"
    shape = ("q", "a", "q", "u", "r", "a", "q", "u", "r", "a", "q")
    for number, kind in enumerate(shape, 1):
        content = {"u": used(number), "r": returned(number - 1, speech.program(9))}.get(kind)
        more = {"toolUseResult": "done"} if kind == "r" else {}
        role = "assistant" if kind in "au" else "user"
        yield spoken(session, number, role, content or words(speech.sentences(3)), **more)
    yield {"type": "summary", "summary": "What the user learned", "leafUuid": f"{session}_011"}


def edge_cases() -> Iterator[Any]:
    """Nineteen lines that no well-behaved program writes, with seven that nobody can read."""
    session = "edge_cases"
    yield spoken(session, 1, "user", words("Some **bold** text, `code` and a list:\n- one"))
    yield spoken(session, 2, "assistant", words("All of it is read."))
    yield spoken(session, 3, "user", words("A long one. " * 80))
    yield spoken(session, 4, "assistant", used(4))
    yield spoken(session, 5, "user", returned(4, "Error: it failed"), toolUseResult="Error: it failed")
    yield spoken(session, 6, "user", words("Caveat: The messages below were generated by the user while running"))
    yield spoken(session, 7, "user", words("<command-name>test</command-name>"))
    yield spoken(session, 8, "user", words("<local-command-stdout>out</local-command-stdout>"))
    yield spoken(session, 9, "assistant", words("The long text wraps."))
    yield {**spoken(session, 10, "user", None), "message": {"role": "user", "contenst": returned(10, "made")}}
    yield {**spoken(session, 11, "user", None), "message": "error"}
    yield spoken(session, 12, "user", words("Signs: caf\u00e9, \u4f60\u597d, \U0001f600"))
    yield from ("massive error", {"silly": "this"}, 42, [1])
    yield spoken(session, 17, "assistant", used(17))
    yield spoken(session, 18, "user", ["wow error"])
    yield {"type": "summary", "summary": "Edge cases", "leafUuid": f"{session}_011"}


# ---- SWE-agent


def asked(tool: bool, who: str) -> list[Record]:
    """The system prompt and the task that every run begins with."""
    speech = Speech("swe-agent")
    system = {"role": "system", "content": speech.sentences(40), "agent": who}
    return [system, {"role": "user", "content": f"We're solving this issue:\n{speech.sentences(20)}", "agent": who}]


def acted(speech: Speech, number: int, last: bool, tool: bool, who: str) -> list[Record]:
    """An answer with its action, and what that printed."""
    action = "submit" if last else f"open src/{number}.py"
    text = speech.sentences(2)
    answer: Record = {"role": "assistant", "content": text, "thought": text, "action": action, "agent": who}
    seen: Record = {"role": "tool" if tool else "user", "content": speech.program(12 + number), "agent": who}
    if tool:
        function = {"name": action.partition(" ")[0], "arguments": "{}"}
        answer["tool_calls"] = [{"function": function, "id": f"call_{number}", "type": "function"}]
        seen["tool_call_ids"] = [f"call_{number}"]
    return [answer, seen]


def history(name: str, calls: int, ends: bool, tool: bool) -> Record:
    """A run that wrote down its conversation, and no request; it may end with its last answer."""
    speech, who = Speech(name), "main" if tool else "primary"
    items = asked(tool, who)
    for number in range(calls):
        items += acted(speech, number, number == calls - 1, tool, who)
    if ends:
        items.pop()
    steps = [
        {"action": message["action"], "response": message["content"], "observation": "", "thought": message["thought"]}
        for message in items
        if message["role"] == "assistant"
    ]
    return {"environment": "main", "trajectory": steps, "history": items, "info": {"exit_status": "submitted"}}


def prompt_per_step() -> Record:
    """A run whose every step has the messages it was sent; from the seventh on the oldest outputs are left out."""
    speech = Speech("prompt per step")
    value, steps = asked(True, "main"), []
    for number in range(13):
        answer, seen = acted(speech, number, number == 12, True, "main")
        seen["content"] = "\n".join(seen["content"].split("\n")[: 7 if number == 0 else None])
        value += [answer, seen]
        old = {3 + 2 * n for n in range(max(0, number - 5))}
        shown = [
            {**record, "content": f"Old environment output: ({record['content'].count(chr(10)) + 1} lines omitted)"}
            if at in old
            else record
            for at, record in enumerate(value)
        ]
        steps.append(
            {
                "action": answer["action"],
                "observation": seen["content"],
                "response": answer["content"],
                "thought": answer["thought"],
                "state": {"open_file": "n/a"},
                "messages": shown,
            }
        )
    return {"trajectory": steps, "history": list(value), "info": {"exit_status": "submitted"}, "environment": "main"}


# ---- letta


def kept(role: str, text: str, number: int, **more: Any) -> Record:
    """One message of an agent's file."""
    at = f"2025-04-01T03:{number // 60:02}:{number % 60:02}.5"
    rest = {"name": None, "tool_call_id": None, "tool_calls": [], "tool_returns": [], "created_at": at, "model": "m-1"}
    return {"role": role, "content": [{"type": "text", "text": text}], **rest, **more}


def agent(name: str) -> Record:
    """An agent: four messages, thirty-one, or ninety-one of which eleven are in its context, behind a summary."""
    speech = Speech(name)
    rounds = {"customer_service": 1, "max_messages": 10, "memgpt_agent_with_convo": 29}[name]
    items = [kept("system", f"You are an agent. {speech.sentences(4)}", 0)]
    for n in range(rounds):
        items.append(kept("user", json.dumps({"type": "user_message", "message": speech.sentences(1)}), 3 * n + 1))
        call = {"id": f"call-{n}", "type": "function", "function": {"name": "send_message", "arguments": "{}"}}
        items.append(kept("assistant", speech.sentences(1), 3 * n + 2, tool_calls=[call]))
        items.append(kept("tool", json.dumps({"status": "OK", "n": n}), 3 * n + 3, tool_call_id=f"call-{n}"))
    stays = list(range(len(items)))
    if name == "memgpt_agent_with_convo":
        text = "Note: prior messages (70 of 88 total messages) have been hidden from view due to conversation memory"
        alert = json.dumps({"type": "system_alert", "message": f"{text} constraints.\nThe following is a summary."})
        items.insert(80, kept("user", alert, 200))
        # The system message is rebuilt after the last answer, as an agent does that changed its memory.
        items.insert(len(items) - 1, kept("system", f"You are an agent. {speech.sentences(4)}", 201))
        stays = [len(items) - 2, *range(80, len(items) - 2), len(items) - 1]
    named = "memgpt_agent" if name == "memgpt_agent_with_convo" else name
    block = {"label": "human", "value": f"\n{speech.sentences(1)}", "limit": 5000}
    return {
        "name": named,
        "agent_type": "memgpt_agent",
        "description": "An agent",
        "core_memory": [block],
        "llm_config": {"model": "m-1"},
        "tools": [{"name": "send_message", "json_schema": {"name": "send_message", "parameters": {}}}],
        "messages": items,
        "in_context_message_indices": stays,
        "system": "You are an agent.",
        "version": "0.10.0",
    }


# ---- LoCoMo


def conversation(number: int) -> Record:
    """Two people over some months, what a reader noted of each session, and questions with their evidence."""
    speech, first, second = Speech(f"locomo {number}"), "Ann", "Ben"
    talk: Record = {"speaker_a": first, "speaker_b": second}
    names: list[str] = []
    for n in range(1, 9):
        talk[f"session_{n}_date_time"] = f"1:{10 + n} pm on {n} May, 2023"
        records = []
        for at in range(1, 15):
            names.append(f"D{n}:{at}")
            records.append({"speaker": (first, second)[at % 2], "dia_id": names[-1], "text": speech.sentences(1)})
        talk[f"session_{n}"] = records
    questions = [
        {"question": f"What moved ({at})?", "answer": "the theme", "evidence": [name], "category": 1 + at % 4}
        for at, name in enumerate(names)
    ]
    seen = {f"session_{n}_observation": {first: [[speech.sentences(1), f"D{n}:1"]]} for n in range(1, 9)}
    summaries = {f"session_{n}_summary": speech.sentences(2) for n in range(1, 9)}
    sample = {"sample_id": f"conv-{number}", "conversation": talk, "qa": questions, "observation": seen}
    return {**sample, "session_summary": summaries, "event_summary": {}}
