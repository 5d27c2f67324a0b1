"""Copies on this machine: held to their hashes, bounded, shared by processes and not by machines; and S3 that fails."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import vmstore
from tests.cold.conftest import TierSite
from tests.objects.s3_server import Failing
from tests.refusals import refused
from tests.store.archives import everything
from vmstore.cold.cache import ObjectCache
from vmstore.cold.place import cold_address
from vmstore.errors import CorruptError, StoreError
from vmstore.maintenance.publish import publish

ALL = ["long", "other", "plan", "plan-b", "plan-c"]


@pytest.fixture
def published(path: Path, site: TierSite) -> TierSite:
    """A tier with five sessions."""
    with vmstore.open(path) as store:
        publish(store, site.address, ALL)
    return site


def test_a_copy_that_was_changed_is_fetched_again(published: TierSite, home: Path) -> None:
    """A copy with another byte, or cut, is not read: the object is fetched again and the answer is right."""
    with vmstore.open(published.address, "r") as cold:
        before = everything(cold)
    for nth, file in enumerate(sorted(home.rglob("*.archive"))):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content[: len(content) - 100 * nth])
    with vmstore.open(published.address, "r") as cold:
        assert everything(cold) == before and cold.verify().ok


def test_an_object_that_was_changed_is_refused(published: TierSite) -> None:
    """An object with other bytes than the manifest says is named, and nothing of it is answered."""
    newest = published.tier.newest()
    assert newest is not None
    for session in newest.manifest.sessions:
        content = published.objects.get(session.archive.name) or b""
        published.objects.delete(session.archive.name)
        published.objects.put(session.archive.name, content[:-1] + b"x")
    with vmstore.open(published.address, "r") as cold:
        with refused("cold-damaged", CorruptError, "archives/"):
            cold.session("other").context().messages()


def test_copies_are_bounded(published: TierSite, tmp_path: Path) -> None:
    """No more bytes are kept than may be; what was used longest ago goes, and comes again when it is asked for."""
    newest = published.tier.newest()
    assert newest is not None
    stored = [session.archive for session in newest.manifest.sessions]
    room = sum(copy.size for copy in stored[:2])
    cache = ObjectCache(tmp_path / "cache", published.objects, size_max=room)
    for copy in (*stored, stored[0]):
        assert cache.path(copy).read_bytes() == published.objects.get(copy.name)
        kept = [file.stat().st_size for file in (tmp_path / "cache" / "objects").iterdir()]
        assert sum(kept) <= max(room, copy.size)
    assert cache.fetched == len(stored) + 1


def test_two_processes_share_a_cache_and_two_machines_do_not(
    published: TierSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes that read a tier at once through one folder are all answered; another machine is refused by name."""
    address = published.address + ("&" if "?" in published.address else "?") + f"cache={tmp_path}/copies"
    script = (
        "import sys, vmstore\n"
        "from tests.store.archives import everything\n"
        "with vmstore.open(sys.argv[1], 'r') as cold:\n"
        "    assert cold.session('other').context().messages() and len(everything(cold)) == 5\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", script, address]) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    monkeypatch.setattr("platform.node", lambda: "elsewhere")
    with refused("cache-of-another-machine", StoreError, "cache="):
        vmstore.open(address, "r")


def test_a_store_opened_before_a_fork_reads_its_copies_after_it(published: TierSite) -> None:
    """A forked child answers from the copies here; what is not here it fetches, or says that S3 is out of reach."""
    with vmstore.open(published.address, "r") as cold:
        assert cold.session("other").context().messages()
        child = os.fork()
        if not child:
            code = 1
            try:
                code = 0 if cold.session("other").context().messages() else 2
                if published.address.startswith("s3"):
                    with refused("forked", StoreError, "spawn"):
                        cold.session("long")
                else:
                    assert cold.session("long").context().messages()
            except BaseException:
                code = 3
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(cold.sessions()) == 5


@pytest.fixture
def failing(port: int) -> Iterator[Failing]:
    """A server that fails before the real one."""
    forwarder = Failing(port)
    yield forwarder
    forwarder.close()


@pytest.mark.parametrize("site", ["s3"], indirect=True)
def test_a_server_that_fails_for_a_while_is_asked_again(
    path: Path, site: TierSite, failing: Failing, port: int
) -> None:
    """Answers of 503, halves of an object, and puts of which the answer was lost: all is published and read whole."""
    address = site.address.replace(f":{port}", f":{failing.port}")
    with vmstore.open(path) as store:
        failing.faults += [("PUT", "503"), ("PUT", "lost"), ("PUT", "503"), ("PUT", "lost")]
        publish(store, address, ALL)
        before = everything(store)
    assert site.tier.numbers() == [1] and failing.faults == []
    failing.faults += [("GET", "503"), ("GET", "503"), ("GET", "half"), ("GET", "503"), ("GET", "half")]
    with vmstore.open(address, "r") as cold:
        assert everything(cold) == before and cold.verify().ok
    assert failing.faults == []


@pytest.mark.parametrize("site", ["s3"], indirect=True)
def test_a_manifest_of_which_the_answer_was_lost_is_written_once(
    path: Path, site: TierSite, failing: Failing, port: int
) -> None:
    """A publisher that does not hear that its manifest was written finds it, and writes no second one."""
    address = cold_address(site.address.replace(f":{port}", f":{failing.port}"))
    with vmstore.open(path) as store:
        publish(store, site.address, "other")
        tier = address.tier("default")
        newest = tier.newest()
        assert newest is not None
        import msgspec

        following = msgspec.structs.replace(newest.manifest, number=2, before=newest.sha256)
        failing.faults += [("PUT", "lost")]
        tier.add(following)
    assert site.tier.numbers() == [1, 2]
