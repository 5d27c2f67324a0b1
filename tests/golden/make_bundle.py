"""Writes the golden bundle of this folder: `PYTHONPATH=. python tests/golden/make_bundle.py`.

Once the format is frozen the file is never edited again.
"""

from __future__ import annotations

from tests.transfer.moved import bundle, filled_in_memory
from tests.transfer.test_bundle import GOLDEN

if __name__ == "__main__":
    GOLDEN.write_bytes(bundle(filled_in_memory()))
