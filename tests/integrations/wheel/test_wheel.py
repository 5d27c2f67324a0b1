"""The wheel and the sdist, as an index is handed them: made of a clean checkout, installed where there is nothing."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.prose import CHECKOUT

pytestmark = pytest.mark.skipif(
    find_spec("build") is None or not (CHECKOUT / ".git").exists(),
    reason="runs in the lane of tools/integrations.py, which has `build`, and in a checkout of git",
)


def run(*command: str | Path, cwd: Path | None = None, **variables: str) -> str:
    """What a command prints, without what this process has on its path; AssertionError where it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VMSTORE"))}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env={**environment, **variables}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the sdist that `python -m build` makes of what is committed."""
    checkout = tmp_path_factory.mktemp("clean")
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=CHECKOUT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(checkout, filter="data")
    run(sys.executable, "-m", "build", "--outdir", checkout / "dist", cwd=checkout)
    return checkout / "dist"


@pytest.fixture(scope="module")
def wheel(made: Path) -> Path:
    """The wheel."""
    return next(made.glob("*.whl"))


@pytest.fixture(scope="module")
def sdist(made: Path) -> Path:
    """The sdist."""
    return next(made.glob("*.tar.gz"))


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_it_runs_where_there_is_nothing(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The wheel and the sdist each install in an empty environment, where `vmstore demo` shows a store of its own."""
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    run(tmp_path / "venv/bin/pip", "install", "--quiet", request.getfixturevalue(kind))
    shown = run(tmp_path / "venv/bin/vmstore", "demo", "--keep", tmp_path / "demo", cwd=tmp_path)
    assert "$ vmstore" in shown
    store = next((tmp_path / "demo").glob("*.vms"))
    assert '"ok": true' in run(tmp_path / "venv/bin/vmstore", "verify", store, "--json", cwd=tmp_path)


def test_uvx_runs_it(wheel: Path, tmp_path: Path) -> None:
    """`uvx --from WHEEL vmstore demo` runs without anything being installed first."""
    uvx = Path(sys.executable).with_name("uvx")
    assert uvx.is_file(), "the extra `integrations` brings uv"
    folders = {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_TOOL_DIR": str(tmp_path / "tools")}
    assert "$ vmstore" in run(uvx, "--from", wheel, "vmstore", "demo", cwd=tmp_path, **folders)


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    """Every file of the package that is committed is in the wheel, and no other file but what says what it is."""
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    committed = run("git", "ls-tree", "-r", "--name-only", "HEAD", "vmstore", cwd=CHECKOUT).splitlines()
    assert names == set(committed)


def test_the_wheel_of_the_sdist_is_the_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    """A wheel that is made of the sdist holds the same bytes, file by file."""
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", unpacked(sdist, tmp_path))
    assert contents(next((tmp_path / "dist").glob("*.whl"))) == contents(wheel)


def test_it_says_what_it_is(wheel: Path) -> None:
    """The wheel names its licence, the Python it needs and its page, and has the licence in it."""
    with zipfile.ZipFile(wheel) as packed:
        metadata = next(packed.read(name).decode() for name in packed.namelist() if name.endswith("/METADATA"))
        assert any(name.endswith("licenses/LICENSE") for name in packed.namelist())
    for line in (
        "License-Expression: Apache-2.0",
        "Requires-Python: >=3.11",
        "Description-Content-Type: text/markdown",
    ):
        assert line in metadata


def unpacked(sdist: Path, folder: Path) -> Path:
    """An sdist's folder."""
    with tarfile.open(sdist) as packed:
        packed.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.name.startswith("vmstore-"))


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel, without its own list of them."""
    with zipfile.ZipFile(wheel) as packed:
        return {name: packed.read(name) for name in packed.namelist() if not name.endswith("/RECORD")}
