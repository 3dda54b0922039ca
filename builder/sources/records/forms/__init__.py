"""Forms of files of metadata: one module each, which recognises a file by its content."""

from contextlib import suppress

from builder.sources.records.forms import columns, iso2709, json, xml
from builder.sources.records.forms.form import FileForm
from builder.sources.records.record import RecordsError

FORMS: tuple[FileForm, ...] = (
    FileForm("marc", "MARC in ISO 2709", iso2709.recognise, iso2709.read),
    FileForm("parquet", "Parquet", columns.recognise_parquet, columns.read_parquet),
    FileForm("xml", "XML", xml.recognise, xml.read),
    FileForm("json", "JSON", json.recognise, json.read),
    FileForm("csv", "CSV", columns.recognise_csv, columns.read_csv),
)
"""The forms, in the order in which a file is tried."""


def recognise(head: bytes, is_declared: bool = False) -> FileForm | None:
    """Return the form of a file by its first 64 KiB, after gunzip; None if it has none of these.

    `is_declared` says that the configuration names the file as records: then also counts what could
    be something else, as CSV of one column or a map of a site.
    """
    with suppress(RecordsError):  # XML of no known encoding, and with no element
        return next((form for form in FORMS if form.recognise(head, is_declared)), None)
    return None


def find_form(name: str) -> FileForm | None:
    """Return the form that a configuration names, None if it is none."""
    return next((form for form in FORMS if form.name == name), None)
