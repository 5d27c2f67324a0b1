"""The PostgreSQL backend: logs in a database, everything that is folded from them in a cache on this machine.

    postgresql://user@host:5432/database?namespace=team-a&schema=vmstore&cache=/var/cache/vmstore&sslmode=require
    postgresql://user@host/database?blobs=s3%3A%2F%2Fbucket%2Fprefix

`namespace`, `schema`, `cache`, `blobs` and `notify` are ours; the rest is libpq's. Without `cache` it is the user's.
"""

from __future__ import annotations

import os
import platform
import struct
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import apsw
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from vmstore.cells.storekey import StoreKey
from vmstore.cells.subject_keys import Keyring, root_key
from vmstore.core.clock import Clock, IdSource, SystemIds
from vmstore.core.system.cache_folder import prepare
from vmstore.core.system.waits import WAIT_S
from vmstore.errors import InputError, ReadOnlyError, StoreError
from vmstore.log.frame import ERASED_SIZE
from vmstore.log.frame_encryption import PLAIN, FrameEncryption, NoEncryption
from vmstore.log.port import Log
from vmstore.log.postgres.cell_objects import CellObjects, not_named
from vmstore.log.postgres.connection import Connection
from vmstore.log.postgres.create import NamespaceRow, lacking, make, names, row_of, set_blobs, version_of
from vmstore.log.postgres.key_table import KeyTable
from vmstore.log.postgres.log import PostgresLog
from vmstore.log.postgres.tables import statements
from vmstore.log.sqlite import SqliteLog
from vmstore.namespace.backends.folder import in_memory
from vmstore.namespace.backends.port import Attachment, K, Opening, Sizes
from vmstore.namespace.backends.postgres_capabilities import capabilities
from vmstore.namespace.backends.postgres_checkpoints import ViewCheckpoints
from vmstore.namespace.encryption import plain_beside, subject_of
from vmstore.namespace.folder import check_name, sizes
from vmstore.namespace.reports import Capability, PublishedViews
from vmstore.namespace.view_file import open_views
from vmstore.objects.address import objects_at
from vmstore.views.projection import ROOM_BYTES, ROOM_RATIO, Projection

DEFAULT = "default"
OURS = ("namespace", "schema", "cache", "blobs", "notify")


class PostgresPlace:
    """A namespace in a database."""

    directory = None
    parted = False

    def __init__(self, backend: PostgresBackend, name: str, uid: bytes) -> None:
        self.backend = backend
        self.name = name
        self.uid = uid
        self.cache = backend.cache / name

    @property
    def identity(self) -> str:
        """The uid, which no other namespace has."""
        return self.uid.hex()

    def absolute(self) -> PostgresPlace:
        """The same, on connections of its own: those of the process it was forked from are not to be used."""
        return PostgresPlace(PostgresBackend(self.backend.given), self.name, self.uid)

    def mark(self) -> None:
        """Says that an erasure is under way, in the namespace's row."""
        self._mark(True)

    def unmark(self) -> None:
        """Says that it is done."""
        self._mark(False)

    def _mark(self, erasing: bool) -> None:
        with self.backend.connection.used() as db:
            db.execute(self.backend.sql.mark, {"namespace": self.name, "erasing": erasing})

    def marked(self) -> bool:
        """Whether an erasure was begun and not finished."""
        rows = self.backend.connection.rows(self.backend.sql.marked, {"namespace": self.name})
        return bool(rows and rows[0][0])

    def log_bytes(self) -> int:
        """Bytes of the namespace's rows."""
        return int(self.backend.connection.rows(self.backend.sql.size, {"namespace": self.name})[0][0])

    def sizes(self) -> Sizes:
        """Bytes of its rows in the database, of the views on this machine, and of contents in an object store."""
        rows = self.backend.connection.rows(self.backend.sql.object_sizes, {"namespace": self.name})
        lengths = (length for (packed,) in rows for (length,) in struct.iter_unpack(">I", packed))
        objects = sum(length for length in lengths if length != ERASED_SIZE)
        return Sizes(self.log_bytes(), sizes(self.cache)[1], objects)

    @property
    def beyond(self) -> list[str]:
        """Copies that the server keeps of old rows, and a bucket of deleted objects."""
        objects = self.backend.blobs
        return [
            "the database's WAL, its archive, base backups and standbys, until they are recycled or replaced",
            *([f"versions, replicas and locked objects that {objects.partition('?')[0]} keeps"] if objects else []),
        ]

    @property
    def checkpoints(self) -> ViewCheckpoints:
        """The checkpoint of its views in the database."""
        return ViewCheckpoints(self.backend.connection, self.name, self.backend.at)

    def publish_views(self, views: apsw.Connection) -> PublishedViews:
        """Keeps a copy of its views in the database; StoreError where it is encrypted."""
        row = row_of(self.backend.connection, self.backend.sql, self.name)
        if row is not None and row.encrypted:
            raise StoreError(
                f"{self.backend.address} (namespace {self.name!r}) is encrypted, and its views would lie in the open; "
                "each host folds them in memory",
                code="encrypted",
            )
        return self.checkpoints.publish(views, self.cache)

    def unpublish_views(self) -> None:
        """Removes it, and rewrites the table that it lay in."""
        self.checkpoints.drop()

    def archiving(self, log: Log) -> SqliteLog | None:
        """None: the database keeps what is old."""
        return None

    def column_files(self) -> None:
        """None: segments are cut here."""

    def alone(self, session: str) -> Attachment | None:
        """None: views of all sessions are at hand."""
        return None

    def prepare(self) -> None:
        """Makes the cache folder, empties it where it is another namespace's, and refuses another machine's."""
        prepare(self.cache, self.uid.hex())


class PostgresBackend:
    """A store in a database, or in one of its schemas."""

    def __init__(self, address: str) -> None:
        self.given = address
        self._ours, self.conninfo = _parsed(address)
        schema = self._ours.get("schema", "")
        if schema and (not schema.isascii() or not schema.replace("_", "").isalnum()):
            raise InputError(
                f"schema={schema[:60]!r} is no name of a schema; use letters, digits, underscores", code="not-a-name"
            )
        if self._ours.get("notify", "0") not in ("0", "1"):
            raise InputError("notify= in the address is 1, or 0 as without it", code="not-an-address")
        self.notify = self._ours.get("notify") == "1"
        self.schema = schema
        self.sql = statements(f'"{schema}"' if schema else "")

    def __getstate__(self) -> str:
        return self.given

    def __setstate__(self, address: str) -> None:
        self.__init__(address)  # type: ignore[misc]

    @cached_property
    def address(self) -> str:
        """The address as messages name it, without a password."""
        parts = conninfo_to_dict(self.conninfo)
        user, host, port = (str(parts.get(key) or "") for key in ("user", "host", "port"))
        place = (f"{user}@" if user else "") + (host if "/" not in host else "") + (f":{port}" if port else "")
        shown = {key: value for key, value in (("host", host if "/" in host else ""), ("schema", self.schema)) if value}
        query = f"?{urlencode(shown, safe='/')}" if shown else ""
        return f"postgresql://{place}/{parts.get('dbname')}{query}"

    @property
    def identity(self) -> str:
        """The address without a user."""
        parts = conninfo_to_dict(self.conninfo)
        return "\n".join([*(str(parts.get(key) or "") for key in ("host", "port", "dbname")), self.schema])

    @cached_property
    def cache(self) -> Path:
        """The folder of the store on this machine."""
        root = Path(self._ours.get("cache") or os.path.expanduser("~/.cache/vmstore"))
        name = conninfo_to_dict(self.conninfo)["dbname"]
        return root.absolute() / f"{name}-{sha256(self.identity.encode()).hexdigest()[:12]}"

    @property
    def blobs(self) -> str | None:
        """The address of the object store for long contents; None where it names none."""
        return self._ours.get("blobs") or None

    @cached_property
    def connection(self) -> Connection:
        """A connection for what is no log's: names, marks, sizes."""
        return Connection(self.conninfo, self.address, 0.0)

    @property
    def named(self) -> str | None:
        """The namespace that the address names."""
        return self._ours.get("namespace") or None

    def _name(self, namespace: str) -> str:
        """The namespace that a caller and the address name."""
        named = self.named
        if named and namespace not in (DEFAULT, named):
            raise InputError(
                f"the address names namespace {named!r} and the call {namespace!r}; leave one of them out",
                code="two-namespaces",
            )
        check_name(named or namespace)
        return named or namespace

    def namespaces(self) -> list[str]:
        """The names in the database."""
        return names(self.connection, self.sql)

    def check(self, namespace: str | None = None) -> None:
        """Raises StoreError where there are no tables, or no such namespace."""
        found = self.namespaces()
        if version_of(self.connection, self.sql) is None:
            raise StoreError(
                f"there is no store at {self.address}; opening it with mode 'rw' makes one, as `vmstore import` does",
                code="no-store",
            )
        if namespace is not None and self._name(namespace) not in found:
            raise StoreError(
                f"{self.address} has no namespace {namespace!r}; "
                f"this role sees {', '.join(map(repr, found[:9])) or 'none'}",
                code="no-namespace",
            )

    def exists(self, namespace: str) -> bool:
        """Whether there is such a namespace."""
        return self._name(namespace) in self.namespaces()

    def mode(self, namespace: str) -> str:
        """Whether the role may write its rows."""
        self.check(namespace)
        return "rw" if self._may_write() else "r"

    def check_writable(self, namespace: str) -> None:
        """Raises ReadOnlyError where the role may not write its rows."""
        if self.mode(namespace) == "r":
            raise ReadOnlyError(
                f"{self.address} is not writable for this role; grant it what specs/postgres.md says, or name another",
                code="no-right",
            )

    @property
    def at(self) -> str:
        """The prefix of a table: the schema, quoted, where the address names one."""
        return f'"{self.schema}".' if self.schema else ""

    def _may_write(self) -> bool:
        sql = (
            f"SELECT has_table_privilege('{self.at}vmstore_commit', 'INSERT') AND "
            f"has_table_privilege('{self.at}vmstore_head', 'UPDATE') AND NOT pg_is_in_recovery()"
        )
        return bool(self.connection.rows(sql, {})[0][0])

    def key_for(self, namespace: str, key: K | None) -> K | None:
        """The key, where the namespace is encrypted or is yet to be made."""
        if key is None or lacking(self.connection, self.sql):
            return key
        row = row_of(self.connection, self.sql, self._name(namespace))
        return None if row is not None and not row.encrypted else key

    def keyring(self, namespace: str, store_key: StoreKey, ids: IdSource) -> Keyring:
        """The keys of an encrypted namespace, in their table."""
        self.check(namespace)
        name = self._name(namespace)
        row = row_of(self.connection, self.sql, name)
        assert row is not None, "it was looked for"
        self._check_key(name, row, store_key)
        return Keyring(self._key_table(name, WAIT_S), store_key, ids)

    def _key_table(self, name: str, wait_s: float | None) -> KeyTable:
        return KeyTable(Connection(self.conninfo, self.address, wait_s), self.sql, name)

    def _check_key(self, name: str, row: NamespaceRow, store_key: StoreKey | None) -> None:
        """Raises StoreError where a store key is missing, or given for a plain namespace."""
        if row.encrypted and store_key is None:
            raise StoreError(
                f"{self.address} (namespace {name!r}) is encrypted; name the file of its key with --store-key or in "
                "VMSTORE_KEY_FILE, in Python with vmstore.open(…, key=…)",
                code="encrypted",
            )
        if store_key is not None and not row.encrypted:
            raise StoreError(
                f"{self.address} (namespace {name!r}) is not encrypted; leave the key out, or "
                "`vmstore migrate` it into a namespace that is made with a key",
                code="not-encrypted",
            )

    def capabilities(self, clock: Clock) -> list[Capability]:
        """As far as the server, its settings and the role allow."""
        return capabilities(self.connection, self.sql, self.schema, clock, self.blobs)

    def attach(self, namespace: str, opening: Opening) -> Attachment:
        """Finds a namespace, which is made where there is none, encrypted with a key."""
        name = self._name(namespace)
        self.connection.wait_s = opening.wait_s
        if opening.readonly:
            self.check(name)
        elif lacking(self.connection, self.sql) or name not in self.namespaces():
            self._make(name, opening)
        row = row_of(self.connection, self.sql, name)
        assert row is not None, "it was made, or is there"
        self._check_key(name, row, opening.store_key)
        place = PostgresPlace(self, name, row.uid)
        self.objects(place, opening)
        place.prepare()
        return Attachment(place, partial(_opened, place, opening), partial(_opened, place.absolute(), opening))

    def _make(self, name: str, opening: Opening) -> None:
        """Makes a namespace, encrypted with a key; one that is plain is not made beside one that is encrypted."""
        wrapped = None if opening.store_key is None else root_key(opening.store_key, opening.ids)
        others = [] if lacking(self.connection, self.sql) else self.namespaces()
        for other in others if wrapped is None and name not in others else ():
            row = row_of(self.connection, self.sql, other)
            if row is not None and row.encrypted:
                raise plain_beside(f"{self.address} (namespace {name!r})", other)
        make(self.connection, self.sql, name, SystemIds().salt(), wrapped)

    def objects(self, place: PostgresPlace, opening: Opening, vault: NoEncryption = PLAIN) -> CellObjects | None:
        """The objects of a namespace's long contents, where the address names an object store.

        The first writer has the namespace record it. Raises StoreError where another one is recorded than is named.
        """
        row = row_of(self.connection, self.sql, place.name)
        named, recorded = self.blobs, None if row is None else row.blobs
        if not named:
            if recorded is not None:
                raise not_named(f"{self.address} (namespace {place.name!r}, at {recorded})")
            return None
        objects = CellObjects(objects_at(named, opening.wait_s), place.uid, vault)
        if recorded is None and not opening.readonly:
            objects.claim()
            recorded = set_blobs(self.connection, self.sql, place.name, objects.address)
        if recorded not in (None, objects.address):
            raise StoreError(
                f"{self.address} keeps long contents of namespace {place.name!r} at {recorded}, and the address names "
                f"{objects.address}; name that one by blobs=",
                code="blobs-elsewhere",
            )
        return objects

    def vault(self, name: str, opening: Opening) -> NoEncryption:
        """The encryption of a namespace."""
        if opening.store_key is None:
            return PLAIN
        keyring = Keyring(self._key_table(name, opening.wait_s), opening.store_key, opening.ids)
        return FrameEncryption(keyring, opening.ids, subject_of)


def _opened(place: PostgresPlace, opening: Opening) -> tuple[Log, Projection]:
    """The log and its views; of what is encrypted these are in memory."""
    me = f"{platform.node()}:{os.getpid()}:{SystemIds().salt()[:4].hex()}"
    vault = place.backend.vault(place.name, opening)
    try:
        log = PostgresLog(
            place.backend.conninfo,
            place.backend.address,
            place.name,
            place.backend.sql,
            me=me,
            readonly=opening.readonly,
            wait_s=opening.wait_s,
            objects=place.backend.objects(place, opening, vault),
            notify=place.backend.notify,
            vault=vault,
        )
    except BaseException:
        vault.close()
        raise

    def room() -> int:
        return ROOM_BYTES + ROOM_RATIO * place.log_bytes()

    try:
        if vault is not PLAIN:
            return log, in_memory(log)
        if opening.believed:
            place.checkpoints.begin(place.cache, log)
        return log, open_views(place.cache, log, readonly=False, wait_s=opening.wait_s, room=room)
    except BaseException:
        log.close()
        raise


def _parsed(address: str) -> tuple[dict[str, str], str]:
    """The parts of an address that are ours, and the rest as libpq reads it."""
    try:
        parts = urlsplit(address)
        query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        ours = {key: value for key, value in query if key in OURS}
        rest = urlencode([(key, value) for key, value in query if key not in OURS])
        conninfo = make_conninfo(urlunsplit(parts._replace(query=rest)))
        named = conninfo_to_dict(conninfo)
    except (ValueError, psycopg.Error) as error:
        raise InputError(
            f"the address is none that PostgreSQL takes ({' '.join(str(error).split())}); write "
            "postgresql://user@host/database?namespace=name",
            code="not-an-address",
        ) from error
    if not named.get("dbname"):
        raise InputError(
            "the address names no database; write postgresql://user@host/database", code="address-without-database"
        )
    return ours, conninfo
