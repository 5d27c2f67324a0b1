"""What a text is found by."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.errors import InputError
from vmstore.relevance.characters import classes, folded
from vmstore.relevance.query import Asked, AskedPhrase, parse_query
from vmstore.relevance.words import CACHED_MAX, LANGUAGES, TERM_CHARS_MAX, Analyzer, tokens

ENGLISH = Analyzer()

# What stands in a text, and what a person asks for it, by kind.
PROBES = {
    "stems": [
        ("painting the fence", "paint"),
        ("we studied maps", "study"),
        ("study", "studied"),
        ("I don't know Ana", "dont know ana"),
        ("dont know", "don't know"),
        ("Maria's bicycle", "maria"),
        ("O'Brien came", "obrien"),
        ("the boxes", "box"),
    ],
    "accents": [
        ("a Café in town", "cafe"),
        ("a cafe in town", "Café"),
        ("a Cafe\u0301 in town", "cafe"),
        ("ＦＵＬＬ width", "full"),
        ("full width", "ＷＩＤＴＨ"),
        ("İstanbul", "istanbul"),
        ("istanbul", "İSTANBUL"),
        ("Straße", "strasse"),
        ("smørrebrød", "smorrebrod"),
        ("ﬁle", "file"),
        ("co\u00adoperate", "cooperate"),
    ],
    "identifiers": [
        ("class PageFaultHandler:", "fault handler"),
        ("class PageFaultHandler:", "PageFaultHandler"),
        ("class PageFaultHandler:", "pagefaulthandler"),
        ("def retry_with_backoff():", "backoff"),
        ("def retry_with_backoff():", "retry_with_backoff"),
        ("def retry_with_backoff():", "retryWithBackoff"),
        ("HTTPServer", "server"),
        ("getURLs()", "url"),
        ("on GitHub", "github"),
        ("the IDs", "id"),
        ("set-up", "setup"),
        ("e-mails", "email"),
        ("__init__", "__init__"),
        ("std::vec::Vec", "vec"),
        ("C++ code", "c++"),
        ("C# code", "C#"),
        (".NET code", ".net"),
        ("with .NET code", "net"),
        ("notepad++", "notepad"),
        ("node.js", "node.js"),
    ],
    "paths": [
        ("in src/app/main.py:12", "src/app/main.py"),
        ("in src/app/main.py:12", "main.py"),
        ("in src/app/main.py:12", "app"),
        ("/usr/bin/env", "usr/bin/env"),
        (".gitignore", ".gitignore"),
        ("C:\\Users\\ana\\notes.txt", "notes.txt"),
        ("https://example.org/a/page?q=1", "example.org"),
    ],
    "addresses": [
        ("run --dry-run now", "--dry-run"),
        ("run --dry-run now", "dry run"),
        ("tar -xzf x", "-xzf"),
        ("write ana.b@mail.example.com", "ana.b@mail.example.com"),
        ("write ana.b@mail.example.com", "mail.example.com"),
        ("since v2.13.4", "2.13.4"),
        ("since 2.13.4", "v2.13.4"),
        ("since v2.13.4", "2.13"),
        ("127.0.0.1", "127.0.0.1"),
        ('{"max_tokens": 5}', "max_tokens"),
        ("commit d8b066f0aa", "d8b066f"),
        ("on 2023-05-07T10:30:00Z", "2023-05-07"),
        ("on 2023-05-07T10:30:00Z", "2023-05-07T10:30:00Z"),
        ("tags/v0.14.0/notes", "0.14.0"),
        ("at 10:30", "10:30"),
    ],
    "writings": [
        ("我去年去了北京。", "北京"),
        ("我去年去了北京。", "京"),
        ("東京タワーへ行った", "タワー"),
        ("학교에서 왔다", "학교"),
        ("मैंने हिन्दी पढ़ी", "हिन्दी"),
        ("ฉันเรียนภาษาไทย", "ภาษา"),
        ("iPhone手机", "手机"),
        ("iPhone手机", "iphone"),
        ("кошки", "КОШКИ"),
        ("كِتَاب", "كتاب"),
    ],
    "signs": [("well done 👍🏽", "👍"), ("👩\u200d💻 at work", "💻"), ("to 🇩🇪", "🇩🇪"), ("5 €", "€"), ("✓ done", "✓")],
    "operators": [
        ("configuration", "config*"),
        ("configuration", "configuration*"),
        ("studies", "study*"),
        ("the red car", '"red car"'),
        ("to be or not to be", '"not to be"'),
        ("repair", "fix OR repair"),
        ("the", "the"),
        ("3 - 5", "3 -5"),
    ],
}
MISSES = [
    ("मैंने हिन्दी पढ़ी", "पढ"),
    ("a b c", "C++"),
    ("to retry it with a backoff", "+retry_with_backoff"),
    ("the car, red", '"red car"'),
    ("北风和京都", "+北京"),
    ("a red car", "-car red"),
]


def answers(text: str, query: str, analyzer: Analyzer = ENGLISH) -> bool:
    """Whether a text has all that is asked for, by its terms alone and by the order of a phrase's words."""
    forms = analyzer.forms(text)
    known = {term for form in forms for term in (*form.terms, *form.wholes, *form.stops)}
    order = " ".join(analyzer.sequence(text))

    def has(wanted: Asked | AskedPhrase) -> bool:
        if isinstance(wanted, AskedPhrase):
            return f" {' '.join(wanted.sequence)} " in f" {order} " and known.issuperset(wanted.wholes)
        begun = any(term.startswith(prefix) for term in known for prefix in wanted.prefixes)
        return begun or not known.isdisjoint(wanted.terms)

    asked = parse_query(query, analyzer)
    return (
        all(has(wanted) for wanted in asked.words)
        and all(any(has(wanted) for wanted in group) for group in asked.required)
        and not any(has(wanted) for wanted in asked.excluded)
        and not asked.empty
    )


@pytest.mark.parametrize(("text", "query"), [probe for probes in PROBES.values() for probe in probes])
def test_a_text_is_found_by_what_a_person_asks(text: str, query: str) -> None:
    """What is written in one form is found by the forms a person types."""
    assert answers(text, query)


@pytest.mark.parametrize(("text", "query"), MISSES)
def test_a_text_is_not_found_by_what_it_does_not_say(text: str, query: str) -> None:
    """Marks, operators and whole names hold back what has only a part of them."""
    assert not answers(text, query)


@pytest.mark.parametrize(
    ("language", "text", "query"),
    [
        ("de", "die Häuser", "Haus"),
        ("de", "Muenchen", "München"),
        ("fr", "l'étudiante est là", "étudiant"),
        ("fr", "aujourd'hui", "aujourd’hui"),
        ("es", "las canciones", "canción"),
        ("ru", "мы читали книги", "книга"),
        ("tr", "evlerimizde", "ev"),
        ("it", "dell'amore", "amore"),
        ("hi", "लड़कों", "लड़का"),
        ("none", "paintings", "paintings"),
    ],
)
def test_other_languages_have_their_endings(language: str, text: str, query: str) -> None:
    """A text of another language is found by the forms that language has."""
    assert answers(text, query, Analyzer(language))


def test_every_language_can_be_chosen() -> None:
    """Each language of the list takes a text apart, and one that is not in it is an error that names the list."""
    for language in LANGUAGES:
        assert Analyzer(language).terms("Words") or language in ("none",)
    with pytest.raises(InputError, match="choose one of none, ar"):
        Analyzer("klingon")


def test_a_length_counts_terms_without_stop_words_and_wholes() -> None:
    """How long a text is, is the number of its terms."""
    assert ENGLISH.terms("The retry_with_backoff of Ana's car") == ["retri", "backoff", "ana", "car"]


def test_an_encoded_picture_is_not_a_name() -> None:
    """Runs of letters in mixed case that are no words count as one each, so that they bring few terms."""
    key = "toolu_01LWCauu7ASRfYLxEMobbEyg"
    assert ENGLISH.terms(key) == ["toolu", "01lwcauu7asrfylxemobbeyg"]
    assert ENGLISH.terms("HMQVGD1Tof9ij0DjlPBjAjY5IorMk1LoR") == ["hmqvgd1tof9ij0djlpbjajy5iormk1lor"]
    assert ENGLISH.terms("getURLForBase64") == ["url", "base64"]
    assert len(ENGLISH.terms("A" * 1000)[0]) == TERM_CHARS_MAX


def test_the_version_names_what_terms_come_of() -> None:
    """An index can tell that its terms were made by other rules, for another language or by other endings."""
    assert ENGLISH.version.startswith("words@1/en/snowball ")
    assert Analyzer("none").version == "words@1/none"


def test_a_word_is_stemmed_once() -> None:
    """The forms of tokens are kept, and what is kept has a bound."""
    analyzer = Analyzer("none")
    first = analyzer.form("paintings")
    assert analyzer.form("paintings") is first
    for number in range(CACHED_MAX + 1):
        analyzer.form(f"w{number}")
    assert analyzer.form("paintings") is not first
    long = "x" * 1000
    assert analyzer.form(long) == analyzer.form(long)
    assert analyzer.form(long) is not analyzer.form(long)


@given(st.text(max_size=200))
def test_any_text_is_taken_apart(text: str) -> None:
    """No text is an error, and its terms are among its words in order."""
    for form in ENGLISH.forms(text):
        assert set(form.terms) | set(form.stops) == set(form.sequence)
    assert ENGLISH.terms(text) == [term for form in ENGLISH.forms(text) for term in form.terms]


@given(st.text(max_size=60))
def test_a_text_is_found_by_itself(text: str) -> None:
    """The words of a text in another case and another composition give its terms."""
    quiet = "".join(sign for sign in text if sign.isalnum() or sign == " " or unicodedata.category(sign)[0] == "M")
    other = ENGLISH.terms(unicodedata.normalize("NFD", quiet))
    assert other == ENGLISH.terms(unicodedata.normalize("NFC", quiet))


@given(st.text(max_size=60))
def test_a_folded_word_stays_as_it_is(text: str) -> None:
    """Folding what is folded changes nothing."""
    for token in tokens(text):
        assert folded(folded(token)) == folded(token)


def test_marks_are_read_from_the_tables() -> None:
    """Every mark of Unicode is one here, so that no word is cut at a vowel sign."""
    for code in (0x93E, 0xE31, 0x1038, 0xFE0F):
        assert classes().mark.match(chr(code))
    assert not classes().mark.search("azАж北あ9_ ")


def test_no_mark_is_left_out() -> None:
    """Where marks are looked for is wherever the tables of Python have one."""
    marks = [chr(code) for code in range(0x300, 0xFE30) if unicodedata.category(chr(code))[0] == "M"]
    assert len(marks) > 1_000 and all(map(classes().mark.match, marks))


def test_a_run_of_text_says_how_its_term_begins() -> None:
    """What a run is said to begin with is what its only term begins with, irregular forms and other spellings too."""
    from vmstore.relevance.irregular import FORMS, SPELLINGS
    from vmstore.relevance.stops import STOP_WORDS

    known = [*FORMS, *SPELLINGS, *STOP_WORDS["en"], "dying", "Skies.", "idly", "colour,", "y", "Yes!", "didn't", "x()"]
    firsts = {run: first for run in known if (first := ENGLISH.first_sign(run))}
    assert len(firsts) > 50
    for run, first in firsts.items():
        assert [term[0] for term in ENGLISH.every_term(run)] == [first], run
