"""The formats of archive files, which share an application id with logs."""

from __future__ import annotations

from vmstore.log.file import FORMATS as LOG_FORMATS

FORMAT = 1002  # far from those of logs, which a file like this is not
ENCRYPTED_FORMAT = 1003  # as that, with its frames under keys
FORMATS = (FORMAT, ENCRYPTED_FORMAT)
assert not {*FORMATS} & {*LOG_FORMATS}, "an archive and a log, which share an application id, are distinguishable"
