"""Lets programs of this machine send requests through the proxy, and no page of a website.

A page may not post here from another site (Origin, Sec-Fetch-Site), nor reach the proxy under a name
of its own (Host). Where other machines can reach it, every request carries the token instead.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from vmstore.debug.guard import OUR_SITE, ServerAddress
from vmstore.debug.http_errors import HttpError

TOKEN = "x-vmstore-token"


def check(address: ServerAddress, headers: Mapping[str, str]) -> None:
    """Raises HttpError where a request is to be refused; `headers` are by their small names."""
    if address.token is not None:
        given = headers.get(TOKEN, "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), address.token.encode()):
            raise HttpError(
                401,
                "this proxy is open to other machines and asks for its token",
                f"send the token that it printed in the header {TOKEN}",
            )
        return
    if not address.is_ours(headers.get("host", "")):
        own = f"http://{address.host}:{address.port}"
        raise HttpError(403, "this proxy goes by another name", f"use {own}, or start it with --host to let others in")
    if "origin" in headers and not address.is_own(headers["origin"]):
        raise HttpError(403, "a page of another site asks (origin)", "send requests from a program, not from a page")
    if headers.get("sec-fetch-site", "none") not in OUR_SITE:
        raise HttpError(403, "a page of another site asks (sec-fetch-site)", "send requests from a program")
