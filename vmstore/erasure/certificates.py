"""Certificates of erasures: what was destroyed, when and why, without a word anybody wrote.

    agent.vms.erasures/default-000001613-20261122T113000.000000Z.json

They lie beside the store, because a backup that is put back has to meet them: together they are the
ledger of what must not come back.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from vmstore.cells.verify_proof import signed as verified
from vmstore.core.erasure import ErasureReason
from vmstore.core.system.atomic_file import naming, new_file
from vmstore.core.system.safe_files import read_within
from vmstore.errors import CorruptError, InputError
from vmstore.namespace.signing_keys import SigningKey

ERASURES = ".erasures"
KIND = "vmstore erasure 1"
SUFFIX = ".json"
SIGNATURE_BYTES = 64


class ErasedCell(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A cell by the first position of its commit, its index there, and what it was sealed as."""

    position: int
    index: int
    commitment: str


class SessionErasure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The erasure in one session: its uid, the position that records it, and the cells."""

    session: str
    position: int
    cells: list[ErasedCell]


class Certificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The certificate of one erasure in a namespace; `at` is microseconds since 1970, `size` in bytes."""

    kind: str
    namespace: str
    ordinal: int
    at: int
    reason: str
    erasures: list[SessionErasure]
    cells: int
    size: int
    rewritten: list[str]
    beyond: list[str]
    key: str | None = None
    signature: str | None = None

    @property
    def signing(self) -> bytes:
        """The bytes that are signed: the certificate without its signature."""
        return b"vmstore erasure\0" + msgspec.json.encode(msgspec.structs.replace(self, signature=None))


def signed(certificate: Certificate, key: SigningKey) -> Certificate:
    """A certificate with a signature."""
    named = msgspec.structs.replace(certificate, key=key.public.hex())
    return msgspec.structs.replace(named, signature=key.sign(named.signing).hex())


def folder_of(namespace: Path) -> Path:
    """The folder for certificates of a namespace: beside its store."""
    store = namespace.absolute().parent
    return beside(store)


def beside(store: Path) -> Path:
    """The folder for certificates of a store."""
    return store.with_name(store.name + ERASURES)


def keep(folder: Path, namespace: str, certificate: Certificate) -> Path:
    """Writes a certificate, durable; where one of the same name is there it says the same, and stays."""
    with naming(folder):
        folder.mkdir(exist_ok=True)
    moment = datetime.fromtimestamp(certificate.at / 1e6, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    path = folder / f"{namespace}-{certificate.ordinal:09}-{moment}{SUFFIX}"
    if not path.exists():
        with new_file(path) as file:
            file.write(msgspec.json.format(msgspec.json.encode(certificate), indent=1) + b"\n")
    return path


def certificates(folder: str | os.PathLike[str], namespace: str | None = None) -> Iterator[Certificate]:
    """The certificates in a folder, the oldest first; those of one namespace where its name is given."""
    head = "" if namespace is None else f"{namespace}-"
    for path in sorted(Path(folder).glob(f"{head}*{SUFFIX}")):
        yield read_certificate(path)


def read_certificate(path: Path) -> Certificate:
    """The certificate in a file; raises CorruptError where it is none, or has a signature that does not hold.

    A signature that holds says that the key it names has signed it; whose key that is, only a caller can know.
    """
    try:
        found = msgspec.json.decode(read_within(path), type=Certificate)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); name a folder of certificates") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CorruptError(
            f"{path} is no certificate of an erasure ({error}); move it away, or mend it", code="not-a-certificate"
        ) from error
    if found.kind != KIND or ErasureReason.of(found.reason) is None:
        raise CorruptError(f"{path} is a certificate of another version of vmstore; use that one")
    if (found.key is not None or found.signature is not None) and not _holds(found):
        raise CorruptError(
            f"{path} has a signature that does not hold, so nothing it says counts; move it away", code="bad-signature"
        )
    return found


def _holds(certificate: Certificate) -> bool:
    """Whether a certificate was signed by the key it names."""
    try:
        key, signature = bytes.fromhex(certificate.key or ""), bytes.fromhex(certificate.signature or "")
        return len(signature) == SIGNATURE_BYTES and verified(key, certificate.signing, signature)
    except ValueError:
        return False


def cells_of(found: Iterable[Certificate]) -> dict[str, dict[tuple[int, int], str]]:
    """Every cell that certificates name: by session and place, what it was sealed as."""
    by_session: dict[str, dict[tuple[int, int], str]] = {}
    for certificate in found:
        for erasure in certificate.erasures:
            by_session.setdefault(erasure.session, {}).update(
                {(cell.position, cell.index): cell.commitment for cell in erasure.cells}
            )
    return by_session
