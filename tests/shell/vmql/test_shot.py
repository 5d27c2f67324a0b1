"""One shot: questions on the command line, in files and on standard input; answers, errors and exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import vmstore
from tests.shell.conftest import ROOT, record_s1
from tests.shell.test_render import on_terminal
from tests.shell.vmql.conftest import Shot
from vmstore.shell.commands.registry import COMMANDS
from vmstore.shell.vmql.options import help_text
from vmstore.vmql.relations.catalog import DESCRIBED

# Runs the command and says which of these packages it loaded.
BARE = """
import sys
from vmstore.shell.vmql.main import main
code = main(sys.argv[1:])
heavy = ("numpy", "prompt_toolkit", "rich", "lark", "duckdb", "argparse", "asyncio", "subprocess", "logging")
rooms = ("capture", "engine", "live", "relevance", "replay", "search", "vm")
heavy += ("zoneinfo", *(f"vmstore.{room}" for room in rooms))
print(code, [name for name in heavy if name in sys.modules], file=sys.stderr)
"""
# Runs it where an extra is not installed.
WITHOUT = "import sys; sys.modules[{!r}] = None; from vmstore.shell.vmql.main import main; sys.exit(main(sys.argv[1:]))"


def test_questions_are_answered_in_order(shot: Shot, planning: Path, tmp_path: Path) -> None:
    """Texts, files and standard input are asked in the order they are given; without any, standard input is."""
    (tmp_path / "q").write_text("SESSIONS turns; SESSIONS calls")
    picture = shot(
        planning,
        "-c",
        "SESSIONS session",
        "-f",
        tmp_path / "q",
        "-c",
        "SESSIONS pages",
        "-f",
        "-",
        text="SESSIONS tokens",
    )
    assert picture.stdout.split() == [
        "session",
        "planning-220",
        "turns",
        "220",
        "calls",
        "525",
        "pages",
        "1296",
        "tokens",
        "77841",
    ]
    assert (picture.returncode, picture.stderr) == (0, "")
    assert shot(planning, text="SESSIONS turns;").stdout == "turns\n  220\n"
    assert shot(planning, text="").stdout == ""


def test_json_is_one_object_a_statement(shot: Shot, planning: Path) -> None:
    """With --json each statement is one line, in order, and a failed one is told on stderr alone."""
    picture = shot(planning, "--json", "-c", "SESSIONS turns; PAGES page LIMIT 2; PAGES tokns; SESSIONS calls")
    first, second = map(json.loads, picture.stdout.splitlines())
    assert list(first) == ["basis", "columns", "rows", "elapsed_ms"] and first["rows"] == [{"turns": 220}]
    assert list(second) == ["basis", "columns", "rows", "elapsed_ms", "next"] and len(second["rows"]) == 2
    assert picture.returncode == 1 and picture.stderr.startswith("vmql: PAGES has no column 'tokns'")
    again = shot(planning, "--json", "-c", f"PAGES page LIMIT 2 AFTER '{second['next']}'")
    assert json.loads(again.stdout)["rows"][0]["page"] not in {row["page"] for row in second["rows"]}


def test_the_shape_is_the_one_of_python(shot: Shot, planning: Path) -> None:
    """`--json` prints what `Result.to_json` gives."""
    statement = "CALLS call, tokens, cost, model LIMIT 3"
    document = json.loads(shot(planning, "--json", "-c", statement).stdout)
    with vmstore.open(planning, "r") as store:
        wanted = store.query(statement).to_json()
    assert {**document, "elapsed_ms": 0} == {**wanted, "elapsed_ms": 0}


def test_an_error_names_its_line(shot: Shot, planning: Path, tmp_path: Path) -> None:
    """Of a file the line that is wrong is shown over a caret, and what was answered before stands."""
    (tmp_path / "q").write_text("-- first\nSESSIONS turns;\n\nPAGES page,\n  tokns;\nSESSIONS calls;\n")
    picture = shot(planning, "-f", tmp_path / "q")
    assert picture.returncode == 1 and picture.stdout == "turns\n  220\n"
    assert picture.stderr.splitlines()[1:] == ["line 5:   tokns", "          ^^^^^"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["/nowhere", "-c", "PAGES"], "there is no store at /nowhere"),
        (["STORE", "-f", "/nowhere.vmql"], "/nowhere.vmql cannot be read (No such file or directory)"),
        (["STORE", "--namespace", "none", "-c", "PAGES"], "none"),
        (["STORE", "--session", "none", "-c", "PAGES"], "none"),
        (["STORE", "--read-only", "-c", "FORK AT TURN 2 AS x"], "read"),
        (["STORE", "-c", "PAGES AS OF TURN 999"], "turn 999 does not exist"),
        (["STORE", "-c", "\\nonsense"], "there is no command \\nonsense"),
        (["STORE", "-c", "PAGES WHERE page = $p"], "$p"),
    ],
)
def test_what_is_refused_leaves_with_1(shot: Shot, planning: Path, words: list[str], text: str) -> None:
    """A store, file or query that cannot be used leaves with 1, a reason on stderr and nothing on stdout."""
    picture = shot(*(planning if word == "STORE" else word for word in words))
    assert (
        picture.returncode == 1
        and picture.stdout == ""
        and text in picture.stderr
        and "Traceback" not in picture.stderr
    )


def test_bytes_and_endless_texts_are_refused(shot: Shot, planning: Path, tmp_path: Path) -> None:
    """A file that is no text, and ten megabytes of one statement, are refused with the reason."""
    (tmp_path / "binary").write_bytes(b"\x00\xff" * 99)
    assert "is no text" in shot(planning, "-f", tmp_path / "binary").stderr
    (tmp_path / "long").write_text("PAGES WHERE hint = '" + "x" * 10_000_000 + "'")
    picture = shot(planning, "-f", tmp_path / "long")
    assert picture.returncode == 1 and "1,000,000 characters" in picture.stderr and len(picture.stderr) < 1000


def test_options_hold_for_every_statement(shot: Shot, two: Path) -> None:
    """Session, turn and parameters hold for statements that name none, and modes for every answer."""
    picture = shot(
        two,
        "--session",
        "s2",
        "--turn",
        "1",
        "--param",
        "n=1",
        "--csv",
        "-c",
        "PAGES session, page LIMIT $n; TURNS turn",
    )
    assert picture.stdout.split() == ["session,page", "s2,p4", "turn", "1"]
    assert "AFTER" not in picture.stderr, "who gave a limit knows of it"
    assert "1 row in " in shot(two, "--timing", "-c", "SESSIONS count(*)").stderr


def test_a_command_works_in_a_script(shot: Shot, planning: Path) -> None:
    """Commands stand between statements, `\\quit` ends the run with 0, and a script waits for no key."""
    picture = shot(planning, text="\\mode csv\nSESSIONS turns;\n\\turn 42\nPAGES count(*);\n\\quit\nPAGES tokns;\n")
    assert picture.stdout == "turns\n220\ncount(*)\n255\n" and picture.returncode == 0


def test_each_answer_has_its_drawing(shot: Shot, planning: Path) -> None:
    """A context has bars, a diff signs, a lineage branches, a plan times; with --table all are tables."""
    for statement, sign in (
        ("CONTEXT AT CALL 3", "████████"),
        ("DIFF CONTEXT CALL 40 TO CALL 41", "\n+  p372"),
        ("DIFF CONTEXT CALL 40 TO CALL 40", "nothing differs"),
        ("HISTORY OF claim_storage_4", "entered the context"),
        ("SOURCES OF claim_storage_4 DEPTH 1", "└─ caused by p355"),
        ("DERIVED FROM claim_storage_1 DEPTH 1", "made into"),
        ("WHY claim_storage_4 IN CONTEXT AT CALL 317", "→"),
        ("EXPLAIN PAGES", "└─"),
        ("EXPLAIN ANALYZE PAGES", " ms "),
        ("VERIFY", "ok: 1,610 commits"),
    ):
        drawn = shot(planning, "-c", statement)
        assert drawn.returncode == 0 and sign in drawn.stdout, (statement, drawn.stderr)
        plain = shot(planning, "--table", "-c", statement)
        assert plain.returncode == 0 and sign not in plain.stdout, statement


def test_an_empty_answer_says_what_fills_it(shot: Shot, tmp_path: Path) -> None:
    """Where recording alone makes no row, an empty answer names what does, and each command it names can be run."""
    with vmstore.open(tmp_path / "a.vms") as store:
        record_s1(store)
    filled = {name: relation.filled for name, relation in DESCRIBED.items() if relation.filled}
    assert {"FACTS", "TAGS", "SKILLS", "TASKS", "ATOMS", "ARTIFACTS", "GUARDS"} == set(filled)
    for name, remedy in filled.items():
        done = shot(tmp_path / "a.vms", "-c", name)
        assert (done.returncode, done.stderr) == (0, f"0 rows; {remedy}\n")
        for command in re.findall(r"`vmstore (\w+) ([^`]*)`", remedy):
            assert COMMANDS[command[0]].parser().parse_intermixed_args(command[1].split()) is not None


def test_a_rendered_context_is_exact(shot: Shot, planning: Path) -> None:
    """RENDER and MESSAGES in a pipe are the texts that the store gives."""
    with vmstore.open(planning, "r") as store:
        context = store.session("planning-220").context(call=3)
        assert shot(planning, "-c", "CONTEXT AT CALL 3 RENDER").stdout == context.text() + "\n"
        (line, *_) = shot(planning, "-c", "CONTEXT AT CALL 3 MESSAGES", "--jsonl").stdout.splitlines()
        assert json.loads(line)["message"] == context.messages()[0]


def test_a_terminal_gets_what_fits_it(planning: Path) -> None:
    """On a terminal tables fit its width, a context is drawn in colour, and a script asks for no key."""
    command = [sys.executable, "-m", "vmstore.shell.vmql", str(planning), "-c"]
    plain = on_terminal(*command, "PAGES page, hint, text LIMIT 50", NO_COLOR="1")
    assert max(len(line) for line in plain.splitlines()) <= 100 and "…" in plain and "── more" not in plain
    upright = on_terminal(*command, "PAGES * LIMIT 1", NO_COLOR="1")
    assert "── 1 ──" in upright and "page  p4" in upright
    why = on_terminal(*command, "WHY claim_storage_4 IN CONTEXT AT CALL 317", NO_COLOR="1")
    assert "…" not in why and "the source does not say why" in " ".join(why.split())
    pytest.importorskip("rich")
    assert "\x1b[36m" in on_terminal(*command, "CONTEXT AT CALL 3")


def test_ctrl_c_leaves_with_130(planning_copy: Path) -> None:
    """A WATCH shows what there is and what comes, each on a line at once, until Ctrl-C ends it with 130."""
    command = [sys.executable, "-m", "vmstore.shell.vmql", str(planning_copy), "--jsonl", "-c"]
    command.append("WATCH MUTATIONS session, position WHERE kind = pack AND session = 's1'")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}
    with vmstore.open(planning_copy) as store:
        record_s1(store)
        watching = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        assert watching.stdout is not None
        shown = [json.loads(watching.stdout.readline()) for _ in range(4)]
        assert {row["session"] for row in shown} == {"s1"}
        store.record("s1", {"model": "m", "messages": [{"role": "user", "content": "one more"}]}, None)
        fifth = json.loads(watching.stdout.readline())
        assert fifth["position"] > shown[-1]["position"]
    time.sleep(0.1)
    watching.send_signal(signal.SIGINT)
    out, err = watching.communicate(timeout=60)
    assert watching.returncode == 130 and out == "" and "Traceback" not in err


def test_a_closed_pipe_is_no_complaint(planning: Path) -> None:
    """A reader that closes the pipe early ends the command without a word on stderr."""
    command = f"{sys.executable} -m vmstore.shell.vmql {planning} -c 'MUTATIONS' --jsonl"
    done = subprocess.run(
        ["bash", "-c", f"{{ {command}; echo $? >&3; }} 3>&1 | head -c 1 >/dev/null; true"],
        capture_output=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.stderr == b""


@pytest.mark.parametrize("extra", ["rich", "prompt_toolkit"])
def test_one_shot_needs_no_extra(planning: Path, extra: str) -> None:
    """Without an extra the same questions get the same answers, also on a terminal."""
    command = [sys.executable, "-c", WITHOUT.format(extra), str(planning), "-c", "CONTEXT AT CALL 3"]
    with_it = [sys.executable, "-m", "vmstore.shell.vmql", *command[3:]]
    assert on_terminal(*command, NO_COLOR="1") == on_terminal(*with_it, NO_COLOR="1")


def test_without_prompt_toolkit_lines_are_read(planning: Path) -> None:
    """At a terminal without prompt_toolkit the shell reads line by line, and says what is missing."""
    code = WITHOUT.format("prompt_toolkit").replace("from", "sys.stdin.isatty = lambda: True; from", 1)
    done = subprocess.run(
        [sys.executable, "-c", code, str(planning), "--no-rc"],
        input="SESSIONS\nturns;\nPAGES tokns;\nSESSIONS calls;\n",
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 0 and "turns\n  220\n" in done.stdout and "calls\n  525\n" in done.stdout
    assert "without prompt_toolkit" in done.stderr and "tokns" in done.stderr


def test_a_question_loads_nothing_heavy(planning: Path) -> None:
    """Help loads no store, and a question neither numpy nor any extra, nor the gate, search and kernel."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    for words in (["--help"], [str(planning), "-c", "PAGES count(*) BY type"]):
        done = subprocess.run(
            [sys.executable, "-c", BARE, *words], capture_output=True, text=True, env=env, check=False
        )
        assert done.stderr.splitlines()[-1] == "0 []", done.stderr


def test_help_card_and_versions(shot: Shot) -> None:
    """`--help`, `--card` and `--version` print what they say, without a store."""
    assert shot("--help").stdout == help_text() + "\n"
    assert shot("--version").stdout.startswith("vmstore 0.")
    card = shot("--card").stdout
    assert len(card.splitlines()) <= 60 and max(map(len, card.splitlines())) <= 120


def test_sql_is_asked_on_the_command_line_and_in_the_shell(shot: Shot, planning: Path, tmp_path: Path) -> None:
    """`--sql` and `\\sql` answer SQL at the turn, in the session and with the parameters that are set."""
    text = "SELECT count(*) AS pages FROM pages WHERE role = :text"
    (tmp_path / "q").write_text(text)
    texts = ("--turn", "10", "--param", "text=user", "--json")
    rows = []
    for asked in (("--sql", "-c", text), ("--sql", "-f", str(tmp_path / "q")), ("-c", f"\\sql {text}")):
        picture = shot(planning, *texts, *asked)
        assert picture.returncode == 0, picture.stderr
        answer = json.loads(picture.stdout)
        rows.append((answer["rows"], answer["basis"]["turn"]))
    with vmstore.open(planning) as store:
        counted = list(store.query("PAGES count(*) AS OF TURN 10 WHERE role = user"))
    assert rows == [([{"pages": counted[0][0]}], 10)] * 3
    refused = shot(planning, "--sql", "-c", "SELECT tokns FROM pages")
    assert refused.returncode == 1
    assert "did you mean tokens?" in refused.stderr
