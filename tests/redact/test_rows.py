"""Each row of the tables finds what it is there for."""

from __future__ import annotations

import random
import re

import pytest

from tests.redact.drawn import draw, drawn
from tests.redact.labelled import lines, second
from vmstore.redact import national_ids
from vmstore.redact.assignments import is_placeholder
from vmstore.redact.find import spans
from vmstore.redact.headers import COMMANDS
from vmstore.redact.span import SecretKind
from vmstore.redact.vendor_keys import SAMPLE
from vmstore.redact.vendors import AROUND, VENDORS

TRIES = 300


def hidden(text: str, start: int, end: int) -> bool:
    """Whether a stretch of a text is found whole."""
    return any(span.start <= start and end <= span.end for span in spans(text))


def key(pattern: str) -> tuple[str, int, int]:
    """A key drawn from a row, which no manual would show, and which of it is secret."""
    for seed in range(TRIES):
        actual_drawn = drawn(pattern, str(seed))
        if not SAMPLE.search(actual_drawn[0]):
            return actual_drawn[0], *actual_drawn.span(actual_drawn.lastindex or 0)
    raise AssertionError(f"only samples were drawn for {pattern}")


@pytest.mark.parametrize(("literal", "follows"), VENDORS, ids=[row[0] for row in VENDORS])
def test_each_vendors_key_is_found(literal: str, follows: str) -> None:
    """A key drawn in the published form is found whole: alone, in quotes, in a sentence and in an address."""
    text, start, end = key(re.escape(literal) + follows)
    for around in ("{}", "x = '{}'\n", "we use {} for it", "https://example.org/?k={}"):
        place = around.index("{}")
        assert hidden(around.format(text), place + start, place + end), around


@pytest.mark.parametrize("row", AROUND, ids=[row[0] for row in AROUND])
def test_each_key_that_is_known_by_its_middle_is_found(row: tuple[str, str, str]) -> None:
    """A key drawn around a literal is found whole, behind a blank or within an address."""
    literal, before, follows = row
    text, start, end = key(f"(?:{before}){re.escape(literal)}{follows}")
    head = "https://example.org/a" if text[0] in "?&;~:" else "it is "
    assert hidden(head + text + " there", len(head) + start, len(head) + end)


DRAWN = [row for row in COMMANDS if row[0] != '"auth"']  # that one must be a name and a password in base64


@pytest.mark.parametrize(("literal", "follows"), DRAWN, ids=[f"{n} {row[0]}" for n, row in enumerate(DRAWN)])
def test_each_command_gives_its_secret_away(literal: str, follows: str) -> None:
    """What a command or a call is handed as a secret is found whole, as its row has it."""
    shape = re.compile(re.escape(literal) + follows, re.MULTILINE)
    for seed in range(TRIES):
        rng = random.Random(seed)
        text = draw(re.escape(literal) + follows, rng)
        value = shape.match(text)
        if (
            value
            and not is_placeholder(value["value"])
            and not value["value"].isdigit()
            and value["value"][0] not in "/."
        ):
            break
    else:
        raise AssertionError("nothing was drawn")
    assert hidden(text, *value.span("value")), text


NUMBERS = (
    *("OIB 33392005961", "CPR 211062-5629", "f\u00f8dselsnummer 15108695088", "TFN 123 456 782", "NHS 943 476 5870"),
    *("Aadhaar 234123412346", "\u8eab\u4efd\u8bc1 360426199101010071", "\uc8fc\ubbfc 971013-9019902"),
    *("SA ID 7503305044089", "Israeli id 039337423", "kimlik 17291716060", "CNP 1630615123457", "EGN 7523169263"),
    *(
        "rodn\u00e9 \u010d\u00edslo 710319/2745",
        "SNILS 112-233-445 95",
        "\u0438\u043d\u043d 123456789047",
        "SVNR 1237 010180",
    ),
    *("RUT 12.531.909-2", "CUIT 20-05536168-2", "isikukood 36805280109", "TAJ 111111110", "AMKA 01013099997"),
    *("ITIN 912-90-3456", "Steuernummer 181/815/08155", "PPS 6433435F", "NRIC S1234567D", "PAN ACUPA7085R"),
    *("RFC GODE561231GR8", "CURP BOXW310820HNERXN09", "id 11010519491231002X", "my number 123456789018"),
)
"""Numbers that states or those who write about them publish as examples, behind the words for them."""
WRONG = tuple(number for number in NUMBERS if not number.startswith(("ITIN", "Steuer", "PAN", "CURP", "RFC", "CPR")))


def of_a_person(text: str) -> list[str]:
    """What is found to be the number of a person."""
    return [text[span.start : span.end] for span in spans(text) if span.kind is SecretKind.SSN]


@pytest.mark.parametrize("text", NUMBERS)
def test_each_states_numbers_are_found(text: str) -> None:
    """An example that is published is found whole behind the word for it."""
    assert [text.endswith(" " + item) for item in of_a_person(text)] == [True]


@pytest.mark.parametrize("text", WRONG)
def test_a_number_with_a_wrong_digit_is_nobodys(text: str) -> None:
    """With another digit before its last one, a number that has a check digit is none."""
    at = max(place for place, each_text in enumerate(text[:-1]) if each_text.isdigit())
    wrong = text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]
    assert of_a_person(wrong) == []


def test_every_state_has_an_example() -> None:
    """No row of the tables of states is without an example, here or in the labelled sets."""
    texts = [
        *NUMBERS,
        *(line.text for line in lines()),
        *(item.text for half in ("tune", "test") for item in second(half)),
    ]
    rows = {row for text in texts for row in rows_of(text)}
    assert [row for row in (*national_ids.STATES, *national_ids.CODES) if id(row) not in rows] == []


def rows_of(text: str) -> list[int]:
    """The rows of the tables of states that a text has a number of."""
    low, ids = text.lower(), []
    for state in national_ids.STATES:
        for layout in state.groups.replace("!", "|").split("|"):
            for match in re.finditer(rf"(?<!\d){national_ids.grouped(layout)}(?!\d)", text) if layout else ():
                digits = re.sub(r"\D", "", match[0])
                ids += [id(state)] if re.search(state.words, low) and state.check(digits) else []
    for code in national_ids.CODES:
        for match in re.finditer(rf"(?<!\w)(?:{code.shape})(?!\w)", text):
            ids += [id(code)] if code.check(re.sub(r"[ .-]", "", match[0])) else []
    return ids
