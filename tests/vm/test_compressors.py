"""Compressors: shorter forms that are shorter, exact in what they keep, and the same every time."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.core.page import METHODS, Level, Method, Modality, PageType
from vmstore.core.text.token_estimate import estimate
from vmstore.errors import InputError
from vmstore.vm.compressors.form import Form, Material, NoForm, NoFormReason
from vmstore.vm.compressors.page_types import COMPRESSION
from vmstore.vm.compressors.registry import COMPRESSORS, compressed, compressor
from vmstore.vm.recall.text_pieces import without_controls

CHECKOUT = Path(__file__).resolve().parents[2]
DATA = CHECKOUT.parent / "shared" / "data"
LEVELS = (Level.REDUCED, Level.ABSTRACT, Level.REFERENCE)
MARK = re.compile(r"\[… lines \d+ to \d+\]|\[…\]|\[code, [^\]\n]*\]| …$|^- ", re.MULTILINE)

PROSE = """The upload service keeps files for 90 days in the bucket eu-west-3/raw. It was written by Ana in 2019.
Most uploads are images. A nightly job at 02:30 deletes files that are older than 90 days from the bucket.
We saw 3.2 % of uploads fail last week. The failures come from the bucket's limit of 25 MB for a file.
The weather was nice. Somebody brought cake. The job writes its log to /var/log/sweep.log on host ops-7.
Nobody reads the log. The limit of the bucket can be raised with `upload.max_bytes` in config.yaml.
Ana suggests raising the limit for files in the bucket to 40 MB. The change needs a restart of the service."""


def text(content: str, level: int) -> Form | NoForm:
    """A text's form."""
    return compressed(Material(content=content.encode()), level)


def made(content: str, level: int, modality: Modality = Modality.TEXT) -> str:
    """The text of a form that must be there."""
    form = compressed(Material(content=content.encode(), modality=modality), level)
    assert isinstance(form, Form), form
    return form.content.decode()


# Texts


def test_a_summary_is_the_central_sentences() -> None:
    """Level 1 keeps what the text is about, in its words and order, and marks what is left out."""
    short = made(PROSE, 1)
    assert "the bucket" in short and "cake" not in short and "weather" not in short and "[…]" in short
    indexes = [PROSE.index(part.strip()) for part in MARK.split(short) if part.strip()]
    assert indexes == sorted(indexes)


def test_key_points_are_few_and_topics_one_line() -> None:
    """Level 2 is a short list of sentences, level 3 one line of topics."""
    points = made(PROSE, 2).split("\n")
    assert 1 <= len(points) <= 7 and all(point.startswith("- ") for point in points)
    assert made(PROSE, 3) == f"[upload, bucket, files, log, service, raised, days, limit; {len(PROSE)} characters]"


def test_numbers_names_and_paths_are_exact() -> None:
    """What a summary keeps of numbers, names and paths stands in the text letter for letter."""
    for level in (1, 2):
        exact = re.findall(r"\S*[\d/_.]\S*\w", MARK.sub("", made(PROSE, level)))
        assert exact and all(item in PROSE for item in exact), (level, exact)


FENCED = (
    "Intro about the cache of the server. " * 4
    + """

```python
def fetch(cache, key):
    value = cache.get(key)
    return value
```

The cache of the server is filled by fetch when the server starts. """
    + "Another word on the server. " * 9
)


def test_code_is_kept_whole_or_named() -> None:
    """A short block of code stands whole in a summary or not at all; a long one is named with what it defines."""
    block = FENCED[FENCED.index("```") : FENCED.rindex("```") + 3]
    short = made(FENCED, 1)
    assert block in short or "cache.get" not in short
    long = FENCED.replace(
        "    return value", "\n".join(f"    line_{at} = {at}" for at in range(40)) + "\n    return value"
    )
    named = made(long, 1)
    assert "line_" not in named and "[code, 45 lines: fetch]" in named


PROGRAM = "import os\n\n\n" + "\n".join(
    f"class Thing{at}:\n    def run_{at}(self) -> int:\n        value = {at}\n        return value\n"
    for at in range(60)
)


@pytest.mark.parametrize("level", [1, 2])
def test_lines_of_a_program_are_kept_whole(level: int) -> None:
    """Of a program whole lines stay in order, what it defines first, with the numbers of the lines that are missing."""
    short, whole = made(PROGRAM, level), PROGRAM.strip("\n").split("\n")
    at = 0
    for line in short.split("\n"):
        if match := re.fullmatch(r"\[… lines (\d+) to (\d+)\]", line):
            assert int(match[1]) == at + 1
            at = int(match[2])
        elif not line:
            at += next(count for count, item in enumerate(whole[at:]) if item)  # a blank line stands for several
        else:
            assert whole[at] == line, (at, line)
            at += 1
    assert at == len(whole) and "class Thing1:" in short


def test_lines_follow_without_holes() -> None:
    """A line too long to keep ends the lines from the beginning: nothing after it is picked out by its length."""
    lines = [f"value_{at} = {at}" for at in range(60)]
    lines[9] = "long = '" + "x" * 500 + "'"
    assert made("\n".join(lines), 1).split("\n") == [*lines[:9], "[… lines 10 to 58]", *lines[-2:]]


def test_a_form_undercuts_those_below() -> None:
    """Where a page has a shorter form at a lower level, by other hands, there is no shorter form here."""
    material = Material(content=PROSE.encode())
    below = [Form(b"Files are kept for 90 days.", Method.WRITTEN)]
    assert isinstance(compressed(material, 2), Form)
    assert compressed(material, 2, below=below) == NoForm(NoFormReason.NO_SHORTER, "no shorter form")


def test_what_went_wrong_stays() -> None:
    """Of what a program prints the errors stay, wherever they stand."""
    lines = [f"step {at} of 400: done with file number {at}" for at in range(400)]
    lines[211] = "ValueError: no column named 'prize'"
    for level in (1, 2):
        short = made("\n".join(lines), level)
        assert lines[211] in short.split("\n") and lines[0] in short and lines[-1] in short


NO_SHORTER = ["ok", "Yes.", "One sentence that cannot be cut anywhere at all", "x" * 500, "\n" * 500, "..." * 300]


@pytest.mark.parametrize("content", NO_SHORTER, ids=[repr(content[:12]) for content in NO_SHORTER])
def test_what_cannot_be_shorter_is_said_so(content: str) -> None:
    """A text without a shorter summary has none, and the reason is named."""
    assert text(content, 1) == NoForm(NoFormReason.NO_SHORTER, "no shorter form")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("modality", Modality)
def test_nothing_has_no_form(modality: Modality, level: Level) -> None:
    """A page without content has no form at any level, and the reason is named."""
    short = compressed(Material(content=b"", modality=modality, transcript="spoken"), level)
    assert isinstance(short, NoForm) and short.reason in (NoFormReason.EMPTY, NoFormReason.NOT_GIVEN)


def test_bytes_that_are_no_text_have_a_reference() -> None:
    """Of a text that is no UTF-8 only a line is made, that says what it is."""
    material = Material(content=b"\xff\xd8\xff" + b"\x80" * 500, name="photo.txt")
    assert [compressed(material, level) for level in (1, 2)] == [
        NoForm(NoFormReason.NO_TEXT, "the bytes are no UTF-8")
    ] * 2
    line = compressed(material, 3)
    assert line == Form(b"[text/plain: image/jpeg by its bytes, 503 bytes, photo.txt, no UTF-8]", Method.REFERENCE)


def test_a_form_holds_no_controls() -> None:
    """Colours, bells and null bytes of a content do not reach a form."""
    loud = PROSE.replace("bucket", "\x1b[31mbuc\x00ket\x1b[0m\x07")
    for level in LEVELS:
        assert made(loud, level).split(";")[0] == made(PROSE, level).split(";")[0]


def test_a_level_that_does_not_exist_is_refused() -> None:
    """Level 0 and level 4 have no compressor, and the error names the levels."""
    for level in (0, 4, -1):
        with pytest.raises(InputError, match=f"level {level}; ask for 1 reduced, 2 abstract or 3 reference"):
            compressed(Material(content=b"x"), level)


# Every form is shorter, the same, and of its page

WORDS = st.lists(
    st.sampled_from(["cache", "log", "3.14", "a/b.py", "Ana", "the", "is", "We", "x_1", "é", "\x1b[1m"]), max_size=9
)
LINES = st.builds(
    lambda words, end: " ".join(words) + end, WORDS, st.sampled_from([". ", "!\n", "\n", "\n\n", ";\n", "\n- ", "\n# "])
)
TEXTS = st.one_of(st.text(max_size=400), st.lists(LINES, max_size=40).map("".join))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=60)),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=8), inner, max_size=12),
    max_leaves=60,
)


def check_ladder(material: Material) -> None:
    """Each form is shorter than the page and than every form below it, made twice alike, with its method's name."""
    below: list[Form] = []
    for level in LEVELS:
        form = compressed(material, level)
        assert form == compressed(material, level)
        if isinstance(form, NoForm):
            assert form.found
            continue
        assert len(form.content) < len(material.content)
        assert form.tokens <= estimate(material.content, material.modality)
        assert form.method in METHODS and form.lossy
        assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", form.content)
        for lower in below:
            if lower.method is not Method.THUMBNAIL:
                assert len(form.content) < len(lower.content)
        below.append(form)


@given(TEXTS)
def test_forms_of_texts_climb_down(content: str) -> None:
    """Whatever a text is, its forms are shorter level by level and deterministic."""
    check_ladder(Material(content=content.encode("utf-8", "replace")))


@given(TEXTS)
def test_a_summary_has_only_what_the_text_has(content: str) -> None:
    """Every part of a summary between two marks stands in the text as it is."""
    content = without_controls(content)
    form = text(content, 1)
    if isinstance(form, Form) and form.method is Method.SENTENCES:
        flat = " ".join(content.split())
        for part in MARK.split(form.content.decode()):
            for line in part.split("\n"):
                assert " ".join(line.split()) in flat


@given(VALUES, st.sampled_from([Modality.TEXT, Modality.STRUCTURED]))
def test_forms_of_values_climb_down(value: Any, modality: Modality) -> None:
    """Whatever a JSON value is, its forms are shorter level by level, deterministic, and JSON where they say so."""
    material = Material(
        content=json.dumps([value] * 5, ensure_ascii=False).encode("utf-8", "replace"), modality=modality
    )
    check_ladder(material)
    for level in (1, 2):
        form = compressed(material, level)
        if isinstance(form, Form) and form.mime == "application/json":
            json.loads(form.content)


@given(st.binary(max_size=300), st.sampled_from(list(Modality)), st.text(max_size=100))
def test_forms_of_any_bytes_climb_down(content: bytes, modality: Modality, handed: str) -> None:
    """Whatever the bytes are, each modality gives a shorter form or the reason why there is none."""
    check_ladder(Material(content=content, modality=modality, caption=handed, transcript=handed, name=handed))


# Structured data

ROWS = [{"id": at, "name": f"user {at}", "price": 1.10, "tags": ["a"]} for at in range(80)]
ROWS[7]["note"] = "seldom"


def test_samples_have_the_shape_and_some_values() -> None:
    """Level 1 of JSON is its shape with how many items there are, a key some lack marked, and the first values."""
    document = json.loads(made(json.dumps(ROWS), 1, Modality.STRUCTURED))
    assert document["schema"] == [
        {"id": "integer", "name": "string", "price": "number", "tags": [["string", "×1"]][0], "note?": "string"},
        "×80",
    ]
    assert document["sample"] == [*ROWS[:3], "… 77 more"]


def test_the_schema_alone_is_level_2() -> None:
    """Level 2 is the shape, level 3 the size in one line."""
    content = json.dumps({"rows": ROWS, "next": None})
    assert json.loads(made(content, 2, Modality.STRUCTURED))["next"] == "null"
    assert made(content, 3, Modality.STRUCTURED) == f"[JSON object: rows, next; {len(content):,} characters]"


def test_numbers_of_samples_are_as_written() -> None:
    """No digit of a number is lost, whatever it is."""
    numbers = ["1.10", "12345678901234567890123", "1e400", "-0.0", "3.0000000000000000001"]
    content = "[" + ",".join(numbers * 30) + "]"
    text = made(content, 1, Modality.STRUCTURED)
    assert '"sample":[1.10,12345678901234567890123,1e400,' in text


def test_json_in_a_text_is_structured() -> None:
    """A text that is JSON, as tools give it, is not summed up like prose."""
    content = json.dumps(ROWS)
    assert [made(content, level) for level in LEVELS] == [made(content, level, Modality.STRUCTURED) for level in LEVELS]


WRONG_JSON = {
    "not JSON": PROSE,
    "cut off": json.dumps(ROWS)[:-20],
    "nested too deep": "[" * 200_000,
    "a number": "17",
    "too long": "[" + "1," * 5_000_000 + "1]",
}


@pytest.mark.parametrize("content", WRONG_JSON.values(), ids=WRONG_JSON)
def test_structured_data_that_is_no_json_is_a_text(content: str) -> None:
    """What cannot be read as JSON is compressed as the text it is."""
    for level in LEVELS:
        wanted = compressed(Material(content=content.encode()), level)
        assert compressed(Material(content=content.encode(), modality=Modality.STRUCTURED), level) == wanted


def test_a_map_of_many_keys_is_not_listed() -> None:
    """An object with thousands of keys shows the first ones and how many there are more."""
    content = json.dumps({f"id-{at}": {"size": at} for at in range(9_000)})
    document = json.loads(made(content, 2, Modality.STRUCTURED))
    assert document["…"] == ["8,976 more keys", {"size": "integer"}] and len(document) == 25


# The registry and the types of pages


def test_every_level_of_every_modality_has_a_compressor() -> None:
    """Fifteen compressors, each with a method that has a name and a version."""
    assert set(COMPRESSORS) == {(modality, level) for modality in Modality for level in LEVELS}
    for modality in Modality:
        for level in LEVELS:
            assert METHODS[compressor(modality, level).method]


def test_methods_have_their_numbers_for_ever() -> None:
    """Every method has a number, a name and a version of its own; those that are given do not change."""
    assert [METHODS[method] for method in sorted(METHODS)] == [
        "clipped@1", "shortened@1", "replaced@1", "sentences@1", "key_points@1", "topics@1", "samples@1", "schema@1",
        "reference@1", "thumbnail@1", "caption@1", "transcript@1", "written@1", "lines@1",
    ]  # fmt: skip
    assert list(METHODS) == list(Method) == list(range(len(Method)))


@pytest.mark.parametrize("page_type", PageType)
def test_a_type_is_compressed_as_far_as_it_may(page_type: PageType) -> None:
    """Beyond the level its type allows a page has no form, and the reason names the type."""
    for level in LEVELS:
        short = compressed(Material(content=PROSE.encode()), level, page_type)
        if level <= COMPRESSION[page_type].level_max:
            assert isinstance(short, Form)
        else:
            assert (
                isinstance(short, NoForm) and short.reason is NoFormReason.NOT_ALLOWED and page_type.word in short.found
            )


def test_indexes_and_summaries_stay_whole() -> None:
    """An index and a summary are never compressed, nor a value; a claim and a procedure only rarely."""
    whole = {kind for kind, rule in COMPRESSION.items() if rule.level_max == 0}
    assert whole == {PageType.INDEX, PageType.SUMMARY, PageType.VALUE}
    assert {kind for kind, rule in COMPRESSION.items() if rule.rarely} == {PageType.CLAIM, PageType.PROCEDURE}
    assert set(COMPRESSION) == set(PageType)
