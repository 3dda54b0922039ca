"""Small archives made by hand, and a reader of them that holds what must always hold."""

import base64
import gzip
import hashlib
import io
import zipfile
from collections.abc import Iterable

import zstandard

from builder.intake.captures import FAULT_CODES, Capture, Fault
from builder.sources.webarchives.events import Event, Skipped
from builder.sources.webarchives.rules import DocumentRules
from builder.sources.webarchives.webarchive import ArchiveReader

ALL = DocumentRules(redirects=True, errors=True)
PAGE = b"<html lang='cs'><head><title>Zpr\xc3\xa1vy</title></head><body>text</body></html>"
URL = b"http://www.a.cz/page"
DATE = b"2008-04-30T20:48:26Z"


def http(body: bytes = PAGE, *fields: bytes, status: bytes = b"HTTP/1.1 200 OK", eol=b"\r\n"):
    return eol.join((status, *(fields or (b"Content-Type: text/html; charset=utf-8",)), b"", body))


def chunked(data: bytes, size: int = 20) -> bytes:
    """Return a body in chunks, of which the second has an extension."""
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    sizes = (b"%x" % len(p) + b";x=y" * (n == 1) for n, p in enumerate(pieces))
    lines = (b"%b\r\n%b\r\n" % pair for pair in zip(sizes, pieces, strict=True))
    return b"".join(lines) + b"0\r\n\r\n"


def warc(
    block: bytes,
    *extra: bytes,
    kind: bytes = b"response",
    url: bytes | None = URL,
    date: bytes | None = DATE,
    length: bytes | None = None,
    eol: bytes = b"\r\n",
    version: bytes = b"WARC/1.0",
    end: bytes | None = None,
) -> bytes:
    fields = [version, b"WARC-Type: " + kind]
    if url is not None:
        fields.append(b"WARC-Target-URI: " + url)
    if date is not None:
        fields.append(b"WARC-Date: " + date)
    fields += extra
    if length is None:
        length = str(len(block)).encode()
    if length != b"none":
        fields.append(b"Content-Length: " + length)
    return eol.join((*fields, b"", block)) + (eol * 2 if end is None else end)


def arc(
    block: bytes,
    url: bytes = URL,
    date: bytes = b"20080430204826",
    mime: bytes = b"text/html",
    length: bytes | None = None,
) -> bytes:
    declared = str(len(block)).encode() if length is None else length
    return b" ".join((url, b"192.0.2.1", date, mime, declared)) + b"\n" + block + b"\n"


def filedesc(version: bytes = b"1 0", line: bytes | None = None) -> bytes:
    names = line or b"URL IP-address Archive-date Content-type Archive-length"
    block = version + b" InternetArchive\n" + names + b"\n"
    return arc(block, b"filedesc://a.arc", b"20080430204825", b"text/plain")


def zipped(record: bytes) -> bytes:
    return gzip.compress(record, mtime=0)


def members(records: Iterable[bytes]) -> bytes:
    return b"".join(map(zipped, records))


def archived(*files: tuple[str, bytes | str], method: int = zipfile.ZIP_STORED) -> bytes:
    """Return a zip with these files, as a WACZ is one."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return out.getvalue()


def sha1(data: bytes) -> str:
    return base64.b32encode(hashlib.sha1(data).digest()).decode()


def events(
    data: bytes, rules: DocumentRules = ALL, name: str = "a", *, further: bool = False
) -> list[Event]:
    found = list(ArchiveReader(io.BytesIO(data), name, rules, further=further))
    for event in found:
        if isinstance(event, Fault):
            assert event.code in FAULT_CODES
            assert event.done, event
            assert event.detail.isprintable()
    return found


def captures(data: bytes, rules: DocumentRules = ALL, name: str = "a") -> list[Capture]:
    return [e for e in events(data, rules, name) if isinstance(e, Capture)]


def urls(data: bytes) -> list[str]:
    return [capture.url for capture in captures(data)]


def skips(data: bytes, rules: DocumentRules = ALL) -> list[str]:
    return [e.reason for e in events(data, rules) if isinstance(e, Skipped)]


def faults(data: bytes, rules: DocumentRules = ALL) -> list[Fault]:
    return [e for e in events(data, rules) if isinstance(e, Fault)]


def codes(data: bytes, rules: DocumentRules = ALL) -> list[str]:
    return [f.code for f in faults(data, rules)]


def frame(
    data: bytes,
    dictionary: zstandard.ZstdCompressionDict | None = None,
    *,
    named: bool = True,
    checked: bool = True,
    sized: bool = True,
) -> bytes:
    """Return a zstd frame, with the header fields that the proposal for WARC asks for, or not."""
    return zstandard.ZstdCompressor(
        level=3,
        dict_data=dictionary,
        write_checksum=checked,
        write_content_size=sized,
        write_dict_id=named,
    ).compress(data)


def frames(
    records: Iterable[bytes],
    dictionary: zstandard.ZstdCompressionDict | None = None,
    named: bool = True,
) -> bytes:
    return b"".join(frame(record, dictionary, named=named) for record in records)


def skippable(data: bytes, number: int = 13) -> bytes:
    return bytes([0x50 + number]) + b"\x2a\x4d\x18" + len(data).to_bytes(4, "little") + data


def dictionary(number: int = 40_000, padding: int = 0) -> zstandard.ZstdCompressionDict:
    """Return a dictionary made of records like those here."""
    samples = [
        warc(http(b"<p>%d</p>" % (n * n) + PAGE), url=b"http://a%d.cz/%d" % (n, n))
        for n in range(300)
    ]
    made = zstandard.train_dictionary(4096, samples, dict_id=number).as_bytes()
    # Its last part is content, which may be of any length.
    head, content = made[:-1000], made[-1000:]
    return zstandard.ZstdCompressionDict(head + bytes(padding) + content)


def dictionary_frame(made: zstandard.ZstdCompressionDict, packed: bool = True) -> bytes:
    return skippable(frame(made.as_bytes()) if packed else made.as_bytes())
