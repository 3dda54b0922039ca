"""Forms of files of metadata: one module each, which recognises a file by its content."""

from builder.sources.records.forms import iso2709, xml
from builder.sources.records.forms.form import FileForm

FORMS: tuple[FileForm, ...] = (
    FileForm("marc", "MARC in ISO 2709", iso2709.recognise, iso2709.read),
    FileForm("xml", "XML", xml.recognise, xml.read),
)
"""The forms, in the order in which a file is tried."""


def recognise(head: bytes, name: str, is_declared: bool = False) -> FileForm | None:
    """Return the form of a file by its first bytes, None if it has none of these.

    `is_declared` says that the configuration names the file as records: then also CSV and JSON
    count that could be something else.
    """
    return next((form for form in FORMS if form.recognise(head, name, is_declared)), None)


def find_form(name: str) -> FileForm | None:
    """Return the form that a configuration names."""
    return next((form for form in FORMS if form.name == name), None)
