"""The specs say what the code does: every block is run, every table is held against the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import bench
import campaign
import pytest

from tests.integrations.test_pages import FRAMEWORKS
from tests.prose import CHECKOUT, broken_links, quoted, run_page, section, tables
from tests.states import states
from vmstore import errors
from vmstore.capture.importers.formats import FORMATS
from vmstore.columns.schema import TABLES as COLUMNS
from vmstore.core import mutation as m
from vmstore.core.page import METHODS
from vmstore.debug import session_data
from vmstore.debug.api import DebugApi
from vmstore.engine.rules.cell_contents import FORMS
from vmstore.engine.rules.rules import RULES
from vmstore.shell.commands.registry import COMMANDS
from vmstore.shell.vmql.commands import COMMANDS as SHELL_COMMANDS
from vmstore.shell.vmql.options import OPTIONS
from vmstore.shell.vmql.output.formats import MODES
from vmstore.shell.vmql.settings import AUTO
from vmstore.store.store import memory_store
from vmstore.transfer.tables import TABLES
from vmstore.views.projection import PROJECTORS
from vmstore.vm.compressors.callback import Outcome
from vmstore.vm.compressors.form import NoFormReason
from vmstore.vm.compressors.page_types import COMPRESSION
from vmstore.vm.compressors.registry import COMPRESSORS

FILM = {
    "turns": session_data.TurnColumns,
    "calls": session_data.CallColumns,
    "pages": session_data.PageColumns,
    "stays": session_data.StayColumns,
    "events": session_data.EventColumns,
    "marks": session_data.NamedMoment,
}
SPECS = CHECKOUT / "specs"
PAGES = sorted(SPECS.glob("*.md"))
ELSEWHERE = {*FRAMEWORKS, "postgres.md"}  # run by tests of their own, where what they need is there
DECISIONS = sorted((SPECS / "decisions").glob("*.md"))
STRUCTS = {m.MUTATION_NAMES[kind.NUMBER]: kind for kind in m.Mutation.__subclasses__()}
COMMON = {"--namespace", "--store-key", "--wait", "--json", "--quiet", "--help"}


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in ELSEWHERE], ids=lambda page: page.name)
def test_a_page_is_what_happens(page: Path, tmp_path: Path) -> None:
    """Every block of a page runs, and prints what the page shows."""
    run_page(page, tmp_path)


@pytest.mark.parametrize("page", [*PAGES, *DECISIONS], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every link of a page leads to a file that is there, and to a heading in it."""
    assert broken_links(page) == []


def test_every_page_is_in_the_index() -> None:
    """The index of the specs lists every page and every decision."""
    index = (SPECS / "README.md").read_text()
    listed = re.findall(r"\]\(([^)]+\.md)\)", index)
    pages = {page.relative_to(SPECS).as_posix() for page in (*PAGES, *DECISIONS)}
    assert pages - {"README.md"} == set(listed)


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.name)
def test_a_decision_gives_its_reasons(page: Path) -> None:
    """A decision has a context, alternatives and consequences, and the number of its file."""
    text = page.read_text()
    assert text.startswith(f"# {int(page.name[:4])}. ")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Alternatives", "Consequences"]


# ---- tables held against the code


def kinds(text: str) -> list[str]:
    """What the sections of mutations.md get wrong about fields, numbers and views."""
    wrong = [] if f"\n{len(STRUCTS)} kinds have a struct now" in text else [f"there are {len(STRUCTS)} kinds"]
    for name, struct in STRUCTS.items():
        other_section = section(text, f"`{name}`")
        actual_tables = tables(other_section)
        if len(actual_tables) != 2 or f"Number {struct.NUMBER}." not in other_section:
            wrong.append(f"{name}: no section with its number, its fields and its effects")
            continue
        fields = [quoted(row[0])[0] for row in actual_tables[0]]
        if fields != list(struct.__struct_fields__):
            wrong.append(f"{name}: fields {fields}")
        views = {row[0] for row in actual_tables[1]}
        wrong += [f"{name}: no effect on {p.name}" for p in PROJECTORS if name in p.kinds() and p.name not in views]
        if views - {p.name for p in PROJECTORS} - {"all"}:
            wrong.append(f"{name}: views {views}")
        named = re.search(r"^Rules: (.+)$", other_section, re.MULTILINE)
        rules = {rule.__name__ for rule in RULES}
        wrong += [f"{name}: rule {rule}" for rule in quoted(named[1] if named else "`none`") if rule not in rules]
    return wrong


def numbers(text: str) -> list[str]:
    """What the table of reserved names gets wrong."""
    values = {
        int(row[0]): (quoted(row[1])[0], row[2]) for row in tables(section(text, "Reserved names and numbers"))[0]
    }
    right = {n: (name, "written" if name in STRUCTS else "reserved") for n, name in m.MUTATION_NAMES.items()}
    return [str(pair) for pair in set(values.items()) ^ set(right.items())]


def rules(text: str) -> list[str]:
    """What the table of rules gets wrong, their order included."""
    parts = [quoted(row[0])[0] for row in tables(section(text, "Rules"))[0]]
    right = [rule.__name__ for rule in RULES]
    return [] if parts == right else [f"{parts} are not {right}"]


def cells(text: str) -> list[str]:
    """What the table of cells gets wrong about what each must hold."""
    rows = [(quoted(row[0])[0], quoted(row[1])[0], row[2]) for row in tables(section(text, "Cells"))[0]]
    names = {kind: m.MUTATION_NAMES[kind.NUMBER] for kind in FORMS}  # type: ignore[attr-defined]
    right = [(names[kind], field, form.words) for kind, fields in FORMS.items() for field, form in fields.items()]
    named = {(kind, field) for kind, fields in m.CELL_FIELDS.items() for field in fields} | {(m.Pack, "envelopes")}
    missing = named ^ {(kind, field) for kind, fields in FORMS.items() for field in fields}
    return ([] if rows == right else [f"{rows} are not {right}"]) + [str(item) for item in missing]


def views(text: str) -> list[str]:
    """What the sections of views.md get wrong about tables, keys and columns, and the order of the fold."""
    wrong = []
    titles = [title for title in re.findall(r"^## (\w+)$", text, re.MULTILINE) if title in {p.name for p in PROJECTORS}]
    if titles != [p.name for p in PROJECTORS]:
        wrong.append(f"sections {titles}")
    for projector in PROJECTORS:
        actual_tables = tables(section(text, projector.name)) or [[]]
        values = {quoted(row[0])[0]: (quoted(row[1]), {*quoted(row[1]), *quoted(row[2])}) for row in actual_tables[0]}
        db = apsw.Connection(":memory:")
        projector.create(db)
        for table in projector.schema:
            columns: list[Any] = db.execute(f"SELECT name, pk FROM pragma_table_info('{table}')").fetchall()
            keys = [name for name, pk in sorted(columns, key=lambda column: column[1]) if pk]
            if values.pop(table, None) != (keys, {name for name, _ in columns}):
                wrong.append(f"{projector.name}: table {table}")
        wrong += [f"{projector.name}: no table {table}" for table in values]
        if not re.search(r"^Law: ", section(text, projector.name), re.MULTILINE):
            wrong.append(f"{projector.name}: no law")
    return wrong


def options(text: str) -> list[str]:
    """What commands.md gets wrong about the options of each command."""
    wrong = []
    head = text[: text.index("\n## ")]
    if set(re.findall(r"`(--[\w-]+)", head)) - {"--turn", "--call", "--position", "--time", "--version"} != COMMON:
        wrong.append("the options of every command")
    for name, command in COMMANDS.items():
        # Examples aside: they may show what is wrong.
        other_text = re.sub(r"^```.*?^```", "", section(text, name), flags=re.MULTILINE | re.DOTALL)
        named = set(re.findall(r"--[a-z][a-z-]*", other_text)) - COMMON
        known = {option for action in command.parser()._actions for option in action.option_strings if "--" in option}
        if named != known - COMMON:
            wrong.append(f"{name}: {named ^ (known - COMMON)}")
    if missing := set(re.findall(r"^## (.+)$", text, re.MULTILINE)) ^ set(COMMANDS):
        wrong.append(f"sections {missing}")
    return wrong


def shell(text: str) -> list[str]:
    """What shell.md gets wrong about the shell's options, modes and commands, their order included."""
    wrong = []
    matches = [re.findall(r"-[-\w]+", row[0]) for row in tables(section(text, "The command line"))[0]]
    if [sorted(names) for names in matches] != [sorted(option.names) for option in OPTIONS]:
        wrong.append(f"options {matches}")
    if [quoted(row[0])[0] for row in tables(section(text, "Modes"))[0]] != [AUTO, *MODES]:
        wrong.append("modes")
    commands = [quoted(row[0])[0].replace("\\|", "|") for row in tables(section(text, "Commands"))[0]]
    if commands != [
        f"\\{shell_command.name} {shell_command.takes}".rstrip() for shell_command in SHELL_COMMANDS.values()
    ]:
        wrong.append(f"commands {commands}")
    return wrong


def figures(text: str) -> list[str]:
    """What performance.md gets wrong about which figures there are and what must hold of each."""
    fields = {(quoted(row[0])[0], row[1]): row[2] for row in tables(text)[0]}
    return [str(pair) for pair in set(fields.items()) ^ set(bench.goals().items())]


def exported(text: str) -> list[str]:
    """What exports.md gets wrong about the tables, their keys and their columns."""
    rows = [(*quoted(row[0]), *quoted(row[1]), *quoted(row[2])) for row in tables(section(text, "Tables"))[0]]
    return [] if rows == [(table.name, *(c.name for c in table.columns)) for table in TABLES] else [f"tables {rows}"]


def filmed(text: str) -> list[str]:
    """What debug.md gets wrong about the tables of a film and the addresses that are answered."""
    fields = {quoted(row[0])[0]: quoted(row[2]) for row in tables(section(text, "The film"))[0]}
    right = {name: list(kind.__struct_encode_fields__) for name, kind in FILM.items()}
    wrong = [f"{name}: {fields.get(name)}" for name in right if fields.get(name) != right[name]]
    rows = tables(section(text, "Addresses"))[0]
    named = {quoted(row[0])[0].partition("?")[0] for row in rows}
    store = memory_store()
    if named != {"/", "/metrics", "/api/live", "/api/export", *DebugApi(store, "", "").table}:
        wrong.append(f"addresses {named}")
    store.close()
    return wrong


def cut(text: str) -> list[str]:
    """What columns.md gets wrong about the tables of segments and their columns."""
    items = {quoted(row[0])[0]: tuple(quoted(row[1])) for row in tables(section(text, "The tables"))[0]}
    return [] if items == COLUMNS else [f"tables {items}"]


def forms(text: str) -> list[str]:
    """What compression.md gets wrong about compressors, methods, reasons, outcomes and types of pages."""
    made, reasons = tables(section(text, "Forms"))[:2]
    methods, types, outcomes = (tables(section(text, title))[0] for title in ("Methods", "Types of pages", "Callbacks"))
    items = [
        {(quoted(row[0])[0], level): quoted(row[level])[0] for row in made for level in (1, 2, 3)},
        [quoted(row[0])[0] for row in reasons],
        [(int(row[0]), quoted(row[1])[0]) for row in methods],
        [quoted(row[0])[0] for row in outcomes],
        [(quoted(row[0])[0], int(row[1]), row[2] == "rarely") for row in types],
    ]
    right = [
        {
            (modality.word, int(level)): METHODS[compressor.method]
            for (modality, level), compressor in COMPRESSORS.items()
        },
        [reason.word for reason in NoFormReason],
        [(int(method), name) for method, name in METHODS.items()],
        [outcome.word for outcome in Outcome],
        [(kind.word, int(rule.level_max), rule.rarely) for kind, rule in COMPRESSION.items()],
    ]
    return [f"{first} is not {other}" for first, other in zip(items, right, strict=True) if first != other]


def campaigns(text: str) -> list[str]:
    """What reliability.md gets wrong about which campaigns there are."""
    parts = [quoted(row[0])[0] for row in tables(section(text, "The campaigns"))[0]]
    return [] if tuple(parts) == campaign.CAMPAIGNS else [f"{parts} are not {campaign.CAMPAIGNS}"]


def formats(text: str) -> list[str]:
    """What sources.md gets wrong about the formats and the order they are tried in."""
    parts = [quoted(row[0])[0] for row in tables(text)[0]]
    wrong = [] if tuple(parts) == FORMATS else [f"formats {parts}"]
    return wrong + [f"no section {name}" for name in FORMATS if not section(text, name)]


def codes(text: str) -> list[str]:
    """The codes of errors that only one of api.md and the code has; queries and rules have tables elsewhere."""
    listed = {(quoted(row[0])[0], code) for row in tables(section(text, "Errors"))[0] for code in quoted(row[2])}
    stated = {
        (node.func.id, keyword.value.value)
        for path in (CHECKOUT / "vmstore").rglob("*.py")
        if "code=" in (source := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and hasattr(errors, node.func.id)
        for keyword in node.keywords
        if keyword.arg == "code" and isinstance(keyword.value, ast.Constant)
    }
    return sorted(f"{kind}: {code}" for kind, code in listed ^ {pair for pair in stated if "_" not in pair[1]})


class Check(NamedTuple):
    """A function that finds what a page gets wrong, and a mistake that it must find."""

    page: str
    find: Callable[[str], list[str]]
    right: str
    mistake: str


CHECKS = [
    Check("mutations.md", kinds, "| `valid_to` |", "| `valid_till` |"),
    Check("mutations.md", kinds, "Number 26.", "Number 27."),
    Check("mutations.md", kinds, "| residency | closes", "| marks | closes"),
    Check("mutations.md", kinds, "Rules: `turn_is_next`", "Rules: `turn_is_new`"),
    Check("mutations.md", kinds, "43 kinds have a struct", "42 kinds have a struct"),
    Check("mutations.md", numbers, "| 25 | `evict` | written |", "| 25 | `evict` | reserved |"),
    Check("mutations.md", numbers, "| 74 | `redo` | reserved |\n", ""),
    Check("mutations.md", rules, "| `call_is_next` |", "| `calls_are_dense` |"),
    Check("mutations.md", cells, "| `pack` | `rest` | a JSON object |", "| `pack` | `rest` | any bytes |"),
    Check("views.md", views, "`valid_from`, `valid_to` |", "`valid_from` |"),
    Check("views.md", views, "| `session`, `k`, `f`, `t`, `page` |", "| `session`, `k`, `t`, `f`, `page` |"),
    Check("views.md", views, "\n## marks\n", "\n## marked\n"),
    Check("residency.md", states, "`L0 less` | refused: `membership_changes`", "`L0 less` | `L2`"),
    Check("residency.md", states, "refused: `page_exists` | `none` |", "`L2` | `none` |"),
    Check(
        "residency.md",
        states,
        "| `L2` | `L2` | `L2` | `L2` | `L2` | `L2` | `L2` |",
        "| `L2` | `L0 full` | `L2` | `L2` | `L2` | `L2` | `L2` |",
    ),
    Check("commands.md", options, "| `--follow` |", "| `--watch` |"),
    Check("commands.md", options, "## rebuild", "## repair"),
    Check("commands.md", options, "| `--quiet` |", "| `--silent` |"),
    Check("shell.md", shell, "| `--markdown` |", "| `--md` |"),
    Check("shell.md", shell, "| `jsonl` |", "| `json-lines` |"),
    Check("shell.md", shell, "| `\\once FILE` |", "| `\\one FILE` |"),
    Check("performance.md", figures, "| at most 5 |", "| at most 50 |"),
    Check("performance.md", figures, "| `many` | open", "| `one` | open"),
    Check("compression.md", forms, "| 13 | `lines@1` |", "| 14 | `lines@1` |"),
    Check("compression.md", forms, "| `image` | `thumbnail@1`", "| `image` | `thumbs@1`"),
    Check("compression.md", forms, "| `claim` | 2 | rarely |", "| `claim` | 3 | rarely |"),
    Check("compression.md", forms, "| `hung` |", "| `hanging` |"),
    Check("compression.md", forms, "| `too_large` |", "| `large` |"),
    Check("reliability.md", campaigns, "| `flips` |", "| `flip` |"),
    Check("api.md", codes, "`path-taken`", "`path-used`"),
    Check("sources.md", formats, "| `pi` |", "| `pie` |"),
    Check("exports.md", exported, "`rank`, `from_position`", "`place`, `from_position`"),
    Check("debug.md", filmed, "`budget`, `invalidated`", "`budget`, `voided`"),
    Check("debug.md", filmed, "| `/api/sweep?", "| `/api/sweeps?"),
    Check("columns.md", cut, "`page`, `content`, `level`, `rank`", "`page`, `content`, `rank`, `level`"),
]


@pytest.mark.parametrize("check", {check.find: check for check in CHECKS}.values(), ids=lambda c: c.find.__name__)
def test_a_table_is_what_the_code_says(check: Check) -> None:
    """Kinds, rules, views, states, options, figures, campaigns, formats and tables in the specs are the code's."""
    assert check.find((SPECS / check.page).read_text()) == []


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: f"{c.find.__name__}: {c.mistake.strip()[:30]}")
def test_a_planted_mistake_is_found(check: Check) -> None:
    """A page with one mistake in a table does not pass."""
    text = (SPECS / check.page).read_text()
    assert check.right in text, "the mistake is planted in words the page has"
    assert check.find(text.replace(check.right, check.mistake, 1)) != []
