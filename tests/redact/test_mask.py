"""Texts shown without their secrets, and the record of what was masked."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from tests.redact.labelled import lines
from vmstore.redact.mask import Mask, MaskedValue
from vmstore.redact.span import SecretKind, SecretSpan


def test_the_same_value_has_the_same_placeholder() -> None:
    """A value has one number all through a document, however it is written, and another value another."""
    mask = Mask()
    assert mask.text("ada@lovelace.dev, bob@example.com", "p1") == "[EMAIL 1], [EMAIL 2]"
    assert mask.text("BOB@example.com or +49 171 1234567", "p2") == "[EMAIL 2] or [PHONE 1]"
    assert mask.text("+49-171-1234567", "p3") == "[PHONE 1]"


def test_the_record_never_holds_a_value() -> None:
    """The record says what was masked, how often and where, and nothing of what it was."""
    mask = Mask()
    mask.text("password=hunter2 password=hunter2", "p1")
    mask.text("password=hunter2", "request of call 3")
    assert mask.record == [MaskedValue(SecretKind.PASSWORD, 1, 3, {"p1": 2, "request of call 3": 1})]
    assert mask.counts == {"password": 3}
    assert "hunter2" not in json.dumps(mask.record)


def test_a_secret_is_masked_where_nothing_gives_it_away() -> None:
    """A secret that one text of a document names is masked in all of them, those before it too, once it is learnt."""
    first, second = "it said tango-77-foxtrot was wrong", 'login(password="tango-77-foxtrot")'
    mask = Mask()
    for text in (first, second):
        mask.learn(text)
    assert mask.text(first, "p1") == "it said [PASSWORD 1] was wrong"
    assert mask.text(second, "p2") == 'login(password="[PASSWORD 1]")'
    assert Mask().text(first, "p1") == first


def test_words_are_not_looked_for_elsewhere() -> None:
    """A secret that is a plain word, or part of a longer one, is masked only where it is named."""
    mask = Mask()
    mask.learn("password: swordfish")
    mask.learn("password=test12")
    assert mask.text("a swordfish, test123 and xtest12", "p1") == "a swordfish, test123 and xtest12"
    assert mask.text("try test12!", "p1") == "try [PASSWORD 1]!"


def test_fields_of_json_are_masked_by_their_names() -> None:
    """A field whose name says that it is secret is masked, whatever its value looks like, and other fields stay."""
    fields = {
        "user": "ada",
        "password": "swordfish",
        "nested": [{"api_key": "k3y-of-the-house", "max_tokens": 100}],
        "n": None,
    }
    assert Mask().value(fields, "request") == {
        "user": "ada",
        "password": "[PASSWORD 1]",
        "nested": [{"api_key": "[SECRET 1]", "max_tokens": 100}],
        "n": None,
    }


def test_what_was_masked_is_not_masked_again() -> None:
    """Masking the whole labelled set a second time changes nothing."""
    for text, _ in lines():
        once = Mask().text(text, "p1")
        assert Mask().text(once, "p1") == once
        assert Mask().value({"password": "[PASSWORD 4]"}, "p1") == {"password": "[PASSWORD 4]"}


def test_nothing_that_was_found_is_left() -> None:
    """No secret that is found stands in the masked text, wherever else in it it stood."""
    for text, marked in lines():
        mask = Mask()
        mask.learn(text)
        shown = mask.text(text, "p1")
        for start, end, kind in marked:
            if f"[{kind} 1]" in shown and kind in ("API_KEY", "SECRET", "JWT"):
                assert text[start:end] not in shown


@given(st.text())
def test_text_without_secrets_is_untouched(text: str) -> None:
    """Where nothing is found a text stays as it is, and the record empty."""
    mask = Mask()
    shown = mask.text(text, "p1")
    assert (shown == text) == (mask.record == [])


def test_another_finder_comes_after_ours() -> None:
    """What only another finder finds is masked as it says, and what we find keeps our kind."""

    def names(text: str) -> list[SecretSpan]:
        return [
            SecretSpan(match.start(), match.end(), SecretKind.SECRET)
            for match in re.finditer(r"prod/db|hunter\w*", text)
        ]

    text = "in prod/db: password=hunter2xyz"
    assert Mask().text(text, "") == "in prod/db: password=[PASSWORD 1]"
    assert Mask(also=names).text(text, "") == "in [SECRET 1]: password=[PASSWORD 1]"


def test_fields_that_become_the_same_are_both_kept() -> None:
    """Two fields whose names are masked alike stay two, and a number that is a card is masked."""
    fields = {"ada@lovelace.dev": 1, "Ada@lovelace.dev": 2, "card": 4111111111111111}
    assert Mask().value(fields, "") == {"[EMAIL 1]": 1, "[EMAIL 1] (2)": 2, "card": "[CARD 1]"}


def test_arguments_within_a_text_are_looked_into() -> None:
    """JSON within a text is read as JSON, escapes and all; one that tells a field twice is read as it stands."""
    hidden = '{"pass\\u0077ord": "swordfish-99"}'
    assert Mask().value({"arguments": hidden}, "") == {"arguments": '{"password":"[PASSWORD 1]"}'}
    twice = '{"password": "swordfish-99", "password": "other-1234"}'
    shown = Mask().value(twice, "")
    assert "swordfish" not in shown and "other-1234" not in shown
