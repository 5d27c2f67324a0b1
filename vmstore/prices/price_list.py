"""A list of what models cost, and what a call cost by it where nobody reported that.

Prices are in dollars for a million tokens. Which model a price is for is a pattern of the shell's kind; the first that
fits holds. A call is estimated only where every price it needs is known.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from vmstore.errors import InputError

MILLION = 1_000_000
PRICE_MAX = 1_000_000  # dollars for a million tokens
HOSTS = ("openai/", "anthropic/", "google/", "gemini/", "models/")  # what stands before the name of a model


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Price of a model, in dollars for a million tokens: input, read from a cache, written to it, and output.

    Without `written` what is written costs as input does. Without `cached` a call that read from a cache has no
    estimate, nor has one with more than `input_max` tokens of input: other prices hold there. `known` is the month the
    price was known to hold in, `source` who published it.
    """

    model: str
    input: float
    output: float
    cached: float | None = None
    written: float | None = None
    input_max: int | None = None
    known: str | None = None
    source: str | None = None


class _PriceFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A list as a file has it."""

    models: tuple[Price, ...]
    dated: str | None = None


class PriceList:
    """Prices by model; `dated` is the month of the latest."""

    def __init__(self, prices: Iterable[Price] = (), *, dated: str | None = None) -> None:
        self.prices = tuple(prices)
        self.dated = dated
        self.of = lru_cache(maxsize=1_000)(self._of)
        for price in self.prices:
            _check(price)

    @classmethod
    def published(cls) -> PriceList:
        """The prices that ship with vmstore."""
        text = Path(__file__).with_name("published.json").read_bytes()
        return cls._of_file(msgspec.json.decode(text, type=_PriceFile))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PriceList:
        """A file's prices, and after them the published ones for other models; InputError says what is wrong in it."""
        try:
            own = msgspec.json.decode(Path(path).read_bytes(), type=_PriceFile)
        except OSError as error:
            raise InputError(
                f"{path}: {error.strerror}; give a JSON file of prices, see specs/prices.md", code="unreadable-file"
            ) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is no list of prices: {error}; see specs/prices.md", code="not-prices") from error
        published = cls.published()
        return cls((*own.models, *published.prices), dated=own.dated or published.dated)

    @classmethod
    def _of_file(cls, listed: _PriceFile) -> PriceList:
        return cls(listed.models, dated=listed.dated)

    def _of(self, model: str) -> Price | None:
        """The price of a model, None of one that is not listed."""
        name = model.lower()
        for host in HOSTS:
            name = name.removeprefix(host)
        return next((price for price in self.prices if fnmatchcase(name, price.model.lower())), None)

    def estimate(
        self,
        model: str | None,
        tokens_in: int | None,
        tokens_cached: int | None,
        tokens_written: int | None,
        tokens_out: int | None,
    ) -> float | None:
        """Cost of a call in dollars by its provider's token counts; None where a count or a price is not known."""
        price = None if model is None else self.of(model)
        if price is None or tokens_in is None or tokens_out is None:
            return None
        cached, written = tokens_cached or 0, tokens_written or 0
        if (cached and price.cached is None) or (price.input_max is not None and tokens_in > price.input_max):
            return None
        plain = max(tokens_in - cached - written, 0)
        dollars = plain * price.input + tokens_out * price.output + cached * (price.cached or 0)
        dollars += written * (price.input if price.written is None else price.written)
        return dollars / MILLION


def added(costs: Iterable[float | None]) -> float | None:
    """The sum of the costs that are known; None where none is."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


def price_list_of(given: Any) -> PriceList:
    """Reads prices that were handed in: a list, the path of a file, or nothing for the published ones."""
    if given is None:
        return published()
    if isinstance(given, PriceList):
        return given
    if isinstance(given, str | os.PathLike):
        return PriceList.read(given)
    raise InputError(
        f"{type(given).__name__} is no list of prices; give a vmstore.PriceList or the path of a JSON file",
        code="not-prices",
    )


@lru_cache(maxsize=1)
def published() -> PriceList:
    """The prices that ship with vmstore, read once."""
    return PriceList.published()


def _check(price: Price) -> None:
    for name in ("input", "output", "cached", "written"):
        value = getattr(price, name)
        if value is not None and not 0 <= value <= PRICE_MAX:
            raise InputError(
                f"the {name} price of {price.model!r} is {value}; a price is from 0 to {PRICE_MAX:,} dollars",
                code="not-prices",
            )
