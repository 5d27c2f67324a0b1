"""Which tests a change touches, and what each lane runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import bootstrap
import changes
import check
import pytest

from tests import lanes

CHECKOUT = Path(__file__).resolve().parent.parent
FILES = {
    "vmstore/__init__.py": "from vmstore.store.store import open",
    "vmstore/core/page.py": "",
    "vmstore/core/mutation.py": "from vmstore.core import page",
    "vmstore/views/projectors/turns.py": "import vmstore.core.mutation",
    "vmstore/store/store.py": "def f() -> None:\n"
    "    from vmstore.views.projectors.turns import (\n        Turns,\n    )",
    "tests/core/test_page.py": "from vmstore.core.page import Page",
    "tests/pages.py": "from vmstore.core.page import Page",
    "tests/capture/test_record.py": "from tests.pages import page",
    "tests/engine/test_gate.py": "from vmstore.core.mutation import Open",
    "tests/views/test_turns.py": "from vmstore.views.projectors.turns import TurnsProjector",
    "tests/store/test_open.py": "import vmstore",
    "tests/test_specs.py": "",
    "tests/test_house.py": "import tidy",
    "tools/tidy.py": "",
    "tests/vm/decisions.jsonl": "{}",
    "specs/log.md": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small checkout."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        # The room's own tests, what imports it, what imports a module of the room that does, and helpers' users.
        ("vmstore/core/page.py", "tests/capture/test_record.py tests/core tests/engine/test_gate.py"),
        # Not `test_turns`, which rests on `core` by way of another room.
        ("vmstore/core/mutation.py", "tests/core tests/engine/test_gate.py"),
        ("vmstore/views/projectors/turns.py", "tests/views"),
        ("vmstore/store/store.py", "tests/store"),
        ("tests/pages.py", "tests/capture/test_record.py"),
        ("tests/core/test_page.py", "tests/core/test_page.py"),
        ("tests/vm/decisions.jsonl", "tests/vm"),
        ("specs/log.md", "tests/test_specs.py"),
        ("tools/tidy.py", "tests/test_house.py"),
        ("tests/conftest.py", "tests"),
        ("LICENSE", ""),
    ],
)
def test_a_change_touches_its_room_and_what_imports_it(root: Path, changed: str, wanted: str) -> None:
    """Each kind of file leads to the tests that rest on it, and no change of a room runs every test."""
    house = {"tests/test_house.py"} if changed.startswith("vmstore/") else set()
    assert changes.touched(root, [changed]) == sorted({*wanted.split(), *house})


def test_no_module_of_this_checkout_is_without_a_test() -> None:
    """Each module of vmstore leads to tests of its own beside the house's rules, so a change to it runs something."""
    files = {name: (CHECKOUT / name).read_text() for name in changes.python_files(CHECKOUT)}
    users = changes.users_of(files)
    assert len(users) > 300
    alone = [
        name
        for name in files
        if name.startswith("vmstore/")
        and not name.endswith("__main__.py")
        and not (CHECKOUT / "tests" / changes.tests_of(changes.room_of(name))).is_dir()
        and not any(changes.is_test(user) for user in changes.reached(users, {name}))
    ]
    assert alone == []


def test_git_says_what_changed(tmp_path: Path) -> None:
    """Changed, new and removed files are named, and a commit that does not exist is refused by name."""
    for line in ("init -q", "config user.email a@b", "config user.name a"):
        subprocess.run(["git", *line.split()], cwd=tmp_path, check=True)
    for name in ("stays.py", "goes.py", "turns.py"):
        (tmp_path / name).write_text("x = 1\n")
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", "commit", "-q", "-m", "a"], cwd=tmp_path, check=True)
    (tmp_path / "goes.py").unlink()
    (tmp_path / "turns.py").write_text("x = 2\n")
    (tmp_path / "näu.py").write_text("")
    assert changes.changed_files(tmp_path, "HEAD") == ["goes.py", "näu.py", "turns.py"]
    with pytest.raises(bootstrap.RefusedError, match="no-such-commit"):
        changes.changed_files(tmp_path, "no-such-commit")


def test_a_room_is_a_folder_or_a_file_of_the_tests() -> None:
    """A room is named as its folder or file is, and one that is not there is refused with those that are."""
    assert check.room("vmql") == ["tests/vmql"]
    assert check.room("laws") == ["tests/test_laws.py"]
    with pytest.raises(bootstrap.RefusedError, match=r"no room 'vmqi'; there are adversarial, aio, bench, .*vmql"):
        check.room("vmqi")


def test_the_table_of_slow_tests_is_of_this_checkout() -> None:
    """Every test of the table is in the file that it names: one that was renamed would run in the fast lane unseen."""
    costs = lanes.table(lanes.TABLE.read_text())
    assert costs and all(cost >= lanes.STAYS_S for cost in costs.values())
    contracts = "".join(file.read_text() for file in (CHECKOUT / "vmstore" / "testing").glob("*contract*.py"))
    for name in costs:
        file, _, rest = name.partition("::")
        function = rest.partition("[")[0].rpartition("::")[2]
        assert f"def {function}(" in (CHECKOUT / file).read_text() + contracts or "runTest" in function, name


def test_a_table_is_read_as_it_was_written() -> None:
    """What is dear is written, what became a little cheaper stays, and the rest of a file that ran leaves."""
    before = {"a.py::stays": 2.0, "a.py::leaves": 2.0, "a.py::renamed": 2.0, "b.py::not run": 2.0}
    costs = {"a.py::new[a b]": 1.5, "a.py::cheap": 0.19, "a.py::stays": 0.15, "a.py::leaves": 0.13}
    assert lanes.table(lanes.table_text(costs, before)) == {
        "a.py::new[a b]": 1.5,
        "a.py::stays": 0.15,
        "b.py::not run": 2.0,
    }


LANES = """
import time
import pytest

def burn() -> None:
    end = time.process_time() + 0.3  # slow is what takes over a fifth of a second
    while time.process_time() < end:
        pass

@pytest.fixture(scope="module")
def dear() -> None:
    burn()

def test_slow() -> None:
    burn()

def test_first(dear: None) -> None:
    pass

def test_second(dear: None) -> None:
    pass

def test_quick() -> None:
    pass

@pytest.mark.nightly
def test_campaign() -> None:
    pass
"""


def test_each_lane_runs_its_tests(tmp_path: Path) -> None:
    """A run measures which tests are slow, and then fast leaves those out, ci the campaigns, nightly nothing."""
    tests = tmp_path / "tests"
    tests.mkdir()
    for name in ("conftest.py", "lanes.py", "recordings.py"):
        (tests / name).write_bytes((CHECKOUT / "tests" / name).read_bytes())
    (tests / "test_some.py").write_text(LANES)

    def passed(*arguments: str) -> set[str]:
        command = ["-p", "no:cacheprovider", "-o", f"pythonpath={tmp_path}", "--rootdir", str(tmp_path), "-v", "-n0"]
        done = subprocess.run(
            [bootstrap.sys.executable, "-m", "pytest", "--import-mode=importlib", *command, *arguments],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return {line.split("::")[1].split()[0] for line in done.stdout.splitlines() if " PASSED" in line}

    most = {"test_slow", "test_first", "test_second", "test_quick"}
    assert passed("tests", "--time") == most
    # Both tests of the module's fixture are slow: leaving out one would move the cost to the other.
    slow = lanes.table((tests / "slow.txt").read_text())
    assert set(slow) == {f"tests/test_some.py::{name}" for name in most - {"test_quick"}}
    assert passed("tests", "--lane", "fast") == {"test_quick"}
    assert passed("tests") == most
    assert passed("tests", "--lane", "nightly") == {*most, "test_campaign"}
    assert passed("tests/test_some.py::test_slow", "--lane", "fast") == {"test_slow"}
    assert passed("tests/test_some.py::test_campaign") == {"test_campaign"}
