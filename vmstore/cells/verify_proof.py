"""Checks a proof that a page was in a call's context, or of what a call was sent, with Python's own library alone.

    python verify_proof.py PROOF PUBLIC_KEY [CONTENT]

PROOF is what `vmstore prove` wrote, PUBLIC_KEY 64 hex digits or a file of them, CONTENT a page's salt and bytes, or the
request. Each hash is made of the one below: page, call (RFC 9162 tree of its pages), session (tree of its commits),
namespace (of its sessions); the last was signed (Ed25519, RFC 8032). A request's digest ends its call's commit.
"""

import json
import sys
from datetime import UTC, datetime
from hashlib import sha256, sha512
from pathlib import Path
from struct import pack

PAGE, REQUEST = "vmstore proof 1", "vmstore request proof 1"
P, ORDER = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493  # of the field, of the base point
D, ROOT, Y = -121665 * pow(121666, -1, P) % P, pow(2, (P - 1) // 4, P), 4 * pow(5, -1, P) % P
X = 15112221349535400772501151409588531511454012693041857206046113283949847762202


def check(proof: bytes, public: bytes, content: bytes | None = None) -> str:
    """Says in a sentence what a proof proves; raises ValueError, TypeError or struct.error if it proves nothing."""
    fields = json.loads(proof)
    other = any(one in proof for one in (b"true", b"false", b"."))  # 0.0 would pass for a place in a tree of one
    again = json.dumps(fields, separators=(",", ":")).encode() + b"\n"
    sure(again == proof and not other, "its bytes are not as they were written")
    kind, of_what, of_call, of_session, (*seal, key, signature) = fields
    position, at, call, derived, pages, commit, *up = of_call
    session, end, commits, head, *above = of_session
    sure(kind in (PAGE, REQUEST) and key == public.hex(), f"it is a {kind:.20}, signed with the key {key:.64}")
    if kind == PAGE:
        maker, page, version, level, digest, *way = of_what
        node = climb(raw(maker, 16) + pack(">QIB", page, version, level) + raw(digest), pages, *way)
        what = f"page p{page} of session {maker}, version {version}, level {level}, commitment {digest}, was in"
    else:
        root, digest, before, first, count, happened, lag, request, *texts = of_what
        body, cells = (raw(text, len(text) // 2) for text in texts)
        linked = raw(before) + pack(">QIqqiQ", first, count, happened, lag, request, len(body)) + body + cells
        stated = [body[-32 - n : -n].hex() for n in range(1, 11) if body[-34 - n : -32 - n] == b"\xc4\x20"]
        sure(sha256(linked).hexdigest() == commit and digest in stated, "its call's commit states another digest")
        node, what = raw(root), f"the request with the digest {digest} was sent in"
    node = climb(raw(commit) + pack(">QqIBI", position, at, call, derived, pages) + node, commits, *up)
    node = climb(raw(session, 16) + pack(">QQ", end, commits) + raw(head) + node, seal[-1], *above)
    sure(signed(public, statement(node, public, *seal), raw(signature, 64)), "this is not what was signed")
    sure(content is None or sha256(content).hexdigest() == digest, "the content is another one")
    made, sealed = (datetime.fromtimestamp(microseconds / 1e6, UTC) for microseconds in (at, seal[2]))
    where = f"the {'derived' if derived else 'recorded'} context of call {call} of session {session}"
    return f"{what} {where} at {made}, sealed at {sealed}" + ("" if content is None else ", with this content")


def climb(leaf: bytes, size: int, place: int, path: list[str]) -> bytes:
    """The root of a tree of so many leaves, from one of them, its place and the hashes beside its way up."""
    node, beside = sha256(b"\0" + leaf).digest(), [raw(text) for text in path]
    sure(0 <= place < size, "a place is outside its tree")
    while size > 1:
        if place ^ 1 < size:
            sure(bool(beside), "a way is shorter than its tree is high")
            node = sha256(b"\1" + (beside.pop(0) + node if place & 1 else node + beside.pop(0))).digest()
        place, size = place >> 1, (size + 1) >> 1
    sure(not beside, "a way is longer than its tree is high")
    return node


def statement(root: bytes, public: bytes, namespace: str, ordinal: int, at: int, sessions: int) -> bytes:
    """The bytes that a signature covers."""
    return b"vmstore seal 1\0" + raw(namespace, 16) + pack(">QqQ", ordinal, at, sessions) + root + public


def signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether an Ed25519 signature was made with the secret of a public key: S·B - k·A is its R."""
    y = int.from_bytes(public, "little") & (1 << 255) - 1
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * ROOT % P
    sure(len(public) == 32 and y < P and x * x % P == square, "the public key is none")
    x = x if x & 1 != public[31] >> 7 else P - x  # of -A
    k = int.from_bytes(sha512(signature[:32] + public + message).digest(), "little") % ORDER
    s, base, key = int.from_bytes(signature[32:], "little"), (X, Y, 1, X * Y), (x, y, 1, x * y)
    found, sums = add((0, 1, 1, 0), (0, 1, 1, 0)), (base, key, add(base, key))
    for bit in range(252, -1, -1):
        found = add(found, found)
        if step := (s >> bit & 1) + 2 * (k >> bit & 1):
            found = add(found, sums[step - 1])
    x, y = (part * pow(found[2], -1, P) % P for part in found[:2])
    return s < ORDER and (y | (x & 1) << 255).to_bytes(32, "little") == signature[:32]


def add(p: tuple[int, ...], q: tuple[int, ...]) -> tuple[int, ...]:
    """The sum of two points of the curve, in extended coordinates."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]), (p[1] + p[0]) * (q[1] + q[0])
    c, d = 2 * p[3] * q[3] * D, 2 * p[2] * q[2]
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def raw(text: str, size: int = 32) -> bytes:
    """Bytes that are written as so many pairs of hex digits, in the one way there is."""
    sure(len(text) == 2 * size and bytes.fromhex(text).hex() == text, f"{text:.80} are not {size} bytes")
    return bytes.fromhex(text)


def sure(holds: bool, what: str) -> None:
    """Raises ValueError where something does not hold."""
    if not holds:
        raise ValueError(what)


def main(proof: str, key: str, *content: str) -> None:
    """Says whether a proof holds; leaves with 1 where it does not."""
    try:
        public = bytes.fromhex(Path(key).read_text() if Path(key).is_file() else key)
        print("proven:", check(Path(proof).read_bytes(), public, *(Path(file).read_bytes() for file in content)))
    except Exception as error:
        sys.exit(f"not proven: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
