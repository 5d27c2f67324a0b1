"""What a person asks for."""

from __future__ import annotations

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.relevance import query as module
from vmstore.relevance.query import CHARS_MAX, WORDS_MAX, Asked, AskedKind, AskedPhrase, WordQuery, parse_query
from vmstore.relevance.words import Analyzer

ENGLISH = Analyzer()


def asked(text: str, language: str = "en") -> WordQuery:
    """What a text asks for."""
    return parse_query(text, ENGLISH if language == "en" else Analyzer(language))


def kinds(text: str) -> dict[str, str]:
    """The kind of each asked word."""
    return {word.text: str(word.kind) for word in asked(text).words}


def test_a_question_asks_for_its_words_without_stop_words() -> None:
    """A question in natural words asks for those that say what it is about, each once."""
    query = asked("When did Maria go to the museum, the Museum?")
    assert [word.terms for word in query.words] == [("maria",), ("go",), ("museum",)]
    assert not query.required
    assert not query.notes


def test_each_word_has_its_kind() -> None:
    """Names, paths, hashes, prefixes and signs are told from words."""
    assert kinds("retry_with_backoff src/a.py d8b066f config* 北京 word v2.1.3 C++ -v 京") == {
        "retry_with_backoff": "identifier",
        "src/a.py": "path",
        "d8b066f": "hash",
        "config*": "prefix",
        "北京": "signs",
        "word": "word",
        "v2.1.3": "word",
        "C++": "word",
        "-v": "identifier",
        "京": "signs",
    }


def test_words_of_hexadecimal_letters_are_words() -> None:
    """What could be a hash and is a word or a number counts as that."""
    assert set(kinds("facade decade 1234567 beefed").values()) == {"word"}


def test_a_name_asks_for_its_whole_first() -> None:
    """A name is answered by itself, and less well by its parts."""
    (name,) = asked("PageFaultHandler").words
    assert name.terms == ("pagefaulthandl",)
    assert name.parts == ("page", "fault", "handler")
    (path,) = asked("src/app/main_loop.py").words
    assert path.terms == ("src/app/main_loop.py",)
    assert path.parts == ("mainloop", "main_loop.py", "src", "app", "main", "loop", "py")


def test_a_phrase_is_required_in_its_order_with_stop_words() -> None:
    """Quoted words are to stand next to each other, and are words of the question too."""
    query = asked('"not to be" again')
    (phrase,) = query.phrases
    assert phrase.sequence == ("not", "to", "be")
    assert query.required == ((phrase,),)
    assert asked("“red car”").phrases == asked('"red car"').phrases == asked("«red car»").phrases
    assert [word.text for word in asked('"red car"').words] == ["red", "car"]


def test_a_quoted_name_is_required_as_a_whole() -> None:
    """Quotes around a name ask for the name itself."""
    assert asked('"call retry_with_backoff"').phrases[0].wholes == ("retrywithbackoff",)


def test_minus_leaves_out_words_and_phrases() -> None:
    """A minus before a word or a phrase takes what has it out of the answer."""
    query = asked('car -blue -"old red"')
    assert [word.text for word in query.words] == ["car"]
    first, second = query.excluded
    assert isinstance(first, Asked) and first.terms == ("blue",)
    assert isinstance(second, AskedPhrase) and second.sequence == ("old", "red")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a -- b", ["b"]),
        ("5 - 3 -7", ["5", "3", "7"]),
        ("--flag -v -", ["--flag", "-v"]),
        ("x * y", ["x", "y"]),
        ("+1", ["1"]),
        ("well-known", ["well-known"]),
        ("b*", ["b"]),
        ("*", []),
        ("2*3", ["2", "3"]),
        ("**bold**", ["bold"]),
        ("(paint)", ["paint"]),
        ("what? paint!", ["paint"]),
        ('5" disk', ["5", "disk"]),
    ],
)
def test_an_operator_that_cannot_be_meant_is_text(text: str, words: list[str]) -> None:
    """Signs that are no operator where they stand change nothing."""
    query = asked(text)
    assert [word.text for word in query.words if word.kind is not AskedKind.STOP] == words
    assert not query.excluded and not query.phrases and not query.required


def test_plus_requires() -> None:
    """A plus before a word makes it one that every answer has."""
    query = asked("+paint red")
    assert [[item.text for item in group] for group in query.required] == [["paint"]]
    assert [word.text for word in query.words] == ["paint", "red"]


def test_or_joins_alternatives() -> None:
    """Words with OR between them are one word that either answers; with a phrase one of them is required."""
    either, bug = asked("fix OR repair OR mend bug").words
    assert either.kind == AskedKind.EITHER
    assert either.terms == ("fix", "repair", "mend")
    assert bug.terms == ("bug",)
    query = asked('"red car" OR bike')
    assert [item.text for item in query.required[0]] == ["red car", "bike"]
    assert len(query.required) == 1


@pytest.mark.parametrize("text", ["OR", "a OR", "OR b", "a OR OR b", "a OR -blue"])
def test_an_or_without_two_sides_is_left_out(text: str) -> None:
    """An OR that joins nothing is left out, and a note says so."""
    assert "An OR without something on both sides is left out." in asked(text).notes


def test_a_prefix_asks_for_what_begins_so() -> None:
    """A star at the end of a word stands for any end, and for the forms whose stem is shorter than what was typed."""
    (word,) = asked("configura*").words
    assert word.prefixes == ("configura",)
    assert "configur" in asked("configuration*").words[0].terms
    assert asked("retry_wi*").words[0].prefixes == ("retrywi",)
    assert asked("PageFau*").words[0].prefixes == ("pagefau",)
    assert asked("src/ap*").words[0].prefixes == ("src/ap",)
    assert asked("-conf*").words[0].prefixes == ("conf",)


def test_signs_are_asked_for_in_pairs() -> None:
    """Writing without spaces asks for each two neighbours, and less for each alone."""
    assert [word.terms for word in asked("我在北京").words] == [("我在",), ("在北",), ("北京",)]
    assert asked("北京").words[0].parts == ("北", "京")
    assert [word.text for word in asked("iPhone手机").words] == ["iPhone", "手机"]


def test_other_languages_ask_without_accents_too() -> None:
    """Who types no accents asks for the word with them as well."""
    assert len(asked("étudié", "fr").words[0].terms) >= 1
    assert set(asked("etudiants", "fr").words[0].terms) & set(Analyzer("fr").terms("étudiants"))


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ('say "hello', "The quote before hello is not closed; its words are asked for."),
        ("", "The question is empty; nothing is found by it."),
        ("   \t", "The question is empty; nothing is found by it."),
        ("?!", "The question has no word or sign to look for; nothing is found by it."),
        ('""', "The question has no word or sign to look for; nothing is found by it."),
        ("what did they do", "All its words are among the most frequent; they are asked for all the same."),
        ("-foo", "Nothing is asked for but what to leave out, so that is asked for."),
        ('x "y z"\n-w', "A text of several lines is searched as it is: its operators are words."),
    ],
)
def test_what_was_done_is_noted(text: str, note: str) -> None:
    """Anything odd has a note that says what was done."""
    assert note in asked(text).notes


def test_stop_words_alone_are_asked_for() -> None:
    """A question of nothing but stop words asks for those."""
    assert [(word.text, str(word.kind)) for word in asked("to be or not").words] == [
        (word, "stop") for word in ("to", "be", "or", "not")
    ]


def test_a_text_of_several_lines_has_no_operators() -> None:
    """What was pasted asks for its words, whatever stands in it."""
    query = asked('File "a.py", line 3\n-foo "bar baz"\nOR *')
    assert not query.excluded and not query.phrases and not query.required


def test_a_long_question_is_bounded() -> None:
    """Of a megabyte the beginning is asked for, and notes say how much was left out."""
    query = asked(" ".join(f"w{number}" for number in range(170_000)))
    assert len(query.words) == WORDS_MAX
    assert query.notes[0].startswith(f"Only the first {CHARS_MAX} of ")
    assert query.notes[1].startswith(f"Only the first {WORDS_MAX} words are asked for; ")


@pytest.mark.parametrize(
    "text",
    [
        "👍",
        '"',
        '"' * 999,
        "-" * 999,
        "OR " * 999,
        "*" * 999,
        "\0",
        "\ud800",
        "+-*",
        '-"',
        "a\u0301" * 5000,
        '"a ' * 3000,
    ],
)
def test_no_sign_is_an_error(text: str) -> None:
    """Whatever can be typed is read."""
    assert isinstance(asked(text), WordQuery)


@given(st.text(alphabet=st.sampled_from("ab\"-+*OR ()北.\n'/_Aé🎈"), max_size=60) | st.text(max_size=60))
def test_any_question_is_read(text: str) -> None:
    """No question raises; what it asks for has terms or beginnings, and it is empty only with a note."""
    query = asked(text)
    assert all(
        word.terms or word.prefixes for word in (*query.words, *(e for e in query.excluded if isinstance(e, Asked)))
    )
    assert query.words or query.phrases or query.notes
    assert query == asked(text)


@pytest.mark.parametrize(
    "piece", ["word ", "a/b.c-d_e::", "'a", "\u0301", "北", "🎈", '"a b" ', "-x", "aB", ".a", "1:2.", "\x1b[1m"]
)
def test_work_grows_with_the_text(piece: str) -> None:
    """A text four times as long costs at most some six times the calls, and the expressions never go back over it."""

    def calls(times: int) -> int:
        made = 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal made
            made += 1

        analyzer = Analyzer()
        sys.setprofile(count)
        try:
            analyzer.forms(piece * times)
            parse_query(piece * times, analyzer)
        finally:
            sys.setprofile(None)
        return made

    calls(10)
    assert calls(4000) <= 6 * calls(1000) + 1000


@pytest.mark.parametrize(
    "piece",
    ["x", "x-", "x'", "a.", "1:", "--", "..", "::", "+", "#", "é", "é-", "北", "\u0301", '"', '" ', "(", "aB", "\x1b"],
)
def test_time_grows_with_the_text(piece: str) -> None:
    """No run of signs has an expression try again what it tried: four times the text costs far less than 16 times."""

    def seconds(times: int) -> float:
        text = piece * times + "\n"
        analyzer = Analyzer("none")
        taken = []
        for _ in range(3):
            before = time.process_time()
            analyzer.terms(text)
            list(module._ITEM.finditer(text))
            taken.append(time.process_time() - before)
        return min(taken)

    assert seconds(100_000) <= 9 * seconds(25_000) + 0.01
