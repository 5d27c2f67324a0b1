"""What a word on the command line of `vmql` could become: for the scripts that `vmstore completion` prints."""

from __future__ import annotations

import argparse

from vmstore.shell.open_store import open_to_ask
from vmstore.shell.vmql.options import OPTIONS, read


def candidates(before: list[str], word: str) -> list[str]:
    """Options where one begins, sessions where one is named; nothing where it is a file, or for you to say."""
    known = {name: option for option in OPTIONS for name in option.names}
    valued = known.get(before[-1]) if before else None
    found: list[str] = []
    if valued is not None and valued.takes:
        found = _sessions(before[:-1]) if "--session" in valued.names else []
    elif word.startswith("-"):
        found = [name for name in known if name.startswith("--")]
    return [name for name in found if name.startswith(word)]


def _sessions(before: list[str]) -> list[str]:
    asked = read(before)
    options = {"namespace": asked.last("--namespace"), "store_key": asked.last("--store-key")}
    with open_to_ask(argparse.Namespace(store=asked.store, **options)) as store:
        return [info.session for info in store.sessions()]
