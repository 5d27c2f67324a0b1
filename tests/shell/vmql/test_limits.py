"""What a statement may take is set in the shell and on the command line, in units that people write."""

from __future__ import annotations

from typing import Any

import pytest

from vmstore.errors import InputError
from vmstore.shell.vmql.main import _settings
from vmstore.shell.vmql.options import UsageError, read
from vmstore.shell.vmql.settings import ShellSettings

TAKEN = [("timeout", "2.5", 2.5), ("rows", 10, 10), ("memory", "64MB", 64 << 20), ("memory", "1.5 gb", 3 << 29)]


@pytest.mark.parametrize(("name", "value", "limit"), TAKEN)
def test_a_limit_is_set_shown_and_taken_back(name: str, value: Any, limit: float) -> None:
    """SET takes seconds, rows and bytes, SHOW shows them, and NULL takes them back."""
    settings = ShellSettings()
    settings.put(name, value)
    assert list(settings.limits.values()) == [limit] and (name, str(limit)) in settings.shown()
    settings.put(name, None)
    assert settings.limits == {} and (name, "") in settings.shown()


@pytest.mark.parametrize(("name", "value"), [("timeout", 0), ("rows", "1.5"), ("rows", True), ("memory", "much")])
def test_what_is_no_limit_is_refused(name: str, value: Any) -> None:
    """What is no number above 0 is refused, and on the command line is a usage error."""
    with pytest.raises(InputError) as refused:
        ShellSettings().put(name, value)
    assert refused.value.code == "not-a-limit"
    with pytest.raises(UsageError):
        _settings(read([f"--{name}", str(value), "a.vms"]), one_shot=True)


def test_the_command_line_hands_limits_on() -> None:
    """`--timeout`, `--rows` and `--memory` are what each statement may take."""
    line = read(["a.vms", "--timeout", "3", "--rows", "5", "--memory", "1MB"])
    assert _settings(line, one_shot=True).limits == {"timeout_s": 3.0, "rows": 5, "memory": 1 << 20}
