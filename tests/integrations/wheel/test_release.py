"""A release: the same bytes however often it is built, and a signature that holds for them and for nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))  # this lane runs without the configuration of the others

from bootstrap import RefusedError  # noqa: E402
from release import SIGNED_AS, built, release  # noqa: E402

pytestmark = pytest.mark.skipif(
    find_spec("build") is None or not (ROOT / ".git").exists() or shutil.which("ssh-keygen") is None,
    reason="runs in the lane of tools/integrations.py, which has `build`, in a checkout of git and with OpenSSH",
)
WHO = "releases@vmstore"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of what is committed, without changes."""
    folder = tmp_path_factory.mktemp("checkout") / "vmstore"
    subprocess.run(["git", "clone", "-q", "--no-local", "--depth", "1", ROOT.as_uri(), folder], check=True)
    return folder


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key, and beside it who is trusted to sign with it."""
    file = tmp_path_factory.mktemp("key") / "release.key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", WHO, "-f", file], check=True)
    public = file.with_suffix(".key.pub").read_text()
    file.with_name("allowed_signers").write_text(f'{WHO} namespaces="{SIGNED_AS}" {public}')
    return file


@pytest.fixture(scope="module")
def made(checkout: Path, key: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    release(folder, Path(sys.executable), key, checkout)
    return folder


@pytest.fixture
def taken(made: Path, tmp_path: Path) -> Path:
    """The release as somebody took it, theirs to change."""
    return Path(shutil.copytree(made, tmp_path / "taken"))


def holds(folder: Path, key: Path, name: str = SIGNED_AS) -> bool:
    """Whether the signature of a folder's sums holds, as specs/release.md says how to check it."""
    command = ["ssh-keygen", "-Y", "verify", "-f", key.with_name("allowed_signers"), "-I", WHO, "-n", name]
    with (folder / "SHA256SUMS").open() as sums:
        done = subprocess.run([*command, "-s", folder / "SHA256SUMS.sig"], stdin=sums, capture_output=True, check=False)
    return done.returncode == 0


def sums_hold(folder: Path) -> bool:
    """Whether each file has the sum that is stated of it."""
    return not subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, capture_output=True, check=False
    ).returncode


def test_a_release_is_checked_with_what_people_have(taken: Path, key: Path) -> None:
    """ssh-keygen and sha256sum find the signature and the sums right, of a wheel and an sdist."""
    assert holds(taken, key) and sums_hold(taken)
    assert sorted(line.split()[1].rpartition(".")[2] for line in (taken / "SHA256SUMS").open()) == ["gz", "whl"]


def test_a_changed_file_is_found(taken: Path, key: Path) -> None:
    """A wheel with one byte more fails by its sum, and sums that were made to fit it fail by the signature."""
    wheel = next(taken.glob("*.whl"))
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    assert not sums_hold(taken) and holds(taken, key)
    names = [path.name for path in taken.glob("vmstore*")]
    sums = subprocess.run(["sha256sum", *names], cwd=taken, capture_output=True, check=True).stdout
    (taken / "SHA256SUMS").write_bytes(sums)
    assert sums_hold(taken) and not holds(taken, key)


def test_a_signature_for_something_else_is_none(taken: Path, key: Path) -> None:
    """What the same key signed for another purpose is not taken for a release's."""
    (taken / "SHA256SUMS.sig").unlink()
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", "file", taken / "SHA256SUMS"], check=True)
    assert not holds(taken, key) and not holds(taken, key, "file")


def test_another_day_and_mask_build_the_same(checkout: Path, made: Path) -> None:
    """Built later, by somebody whose new files nobody else may read, the wheel and the sdist are the same."""
    before = os.umask(0o077)
    try:
        again = built(checkout, Path(sys.executable))
    finally:
        os.umask(before)
    assert again == {path.name: path.read_bytes() for path in made.glob("vmstore*")}


def test_what_is_not_committed_is_not_released(checkout: Path, tmp_path: Path) -> None:
    """A checkout with a change is refused, and so is a folder that holds something."""
    (checkout / "change").write_text("x")
    try:
        with pytest.raises(RefusedError) as changed:
            release(tmp_path / "dist", Path(sys.executable), None, checkout)
    finally:
        (checkout / "change").unlink()
    (tmp_path / "old").touch()
    with pytest.raises(RefusedError) as taken:
        release(tmp_path, Path(sys.executable), None, checkout)
    assert "committed" in str(changed.value) and "holds files" in str(taken.value)
