"""One file to hand on: whole, safe to open whatever the session holds, and with nothing secret in it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import browser
import msgspec
import pytest

import vmstore
from tests.debug.conftest import Served
from tests.refusals import refused
from tests.replay.lives import live
from vmstore.debug import assets, export
from vmstore.debug.export_data import shared
from vmstore.debug.session_data import film
from vmstore.errors import InputError, StoreError
from vmstore.shell.demo.demo import SHIPPED
from vmstore.shell.main import main
from vmstore.store.store import Store

PASSWORD, KEY, MAIL = "tango-77-foxtrot", "ghp_" + "a1B2" * 9, "ada@lovelace.dev"
SCRIPT = "<script>window.ran = 1</script>"
IMAGES = "<img src=x onerror='window.ran = 2'><svg onload='window.ran = 3'>"
HOSTILE = f"</script>{SCRIPT}{IMAGES}</pre><!-- ]]> --></title></style>"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def talk(*contents: Any) -> dict[str, Any]:
    """A request of so many messages, the user's first."""
    listed = [{"role": ("user", "assistant")[at % 2], "content": content} for at, content in enumerate(contents)]
    return {"model": "m </script>", "messages": listed}


def data_in(content: bytes) -> dict[str, Any]:
    """The data in a file."""
    matches = re.findall(rb'<script type="application/octet-stream" id="vmstore-data">([^<]*)</script>', content)
    assert len(matches) == 1
    value: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(matches[0], validate=True)))
    return value


class Tags(HTMLParser):
    """Collects the tags of a document, and what stands in its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.within: dict[str, list[str]] = {"script": [], "style": []}
        self.open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.open = tag if tag in self.within else ""
        if self.open:
            self.within[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self.open = "" if tag == self.open else self.open

    def handle_data(self, data: str) -> None:
        if self.open:
            self.within[self.open][-1] += data


@pytest.fixture(scope="module")
def shipped() -> Store:
    """The session that ships with vmstore."""
    store = vmstore.memory_store()
    store.import_file(SHIPPED)
    return store


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A store whose one session holds secrets and tries to run scripts, in its name too."""
    path = tmp_path / "agent.vms"
    with vmstore.open(path) as store:
        fields = {"choices": [{"message": {"role": "assistant", "content": f"{PASSWORD} was wrong"}}]}
        name = f"s {HOSTILE} {MAIL}"
        store.record(name, talk(f"{HOSTILE} use {KEY} and write to {MAIL}"), fields)
        store.record(name, talk(f'login(password="{PASSWORD}") {HOSTILE}', "ok", "x" * 70_000 + f" {KEY}"))
    return path


def test_the_file_holds_the_film_and_every_text(shipped: Store) -> None:
    """Film, texts, contests and requests come back from the file as the store tells them."""
    session = shipped.session("planning-220")
    fields = data_in(export.exported(shipped, session, redact=False).content)
    assert fields["film"] == msgspec.to_builtins(film(shipped, session))
    for number in (1, 40, 366, 525):
        at = number - 1
        stays = fields["film"]["stays"]
        here = [n for n in range(len(stays["page"])) if stays["from"][n] <= at < stays["to"][n]]
        here.sort(key=stays["rank"].__getitem__)
        texts = [fields["texts"][str(stays["content"][n])]["text"] for n in here]
        contents = session.context(call=number).contents()
        wanted = [contents.get(page.page, b"").decode() for page in session.context(call=number).pages]
        assert texts == wanted
    assert not fields["redacted"]["redacted"]


def test_decisions_come_with_their_contests() -> None:
    """Every decision of a live session that VMQL tells a contest of has the same one in the file."""
    store = vmstore.memory_store()
    session = live(store, "s1", turns=8)
    made = data_in(export.exported(store, session).content)
    gone = {row["page"] for row in store.query("MUTATIONS page WHERE kind = evict").to_dicts()}
    compared = 0
    for page in sorted(gone)[:20]:
        for row in store.query(f"WHY NOT {page} IN CONTEXT").to_dicts()[1:]:
            if row["contest"] is not None and row["event"] in ("evict", "fault_in"):
                assert made["contests"][str(row["position"])] == row["contest"]
                compared += 1
    assert compared > 3


def test_nothing_secret_is_in_it(secret: Path, tmp_path: Path) -> None:
    """What is secret is nowhere in the file: in no text, name, hint or title, with or without what gave it away."""
    out = tmp_path / "shared.html"
    with vmstore.open(secret) as store:
        made = export.write(out, store, store.session(store.sessions()[0].session))
    whole = out.read_text() + json.dumps(data_in(out.read_bytes()))
    for hidden in (PASSWORD, KEY, MAIL):
        assert hidden not in whole
    assert "[PASSWORD 1] was wrong" in whole
    assert made.report.counts.keys() == {"password", "api_key", "email"}
    assert set(made.report.masked[0].where) <= {"names, hints and marks", "p4", "p7", "p11", "p15"} | {
        f"request of call {call}" for call in (1, 2)
    }
    page = Tags(out.read_text())
    assert f"redacted: {made.report.times} masked" in out.read_text()
    assert page.tags.count("details") == 1


def test_a_secret_at_the_cut_is_masked(secret: Path) -> None:
    """A long text is cut after it was masked, so that no half of a secret stands at its end."""
    with vmstore.open(secret) as store:
        name = store.sessions()[0].session
        start = "x" * (65_536 - 10)
        store.record(name, talk(f"{start} {KEY}"))
        fields = data_in(export.exported(store, store.session(name)).content)
    cut = [text for text in fields["texts"].values() if text["cut"]]
    assert cut and not any("ghp_" in text["text"] for text in cut)


def test_without_redaction_everything_is_there(secret: Path) -> None:
    """Where it is told not to, nothing is masked, and the file says so."""
    with vmstore.open(secret) as store:
        made = export.exported(store, store.session(store.sessions()[0].session), redact=False)
    text = json.dumps(data_in(made.content))
    assert all(case in text for case in (PASSWORD, KEY, MAIL))
    assert b"<summary>not redacted</summary>" in made.content
    assert made.report.masked == []


def test_who_worked_where_is_masked() -> None:
    """The names of home folders are masked, also in folders named after a path; that is no secret of a session."""
    where = r"/Users/ada/notes, /home/ada/x, C:\Users\Ada\y and --Users-ada-notes--; not /home/user/z, x.com/Users/4"
    with vmstore.memory_store() as store:
        store.record("s", talk(where))
        session = shared(store, store.session("s"))
        (text,) = (text.text for text in session.texts.values())
        hidden = where.replace("/ada", "/[USER 1]").replace("-ada-", "-[USER 1]-").replace("Ada", "[USER 2]")
        assert text == hidden
        assert set(session.redacted.counts) == {"user"}


def test_it_opens_at_a_place() -> None:
    """The file says where it opens: of a place what no text of the session can be in."""
    with vmstore.memory_store() as store:
        store.record("s", talk("hello"))
        place = "session=s&call=1&page=p4&pane=why&find=hello&show=<b>"
        assert data_in(export.exported(store, store.session("s"), place=place).content)["place"] == (
            "call=1&page=p4&pane=why"
        )


def test_images_are_left_out_where_nothing_can_be_masked() -> None:
    """An image is in the file only where nothing is masked; else neither it nor the messages that hold it are."""
    store = vmstore.memory_store()
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    store.record("s1", talk([{"type": "text", "text": "Look."}, image]))
    session = store.session("s1")
    masked, plain = (export.exported(store, session, redact=redact) for redact in (True, False))
    assert PIXEL not in json.dumps(data_in(masked.content)) and PIXEL in json.dumps(data_in(plain.content))
    assert (masked.report.unseen, plain.report.shown) == (1, 1)
    assert data_in(masked.content)["requests"] == {}


def test_nothing_in_a_session_is_taken_for_the_page(secret: Path) -> None:
    """Whatever a session holds, the file has the page's own elements alone, and its policy names their scripts."""
    with vmstore.open(secret) as store:
        name = store.sessions()[0].session
        hostile = Tags(export.exported(store, store.session(name), redact=False).content.decode())
        store.record("plain", talk("hello"))
        plain = Tags(export.exported(store, store.session("plain"), redact=False).content.decode())
    assert hostile.tags == plain.tags
    policy = next(value for name, value in hostile.attributes if value and value.startswith("default-src 'none'"))
    for tag, item in hostile.within.items():
        for text in item:
            if text and not re.fullmatch(r"[A-Za-z0-9+/=]+", text):
                digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
                assert f"'sha256-{digest}'" in policy, tag
    assert "unsafe" not in policy and "'self'" not in policy
    addresses = [value for name, value in hostile.attributes if name in ("src", "href") and value]
    assert all(value.startswith("data:") for value in addresses)


def test_it_opens_from_disk_without_a_network(secret: Path, tmp_path: Path) -> None:
    """Chromium opens the file, shows the context masked, asks nobody for anything and runs nothing of the session's."""
    sync = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    chromium = browser.browser()
    if chromium is None:
        pytest.skip("there is no Chromium here; python tools/browser.py installs it")
    out = tmp_path / "shared.html"
    with vmstore.open(secret) as store:
        export.write(out, store, store.session(store.sessions()[0].session))
    with sync.sync_playwright() as play:
        running = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = running.new_page()
        asked: list[str] = []
        complaints: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda value: complaints.append(value.text) if value.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{out.as_uri()}#show=prompt")
        page.wait_for_selector("main", timeout=15_000)
        page.wait_for_selector(".context .page", timeout=15_000)
        seen = page.locator("body").inner_text()
        page.locator("#vmstore-masked summary").click()
        listed = page.locator("#vmstore-masked").inner_text()
        ran = page.evaluate("window.ran")
        running.close()
    assert ran is None
    assert [text for text in asked if not text.startswith(("file:", "data:", "blob:"))] == []
    assert complaints == []
    assert "[PASSWORD 1]" in seen and PASSWORD not in seen
    assert "[API_KEY 1]" in listed


def test_what_a_page_holds_cannot_end_its_script(tmp_path: Path) -> None:
    """A page whose own script speaks of the end of a script is put in whole, and means what it meant."""
    (tmp_path / "index.html").write_text(
        '<!doctype html><html><head><title>t</title><script type="module" crossorigin src="./page.js"></script></head>'
        "<body></body></html>"
    )
    (tmp_path / "page.js").write_text("const a = '</script><!--<script>', b = /<\\/script>/;")
    store = vmstore.memory_store()
    store.record("s1", talk("hello"))
    page = export.page(assets.read(tmp_path), shared(store, store.session("s1")), "s1")
    assert Tags(page).within["script"][0] == r"const a = '\x3c/script>\x3c!--\x3cscript>', b = /<\/script>/;"


def test_it_is_written_whole_or_not_at_all(shipped: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is there stays as it is, and where writing fails nothing is left."""
    out = tmp_path / "x.html"
    out.write_text("mine")
    session = shipped.session("planning-220")
    with refused("path-taken", StoreError):
        export.write(out, shipped, session)
    assert out.read_text() == "mine"
    monkeypatch.setattr(export, "FOLDER", tmp_path / "nothing")
    with pytest.raises(InputError, match="page is not in this installation"):
        export.write(tmp_path / "y.html", shipped, session)
    assert [path.name for path in tmp_path.iterdir()] == ["x.html"]


def test_the_command_tells_what_was_masked(secret: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command takes the only session, counts and lists what was masked, and warns where nothing is."""
    out = tmp_path / "a.html"
    capsys.readouterr()
    assert main(["debug", str(secret), "--export", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "masked: api_key" in printed and "[PASSWORD 1]" in printed and PASSWORD not in printed
    assert main(["debug", str(secret), "--export", str(tmp_path / "b.html"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["redacted"] and document["bytes"] == (tmp_path / "b.html").stat().st_size
    assert (
        {record["kind"] for record in document["masked"]}
        == document["counts"].keys()
        == {"password", "api_key", "email"}
    )
    assert main(["debug", str(secret), "--export", str(tmp_path / "c.html"), "--no-redact"]) == 0
    assert "nothing is masked" in capsys.readouterr().err
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--export", "x.html", "--open"], "--export writes a file"),
        (["--no-redact"], "--no-redact is of --export"),
        (["nowhere", "--export", "x.html"], "nowhere"),
    ],
)
def test_what_cannot_be_exported(
    secret: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    more: list[str],
    says: str,
) -> None:
    """Options that do not go together, and a session that is not there, are refused before anything is written."""
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    assert main(["debug", str(secret), *more]) == 1
    assert says in capsys.readouterr().err
    assert not (tmp_path / "x.html").exists()


def test_the_server_hands_it_out(demo: Served) -> None:
    """The server gives the same file to be saved, masked, and tells breakpoints as the command does."""
    answer = demo.get("export", session="planning-220")
    assert answer.status == 200
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert data_in(answer.body)["film"]["session"] == "planning-220"
    stop = demo.get("until", session="planning-220", q="claim_storage_4 LEAVES L0").json
    assert (stop["position"], stop["call"], stop["turn"]) == (4136, 366, 149)
    none = demo.get("until", session="planning-220", q="claim_storage_4 LEAVES L0", after=4136)
    assert "none" in none.json
    wrong = demo.get("until", session="planning-220", q="tokenz > 1")
    assert wrong.status == 400 and "^^^^^^" in wrong.error["pointed"]
