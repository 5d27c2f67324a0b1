"""Many namespaces of a database are asked as one, beside those of folders, and worked on by many processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg: pip install 'vmstore[postgres]'")

import vmstore
from tests.postgres.server import server
from tests.refusals import refused
from vmstore.errors import StoreError
from vmstore.namespace.backends.address import backend_of
from vmstore.store.fleet.care import NamespacePart, rebuild_all, verify_all
from vmstore.store.fleet.fleet import open_fleet
from vmstore.store.replay_sweep import live_sessions, replays, what_ifs

TEAMS = ("team-a", "team-b")


@pytest.fixture
def host(tmp_path: Path) -> Callable[[str], str]:
    """The address of a database as a host uses it, with a cache of its own."""
    database = server().database()
    return lambda name: f"{database}&cache={tmp_path / name}"


def lived(address: str, name: str) -> None:
    """Two sessions that manage their memory."""
    with vmstore.open(address, namespace=name) as store:
        for nth in range(2):
            session = store.live_session(f"{name}-{nth}", l0_tokens_max=3_000, system="Be brief.")
            for turn in range(4):
                session.user(f"Note {turn} of {name}: " + "a fact worth keeping " * 60)
                session.pack()
                session.assistant(f"Noted, {turn}.")


def test_namespaces_of_a_database_and_of_a_folder(host: Callable[[str], str], tmp_path: Path) -> None:
    """One answer has the rows of both, by SQL and by VMQL, each named by its store and its namespace."""
    folder = tmp_path / "agents.vms"
    for address in (host("one"), str(folder)):
        for name in TEAMS:
            lived(address, name)
    question = "PAGES count(*), sum(tokens), avg(tokens) BY role ACROSS SESSIONS"
    with open_fleet(host("two")) as database, open_fleet(folder) as files, open_fleet([host("two"), folder]) as both:
        assert list(database.query(question)) == list(files.query(question)) != []
        text = "SESSIONS session, namespace BY namespace, session"
        assert sorted(both.query(text)) == sorted([*database.query(text)])
        counts = list(both.query("SESSIONS count(*) BY store, namespace"))
        assert [row[1:] for row in sorted(counts, key=str)] == [(name, 2) for name in (*TEAMS, *TEAMS)]
        assert not any("cache=" in row[0] for row in counts)
        rows = list(both.sql("SELECT namespace, count(*) FROM calls GROUP BY 1 ORDER BY 1"))
        assert rows == [(name, 16) for name in TEAMS]


def test_a_role_asks_what_it_may_see(host: Callable[[str], str]) -> None:
    """A role that may see one namespace finds that one alone, and one that it names besides is refused."""
    owner = host("owner")
    for name in TEAMS:
        lived(owner, name)
    database = owner.partition("?")[0].rpartition("/")[2]
    role = f"reader_{database}"
    server().execute(f"CREATE ROLE {role} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}", database)
    for table in ("vmstore_head", "vmstore_commit", "vmstore_frame"):
        policy = f"CREATE POLICY own ON {table} TO {role} USING (namespace = 'team-a')"
        server().execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY; {policy}", database)
    theirs = host("theirs").replace("://postgres", f"://{role}")
    try:
        with open_fleet(theirs) as fleet:
            assert list(fleet.query("SESSIONS namespace BY namespace")) == [("team-a",)]
            assert [each["namespace"] for each in fleet.query("SESSIONS count(*)").basis["namespaces"]] == ["team-a"]
        with refused("no-namespace", StoreError, "team-b"):
            open_fleet(theirs, TEAMS)
    finally:
        server().execute(f"DROP OWNED BY {role}; DROP ROLE {role}", database)


def test_processes_share_the_work(host: Callable[[str], str]) -> None:
    """What-ifs, verdicts and lessons by two processes, each with a connection of its own, are those of one."""
    address = host("one")
    for name in TEAMS:
        lived(address, name)
    with vmstore.open(address, namespace="team-a") as store:
        names, changes = live_sessions(store), what_ifs(["lru"], [2_500])
        assert replays(store, names, changes, workers=2) == replays(store, names, changes, workers=1)
        assert store.work.read_by(2).alarms() == store.work.alarms()
    parts = [NamespacePart(backend_of(address), name, None) for name in TEAMS]
    counts = verify_all(parts, workers=2)
    assert counts == verify_all(parts, workers=1) and all(verdict.ok for verdict in counts.values())
    assert rebuild_all(parts, workers=2).keys() == set(TEAMS)
