"""Content codings: bytes that come packed, unpacked as they come and never too many of them."""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from builder.http.errors import NotHad

_STEP = 1 << 18
_ANY = zlib.MAX_WBITS | 32
_KNOWN = frozenset({"gzip", "x-gzip", "deflate"})
_NONE = frozenset({"", "identity", "none", "utf-8", "binary", "aws-chunked"})
"""What stands there without being a coding: what S3 has, and what people wrote there."""


def coding(headers: Mapping[str, str]) -> str | None:
    """Return the coding of an answer, None where it has none."""
    found = headers.get("content-encoding", "").strip().lower()
    return None if found in _NONE else found


def is_known(name: str) -> bool:
    """Tell whether it can be unpacked here."""
    return name in _KNOWN


@dataclass(slots=True)
class Unpacked:
    """Unpacks gzip, members one behind the other among it, and deflate."""

    _engine: Any = field(init=False, default_factory=lambda: zlib.decompressobj(_ANY))
    _begun: bool = field(init=False, default=False)

    def of(self, data: bytes) -> Iterator[bytes]:
        """Yield what the bytes hold, a little at a time. Raises NotHad if they are not packed."""
        while data:
            if self._engine.eof:  # another member, or what some writers fill up with
                if not (data := data.lstrip(b"\0")):
                    return
                self._engine = zlib.decompressobj(_ANY)
            try:
                found = self._engine.decompress(data, _STEP)
            except zlib.error as error:
                if self._begun:
                    raise NotHad("content-coding", str(error)) from error
                self._engine = zlib.decompressobj(-zlib.MAX_WBITS)  # deflate without its frame
                found = b""
            else:
                data = self._engine.unconsumed_tail or self._engine.unused_data
            self._begun = True
            if found:
                yield found

    def end(self) -> Iterator[bytes]:
        """Yield what is left. Raises NotHad if what was packed broke off."""
        try:
            found = self._engine.flush()
        except zlib.error as error:
            raise NotHad("content-coding", str(error)) from error
        if found:
            yield found
        if self._begun and not self._engine.eof:
            raise NotHad("content-coding", "what was packed broke off")


def body(headers: Mapping[str, str], came: Iterable[bytes], most: int) -> bytes:
    """Return a body of at most `most` bytes, unpacked. Raises NotHad for a larger one."""
    name = coding(headers)
    if name is not None and not is_known(name):
        raise NotHad("content-coding", name)
    found = bytearray()
    for some in plain(came) if name else came:
        found += some
        if len(found) > most:
            raise NotHad("too-large", f"more than {most:,} bytes")
    return bytes(found)


def plain(came: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what packed bytes hold. Raises NotHad if they are not packed, or break off."""
    unpacked = Unpacked()
    for chunk in came:
        yield from unpacked.of(chunk)
    yield from unpacked.end()


def first(headers: Mapping[str, str], came: Iterable[bytes], most: int) -> bytes:
    """Return the beginning of a body, of some `most` bytes, unpacked as far as that can be."""
    name = coding(headers)
    found = bytearray()
    if name is None or is_known(name):
        for some in plain(came) if name else came:
            found += some
            if len(found) >= most:
                break
    return bytes(found)
