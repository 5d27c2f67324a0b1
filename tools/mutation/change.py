"""The mutants of a source file: each is one node of its tree changed as a tired author might have written it.

Comparisons move by one or turn round, a clause of a condition falls away, a sum becomes a difference,
a number is one more, a call or a refusal is left out, a word or a piece of SQL is another one. What
only people read (messages, docstrings), what only checkers read (annotations) and `assert`, which
states what cannot be otherwise, are left alone.
"""

from __future__ import annotations

import ast
import copy
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

WIDTH = 70  # characters of a changed piece that its name shows
COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In},
}
REACHED: dict[type[ast.operator], type[ast.operator]] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv},
    **{ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd},
    **{ast.BitXor: ast.BitAnd, ast.Div: ast.Mult, ast.Pow: ast.Mult},
}
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
SQL = re.compile(r"\b(?:SELECT|FROM|WHERE|ORDER BY)\b")
SQL_PIECES = (
    *((" >= ", " > "), (" <= ", " < "), (" > ", " >= "), (" < ", " <= "), (" = ?", " <> ?"), (" AND ", " OR ")),
    *((" DESC", " ASC"), ("max(", "min("), (" + ", " - "), (" - 1", ""), ("coalesce", "nullif")),
)
Slot = tuple[ast.AST, str, int | None]  # where a node hangs: its parent, the field, the place in a list


class Mutant(NamedTuple):
    """One change of one file, not made yet. `span` are the lines of its statement, `fresh` asks for a new import."""

    room: str
    name: str
    line: int
    span: range
    fresh: bool
    tree: ast.Module
    make: Callable[[], None]


def mutants_of(root: Path, room: str) -> list[Mutant]:
    """Every mutant of a file, in the order of its lines; the names last while the code does."""
    tree = ast.parse((root / room).read_bytes())
    seen: Counter[str] = Counter()
    mutants = []
    for slot, new, span, where in _Walk().of(tree):
        old = _hung(slot)
        line = getattr(old, "lineno", span.start)
        text = f"{where}: {_difference(old, new)}"
        seen[text] += 1
        name = f"{room} {text}" + (f" #{seen[text]}" if seen[text] > 1 else "")
        mutants.append(Mutant(room, name, line, span, where == "<module>", tree, lambda s=slot, n=new: _hang(s, n)))
    return sorted(mutants, key=lambda mutant: mutant.line)


def _difference(old: ast.AST, new: ast.AST) -> str:
    """What was and what is, the long ones around the place where they begin to differ."""
    was, now = (" ".join(ast.unparse(node).split()) for node in (old, new))
    differ = next((at for at, both in enumerate(zip(was, now, strict=False)) if both[0] != both[1]), 0)
    start = max(0, differ - WIDTH // 3) if len(was) > WIDTH else 0
    return " -> ".join(
        ("…" if start else "") + case[start : start + WIDTH] + ("…" if len(case) > start + WIDTH else "")
        for case in (was, now)
    )


def _hung(slot: Slot) -> ast.AST:
    parent, field, place = slot
    here = getattr(parent, field)
    actual_ast: ast.AST = here if place is None else here[place]
    return actual_ast


def _hang(slot: Slot, new: ast.AST) -> None:
    parent, field, place = slot
    ast.fix_missing_locations(ast.copy_location(new, _hung(slot)))
    if place is None:
        setattr(parent, field, new)
    else:
        getattr(parent, field)[place] = new


class _Walk:
    """Goes through a tree with the statement and the function it is in."""

    def __init__(self) -> None:
        self.span = range(1, 2)
        self.names: list[str] = []
        self.inside = False  # a function

    def of(self, node: ast.AST) -> Iterator[tuple[Slot, ast.AST, range, str]]:
        """Each change below a node: where, what instead, the lines of its statement, the function."""
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "type_params", "msg", "bases", "op", "ops", "ctx"):
                continue
            many = isinstance(value, list)
            for place, child in enumerate(value if many else [value]):
                if isinstance(child, ast.AST):
                    yield from self._child((node, field, place if many else None), child)

    def _child(self, slot: Slot, node: ast.AST) -> Iterator[tuple[Slot, ast.AST, range, str]]:
        if isinstance(node, ast.Assert | ast.Import | ast.ImportFrom) or _is_words(node) or _is_protocol(node):
            return
        span = self.span
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            self.span = range(node.lineno, max(end, node.lineno) + 1)
        where = ".".join(self.names) if self.inside else "<module>"
        for new in changes(node, slot[0], at_import=not self.inside):
            yield slot, new, self.span, where
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from self._within(node)
        elif not isinstance(node, ast.Raise | ast.JoinedStr):
            yield from self.of(node)
        elif isinstance(node, ast.JoinedStr):
            for place, part in enumerate(node.values):
                if isinstance(part, ast.Constant) and SQL.search(ast.unparse(node)):
                    for new in _of_sql(str(part.value)):
                        yield (node, "values", place), new, self.span, where
        self.span = span

    def _within(self, node: ast.FunctionDef | ast.ClassDef) -> Iterator[tuple[Slot, ast.AST, range, str]]:
        inside = self.inside
        if isinstance(node, ast.FunctionDef):
            for place, default in enumerate(node.args.defaults):
                yield from self._child((node.args, "defaults", place), default)
            for place, default in enumerate(node.args.kw_defaults):
                if default is not None:
                    yield from self._child((node.args, "kw_defaults", place), default)
            self.inside = True
        self.names.append(node.name)
        for place, part in enumerate(node.body):
            yield from self._child((node, "body", place), part)
        self.names.pop()
        self.inside = inside


def _is_words(node: ast.AST) -> bool:
    """Whether a node is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_protocol(node: ast.AST) -> bool:
    """Whether a node is a class that only checkers read."""
    return isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "Protocol" for base in node.bases)


def changes(node: ast.AST, parent: ast.AST, *, at_import: bool) -> Iterator[ast.AST]:
    """What may stand instead of a node."""
    match node:
        case ast.Compare():
            for place, op in enumerate(node.ops):
                new = copy.copy(node)
                new.ops = [*node.ops[:place], COMPARED[type(op)](), *node.ops[place + 1 :]]
                yield new
        case ast.BoolOp():
            other: ast.boolop = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield ast.BoolOp(other, node.values)
            for place in range(len(node.values)):
                rest = node.values[:place] + node.values[place + 1 :]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        case ast.BinOp(op=ast.BitOr()) if _in_isinstance(node, parent):
            yield node.left
            yield node.right
        case ast.BinOp() if type(node.op) in REACHED and not (at_import and isinstance(node.op, ast.BitOr)):
            yield ast.BinOp(node.left, REACHED[type(node.op)](), node.right)
        case ast.AugAssign() if type(node.op) in REACHED:
            yield ast.AugAssign(node.target, REACHED[type(node.op)](), node.value)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant():
            yield from _of_constant(node.value)
        case ast.Call(func=ast.Name(id=name)) if name in CALLED:
            yield ast.Call(ast.Name(CALLED[name], ast.Load()), node.args, [])
        case ast.Raise() | ast.Delete() | ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()):
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case _:
            pass
    if isinstance(node, ast.expr) and _is_asked(node, parent):
        yield ast.UnaryOp(ast.Not(), node)


def _is_asked(node: ast.expr, parent: ast.AST) -> bool:
    """Whether a node is a whole condition that no other change turns round."""
    if isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
        return False
    if isinstance(parent, ast.comprehension):
        return node in parent.ifs
    return isinstance(parent, ast.If | ast.While | ast.IfExp) and parent.test is node


def _in_isinstance(node: ast.AST, parent: ast.AST) -> bool:
    return isinstance(parent, ast.Call) and ast.unparse(parent.func) == "isinstance" and parent.args[1] is node


def _of_constant(value: Any) -> Iterator[ast.AST]:
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        yield ast.Constant(value + 1)
    elif isinstance(value, bytes):
        yield ast.Constant(value + b"~")
    elif isinstance(value, str) and SQL.search(value):
        yield from _of_sql(value)
    elif isinstance(value, str) and " " not in value.strip():
        yield ast.Constant(value + "~")


def _of_sql(value: str) -> Iterator[ast.Constant]:
    for piece, other in SQL_PIECES:
        for match in re.finditer(re.escape(piece), value):
            yield ast.Constant(value[: match.start()] + other + value[match.end() :])
