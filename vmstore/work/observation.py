"""An observation: one thing an agent did, what came of it and why, said shorter by what it is.

A shorter form keeps key facts: what was done to what, how it ended, counts, names and paths word for word, and what
was learned where the words say so. Nothing is made up: each fact is a piece of the observation.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from vmstore.core.text.token_estimate import CHARACTERS_PER_TOKEN
from vmstore.work.key_lines import DEFINITION, key_lines

RATIO = 0.15  # of the tokens, by itself
HEAVY, RATIO_MAX = 8, 0.3  # the weight of a fact that is to be kept, and the share of the tokens such facts may take
CLAUSE_MIN = 0.45  # of a fact: less of it says another thing
FACT_CHARS_MAX, TARGET_CHARS_MAX = 170, 80
FACTS_MAX = 12
BY_MODEL = "llm-summarize"
TAG = "observation-form"  # of the page of a form that a model wrote: it may quote what it was made from
NAMELESS = "tool"  # what is called where no source says its name
TOKENS_MIN, TOKENS_MAX = 32, 200  # of a form, whatever its share
READ_CHARS = 20_000  # of an output and a reasoning, from the beginning and from the end

_TOOLS = {
    "edit": "edit edit_files write create create_file apply_patch str_replace multiedit notebookedit",
    "read": "read read_file read_files cat open view get_page",
    "search": "grep glob search find ls list search_files web_search search_pages rg",
    "shell": "bash shell run_shell_command exec exec_command execute terminal",
}
_KINDS = {tool: kind for kind, tools in _TOOLS.items() for tool in tools.split()}
_TARGETS = ("file_path", "path", "file", "files", "filename", "command", "cmd", "query", "pattern", "url", "prompt")
_NEW = ("newText", "new_string", "content", "new_str", "replacement_text")
_OLD = ("oldText", "old_string", "old_str")
_RUNNERS = re.compile(r"\b(pytest|jest|vitest|go test|cargo test|npm (?:run )?test|mvn test|unittest|tox)\b")
_LABEL = re.compile(r"^\s*(root cause|cause|solution|fix|changed|tested|learning|lesson|result|note)\s*:\s*", re.I)
_LABELLED = re.compile(r"\n(?=[ \t]*(?:root cause|solution|learning|lesson|result|changed|tested|fix)\s*:)", re.I)
_LABELS = {"learning": 10, "lesson": 10, "root cause": 9, "cause": 8, "solution": 9, "fix": 8, "result": 8}
_CUES = re.compile(
    r"\b(because|so that|requires?|required|must|never|always|instead of|caused by|due to|turned out|in order to|"
    r"to prevent|to avoid|per RFC)\b",
    re.I,
)
_COUNT = r"\d+ (?:passed|failed|errors?|skipped|total|warnings?)"
_TESTS = (
    re.compile(r"(?<=Tests:)\s+(.+)$", re.M),
    re.compile(rf"\b\d+ (?:passed|failed)(?:, {_COUNT})*", re.I),
    re.compile(r"^(?:OK|FAILED) \(?[\w=, ]*\)?$|^Ran \d+ tests? in [\d.]+s$", re.M),
)
_PASSED = re.compile(r"^[ \t]*[✓✔] (.+?)(?: \(\d+ m?s\))?$", re.M)
_FAILED = re.compile(r"^(?:FAILED|FAIL|✕|✗|×)\s+(\S.*)$|^[ \t]*[✕✗×] (.+?)(?: \(\d+ m?s\))?$", re.M)
_ERROR = re.compile(
    r"\b(?:[A-Za-z_.]*(?:Error|Exception): .*|error(?:\[\w+\])?: .*|fatal: .*|invalid_\w+:? .*)$|"
    r"^.*(?:command not found|[Nn]o such file|[Pp]ermission denied).*$",
    re.M,
)
_ADDED = re.compile(r"^[ \t]*[-*] (?:Added|Updated|Removed|Changed|Fixed|Renamed)\b.*$", re.M)
_NAMED = re.compile(r"\b[a-z]+\.[a-zA-Z]\w*\([\w'\", ]*\)")
_PLAIN_CALLS = frozenset(["toString", "replace", "split", "join", "digest", "update", "log", "append", "format"])
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`\"'(])|\n\s*\n|\n(?=[ \t]*[-*] )")
_CLAUSE = re.compile(r", (?=or |and |\w)|; | \(")
_LONG_PATH = re.compile(r"(?<![\w.])(?:/[^\s/]+){3,}/([^\s/]+/[^\s/]+)")
_PLACE = re.compile(r"^cd \S+ && ")
_STANDARD = re.compile(r"\b(?:RFC|ISO|IEC|IEEE|CVE|PEP)[ -]\d+")
_EXIT = re.compile(r"^(?:Exit code|exit status|Process exited with code):? ?(\d+)", re.M | re.I)


class WrittenForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A form of an observation as a model wrote it: the page of the call, a summary, pieces word for word."""

    observation: str
    summary: str
    key_facts: list[str]


class Observation(NamedTuple):
    """A call of a tool with its answer: what it was asked and gave, why, and the pages of both.

    `failed` is None where nobody said how it ended. `tokens` are estimated, of all of it. `written` is the form that a
    model wrote, where one did.
    """

    session: str
    page: str
    result: str
    turn: int
    tool: str
    arguments: Any
    output: str
    failed: bool | None
    reasoning: str
    tokens: int
    written: WrittenForm | None = None

    @property
    def text(self) -> str:
        """The whole of it, as it stands."""
        given = self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)
        why = f"\nReasoning: {self.reasoning}" if self.reasoning else ""
        return f"Tool: {self.tool}\nInput: {given}{why}\nOutput: {self.output}"


class CompressedObservation(NamedTuple):
    """A shorter form of an observation: `ratio` is its tokens by those of the whole.

    `lossy` says that something is left out, `reconstructible` that the whole can be had again.
    """

    summary: str
    key_facts: tuple[str, ...]
    original_tokens: int
    compressed_tokens: int
    ratio: float
    method: str
    lossy: bool
    reconstructible: bool


class KeyFact(NamedTuple):
    """A piece of an observation, and how much it weighs."""

    text: str
    weight: int


def compressed(
    of: Observation, *, target_ratio: float = RATIO, preserve_key_facts: bool = True, allow_lossy: bool = True,
    tokens_max: int = TOKENS_MAX, facts: Sequence[KeyFact] | None = None, kind: str | None = None,
) -> CompressedObservation:  # fmt: skip
    """A shorter form by what the observation is; whole where it may lose nothing or nothing is shorter.

    The summary takes the target's share of the tokens, up to `tokens_max`; with `preserve_key_facts` it takes what the
    heaviest facts need where some do not fit, up to three tenths. A fact that does not fit is cut where a clause ends.
    `facts` and `kind` are those of `facts_of` and `kind_of`, where they are at hand. A model's form is told as it is.
    """
    if of.written is not None and allow_lossy and (spent := tokens(of.written.summary)) <= tokens_max:
        ratio, pieces = round(spent / of.tokens, 3), tuple(of.written.key_facts)
        return CompressedObservation(of.written.summary, pieces, of.tokens, spent, ratio, BY_MODEL, True, True)
    facts = facts_of(of) if facts is None else facts
    listed = tuple(fact.text for fact in heaviest(facts))
    whole = CompressedObservation(of.text, listed, of.tokens, of.tokens, 1.0, "verbatim", False, True)
    if not allow_lossy or not facts:
        return whole
    room = min(max(int(of.tokens * target_ratio), TOKENS_MIN), tokens_max)
    kept = chosen(facts, room)
    if preserve_key_facts and any(fact.weight >= HEAVY and at not in kept for at, fact in enumerate(facts)):
        needed = sum(tokens(fact.text) + 1 for fact in facts if fact.weight >= HEAVY)
        kept = chosen(facts, min(max(room, needed), max(int(of.tokens * RATIO_MAX), room)))
    summary = "; ".join(kept[at] for at in sorted(kept))
    spent = tokens(summary)
    if not summary or spent >= of.tokens:
        return whole
    method = "semantic-extract" if (kind or kind_of(of)) in ("command", "error") else "template"
    return CompressedObservation(summary, listed, of.tokens, spent, round(spent / of.tokens, 3), method, True, True)


def chosen(facts: Sequence[KeyFact], room: int) -> dict[int, str]:
    """The heaviest facts that fit in so many tokens, by their place."""
    kept: dict[int, str] = {}
    for place, fact in sorted(enumerate(facts), key=lambda placed: -placed[1].weight):
        if text := _fitting(fact.text, room - 1):
            room -= tokens(text) + 1
            kept[place] = text
    return kept


def kind_of(of: Observation) -> str:
    """The kind of thing that was done: error, test, edit, read, search, or command for any other."""
    tested = any(test.search(of.output) for test in _TESTS)
    if of.failed or (of.failed is None and not tested and _ERROR.search(_ends(of.output))):
        return "error"
    if _RUNNERS.search(_target(of.arguments).lower()):
        return "test"
    kind = _KINDS.get(of.tool.lower(), "command")
    return "command" if kind == "shell" else kind


def family_of(of: Observation) -> str:
    """The kind of tool that was called: edit, read, search or shell; of any other its name."""
    return _KINDS.get(of.tool.lower(), of.tool)


def key_facts(of: Observation) -> list[KeyFact]:
    """The heaviest facts of an observation in their order: what was done, how it ended, what was learned."""
    return heaviest(facts_of(of))


def heaviest(facts: Sequence[KeyFact]) -> list[KeyFact]:
    """The heaviest of some facts, twelve at most, in their order."""
    heavy = sorted(facts, key=lambda fact: -fact.weight)[:FACTS_MAX]
    return [fact for fact in facts if fact in heavy]


def action_of(of: Observation) -> str:
    """The command that was given, or the tool with its file or query."""
    is_shell = _KINDS.get(of.tool.lower()) == "shell"
    does = _PLACE.sub("", _target(of.arguments)) if is_shell else f"{of.tool} {_target(of.arguments)}"
    return _cut(_LONG_PATH.sub(r"…/\1", does.strip()) or of.tool, TARGET_CHARS_MAX) or NAMELESS


def facts_of(of: Observation, kind: str | None = None) -> list[KeyFact]:
    """All facts of an observation, the lines of its output that say most after those of its kind."""
    kind = kind or kind_of(of)
    found, learned = [*_BY_KIND[kind](of)], [*_learned(of, kind)]
    # What a reading found out is the point of it, not what was read.
    read_for = kind in ("error", "read") and sum(fact.weight >= HEAVY for fact in learned) > 1
    kept: list[KeyFact] = []
    seen: list[str] = []
    lines = (KeyFact(line.text, line.weight) for line in key_lines(_ends(of.output)))
    for fact in (KeyFact(action_of(of), 4 if read_for else 10), *found, *learned, *lines):
        plain = re.sub(r"\W+", "", fact.text).lower()
        if plain and not any(plain in other for other in seen):
            seen.append(plain)
            kept.append(fact)
    return kept


def tests_in(of: Observation) -> str:
    """How many tests passed and failed, as the output says; empty where it does not."""
    found = next((match for test in _TESTS if (match := test.search(of.output[-READ_CHARS:]))), None)
    return "" if found is None else _flat(found[0])


def tokens(text: str) -> int:
    """Estimated tokens of a text."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


class CountedForm(Protocol):
    """A shorter form as its tokens are counted."""

    @property
    def original_tokens(self) -> int: ...
    @property
    def compressed_tokens(self) -> int: ...
    @property
    def method(self) -> str: ...


def statistics(forms: Iterable[CountedForm]) -> dict[str, Any]:
    """How much shorter some forms are together: totals, the ratio, and how often each method was used."""
    listed = list(forms)
    before, after = sum(form.original_tokens for form in listed), sum(form.compressed_tokens for form in listed)
    return {
        "observations": len(listed),
        "original_tokens": before,
        "compressed_tokens": after,
        "tokens_saved": before - after,
        "ratio": round(after / before, 3) if before else None,
        "methods": dict(Counter(form.method for form in listed)),
    }


# ---- facts by kind


def _test(of: Observation) -> Iterator[KeyFact]:
    yield from _counts(of, 10)
    for name in _matches(_FAILED, of.output)[:3]:
        yield KeyFact(_cut(name), 9)
    if names := _matches(_PASSED, of.output):
        yield KeyFact(_cut(", ".join(_unlike(names))), 7)


def _unlike(names: Sequence[str]) -> Iterator[str]:
    """Each name without the words that the one before it begins with too, where at least two do."""
    before: list[str] = []
    for name in names:
        said = name.split()
        alike = next((at for at, (a, b) in enumerate(zip(said, before, strict=False)) if a != b), 0)
        yield " ".join(said[alike:]) if alike > 1 else name
        before = said


def _edit(of: Observation) -> Iterator[KeyFact]:
    given = of.arguments if isinstance(of.arguments, dict) else {}
    said, whole = _flat(of.output), _texts_in(given)
    new, old = ("\n".join(str(given[key]) for key in keys if given.get(key)) for keys in (_NEW, _OLD))
    for line in _matches(_ADDED, whole)[:6]:
        yield KeyFact(_cut(line.strip(" -*"), 90), 4)
    if names := list(dict.fromkeys(DEFINITION.findall(new or whole))):
        yield KeyFact(_cut("defines " + ", ".join(names[:6])), 8)
    if calls := [call for call in dict.fromkeys(_NAMED.findall(whole)) if _method(call) not in _PLAIN_CALLS]:
        yield KeyFact(_cut("uses " + ", ".join(calls[:3]), 90), 8)
    if new or old:
        yield KeyFact(f"{_lines(new)} lines for {_lines(old)}" if old else f"{_lines(new)} lines", 5)
    yield KeyFact(_cut(said), 8 if len(said) < TARGET_CHARS_MAX else 4)


def _read(of: Observation) -> Iterator[KeyFact]:
    yield KeyFact(f"{_lines(of.output):,} lines", 8)
    if names := list(dict.fromkeys(DEFINITION.findall(of.output[:READ_CHARS]))):
        yield KeyFact(_cut("defines " + ", ".join(names[:8])), 6)
    if title := next((line.strip("# ") for line in of.output.splitlines() if line.startswith("#")), ""):
        yield KeyFact(_cut(title, TARGET_CHARS_MAX), 5)


def _search(of: Observation) -> Iterator[KeyFact]:
    lines = [line for line in of.output.splitlines() if line.strip()]
    yield KeyFact(f"{len(lines):,} lines found" if lines else "nothing found", 9)
    yield KeyFact(_cut(", ".join(line.strip()[:60] for line in lines[:3])), 5)


def _command(of: Observation) -> Iterator[KeyFact]:
    if code := _EXIT.search(of.output):
        yield KeyFact(f"exit {code[1]}", 8)
    yield from _counts(of, 9)
    lines = [line for line in of.output.splitlines() if line.strip()]
    if lines and not of.output.lstrip().startswith(("{", "[")):
        yield KeyFact(_cut(lines[0], 90), 4)
        yield KeyFact(_cut(lines[-1]), 6)


def _error(of: Observation) -> Iterator[KeyFact]:
    found = _ERROR.search(_ends(of.output))
    said = found[0] if found else next((line for line in of.output.splitlines() if line.strip()), "")
    yield KeyFact(_cut(f"failed: {said}" if of.failed else said).strip('"'), 10)
    yield from _counts(of, 9)
    if code := _EXIT.search(of.output):
        yield KeyFact(f"exit {code[1]}", 5)


_BY_KIND = {"test": _test, "edit": _edit, "read": _read, "search": _search, "command": _command, "error": _error}


def _counts(of: Observation, weight: int) -> Iterator[KeyFact]:
    if found := tests_in(of):
        yield KeyFact(found, weight)


def _learned(of: Observation, kind: str) -> Iterator[KeyFact]:
    """Sentences that say what was found out: labelled ones, and those that give a reason."""
    for text in (of.reasoning, of.output if kind in ("error", "edit") else ""):
        for piece in _SENTENCE.split(_LABELLED.sub("\n\n", _ends(text))):
            sentence = _flat(piece)
            if label := _LABEL.match(sentence):
                word, said = label[1].lower(), sentence[label.end() :]
                yield KeyFact(_cut(f"{word}: {said}" if word in ("learning", "lesson") else said), _LABELS.get(word, 7))
            elif _CUES.search(sentence):
                yield KeyFact(_cut(sentence), 8 if _STANDARD.search(sentence) else 6)


# ---- pieces


def _target(arguments: Any) -> str:
    """The thing a tool is used on: its file, its command, its query."""
    if isinstance(arguments, str):
        return _flat(arguments)
    if not isinstance(arguments, dict):
        return ""
    for key in _TARGETS:
        if value := arguments.get(key):
            return _flat(", ".join(map(str, value)) if isinstance(value, list) else str(value))
    return _flat(" ".join(f"{k}={v}" for k, v in arguments.items() if isinstance(v, str | int | float)))


def _texts_in(value: Any) -> str:
    """Every text in some arguments, a line each."""
    if isinstance(value, dict | list):
        return "\n".join(_texts_in(one) for one in (value.values() if isinstance(value, dict) else value))
    return value if isinstance(value, str) else ""


def _matches(pattern: re.Pattern[str], text: str) -> list[str]:
    """The matches of a pattern: of each the first group that it has."""
    found = pattern.finditer(_ends(text))
    return [_flat(next((group for group in match.groups() if group), match[0])) for match in found]


def _method(call: str) -> str:
    return call.partition("(")[0].rpartition(".")[2]


def _ends(text: str) -> str:
    return text if len(text) <= 2 * READ_CHARS else f"{text[:READ_CHARS]}\n{text[-READ_CHARS:]}"


def _lines(text: str) -> int:
    return len(text.splitlines())


def _flat(text: str) -> str:
    return " ".join(text.split())


def _cut(text: str, chars: int = FACT_CHARS_MAX) -> str:
    flat = _flat(text)
    return flat if len(flat) <= chars else flat[: chars - 1].rstrip() + "…"


def _fitting(text: str, room: int) -> str:
    """A text in so many tokens: whole, else up to where a clause of it ends; empty where too little of it fits."""
    if tokens(text) <= room:
        return text
    part = text[: max(room, 0) * CHARACTERS_PER_TOKEN]
    ends = [found.start() for found in _CLAUSE.finditer(part)]
    cut = part[: ends[-1]] if ends else ""
    return cut if len(cut) >= len(text) * CLAUSE_MIN else ""
