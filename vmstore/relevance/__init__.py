"""Relevance: what texts are found by, what a person asks for, and how well the one answers the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vmstore.relevance.excerpt import Excerpt as Excerpt
    from vmstore.relevance.query import WordQuery as WordQuery
    from vmstore.relevance.texts import Texts as Texts
