"""Backlog: the events of a section of which it is not known yet what in it is damaged.

A member tells of damage at its end only. Where it holds several records, their captures and their
requests wait here, on the disk if they are many, until the section ends.
"""

import contextlib
import errno
import pickle
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import BinaryIO, cast

from builder.sources.capture import CaptureDraft, Captures, action_if_damaged
from builder.sources.event import Event, Fault
from builder.sources.request import CaptureRequest
from functions.archive.stream import RecordStream
from functions.snapshot.errors import NO_SPACE, StoreError

_IN_MEMORY = 1 << 22  # bytes


@dataclass(slots=True)
class PendingCapture:
    """A draft, the faults of its record, and the first and last of the members that hold it."""

    draft: CaptureDraft
    faults: list[Fault]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """The event of a record with its named fields; `request` is what a request record asked.

    `first` and `last` are the members that hold a request record which waits in a backlog.
    """

    event: Event | PendingCapture
    fields: Mapping[bytes, bytes]
    request: CaptureRequest | None
    first: int = 0
    last: int = 0


class Backlog:
    """Keeps events in their order, in bounded memory, until they are released."""

    def __init__(self) -> None:
        self._file: BinaryIO | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, event: Event | PendingCapture | RecordEvent) -> None:
        """Keep an event. Raises StoreError."""
        with _wrap_scratch_errors():
            if self._file is None:
                spool = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (release closes it)
                self._file = cast(BinaryIO, spool)
            pickle.dump(event, self._file, pickle.HIGHEST_PROTOCOL)
        self._count += 1

    def release(self, tape: RecordStream, captures: Captures) -> Iterator[Event | RecordEvent]:
        """Yield the events and forget them, captures marked where a member of theirs failed.

        A request of which a member failed is not told. Raises StoreError.
        """
        file, count = self._file, self._count
        self._file, self._count = None, 0
        if file is None:
            return
        with file:
            with _wrap_scratch_errors():
                file.seek(0)
            for _ in range(count):
                with _wrap_scratch_errors():
                    given = pickle.load(file)
                event = given.event if isinstance(given, RecordEvent) else given
                if event is not given and given.request and tape.damage(given.first, given.last):
                    given = event
                if not isinstance(event, PendingCapture):
                    yield given
                    continue
                capture, *faults = _finish(event, tape, captures)
                yield replace(given, event=capture) if isinstance(given, RecordEvent) else capture
                yield from faults


@contextlib.contextmanager
def _wrap_scratch_errors() -> Iterator[None]:
    """Turn what goes wrong with the scratch file into a StoreError: no archive is to blame."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(f"{NO_SPACE} ({tempfile.gettempdir()})") from error
        raise StoreError(f"scratch files cannot be used: {error.strerror}") from error


def _finish(pending: PendingCapture, tape: RecordStream, captures: Captures) -> Iterator[Event]:
    damage = tape.damage(pending.first, pending.last)
    yield captures.finish(pending.draft, damage)
    for fault in pending.faults:
        done = action_if_damaged(fault.code, fault.done) if damage else fault.done
        yield replace(fault, done=done)
