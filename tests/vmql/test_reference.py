"""The reference is the catalog: its tables of columns, its codes, what SHOW and DESCRIBE tell."""

from __future__ import annotations

import re
from pathlib import Path

import vmstore
from vmstore.vmql.relations.catalog import DESCRIBED, RELATIONS
from vmstore.vmql.relations.relation import Relation
from vmstore.vmql.scalars import FUNCTIONS

CHECKOUT = Path(__file__).resolve().parent.parent.parent
PAGE = CHECKOUT / "specs" / "vmql.md"


def table(relation: Relation) -> str:
    """The columns of a relation as the reference has them."""
    lines = [f"### {relation.name}", "", f"{relation.meaning[0].upper()}{relation.meaning[1:]}.", ""]
    lines += ["| column | type | what it says |", "|---|---|---|"]
    for field in relation.fields.values():
        words = "" if field.form.words is None else f": {', '.join(word.word for word in field.form.words)}"
        many = words if len(words) < 120 else ""
        text = " (only where it is named)" if field.asked else ""
        meaning = field.meaning.replace("|", "\\|")
        lines.append(f"| `{field.name}` | {field.form.type} | {meaning}{many}{text} |")
    return "\n".join(lines)


def reference() -> str:
    """The whole part of the page that is made from the catalog."""
    functions = ["### Functions", "", "| function | gives | what it says |", "|---|---|---|"]
    functions += [f"| `{function.written}` | {function.type} | {function.meaning} |" for function in FUNCTIONS.values()]
    return "\n\n".join(["## Columns and functions", *map(table, DESCRIBED.values()), "\n".join(functions)])


def test_the_page_has_the_columns_of_the_catalog() -> None:
    """Every relation, column, type and meaning stands in the reference as the catalog says it, and no other."""
    page = PAGE.read_text(encoding="utf-8")
    text = page.partition("<!-- columns -->\n")[2].partition("<!-- end of columns -->")[0].strip()
    assert text == reference()


def test_every_code_is_in_the_page() -> None:
    """Every code that a QueryError is raised with stands in a table of the reference."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in (CHECKOUT / "vmstore/vmql").glob("*.py"))
    codes = set(re.findall(r'code="([a-z-]+)"', source)) | set(re.findall(r'\bcode: str = "([a-z-]+)"', source))
    tables = PAGE.read_text(encoding="utf-8").partition("## Errors")[2]
    other_codes = {
        code for row in re.findall(r"^\| (`.*?) \|", tables, re.M) for code in re.findall(r"`([a-z-]+)`", row)
    }
    assert codes - other_codes == set()


def test_describe_and_show_tell_the_catalog() -> None:
    """SHOW RELATIONS lists what can be asked for, DESCRIBE its columns, and every column can be asked for."""
    store = vmstore.memory_store()
    store.record("trip", {"messages": [{"role": "user", "content": "Where is Kyoto?"}]}, None, at_us=1)
    shown = [row[0] for row in store.query("SHOW RELATIONS")]
    assert shown == list(RELATIONS)
    for name, relation in DESCRIBED.items():
        described = [(row["column"], row["type"]) for row in store.query(f"DESCRIBE {name}").to_dicts()]
        assert described == [(field.name, field.form.type) for field in relation.fields.values()]
    for name in shown:
        for column, field in RELATIONS[name].fields.items():
            answer = store.query(f"{name} {column} ORDER BY {column} LIMIT 3")
            assert [(column.name, column.type) for column in answer.columns] == [(column, field.form.type)]
            list(answer)
    for statement in ("CONTEXT", "SEARCH 'Kyoto'"):
        for column, field in DESCRIBED[statement.split()[0]].fields.items():
            answer = store.query(f"{statement} {column} ORDER BY {column}")
            assert [(column.name, column.type) for column in answer.columns] == [(column, field.form.type)]
            assert len(list(answer)) == 1
