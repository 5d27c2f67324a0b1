"""Memory of a user's other sessions: what they hold as claims and summaries is copied in, with where it comes from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import vmstore
from tests.refusals import refused
from vmstore.store.live.copy_page import origin
from vmstore.store.live.live_session import Live
from vmstore.store.live.other_sessions import OtherSessions


@pytest.fixture
def store() -> Iterator[vmstore.Store]:
    """A store in which Ann decided something a while ago, and Bob something else."""
    with vmstore.memory_store() as store:
        home = store.live_session("home", l0_tokens_max=4_000, user="ann")
        home.user("We decided to use Postgres for the billing database.")
        home.user("What a rainy day this is.")
        other = store.live_session("bobs", l0_tokens_max=4_000, user="bob")
        other.user("We decided to use MySQL for the billing database.")
        yield store


def later(store: vmstore.Store, **settings: object) -> Live:
    """Another session of Ann's."""
    return store.live_session("work", l0_tokens_max=4_000, user="ann", **{"remembers": "user", **settings})


def copies(session: Live) -> list[str]:
    """The addresses of what was copied into a session."""
    return session.look(lambda runtime: list(runtime.spoken.origins))


def test_another_session_of_the_user_answers(store: vmstore.Store) -> None:
    """A claim of one session stands in the prompt of another, whose origin names the page it was copied from."""
    session = later(store)
    session.user("Which database does billing have?")
    text = session.pack().text
    assert "Postgres for the billing database" in text and "MySQL" not in text
    (address,) = copies(session)
    assert address.startswith("vm://") and "/home/" in address
    (page,) = (page for page in session.pages() if origin(session, page.page) is not None)
    assert page.type == "claim" and "from:home" in page.tags and origin(session, page.page) == address
    assert store.verify().ok


def test_a_claim_that_says_something_else_now_is_found_by_that(store: vmstore.Store) -> None:
    """What another session's claim was changed to is found, also by a process that had read it before."""
    session = later(store)
    session.user("Hello, which trains leave for Basel?")
    home = store.session("home")
    assert isinstance(home, Live)
    (claim,) = home.pages(type="claim")
    home.update(claim.page, "Trains to Basel leave from platform nine.")
    session.user("From which platform leave trains to Basel?")
    assert "platform nine" in session.pack().text


def test_what_is_found_follows_from_the_log(store: vmstore.Store) -> None:
    """Of sessions that were written in turns the same is found by who read them as they came and who reads them now."""
    names = ("home", "second", "third")
    session = later(store)
    lived = []
    for n in range(6):
        other = store.live_session(names[n % 3], l0_tokens_max=4_000, user="ann")
        assert isinstance(other, Live)
        other.claim("Trains to Basel leave from platform nine.", name=f"trains_{n}")
        lived = store._ns.elsewhere.setdefault("ann", OtherSessions(store._ns, "ann")).fitting(
            session._key, {"train": 1.0, "basel": 1.0}
        )
    afresh = OtherSessions(store._ns, "ann").fitting(session._key, {"train": 1.0, "basel": 1.0})
    assert len(lived) == 6 and lived == afresh


def test_without_being_asked_for_nothing_crosses_sessions(store: vmstore.Store) -> None:
    """A session that remembers itself alone, as all do by default, sees nothing of another."""
    session = later(store, remembers="session")
    session.user("Which database does billing have?")
    assert "Postgres" not in session.pack().text and not copies(session)
    session.configure(remembers="user")
    session.user("Which database does billing have?")
    assert "Postgres" in session.pack().text


def test_a_claim_is_copied_once(store: vmstore.Store) -> None:
    """Asked again, by the same handle or another, nothing is copied twice, and copies are copied no further."""
    session = later(store)
    for handle in (session, store.session("work"), session):
        handle.user("Which database does billing have?")
    assert len(copies(session)) == 1
    third = store.live_session("third", l0_tokens_max=4_000, user="ann", remembers="user")
    third.user("Which database does billing have?")
    assert copies(third) == copies(session)


def test_what_was_taken_back_there_is_not_copied(store: vmstore.Store) -> None:
    """Of two claims of which one took the other's place the newer is copied."""
    store.session("home").user("Actually, let's use SQLite instead for the billing database.")
    session = later(store)
    session.user("Which database does billing have?")
    text = session.pack().text
    assert "SQLite" in text and "Postgres" not in text


def test_what_is_decided_here_takes_the_place_of_a_copy(store: vmstore.Store) -> None:
    """A copy is a claim like any other: a new decision supersedes it, and it does not come back."""
    session = later(store)
    session.user("Which database does billing have?")
    session.user("Actually, let's use SQLite instead for the billing database.")
    session.user("Which database does billing have?")
    text = session.pack().text
    assert "Decision: use SQLite" in text and "Decision: We decided to use Postgres" not in text
    assert "Decision: use Postgres" not in text and len(copies(session)) == 1


def test_the_model_finds_it_by_searching(store: vmstore.Store) -> None:
    """Where nothing is brought in beforehand, `search_pages` finds what another session holds."""
    session = later(store, prefetch=False)
    session.user("Hello.")
    assert not copies(session)
    part = session._ranked("database billing", 5)[0]
    assert copies(session) and part[0][0] in session.look(lambda runtime: list(runtime.spoken.origins.values()))


def test_the_model_reads_no_page_of_another_user(store: vmstore.Store) -> None:
    """A page is asked for by its address where it is the user's, and unknown where it is not."""
    (hers,) = (page for page in store.session("home").pages(type="claim"))
    (his,) = (page for page in store.session("bobs").pages(type="claim"))
    session = later(store)
    namespace = session._ns.name
    assert session.page_fault(f"vm://{namespace}/home/{hers.page}", by_model=True).granted
    assert not session.page_fault(f"vm://{namespace}/bobs/{his.page}", by_model=True).granted
    assert not later(store, remembers="session").page_fault(f"vm://{namespace}/bobs/{his.page}").granted


def test_an_erasure_of_the_origin_reaches_the_copy(store: vmstore.Store) -> None:
    """Erased with its copies, what was decided is read in no session any more, and copied into no further one."""
    session = later(store)
    session.user("Which database does billing have?")
    session.pack()
    (claim,) = (page for page in store.session("home").pages(type="claim"))
    (copy,) = session.look(lambda runtime: list(runtime.spoken.origins.values()))
    vmstore.erase(store, page=claim.page, in_session="home", copies=True, reason="asked")
    with pytest.raises(vmstore.ErasedError):
        session.content(copy)
    fourth = store.live_session("fourth", l0_tokens_max=4_000, user="ann", remembers="user")
    fourth.user("Which database does billing have?")
    assert "Postgres" not in fourth.pack().text and not copies(fourth)
    assert store.verify().ok


def test_a_session_of_nobody_has_no_other_sessions(store: vmstore.Store) -> None:
    """To remember a user's sessions takes a user."""
    with refused("no-user", vmstore.InputError):
        store.live_session("nobodys", l0_tokens_max=4_000, remembers="user")


def test_a_session_that_is_opened_again_goes_on(store: vmstore.Store) -> None:
    """The setting is logged, and a replay reads copies from the log and looks nowhere."""
    session = later(store)
    session.user("Which database does billing have?")
    session.pack()
    assert store.session("work").settings.remembers == "user"  # type: ignore[attr-defined]
    assert session.debug.check().ok
