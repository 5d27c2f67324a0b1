"""The work view: tools that ran and which pages they worked on, guards that spoke up, skills that were learned."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import ClassVar

from vmstore.core.address import page_name
from vmstore.core.text.json_text import loads
from vmstore.core.work.trace import GuardTrip, Promote, ToolRun
from vmstore.views.projector import PlacedMutation, Projector


class WorkProjector(Projector):
    """Rows of what is logged beside calls; the last one of a call, and of a skill's page, holds as of a moment.

    Pages are JSON lists of names. A fold that meets an erasure starts over, and holds no row of a guard or skill
    whose name is erased; of a tool that ran only the words go.
    """

    name = "work"
    schema: ClassVar = {
        "runs": """session INTEGER, position INTEGER, call INTEGER, result INTEGER, outcome INTEGER, duration INTEGER,
            error TEXT, reasoning INTEGER, read TEXT, created TEXT, modified TEXT, tags TEXT, at INTEGER,
            PRIMARY KEY(session, position)""",
        "guards": """session INTEGER, position INTEGER, type INTEGER, tool TEXT, count INTEGER, calls TEXT,
            call INTEGER, warning INTEGER, turn INTEGER, at INTEGER, PRIMARY KEY(session, position)""",
        "skills": """session INTEGER, position INTEGER, page INTEGER, skill TEXT, count INTEGER, tries INTEGER,
            calls TEXT, turn INTEGER, at INTEGER, PRIMARY KEY(session, position)""",
    }
    indexes = ("CREATE INDEX runs_call ON runs(session, call)",)

    def on_tool_call(self, placed: PlacedMutation, m: ToolRun) -> None:
        """Adds a row; what was erased of it is null."""
        tags = placed.content(m.tags)
        row = (placed.session, placed.position, m.call, m.result or None, m.outcome, m.duration)
        effects = (names(m.read), names(m.created), names(m.modified))
        said = None if tags is None else json.dumps(loads(tags))
        self.rows["runs"].append((*row, placed.text(m.error), m.reasoning or None, *effects, said, placed.at))

    def on_guard(self, placed: PlacedMutation, m: GuardTrip) -> None:
        """Adds a row; none where the name of the tool was erased."""
        tool = placed.text(m.tool)
        if tool is not None:
            last = m.calls[-1] if m.calls else None
            counted = (m.type, tool, m.count, names(m.calls), last, m.warning or None)
            self.rows["guards"].append((placed.session, placed.position, *counted, placed.turn, placed.at))

    def on_promote(self, placed: PlacedMutation, m: Promote) -> None:
        """Adds a row; none where the skill's name was erased."""
        skill = placed.text(m.skill)
        if skill is not None:
            counted = (m.page, skill, m.count, m.tries, names(m.calls))
            self.rows["skills"].append((placed.session, placed.position, *counted, placed.turn, placed.at))


def names(pages: Iterable[int]) -> str:
    """Pages as a JSON list of their names."""
    return json.dumps([page_name(page) for page in pages])
