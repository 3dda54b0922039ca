"""Bodies of any size that take no memory: the same seed gives the same bytes."""

import hashlib
import io
import random
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

_BLOCK = 1 << 20
STEP = 1 << 16


@dataclass(frozen=True)
class Generated:
    """`size` bytes of `seed`, that do not compress; no two blocks of a body are alike."""

    size: int
    seed: int = 1
    _block: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        many = min(self.size, _BLOCK) + 8
        object.__setattr__(self, "_block", random.Random(self.seed).randbytes(many))

    def __len__(self) -> int:
        return self.size

    def read(self, offset: int, many: int) -> bytes:
        """Return the bytes from `offset`, as far as they go in one block."""
        number, within = divmod(offset, _BLOCK)
        many = max(0, min(many, self.size - offset, _BLOCK - within))
        if within >= 8:
            return self._block[within : within + many]
        data = number.to_bytes(8, "big") + self._block[8 : within + many]
        return data[within : within + many]

    def chunks(self, offset: int = 0, until: int | None = None) -> Iterator[bytes]:
        end = self.size if until is None else min(until, self.size)
        while offset < end:
            data = self.read(offset, min(STEP, end - offset))
            yield data
            offset += len(data)

    @cached_property
    def all(self) -> bytes:
        """All of it; for small ones."""
        return b"".join(self.chunks())

    def digest(self, name: str) -> str:
        return digest(name, self)


Body = bytes | Generated


def chunks(body: Body, offset: int = 0, until: int | None = None) -> Iterator[bytes]:
    """Yield the bytes of a body from `offset` to `until`."""
    if isinstance(body, Generated):
        yield from body.chunks(offset, until)
        return
    end = len(body) if until is None else min(until, len(body))
    for start in range(offset, end, STEP):
        yield body[start : min(start + STEP, end)]


def whole(body: Body) -> bytes:
    """Return all bytes of a body; for small ones."""
    return b"".join(chunks(body))


@lru_cache(maxsize=256)
def digest(name: str, body: Body) -> str:
    """Return a digest of a body (md5, sha1, sha256, sha512, crc32) in hexadecimal digits."""
    if name == "crc32":
        found = 0
        for data in chunks(body):
            found = zlib.crc32(data, found)
        return f"{found:08x}"
    made = hashlib.new(name, usedforsecurity=False)
    for data in chunks(body):
        made.update(data)
    return made.hexdigest()


def zipped(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip of members, as others make them."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()
