"""The hundred questions of specs/questions.md: each statement runs, and is the answer that a plain count gives."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.vmql.test_recalls import lived
from vmstore.shell.demo.demo import SHIPPED
from vmstore.store.store import Store

PAGE = Path(__file__).resolve().parent.parent.parent / "specs" / "questions.md"
NAME, FORK, LIVE = "planning-220", "try-b", "live"
OF_LIVE = frozenset({50, 54, 56, 66, 68, 69, 70, 74})  # questions that only a session with a memory has an answer to


COLUMNS = {1: ("position", "call", "event", "at"), 16: ("page", "change")}
COLUMNS |= dict.fromkeys((42, 43), ("source", "kind", "target"))
"""Of statements of VMQL that tell more than is asked, what SQL says of it."""
IN_WORDS = 10  # the question whose answer in VMQL are words, which SQL has none of
OF_STORE = frozenset({20, 22, 29, 59, 62})  # questions about others than one session, that SQL asks of all


class Question(NamedTuple):
    """A question by its number, with the statements of either language that answer it, empty where there is none."""

    number: int
    vmql: str
    sql: str


def questions() -> list[Question]:
    """Every question of the page."""
    parts = re.split(r"^(\d+)\. ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]
    actual_questions = []
    for number, text in zip(parts[::2], parts[1::2], strict=True):
        fences = dict(re.findall(r"^```(vmql|sql)\n(.*?)\n```$", text, re.S | re.M))
        actual_questions.append(Question(int(number), fences.get("vmql", ""), fences.get("sql", "")))
    return actual_questions


QUESTIONS = questions()


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """The session that ships, a fork of it that went on for a call, and one whose memory is managed."""
    with lived(budget=1_000) as made:
        made.import_file(SHIPPED)
        made.session(NAME).fork(FORK, call=200)
        fields = {"role": "assistant", "content": "All is planned."}
        request = {"model": "m-2", "messages": [{"role": "user", "content": "What is left?"}]}
        made.record(FORK, request, {"choices": [{"message": fields}]})
        yield made


def params(store: Store) -> dict[str, Any]:
    """What stands for the places of the questions."""
    summary, source = next(iter(store.query("LINKS source, target LIMIT 1", session=NAME)), ("p1", "p1"))
    return {
        **{"session": NAME, "fork": FORK, "call": 101, "before": 90, "turn": 42, "n": 200, "amount": 0.01},
        **{"page": "p10", "summary": summary, "source": source, "word": "budget", "tag": "planning", "regex": "[0-9]+"},
        **{"tool": "read_file", "file": "docs/incidents/2026-01-14.md"},
        **{"entity": "user", "fact": "home", "user": "dana"},
        **{"date": "2026-03-04T00:00:00Z", "week": "2026-03-13T00:00:00Z"},
    }


def answered(store: Store, number: int, **fields: Any) -> list[tuple[Any, ...]]:
    """The answer to a question about the session that ships."""
    asked = next(question for question in QUESTIONS if question.number == number)
    whole = {**params(store), **fields}
    session = LIVE if number in OF_LIVE else NAME
    if asked.vmql:
        return list(store.query(asked.vmql, session=session, params=whole))
    return list(store.sql(asked.sql, session=None if number in OF_STORE else session, params=whole))


def in_both(store: Store, asked: Question, **fields: Any) -> tuple[list[str], list[str]]:
    """The answers of either language to a question, in an order of their own."""
    whole, session = {**params(store), **fields}, LIVE if asked.number in OF_LIVE else NAME
    result = store.query(asked.vmql, session=session, params=whole)
    names = [column.name for column in result.columns]
    places = [names.index(name) for name in COLUMNS.get(asked.number, names)]
    many = "ACROSS SESSIONS" in asked.vmql or asked.number in OF_STORE
    rows = store.sql(asked.sql, session=None if many else session, params=whole)
    return sorted(_alike(row[at] for at in places) for row in result), sorted(map(_alike, rows))


def _alike(row: Iterable[Any]) -> str:
    """A row whose values are written alike in both languages: objects, truths and the last bits of numbers."""
    shown = [json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value for value in row]
    return repr([round(float(value), 6) if isinstance(value, int | float) else value for value in shown])


def test_the_page_says_how_many_are_answered() -> None:
    """There are a hundred questions, and as many statements of either language as the page says."""
    assert [question.number for question in QUESTIONS] == list(range(1, 101))
    counted = tuple(sum(bool(getattr(question, name)) for question in QUESTIONS) for name in ("vmql", "sql"))
    hits = re.search(r"answers (\d+) of them, and one of .*? all (\d+)", PAGE.read_text(encoding="utf-8"), re.S)
    assert hits and tuple(map(int, hits.groups())) == counted


@pytest.mark.parametrize("number", [question.number for question in QUESTIONS])
def test_every_statement_is_answered(store: Store, number: int) -> None:
    """Each statement runs on a real session, whether or not there is something to answer with."""
    answered(store, number)


@pytest.mark.parametrize(
    "asked",
    [question for question in QUESTIONS if question.vmql and question.sql and question.number != IN_WORDS],
    ids=str,
)
def test_both_languages_answer_alike(store: Store, asked: Question) -> None:
    """Where a statement of either language answers a question, they give the same rows."""
    vmql, sql = in_both(store, asked)
    assert sql == vmql


@pytest.mark.parametrize("page", ["p14", "p76", "p143", "p3298"])
def test_sql_tells_what_happened_to_a_page(store: Store, page: str) -> None:
    """What happened to a page is told alike in both languages: of results, claims that gave way, and summaries."""
    vmql, sql = in_both(store, next(question for question in QUESTIONS if question.number == 1), page=page)
    assert sql == vmql != []


def test_sql_tells_what_put_a_page_out(store: Store) -> None:
    """The pack that put a page out, and the summary that took its place, are those that WHY has in words."""
    asked = next(question for question in QUESTIONS if question.number == IN_WORDS)
    ((position, call, reason, summary, pages),) = store.sql(asked.sql, session=NAME, params={"page": "p8", "call": 400})
    words = store.query(asked.vmql, session=NAME, params={"page": "p8", "call": 400}).to_dicts()
    assert position in [row["position"] for row in words if row["event"] == "leave"] and reason is None
    assert f"p8 left at call {call}: a compaction replaced {pages} pages" in words[0]["reason"]
    assert f"by summary {summary}" in words[0]["reason"]


def test_most_answers_hold_something(store: Store) -> None:
    """As many statements as the page says have an answer on the session that ships."""
    hits = re.search(r"(\d+) have something to answer with", PAGE.read_text(encoding="utf-8"))
    numbers = [question.number for question in QUESTIONS if answered(store, question.number)]
    assert hits and int(hits[1]) == len(numbers), sorted({question.number for question in QUESTIONS} - {*numbers})


def test_the_page_says_how_many_are_counted() -> None:
    """As many answers as the page says are held against a plain count, here and where tools are counted."""
    texts = [Path(__file__), Path(__file__).with_name("test_questions_counted.py")]
    counted = {number for path in texts for number in re.findall(r"answered\(\w+, (\d+)", path.read_text("utf-8"))}
    hits = re.search(r"(\d+) answers are held against a plain count", PAGE.read_text(encoding="utf-8"))
    assert hits and int(hits[1]) == len(counted) >= 50


def test_answers_about_calls_are_those_of_a_plain_count(store: Store) -> None:
    """Costs, means, shares and hours are what plain sums over the session's calls give."""
    calls = store.session(NAME).calls()
    assert answered(store, 23) == [(pytest.approx(sum(call.cost for call in calls if call.cost is not None) or None),)]
    known = [call for call in calls if call.latency_ms is not None]
    mean = sum(call.latency_ms for call in known) / len(known) if known else 0  # type: ignore[misc]
    slow = [call.call for call in known if call.latency_ms > 2 * mean]  # type: ignore[operator]
    assert [row[0] for row in answered(store, 25)] == slow
    tokens = [call.tokens for call in calls]
    assert [row[1] for row in answered(store, 32)] == [None, *(b - a for a, b in pairwise(tokens))]
    spent: dict[int, float] = defaultdict(float)
    for call in calls:
        spent[call.turn] += call.cost or 0
    series = answered(store, 24)
    assert [(row[0], row[1] or 0) for row in series] == [(turn, pytest.approx(spent[turn])) for turn in sorted(spent)]
    assert series[-1][-1] == pytest.approx(sum(spent.values()))


def test_answers_about_the_prompt_are_those_of_its_contexts(store: Store) -> None:
    """What the prompt held, by role, by age, at several moments and in copies is what its contexts hold."""
    session = store.session(NAME)
    context = session.context(call=101)
    assert [row[1] for row in answered(store, 8)] == [page.page for page in context.pages]
    by_role: dict[str, int] = defaultdict(int)
    for page in context.pages:
        by_role[page.role] += page.tokens
    shares = {role: (tokens, 100 * tokens / context.tokens) for role, tokens in by_role.items()}
    assert {row[0]: (row[1], pytest.approx(row[2])) for row in answered(store, 9)} == shares
    assert [row[0] for row in answered(store, 13)] == [page.page for page in context.pages if page.level > 0]
    then, later, last = ({page.page for page in session.context(turn=turn).pages} for turn in (42, 60, 80))
    assert {row[0] for row in answered(store, 17)} == (then - later) & last
    texts = Counter(content for content in context.contents().values())
    assert len(answered(store, 52)) == sum(count > 1 for count in texts.values())


def test_answers_about_pages_are_those_of_a_plain_count(store: Store) -> None:
    """Claims without support, citations, words and lengths are what plain loops over pages and links find."""
    session = store.session(NAME)
    links = list(store.query("LINKS source, target, kind", session=NAME))
    supported = {source for source, _, kind in links if kind in ("derives", "references")}
    claims = [page.page for page in session.pages() if page.type == "claim"]
    assert [row[0] for row in answered(store, 45)] == [page for page in claims if page not in supported]
    cited: dict[str, set[str]] = defaultdict(set)
    for source, target, kind in links:
        if kind == "references":
            cited[target].add(source)
    most = sorted((len(sources) for sources in cited.values()), reverse=True)[:10]
    assert [row[1] for row in answered(store, 48)] == most
    fields = dict(store.query("MESSAGES message, text WHERE role = assistant", session=NAME))
    long = [message for message, text in fields.items() if len(text) > 200 and "```" not in text]
    assert [row[0] for row in answered(store, 92)] == long != []
    own = {page.page for page in store.session(FORK).pages()} - {page.page for page in session.pages(call=200)}
    assert {row[0] for row in answered(store, 20)} == own != set()
    results = [row[::2] for row in store.query("PAGES session, role, text ACROSS SESSIONS") if row[1] == "tool"]
    assert dict(answered(store, 91)) == Counter(name for name, text in results if re.search("[0-9]+", text or ""))
