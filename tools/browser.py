"""Finds a Chromium for the tests of the page, or installs Debian's: `python3 tools/browser.py`.

Prints where it is. Installs it by apt-get where it may (as root, on Debian or its kin); elsewhere it
says what to install. It never downloads a browser from anywhere else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL = ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]


def browser() -> str | None:
    """Where a Chromium is; None where there is none."""
    other_browser = os.environ.get("VMSTORE_CHROMIUM")
    return other_browser or next((actual for name in NAMES if (actual := shutil.which(name))), None)


def main() -> int:
    """Prints where a Chromium is, after installing one where that is needed and allowed."""
    actual_browser = browser()
    if actual_browser is None:
        if shutil.which("apt-get") is None or os.geteuid() != 0:
            print(
                "browser: there is no Chromium, and it is installed only as root by apt-get; install it "
                "(Debian: sudo apt-get install chromium), or name one: VMSTORE_CHROMIUM=/path/to/chromium",
                file=sys.stderr,
            )
            return 1
        for command in (["apt-get", "update"], INSTALL):
            if done := subprocess.run(command, check=False).returncode:
                print(f"browser: `{' '.join(command)}` failed; see what it printed", file=sys.stderr)
                return done
        actual_browser = browser()
    if actual_browser is None:
        print("browser: apt-get installed no Chromium that is on PATH; name it: VMSTORE_CHROMIUM=…", file=sys.stderr)
        return 1
    print(actual_browser)
    return 0


if __name__ == "__main__":
    sys.exit(main())
