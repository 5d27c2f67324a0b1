"""The pages that a browser sees before the debugger's: where a token is given, and which namespaces there are."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from urllib.parse import quote

STYLE = """body { font: 16px/1.5 system-ui, sans-serif; max-width: 32rem; margin: 4rem auto; padding: 0 1rem }
:root { color-scheme: light dark }
input { font: inherit; width: 100%; box-sizing: border-box; padding: .4rem .6rem; margin: .5rem 0 1rem }
button { font: inherit; padding: .3rem 1rem }
li { margin: .4rem 0 }
"""
LOGIN = """<form method="post" action="/login" autocomplete="off">
<label for="token">Token</label>
<input id="token" name="token" type="password" required autofocus>
<button>Open</button>
</form>
<p>{said}</p>"""

LEAVE = '<form method="post" action="/logout"><button>Leave {name}</button></form>'


def login_page(said: str = "") -> str:
    """The page that asks for a token; `said` is what was wrong with the last one."""
    return _page("vmstore", LOGIN.format(said=escape(said)))


def namespaces_page(names: Iterable[str], bearer: str | None) -> str:
    """The page that lists namespaces; `bearer` is the name of the token, None where none is needed."""
    links = "\n".join(f'<li><a href="/n/{quote(name, safe="")}/">{escape(name)}</a></li>' for name in names)
    leave = "" if bearer is None else LEAVE.format(name=escape(bearer))
    return _page("namespaces", f"<ul>\n{links or '<li>no namespace yet</li>'}\n</ul>\n{leave}")


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title} · vmstore</title>\n'
        f'<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/style.css">\n'
        f"<h1>{title}</h1>\n{body}\n</html>\n"
    )
