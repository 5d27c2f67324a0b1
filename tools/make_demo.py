"""Writes the session that ships with vmstore: an agent plans a system with its user over 220 turns.

    python3 tools/make_demo.py            writes vmstore/shell/demo.jsonl
    python3 tools/make_demo.py --check    exits 1 unless the shipped file is what this would write

Its words are in demo_text/: story.txt the conversation, files.txt what the tools read, phrases.txt what
the agent says before it uses one, system.txt and summary.txt. Tool results, times, usage, provenance
and the compaction are worked out here from a fixed seed, so the same words always give the same bytes.

A turn of the story is `> ` what the human says, a `$ ` line for each request for tools, `! ` a decision
as `topic<replaced+rests_on: decision :: because`, and the answer. Tools: r file, s search, b benchmark,
c costs, m metrics, t ticket, l log, with `&` between two in parallel. `== ` begins a new sitting.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from demo_tools import SECONDS, TOOLS, dice, sections, words

TARGET = Path(__file__).resolve().parent.parent / "vmstore" / "shell" / "demo.jsonl"
MODEL = "planner-large-2"
CHARS_PER_TOKEN = 3.6
TOKENS_AROUND = 1_850  # the system prompt and the tools' schemas, in every request
CACHE_LIFE_S = 3_600
TURNS_KEPT = 12  # how many turns the compaction leaves in the context
SETBACKS_S = {64: 7, 171: 12}  # turns whose answer is stamped by a clock that was just set back
DOLLARS = (3e-6, 3e-7, 1.5e-5)  # a token in, read from the cache, out


class Turn(NamedTuple):
    """One turn of the story; `steps` are requests for tools, each of one call or of a parallel pair."""

    said: str
    steps: list[list[str]]
    answer: str
    decision: str


def story() -> Iterator[Turn | str]:
    """The turns in order; a string is a new sitting's time or the compaction."""
    for part in re.split(r"\n\n(?=> |== |-- )", words("story")):
        if not part.startswith("> "):
            yield part
            continue
        other_lines, *lines = part.removeprefix("> ").split("\n")
        steps = [line[2:].split(" & ") for line in lines if line.startswith("$ ")]
        decision = [line[2:] for line in lines if line.startswith("! ")]
        answer = [line for line in lines if not line.startswith(("$ ", "! "))]
        yield Turn(other_lines, steps, "\n".join(answer), "".join(decision))


class Recorder:
    """Plays the story and keeps what a chat client would have written down."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.ids: dict[str, int] = {}  # where in lines each id stands
        self.clock, self.called, self.prefix = datetime(2026, 3, 2, 9), datetime(2026, 3, 1), 0
        self.kept: list[int] = []  # characters of the messages now in the context, the system's apart
        self.users: list[tuple[str, int]] = []  # id of each human message and its place in kept
        self.evidence: list[str] = []
        self.decisions: dict[str, str] = {}
        self.reversed: dict[str, str] = {}  # reversed decision -> the one that replaced it
        self.costs, self.hits, self.last_answer, self.calls = ["", ""], "", "", 0
        self.phrases = sections("phrases")
        self.said = dict.fromkeys(self.phrases, 0)

    def add(self, message: dict[str, Any], gap: float, vm: dict[str, Any]) -> str:
        """Appends a message `gap` seconds later and gives its id."""
        self.clock += timedelta(seconds=gap)
        name = str(vm.pop("id", f"msg_{len(self.lines):03}"))
        self.lines.append({**message, "vm": {"id": name, "at": f"{self.clock:%Y-%m-%dT%H:%M:%SZ}", **vm}})
        if message["role"] != "system":
            self.kept.append(chars(message))
        self.ids[name] = len(self.lines) - 1
        return name

    def answer(self, message: dict[str, Any], vm: dict[str, Any], setback: int = 0) -> str:
        """Appends one answer of the model with what its call used."""
        key = f"call{len(self.lines)}"
        tokens = round(sum(self.kept) / CHARS_PER_TOKEN) + TOKENS_AROUND
        cold = (self.clock - self.called).total_seconds() > CACHE_LIFE_S or dice(key, 1, 60) == 1
        cached = 0 if cold else min(self.prefix, tokens) // 64 * 64
        out = round(chars(message) / CHARS_PER_TOKEN) + dice(key + "out", 8, 130)
        latency = 640 + out * 13 + (tokens - cached) // 24 + dice(key + "ms", 0, 900)
        cost = sum(n * usd for n, usd in zip((tokens - cached, cached, out), DOLLARS, strict=True))
        self.called, self.prefix = self.clock, tokens
        usage = {"tokens_in": tokens, "tokens_cached": cached, "tokens_out": out}
        vm |= {"model": MODEL, "usage": usage, "latency_ms": latency, "cost_usd": round(cost, 6)}
        return self.add(message, -setback if setback else latency / 1000, vm)

    def phrase(self, kind: str) -> str | None:
        """The next thing to say before using a tool, nothing two times in five."""
        n = self.said[kind] = self.said[kind] + 1
        choice = self.phrases[kind]
        return None if n % 5 in (2, 4) else choice[n * 7 % len(choice)]

    def call(self, content: str | None, calls: list[tuple[str, dict[str, Any]]]) -> list[str]:
        """Appends one request for tools and gives the call ids."""
        made = []
        for name, asked in calls:
            self.calls += 1
            function = {"name": name, "arguments": json.dumps(asked, ensure_ascii=False)}
            made.append({"id": f"call_{self.calls:04}", "type": "function", "function": function})
        self.answer({"role": "assistant", "content": content, "tool_calls": made}, {})
        return [str(call["id"]) for call in made]

    def step(self, tools: list[str]) -> None:
        """Plays one request for tools and their results."""
        specs = [(tool.lstrip("!")[0], tool.lstrip("!")[2:]) for tool in tools]
        results = [(kind, *TOOLS[kind](spec)) for kind, spec in specs]
        asked = [(TOOLS[kind].__name__, args) for kind, args, _ in results]
        call_ids = self.call(self.phrase(specs[0][0]), asked)
        for (kind, _, result), call_id in zip(results, call_ids, strict=True):
            message = {"role": "tool", "tool_call_id": call_id, "content": result}
            name = self.add(message, dice(call_id, *SECONDS[kind]), {})
            if kind in "bcmtrl" and not result.startswith("error"):
                self.evidence.append(name)
            if kind == "c" and (total := re.search(r"^total +([\d,]+)", result, re.M)):
                self.costs = [self.costs[-1], total[1]]
            if kind == "s":
                self.hits = result.split()[0]

    def decide(self, decision: str, other_text: str) -> None:
        """Plays the recording of a decision: a claim with its provenance."""
        head, _, text = decision.partition(": ")
        (named, *rests), (text, because) = head.split("+"), text.split(" :: ")
        topic, _, old = named.partition("<")
        number = 1 + sum(key.startswith(f"{topic}_") for key in self.decisions)
        asked = {"topic": topic, "decision": text, "because": because}
        if old:
            asked["supersedes"] = f"{topic}/{old}"
            self.reversed[f"{topic}_{old}"] = f"{topic}_{number}"
        (call_id,) = self.call(self.phrase("d"), [("remember_decision", asked)])
        heard = [name for name in (other_text, self.last_answer) if name]
        links = {"derives": heard + self.evidence[-5:] + [f"claim_{key}" for key in rests]}
        links |= {"supersedes": [f"claim_{topic}_{old}"]} if old else {}
        content = f"Decision recorded: {topic}/{number}: {text}. Because {because}."
        content += f" Replaces {topic}/{old}." if old else ""
        vm = {"id": f"claim_{topic}_{number}", "type": "claim", **links}
        self.add({"role": "tool", "tool_call_id": call_id, "content": content}, 1, vm)
        self.decisions[f"{topic}_{number}"], self.evidence = text, []

    def turn(self, n: int, turn: Turn) -> None:
        """Plays one turn: the human, the tools, the decision, the answer."""
        think = dice(f"think{n}", 14, 55) + len(turn.said) // 3 + dice(f"pause{n}", 0, 9) ** 2 * 4
        value = self.add({"role": "user", "content": turn.said}, think if n > 1 else 0, {})
        self.users.append((value, len(self.kept) - 1))
        for tools in turn.steps:
            self.step(tools)
        if turn.decision:
            self.decide(turn.decision, value)
        text, vm = turn.answer, dict[str, Any]()
        if text.startswith("§"):
            kind, _, text = text[1:].partition(" ")
            vm["type"] = kind
        if named := list(dict.fromkeys(re.findall(r"\{(?:q|ref):(\w+)\}", text))):
            vm["references"] = [f"claim_{key}" for key in named]
        message = {"role": "assistant", "content": self.filled(text)}
        answered = self.answer(message, vm, SETBACKS_S.get(n, 0))
        self.last_answer = "" if turn.decision else answered  # what follows a decision is another matter

    def filled(self, text: str) -> str:
        """An answer with its marks replaced by what the tools said and the decisions say."""
        text = re.sub(r"\{q:(\w+)\}", lambda mark: self.decisions[mark[1]], text)
        text = re.sub(r"\{ref:(\w+)\}", lambda mark: mark[1].replace("_", "/"), text)
        swaps = "; ".join(f"{old} → {new}".replace("_", "/") for old, new in self.reversed.items())
        marks = {"hits": self.hits, "cost": self.costs[1], "cost_1": self.costs[0], "reversed": swaps}
        for mark, value in marks.items():
            text = text.replace(f"{{{mark}}}", value)
        return text

    def compact(self) -> None:
        """Replaces everything before the last twelve turns by a summary."""
        keeps, place = self.users[-TURNS_KEPT]
        topics = sorted(self.decisions, key=lambda key: key.split("_")[0])  # stable: numbers stay in order
        keys = [key for key in topics if key not in self.reversed]
        standing = [f"- {key.replace('_', '/')}: {self.decisions[key]}." for key in keys]
        gone = [f"{old} (by {new})".replace("_", "/") for old, new in self.reversed.items()]
        text = words("summary").format(standing="\n".join(standing), gone=", ".join(gone), turns=len(self.users))
        self.kept = self.kept[place:]
        self.add({"role": "user", "content": text}, 9, {"type": "summary", "keeps_from": keeps})
        self.prefix, self.last_answer = TOKENS_AROUND, ""


def chars(message: dict[str, Any]) -> int:
    """The characters of a message that a model is charged for."""
    calls = [call["function"] for call in message.get("tool_calls", [])]
    return len(message["content"] or "") + sum(len(call["name"]) + len(call["arguments"]) for call in calls)


def session() -> str:
    """The whole session as JSONL."""
    recorder, n = Recorder(), 0
    title = "Tidemark v2: storage, api, auth, deployment and observability"
    recorder.lines.append({"vm": {"session": "planning-220", "title": title, "agent": "planner", "user": "dana"}})
    recorder.add({"role": "system", "content": words("system")}, 0, {})
    for item in story():
        if isinstance(item, Turn):
            recorder.turn(n := n + 1, item)
        elif item.startswith("== "):
            recorder.clock = datetime.strptime(item, "== %Y-%m-%dT%H:%M:%SZ")
            recorder.evidence = []
        else:
            recorder.compact()
    return "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in recorder.lines)


def main(arguments: list[str]) -> int:
    """Writes the shipped session, or with --check compares it."""
    made = session().encode()
    if "--check" not in arguments:
        TARGET.write_bytes(made)
        return 0
    if TARGET.exists() and TARGET.read_bytes() == made:
        return 0
    print(f"{TARGET} is not what its generator writes; run: python3 tools/make_demo.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
