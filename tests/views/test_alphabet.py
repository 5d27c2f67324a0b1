"""Every view against the model over stories of the whole alphabet, which no recorder would write."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings

from tests.against_model import store_answers_as_the_model
from tests.engine.author import STORIES, Author, Deed, engine_over
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.engine.engine import Engine
from vmstore.errors import VmstoreError
from vmstore.namespace.namespace import Namespace
from vmstore.store.store import Store
from vmstore.views.projectors.decisions import DecisionsProjector
from vmstore.views.projectors.lineage import LineageProjector
from vmstore.views.projectors.messages import MessagesProjector
from vmstore.views.projectors.pages import PagesProjector
from vmstore.views.projectors.residency import ResidencyProjector
from vmstore.views.projectors.tags import TagsProjector

ROUND = [
    Deed("say", 0, 1, 2, 3),
    Deed("turn"),
    Deed("say", 3, 2, 1, 2),
    Deed("pack", 1, 2, 3, 0),
    Deed("reply", 1, 1, 5, 6),
    Deed("reply", 1, 2, 7, 8),
    Deed("configure", 5),
    Deed("compress", 0, 1, 2, 3),
    Deed("update", 1, 7, 8),
    Deed("link", 0, 1, 2, 3),
    Deed("link", 1, 2, 2),
    Deed("link", 2, 0, 2),
    Deed("hand", 0, 1, 3, 2),
    Deed("hand", 2, 1, 0, 3),
    Deed("hand", 0, 0, 1),
    Deed("hand", 0, 0, 2),
    Deed("annotate", 1, 3, 2, 1),
    Deed("annotate", 0, 1, 1, 2),
    Deed("annotate", 1, 2, 7, 0),
    Deed("settings", 0, 0, 9, 0),
    Deed("settings", 1, 1, 2, 1),
    Deed("settings", 2, 2, 7, 9),
    Deed("use", 1, 0, 3, 1),
    Deed("use", 0, 1, 1, 1),
    Deed("use", 1, 1, 2, 0),
    Deed("use", 2, 1, 5, 0),
    Deed("evict", 0, 1, 0, 9),
    Deed("evict", 1, 2, 3, 4),
    Deed("pin", 1, 0, 1, 0),
    Deed("pin", 0, 3, 1, 0),
    Deed("fault", 0, 0, 1, 3),
    Deed("fault", 1, 5, 2, 2),
    Deed("fault", 1, 0, 0, 1),
    Deed("fault", 2, 4, 2, 5),
    Deed("pin", 1, 0, 0, 1),
    Deed("pack", 2, 1, 4, 1),
    Deed("embed", 1, 1, 2, 1),
    Deed("fact", 0, 1, 1, 2),
    Deed("fact", 1, 2, 1, 3),
    Deed("tag", 1, 4, 1, 1),
    Deed("tag", 0, 3, 1, 1),
    Deed("alias", 4, 3, 1),
    Deed("depth", 3, 2),
    Deed("tool_call", 1, 0, 1, 1),
    Deed("guard", 1, 1, 0, 1),
    Deed("promote", 1, 1, 2, 1),
    Deed("mark", 0, 1, 2, 3),
]
FORKS = [*ROUND, Deed("fork", 2, 9), *ROUND, Deed("switch", 0), *ROUND, Deed("fork", 5, 1), *ROUND]
STORY = [*FORKS, Deed("hand", 1, 0, 1)]


def store_over(engine: Engine) -> Store:
    """A store that asks the views of an engine."""
    fields: dict[str, Any] = {"place": None, "readonly": False, "clock": ManualClock(), "ids": SeededIds()}
    return Store(Namespace(engine.log, engine.projection, **fields))


def written(story: list[Deed]) -> Store:
    """A story as it lies in a store."""
    author = Author(engine_over())
    author.write(story)
    return store_over(author.engine)


@settings(max_examples=max(1, settings.default.max_examples // 2))
@given(STORIES)
@example(STORY)
def test_views_follow_the_whole_alphabet(story: list[Deed]) -> None:
    """Whatever the rules let into the log, each view answers about it as the model does."""
    store_answers_as_the_model(written(story))


SKIPPED = [
    *[
        (ResidencyProjector, "on_pack"),
        (LineageProjector, "on_link"),
        (LineageProjector, "on_unlink"),
        (LineageProjector, "on_flush"),
        (MessagesProjector, "on_message"),
        (PagesProjector, "on_annotate"),
        (PagesProjector, "on_tag"),
        (TagsProjector, "on_alias"),
        (TagsProjector, "on_depth"),
    ],
    *[(DecisionsProjector, f"on_{kind}") for kind in ("settings", "reference", "fault_in", "fault_denied", "prefetch")],
    *[(DecisionsProjector, f"on_{kind}") for kind in ("evict", "pin", "unpin", "cite", "recall", "delete")],
    (PagesProjector, "on_delete"),
    *[(DecisionsProjector, f"on_{kind}") for kind in ("search", "segment", "pressure")],
]


@pytest.mark.parametrize(("view", "handler"), SKIPPED)
def test_a_view_that_skips_a_handler_is_caught(view: type, handler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: a view that folds nothing of one kind answers otherwise."""
    store = written(STORY)
    monkeypatch.setattr(view, handler, lambda *_: None)
    store.admin.rebuild()
    with pytest.raises((AssertionError, VmstoreError)):
        store_answers_as_the_model(store)
