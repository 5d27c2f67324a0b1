"""The doctor says what a store in a database can do with a role on a server, and what is wrong there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg: pip install 'vmstore[postgres]'")

import vmstore
from tests.engine.stories import answer, chat
from tests.postgres.server import server
from vmstore.core.clock import ManualClock, SystemClock
from vmstore.namespace.reports import Capability, Health
from vmstore.shell.main import main

HOUR_US = 3_600_000_000


class OffClock(SystemClock):
    """A host's clock that is an hour behind."""

    def now(self) -> int:
        """The time an hour ago."""
        return super().now() - HOUR_US


@pytest.fixture
def base(tmp_path: Path) -> str:
    """The address of a store with a session."""
    address = f"{server().database()}&cache={tmp_path / 'cache'}"
    with vmstore.open(address) as store:
        store.record("chat", chat("Which database?"), answer("This."))
    return address


def named(health: Health) -> dict[str, Capability]:
    """The capabilities by name."""
    return {capability.name: capability for capability in health.capabilities}


def execute(base: str, sql: str) -> None:
    """Runs a statement in the database of an address."""
    server().execute(sql, base.split("?", maxsplit=1)[0].rsplit("/", 1)[1])


def test_a_healthy_store_is_told_in_a_table(base: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Server, flush, replication, clock, schema, rights and bytes are told, as text and JSON; it exits with 0."""
    assert main(["doctor", base]) == 0
    printed = capsys.readouterr().out
    assert "PostgreSQL 1" in printed and "fsync = on" in printed and "healthy: nothing to do" in printed
    assert main(["doctor", base, "--full", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    can = {each["name"]: each["can"] for each in report["capabilities"]}
    assert can == {
        **dict.fromkeys(("server", "role", "durable flush", "clock", "schema", "reads", "writes", "erases"), True),
        **dict.fromkeys(("bytes", "group commit", "long contents", "cold tier"), True),
        **dict.fromkeys(("replication", "rows of one role", "encryption", "archives", "backup"), False),
    }
    assert [(each["namespace"], each["commits"]) for each in report["namespaces"]] == [("default", 3)]


def test_both_backends_tell_the_same_things(base: str, tmp_path: Path) -> None:
    """A folder answers for all that a database does, but for what only a server has."""
    with vmstore.open(tmp_path / "a.vms") as store:
        store.record("chat", chat("Which folder?"), answer("This."))
    assert named(vmstore.doctor(base)).keys() - named(vmstore.doctor(tmp_path / "a.vms")).keys() == {"role", "schema"}


TABLES = "vmstore_format, vmstore_head, vmstore_commit, vmstore_frame"
ROLES = {
    "doctor_reader": [f"SELECT ON {TABLES}"],
    "doctor_writer": [
        f"SELECT ON {TABLES}",
        "INSERT, UPDATE ON vmstore_head",
        "INSERT ON vmstore_commit, vmstore_frame",
    ],
    "doctor_half": [f"SELECT ON {TABLES}", "INSERT ON vmstore_commit"],
    "doctor_none": [],
}
WRONG: dict[str, tuple[str, str, str]] = {
    "tables of another version": ("UPDATE vmstore_format SET version = 99", "schema", "version 99"),
    "no tables": ("DROP TABLE vmstore_head, vmstore_commit, vmstore_frame, vmstore_format", "schema", "no tables"),
    "a damaged commit": ("UPDATE vmstore_commit SET at = at + 1 WHERE ordinal = 2", "hash", "does not match"),
    "a commit too few": ("DELETE FROM vmstore_commit WHERE ordinal = 1", "log", "gives commit 2 after 0"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_what_is_wrong_is_a_symptom(base: str, fault: str) -> None:
    """A fault is named by its kind with a remedy, and nothing of it keeps the table from being told."""
    sql, kind, what = WRONG[fault]
    execute(base, sql)
    health = vmstore.doctor(base)
    assert any(symptom.kind == kind and what in symptom.what and symptom.remedy for symptom in health.symptoms), health
    assert not health.ok and named(health)["server"].can


def test_a_database_that_flushes_nothing(base: str) -> None:
    """Commits that are acknowledged before they are flushed are a symptom."""
    execute(base, f"ALTER DATABASE {base.split('?', maxsplit=1)[0].rsplit('/', 1)[1]} SET synchronous_commit = off")
    (symptom,) = vmstore.doctor(base).symptoms
    assert symptom.kind == "durable flush" and "synchronous_commit = off" in symptom.what


def test_a_clock_that_is_off(base: str) -> None:
    """A host whose clock is an hour behind the server's is told by how much, and one that is right is not."""
    (symptom,) = vmstore.doctor(base, clock=OffClock()).symptoms
    seconds = re.search(r"is ([\d.]+) s ahead", symptom.what)
    assert symptom.kind == "clock" and seconds is not None and round(float(seconds[1])) == 3_600
    assert vmstore.doctor(base).ok and not vmstore.doctor(base, clock=ManualClock(1)).ok


def test_what_a_role_may_is_told(base: str, roles: Callable[[str, str], str]) -> None:
    """A reader reads and no more, a writer writes and erases nothing, and a role with half of it is a symptom."""
    health = {role: vmstore.doctor(roles(base, role)) for role in ROLES}
    may = {role: [named(h)[name].can for name in ("reads", "writes", "erases")] for role, h in health.items()}
    assert may == {
        "doctor_reader": [True, False, False],
        "doctor_writer": [True, True, False],
        "doctor_half": [True, False, False],
        "doctor_none": [False, False, False],
    }
    wrong = {role: [symptom.kind for symptom in h.symptoms] for role, h in health.items()}
    assert wrong["doctor_reader"] == wrong["doctor_writer"] == [] and wrong["doctor_half"] == ["writes"]
    assert "reads" in wrong["doctor_none"]


@pytest.fixture
def roles(base: str) -> Callable[[str, str], str]:
    """Four roles with different rights; the address as one of them."""
    for role, grants in ROLES.items():
        if not server().execute(f"SELECT 1 FROM pg_roles WHERE rolname = '{role}'"):
            server().execute(f"CREATE ROLE {role} LOGIN")
        for grant in grants:
            execute(base, f"GRANT {grant} TO {role}")
    return lambda address, role: address.replace("postgres:@", f"{role}@")


def test_long_contents_are_told_where_they_lie(base: str, tmp_path: Path) -> None:
    """With an object store in the address the doctor says so, and without one that they are rows."""
    assert named(vmstore.doctor(base))["long contents"].what.startswith("rows")
    address = f"{server().database()}&cache={tmp_path / 'other'}&blobs={tmp_path / 'blobs'}"
    with vmstore.open(address) as store:
        store.record("chat", chat("Which bucket?"), answer("This."))
    assert "object store" in named(vmstore.doctor(address))["long contents"].what
