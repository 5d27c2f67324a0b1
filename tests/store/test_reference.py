"""References: pages named by number, by hint, by any tail of `vm://`, with a moment and a level."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.capture.words import LONG, NOTE, lines, request, user
from tests.refusals import refused
from tests.store.kept import HEAD, told_in_memory
from vmstore.errors import InputError, UnknownError
from vmstore.store.session import Session
from vmstore.store.store import Store, memory_store

MESSAGES = [
    {"role": "user", "content": "a", "vm": {"id": "ask_db"}},
    {"role": "assistant", "content": "b", "vm": {"id": "twice"}},
    {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}], "vm": {"id": "parts"}},
    {"role": "assistant", "content": "c", "vm": {"id": "twice"}},
    {"role": "user", "content": "d"},
    {"role": "assistant", "content": "e", "vm": {"id": "a/b c#d@e%"}},
    {"role": "user", "content": "f", "vm": {"id": "会 📎"}},
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """The story, and a session whose messages have names of their own."""
    with told_in_memory() as store:
        store.import_file(lines(tmp_path / "named.jsonl", MESSAGES))
        yield store


@pytest.fixture
def session(store: Store) -> Session:
    """The story's session."""
    return store.session("s")


@pytest.fixture
def named(store: Store) -> Session:
    """The session with names."""
    return store.session("named")


def test_any_tail_of_a_reference_names_the_page(session: Session) -> None:
    """Number, name, session, namespace, either scheme: all the same page."""
    page = session.pages()[2]
    for reference in (
        page.position,
        str(page.position),
        page.page,
        f"s/{page.page}",
        f"default/s/{page.page}",
        f"vm://default/s/{page.page}",
        f"artifact://default/s/{page.page}",
    ):
        assert session.page(reference) == page, reference


def test_a_reference_may_carry_its_moment(session: Session) -> None:
    """`@turn`, `@call` and `@position` ask of that moment, whatever else was asked."""
    (artifact,) = [page for page in session.pages() if page.type == "artifact"]
    assert [session.page(f"{artifact.page}@call:{n}").level for n in (2, 3)] == [0, 3]
    assert session.page(f"{artifact.page}@turn:1").level == 0
    assert session.page(f"vm://default/s/{artifact.page}@turn:1").tier == 0
    end = session.info().position
    assert session.page(f"{artifact.page}@position:{end}").tier == 2
    assert session.page(f"{artifact.page}@call:2", call=3).level == 0


def test_a_reference_may_carry_its_level(session: Session) -> None:
    """`#level` says which representation's bytes are meant."""
    (artifact,) = [page for page in session.pages() if page.type == "artifact"]
    for reference, content in (("", LONG), ("#level=0", LONG), ("#level=full", LONG), ("#level=3", NOTE)):
        assert session.content(artifact.page + reference).decode() == content
    assert session.content(f"{artifact.page}@call:3#level=reference").decode() == NOTE
    with refused("no-such-level", UnknownError, "level 2"):
        session.content(f"{artifact.page}#level=2")
    with refused("no-such-level", UnknownError, "level 3"):
        session.content(f"{artifact.page}@call:2#level=3")


def test_a_page_of_another_session_or_namespace_is_refused(session: Session, named: Session) -> None:
    """A reference that names another place is not answered with the page of this one."""
    page = session.pages()[0].page
    for wrong in (f"named/{page}", f"vm://default/named/{page}", f"vm://other/s/{page}", f"artifact://x/s/{page}"):
        with pytest.raises((InputError, UnknownError), match=r"'named'|no page .* here"):
            session.page(wrong)


def test_an_unknown_page_names_the_nearest(session: Session) -> None:
    """A number nobody has leads to the closest page, a name to the closest name."""
    first, last = session.pages()[0].page, session.pages()[-1].page
    for wrong, nearest in (("p1", first), ("p99999", last), (10**15, last)):
        with pytest.raises(UnknownError, match=f"nearest is '?{nearest}\\b"):
            session.page(wrong)
    for nonsense in ("p0", "P4", "p-1", "p4x", "nothing"):
        with refused("no-page", UnknownError):
            session.page(nonsense)


@pytest.mark.parametrize(
    "wrong", ["", "/p4", "a/b/c/p4", "p4@", "p4@turn:x", "p4#level=9", "p4@turn:1@call:1", "vm://"]
)
def test_what_is_no_reference_says_where(session: Session, wrong: str) -> None:
    """A text that is no reference is refused with the place and the remedy."""
    with refused("not-an-address", InputError):
        session.page(wrong)


def test_a_page_of_the_future_is_named_as_such(session: Session) -> None:
    """A page asked of a moment before its creation is an error that tells when it came."""
    last = session.pages()[-1]
    for ask in (session.page, session.lineage.history, session.content):
        with pytest.raises(UnknownError, match=f"created at position {last.position}, after call 1"):
            ask(last.page, call=1)
    with pytest.raises(UnknownError, match=f"after position {last.position - 1}"):
        session.page(f"{last.page}@position:{last.position - 1}")


def test_a_hint_is_a_name(named: Session) -> None:
    """A page is found by the name its source gave it, and says so."""
    page = named.page("ask_db")
    assert (page.hint, named.content("ask_db")) == ("ask_db", b"a")
    assert named.page("named/ask_db") == named.page("vm://default/named/ask_db") == page


def test_a_hint_of_several_pages_is_ambiguous(named: Session) -> None:
    """A name that several pages carry is refused with all of them."""
    for hint in ("twice", "parts"):
        pages = [page.page for page in named.pages() if page.hint == hint]
        with pytest.raises(UnknownError) as raised:
            named.page(hint)
        assert len(pages) == 2 and all(page in str(raised.value) for page in pages)


def test_strange_hints_are_found_encoded(named: Session) -> None:
    """A name with separators in it is found when they are written as percent codes."""
    assert named.content("a%2Fb%20c%23d%40e%25") == b"e"
    assert named.content("named/a%2Fb%20c%23d%40e%25") == b"e"
    assert named.content("会%20📎") == b"f"


def test_a_hint_never_takes_the_name_of_another_page(tmp_path: Path) -> None:
    """Where a source calls a message `p4`, the page at position 4 is still found under the name it prints."""
    answered = {"role": "assistant", "content": "second", "vm": {"id": "p4"}}
    with memory_store() as store:
        store.import_file(lines(tmp_path / "talk.jsonl", [{"role": "user", "content": "first"}, answered]))
        session = store.session("talk")
        assert [session.page(page.page).page for page in session.pages()] == [page.page for page in session.pages()]
        assert session.content("p4") == b"first"


def test_an_unknown_hint_names_the_nearest(named: Session) -> None:
    """A misspelt name leads to the closest there is."""
    with refused("no-page", UnknownError, "'ask_db'"):
        named.page("ask_bd")


# ---- across sessions


def test_a_store_finds_a_page_by_an_unambiguous_tail(store: Store, named: Session) -> None:
    """`find` answers session and page; what could be several is refused with each in full."""
    session, page = store.catalog.find_page("ask_db")
    assert (session.name, session.page(page)) == ("named", named.page("ask_db"))
    session, page = store.catalog.find_page("vm://default/s/p4")
    assert (session.name, page) == ("s", "p4")
    store.record("t", request(HEAD))
    with refused("no-such-name", UnknownError, "p4"):
        store.catalog.find_page("p4")
    assert store.catalog.find_page("t/p4")[0].name == "t"


@pytest.mark.parametrize("wrong", ["p99999", "s/p99999", "nothing", "none/p4", "vm://none/s/p4"])
def test_a_store_finds_no_page_that_is_not_there(store: Store, wrong: str) -> None:
    """What no session holds is an error that names the nearest."""
    with refused("no-such-name", UnknownError):
        store.catalog.find_page(wrong)


def test_an_empty_store_says_so() -> None:
    """Looking for a page where there is none is told apart from looking for the wrong one."""
    with memory_store() as store:
        with refused("no-such-name", UnknownError):
            store.catalog.find_page("p4")
        store.session("s", create=True)
        with refused("no-page", UnknownError):
            store.session("s").page("p4")


def test_sessions_with_strange_names_have_references(store: Store) -> None:
    """A session's name with separators is written as percent codes and found."""
    store.record("a/b@c", request([user("unique words")]))
    session = store.session("a/b@c")
    page = session.pages()[0].page
    assert session.page(f"vm://default/a%2Fb%40c/{page}").page == page
    assert store.catalog.find_page(f"a%2Fb%40c/{page}")[0].name == "a/b@c"
