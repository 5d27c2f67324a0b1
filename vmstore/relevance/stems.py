"""Stems: words without their endings, by the algorithms of Snowball.

`snowballstemmer` is plain Python and always there. PyStemmer, which the extra `search` brings, is the same algorithms
compiled; it is taken where it is of the same release, so that the terms of a store are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import local

CACHED_MAX = 1 << 16

_CACHES: list[Callable[[], None]] = []  # what forgets the words of each stemmer in Python

Stem = Callable[[str], str]
MakeStem = Callable[[str], Stem]


@cache
def stemmer(algorithm: str) -> Stem:
    """What takes off the endings of an algorithm's language, for any thread; without an algorithm nothing is taken."""
    if not algorithm:
        return str
    if compiled():
        return for_all_threads(compiled_stemmer, algorithm)
    found = lru_cache(CACHED_MAX)(for_all_threads(plain_stemmer, algorithm))
    _CACHES.append(found.cache_clear)
    return found


def forget_stems() -> None:
    """Forgets the words whose endings were taken off in Python."""
    for clear in _CACHES:
        clear()


def plain_stemmer(algorithm: str) -> Stem:
    """The algorithm in Python: its own module, since the package's door gives PyStemmer's of any release."""
    module = import_module(f"snowballstemmer.{algorithm}_stemmer")
    stem: Stem = getattr(module, f"{algorithm.title()}Stemmer")().stemWord
    return stem


def compiled_stemmer(algorithm: str) -> Stem:
    """The algorithm compiled, where it is; it keeps no words."""
    stem: Stem = import_module("Stemmer").Stemmer(algorithm, 0).stemWord
    return stem


def compiled() -> bool:
    """Whether PyStemmer is installed, and of the same release."""
    try:
        release = _release(import_module("Stemmer").version())
    except ImportError:
        return False
    return release == _release(snowball_version())


@cache
def snowball_version() -> str:
    """The version of the algorithms."""
    spec = find_spec("snowballstemmer")
    folder = None if spec is None or spec.origin is None else Path(spec.origin).parents[1]
    beside = [] if folder is None else list(folder.glob("snowballstemmer-*.dist-info"))
    if len(beside) == 1:  # as an installer names it; to have it looked up loads a parser of mail
        return beside[0].stem.partition("-")[2]
    version: str = import_module("importlib.metadata").version("snowballstemmer")
    return version


def _release(version: str) -> list[str]:
    """What two versions with the same algorithms have in common."""
    return version.split(".")[:2]


class _OfThread(local):
    """A stemmer for each thread: it works in a place of its own, which several would share."""

    def __init__(self, make: MakeStem, algorithm: str) -> None:
        self.stem = make(algorithm)


def for_all_threads(make: MakeStem, algorithm: str) -> Stem:
    """A stemmer that any thread may use."""
    own = _OfThread(make, algorithm)

    def stem(word: str) -> str:
        return own.stem(word)

    return stem
