"""The facts view: what claim pages state, in columns that can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from vmstore.views.projector import PlacedMutation, Projector

if TYPE_CHECKING:
    from vmstore.core.facts import Fact


class FactsProjector(Projector):
    """One row a fact as it was stated; which value ended which is worked out as of the moment that is asked.

    `begins` is since when it holds, else when it was stated, or its end where that is earlier. A fold that meets an
    erasure starts over, and holds no row of a fact whose words are erased.
    """

    name = "facts"
    schema: ClassVar = {
        "facts": """session INTEGER, position INTEGER, page INTEGER, subject TEXT, verb TEXT, what TEXT,
            attribute TEXT, type INTEGER, status INTEGER, one INTEGER, begins INTEGER, valid_from INTEGER,
            valid_to INTEGER, precision INTEGER, confidence INTEGER, strength INTEGER, method TEXT, turn INTEGER,
            at INTEGER, PRIMARY KEY(session, position)"""
    }
    indexes = ("CREATE INDEX facts_page ON facts(session, page)",)

    def on_fact(self, placed: PlacedMutation, m: Fact) -> None:
        """Adds a row; none where what it says was erased."""
        if any(map(placed.erased, (m.subject, m.verb, m.what))):
            return
        subject, verb, what, method = map(placed.text, (m.subject, m.verb, m.what, m.method))
        attribute = None if m.attribute is None else placed.text(m.attribute)
        stated_by = placed.at if m.valid_to is None else min(placed.at, m.valid_to)  # what is over held until then
        begins = stated_by if m.valid_from is None else m.valid_from
        stated = (m.type, m.status, m.one and attribute is not None, begins, m.valid_from, m.valid_to, m.precision)
        weighed = (m.confidence, m.strength, method, placed.turn, placed.at)
        row = (placed.session, placed.position, m.page, subject, verb, what, attribute, *stated, *weighed)
        self.rows["facts"].append(row)
