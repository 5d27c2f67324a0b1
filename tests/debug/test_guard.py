"""The server lets in its own page and nobody else, and writes nothing."""

from __future__ import annotations

import hashlib
import http.client
import re
import socket
from base64 import b64encode
from pathlib import Path

import pytest

from tests.debug.conftest import INDEX, SCRIPT, Serve, Served
from vmstore.debug import assets
from vmstore.debug.guard import ServerAddress, is_loopback
from vmstore.debug.json_bytes import masked
from vmstore.errors import InputError
from vmstore.store.store import Store

TARGETS = ("/", "/api/store", "/assets/app-1a2b.js", "/api/live")


# ---- the page


def test_the_page_is_served_with_its_policy(demo: Served) -> None:
    """The index and its assets come from the table; inline parts are allowed by hash, other scripts are not."""
    index, script = demo.ask("/"), demo.ask("/assets/app-1a2b.js")
    assert (index.status, index.body.decode()) == (200, INDEX)
    assert script.body.decode() == SCRIPT
    assert index.headers["content-type"] == "text/html; charset=utf-8"
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    policy = index.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    for inline in ("var inline = 1 < 2;", "p{margin:0}"):
        assert f"'sha256-{b64encode(hashlib.sha256(inline.encode()).digest()).decode()}'" in policy
    assert policy.count("sha256") == 2 and "frame-ancestors 'none'" in policy
    for answer in (index, script, demo.get("store"), demo.get("film", session="none"), demo.ask("/nothing")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store" and answer.headers["content-security-policy"] == policy
        assert "server" not in answer.headers


@pytest.mark.parametrize(
    "target",
    [
        *("/../secret.js", "/assets/../../secret.js", "/..%2fsecret.js", "/%2e%2e/secret.js", "//secret.js"),
        *("/index.html", "/assets", "/assets/", "/assets/app-1a2b.js.map", "/assets/app-1a2b.js/", "/etc/passwd"),
        *("/assets/app-1a2b.js%00", "/assets\\app-1a2b.js", "/./assets/app-1a2b.js", "/api/../index.html", "/api"),
    ],
)
def test_only_what_is_in_the_table_is_served(demo: Served, target: str) -> None:
    """No path leads out of the page's folder, to a listing, or to a file that is not of the page."""
    answer = demo.ask(target)
    assert answer.status == 404 and b"not yours" not in answer.body
    assert answer.error["remedy"] == "the page is at /"


def test_a_link_out_of_the_folder_is_not_followed(page: Path, tmp_path: Path) -> None:
    """A symbolic link in the page's folder is no asset, and a folder without an index is said to be none."""
    folder = tmp_path / "page"
    folder.mkdir()
    with pytest.raises(InputError, match="npm run build"):
        assets.read(folder)
    with pytest.raises(InputError, match="not in this installation"):
        assets.read(tmp_path / "nowhere")
    (folder / "index.html").write_text("<p>")
    (folder / "out.js").symlink_to(page / "index.html")
    assert list(assets.read(folder).files) == ["/"]


# ---- who may ask


@pytest.mark.parametrize("target", TARGETS[:3])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "localhost:{port}:1"]
)
def test_another_host_is_refused(demo: Served, target: str, host: str) -> None:
    """A name that somebody else lets resolve to this machine, and another port, are turned away."""
    answer = demo.ask(target, headers={"Host": host.format(port=demo.port)})
    assert answer.status in (400, 403) and b"alert" not in answer.body
    if answer.status == 403:
        assert answer.error["remedy"] == f"open http://127.0.0.1:{demo.port}/"


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LocalHost:{port}", "[::1]:{port}"])
def test_names_of_this_machine_are_let_in(demo: Served, host: str) -> None:
    """Every loopback name with the port is the server's own."""
    assert demo.ask("/api/store", headers={"Host": host.format(port=demo.port)}).status == 200


@pytest.mark.parametrize(
    "header",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://127.0.0.1:{port}@evil.example"},
        {"Referer": "http://evil.example/127.0.0.1:{port}"},
        {"Referer": "http://[broken"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_another_site_is_refused(demo: Served, header: dict[str, str]) -> None:
    """Origin, Referer and Sec-Fetch-Site of others are turned away, those of the page itself are let in."""
    texts = {name: value.format(port=demo.port) for name, value in header.items()}
    for target in TARGETS:
        answer = demo.ask(target, headers=texts)
        assert answer.status == 403 and "another site" in answer.error["reason"]
    own = {"Origin": f"http://localhost:{demo.port}", "Referer": f"http://127.0.0.1:{demo.port}/?x"}
    assert demo.ask("/api/store", headers={**own, "Sec-Fetch-Site": "same-origin"}).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_nothing_is_written(demo: Served, method: str) -> None:
    """Every method but GET and HEAD is refused, at every address, with what is allowed."""
    before = demo.store.admin.log.ordinal
    for target in TARGETS:
        answer = demo.ask(target, method=method)
        assert (
            answer.status == 405 and answer.headers["allow"] == "GET, HEAD" and answer.error["remedy"] == "ask with GET"
        )
    assert demo.store.admin.log.ordinal == before


def test_a_head_has_no_body(demo: Served) -> None:
    """HEAD answers as GET does, without the content."""
    answer = demo.ask("/api/store", method="HEAD")
    assert (answer.status, answer.body) == (200, b"") and int(answer.headers["content-length"]) > 0


def test_no_other_protocol_is_spoken(demo: Served) -> None:
    """A request to change to WebSocket is refused."""
    fields = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    fields["Sec-WebSocket-Key"] = "a" * 22 + "=="
    for target in ("/api/live", "/"):
        answer = demo.ask(target, headers=fields)
        assert answer.status == 400 and answer.error["remedy"] == "listen at /api/live"


@pytest.mark.parametrize("length", [40_000, 200_000, 2_000_000])
def test_a_huge_address_is_refused(demo: Served, length: int) -> None:
    """An address longer than any that is asked for is refused, and the server answers on."""
    try:
        answer = demo.ask("/api/vmql?q=" + "a" * length)
    except (ConnectionError, TimeoutError):  # it stopped reading
        answer = None
    assert answer is None or answer.status in (400, 414)
    assert demo.get("store").status == 200


def test_what_is_no_request_does_not_end_the_server(demo: Served) -> None:
    """Bytes that are no HTTP, and a connection that is dropped, leave the server answering."""
    for sent in (b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/9.9\r\n\r\n", b"GET /api/film HTTP/1.1\r\nHost: 127.0.0.1"):
        with socket.create_connection(("127.0.0.1", demo.port), timeout=10) as raw:
            raw.sendall(sent)
    assert demo.get("store").status == 200


# ---- the token


def test_a_token_is_asked_for(small: Store, serve: Serve) -> None:
    """With a token nothing is answered without it; shown once in the address it goes on as a cookie."""
    served = serve(small, token="a-token")
    for target in TARGETS:
        assert served.ask(target).status == 401
        assert served.ask(target, headers={"Cookie": f"vmstore-{served.port}=other"}).status == 401
    assert served.ask("/?token=").status == served.ask("/?token=a-tokeN").status == 401
    assert served.ask("/?token=other&token=a-token").status == 401
    assert served.ask("/api/store?token=a-token").status == 200
    answer = served.ask("/?token=a-token&x=1")
    assert (answer.status, answer.headers["location"]) == (303, "/?x=1")
    cookie = re.fullmatch(r"(vmstore-\d+=a-token); Path=/; HttpOnly; SameSite=Strict", answer.headers["set-cookie"])
    assert cookie is not None
    for target in TARGETS[:3]:
        assert served.ask(target, headers={"Cookie": f"x=y; {cookie[1]}"}).status == 200
    assert served.ask("/", headers={"Cookie": cookie[1], "Host": "evil.example"}).status == 403


def test_texts_are_masked_where_they_are_to_be(small: Store, serve: Serve) -> None:
    """With a mask no answer has a secret in it, nor what another text of the same answer says is one."""
    store = small
    store.record("k", {"model": "m", "messages": [{"role": "user", "content": "password: hunter2hunter"}]})
    records = [
        {"role": "user", "content": "password: hunter2hunter"},
        {"role": "user", "content": "so hunter2hunter it is"},
    ]
    store.record("k", {"model": "m", "messages": records})
    served = serve(store, redact=masked)
    asked = (("texts", "at=4,8"), ("request", "call=2"), ("film", ""), ("vmql", "q=CONTEXT+AT+CALL+2+RENDER"))
    for path, query in asked:
        answer = served.ask(f"/api/{path}?session=k&{query}")
        assert answer.status == 200 and b"hunter2" not in answer.body and b"[PASSWORD 1]" in answer.body
    plain = serve(store)
    assert all(b"hunter2" in plain.ask(f"/api/{path}?session=k&{query}").body for path, query in asked)


def test_images_and_halves_of_secrets_stay_here(small: Store, serve: Serve) -> None:
    """Where texts are masked no image is handed out, nor the first half of a secret that a cut goes through."""
    picture = "data:image/png;base64," + b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(200))).decode()
    image = {"type": "image_url", "image_url": {"url": picture}}
    half = "x" * ((64 << 10) - 20) + " sk-ant-api03-" + "aB3" * 20
    records = [{"role": "user", "content": [image, {"type": "text", "text": half}]}]
    small.record("pictures", {"model": "m", "messages": records})
    pages = [page.page[1:] for page in small.session("pictures").pages()]
    asked = f"texts?session=pictures&at={','.join(pages)}", "request?session=pictures&call=1"
    sign = picture[-60:-4].encode()
    for path in asked:
        plain, hidden = serve(small).ask(f"/api/{path}").body, serve(small, redact=masked).ask(f"/api/{path}").body
        assert sign in plain and sign not in hidden and b"sk-ant-" not in hidden
        assert b"nothing can be masked in an image" in hidden


@pytest.mark.parametrize(
    ("door", "host", "ours"),
    [
        (ServerAddress("127.0.0.1", 80), "localhost", True),
        (ServerAddress("127.0.0.1", 8000), "localhost", False),
        (ServerAddress("box.local", 8000), "box.local:8000", True),
        (ServerAddress("box.local", 8000), "other.local:8000", False),
        (ServerAddress("::1", 8000), "[::1]:8000", True),
        (ServerAddress("0.0.0.0", 8000), "192.168.1.7:8000", True),
        (ServerAddress("0.0.0.0", 8000), "evil.example:8000", False),
        (ServerAddress("127.0.0.1", 8000), "192.168.1.7:8000", False),
    ],
)
def test_whose_name_a_host_is(door: ServerAddress, host: str, ours: bool) -> None:
    """Loopback and the host that was told are ours; open to all, so is every address, which nobody else can name."""
    assert door.is_ours(host) is ours


def test_which_hosts_are_loopback() -> None:
    """Only what no other machine can reach needs no token."""
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.7", "box.local", "")))


ANN, BOB = "talk with ann@lovelace.dev", "talk with bob@lovelace.dev"


def private(store: Store) -> Store:
    """Two sessions whose names are not for others, and a fork of one."""
    for name, expected in ((ANN, "Hello from Ann."), (BOB, "Hello from Bob.")):
        store.record(name, {"model": "m", "messages": [{"role": "user", "content": expected}]})
    store.session(BOB).fork("fork of bob", call=1)
    return store


def test_a_masked_session_opens_by_what_it_is_called(small: Store, serve: Serve) -> None:
    """What stands for a session's name is the same in every answer, and opens it."""
    served = serve(private(small), redact=masked)
    fields = {session["session"]: session for session in served.read("store")["sessions"]}
    assert {"talk with [EMAIL 1]", "talk with [EMAIL 2]"} < set(fields) and not {ANN, BOB} & set(fields)
    assert fields["fork of bob"]["parent"]["session"] == "talk with [EMAIL 2]"
    for name, expected in (("talk with [EMAIL 1]", "Ann"), ("talk with [EMAIL 2]", "Bob")):
        film = served.read("film", session=name)
        assert film["session"] == name
        texts = served.read("texts", session=name, at="4")["texts"]
        assert texts["4"]["text"] == f"Hello from {expected}."
        assert served.read("vmql", session=name, q="PAGES text")["rows"] == [{"text": f"Hello from {expected}."}]
        assert served.read("complete", session=name, q="PAGES WHERE page = ")["candidates"]
        saved = served.get("export", session=name).headers["content-disposition"]
        assert "lovelace" not in saved and "EMAIL" in saved
    assert served.read("film", session=BOB)["session"] == "talk with [EMAIL 2]"


def test_no_refusal_tells_what_answers_mask(small: Store, serve: Serve) -> None:
    """A refusal that names what is nearest masks it too; and what is told of a session that grew is masked."""
    private(small).session(BOB).annotate("p4", anchors={"key": "password=hunter2hunter"})
    asked = (("film", {"session": "talk with bob"}), ("vmql", {"q": "PAGES IN SESSION 'talk with amn'"}))
    plain, served = serve(small), serve(small, redact=masked)
    for path, parameters in asked:
        assert b"lovelace" in plain.get(path, **parameters).body, path
        actual = served.get(path, **parameters)
        assert actual.status >= 400 and b"lovelace" not in actual.body and b"[EMAIL " in actual.body
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    connection.request("GET", "/api/live")
    live = connection.getresponse()
    assert live.readline().startswith(b"retry")
    small.record(ANN, {"model": "m", "messages": [{"role": "user", "content": "More."}]})
    line = b""
    while not line.startswith(b"data"):
        line = live.readline()
    assert b"lovelace" not in line and b"talk with [EMAIL 1]" in line
    connection.close()
