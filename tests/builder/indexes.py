"""Indexes made by hand, and what reading one gives."""

import functools
import io
import json

from builder.sources.webarchives.cdx import reader
from builder.sources.webarchives.cdx.reader import IndexFile
from builder.sources.webarchives.cdx.text import find_form
from builder.sources.webarchives.rules import DocumentRules
from functions.store import engine

ALL = DocumentRules(redirects=True, errors=True)
SHA1 = "B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A"
NOTHING = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
"""The SHA-1 of no bytes."""


def line(url="http://www.a.cz/page", date="20080430204826", key="cz,a)/page", **values):
    """Return a CDXJ line; a value of None is left out."""
    given = {
        "url": url,
        "mime": "text/html",
        "status": "200",
        "digest": SHA1,
        "length": "1043",
        "offset": "333",
        "filename": "a.warc.gz",
        **values,
    }
    text = json.dumps({k: v for k, v in given.items() if v is not None})
    return f"{key} {date} {text}".encode()


class Read:
    """An index that was read: captures as dictionaries by column, faults, and what was counted."""

    def __init__(self, data, folder, rules=ALL, *, threads=1, size=1 << 20, name="i.cdxj", sets=()):
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.form = find_form(data[: 1 << 14])
        self.told = []
        what = IndexFile(name, folder, "000007", rules, sets)
        self.given = reader.read(
            io.BytesIO(data),
            what,
            self.form or "cdxj",
            threads,
            lambda *report: self.told.append(report),
            size,
        )
        self.captures = rows(folder, "captures")
        self.faults = rows(folder, "faults")

    def codes(self):
        return sorted(fault["code"] for fault in self.faults)

    def identities(self):
        return sorted(capture["identity"] for capture in self.captures)


@functools.cache
def _connection():
    return engine.connect()


def rows(folder, table):
    """Return the rows of a table's files in a folder, file by file."""
    return rows_of(sorted(folder.glob(f"{table}-*.parquet")))


def rows_of(paths):
    if not paths:
        return []
    files = {"f": list(map(str, paths))}
    result = _connection().execute(f"SELECT * FROM {engine.table('$f')}", files)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
