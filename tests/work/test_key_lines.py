"""The lines of an output that say most: each as it stands, errors before definitions before words."""

from __future__ import annotations

import json
import re
from types import ModuleType

import pytest

from vmstore.work import key_lines as key_lines_module
from vmstore.work import observation
from vmstore.work.key_lines import JSON_CHARS_MAX, LINES_MAX, key_lines
from vmstore.work.observation import Observation, compressed, key_facts, tokens

CHECK = """> app@1.2.0 check
> tsc --noEmit

src/main.ts(16,58): error TS2305: Module 'core' has no exported member 'Mode'.
src/view.ts:40:7 lint/noUnusedImports  FIXABLE  ━━━━━━━━━
export class Session {
  async start(path: string): Promise<void> {
    return;
 4 files changed, 207 insertions(+), 91 deletions(-)
- const old = read();
+ const fresh = write();
}
"""


def test_what_went_wrong_weighs_more_than_what_was_said() -> None:
    """Errors and the places of diagnostics come before counts, changes, definitions, and words."""
    weights = {line.text: line.weight for line in key_lines(CHECK)}
    assert weights["src/main.ts(16,58): error TS2305: Module 'core' has no exported member 'Mode'."] == 7
    assert weights["src/view.ts:40:7 lint/noUnusedImports FIXABLE"] == 7, "without its frame"
    assert weights["4 files changed, 207 insertions(+), 91 deletions(-)"] == 6
    assert weights["- const old = read();"] == weights["+ const fresh = write();"] == 5
    assert weights["export class Session {"] == weights["async start(path: string): Promise<void> {"] == 4
    assert "}" not in weights and "return;" not in weights


@pytest.mark.parametrize(
    "prose", ["A class is what a type is for.", "# this function is old", "the interface and its use"]
)
def test_a_sentence_about_a_class_defines_nothing(prose: str) -> None:
    """Only a line that begins with a definition is one: no fact says that a comment defines `is`."""
    seen = Observation("s", "p1", "p2", 1, "read", {"path": "a.py"}, f"{prose}\n" * 40, None, "", 400)
    assert not [fact for fact in key_facts(seen) if fact.text.startswith("defines")]


def test_fields_of_json_are_said_without_its_signs() -> None:
    """Names and values stand as they are; a long list is told apart, and names, ids and states weigh more."""
    flights = [
        {"flight": f"HAT{n:03}", "prices": {"economy": n, "business": 2 * n}, "note": "x" * 150} for n in range(3)
    ]
    weights = {
        line.text: line.weight for line in key_lines(json.dumps({"user_id": "mia_1", "age": 7, "flights": flights}))
    }
    assert weights["user_id: mia_1"] == 5 and weights["age: 7"] == 4
    assert "prices: economy 2, business 4" in weights and "flight: HAT002" in weights


@pytest.mark.parametrize(
    "output", ["", "{", '{"a": ', "[" * 2_000, "\x00" * 9, "{" + "1" * JSON_CHARS_MAX, "é" * 5_000]
)
def test_whatever_a_tool_gave_is_no_error(output: str) -> None:
    """What is no JSON is read as lines, and no line is longer than it may be."""
    assert all(0 < len(line.text) <= 170 for line in key_lines(output))


@pytest.mark.parametrize("module", [key_lines_module, observation])
def test_no_pattern_goes_over_blank_lines_from_each(module: ModuleType) -> None:
    """A pattern of many lines begins with none of them: a hundred thousand blank lines would take a minute."""
    patterns = [value for value in vars(module).values() if isinstance(value, re.Pattern)]
    many = [
        pattern.pattern
        for pattern in patterns
        if pattern.flags & re.MULTILINE and re.search(r"\^\\s[*+]", pattern.pattern)
    ]
    assert patterns and many + [pattern.pattern for pattern in patterns if r"\n(?=\s" in pattern.pattern] == []


def test_few_lines_are_told_apart_and_a_form_has_its_limit() -> None:
    """Of a thousand different errors eighty are kept, and a form takes at most 200 tokens of whatever it says."""
    output = "\n".join(f"src/a.ts({n},1): error TS{n}: no member 'a{n}' of what was asked" for n in range(1_000))
    assert len(key_lines(output)) == LINES_MAX
    plain = "\n".join(f"Step {n} was taken as planned." for n in range(200))
    assert "fatal: no space left" in [line.text for line in key_lines(f"{plain}\nfatal: no space left")]
    seen = Observation("s", "p1", "p2", 1, "bash", {"command": "tsc"}, output, True, "", tokens(output))
    assert 100 < compressed(seen).compressed_tokens <= 200 and compressed(seen, tokens_max=40).compressed_tokens <= 40
