"""Names of the protocol as they were in the release before."""

from __future__ import annotations

import pytest

from vmstore.vm import protocol


@pytest.mark.parametrize(
    ("before", "now"),
    [
        *(("Leaf", "PromptPage"), ("Form", "PageForm"), ("Left", "OmittedPage"), ("Lowered", "LoweredPage")),
        *(("Line", "ContextLine"), ("Loaded", "LoadedPage"), ("Hit", "SearchHit"), ("Found", "SearchResults")),
        *(("Ran", "RunResult"), ("Session", "ManagedSession"), ("Denied", "DeniedFault")),
    ],
)
def test_a_name_of_the_last_release_warns(before: str, now: str) -> None:
    """A name of the release before is the class it was, and a warning says how that is called now."""
    with pytest.warns(DeprecationWarning, match=f"{before} is called {now}"):
        assert getattr(protocol, before) is getattr(protocol, now)
    assert before not in protocol.__all__


def test_a_name_that_never_was_is_refused() -> None:
    """A name that the protocol never had is an AttributeError, as in any module."""
    with pytest.raises(AttributeError, match="has no attribute 'Twig'"):
        _ = protocol.Twig
