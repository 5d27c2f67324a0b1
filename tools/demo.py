"""Shows what vmstore does, on a machine that has only Python: `python3 tools/demo.py`.

Makes `.venv`, installs vmstore with everything a user can use, and runs `vmstore demo`,
which is given all further arguments.
"""

from __future__ import annotations

import os
from typing import Sequence  # noqa: UP035  Python 3.8 has no other

from bootstrap import RefusedError, entry, ready


def main(arguments: Sequence[str]) -> int:
    """Becomes `vmstore demo`."""
    command = ready("all") / "vmstore"
    try:
        os.execv(command, [str(command), "demo", *arguments])
    except OSError as error:
        raise RefusedError(f"cannot start {command}: {error.strerror}; remove .venv and run this again") from None


if __name__ == "__main__":
    entry(main)
