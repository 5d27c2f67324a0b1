"""Cold tiers to be published to: a folder, and a server of S3 where one is installed; a cache folder of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.objects.s3_server import KEYS, make_bucket, moto
from tests.store.archives import told_at
from vmstore.cold.place import cold_address
from vmstore.cold.tier import ColdTier
from vmstore.objects.port import Objects

numbers = itertools.count()


class TierSite(NamedTuple):
    """An address to publish to, and the objects that are there."""

    address: str
    objects: Objects

    @property
    def tier(self) -> ColdTier:
        """The default namespace there."""
        return ColdTier(self.objects, "default")

    @property
    def names(self) -> list[str]:
        """The names of all objects."""
        return [info.name for info in self.objects.list()]

    def copied_to(self, folder: Path) -> Path:
        """All objects as files of a folder."""
        for name in self.names:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.objects.get(name) or b"")
        return folder


@pytest.fixture(scope="session")
def port() -> Iterator[int]:
    """The port of a server of S3."""
    with moto() as number:
        yield number


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder, whose cache is empty."""
    place = tmp_path / "user"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    return place


@pytest.fixture(params=["folder", "s3"])
def site(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TierSite:
    """An empty tier of each kind."""
    if request.param == "folder":
        address = f"cold://{tmp_path}/cold"
    else:
        number = request.getfixturevalue("port")
        for key, value in KEYS.items():
            monkeypatch.setenv(key, value)
        bucket = f"cold-{next(numbers)}"
        make_bucket(number, bucket)
        address = f"s3://{bucket}/team?endpoint=http://127.0.0.1:{number}&region=us-east-1"
    return TierSite(address, cold_address(address).store())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of five sessions, two of them forks."""
    return told_at(tmp_path / "a.vms")
