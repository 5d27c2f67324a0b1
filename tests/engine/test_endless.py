"""A log whose pages changed places gives rows again: that ends with a problem, not in an endless walk."""

from __future__ import annotations

import apsw

from vmstore.engine.verify.verify import verify
from vmstore.log.commit import Commit, genesis
from vmstore.log.memory import MemoryLog
from vmstore.testing.log_contract import CommitSpec, chain
from vmstore.views.projection import Projection


class Circle(MemoryLog):
    """A log whose end leads back to its beginning."""

    def tail(self, after: int, limit: int) -> list[Commit]:
        """What comes after, and at the end the first commits again."""
        return super().tail(after, limit) or super().tail(0, limit)


def test_a_log_that_begins_again_is_a_problem() -> None:
    """Verify names the commit that was given a second time, and ends."""
    log = Circle()
    log.append(chain([CommitSpec(), CommitSpec()], genesis(b"one")), 0, 0)
    _, problems = verify(log, Projection(log, apsw.Connection(":memory:")))
    assert any(problem.kind == "log" and "commit 2 after 2" in problem.what for problem in problems)
