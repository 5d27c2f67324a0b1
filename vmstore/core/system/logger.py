"""The logger `vmstore`, imported when there is something to report."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging


def notices() -> logging.Logger:
    """The logger; `logging` is not loaded before, because most processes have nothing to say."""
    import logging

    return logging.getLogger("vmstore")
