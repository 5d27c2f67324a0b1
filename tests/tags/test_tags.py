"""Tags and aliases: said by hand, counted at any moment, on forks, after a rebuild and after an erasure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore.core.mutation import Alias, Tag
from vmstore.errors import InputError, UnknownError

TALK = [
    "The db is slow at night.",
    "It is the backups.",
    "Paint the fence green.",
    "The database has no index.",
    "Green it is.",
    "So we add an index.",
]


def talk(store: vmstore.Store, name: str = "s") -> vmstore.Session:
    """A session of three turns in two calls each way."""
    messages: list[dict[str, Any]] = []
    for at, text in enumerate(TALK):
        messages.append({"role": ("user", "assistant")[at % 2], "content": text})
        if at % 2 == 0:
            answer = {"choices": [{"message": {"role": "assistant", "content": TALK[at + 1]}, "finish_reason": "stop"}]}
            store.record(name, {"model": "m", "messages": list(messages)}, answer, at_us=1_000 * at)
    return store.session(name)


@pytest.fixture
def store() -> vmstore.Store:
    """A store in memory."""
    return vmstore.memory_store()


def pages_of(session: vmstore.Session) -> list[str]:
    return [page.page for page in session.pages() if page.type == "transcript"]


def rows(store: vmstore.Store, query: str) -> list[dict[str, Any]]:
    return store.query(query).to_dicts()


def test_a_tag_is_counted_with_its_turns_and_what_stands_beside_it(store: vmstore.Store) -> None:
    """A tag tells its pages, the turns these were made in, its share of all turns, and the tags beside it."""
    session = talk(store)
    pages = pages_of(session)
    for page, tags in zip(pages, (["db"], ["db", "backup"], ["fence"], ["database"], [], ["database"]), strict=True):
        if tags:
            session.memory.tags.give(page, *tags)
    session.memory.tags.alias("db", "database")
    actual_tags = {tag.tag: tag for tag in session.memory.tags.all()}
    assert list(actual_tags) == ["backup", "database", "db", "fence"]
    whole, part = actual_tags["database"], actual_tags["db"]
    assert (whole.pages, whole.turns, whole.first_turn, whole.last_turn) == (4, 3, 1, 3)
    assert (whole.aliases, whole.share, whole.related) == (["db"], 1.0, ["backup", "fence"])
    assert (part.canonical, part.pages, part.turns, part.share) == ("database", 2, 1, pytest.approx(1 / 3))
    assert whole.tokens == sum(session.page(page).tokens for page in (pages[0], pages[1], pages[3], pages[5]))
    assert rows(store, "TAGS tag, pages, related IN SESSION s WHERE tag = canonical ORDER BY pages DESC LIMIT 1") == [
        {"tag": "database", "pages": 4, "related": ["backup", "fence"]}
    ]


def test_what_was_said_later_is_not_known_before(store: vmstore.Store) -> None:
    """As of a moment a session has the tags and aliases that were said up to it."""
    session = talk(store)
    page = pages_of(session)[0]
    before = session.info().position
    session.memory.tags.give(page, "db")
    between = session.info().position
    session.memory.tags.alias("db", "database")
    session.memory.tags.give(page, remove=["db"])
    assert session.memory.tags.all(position=before) == []
    assert [(tag.tag, tag.canonical) for tag in session.memory.tags.all(position=between)] == [("db", "db")]
    assert [(tag.tag, tag.pages) for tag in session.memory.tags.all()] == [("database", 0), ("db", 0)]
    assert rows(store, f"TAGS tag IN SESSION s AS OF POSITION {between}") == [{"tag": "db"}]


def test_saying_it_twice_writes_once(store: vmstore.Store) -> None:
    """A tag that a page has, one that it lacks and is to lose, and an alias that holds, write nothing."""
    session = talk(store)
    page = pages_of(session)[0]
    session.memory.tags.give(page, "db", remove=["other"])
    session.memory.tags.alias("db", "database")
    written = session.info().position
    session.memory.tags.give(page, "db", remove=["other"])
    session.memory.tags.alias("db", "database")
    assert session.info().position == written
    session.memory.tags.alias("db", None)
    assert [(tag.tag, tag.canonical) for tag in session.memory.tags.all()] == [("db", "db")]


def test_a_message_is_tagged_by_its_pages(store: vmstore.Store) -> None:
    """Each page of a message gains the tag, and one commit tells them all."""
    content = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    store.record("s", {"model": "m", "messages": [{"role": "user", "content": content}]})
    session = store.session("s")
    message = session.pages()[0].message
    assert message is not None
    assert session.memory.tags.give(message, "pair") == pages_of(session)
    assert [tag.pages for tag in session.memory.tags.all()] == [2]
    with pytest.raises(UnknownError, match="no message m99"):
        session.memory.tags.give("m99", "pair")


def test_a_fork_goes_on_from_the_tags_of_its_parent(store: vmstore.Store) -> None:
    """A fork has the tags said before it and says its own; its parent never sees them."""
    session = talk(store)
    pages = pages_of(session)
    session.memory.tags.give(pages[0], "db")
    session.memory.tags.alias("db", "database")
    fork = session.fork("try")
    fork.memory.tags.give(pages[0], remove=["db"])
    fork.memory.tags.give(pages[2], "fence")
    assert {tag.tag: tag.pages for tag in fork.memory.tags.all()} == {"database": 0, "db": 0, "fence": 1}
    assert {tag.tag: tag.pages for tag in session.memory.tags.all()} == {"database": 1, "db": 1}
    across = rows(store, "TAGS session, tag, pages ACROSS SESSIONS WHERE tag = 'database' ORDER BY session")
    assert [(row["session"], row["pages"]) for row in across] == [("s", 1), ("try", 0)]


def test_names_in_a_circle_count_as_themselves(store: vmstore.Store) -> None:
    """A circle is refused where it is said in words, and harms nothing where somebody writes it by hand."""
    session = talk(store)
    session.memory.tags.alias("a", "b")
    with pytest.raises(InputError, match="'a' counts as 'b' already"):
        session.memory.tags.alias("b", "a")
    with session.batch() as batch:
        batch.add(Alias(batch.cell(b"b"), batch.cell(b"c")))
        batch.add(Alias(batch.cell(b"c"), batch.cell(b"a")))
        batch.add(Alias(batch.cell(b"d"), batch.cell(b"a")))
    session.memory.tags.give(pages_of(session)[0], *"abcd")
    assert {tag.tag: tag.canonical for tag in session.memory.tags.all()} == {name: name for name in "abcd"}


@pytest.mark.parametrize("wrong", ["", "two\nlines", "x" * 201, 5])
def test_what_cannot_be_a_tag_is_refused(store: vmstore.Store, wrong: Any) -> None:
    """A tag is a text of 1 to 200 printable characters; the error says so, and nothing is written."""
    session = talk(store)
    before = session.info().position
    with refused("not-a-tag", InputError):
        session.memory.tags.give(pages_of(session)[0], wrong)
    with refused("not-a-tag", InputError):
        session.memory.tags.alias("a", wrong)
    assert session.info().position == before


def test_an_erased_page_takes_its_tags_with_it(tmp_path: Path) -> None:
    """The cell of a tag goes with its page: no file holds the word, and the views fold the same again."""
    path = tmp_path / "a.vms"
    with vmstore.open(path) as store:
        session = talk(store)
        pages = pages_of(session)
        session.memory.tags.give(pages[0], "zanzibarsecret")
        session.memory.tags.give(pages[1], "kept")
        store.trust.erase(page=f"s/{pages[0]}")
        assert [tag.tag for tag in session.memory.tags.all()] == ["kept"]
        store.admin.rebuild()
        assert [tag.tag for tag in session.memory.tags.all()] == ["kept"]
        store.verify()
    assert not any(b"zanzibarsecret" in file.read_bytes() for file in path.rglob("*") if file.is_file())


def test_a_history_says_how_a_tag_was_found(store: vmstore.Store) -> None:
    """The history of a page tells each tag with its method, and MUTATIONS tells it as the reason."""
    session = talk(store)
    page = pages_of(session)[0]
    with session.batch() as batch:
        batch.add(Tag(int(page[1:]), batch.cell(b"db"), 1))
    session.memory.tags.give(page, remove=["db"])
    details = [event.detail for event in session.lineage.history(page) if event.event == "tag"]
    assert details == ["+db, keyword", "-db, hand"]
    reasons = rows(store, "MUTATIONS page, reason IN SESSION s WHERE kind = tag")
    assert reasons == [{"page": page, "reason": "keyword"}, {"page": page, "reason": "hand"}]


def test_names_that_may_mean_the_same_are_suggested(store: vmstore.Store) -> None:
    """Plurals, slips and short forms are suggested with the name that more pages have, and no longer once said."""
    session = talk(store)
    first, second, *_ = pages_of(session)
    session.memory.tags.give(first, "database", "kubernetes", "index", "billing")
    session.memory.tags.give(second, "db", "kuberentes", "indexes", "k8s", "billing", "database", "kubernetes", "index")
    values = {
        suggestion.alias: (suggestion.canonical, suggestion.why) for suggestion in session.memory.tags.suggest_aliases()
    }
    assert values == {
        "db": ("database", "short form"),
        "indexes": ("index", "plural"),
        "k8s": ("kubernetes", "short form"),
        "kuberentes": ("kubernetes", "slip"),
    }
    session.memory.tags.alias("db", "database")
    assert "db" not in {suggestion.alias for suggestion in session.memory.tags.suggest_aliases()}
