"""What somebody chose from a list they were offered: `option 2`, `the last one`, `b` name an item of it."""

from __future__ import annotations

import re

ITEMS_MIN = 2
ITEM_CHARS_MAX = 120
_ITEM = re.compile(
    r"^\s*(?:(?:option|variante?|choice)\s+)?(?:\*\*)?(?:(\d{1,2})[.):]|([a-hA-H])[.)]|[-*•])(?:\*\*)?\s+(.+)$",
    re.MULTILINE,
)
_ABOUT = re.compile(r"\s+[-–—]\s+|:\s+|\s\(|[;.]\s")
_NUMBERS = {word: place for place, words in enumerate((
    "1 one first eins erste ersten un première premier", "2 two second zwei zweite zweiten deux deuxième seconde",
    "3 three third drei dritte dritten trois troisième", "4 four fourth vier vierte vierten quatre quatrième",
    "5 five fifth fünf fünfte fünften cinq cinquième", "6 six sixth sechs sechste", "7 seven", "8 eight",
)) for word in words.split()}  # fmt: skip
_WORD = "|".join(sorted(_NUMBERS, key=len, reverse=True))
_LAST = "last|latter|letzte[nr]?|dernière?"
_FORMER = "former"
_NAMED = re.compile(
    rf"\b(?:option|number|choice|variante?|nummer|numéro|#)\s*(?P<number>{_WORD}|[a-h])\b"
    rf"|\b(?:the|die|den|das|la|le)\s+(?P<place>{_WORD}|{_LAST}|{_FORMER})"
    r"(?:\s+(?:one|option|choice|variante|suggestion))?"
    r"(?=\W*(?:$|[,.!;]| (?:please|bitte|sounds|it is|then|for me|looks)))"
    rf"|^\W*(?P<alone>\d|[a-h])\W*(?:please|bitte|it is|then)?\W*$",
    re.IGNORECASE,
)  # fmt: skip
_REFUSES = re.compile(
    r"\?|\b(?:not|n't|rather than|instead of|if|whether|nicht|statt|pas|wenn|si|why|what)\b", re.IGNORECASE
)


def items_of(offered: str) -> list[str]:
    """The items of the last list in a text, in order, each without what is said of it."""
    found = [(match[1] or match[2] or "", match[3]) for match in _ITEM.finditer(offered)]
    starts = [at for at, (mark, _) in enumerate(found) if mark.lower() in ("1", "a")]
    found = found[starts[-1] :] if starts else found
    return [
        _ABOUT.split(text.replace("**", "").replace("`", ""), maxsplit=1)[0].strip(" .,:")[:ITEM_CHARS_MAX]
        for _, text in found
    ]


def chosen(sentence: str, offered: str) -> str:
    """The item of an offered list that a sentence chooses; empty where it chooses none."""
    named = _NAMED.search(sentence)
    if named is None or _REFUSES.search(sentence):
        return ""
    items = items_of(offered)
    word = (named["number"] or named["place"] or named["alone"]).lower()
    if len(items) < ITEMS_MIN:
        return ""
    if re.fullmatch(_LAST, word):
        place = len(items) - 1
    elif len(word) == 1 and word.isalpha():
        place = ord(word) - ord("a")
    elif word.isdigit():
        place = int(word) - 1
    else:
        place = 0 if word == _FORMER else _NUMBERS[word]
    return items[place] if 0 <= place < len(items) else ""
