"""The tests of the package that is replaced run over this one, and each that ends otherwise is argued."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.prose import CHECKOUT

FOLDER = os.environ.get("VMSTORE_PEER_TESTS")
FILES = (
    "memory",
    "memory_coverage",
    "eviction_policy",
    "demand_paging",
    "fault_handler_coverage",
    "memory_manager",
    "compressor",
)
DEVIATIONS = frozenset(
    (
        "test_memory_coverage::TestContextPackerEdgeCases::test_format_text_with_tool_result_type",
        "test_memory_coverage::TestArtifactsBridgeWithArtifacts::test_load_page_with_artifacts_bad_data",
        "test_memory_coverage::TestArtifactsBridgeWithArtifacts::test_load_page_with_artifacts_exception",
    )
)
"""Tests that fail over this package, as specs/chuk.md argues of each."""
COUNT, PUBLIC_COUNT = 665, 561

pytestmark = pytest.mark.skipif(
    FOLDER is None or find_spec("chuk_ai_session_manager") is None,
    reason="runs in the lane of tools/integrations.py, which has their tests",
)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, bool]]:
    """How each of their tests ended, in a process of its own, and whether it is public."""
    folder = tmp_path_factory.mktemp("peer")
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n", encoding="utf-8")
    tests = [str(Path(FOLDER or "") / f"test_{name}.py") for name in FILES]
    options = ("-q", "-c", str(folder / "pytest.ini"), "--rootdir", FOLDER or "", "-p", "no:xdist")
    options += ("-p", "tests.integrations.chuk.peer_plugin")
    command = [sys.executable, "-m", "pytest", *options, "-p", "no:cacheprovider", "--import-mode=importlib", *tests]
    environment = {**os.environ, "VMSTORE_PEER_OUTCOMES": str(folder / "outcomes.json"), "PYTHONPATH": str(CHECKOUT)}
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (folder / "outcomes.json").is_file(), run.stdout + run.stderr
    return {name: tuple(ended) for name, ended in json.loads((folder / "outcomes.json").read_text()).items()}


def test_all_but_the_argued_ones_pass(outcomes: dict[str, tuple[str, bool]]) -> None:
    """Of their 665 tests all pass but those that are argued, and those fail."""
    assert len(outcomes) == COUNT
    assert {name for name, (outcome, _) in outcomes.items() if outcome != "passed"} == DEVIATIONS


def test_all_that_touch_nothing_private_pass(outcomes: dict[str, tuple[str, bool]]) -> None:
    """Of their 561 tests whose text touches no private attribute, of anything, all pass."""
    public = {name: outcome for name, (outcome, is_public) in outcomes.items() if is_public}
    assert len(public) == PUBLIC_COUNT
    assert set(public.values()) == {"passed"}


SURFACE = """
import importlib, inspect, json, sys
names = {}
for module in sys.argv[2:]:
    package = importlib.import_module(f"{sys.argv[1]}.{module}" if module else sys.argv[1])
    for name, value in vars(package).items():
        is_listed = not module or name in getattr(package, "__all__", ())
        is_here = is_listed or getattr(value, "__module__", package.__name__) == package.__name__
        is_borrowed = name in sys.modules["typing"].__all__ or name == "UTC"
        if name.startswith("_") or inspect.ismodule(value) or not is_here or is_borrowed:
            continue
        at = f"{module}.{name}"
        names[at] = ""
        if inspect.isclass(value):
            if issubclass(value, str) or issubclass(value, int):
                names[at] = json.dumps([[one.name, one.value] for one in value])
            for field, stated in getattr(value, "model_fields", {}).items():
                names[f"{at}.{field}"] = "" if stated.is_required() else repr(stated.default)
            for method, function in vars(value).items():
                if (not method.startswith("_") or method == "__init__") and method != "model_post_init":
                    if inspect.isfunction(function):
                        given = inspect.signature(function).parameters.values()
                        names[f"{at}.{method}()"] = json.dumps([p.name for p in given])
                    elif isinstance(function, property):
                        names[f"{at}.{method}"] = "property"
        elif inspect.isfunction(value):
            names[f"{at}()"] = json.dumps([p.name for p in inspect.signature(value).parameters.values()])
print(json.dumps(names))
"""


def surface(package: str) -> dict[str, Any]:
    """The public names of a package, in a process that imports nothing else: values, fields, parameters."""
    from vmstore.integrations.chuk.replacement import MODULES

    command = [sys.executable, "-W", "ignore", "-c", SURFACE, package, "", *MODULES]
    run = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    names: dict[str, Any] = json.loads(run.stdout)
    return names


def test_every_public_name_is_there() -> None:
    """Each public class, field with its default, method with its parameters, and function of theirs is here too."""
    theirs, ours = surface("chuk_ai_session_manager.memory"), surface("vmstore.integrations.chuk")
    assert len(theirs) > 700
    missing = [name for name in theirs if name not in ours]
    assert missing == []
    others = {name: (value, ours[name]) for name, value in theirs.items() if not alike(value, ours[name])}
    assert others == {}


def alike(theirs: str, ours: str) -> bool:
    """Whether a value is theirs; of parameters whether all of theirs come first, in their order."""
    if theirs.startswith("[") and ours.startswith("[") and theirs != ours:
        return json.loads(ours)[: len(json.loads(theirs))] == json.loads(theirs)
    return theirs == ours
