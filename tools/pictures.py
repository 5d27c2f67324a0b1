"""Takes the README's pictures of the debugger: `.venv/bin/python tools/pictures.py` (after `tools/check.py`).

Serves the session that ships, opens it in a headless Chromium at its compaction, and writes
`specs/pictures/debug-light.png` and `debug-dark.png`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from browser import browser
from serving import chromium, served

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "specs" / "pictures"
SHOWN = "#session=planning-220&call=366&pane=taken"  # its compaction, and what that took away
WIDTH, HEIGHT = 1440, 900
ABOVE = 330  # pixels of the conversation before the compaction
COLOURS = 128  # of a picture: a quarter of its size


@contextmanager
def shown() -> Iterator[str]:
    """The address of a server of the session, for as long as it is needed."""
    import vmstore
    from vmstore.shell.demo.demo import SHIPPED

    with tempfile.TemporaryDirectory(prefix="vmstore-pictures-") as folder:
        path = Path(folder) / "agent.vms"
        with vmstore.open(path) as store:
            store.import_file(SHIPPED)
        with served(path) as url:
            yield url


def main() -> int:
    """Takes both pictures."""
    actual_browser = browser()
    if actual_browser is None:
        print("pictures: there is no Chromium; python3 tools/browser.py finds or installs one", file=sys.stderr)
        return 1
    from PIL import Image

    PICTURES.mkdir(exist_ok=True)
    with shown() as url, chromium(actual_browser) as headless:
        for scheme in ("light", "dark"):
            page = headless.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
            page.goto(url.partition("#")[0] + SHOWN)
            page.get_by_text("Uncompact").wait_for()
            page.locator(".break, .here-line").first.wait_for()
            page.mouse.move(WIDTH / 4, HEIGHT / 2)
            page.mouse.wheel(0, -ABOVE)
            page.wait_for_load_state("networkidle")
            file = PICTURES / f"debug-{scheme}.png"
            page.screenshot(path=file)
            Image.open(file).convert("RGB").quantize(COLOURS).save(file, optimize=True)
            print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
