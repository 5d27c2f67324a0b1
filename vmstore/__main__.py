"""`python -m vmstore` is the `vmstore` command."""

from __future__ import annotations

import sys

from vmstore.shell.main import run

if __name__ == "__main__":
    sys.exit(run())
