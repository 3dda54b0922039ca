"""Parts of downloads on this machine's disk, so that a later process continues them.

Each dataset has a folder, which a process locks while it archives the dataset. Two processes on one
machine so fetch a dataset once. A part has a state, which tells what the server sent before the
bytes, and then the bytes in frames. A frame that was not written whole ends the part.
"""

import contextlib
import hashlib
import json
import os
import shutil
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from builder.sources.datasets.item import FilesetManifestFile
from functions.store.folder_lock import lock_folder, remove_abandoned

_FRAME = struct.Struct("<II")  # length and CRC-32 of the bytes that follow
_LONGEST = 1 << 26  # bytes of a frame
_SMALL = 1 << 22
"""Bytes of a file that is fetched again rather than kept in part."""
_SECONDS = 7 * 86_400.0
_STATE = 2
"""Version of the state of a part; parts with another one are not continued."""
State = Mapping[str, Any]


@dataclass(slots=True)
class FilePart:
    """The received part of a file, open for reading and appending. Errors of the disk end it."""

    path: Path
    of: "DatasetParts"
    _file: BinaryIO | None = None
    _size: int = 0

    def read(self) -> tuple[State, Iterator[bytes]] | None:
        """Return the state and the bytes of an earlier process, or None.

        What is written next follows the last bytes that were read.
        """
        with contextlib.suppress(OSError, ValueError):
            self._file = self.path.open("r+b")
            if (state := _read_frame(self._file)) is not None:
                self._size = self._file.tell()
                return json.loads(state), self._frames(self._file)
        self.forget()
        return None

    def _frames(self, file: BinaryIO) -> Iterator[bytes]:
        with contextlib.suppress(OSError):
            while (data := _read_frame(file)) is not None:
                yield data
                self._size = file.tell()
            file.truncate(file.seek(self._size))

    def begin(self, state: State) -> None:
        """Begin the part anew."""
        self.forget()
        with contextlib.suppress(OSError):
            self._file = self.path.open("w+b")
        self.write(json.dumps(dict(state)).encode())

    def write(self, data: bytes) -> None:
        """Append bytes. Without room the part is given up, and the download continues."""
        if self._file is None:
            return
        framed = _FRAME.pack(len(data), zlib.crc32(data)) + data
        self._size += len(framed)
        left = self.of.take(len(framed))
        try:
            self._file.write(framed)
            self._file.flush()
        except OSError:
            self.forget()
        if left < 0:
            self.forget()

    def close(self, *, whole: bool) -> None:
        """End the download; the part of a `whole` file is removed, unless it is to last."""
        if whole and not self.of.lasting:
            self.forget()
        elif self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None

    def forget(self) -> None:
        """Remove the part."""
        file, self._file = self._file, None
        self.of.take(-self._size)
        self._size = 0
        with contextlib.suppress(OSError):
            if file is not None:
                file.close()
            self.path.unlink(missing_ok=True)


@dataclass(slots=True)
class DatasetParts:
    """The parts of a dataset's files in `folder`, which may grow by `room` bytes.

    They are `lasting` if files count only together, as in a bundle: then whole files stay until
    `clear` as well, and small ones.
    """

    folder: Path
    room: int
    lasting: bool
    waited: bool
    """Another process worked on the dataset until now."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, size: int) -> int:
        """Use room for so many bytes, or give it back; return what is left, negative if none is."""
        with self._lock:
            self.room -= size
            return self.room

    def open(self, file: FilesetManifestFile) -> FilePart | None:
        """Return the part of a file, or None if none is kept."""
        size = file.size
        if (size or 0) > self.room or not (self.lasting or size is None or size >= _SMALL):
            return None
        digests = (file.md5, file.sha1, file.sha256, file.sha512)
        facts = [_STATE, file.path, file.platform_url, size, *digests]
        name = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]
        return FilePart(self.folder / name, self)

    def clear(self) -> None:
        """Remove all parts: the dataset is archived."""
        for path in self.folder.iterdir():
            if not path.name.startswith("."):
                path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class PartialFolder:
    """The parts of all datasets below `folder`: at most `most` bytes, and `free` stay on the disk.

    Parts that were not continued for a week are removed. `wall` counts seconds since 1970.
    """

    folder: Path
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    most: int = 16 << 30
    free: int = 1 << 30
    _swept: list[bool] = field(default_factory=list)

    @contextmanager
    def hold(
        self, dataset: str, go_on: Callable[[], None], *, lasting: bool
    ) -> Iterator[DatasetParts | None]:
        """Hold a dataset, and give its parts; None if this machine's disk refuses them.

        It waits while another process holds the dataset; `go_on` is called meanwhile and may raise.
        """
        self._sweep()
        folder = self.folder / hashlib.sha256(dataset.encode()).hexdigest()[:32]
        waited = False
        try:
            while (lock := lock_folder(folder)) is None:
                go_on()
                self.sleep(0.2)
                waited = True
        except OSError:
            yield None
            return
        with lock:
            used = 0
            for place, _, names in os.walk(self.folder):  # it passes folders that went
                for name in names:
                    with contextlib.suppress(OSError):
                        used += Path(place, name).stat().st_size
            room = min(self.most - used, shutil.disk_usage(self.folder).free - self.free)
            try:
                yield DatasetParts(folder, room, lasting, waited)
            finally:
                if all(path.name.startswith(".") for path in folder.iterdir()):
                    shutil.rmtree(folder, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove old parts, once."""
        if self._swept:
            return
        self._swept.append(True)
        for folder in self.folder.glob("*"):
            with contextlib.suppress(OSError):
                newest = max((path.stat().st_mtime for path in folder.iterdir()), default=0.0)
                if newest < self.wall() - _SECONDS:
                    remove_abandoned(folder)


def _read_frame(file: BinaryIO) -> bytes | None:
    """Return the bytes of the next frame, None if it is not whole. Raises OSError."""
    head = file.read(_FRAME.size)
    if len(head) < _FRAME.size:
        return None
    length, crc = _FRAME.unpack(head)
    data = file.read(length) if length <= _LONGEST else b""
    return data if len(data) == length and zlib.crc32(data) == crc else None
