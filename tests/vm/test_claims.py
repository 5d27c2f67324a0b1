"""Claims: decisions found in what was said, and what only looks like one."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.core.page import Role, Standing
from vmstore.errors import InputError
from vmstore.vm.claims import Claim, ClaimKind, Known, Said, find, handed_in, key_of, name_of

U, A = Role.USER, Role.ASSISTANT
DATABASE = Known("claim_database", "database", "Decision: use PostgreSQL for the database")

# What a user says, and the claims in it: text and name.
DECISIONS = [
    ("Let's use PostgreSQL for the database.", "use PostgreSQL for the database", "claim_database"),
    ("Let's go with FastAPI for the API framework.", "use FastAPI for the API framework", "claim_api_framework"),
    (
        "Agreed, let's go with Kubernetes for deployment_strategy",
        "use Kubernetes for deployment_strategy",
        "claim_deployment_strategy",
    ),
    ("let us use tabs for indentation", "use tabs for indentation", "claim_indentation"),
    ("OK, let's stick with SQLite for the tests.", "use SQLite for the tests", "claim_tests"),
    ("Great, then let's adopt ruff for linting!", "use ruff for linting", "claim_linting"),
    (
        "We'll go with React with TypeScript for the frontend.",
        "use React with TypeScript for the frontend",
        "claim_frontend",
    ),
    ("We will use port 8443 for the admin console.", "use port 8443 for the admin console", "claim_admin_console"),
    ("We're going with Redis for the cache.", "use Redis for the cache", "claim_cache"),
    ("I'm going to use pnpm as the package manager.", "use pnpm for the package manager", "claim_package_manager"),
    ("I'll pick the blue theme for the landing page.", "use the blue theme for the landing page", "claim_landing_page"),
    ("We are switching to uv for packaging.", "use uv for packaging", "claim_packaging"),
    ("We decided to use Kafka for the event bus.", "use Kafka for the event bus", "claim_event_bus"),
    ("We've decided on GCP for hosting.", "use GCP for hosting", "claim_hosting"),
    (
        "We have decided to go with two-week sprints for planning.",
        "use two-week sprints for planning",
        "claim_planning",
    ),
    (
        "We decided that the request timeout is 30 seconds.",
        "the request timeout is 30 seconds",
        "claim_request_timeout",
    ),
    ("We agreed that the API will be versioned by URL.", "the API will be versioned by URL", "claim_api"),
    ("I've decided to rewrite the parser in Rust.", "rewrite the parser in Rust", "claim_rewrite_parser_rust"),
    ("We agreed on Friday releases for the mobile app.", "use Friday releases for the mobile app", "claim_mobile_app"),
    ("We settled on snake_case for column names.", "use snake_case for column names", "claim_column_names"),
    ("We chose Terraform over Pulumi for infrastructure.", "use Terraform for infrastructure", "claim_infrastructure"),
    ("I picked Inter for the body font.", "use Inter for the body font", "claim_body_font"),
    ("We finally settled on OAuth for the login flow.", "use OAuth for the login flow", "claim_login_flow"),
    ("Decision: Postgres 16 for the warehouse.", "Postgres 16 for the warehouse", "claim_postgres_16_warehouse"),
    ("Final decision: use gRPC for internal calls.", "use gRPC for internal calls", "claim_internal_calls"),
    ("The decision is to use Vault for secrets.", "use Vault for secrets", "claim_secrets"),
    ("Decided: the retention is 90 days.", "the retention is 90 days", "claim_retention"),
    ("It's settled: we'll use Stripe for payments.", "use Stripe for payments", "claim_payments"),
    ("From now on, use UTC for timestamps.", "use UTC for timestamps", "claim_timestamps"),
    (
        "From now on we'll use conventional commits for messages.",
        "use conventional commits for messages",
        "claim_messages",
    ),
    ("Going forward, always use feature flags for launches.", "use feature flags for launches", "claim_launches"),
    ("Let's not use an ORM for reports.", "do not use an ORM for reports", "claim_reports"),
    ("We won't support Windows.", "do not support Windows", "claim_windows"),
    ("Let's set the pool size to 20.", "set the pool size to 20", "claim_pool_size"),
    ("Let's limit uploads to 25 MB.", "limit uploads to 25 MB", "claim_uploads_25_mb"),
    ("Let's drop Python 3.9 support.", "drop Python 3.9 support", "claim_python_support"),
    ("Let's deploy to Fly.io.", "deploy to Fly.io", "claim_fly_io"),
    ("Let's keep the monolith for this year.", "keep the monolith for this year", "claim_monolith_year"),
    (
        "For the database connection pool, let's use PgBouncer.",
        "use PgBouncer for the database connection pool",
        "claim_database_connection_pool",
    ),
    (
        "As for testing, we'll use pytest with 80% coverage.",
        "use pytest with 80% coverage for testing",
        "claim_testing",
    ),
    ("Regarding logging: let's use structlog.", "use structlog for logging", "claim_logging"),
    ("PostgreSQL it is.", "use PostgreSQL", "claim_postgresql"),
    ("Sounds good, let's use MapLibre for maps because it is open.", "use MapLibre for maps", "claim_maps"),
    (
        "Perfect. Let's use Sentry for error tracking, since the team knows it.",
        "use Sentry for error tracking",
        "claim_error_tracking",
    ),
    (
        "Alright, we'll use Celery for background jobs — it's what ops runs.",
        "use Celery for background jobs",
        "claim_background_jobs",
    ),
    ("So, let's go for the annual plan for hosting.", "use the annual plan for hosting", "claim_hosting"),
    ("Let's **use `uv`** for installs.", "use uv for installs", "claim_installs"),
    ("- Let's use Figma for mockups.", "use Figma for mockups", "claim_mockups"),
    ("We’ll use Kotlin for the Android app.", "use Kotlin for the Android app", "claim_android_app"),
    ("Actually, let's use MySQL for the database.", "use MySQL for the database", "claim_database"),
    ("On second thought, let's go with Svelte for the frontend.", "use Svelte for the frontend", "claim_frontend"),
    ("Scratch that, use DynamoDB for sessions.", "use DynamoDB for sessions", "claim_sessions"),
    ("I changed my mind, let's use CSS modules for styling.", "use CSS modules for styling", "claim_styling"),
    ("Change of plans: we'll use Azure for hosting.", "use Azure for hosting", "claim_hosting"),
    ("Actually use Bun instead of Node for the scripts.", "use Bun for the scripts", "claim_scripts"),
    ("Instead of Redis, let's use Valkey for the cache.", "use Valkey for the cache", "claim_cache"),
    ("Let's switch to MySQL for the database.", "use MySQL for the database", "claim_database"),
    ("Let's go back to REST for the public API.", "use REST for the public API", "claim_public_api"),
    ("No, let's use spaces for indentation.", "use spaces for indentation", "claim_indentation"),
    ("We will use JWT for authentication, not sessions.", "use JWT for authentication", "claim_authentication"),
    ("Let's use Go for the server.", "use Go for the server", "claim_server"),
    ("We committed to use semver for releases.", "use semver for releases", "claim_releases"),
]

# What nobody decides by: questions, conditions, other people, tasks, small talk, memories.
NO_DECISIONS = [
    "Should we use PostgreSQL for the database?",
    "Let's use PostgreSQL?",
    "Did we decide to use Kafka?",
    "What did we decide about the cache?",
    "Can we go with the second option?",
    "Have you decided on a name?",
    "If we decided to use Kafka, we would need more ops people.",
    "If we go with Redis, the cache is fast.",
    "We could go with Redis.",
    "We might use Redis for the cache.",
    "Maybe let's use Redis.",
    "Perhaps we'll use Redis for the cache.",
    "Let's use Redis if it is fast enough.",
    "Let's use Redis for the cache, maybe.",
    "We'll use Redis unless ops objects.",
    "Suppose we go with Kafka for the bus.",
    "Imagine we decided to use Kafka.",
    "What if we go with Kafka?",
    "Once we decided to use Kafka, everything got slower.",
    "When we go with Kafka, remember the brokers.",
    "Before we settled on Go we wrote Perl.",
    "As we decided earlier, what's our database?",
    "As we decided earlier, the database is PostgreSQL.",
    "Like we agreed, I sent the file.",
    "Remember when we decided to use Kafka?",
    "We haven't decided on the database.",
    "We have not decided anything.",
    "We decided nothing.",
    "We decided.",
    "We need to decide on the database.",
    "Let's decide tomorrow.",
    "We decided to think about it.",
    "We agreed to disagree.",
    "We decided to wait for the benchmark.",
    "We decided to discuss it next week.",
    "They decided to use MySQL.",
    "The team at Google chose Spanner.",
    "He said we'll use MySQL.",
    "My boss decided on Jira.",
    "Netflix uses Cassandra for viewing history.",
    "You can choose the theme in the settings.",
    "Choose File > Save to store the document.",
    "Use the search tool to list the files.",
    "Use grep for searching.",
    "Let's see.",
    "Let's look at the tests.",
    "Let's run the tests.",
    "Let's go.",
    "Let's go over the plan again.",
    "Let's talk about the database.",
    "Let's take a break.",
    "Let's take a look at the schema.",
    "Let's keep going.",
    "Let's keep in mind that disks are slow.",
    "Let's keep it simple.",
    "Let's keep pushing each other and staying motivated.",
    "I'll keep my fingers crossed for you.",
    "We'll keep you posted.",
    "I love how uncomplicated it is.",
    "We decided to go camping.",
    "I recommend running the tests first.",
    "Let's pick up where we left off.",
    "Let's move on to the next topic.",
    "Let's use this opportunity to say thanks.",
    "Let's use the time to write tests.",
    "Let's use the edit command to change the file.",
    "I'll go with you to the store.",
    "The shoes go with the dress.",
    "I'll take the dog for a walk.",
    "Just go with the flow.",
    'He wrote: "Great. Let\'s use MySQL for the database. Thanks a lot."',
    "> Let's use MySQL for the database.",
    "```\nLet's use MySQL for the database.\n```",
    "    let's use MySQL for the database;",
    "| Let's use MySQL | for the database |",
    "`Let's use MySQL for the database`?",
    "I guess we'll use Redis for the cache.",
    "I'm not sure we decided on Redis for the cache.",
    "Every time we use Redis for the cache it breaks.",
    "The migration guide says to use version 2 for the client.",
    "How do I use Redis for a cache?",
    "I would like to use the bathroom.",
    "Thanks, that works!",
    "Yes.",
    "Sounds good, talk to you tomorrow.",
    "We use PostgreSQL at work.",
    "It would have been better to use Go for the server.",
]


@pytest.mark.parametrize(("said", "decided", "name"), DECISIONS, ids=[row[0] for row in DECISIONS])
def test_a_decision_is_found(said: str, decided: str, name: str) -> None:
    """A sentence that decides becomes one claim, said so that it needs no context, named by its topic."""
    found = find([Said(7, U, said)])
    assert [(claim.text, claim.name, claim.sources) for claim in found] == [(f"Decision: {decided}", name, (7,))]


@pytest.mark.parametrize("said", NO_DECISIONS)
def test_no_decision_is_found_where_there_is_none(said: str) -> None:
    """Questions, conditions, quotations, tasks and other people's decisions are no claims."""
    assert find([Said(7, U, said)]) == ()


@pytest.mark.parametrize("said", [row[0] for row in DECISIONS])
def test_tools_and_systems_decide_nothing(said: str) -> None:
    """The same sentences in the output of a tool or in a system prompt are no claims."""
    assert find([Said(1, Role.TOOL, said), Said(2, Role.SYSTEM, said), Said(3, Role.DEVELOPER, said)]) == ()


def test_the_tables_are_long_enough() -> None:
    """At least sixty sentences decide and at least sixty do not."""
    assert len(DECISIONS) >= 60 <= len(NO_DECISIONS)


# What is said to and fro, and the texts of the claims in it; a message of the user first unless it begins with "A:".
DIALOGUES = [
    (["A: Should we use Redis or Memcached for the cache?", "yes, Redis"], ["use Redis for the cache"]),
    (["A: Should we use Redis or Memcached for the cache?", "Memcached."], ["use Memcached for the cache"]),
    (["A: Should we use Redis or Memcached for the cache?", "The latter please."], ["use Memcached for the cache"]),
    (["A: Should we use Redis or Memcached for the cache?", "neither"], []),
    (["A: Should we use Redis or Memcached for the cache?", "Not Redis."], []),
    (["A: Should we use Redis or Memcached for the cache?", "Yes."], []),
    (["A: Should we use Redis or Memcached for the cache?", "What is Memcached?"], []),
    (["A: Should we use A or B?", "yes, B"], ["use B rather than A"]),
    (["A: Tabs or spaces?", "Spaces."], ["use spaces rather than Tabs"]),
    (["A: Which should we use for the docs: Sphinx or MkDocs?", "MkDocs"], ["use MkDocs for the docs"]),
    (["A: Should we use Redis for the cache?", "Yes."], ["use Redis for the cache"]),
    (["A: Should we use Redis for the cache?", "Yes, let's do that."], ["use Redis for the cache"]),
    (["A: Should we use Redis for the cache?", "No."], []),
    (["A: Should we use Redis for the cache?", "Yes, but not yet."], []),
    (["A: Shall we drop IE support?", "agreed"], ["drop IE support"]),
    (["A: How about Redis for the cache?", "Sounds good!"], ["use Redis for the cache"]),
    (["A: I recommend FastAPI for the API. It is quick.", "Sounds good."], ["use FastAPI for the API"]),
    (["A: I recommend FastAPI for the API. We could also use Flask.", "ok do it"], ["use FastAPI for the API"]),
    (["A: We could use Flask.", "Hm, tell me more about it."], []),
    (["A: I recommend running the tests first.", "Yes."], []),
    (["For search, what should we use?", "A: I recommend tantivy.", "Agreed."], ["use tantivy for search"]),
    (
        ["Which database should we use?", "A: I'd go with PostgreSQL.", "Perfect, go with that."],
        ["use PostgreSQL for database"],
    ),
    (["A: Which database should we use?", "Let's use MariaDB."], ["use MariaDB for database"]),
    (["A: Which database should we use?", "Use MariaDB."], ["use MariaDB for database"]),
    (["Should we use tabs or spaces?", "A: Yes, spaces."], ["use spaces rather than tabs"]),
    (["Should we use tabs or spaces?", "A: Spaces are better because editors differ."], []),
    (["A: Let's use Redis for the cache."], []),
    (["A: Let's use Redis for the cache.", "Agreed!"], ["use Redis for the cache"]),
    (["A: I'll use Redis for the cache.", "Thanks."], []),
    (["A: We decided to use Redis for the cache."], ["use Redis for the cache"]),
    (["A: Do you want me to use the web search?", "yes"], []),
    (["A: Should we use Redis for the cache?", "Wait.", "A: ok", "Yes."], ["use Redis for the cache"]),
    (["A: Should we use Redis?", "Tell me a joke.", "A: Ha.", "Another.", "A: Ho.", "One more.", "A: Hi.", "Yes."], []),
]


def dialogue(messages: list[str]) -> list[Said]:
    """Messages as they are handed to the finder, pages counted from 1."""
    return [
        Said(at, A if message.startswith("A: ") else U, message.removeprefix("A: "))
        for at, message in enumerate(messages, 1)
    ]


@pytest.mark.parametrize(("messages", "decided"), DIALOGUES, ids=[" / ".join(row[0]) for row in DIALOGUES])
def test_an_answer_decides_with_its_question(messages: list[str], decided: list[str]) -> None:
    """A question or an offer and its answer make one claim; an answer to nothing, or no answer, makes none."""
    found = find(dialogue(messages))
    assert [claim.text for claim in found] == [f"Decision: {text}" for text in decided]


@pytest.mark.parametrize(("messages", "decided"), DIALOGUES, ids=[" / ".join(row[0]) for row in DIALOGUES])
def test_a_question_of_an_earlier_turn_is_answered(messages: list[str], decided: list[str]) -> None:
    """The last message alone gives the same claim when what stood before it is handed in as context."""
    *before, last = dialogue(messages)
    found = find([last], before)
    assert [claim.text for claim in found] == [f"Decision: {text}" for text in decided]


def test_a_claim_names_the_question_and_the_answer() -> None:
    """The sources of an answer's claim are the pages of the question and of the answer, in order."""
    (claim,) = find(dialogue(["A: Should we use Redis or Memcached for the cache?", "yes, Redis"]))
    assert claim.sources == (1, 2)


REVERSALS = [
    "Actually, let's use MySQL for the database.",
    "Actually, use MySQL instead.",
    "On second thought, go with MySQL for the database.",
    "Let's switch to MySQL for the database.",
    "Let's use MySQL instead of PostgreSQL.",
    "Use MySQL instead of PostgreSQL.",
    "Instead of PostgreSQL, let's use MySQL.",
    "Scratch that, we'll use MySQL.",
    "I changed my mind: let's use MySQL.",
    "We decided to use MySQL for our database after all.",
    "Change of plans, we're going with MySQL for the database.",
]


@pytest.mark.parametrize("said", REVERSALS)
def test_a_reversal_supersedes_the_claim_of_its_topic(said: str) -> None:
    """What takes a decision back is a claim of the same name that supersedes the earlier one."""
    other = Known("claim_cache", "cache", "Decision: use Redis for the cache")
    (claim,) = find([Said(9, U, said)], known=[other, DATABASE])
    assert (claim.kind, claim.name, claim.supersedes) == (ClaimKind.REVERSAL, "claim_database", "claim_database")
    assert "MySQL" in claim.text and "database" in claim.text and "PostgreSQL" not in claim.text


def test_saying_it_again_is_no_new_claim() -> None:
    """A decision that is known in the same words is not made twice."""
    assert find([Said(9, U, "Let's use PostgreSQL for the database.")], known=[DATABASE]) == ()


def test_another_topic_is_left_alone() -> None:
    """A decision about something else supersedes nothing, though the topics share a word."""
    (claim,) = find([Said(9, U, "Let's use ClickHouse for the analytics database.")], known=[DATABASE])
    assert (claim.kind, claim.supersedes) == (ClaimKind.DECISION, "")


def test_one_sentence_may_decide_twice() -> None:
    """Two things with a topic each are two claims."""
    found = find([Said(3, U, "Let's use FastAPI for the API and React for the frontend.")])
    assert [claim.name for claim in found] == ["claim_api", "claim_frontend"]


def test_two_topics_are_one_by_their_words() -> None:
    """Case, plural, order and words like `choice` do not make another topic."""
    assert key_of("database choice") == key_of("the Databases") == key_of("DATABASE_CHOICE")
    assert key_of("pool size") != key_of("pool")
    assert key_of("the strategy") != ()


@given(st.text(max_size=300), st.text(max_size=100))
def test_any_text_is_read(text: str, other: str) -> None:
    """Whatever is said, the same claims come out twice, short, named, with sources among the pages."""
    turn = [Said(1, A, other + "?"), Said(2, U, text), Said(3, U, f"Let's use {other} for {text}.")]
    found = find(turn)
    assert found == find(turn)
    for claim in found:
        assert claim.name.startswith("claim") and 0 < len(claim.text) <= 300
        assert set(claim.sources) <= {1, 2, 3} and claim.status is Standing.ACTIVE
        assert 0 < claim.confidence <= 1_000_000


HOSTILE = [
    "what " + "a" * 399,
    "for " + "a " * 199 + ", x",
    "which " + "w " * 190 + "should we use",
    "ok " * 130,
    "let's use " + "and x for " * 38,
    "Should we use " + "a or " * 75 + "b?",
    '"a b c ' * 60,
]


@pytest.mark.parametrize("sentence", HOSTILE, ids=[text[:20] for text in HOSTILE])
def test_no_sentence_takes_long(sentence: str) -> None:
    """A sentence made to confuse the patterns costs at most a few hundred times a plain one of its length."""

    def cost(text: str) -> int:
        times = []
        for _ in range(3):
            start = time.process_time_ns()
            find([Said(1, U, text)] * 5)
            times.append(time.process_time_ns() - start)
        return min(times)

    assert cost(sentence) < 300 * max(cost("plain words " * (len(sentence) // 12)), 50_000)


def test_a_long_message_is_read_at_its_ends() -> None:
    """In a message with something pasted into it, the words before and after count, the middle does not."""
    pasted = "We decided to use Cobol for everything.\n" * 2_000
    found = find([Said(1, U, "Let's use Go for the server.\n" + "x\n" * 5_000 + pasted + "\n" * 5_000 + "Bye.")])
    assert [claim.name for claim in found] == ["claim_server"]


# What a callback hands in


def test_a_callback_may_find_claims() -> None:
    """Claims written by a callback are taken as they are when they name pages it was shown."""
    written = [{"text": "Decision: use Go", "name": "claim_language", "topic": "language", "sources": [4]}]
    (claim,) = handed_in(json.dumps(written), [4, 5])
    assert claim == Claim("Decision: use Go", "claim_language", "language", (4,))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("nonsense", "no list of claims"),
        ('{"text": "x"}', "no list of claims"),
        (b"\xff", "no list of claims"),
        ('[{"text": "", "name": "n", "topic": "t", "sources": [4]}]', "no text"),
        ('[{"text": "x", "name": "n", "topic": "t", "sources": []}]', "names a source"),
        ('[{"text": "x", "name": "n", "topic": "t", "sources": [6]}]', "names a source"),
        ('[{"text": "x", "name": "n", "topic": "t", "sources": [4], "confidence": -1}]', "confidence"),
        ('[{"text": "x", "name": "n", "topic": "t", "sources": [4], "kind": 9}]', "no list of claims"),
    ],
)
def test_a_callback_that_is_wrong_is_refused(answer: str | bytes, why: str) -> None:
    """Claims that are no list, say nothing, or point elsewhere are refused by name."""
    with pytest.raises(InputError, match=why):
        handed_in(answer, [4, 5])


def test_a_name_is_made_of_the_topic() -> None:
    """A claim is named by its topic's words, at most five, even where they are only signs."""
    assert name_of("the cache size of the upload service in Europe") == "claim_cache_size_upload_service_europe"
    assert name_of("B") == "claim_b"


# Real conversations


def test_customers_of_an_airline_decide_little() -> None:
    """In a hundred runs of an airline's agent one message in forty at most decides, and each names a choice."""
    data = Path(__file__).resolve().parents[3] / "shared" / "data" / "tau-bench" / "airline_even_tasks.json"
    if not data.exists():
        pytest.skip("../shared/data is not here")
    turns = [turn for run in json.loads(data.read_text()) for turn in run["traj"] if turn["role"] == "user"]
    found = [claim for at, turn in enumerate(turns) for claim in find([Said(at, U, turn["content"])])]
    assert 0 < len(found) * 40 < len(turns), [claim.text for claim in found]
    assert all(claim.text.startswith("Decision: use ") for claim in found), [claim.text for claim in found]
