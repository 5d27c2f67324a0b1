"""The runner of pages finds what is wrong: each kind of mistake is planted in a page that was right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.prose import WrongError, broken_links, run_page

GOOD = """
# A page

```json told.json
{"a": [1, 2]}
```

```python
import json
from pathlib import Path
told = json.loads(Path("told.json").read_text())
print(told["a"], "more")
```

```text
[1, 2] …
```

```console
$ vmstore info nowhere
vmstore: there is no store at nowhere; …
```

```
a drawing
```
"""
WRONG = {
    "an assertion": ('print(told["a"], "more")', "assert not told", "raises AssertionError"),
    "an error": ('told["a"]', 'told["b"]', "KeyError"),
    "an output": ("[1, 2] …", "[1, 3] …", "the block before it prints"),
    "an output not shown": ("```text\n[1, 2] …\n```", "", "does not show"),
    "an output of nothing": ('print(told["a"], "more")', "told", "nothing before it prints"),
    "a command": ("no store at nowhere", "no store at all", "and prints"),
    "another command": ("$ vmstore", "$ rm", "only vmstore, vmql are run here"),
    "JSON": ('{"a": [1, 2]}', '{"a": [1, 2}', "is not JSON"),
    "a kind of block": ("```json told.json", "```yaml", "nobody runs"),
    "a session as a drawing": ("a drawing", "$ vmstore info", "looks like a session"),
    "an open block": ("a drawing\n```", "a drawing", "never closed"),
    "a tool": ("```\na drawing", "```sh\npython3 tools/nothing.py", "not there"),
    "an extra": ("```\na drawing", "```sh\npip install -e '.[nothing]'", "names the extra"),
}


def test_a_right_page_passes(tmp_path: Path) -> None:
    """A page that says what happens passes, each of its blocks run."""
    page = tmp_path / "page.md"
    page.write_text(GOOD)
    assert run_page(page, tmp_path) == 4


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_page_fails(name: str, tmp_path: Path) -> None:
    """A page that says anything else fails, by its name and line."""
    right, mistake, why = WRONG[name]
    assert right in GOOD
    page = tmp_path / "page.md"
    page.write_text(GOOD.replace(right, mistake, 1))
    with pytest.raises(WrongError, match=re.escape(why)) as caught:
        run_page(page, tmp_path)
    assert f"{page}:" in str(caught.value)


def test_a_link_to_nothing_is_found(tmp_path: Path) -> None:
    """Missing files and missing headings are named, others are not."""
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n[a](page.md#here) [b](#there) [c](gone.md) [d](https://example.org/x)\n```\n[e](no.md)\n```\n"
    )
    assert broken_links(page) == ["#there", "gone.md"]
