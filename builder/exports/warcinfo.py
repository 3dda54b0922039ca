"""The record at the beginning of a WARC file, and what it says about the export."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from builder import distribution
from builder.exports import record_copy
from functions.snapshot import instant


@dataclass(frozen=True, slots=True)
class About:
    """Metadata of an export. `main` is the URL of the first page to show, if any."""

    title: str
    description: str
    created: datetime
    main: str | None = None


def warcinfo(name: str, about: About) -> Iterator[bytes]:
    """Yield the warcinfo record at the beginning of a WARC file (ISO 28500, section 6.2)."""
    description = {
        "software": software(),
        "format": "WARC File Format 1.1",
        "isPartOf": about.title,
        "description": about.description,
    }
    body = "".join(f"{key}: {value}\r\n" for key, value in description.items() if value).encode()
    date = instant.to_text(about.created)
    fields = (
        ("WARC-Type", b"warcinfo"),
        ("WARC-Date", date.encode("ascii")),
        ("WARC-Record-ID", record_copy.name(name, date, about.title)),
        ("WARC-Filename", name.encode("ascii")),
        ("Content-Type", b"application/warc-fields"),
        ("Content-Length", b"%d" % len(body)),
    )
    return record_copy.member((record_copy.header(fields), body, record_copy.END))


def software() -> str:
    """Return the name and version of this software."""
    return f"Sheaf {distribution.version()}"
