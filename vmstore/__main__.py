"""`python -m vmstore` is the `vmstore` command."""

from __future__ import annotations

import sys

from vmstore.shell.main import main

if __name__ == "__main__":
    sys.exit(main())
