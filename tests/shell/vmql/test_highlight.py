"""What is typed is coloured by what it is, before anybody knows whether it means something."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vmstore.shell.vmql.prompt import STYLES, fragments

KEYWORDS = frozenset({"PAGES", "WHERE"})


def test_each_stretch_has_its_kind() -> None:
    """Keywords, texts, numbers, parameters, comments and commands are told apart, in any case."""
    actual_fragments = fragments("\\mode json\npages WHERE x = 'it''s' AND y > $n -- why\n, \"no\" 12;", KEYWORDS)
    kinds = {text: kind for kind, text in actual_fragments if kind not in ("space", "word")}
    assert kinds == {
        "\\mode json": "command",
        "pages": "keyword",
        "WHERE": "keyword",
        "'it''s'": "text",
        "=": "sign",
        ">": "sign",
        ",": "sign",
        "$n": "param",
        "-- why": "comment",
        '"no"': "quoted",
        "12": "number",
        ";": "end",
    }
    assert set(kinds.values()) <= set(STYLES)


@given(st.text(alphabet="pages WHERE'\"\\.;\n-$1", max_size=40))
def test_nothing_is_lost_or_changed(text: str) -> None:
    """The coloured stretches of any text are the text."""
    assert "".join(piece for _, piece in fragments(text, KEYWORDS)) == text
