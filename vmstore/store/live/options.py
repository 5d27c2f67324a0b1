"""Options of a live session: settings, instructions and tools, and callbacks."""

from __future__ import annotations

from typing import Any

from vmstore.live.recall.claim_finder import Callback as Finder
from vmstore.store.recall.fact_model import FactModel
from vmstore.store.recall.tag_model import TagModel
from vmstore.vm.compressors.callback import Callback as Compressor
from vmstore.vm.kernel.keywords import LiveSettings


class LiveOptions(LiveSettings, total=False):
    """The settings of a live session, its instructions, the schemas of its tools, and its callbacks.

    With `continues`, the name of an earlier session, a new one goes on from it: with a link to it, its user, and
    copies of its last summaries and of its newest claims. `compressor` shortens pages, `finder` finds claims,
    `fact_model` facts, where the setting `facts` is on, and `tagger` tags, where `tags` is `asked`; each is asked for
    at most `callback_timeout_s`, works through this handle alone, and what it answers is logged.
    """

    continues: str | None
    system: str | None
    tools: list[Any] | None
    compressor: Compressor | None
    finder: Finder | None
    fact_model: FactModel | None
    tagger: TagModel | None
    callback_timeout_s: float
