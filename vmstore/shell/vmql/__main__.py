"""`python -m vmstore.shell.vmql` is the `vmql` command."""

from __future__ import annotations

import sys

from vmstore.shell.vmql.main import run

if __name__ == "__main__":
    sys.exit(run())
