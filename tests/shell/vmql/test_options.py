"""The command line of `vmql` is read as its help says."""

from __future__ import annotations

import os
import shlex

import pytest

from vmstore.shell.terminal.exit_codes import PIPE_CLOSED
from vmstore.shell.vmql import options
from vmstore.shell.vmql.main import main
from vmstore.shell.vmql.options import EXAMPLES, OPTIONS, UsageError, help_text, read
from vmstore.shell.vmql.output.formats import MODES


def test_inputs_keep_their_order() -> None:
    """Texts and files are asked in the order they are given; the last of several modes counts."""
    asked = read(["a.vms", "-c", "A", "--file=f", "--json", "--command", "B", "--csv", "--param", "x=1", "--param=y=2"])
    assert asked.store == "a.vms" and asked.mode == "csv"
    assert asked.inputs == (("-c", "A"), ("-f", "f"), ("-c", "B"))
    assert asked.values["--param"] == ["x=1", "y=2"]
    assert read(["--csv", "--json", "--csv", "--json", "--", "-x"]).mode == "json"
    assert read(["--", "-x"]).store == "-x" and read([]).store is None


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["a.vms", "--jsn"], "there is no option --jsn; the nearest is --json"),
        (["a.vms", "-c"], "-c needs a value: -c TEXT"),
        (["a.vms", "--session="], "--session needs a value"),
        (["a.vms", "--json=1"], "--json takes no value"),
        (["a.vms", "PAGES"], "unexpected argument 'PAGES'; put the query after -c"),
        ([], "no store is named"),
        (["a.vms", "--turn", "last"], "'last' is no turn"),
        (["a.vms", "--param", "x"], "'x' is no parameter; write NAME=VALUE"),
    ],
)
def test_usage_errors_leave_with_2(words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong command line is told on stderr in one line with the remedy, and leaves with 2."""
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("vmql: ") and text in err and err.count("\n") == 1 and "--help`" in err


def test_help_names_every_option_and_its_examples_can_be_read() -> None:
    """`--help` lists each option, and each example is a command line."""
    text = help_text()
    for option in OPTIONS:
        assert all(name in text for name in option.names) and option.summary in text
    for example in EXAMPLES:
        program, *words = shlex.split(example.partition(" > ")[0])
        assert program == "vmql" and read(words).store == "agent.vms"


def test_each_mode_is_an_option() -> None:
    """The modes of the command line are those that answers are written in."""
    assert options.MODES == MODES
    assert {f"--{mode}" for mode in MODES} <= {name for option in OPTIONS for name in option.names}


def test_an_option_of_a_bad_line_is_no_other() -> None:
    """An unknown option without any like it is refused without a guess."""
    with pytest.raises(UsageError, match=r"there is no option --zzzzzzzz$"):
        read(["--zzzzzzzz"])


def test_help_that_nobody_reads_to_its_end_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the reader of a pipe leaves, the command ends without a traceback."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as closed:
        monkeypatch.setattr("sys.stdout", closed)
        assert main(["--help"]) == PIPE_CLOSED
