"""A listing as the server gives it: with keys that obstore cannot name, one of which keeps it
from listing all that lie beside it.
"""

from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote, unquote_plus, urlencode
from xml.etree import ElementTree

from functions.snapshot.errors import StoreError
from functions.store import signed
from functions.store.client import Client
from functions.store.object import Listed

_WHAT = {"list-type": "2", "encoding-type": "url"}


def listed(client: Client, prefix: str) -> list[Listed]:
    """Return what lies below `prefix`, which is empty or ends with `/`. Raises StoreError."""
    found: list[Listed] = []
    further: dict[str, str] = {}
    while True:
        try:
            page = ElementTree.fromstring(_page(client, prefix, {**_WHAT, **further}))
            found += map(_listed, page.iterfind("{*}Contents"))
        except (ElementTree.ParseError, ValueError) as error:
            where = client.where(prefix)
            raise StoreError(f"{where}: the server's listing cannot be read: {error}") from error
        token = page.findtext("{*}NextContinuationToken")
        if page.findtext("{*}IsTruncated") != "true" or not token:
            return found
        further = {"continuation-token": token}


def _page(client: Client, prefix: str, query: Mapping[str, str]) -> bytes:
    """Return the bucket's own answer; the `/` behind the query is a part of its last value."""
    last = f"prefix={quote(prefix[:-1])}" if prefix else "x-id=ListObjectsV2"

    def request() -> bytes:
        address = client.address("GET", "", f"{urlencode(query)}&{last}")
        return signed.answer(address, client.connection.timeout)

    return client.tried(prefix, "s3:ListBucket", request)


def is_askable(key: str) -> bool:
    """Tell whether obstore can ask for an object of that key, and for no other instead."""
    parts = key.split("/")
    odd = any(ord(character) < 0x20 or character == "\x7f" for character in key)
    return all(parts) and not {".", ".."} & set(parts) and not odd


def _listed(one: ElementTree.Element) -> Listed:
    key, size, modified = (
        one.findtext(f"{{*}}{name}", "") for name in ("Key", "Size", "LastModified")
    )
    return Listed(unquote_plus(key), int(size), datetime.fromisoformat(modified))
