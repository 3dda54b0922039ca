"""The shape of a form of files: how it is recognised and read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from builder.sources.records.forms.stream import ByteSource
from builder.sources.records.record import ReadOptions, RecordItem


@dataclass(frozen=True, slots=True)
class FileForm:
    """A form of files: its name in the configuration, and what it is called in messages.

    `recognise` is given the first 64 KiB of a file, after gunzip, its name, and whether the
    configuration names the file: then nothing else can be meant. `read` yields the records of a
    file or stream in order, and faults. It raises RecordsError where the file cannot be read on;
    the records before that are whole.
    """

    name: str
    title: str
    recognise: Callable[[bytes, str, bool], bool]
    read: Callable[[ByteSource, ReadOptions], Iterator[RecordItem]]
