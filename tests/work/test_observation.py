"""Observations said shorter: within their tokens, with every key fact, and nothing that the whole does not say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore.errors import InputError
from vmstore.work.disclosure import (
    LIMITS,
    DisclosureStep,
    SessionAnswer,
    SessionRecord,
    line,
    loading_summary,
    recommended,
    steps_of,
)
from vmstore.work.observation import Observation, compressed, key_facts, kind_of, statistics, tokens


def seen(
    tool: str, arguments: Any, output: str, failed: bool | None = False, why: str = "", size: int = 0
) -> Observation:
    """An observation of so many tokens, by itself those it has."""
    made = Observation("s", "p1", "p2", 1, tool, arguments, output, failed, why, 0)
    return made._replace(tokens=size or tokens(made.text))


EDIT = seen(
    "edit_files",
    {
        "file": "src/auth/oauth.ts",
        "changes": "- Added import crypto from 'crypto'\n- Added function generateCodeVerifier():\n"
        "    const buffer = crypto.randomBytes(32)\n    return base64URLEncode(buffer.toString('base64'))\n"
        "- Added function generateCodeChallenge(verifier):\n"
        "    const hash = crypto.createHash('sha256').update(verifier).digest('base64')\n"
        "- Updated initiateOAuth to call generateCodeVerifier/Challenge",
    },
    "Successfully added PKCE support. All existing tests still pass.",
    why="Implementing PKCE (Proof Key for Code Exchange) for OAuth2 to prevent authorization code interception "
    "attacks. The base64URL encoding is required per RFC 7636.",
    size=450,
)
TESTS = seen(
    "run_shell_command",
    {"command": "npm test -- auth.test.ts"},
    " PASS  src/auth/auth.test.ts\n  OAuth PKCE\n    ✓ generates valid code verifier (3 ms)\n"
    "    ✓ generates valid code challenge (2 ms)\n    ✓ code challenge matches verifier (5 ms)\n"
    "    ✓ initiateOAuth includes PKCE params (12 ms)\n    ✓ completeOAuth validates code_challenge (8 ms)\n\n"
    "Test Suites: 1 passed, 1 total\nTests:       5 passed, 5 total\nTime:        1.234 s\n",
    why="Validating PKCE implementation with comprehensive tests.",
    size=280,
)
ERROR = seen(
    "read_files",
    {"files": ["logs/error.log", "src/auth/oauth.ts", "src/auth/callback.ts"]},
    'Error log shows: "invalid_grant: code_verifier does not match code_challenge"\n'
    "Root cause: code_verifier stored in session but session ID changed between\n"
    "authorize and callback due to domain mismatch (www.example.com vs example.com).\n"
    "Solution: Store code_verifier in secure httpOnly cookie instead of session,\n"
    "or ensure consistent domain for session cookie.\n"
    "Learning: PKCE requires careful state management across redirect boundaries.",
    failed=None,
    size=620,
)


@pytest.mark.parametrize(
    ("of", "limit", "facts"),
    [
        (EDIT, 68, ["oauth.ts", "generateCodeVerifier", "crypto.randomBytes(32)", "generateCodeChallenge", "sha256",
                    "PKCE", "RFC 7636", "tests still pass"]),
        (TESTS, 45, ["npm test", "5 passed, 5 total", "verifier", "challenge", "initiateOAuth includes PKCE"]),
        (ERROR, 92, ["code_verifier does not match", "session ID changed", "domain mismatch (www.example.com vs",
                     "Store code_verifier in secure httpOnly cookie", "learning: PKCE requires careful state"]),
    ],
    ids=["edit", "tests", "error"],
)  # fmt: skip
def test_the_three_examples_keep_their_facts(of: Observation, limit: int, facts: list[str]) -> None:
    """The examples of the seed take at most its tokens and lose none of their key facts."""
    form = compressed(of)
    assert form.compressed_tokens <= limit and form.lossy and form.reconstructible
    assert [fact for fact in facts if fact not in form.summary] == [], form.summary


def test_nothing_is_made_up() -> None:
    """Every fact but its joining words stands in the observation."""
    for of in (EDIT, TESTS, ERROR):
        for fact in key_facts(of):
            for word in re.findall(r"[\w./()'-]+", fact.text.removeprefix("defines ").removeprefix("uses ")):
                assert word.strip(".,") in of.text or word in ("learning", "failed"), (word, fact.text)


@pytest.mark.parametrize(
    ("of", "kind"),
    [
        (seen("bash", {"command": "pytest -q"}, "3 passed in 0.2s"), "test"),
        (seen("bash", {"command": "ls"}, "a.py"), "command"),
        (seen("read", {"path": "a.py"}, "def f(): ..."), "read"),
        (seen("grep", {"pattern": "x"}, "a.py:1: x"), "search"),
        (seen("bash", {"command": "make"}, "make: *** no rule", failed=True), "error"),
        (seen("bash", {"command": "python a.py"}, "Traceback\nValueError: no", failed=None), "error"),
    ],
)
def test_kinds(of: Observation, kind: str) -> None:
    """What was done is told by the tool, its command and how it ended."""
    assert kind_of(of) == kind


def test_what_may_lose_nothing_stays_whole() -> None:
    """Without loss, and where nothing is shorter, the form is the observation itself."""
    assert (
        compressed(EDIT, allow_lossy=False)[0] == EDIT.text and compressed(EDIT, allow_lossy=False).method == "verbatim"
    )
    short = seen("ls", {}, "a", size=5)
    assert compressed(short).summary == short.text and not compressed(short).lossy
    saved = statistics([compressed(EDIT), compressed(short)])
    assert saved["tokens_saved"] == 450 - compressed(EDIT).compressed_tokens and saved["methods"]["verbatim"] == 1


def test_a_line_takes_less_than_twenty_tokens() -> None:
    """However long its command, an observation is listed with its page in less than 20 tokens."""
    long = seen("bash", {"command": "x" * 5_000}, "y" * 5_000)
    for of in (EDIT, TESTS, ERROR, long):
        assert tokens(line(of)) < 20 and line(of).startswith("p1 ")


def test_a_line_says_what_was_done_whatever_was_learned() -> None:
    """Of a reading that taught a dozen things the line has the file, and a call without a name has one all the same."""
    why = " ".join(f"learning: step {n} must come before step {n + 1}." for n in range(20)).replace(". l", ".\n\nl")
    taught = seen("read_file", {"path": "src/order.py"}, "x = 1\n" * 40, why=why)
    assert len(key_facts(taught)) == 12 and line(taught) == "p1 read_file src/order.py"
    assert line(seen("", {}, "")) == "p1 tool"


def test_steps_keep_their_limits_and_say_more_each() -> None:
    """Each step takes at most its tokens, and what they cost is what they take."""
    todos = [("add PKCE", True), ("update the README", False)]
    steps = steps_of(SessionRecord("Log in with OAuth", "passed", [EDIT, TESTS, ERROR] * 40, todos))
    assert [step.step for step in steps] == [0, 1, 2, 3, 4]
    assert all(tokens(step.content) == step.token_cost <= LIMITS[step.step] for step in steps)
    assert steps[1].content.splitlines()[:2] == ["- 1 file edited", "- last tests: 5 passed, 5 total"]
    assert steps[2].content == "- [x] add PKCE\n- [ ] update the README"
    assert "Step 1: Key metrics (+" in loading_summary(steps, 0, 2_000)
    assert loading_summary(steps, 0, 20).endswith("remaining)")


def test_a_budget_is_never_exceeded_and_coverage_opens_every_session() -> None:
    """For relevance what is worth most a token is loaded first, for coverage the first step of every session."""
    costs = (10, 40, 150)
    good, poor = (
        SessionAnswer(name, relevance, [DisclosureStep(n, "", "", cost) for n, cost in enumerate(costs)])
        for name, relevance in (("good", 1.0), ("poor", 0.3))
    )
    assert recommended([good, poor], 2_000) == ({"good": [0, 1, 2]}, 200)
    assert recommended([good, poor], 55)[0] == {"good": [0, 1]}
    assert recommended([good, poor], 55, coverage=True)[0] == {"good": [0], "poor": [0]}
    for budget in range(0, 260, 7):
        assert recommended([good, poor], budget)[1] <= budget


def test_sessions_are_found_in_steps(data: Path) -> None:
    """Of real runs the search gives steps with costs within the budget, and an observation opens to its exact bytes."""
    store = vmstore.memory_store()
    for file in sorted((data / "swe-agent").glob("*.traj")):
        store.import_file(file)
    hits = store.work.search("marshmallow TimeDelta serialization", token_budget=500)
    assert hits.total_tokens + hits.budget_remaining == 500 and hits.recommended_load
    names = {hit.session_id for hit in hits.results}
    assert {load.session_id for load in hits.recommended_load} <= names
    session = store.session(hits.results[0].session_id)
    listed = session.work.observations()
    assert sum(tokens(entry.line) for entry in listed) < 20 * len(listed)
    observation = max(listed, key=lambda value: value.original_tokens)
    assert (
        observation.summary
        and observation.ratio < 0.35
        and len(session.content(observation.result)) > 4 * observation.compressed_tokens
    )
    earlier = session.work.observations(position=int(listed[3].result[1:]))
    assert [each.page for each in earlier] == [each.page for each in listed[:4]]
    vmstore.erase(store, page=listed[0].result, in_session=session.name)
    assert listed[0].page not in [each.page for each in session.work.observations()]
    with refused("not-a-share", InputError):
        session.work.observations(target_ratio=0)
    for wrong in ({"token_budget": 0}, {"optimize_for": "speed"}):
        with pytest.raises(InputError):
            store.work.search("x", **wrong)
