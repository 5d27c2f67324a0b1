"""The contract of object stores, held by a folder and by a server of S3; and the faults of such a server."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.objects.s3_server import KEYS, Failing, make_bucket, moto
from tests.refusals import refused
from vmstore.errors import ConflictError, InputError, StoreError
from vmstore.objects.address import objects_at
from vmstore.objects.folder import HALF, FolderObjects
from vmstore.objects.port import Objects

numbers = itertools.count()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a server of S3."""
    with moto() as number:
        yield number


@pytest.fixture
def bucket(port: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a new bucket, with its keys in the environment."""
    for key, value in KEYS.items():
        monkeypatch.setenv(key, value)
    name = f"bucket-{next(numbers)}"
    make_bucket(port, name)
    return name


@pytest.fixture(params=["folder", "s3"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    """An empty object store of each kind."""
    if request.param == "folder":
        return objects_at(tmp_path / "objects")
    number, name = request.getfixturevalue("port"), request.getfixturevalue("bucket")
    return objects_at(f"s3://{name}/team/a?endpoint=http://127.0.0.1:{number}&region=us-east-1")


@pytest.fixture
def failing(port: int) -> Iterator[Failing]:
    """A server that fails before the real one."""
    forwarder = Failing(port)
    yield forwarder
    forwarder.close()


def test_what_is_put_is_read_whole_and_in_part(objects: Objects) -> None:
    """An object reads as it was written, whole and from any place on, and an empty one is not a missing one."""
    content = bytes(range(256)) * 40
    objects.put("a/b.bin", content)
    objects.put("empty", b"")
    assert objects.get("a/b.bin") == content
    assert objects.get("a/b.bin", 100, 7) == content[100:107]
    assert objects.get("a/b.bin", 10_000) == content[10_000:]
    assert objects.get("a/b.bin", 10_000, 900) == content[10_000:]
    assert objects.get("a/b.bin", 20_000, 5) == b""
    assert objects.get("empty") == b""
    assert objects.get("a/none") is None
    assert objects.get("a") is None
    assert objects.get("a/none", 3, 4) is None
    head = objects.head("a/b.bin")
    assert head is not None
    assert head.size == len(content)
    assert head.at_us > 1_700_000_000_000_000
    assert objects.head("a/none") is None


def test_a_name_is_written_once(objects: Objects) -> None:
    """The same bytes again count as written, and others under the name are refused while the first stay."""
    objects.put("manifest/1", b"first")
    objects.put("manifest/1", b"first")
    with refused("object-exists", ConflictError):
        objects.put("manifest/1", b"second")
    assert objects.get("manifest/1") == b"first"


def test_of_many_that_write_one_name_one_wins(objects: Objects) -> None:
    """Of eight writers that begin at once under one name, one is told that it wrote and seven that another did."""
    for turn in range(5):
        barrier, outcomes = threading.Barrier(8), list[str]()

        def write(me: int, name: str = f"race/{turn}", barrier: threading.Barrier = barrier,
                  outcomes: list[str] = outcomes) -> None:  # fmt: skip
            barrier.wait()
            try:
                objects.put(name, b"%d" % me)
                outcomes.append("won")
            except ConflictError:
                outcomes.append("lost")

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["lost"] * 7 + ["won"]


def test_names_are_listed_by_whole_parts(objects: Objects) -> None:
    """A list holds what lies below a prefix, by name, and nothing that only begins alike."""
    for name in ("a/2", "a/1", "a/b/3", "ab/4", "top"):
        objects.put(name, b"x")
    assert [item.name for item in objects.list()] == ["a/1", "a/2", "a/b/3", "ab/4", "top"]
    assert [item.name for item in objects.list("a")] == ["a/1", "a/2", "a/b/3"]
    assert [item.size for item in objects.list("ab")] == [1]
    assert list(objects.list("none")) == []


def test_what_is_deleted_is_gone_and_may_come_again(objects: Objects) -> None:
    """A deleted object is neither read nor listed, and its name is free."""
    objects.put("a/b", b"1")
    assert objects.delete("a/b")
    assert not objects.delete("a/b")
    assert objects.get("a/b") is None
    assert list(objects.list()) == []
    objects.put("a/b", b"2")
    assert objects.get("a/b") == b"2"


@pytest.mark.parametrize("name", ["", "/a", "a/", "a//b", "../a", "a/../b", ".", "a b", "ä", "a\\b", "x" * 901])
def test_what_is_no_name_is_refused(objects: Objects, name: str) -> None:
    """A name that leaves the store, or that some store would read as another, is refused by each verb."""
    with refused("no-object-name", InputError):
        objects.put(name, b"")
    with refused("no-object-name", InputError):
        objects.get(name)
    with refused("no-object-name", InputError):
        objects.head(name)
    with refused("no-object-name", InputError):
        objects.delete(name)


@pytest.mark.parametrize(
    "address",
    ["gs://bucket/a", "s3://", "s3://key:secret@bucket/a", "s3://bucket?acl=public", "s3://bucket?style=odd"],
)
def test_what_is_no_address_is_refused_without_its_secret(address: str) -> None:
    """An address of another scheme, without a bucket, with a key or with an unknown setting is refused."""
    if address.startswith("s3"):
        pytest.importorskip("obstore")
    with refused("no-object-address", InputError) as caught:
        objects_at(address)
    assert "secret" not in str(caught.value)


def test_a_full_folder_leaves_nothing_half_written(tmp_path: Path) -> None:
    """A folder that cannot be written to is an error that names the file, and no half of one is listed."""
    folder = tmp_path / "objects"
    objects = FolderObjects(folder)
    objects.put("a", b"1")
    (folder / f"{HALF}left-by-a-kill").write_bytes(b"half")
    assert [item.name for item in objects.list()] == ["a"]
    (folder / "b").write_bytes(b"a file where a folder should be")
    with refused("not-written", StoreError, "b"):
        objects.put("b/c", b"2")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    """A symbolic link among the objects is neither read nor written through."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    folder = tmp_path / "objects"
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    (folder / "file").symlink_to(outside / "secret")
    objects = FolderObjects(folder)
    with pytest.raises(StoreError):
        objects.put("link/new", b"1")
    with pytest.raises(StoreError):
        objects.get("file")
    assert list(objects.list()) == []
    assert [path.name for path in outside.iterdir()] == ["secret"]


def test_an_overload_is_waited_out(failing: Failing, bucket: str) -> None:
    """A server that answers 503 is asked again, and what was to be written is written once."""
    objects = objects_at(f"s3://{bucket}?endpoint=http://127.0.0.1:{failing.port}")
    failing.faults = [("PUT", "503"), ("PUT", "503"), ("GET", "503")]
    objects.put("a", b"content")
    assert objects.get("a") == b"content"
    assert failing.faults == []


def test_a_lost_answer_of_a_put_is_no_conflict(failing: Failing, bucket: str) -> None:
    """A put that the server did, but whose answer was lost, counts as written and not as somebody else's."""
    objects = objects_at(f"s3://{bucket}?endpoint=http://127.0.0.1:{failing.port}")
    failing.faults = [("PUT", "lost")]
    objects.put("a", b"content")
    assert failing.faults == []
    assert objects.get("a") == b"content"


def test_half_an_object_is_never_taken_for_a_whole_one(failing: Failing, bucket: str) -> None:
    """An answer that ends in its middle is read again, and never given as the object."""
    objects = objects_at(f"s3://{bucket}?endpoint=http://127.0.0.1:{failing.port}")
    content = bytes(1_000_000)
    objects.put("a", content)
    failing.faults = [("GET", "half"), ("GET", "half")]
    try:
        assert objects.get("a") == content
    except StoreError as error:
        assert error.code == "unreachable"
    assert objects.get("a") == content


def test_a_list_that_breaks_off_is_gone_on_with(port: int, bucket: str, failing: Failing) -> None:
    """Lists of which half an answer came, or none, hold every object once, and by name."""
    objects = objects_at(f"s3://{bucket}/team?endpoint=http://127.0.0.1:{failing.port}&region=us-east-1")
    names = [f"a/{number:02}" for number in range(12)]
    for name in names:
        objects.put(name, b"x")
    failing.faults += [("GET", "half"), ("GET", "503"), ("GET", "half")]
    assert [info.name for info in objects.list("a")] == names
    assert failing.faults == []


def test_what_is_not_there_is_named(port: int, bucket: str) -> None:
    """A bucket that is not there, and a server that does not answer, are errors that name the address."""
    objects = objects_at(f"s3://no-such-bucket?endpoint=http://127.0.0.1:{port}", wait_s=1)
    with refused("unreachable", StoreError, "s3://no-such-bucket/a"):
        objects.put("a", b"")
    with refused("unreachable", StoreError, "s3://no-such-bucket/a"):
        objects.get("a")
    with refused("unreachable", StoreError, "s3://no-such-bucket"):
        list(objects.list())
    silent = objects_at("s3://bucket?endpoint=http://127.0.0.1:9", wait_s=1)
    with refused("unreachable", StoreError, "s3://bucket/a"):
        silent.get("a")
