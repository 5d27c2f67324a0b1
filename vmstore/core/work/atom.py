"""The kinds of atoms: pages that say one thing, as a task is worked on."""

from __future__ import annotations

from vmstore.core.page import WordEnum

ATOM = "atom:"
"""What the tag of a page begins with that was stated as an atom of a kind."""


class AtomKind(WordEnum):
    """The kind of an atom: what it says of the work."""

    FACT = 0  # something that holds
    DECISION = 1  # what was chosen
    CONSTRAINT = 2  # what must be kept to
    QUESTION = 3  # what is not known yet
    INSIGHT = 4  # what was learned: warnings and skills too
