"""A relation over many namespaces: its columns and those that say whose a row is, and a statement over it in two parts.

What chooses rows is asked of each namespace; what sums, orders and ends an answer is asked of the rows of
all, so that a mean, a count of what differs and the first rows are those of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from vmstore.vmql.column_types import TEXT
from vmstore.vmql.relations.catalog import NAMED
from vmstore.vmql.relations.relation import Field, Path, Relation, by
from vmstore.vmql.syntax.nodes import AcrossSessions, Node, RelationQuery, SelectItem, Tail, Value, Word

STORE, NAMESPACE = "store", "namespace"
PLACES = {
    STORE: Field(STORE, TEXT, "the address of the store it is of", f'g."{STORE}"'),
    NAMESPACE: Field(NAMESPACE, TEXT, "the namespace it is of", f'g."{NAMESPACE}"'),
}


class MergedQuery(NamedTuple):
    """A statement over many namespaces: what each is asked, and what is asked of the rows of all."""

    relation: Relation  # of all
    columns: tuple[SelectItem, ...]  # of all
    tail: Tail  # of all
    own: Tail  # of each


def merged(relation: Relation, places: Sequence[str], statement: RelationQuery) -> MergedQuery:
    """A statement over a relation of many namespaces, in its two parts."""
    fields = {name: PLACES[name] for name in places}
    fields |= {name: field._replace(sql=f'g."{name}"') for name, field in relation.fields.items()}

    def flat(node: Any) -> Any:
        """A path like page.type as a column of that name."""
        if isinstance(node, Word) and len(node.path) == 2 and (field := _beside(relation, node)) is not None:
            fields[field.name] = field
            return Word(path=(field.name,), span=node.span)
        return node

    asked, tail = statement.columns, statement.tail
    columns = tuple(rewritten(column, flat) for column in asked)
    of_all = Tail(by=tail.by, having=tail.having, order=tail.order, limit=tail.limit, after=tail.after)
    across = tail.scope or AcrossSessions()
    own = msgspec.structs.replace(tail, scope=across, by=(), having=None, order=(), limit=None, after=None)
    start = Path("made", by(f"FROM vm_{relation.name.lower()}(:rows) g"), sorted=True)
    order = (*(f'g."{name}"' for name in places), "g.row")
    brief = (*places, *relation.brief) if relation.brief else ()
    whole = relation._replace(
        fields=fields,
        paths={"made": start},
        joins={},
        order=order,
        across=(),
        made=True,
        now="",
        moment="",
        brief=brief,
    )
    return MergedQuery(whole, columns, rewritten(of_all, flat), own)


def _beside(relation: Relation, word: Word) -> Field | None:
    """The column of the page, or the message, that a column names."""
    first = relation.fields.get(word.path[0])
    of = NAMED[first.form.name].fields.get(word.path[1].lower()) if first and first.form.name in NAMED else None
    name = ".".join(word.path)
    return None if of is None else Field(name, of.form, of.meaning, f'g."{name}"', asked=True)


def of_place(tail: Tail, place: Mapping[str, str]) -> Tail:
    """The part of a statement that one namespace is asked, with its own name where the statement says `namespace`."""

    def own(node: Any) -> Any:
        if isinstance(node, Word) and len(node.path) == 1 and node.path[0].lower() in place:
            return Value(value=place[node.path[0].lower()], span=node.span)
        return node

    return msgspec.structs.replace(tail, where=rewritten(tail.where, own))


def rewritten(node: Any, change: Callable[[Any], Any]) -> Any:
    """A node with every node in it that `change` changes replaced; what it gives is not looked into."""
    if isinstance(node, tuple) and not hasattr(node, "_fields"):
        found = tuple(rewritten(each, change) for each in node)
        return found if any(a is not b for a, b in zip(found, node, strict=True)) else node
    if not isinstance(node, Node):
        return node
    changed = change(node)
    if changed is not node:
        return changed
    parts = {name: getattr(node, name) for name in node.__struct_fields__ if name != "span"}
    new = {name: rewritten(part, change) for name, part in parts.items()}
    return msgspec.structs.replace(node, **new) if any(new[name] is not parts[name] for name in parts) else node


def item(name: str) -> SelectItem:
    """The column of a relation, or of what it names, by the name it has among the merged."""
    return SelectItem(expr=Word(path=tuple(name.split("."))))
