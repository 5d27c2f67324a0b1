"""The numbers by which states know people: how long they are, how they are grouped, and their check digits.

One table. A number is taken where its own arithmetic is right and, unless its grouping is nobody else's, a word near it
says what it is: of nine or eleven digits that pass one check there are too many.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

Check = Callable[[str], bool]


def luhn(digits: str) -> bool:
    """Whether the last digit is the one that the others ask for."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 * (value > 9)
    return total % 10 == 0


def _weighed(weights: str, modulus: int, digits: str) -> int:
    return sum(int(weight, 36) * int(digit) for weight, digit in zip(weights, digits, strict=False)) % modulus


def _sum(weights: str, modulus: int, right: Callable[[int], int]) -> Check:
    """Whether the digit behind the weighed ones is what their sum asks for."""
    return lambda digits: right(_weighed(weights, modulus, digits)) == int(digits[len(weights)])


def _from_eleven(rest: int) -> int:
    return 0 if rest < 2 else 11 - rest


def _iso(digits: str) -> bool:
    """ISO 7064, mod 11, 10."""
    product = 10
    for digit in digits[:-1]:
        product = ((product + int(digit)) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == int(digits[-1]) and digits[0] != "0"


def _day(digits: str, order: str) -> bool:
    """Whether the first six digits are a day, in an order like `dmy`; months may carry a century."""
    date_parts = {part: int(digits[2 * at : 2 * at + 2]) for at, part in enumerate(order)}
    return 1 <= date_parts["m"] % 20 <= 12 and 1 <= date_parts["d"] % 40 <= 31


def _all(*checks: Check) -> Check:
    return lambda digits: all(check(digits) for check in checks)


def _cpf(digits: str) -> bool:
    first, second = _weighed("A98765432", 11, digits), _weighed("BA98765432", 11, digits)
    return len(set(digits)) > 1 and (_from_eleven(first), _from_eleven(second)) == (int(digits[9]), int(digits[10]))


def _verhoeff(digits: str) -> bool:
    check = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit)
        for _ in range(place % 8):
            value = int("1576283094"[value])
        check = _pentagon(check, value)
    return check == 0 and digits[0] not in "01"


def _pentagon(left: int, other: int) -> int:
    """Two moves of a pentagon, one after the other."""
    if left < 5:
        return (left + other) % 5 if other < 5 else 5 + (left + other) % 5
    return 5 + (left - other) % 5 if other < 5 else (left - other) % 5


def _turkish(digits: str) -> bool:
    odd, even = sum(int(digit) for digit in digits[0:9:2]), sum(int(digit) for digit in digits[1:8:2])
    tenth = (7 * odd - even) % 10
    return digits[0] != "0" and (tenth, (odd + even + tenth) % 10) == (int(digits[9]), int(digits[10]))


def _snils(digits: str) -> bool:
    return _weighed("987654321", 101, digits) % 100 == int(digits[9:]) and int(digits[:9]) > 1001998


def _baltic(digits: str) -> bool:
    rest = _weighed("1234567891", 11, digits)
    rest = rest if rest < 10 else _weighed("3456789123", 11, digits) % 10
    return rest == int(digits[10]) and _day(digits[1:], "ymd")


def _austrian(digits: str) -> bool:
    return _weighed("3790584216", 11, digits) == int(digits[3]) and _day(digits[4:], "dmy")


class CountryNumber(NamedTuple):
    """A number of one state: its groups of digits, the words for it, and its check."""

    groups: str  # as `3.3.3-2`, several with `|`; those behind a `!` need no word
    words: str  # a pattern, in small letters
    check: Check


STATES: tuple[CountryNumber, ...] = (
    CountryNumber("11|2 3 3 3", r"steuer|idnr|id-nr|identifikationsnummer|\btin\b|tax[ -]?id", _iso),
    CountryNumber("11|3 3 3 2", r"\boib\b", _iso),
    CountryNumber("11", r"pesel", _all(_sum("1379137913", 10, lambda rest: -rest % 10), lambda one: _day(one, "ymd"))),
    CountryNumber(
        "9|4.2.3|3 3 3|4 2 3",
        r"\bbsn\b|burgerservice|sofinummer",
        lambda one: (_weighed("98765432", 11, one) - int(one[8])) % 11 == 0,
    ),
    CountryNumber("9|3 3 3", r"\bnif\b|contribuinte|\bnipc\b", _sum("98765432", 11, _from_eleven)),
    CountryNumber("11!3.3.3-2", r"\bcpf\b", _cpf),
    CountryNumber(
        "15|13 2!1 2 2 2 3 3 2",
        r"\bnir\b|s[\u00e9e]cu(?:rit[\u00e9e])?\b|\binsee\b|num[\u00e9e]ro de s|carte vitale|\bnss\b|assur[\u00e9e]",
        lambda one: len(one) == 15 and one[0] in "12" and 97 - int(one[:13]) % 97 == int(one[13:]),
    ),
    CountryNumber(
        "11!2.2.2-3.2|2.2.2-3-2|2 2 2 3 2",
        r"rijksregister|registre national|\brrn\b|\binsz\b|\bniss\b|nationaal nummer|num[\u00e9e]ro national",
        lambda one: int(one[9:]) in (97 - int(one[:9]) % 97, 97 - int("2" + one[:9]) % 97),
    ),
    CountryNumber(
        "13!3.4.4.2",
        r"\bahv|\bavs\b|\bssn\b|sozialvers",
        lambda one: one[:3] == "756" and _sum("131313131313", 10, lambda rest: -rest % 10)(one),
    ),
    CountryNumber(
        "10|12|8-4|6-4|8 4|6 4",
        r"personnummer|person-?nr|\bpnr\b|samordning|swedish",
        lambda one: luhn(one[-10:]) and _day(one[-10:], "ymd"),
    ),
    CountryNumber(
        "10|6-4", r"henkil|hetu|finnish", lambda one: "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(one[:9]) % 31] == one[9]
    ),
    CountryNumber("10|6-4", r"\bcpr\b|personnummer|cpr-nr", lambda one: _day(one, "dmy")),
    CountryNumber(
        "11|6 5",
        r"f\u00f8dselsnummer|fodselsnummer|personnummer|\bfnr\b|f\u00f8dselsnr",
        _all(_sum("376189452", 11, lambda rest: -rest % 11), _sum("5432765432", 11, lambda rest: -rest % 11)),
    ),
    CountryNumber("9|3 3 3|3-3-3", r"\bsin\b|social insurance|\bnas\b|assurance sociale", luhn),
    CountryNumber("9|3 3 3", r"\btfn\b|tax file", lambda one: _weighed("14375869A", 11, one) == 0),
    CountryNumber("10|3 3 4|3-3-4", r"\bnhs\b", lambda one: -_weighed("A98765432", 11, one) % 11 == int(one[9])),
    CountryNumber("12|4 4 4|4-4-4", r"aadhaar|aadhar|uidai|\u0906\u0927\u093e\u0930", _verhoeff),
    CountryNumber(
        "18",
        r"\u8eab\u4efd|identity|\bid\b|citizen",
        lambda one: _day(one[8:14], "ymd") and "10X98765432"[_weighed("79A584216379A5842", 11, one)] == one[17],
    ),
    CountryNumber("13|6-7", r"\uc8fc\ubbfc|\brrn\b|resident", _sum("234567892345", 11, lambda rest: (11 - rest) % 10)),
    CountryNumber(
        "12|4 4 4|4-4-4",
        r"my ?number|\u30de\u30a4\u30ca\u30f3\u30d0\u30fc|\u500b\u4eba\u756a\u53f7",
        _sum("65432765432", 11, _from_eleven),
    ),
    CountryNumber(
        "13|6 4 2 1|6 4 3",
        r"south africa|\bsa id|rsa id|id number|identity number|\bid no",
        _all(luhn, lambda one: _day(one, "ymd")),
    ),
    CountryNumber("9|1-7-1", r"teudat|\u05ea\u05e2\u05d5\u05d3\u05ea|israeli|\u05ea\u05f4\u05d6", luhn),
    CountryNumber("11", r"\btckn\b|kimlik|\btc\b", _turkish),
    CountryNumber("13", r"\bcnp\b|cod numeric", _sum("279146358279", 11, lambda rest: rest % 10)),
    CountryNumber("10", r"\begn\b|\u0435\u0433\u043d", _sum("2485A9736", 11, lambda rest: rest % 10)),
    CountryNumber("10|6/4", r"rodn[\u00e9e]|\brc\b|r\.\u010d", lambda one: int(one) % 11 == 0 and _day(one, "ymd")),
    CountryNumber("11!3-3-3 2", r"\u0441\u043d\u0438\u043b\u0441|snils", _snils),
    CountryNumber(
        "12",
        r"\u0438\u043d\u043d|\binn\b",
        _all(_sum("724A359468", 11, lambda rest: rest % 10), _sum("3724A359468", 11, lambda rest: rest % 10)),
    ),
    CountryNumber("10|4 6|4-6", r"svnr|sv-nr|sozialvers|versicherungsnummer|e-card", _austrian),
    CountryNumber("2/3/5|3/3/4|3/3/5|10|11", r"steuernummer|steuernr|st\.-?nr", lambda one: True),
    CountryNumber("2.3.3-1|1.3.3-1|8-1", r"\brut\b|\brun\b", lambda one: _chilean(one)),
    CountryNumber("9|3-2-4", r"\bitin\b", lambda one: one[0] == "9"),
    CountryNumber("11|2-8-1", r"\bcuit\b|\bcuil\b", _sum("5432765432", 11, lambda rest: (11 - rest) % 11)),
    CountryNumber("11", r"isikukood|asmens kodas", _baltic),
    CountryNumber("9|3 3 3", r"\btaj\b", _sum("37373737", 10, lambda rest: rest)),
    CountryNumber("11", r"\bamka\b|\u03b1\u03bc\u03ba\u03b1", luhn),
)
"""The states whose numbers are digits alone."""


class Code(NamedTuple):
    """A number with letters in it: its shape, the words for it, none where the shape is enough, and its check."""

    shape: str
    words: str
    check: Check


def _letter(letters: str, modulus: int) -> Check:
    def right(code: str) -> bool:
        digits = "".join(str("XYZ".index(char)) if char in "XYZ" else char for char in code[:-1])
        return letters[int(digits) % modulus] == code[-1]

    return right


def _fiscal(code: str) -> bool:
    odd = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
    values = [int(char) if char.isdigit() else ord(char) - 65 for char in code[:15]]
    return chr(65 + sum(odd[value] if at % 2 == 0 else value for at, value in enumerate(values)) % 26) == code[15]


def _pension(code: str) -> bool:
    """The German number: its letter counts as two digits, and digits are summed crosswise."""
    digits = code[:8] + f"{ord(code[8]) - 64:02}" + code[9:11]
    total = sum(
        sum(map(int, str(int(digit) * weight)))
        for digit, weight in zip(digits, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1), strict=True)
    )
    return total % 10 == int(code[11])


def _irish(code: str) -> bool:
    more = 9 * (ord(code[8]) - 64) if len(code) == 9 else 0
    return (
        "WABCDEFGHIJKLMNOPQRSTUV"[(sum(int(digit) * (8 - at) for at, digit in enumerate(code[:7])) + more) % 23]
        == code[7]
    )


def _singaporean(code: str) -> bool:
    total = sum(int(digit) * weight for digit, weight in zip(code[1:8], (2, 7, 6, 5, 4, 3, 2), strict=True)) + 4 * (
        code[0] in "TG"
    )
    return ("JZIHGFEDCBA" if code[0] in "ST" else "XWUTRQPNMLK")[total % 11] == code[8]


def _chilean(code: str) -> bool:
    total = sum(int(digit) * (2 + at % 6) for at, digit in enumerate(reversed(code[:-1])))
    return "0K987654321"[total % 11] == code[-1] if total % 11 else code[-1] == "0"


def _right(code: str) -> bool:
    return True


CODES: tuple[Code, ...] = (
    Code(r"\d{8}[ -]?[A-HJ-NP-TV-Z]", r"\bdni\b|\bnif\b|documento|identidad", _letter("TRWAGMYFPDXBNJZSQVHLCKE", 23)),
    Code(r"[XYZ][ -]?\d{7}[ -]?[A-HJ-NP-TV-Z]", "", _letter("TRWAGMYFPDXBNJZSQVHLCKE", 23)),
    Code(r"[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]", "", _fiscal),
    Code(r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]", "", _right),
    Code(r"\d{8}[A-Z]\d{3}", "", lambda code: _pension(code) and _day(code[2:], "dmy")),
    Code(r"\d{2} ?\d{6} ?[A-Z] ?\d{3}", r"sv-?n|sozialvers|rentenvers|versicherungsn", _pension),
    Code(
        r"\d{6}[-+A-FU-Y]\d{3}[0-9A-FHJ-NPR-Y]",
        "",
        lambda code: (
            "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(code[:6] + code[-4:-1]) % 31] == code[-1] and _day(code, "dmy")
        ),
    ),
    Code(r"[A-Z][AEIOUX][A-Z]{2}\d{6}[HM][A-Z]{5}[A-Z0-9]\d", "", lambda code: _day(code[4:], "ymd")),
    Code(r"\d{7}[A-W][A-IW]?", r"\bpps", _irish),
    Code(r"[STFG]\d{7}[A-Z]", "", _singaporean),
    Code(r"[A-Z]{5}\d{4}[A-Z]", r"\bpan\b|permanent account", _right),
    Code(r"[A-Z\u00d1&]{4}\d{6}[A-Z0-9]{3}", r"\brfc\b", lambda code: _day(code[4:], "ymd")),
    Code(r"\d{17}X", "", lambda code: _weighed("79A584216379A5842", 11, code) == 2),
    Code(r"\d{1,2}\.\d{3}\.\d{3}-[\dK]", "", _chilean),
    Code(r"[12]\d{2}(?:0[1-9]|1[0-2])(?:2A|2B|\d{2})\d{8}", r"\bnir\b|s[\u00e9e]cu", _right),
)


def _layouts() -> dict[str, list[tuple[CountryNumber, bool]]]:
    """The states by their groupings, and whether a word is needed with it."""
    found: dict[str, list[tuple[CountryNumber, bool]]] = {}
    for state in STATES:
        needing, _, free = state.groups.partition("!")
        for listed, word in ((needing, True), (free, False)):
            for layout in filter(None, listed.split("|")):
                found.setdefault(layout, []).append((state, word))
    return found


def grouped(layout: str) -> str:
    return "".join(rf"\d{{{part}}}" if part.isdigit() else re.escape(part) for part in re.findall(r"\d+|\D", layout))


_LAYOUTS = _layouts()
_NUMBER = re.compile(
    r"(?<![\d.-])(?:" + "|".join(grouped(one) for one in sorted(_LAYOUTS, key=len, reverse=True)) + r")(?!\d|[.-]\d)"
)
_PARTS = re.compile(r"\d+|\D")
_CODES = tuple((re.compile(f"(?:{one.shape})(?![A-Za-z0-9])"), one) for one in CODES)
_ANY_CODE = re.compile("|".join(one.shape for one in CODES))
_WORDS_CHARS = 60


def number(low: str, start: int, end: int) -> tuple[int, int] | None:
    """Start and end of a national number in a run of digits and signs; `low` is the text in small letters."""
    for found in _NUMBER.finditer(low, start, end):
        layout = "".join(str(len(part)) if part.isdigit() else part for part in _PARTS.findall(found[0]))
        digits = re.sub(r"\D", "", found[0])
        for state, word in _LAYOUTS[layout]:
            if state.check(digits) and (not word or _near(state.words, low, found.start())):
                return found.span()
    return None


def code(text: str, low: str, start: int) -> tuple[int, int] | None:
    """Start and end of a national number with letters that begins here."""
    if _ANY_CODE.match(text, start) is None:
        return None
    for shape, scheme in _CODES:
        found = shape.match(text, start)
        if (
            found
            and (not scheme.words or _near(scheme.words, low, start))
            and scheme.check(re.sub(r"[ .-]", "", found[0]))
        ):
            return found.span()
    return None


def _near(words: str, low: str, place: int) -> bool:
    return re.search(words, low[max(place - _WORDS_CHARS, 0) : place]) is not None
