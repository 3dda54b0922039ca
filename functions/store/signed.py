"""Requests that obstore signs and does not make itself; not imported before there is one to make.

What a server says against one is raised in obstore's words, which functions.store.refusal reads.
"""

import hashlib
from base64 import b64encode
from http.client import HTTPException
from pathlib import Path
from urllib.request import HTTPError, Request, urlopen


def answer(asked: str | Request, timeout: float) -> bytes:
    """Return what a signed address answers; `timeout` is seconds for a byte. Raises OSError."""
    try:
        with urlopen(asked, timeout=timeout) as found:
            return bytes(found.read())
    except HTTPError as error:
        raise OSError(f"status: {error.code} {_said(error)!r}") from error
    except (OSError, HTTPException) as error:
        raise OSError(f"kind: Request {error}") from error


def _said(error: HTTPError) -> bytes:
    """Return what a refusal says, nothing where the connection ends before it has."""
    try:
        return bytes(error.read())
    except (OSError, HTTPException):
        return b""


def digest(path: Path) -> str:
    """Return the MD5 of a file in the form of the header Content-MD5. Raises OSError."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False))
    return b64encode(found.digest()).decode()


def upload(address: str, path: Path, md5: str, timeout: float) -> None:
    """Write a file at a signed address if nothing is there, little of it in memory at a time.

    The server takes nothing else than what has that digest. Raises OSError.
    """
    headers = {
        "Content-Length": str(path.stat().st_size),
        "Content-MD5": md5,
        "Content-Type": "application/octet-stream",
        "If-None-Match": "*",
    }
    with path.open("rb") as file:
        answer(Request(address, file, headers, method="PUT"), timeout)
