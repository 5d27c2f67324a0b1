"""The shell driven as a reader drives it: keys go in through a pipe, answers come out."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from vmstore.shell.open_store import opened_to_ask
from vmstore.shell.vmql.completer import Completer
from vmstore.shell.vmql.output.targets import Outputs
from vmstore.shell.vmql.prompt import editor, label, more
from vmstore.shell.vmql.repl import Repl
from vmstore.shell.vmql.repl_loop import sit
from vmstore.shell.vmql.settings import ShellSettings

AT_42 = "count(*)\n     255\n"


class Sat(NamedTuple):
    """What a sitting left behind."""

    code: int
    out: str
    err: str
    desk: Repl


Sitting = Callable[..., Sat]


@pytest.fixture
def sitting(planning: Path, capsys: pytest.CaptureFixture[str]) -> Sitting:
    """Types keys into a shell at the demo store, and leaves it."""
    pytest.importorskip("prompt_toolkit")

    def sitting(*lines: str, rc: bool = True, store: Path = planning) -> Sat:
        from prompt_toolkit.input import create_pipe_input
        from prompt_toolkit.output import DummyOutput

        desk = Repl(
            lambda place: opened_to_ask(place, "default"), str(store), ShellSettings(), Outputs(keys=lambda *_: "q")
        )
        capsys.readouterr()
        with create_pipe_input() as source:
            source.send_text("".join(f"{line}\n" for line in (*lines, "\\quit")))
            session = editor(desk, source, DummyOutput())
            code = sit(desk, lambda: str(session.prompt()), rc=rc)
        desk.close()
        return Sat(code, *capsys.readouterr(), desk)

    return sitting


def test_a_statement_takes_lines_until_its_end(sitting: Sitting) -> None:
    """A statement is asked once its `;` is typed, on whichever line."""
    assert sitting("SESSIONS session", "WHERE turns > 3", ";").out == "session\nplanning-220\n"
    assert sitting("SESSIONS session; SESSIONS turns;").out == "session\nplanning-220\nturns\n  220\n"


def test_an_error_points_and_the_shell_goes_on(sitting: Sitting) -> None:
    """What is wrong stands on stderr over a caret, with the near word, and the next question is answered."""
    actual_sitting = sitting("PAGES tokns;", "SESSIONS session;")
    assert actual_sitting.code == 0 and actual_sitting.out == "session\nplanning-220\n"
    assert actual_sitting.err.splitlines()[:3] == [
        "vmql: PAGES has no column 'tokns'; did you mean tokens?",
        "line 1: PAGES tokns",
        "              ^^^^^",
    ]


def test_ctrl_c_clears_the_line_and_ctrl_d_leaves(sitting: Sitting) -> None:
    """After Ctrl-C nothing of the line is asked; Ctrl-D ends the shell with 0."""
    actual_sitting = sitting("PAGES tok\x03SESSIONS session;")
    assert actual_sitting.out == "session\nplanning-220\n" and actual_sitting.err == ""
    assert sitting("\x04", "PAGES tokns;").err == ""


def test_the_turn_holds_for_what_names_no_moment(sitting: Sitting) -> None:
    """`\\turn` and SET as_of are one: they hold for statements without a moment, and the prompt shows them."""
    for line in ("\\turn 42", ".turn 42", "SET as_of = TURN 42;"):
        actual_sitting = sitting(line, "PAGES count(*);")
        assert actual_sitting.out == AT_42 and label(actual_sitting.desk) == "vmql turn 42> "
    actual_sitting = sitting("\\turn 42", "PAGES count(*) AS OF TURN 1;", "\\turn head", "SHOW as_of;")
    assert (
        actual_sitting.out == "count(*)\n       7\nsetting  value\nas_of    HEAD\n"
        and label(actual_sitting.desk) == "vmql> "
    )
    other_sitting = sitting(
        "\\turn 3", "CONTEXT page LIMIT 1;", "WHY p4 IN CONTEXT;", "\\mode json", "CONTEXT page LIMIT 1;"
    )
    assert json.loads(other_sitting.out.splitlines()[-1])["basis"]["turn"] == 3


def test_the_session_is_one_the_store_has(sitting: Sitting) -> None:
    """`\\session` and SET session take a session's name or a beginning of it; an unknown one is refused."""
    actual_sitting = sitting(
        "\\session planing-220", "\\session plan", "SET session = 'planning-220';", "SHOW session;"
    )
    assert "there is no session 'planing-220'" in actual_sitting.err and "planning-220" in actual_sitting.err
    assert (
        actual_sitting.out == "setting  value\nsession  planning-220\n"
        and label(actual_sitting.desk) == "planning-220> "
    )
    assert label(sitting("\\session planning-220", "SET session = NULL;").desk) == "vmql> "


def test_settings_are_shown_and_refused(sitting: Sitting) -> None:
    """SHOW settings lists each with its value; an unknown one is pointed at, a wrong value refused."""
    actual_sitting = sitting("SET limit = 5;", "SET mode = line;", "\\param x=it's", "\\mode auto", "SHOW settings;")
    fields = dict(line.split(None, 1) for line in actual_sitting.out.splitlines() if " " in line.strip())
    assert fields["limit"] == "5" and fields["mode"] == "auto" and fields["params"] == '$x = "it\'s"'
    wrong = sitting("SET lmit = 5;", "SET limit = -1;", "\\timing maybe", "\\mode xml", "\\turn last", "SET as_of = 4;")
    assert "there is no setting 'lmit'; did you mean limit?" in wrong.err and "    ^" in wrong.err
    for text in (
        "-1 is not a number from 0 up",
        "'maybe' is neither",
        "no mode 'xml'",
        "'last' is no turn",
        "no moment",
    ):
        assert text in wrong.err


def test_parameters_are_values(sitting: Sitting) -> None:
    """`\\param` gives `$name` a number or a text, and a query uses it."""
    actual_sitting = sitting("\\param n=2", "\\param s = planning-220", "PAGES page WHERE session = $s LIMIT $n;")
    assert actual_sitting.out.split() == ["page", "p4", "p8"]
    assert "AFTER" not in actual_sitting.err, "who gave a limit knows of it"


def test_an_answer_goes_where_it_is_sent(sitting: Sitting, tmp_path: Path) -> None:
    """`\\once` sends one answer to a file or a program, `\\output` all until it is taken back."""
    each_tmp_path, all_ = tmp_path / "one.csv", tmp_path / "all.txt"
    actual_sitting = sitting(
        "\\mode csv",
        f"\\once {each_tmp_path}",
        "SESSIONS session;",
        f"\\output {all_}",
        "SESSIONS turns;",
        "SESSIONS calls;",
        "\\output",
        f"\\once | tee {tmp_path / 'piped'}",
        "SESSIONS pages;",
        "SESSIONS tokens;",
    )
    assert each_tmp_path.read_text() == "session\nplanning-220\n" and all_.read_text() == "turns\n220\ncalls\n525\n"
    assert (tmp_path / "piped").read_text() == "pages\n1296\n" and "tokens\n77841\n" in actual_sitting.out
    wrong = sitting(f"\\once {tmp_path}/none/x", "SESSIONS session;", "\\once | no-such-program", "SESSIONS turns;")
    assert "cannot be written" in wrong.err and "no-such-program cannot be run" in wrong.err and wrong.out == ""


def test_the_last_answer_is_shown_again(sitting: Sitting) -> None:
    """`\\last` shows the answer again in another mode without asking again, `\\explain` how it was had."""
    actual_sitting = sitting("SESSIONS session, turns;", "\\last json", "\\last markdown")
    assert json.loads(actual_sitting.out.splitlines()[2])["rows"] == [{"session": "planning-220", "turns": 220}]
    assert actual_sitting.out.endswith("| planning-220 | 220 |\n")
    assert "there is no answer yet" in sitting("\\last").err
    assert "nothing was asked yet" in sitting("\\explain").err


def test_kept_statements_are_asked_again(sitting: Sitting, home: Path) -> None:
    """`\\save` keeps a statement under a name in a file, `\\fav` asks and lists, `\\forget` drops it."""
    actual_sitting = sitting("SESSIONS turns;", "\\save how-long", "\\fav how-long", "\\fav")
    assert (
        actual_sitting.out.startswith("turns\n  220\nturns\n  220\nname")
        and "how-long  SESSIONS turns" in actual_sitting.out
    )
    assert (home / "config/vmstore/favourites/how-long.vmql").read_text() == "SESSIONS turns\n"
    actual_sitting = sitting("\\fav how-lon", "\\forget how-long", "\\fav how-long", "\\save ../x SESSIONS")
    assert (
        "the nearest is how-long" in actual_sitting.err and "no statement is kept as 'how-long'" in actual_sitting.err
    )
    assert "'../x' is no name" in actual_sitting.err


def test_files_are_read(sitting: Sitting, tmp_path: Path) -> None:
    """`\\read` runs statements and commands of a file; one that reads itself is stopped; an error names its line."""
    script = tmp_path / "q.vmql"
    script.write_text("-- two\nSESSIONS session;\n\\mode csv\nSESSIONS turns;\nPAGES tokns;\n")
    actual_sitting = sitting(f"\\read {script}")
    assert actual_sitting.out == "session\nplanning-220\nturns\n220\n" and "line 5: PAGES tokns" in actual_sitting.err
    script.write_text(f"\\read {script}\n")
    assert "20 deep" in sitting(f"\\read {script}").err


def test_commands_may_be_shortened(sitting: Sitting) -> None:
    """A beginning that one command has will do; one that several have names them; a slip names the nearest."""
    assert sitting("\\m csv", "SESSIONS turns;").out == "turns\n220\n"
    actual_sitting = sitting("\\t", "\\xyz", "\\sesion x", "\\open", "help")
    assert (
        "\\t could be \\tour, \\turn, \\timing" in actual_sitting.err
        and "there is no command \\xyz; \\help" in actual_sitting.err
    )
    assert (
        "the nearest is \\session" in actual_sitting.err
        and "something is missing; write \\open STORE" in actual_sitting.err
    )
    assert "\\quit" in actual_sitting.out


def test_another_store_is_opened(sitting: Sitting, planned: Path) -> None:
    """`\\open` turns to another store and keeps the one there is where that fails."""
    actual_sitting = sitting("\\open /nowhere", "SESSIONS session;", f"\\open {planned}", "SESSIONS session;")
    assert (
        actual_sitting.out == "session\nplanning-220\nsession\nplan\n" and "no store at /nowhere" in actual_sitting.err
    )


def test_the_rc_file_is_run_first(sitting: Sitting, home: Path) -> None:
    """What the rc file sets holds, what is wrong in it is said, and the shell goes on."""
    rc = home / "config" / "vmstore" / "vmqlrc"
    rc.parent.mkdir(parents=True)
    rc.write_text("\\mode csv\nPAGES tokns;\n")
    actual_sitting = sitting("SESSIONS turns;")
    assert actual_sitting.out == "turns\n220\n" and "line 2: PAGES tokns" in actual_sitting.err
    assert sitting("SESSIONS turns;", rc=False).out == "turns\n  220\n"


def test_what_was_asked_is_remembered(sitting: Sitting, home: Path) -> None:
    """The history is a file that only its owner reads, and Up brings back what was asked."""
    sitting("SESSIONS turns;")
    history = home / "state" / "vmstore" / "vmql_history"
    assert "+SESSIONS turns;" in history.read_text() and stat.S_IMODE(history.stat().st_mode) == 0o600
    up_twice = "\x1b[A\x1b[A"  # the last thing typed was \quit
    assert sitting(up_twice).out == "turns\n  220\n"


def test_a_history_that_cannot_be_written_stops_nobody(
    sitting: Sitting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the history cannot be written that is said once, and questions are answered."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    actual_sitting = sitting("SESSIONS turns;", "SESSIONS turns;")
    assert actual_sitting.out == "turns\n  220\n" * 2 and actual_sitting.err.count("cannot be written") == 1


def test_a_fault_of_ours_leaves_the_desk(sitting: Sitting, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error nobody foresaw is shown with its traceback, and the next question is answered."""
    asked = Repl.ask

    def broken(self: Repl, text: str, **more: Any) -> None:
        if "calls" in text:
            raise KeyError("ours")
        asked(self, text, **more)

    monkeypatch.setattr(Repl, "ask", broken)
    actual_sitting = sitting("SESSIONS calls;", "SESSIONS turns;")
    assert "KeyError: 'ours'" in actual_sitting.err and actual_sitting.out == "turns\n  220\n"


def test_the_prompt_shows_what_is_open() -> None:
    """The lines after the first show the quote that is open, in the width of the first."""
    assert more("PAGES", 6) == " ...> ".rjust(6)[-6:] and more("PAGES 'a", 6).strip() == "'''>"


@pytest.mark.parametrize(
    ("before", "wanted", "never"),
    [
        ("", {"PAGES", "CONTEXT", "WHY"}, {"WHERE"}),
        ("pa", {"PAGES"}, {"CONTEXT"}),
        ("SESSIONS; PAG", {"PAGES"}, {"CALLS"}),
        ("PAGES tok", {"tokens"}, {"type"}),
        ("PAGES ", {"tokens", "count(", "WHERE", "AS OF"}, {"PAGES"}),
        ("PAGES WHERE type = ", {"claim", "summary"}, {"tokens"}),
        ("PAGES WHERE type = 'cl", {"'claim'"}, {"claim"}),
        ("CALLS WHERE model = ", {"planner-large-2"}, {"tokens"}),
        ("CONTEXT AT ", {"TURN", "CALL"}, {"WHERE"}),
        ("HISTORY OF claim_storage_", {"claim_storage_4"}, {"claim_api_1"}),
        ("PAGES IN SESSION ", {"planning-220"}, set()),
        ("PAGES IN SESSION 'pl", {"'planning-220'"}, set()),
        ("SOURCES OF p4 VIA ", {"derives"}, set()),
        ("DESCRIBE ", {"PAGES", "CONTEXT"}, set()),
        ("SET ", {"session", "as_of"}, set()),
        ("PAGES tokns WHRE ", set(), {"tokens"}),
        ("\\mo", {"\\mode"}, {"\\quit"}),
        (".mode j", {"json", "jsonl"}, {"csv"}),
        ("\\session ", {"planning-220"}, set()),
        ("\\help ti", {"timing"}, set()),
    ],
)
def test_tab_offers_what_fits(desk: Repl, before: str, wanted: set[str], never: set[str]) -> None:
    """Candidates are what the parser can take, and the names and words that the store has."""
    texts = {candidate.text for candidate in Completer(desk).candidates(before)}
    assert wanted <= texts and not never & texts, sorted(texts)


def test_sql_is_completed_by_tables_and_their_columns(desk: Repl) -> None:
    """After \\sql names of tables are offered, and columns of those that are named."""
    texts = [candidate.text for candidate in Completer(desk).candidates("\\sql SELECT * FROM resid")]
    assert texts == ["residencies", "residencies_at"]
    columns = {
        candidate.text: candidate.replaces
        for candidate in Completer(desk).candidates("\\sql SELECT * FROM calls WHERE tokens_")
    }
    names = ("tokens_before", "tokens_reported", "tokens_cached", "tokens_written", "tokens_out")
    assert columns == dict.fromkeys(names, 7)


def test_a_candidate_takes_the_place_of_what_was_begun(desk: Repl) -> None:
    """The characters a candidate replaces are those it begins with, the quote included."""
    for before, text in (("PAGES tok", "tokens"), ("PAGES IN SESSION 'pl", "'planning-220'"), ("\\mo", "\\mode")):
        (candidate,) = [
            each_candidate for each_candidate in Completer(desk).candidates(before) if each_candidate.text == text
        ]
        assert before[len(before) - candidate.replaces :] + "" == before.split()[-1]
