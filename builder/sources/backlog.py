"""Backlog: the events of a section of which it is not known yet what in it is damaged.

A member tells of damage at its end only. Where it holds several records, their captures wait here,
on the disk if they are many, until the section ends.
"""

import pickle
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import BinaryIO, cast

from builder.sources.capture import Captures, Draft, settle_flaw
from builder.sources.event import Event, Fault
from builder.sources.request import Request
from functions.archive.tape import Tape

_IN_MEMORY = 1 << 22  # bytes


@dataclass(slots=True)
class Pending:
    """A draft, the faults of its record, and the first and last of the members that hold it."""

    draft: Draft
    faults: list[Fault]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Noted:
    """The event of a record with its named fields; `request` is what a request record asked."""

    event: Event | Pending
    fields: Mapping[bytes, bytes]
    request: Request | None


class Backlog:
    """Keeps events in their order, in bounded memory, until they are released."""

    def __init__(self) -> None:
        self._file: BinaryIO | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, event: Event | Pending | Noted) -> None:
        """Keep an event."""
        if self._file is None:
            spool = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (release closes it)
            self._file = cast(BinaryIO, spool)
        pickle.dump(event, self._file, pickle.HIGHEST_PROTOCOL)
        self._count += 1

    def release(self, tape: Tape, captures: Captures) -> Iterator[Event | Noted]:
        """Yield the events and forget them, captures marked where a member of theirs failed."""
        file, count = self._file, self._count
        self._file, self._count = None, 0
        if file is None:
            return
        with file:
            file.seek(0)
            for _ in range(count):
                given = pickle.load(file)
                event = given.event if isinstance(given, Noted) else given
                if not isinstance(event, Pending):
                    yield given
                    continue
                capture, *faults = _settle(event, tape, captures)
                yield replace(given, event=capture) if isinstance(given, Noted) else capture
                yield from faults


def _settle(pending: Pending, tape: Tape, captures: Captures) -> Iterator[Event]:
    damage = tape.damage(pending.first, pending.last)
    yield captures.settle(pending.draft, damage)
    for fault in pending.faults:
        done = settle_flaw(fault.code, fault.done) if damage else fault.done
        yield replace(fault, done=done)
