"""The features by name, and the measures they are taken by; one set for the scorer with numpy and the one without."""

from __future__ import annotations

from typing import Final

FEATURES: Final = {
    "own": "BM25 of the asked words in the text, as a share of what they weigh",
    "own_best": "the same, against the best of the answer",
    "cover": "the share of the asked words that the text has, by weight",
    "share": "the share of the asked words that the text has, each counted alike",
    "near": "the asked words in the text or near it, less the further; other spellings count as far as they are alike",
    "near_exact": "the same, of the asked words as they are spelled",
    "near_best": "near, against the best of the answer",
    "window_cover": "the share of the asked words that the window has, by weight",
    "around": "BM25 of the asked words in the text and the four before and after",
    "around_cover": "the share of the asked words that those have, by weight",
    "language": "how much likelier the asked words are in the text, its window and around it than anywhere",
    "language_best": "the same, against the best of the answer",
    "follows": "whether the text before ends with a question",
    "speaker": "whether its speaker is named in the question",
    "tool": "whether its tool is named in the question",
    "date_near": "how near it was written to a time that the question names; before it counts as further",
    "time_asked": "whether it names a time, where a time is asked for",
    "amount_asked": "whether it has a number, where an amount is asked for",
    "name_asked": "whether it has a name, where one is asked for",
    "title_asked": "whether it has something in quotes, where a title or wording is asked for",
    "error_asked": "whether it tells of an error, where one is asked for",
    "length": "how long it is, against the mean, as a logarithm",
    "first": "whether a session, or what follows a long pause, begins with it",
    "asks": "whether it asks something",
    "self": "whether its speaker speaks of themself",
    "code": "whether there is code in it",
    "user": "whether the user wrote it",
    "assistant": "whether the model did",
    "result": "whether a tool did",
    "agent": "whether a tool wrote any of it, the four before and the four after",
    "own_agent": "own, where one did",
    "own_best_agent": "own_best, where one did",
    "near_agent": "near, where one did",
    "call": "whether it is a call of a tool",
    "user_asked": "whether the user wrote it, where what they said or wanted is asked for",
    "end_asked": "how far on in its session it stands, where what was last is asked for",
    "session_cover": "the share of the asked words that its session has, by weight, where several are searched",
    "session_speaker": "whether one whom the question names speaks in its session, where several are searched",
    "speaker_said": "whether it says the name of a speaker whom the question names, where several are searched",
}
"""Every feature by name, and what it says; their order is that of the columns of `features`."""

AGENT: Final = ("agent", "own_agent", "own_best_agent", "near_agent")
"""What differs where an agent works with tools: a text there says less of the ones beside it than in a conversation."""

AMONG: Final = ("session_cover", "session_speaker", "speaker_said")
"""What tells sessions from each other; in one session alone they are nothing."""

K1: Final = 1.2
B: Final = 0.75
NEAR: Final = 4  # rows before and after that can stand in a window
SPAN: Final = 2 * NEAR + 1
NEARNESS: Final = (0.15, 0.25, 0.4, 0.5, 1.0, 0.35, 0.25, 0.15, 0.1)
NEARNESS_ASKED: Final = 0.85  # of the row before, where that ends with a question
WINDOW: Final = (2.0, 4.0, 1.0)
WINDOW_ASKED: Final = 3.0
MIX: Final = (0.3, 0.4, 0.2, 0.1)  # of the text, its window, those around and all texts, in the language they speak
SHORT: Final = 6  # terms: a shorter text is no surer of its words
WORK_SHARE: Final = 0.5  # of the candidates beside tools or code, from which on a question is about work
PAUSE_US: Final = 4 * 3_600 * 1_000_000
DAY_US: Final = 86_400 * 1_000_000
EARLY: Final = 1.5  # what was written before a time is further from it than what was written after
NEAR_DAYS: Final = 7.0
DATED_US: Final = 7 * DAY_US  # after a time that is named, what happened then is told of
SPREAD: Final = (
    0.1,
    0.15,
    0.3,
    0.75,
    1.0,
    0.5,
    0.3,
    0.15,
    0.1,
)  # of a row's words, on those from four after to four before
LIKE: Final = 0.5  # of what a word weighs, for another spelling of it
TINY: Final = 1e-12
