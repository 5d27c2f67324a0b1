"""Caches of what texts of statements mean: an erasure empties them, since a statement may name what it erased."""

from __future__ import annotations

from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from typing import TypeVar

T = TypeVar("T")
_MADE: list[_lru_cache_wrapper[object]] = []


def cached(size: int) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """Keeps the last answers of a function of texts, until `forget`."""

    def wrap(function: Callable[..., T]) -> _lru_cache_wrapper[T]:
        made = lru_cache(size)(function)
        _MADE.append(made)
        return made

    return wrap


def forget() -> None:
    """Empties every cache of texts."""
    for made in _MADE:
        made.cache_clear()
