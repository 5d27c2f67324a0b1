"""The keyword tagger: what a turn is about by its words, its neighbours and the tags there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from vmstore.core.tags import TagMethod
from vmstore.tags.canonical import known_as, singular, slips, spelled
from vmstore.tags.split import due, split
from vmstore.tags.tagger import GENERAL, TaggedTurn, TurnText, tags_of

DB = TurnText("The database index makes the database slow, can we drop the index?", "Dropping the index helps writes.")
FENCE = TurnText("Which paint should I buy for the garden fence, and does the fence need primer?", "Oil paint.")


def tagged(turns: Sequence[TurnText], aliases: dict[str, str] | None = None) -> list[list[tuple[str, TagMethod]]]:
    """Turns tagged one after the other, each with the vocabulary that those before it made."""
    before: list[TaggedTurn] = []
    known: Counter[str] = Counter()
    actual_tags = []
    for text in turns:
        tags = tags_of(text, before, known, aliases or {})
        before.append(TaggedTurn(text, tuple(tag.tag for tag in tags)))
        known.update(tag.tag for tag in tags)
        actual_tags.append([tuple(tag) for tag in tags])
    return actual_tags


def names(rows: list[list[tuple[str, TagMethod]]]) -> list[list[str]]:
    return [[tag for tag, _ in turn] for turn in rows]


def test_a_short_message_goes_on_with_the_topic_before_it() -> None:
    """What says too little by itself has the tags of the turn before, by the method inherited."""
    first, second, third = tagged([DB, TurnText("Yes, do that."), TurnText("And then?", "Then we wait.")])
    assert [tag for tag, _ in first] == ["index", "database"]
    assert second == third == [(tag, TagMethod.INHERITED) for tag, _ in first]


def test_another_topic_does_not_bleed() -> None:
    """A short message with words of its own and none of the topic before is tagged by its words alone."""
    rows = tagged([DB, TurnText("How about lunch in Lisbon?"), TurnText("Thanks!")])
    assert not {"index", "database"} & set(names(rows)[1]) and "lunch" in names(rows)[1]
    assert names(rows)[2] == names(rows)[1], "and what follows goes on with the new topic"


def test_a_tag_that_is_there_is_taken_before_a_new_one() -> None:
    """A turn about what has a tag already gets that tag and no synonym of it made of its other words."""
    later = TurnText("Rebuild the indexes of the orders table tonight, orders are late.", "The orders table it is.")
    assert names(tagged([DB, FENCE, later]))[2] == ["index"]


def test_topics_that_alternate_each_turn_keep_their_tags() -> None:
    """Two topics in turn stay two topics through forty turns, and no tag of one stands on the other."""
    actual_names = names(tagged([DB, FENCE] * 20))
    assert all(set(tags) == {"index", "database"} for tags in actual_names[::2])
    assert all(set(tags) == {"fence", "paint"} for tags in actual_names[1::2])


def test_what_is_about_nothing_is_general() -> None:
    """A greeting with nothing before it is tagged as general, and no later turn inherits that."""
    actual_names = names(tagged([TurnText("Hello!", "Hi, how can I help?"), TurnText("ok"), DB]))
    assert actual_names == [[GENERAL], [GENERAL], ["index", "database"]]


def test_an_alias_counts_as_its_tag() -> None:
    """A turn that uses another name of a tag is tagged with the tag."""
    text = TurnText("Is the db on the other host slow too, the replica of that db?", "The db is.")
    assert names(tagged([text], {"db": "database"}))[0][0] == "database"


def test_a_turn_longer_than_any_window_is_read_in_part() -> None:
    """A text of two million characters is tagged by its beginning and its end, at once."""
    text = TurnText("kubernetes cluster upgrade kubernetes " + "lorem ipsum " * 170_000 + " kubernetes")
    assert [tag.tag for tag in tags_of(text, [], {"kubernetes": 1}, {})] == ["kubernetes"]
    assert names(tagged([text])) == [["lorem", "ipsum"]]


def test_five_hundred_tags_are_no_obstacle() -> None:
    """With five hundred tags known a turn gets three at most, those whose words it has."""
    known = {f"topic{at}": 1 for at in range(500)} | {"database": 9}
    tags = tags_of(DB, [], known, {})
    assert [tag.tag for tag in tags] == ["database"]
    everything = TurnText(" ".join(known))
    assert len(tags_of(everything, [], known, {})) == 3


def test_the_same_turns_give_the_same_tags() -> None:
    """Tags follow from the texts alone: a second run says the same, in the same order."""
    turns = [DB, FENCE, TurnText("ok"), TurnText("Lisbon in May, flights to Lisbon?"), TurnText("")]
    assert tagged(turns) == tagged(turns)


def test_a_broad_tag_is_split_into_names_of_two_words() -> None:
    """A tag of fifteen turns falls into what its turns are about beside it; the largest part takes its name over."""
    parts = ["index", "backup", "index", "backup", "replica"]
    turns = [(at, TurnText(f"The database {parts[at % 5]} number {at} is slow")) for at in range(15)]
    assert due({"database": 15, "fence": 14}, 40, frozenset()) == "database"
    assert (
        due({"database": 15}, 40, frozenset({"database"})) is None and due({"database": 15}, 200, frozenset()) is None
    )
    words = split("database", turns)
    assert words is not None and words.canonical == "database-backup"
    assert Counter(words.turns.values()) == {"database-index": 6, "database-backup": 6, "database-replica": 3}


def test_what_does_not_fall_apart_is_not_split() -> None:
    """Turns that say one thing beside the tag, or each another, keep it."""
    same = [(at, TurnText("The database index is slow")) for at in range(20)]
    apart = [(at, TurnText(f"The database thing{at}x is slow")) for at in range(20)]
    assert split("database", same) is None and split("database", apart) is None


@pytest.mark.parametrize(
    ("name", "wanted"), [("Data Base", "data-base"), ("  Café_Noir ", "cafe-noir"), ("!!", ""), ("Straße", "strasse")]
)
def test_a_tag_has_one_spelling(name: str, wanted: str) -> None:
    """Case, accents and signs make no other tag."""
    assert spelled(name) == wanted


def test_numbers_and_slips_of_a_name() -> None:
    """The plural of a known tag is that tag, and a swap of letters is one slip."""
    assert [singular(word) for word in ("indexes", "queries", "news", "status", "boxes")] == [
        "index", "query", "news", "status", "box",
    ]  # fmt: skip
    assert (
        known_as("Databases", ["database"], {}) == "database" and known_as("db", [], {"db": "database"}) == "database"
    )
    assert slips("kuberentes", "kubernetes", 2) == 1 and slips("one", "three", 1) == 2


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("Ich möchte den Gartenzaun streichen. Ich frage mich, was ich für den Gartenzaun brauche.", "gartenzaun"),
        ("Je voudrais peindre la clôture du jardin. Qu'est-ce que je prends pour la clôture ?", "cloture"),
        ("The war museum is in the old war office.", "war"),
    ],
)
def test_small_words_of_the_language_that_is_spoken_make_no_tag(text: str, tag: str) -> None:
    """A turn in German or French gets no tag of `ich` or `je`, and `war`, a small word there, is one in English."""
    assert names(tagged([TurnText(text)])) == [[tag]]
