"""A server that speaks S3, moto's, started once a test process; and one before it that fails as S3 does."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

KEYS = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_DEFAULT_REGION": "us-east-1"}


@contextmanager
def moto() -> Iterator[int]:
    """The port of a server on this machine; skips the test where moto or obstore is not installed."""
    pytest.importorskip("obstore")
    pytest.importorskip("moto")
    pytest.importorskip("flask")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **KEYS}
    )
    try:
        _wait(port, process)
        yield port
    finally:
        process.kill()
        process.wait()


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert process.poll() is None, "moto's server ended at once"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("moto's server does not listen")


def make_bucket(port: int, name: str) -> None:
    """Makes a bucket."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    credential = "AWS4-HMAC-SHA256 Credential=tests/20260101/us-east-1/s3/aws4_request"
    connection.request("PUT", f"/{name}", headers={"Authorization": credential})
    assert connection.getresponse().status == 200
    connection.close()


class Failing:
    """A forwarder to a server, which fails requests as it is told: `faults` are taken one a request.

    A fault is the method it is for and what happens: a status such as `503`, `half` of an answer's body, `lost`, where
    the server did the work and its answer never comes, or `silent`, where none comes and the connection stays.
    """

    def __init__(self, port: int) -> None:
        self.faults: list[tuple[str, str]] = []
        self.seen: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.seen.append(self.command)
                fault = outer.fault(self.command)
                if fault == "silent":
                    time.sleep(5)
                    self.close_connection = True
                    return
                if fault is not None and fault.isdigit():
                    self.send_response(int(fault))
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                connection.request(self.command, self.path, body, dict(self.headers))
                answer = connection.getresponse()
                content = answer.read()
                connection.close()
                if fault == "lost":
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self.send_response(answer.status)
                for key, value in answer.getheaders():
                    if key.lower() not in ("transfer-encoding", "connection", "server", "date", "content-length"):
                        self.send_header(key, value)
                length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
                self.send_header("Content-Length", length or "0")
                self.end_headers()
                if fault == "half":
                    self.wfile.write(content[: len(content) // 2])
                    self.wfile.flush()
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self.wfile.write(content)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any  # noqa: N815  as the base names them

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def fault(self, method: str) -> str | None:
        """The fault of a request, which is taken off the list."""
        if self.faults and self.faults[0][0] == method:
            return self.faults.pop(0)[1]
        return None

    def close(self) -> None:
        """Stops it."""
        self._server.shutdown()
        self._server.server_close()
