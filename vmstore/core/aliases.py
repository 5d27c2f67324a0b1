"""Public names as they were: each works for one release, warns once and says what to write instead."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

_warned: set[str] = set()


def warn_once(old: str, new: str, stacklevel: int = 2) -> None:
    """Warns of an old name where nobody was warned of it in this process; counted from who calls this."""
    if old not in _warned:
        warnings.warn(f"{old} is now {new}; the old name goes in the next release", DeprecationWarning, stacklevel + 1)
        _warned.add(old)


class Aliased:
    """Attributes under their old names: the table says where below the object each is now.

    A name in the table may have another beside it, after a `|`, which is what the warning says to write.
    """

    _aliases: ClassVar[Mapping[str, str]] = {}

    def _lacking(self, name: str) -> str:
        """The error text for an attribute that does not exist."""
        return f"{type(self).__name__!r} object has no attribute {name!r}"

    if not TYPE_CHECKING:  # a checker is to say that an old name is gone

        def __getattr__(self, name: str) -> Any:
            """Finds what an old name is now; asked for only where no attribute has the name."""
            if (new_name := type(self)._aliases.get(name)) is None:
                raise AttributeError(self._lacking(name))
            path, _, written = new_name.partition("|")
            owner = next(base for base in type(self).__mro__ if "_aliases" in vars(base)).__name__
            warn_once(f"{owner}.{name}", written or f"{owner}.{path}")
            return attrgetter(path)(self)


class FormerMethod:
    """A part that was a method of its owner's: `memory.facts()` is `memory.facts.all()` for one release."""

    _former: ClassVar[str] = ""

    if not TYPE_CHECKING:  # a checker is to say that a part is not called

        def __call__(self, *arguments: Any, **named: Any) -> Any:
            """All that the part holds, as the method gave it."""
            warn_once(f"{self._former}()", f"{self._former}.all()")
            return self.all(*arguments, **named)


def old_keywords(**table: str) -> Callable[[F], F]:
    """Lets a function be called by the old names of its keywords: `old_keywords(at="at_us")`."""

    def decorate(function: F) -> F:
        """The function, callable by its old keywords too."""
        named = {old: new for old, new in table.items() if new in inspect.signature(function).parameters}

        def renamed(given: dict[str, Any]) -> dict[str, Any]:
            for old in named.keys() & given.keys():
                if named[old] in given:
                    raise TypeError(f"{function.__qualname__}() got {named[old]} twice: {old} is its old name")
                warn_once(f"{function.__qualname__}({old}=)", f"{named[old]}=", 3)
            return {named.get(word, word): value for word, value in given.items()}

        @wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            return function(*args, **(given if named.keys().isdisjoint(given) else renamed(given)))

        @wraps(function)
        async def call_async(*args: Any, **given: Any) -> Any:
            return await function(*args, **(given if named.keys().isdisjoint(given) else renamed(given)))

        if not named:
            return function
        return cast(F, call_async if inspect.iscoroutinefunction(function) else call)

    return decorate


def old_keywords_of_methods(**table: str) -> Callable[[C], C]:
    """The same for each public method of a class that has such a keyword."""

    def decorate(owner: C) -> C:
        """The class, its public methods callable by their old keywords too."""
        for name, method in list(vars(owner).items()):
            if not name.startswith("_") and inspect.isfunction(method):
                setattr(owner, name, old_keywords(**table)(method))
        return owner

    return decorate
