"""A new host begins with the views that were published, folds what came since, and meets nothing that was erased."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg: pip install 'vmstore[postgres]'")

import vmstore
from tests.engine.stories import answer, chat
from tests.erasure.found import found_in
from tests.postgres.server import server
from tests.refusals import refused
from vmstore.errors import InputError
from vmstore.namespace.backends import postgres_checkpoints
from vmstore.shell.main import main
from vmstore.views.projection import Projection

SECRET = "zebrafinch"
PARTS = "SELECT count(*) FROM vmstore_checkpoint_part"


@pytest.fixture
def host(tmp_path: Path) -> Callable[[str], str]:
    """The address of an empty database as a host uses it, with a cache of its own."""
    database = server().database()
    return lambda name: f"{database}&cache={tmp_path / name}"


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ordinals from which each batch was folded since."""
    positions = list[int]()
    right = Projection._fold

    def fold(self: Projection, position: int, target: int) -> int:
        positions.append(position)
        return right(self, position, target)

    monkeypatch.setattr(Projection, "_fold", fold)
    return positions


def execute(address: str, sql: str) -> list[tuple[object, ...]]:
    """Runs a statement in the database of an address; its rows."""
    return server().execute(sql, address.split("?", maxsplit=1)[0].rsplit("/", 1)[1])


def tell(store: vmstore.Store, count: int = 3, session: str = "s") -> None:
    """Records some calls."""
    for number in range(count):
        store.record(session, chat(f"text {number} of {session}"), answer("Yes."))


def answers(store: vmstore.Store) -> list[object]:
    """What a host is asked."""
    rows: list[object] = [row for info in store.sessions() for row in (info, *store.session(info.session).pages())]
    assert store.verify().ok  # which folds all of it once more and compares
    return rows


def test_a_new_host_folds_only_what_came_since(host: Callable[[str], str], folded: list[int]) -> None:
    """A host with an empty cache begins at the checkpoint and answers as one that folded all."""
    with vmstore.open(host("a")) as store:
        tell(store)
        published = store.admin.publish_views()
        tell(store, session="later")
        before = answers(store)
    folded.clear()
    with vmstore.open(host("b")) as new:
        assert len(new.sessions()) == 2 and min(folded) == published.ordinal > 1
        assert answers(new) == before


def test_a_checkpoint_follows(host: Callable[[str], str], folded: list[int]) -> None:
    """A later one takes the place of the one before, of which nothing stays, and the same one is not written again."""
    with vmstore.open(host("a")) as store:
        tell(store, 30)
        first = store.admin.publish_views()
        assert store.admin.publish_views() == first
        tell(store)
        second = store.admin.publish_views()
    assert second.ordinal > first.ordinal
    assert execute(host("a"), "SELECT DISTINCT ordinal FROM vmstore_checkpoint_part") == [(second.ordinal,)]
    folded.clear()
    with vmstore.open(host("b")) as new:
        assert new.sessions() and folded == []


FAULTS = {
    "its hash": "UPDATE vmstore_checkpoint SET hash = 'x'",
    "its ordinal": "UPDATE vmstore_checkpoint SET ordinal = ordinal - 1",
    "its format": "UPDATE vmstore_checkpoint SET format = 'older'",
    "its digest": "UPDATE vmstore_checkpoint SET digest = 'x'",
    "its length": "UPDATE vmstore_checkpoint SET size = 10",
    "a part": "DELETE FROM vmstore_checkpoint_part",
    "bytes": "UPDATE vmstore_checkpoint_part SET content = substr(content, 1, 100) || 'x' || substr(content, 102)",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_one_that_does_not_fit_is_left(host: Callable[[str], str], folded: list[int], fault: str) -> None:
    """A checkpoint of another format or log, or a damaged one, is not taken: the new host folds all, and is right."""
    with vmstore.open(host("a")) as store:
        tell(store)
        store.admin.publish_views()
        before = answers(store)
    execute(host("a"), FAULTS[fault])
    folded.clear()
    with vmstore.open(host("b")) as new:
        assert new.sessions() and folded[0] == 0 and answers(new) == before


def test_an_erasure_removes_it(host: Callable[[str], str], tmp_path: Path, folded: list[int]) -> None:
    """What was erased is in no table, file or cache afterwards, and a new host does not begin with it."""
    with vmstore.open(host("a")) as store:
        tell(store)
        store.record(SECRET, chat(f"a secret {SECRET}"), answer("Yes."))
        store.admin.publish_views()
        assert execute(host("a"), PARTS) != [(0,)]
        store.trust.erase(session=SECRET)
        assert execute(host("a"), PARTS) == [(0,)]
        store.admin.publish_views()
    with vmstore.open(host("b")) as new:
        assert new.verify().ok and SECRET not in [info.session for info in new.sessions()]
    server().execute("CHECKPOINT")
    (oid,) = execute(host("a"), "SELECT oid FROM pg_database WHERE datname = current_database()")[0]
    base = Path(server().uri.split("host=")[1]) / "base" / str(oid)
    assert found_in(base, [SECRET.encode()]) == found_in(tmp_path, [SECRET.encode()]) == {}


def test_one_from_before_an_erasure_is_not_taken(host: Callable[[str], str], folded: list[int]) -> None:
    """A checkpoint that came back, as with a backup of its table, is refused where something was erased since."""
    with vmstore.open(host("a")) as store:
        tell(store)
        store.record(SECRET, chat(f"a secret {SECRET}"), answer("Yes."))
        store.admin.publish_views()
        for table in postgres_checkpoints.TABLES:
            execute(host("a"), f"CREATE TABLE kept_{table} AS SELECT * FROM {table}")
        store.trust.erase(session=SECRET)
        for table in postgres_checkpoints.TABLES:
            execute(host("a"), f"INSERT INTO {table} SELECT * FROM kept_{table}")
    folded.clear()
    with vmstore.open(host("b")) as new:
        assert new.sessions() and folded[0] == 0 and new.verify().ok


def test_who_may_not_read_it_folds(host: Callable[[str], str], folded: list[int]) -> None:
    """A role without a right to the tables of checkpoints opens the namespace all the same."""
    with vmstore.open(host("a")) as store:
        tell(store)
        store.admin.publish_views()
    if not execute(host("a"), "SELECT 1 FROM pg_roles WHERE rolname = 'checkpoint_reader'"):
        execute(host("a"), "CREATE ROLE checkpoint_reader LOGIN")
    tables = "vmstore_format, vmstore_head, vmstore_commit, vmstore_frame"
    execute(host("a"), f"GRANT SELECT ON {tables} TO checkpoint_reader")
    folded.clear()
    with vmstore.open(host("b").replace("postgres:@", "checkpoint_reader@"), "r") as new:
        assert new.sessions() and folded[0] == 0


def test_the_command(host: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`checkpoint` says up to where views are published; those in a folder lie beside their log, and are refused."""
    with vmstore.open(host("a")) as store:
        tell(store)
        ordinal = store.admin.log.ordinal
    assert main(["checkpoint", host("a"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ordinal"] == ordinal
    with vmstore.open(tmp_path / "a.vms") as store, refused("views-beside", InputError):
        store.admin.publish_views()
