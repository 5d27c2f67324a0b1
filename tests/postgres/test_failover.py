"""A primary that ends is followed by its standby: what was acknowledged is there, once, and followers miss nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg: pip install 'vmstore[postgres]'")

import vmstore
from tests.engine.stories import answer, chat
from tests.postgres.failover import fail_over
from tests.postgres.standby import pair
from tests.refusals import refused
from vmstore.errors import ReadOnlyError

ROUNDS = int(
    os.environ.get("VMSTORE_FAILOVERS", "3")
)  # 20 by hand: VMSTORE_FAILOVERS=20 python3 tools/postgres.py -k …


def texts(store: vmstore.Store) -> list[str]:
    """What a session's pages of people say."""
    chat = store.session("s")
    return [chat.content(page.page).decode() for page in chat.pages() if page.role == "user"]


@pytest.mark.parametrize("round", range(ROUNDS))
def test_what_was_acknowledged_outlives_the_primary(round: int) -> None:
    """A primary that is killed under writers takes nothing acknowledged along, and nothing is doubled or missed."""
    outcome = fail_over(before_s=0.3 + 0.1 * (round % 5))
    assert outcome.acknowledged > 20 and outcome[1:] == (0, 0, 0), outcome


def test_a_standby_that_lagged_is_caught(tmp_path: Path) -> None:
    """The control: a standby that is behind lacks what was acknowledged, and views that are ahead are folded again."""
    with pair(synchronous=False) as servers:
        address = f"{servers.database()}&cache={tmp_path / 'cache'}"
        with vmstore.open(address, wait_s=30) as store:
            store.record("s", chat("kept"), answer("Yes."))
            while not servers.primary.execute("SELECT 1 FROM pg_stat_replication WHERE replay_lsn = sent_lsn"):
                pass
            servers.cut()
            store.record("s", chat("kept", "Yes.", "lost"), answer("Yes."))
            assert "lost" in texts(store)
        servers.fail_over()
        with vmstore.open(address, wait_s=30) as store:
            assert "lost" not in texts(store) and "kept" in texts(store) and store.verify().ok
            store.record("s", chat("kept", "Yes.", "again"), answer("Yes."))
            assert "again" in texts(store)


def test_a_standby_is_read_and_not_written(tmp_path: Path) -> None:
    """A host that is given the standby alone reads what was acknowledged, and is refused where it would write."""
    with pair(synchronous=True) as servers:
        servers.primary.execute("ALTER SYSTEM SET synchronous_commit = remote_apply")
        servers.primary.execute("SELECT pg_reload_conf()")
        both = f"{servers.database()}&cache={tmp_path / 'a'}"
        alone = both.replace(f"{servers.primary.handle.pgdata},", "").split("&")[0] + f"&cache={tmp_path / 'b'}"
        with vmstore.open(both) as store:
            store.record("s", chat("told"), answer("Yes."))
            with vmstore.open(alone, "r") as standby:
                assert "told" in texts(standby)
            with refused("standby", ReadOnlyError), vmstore.open(alone) as standby:
                standby.record("s", chat("told", "Yes.", "more"), answer("Yes."))
            assert any(
                each.name == "replication" and "standby" in each.what for each in vmstore.doctor(alone).capabilities
            )
            rows = {each.name: each.what for each in vmstore.doctor(f"{servers.database()}").capabilities}
            assert "synchronous (*)" in rows["replication"]
