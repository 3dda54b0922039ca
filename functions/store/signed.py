"""Requests that obstore signs and does not make itself; not imported before there is one to make.

What a server says against one is raised in obstore's words, which functions.store.refusal reads.
"""

import hashlib
from base64 import b64encode
from http.client import HTTPException
from pathlib import Path
from urllib.request import HTTPError, Request, urlopen

_LATE = {b"PreconditionFailed": 412, b"NoSuchUpload": 404}


def answer(asked: str | Request, timeout: float) -> bytes:
    """Return what a signed address answers; `timeout` is seconds for a byte. Raises OSError."""
    return told(asked, timeout)[0]


def told(asked: str | Request, timeout: float) -> tuple[bytes, str]:
    """Return what a signed address answers, and the ETag that it tells. Raises OSError."""
    try:
        with urlopen(asked, timeout=timeout) as found:
            return bytes(found.read()), found.headers.get("ETag", "")
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


def part(address: str, data: bytes, timeout: float) -> str:
    """Write a part of an object at a signed address, and return its tag. Raises OSError."""
    md5 = b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
    headers = {"Content-MD5": md5, "Content-Type": "application/octet-stream"}
    return told(Request(address, data, headers, method="PUT"), timeout)[1]


def begin(address: str, timeout: float) -> bytes:
    """Begin an object in parts, and return what the server says. Raises OSError."""
    headers = {"Content-Type": "application/octet-stream"}
    return answer(Request(address, b"", headers, method="POST"), timeout)


def complete(address: str, parts: bytes, timeout: float) -> bytes:
    """Put an object's parts together if nothing is there, and return what the server says.

    A server that takes long says 200 before it knows: what it says then may be an error as well,
    which is raised as OSError as all others are.
    """
    headers = {"Content-Type": "application/xml", "If-None-Match": "*"}
    found = answer(Request(address, parts, headers, method="POST"), timeout)
    if b"<Error>" in found:
        raise OSError(f"status: {_LATE.get(_code(found), 500)} {found!r}")
    return found


def abandon(address: str, timeout: float) -> None:
    """Remove the parts of an object that is not to be. Raises OSError."""
    answer(Request(address, method="DELETE"), timeout)


def _code(said: bytes) -> bytes:
    return said.partition(b"<Code>")[2].partition(b"</Code>")[0]
