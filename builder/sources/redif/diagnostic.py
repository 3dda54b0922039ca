"""Diagnostics of ReDIF: codes with their meaning, and one diagnostic of a line."""

from typing import NamedTuple

ERROR, WARNING = "error", "warning"

CODES: dict[str, str] = {
    "unreadable": "the file cannot be opened, or not be read to its end",
    "empty-file": "the file has no bytes",
    "html": "the file is a page of HTML, as servers give in place of a missing file",
    "no-template": "no line of the file begins a template",
    "start-with-template-type": "an attribute stands before the first Template-Type",
    "bad-line": "a line before the first template is none of ReDIF",
    "template-too-large": "a template is longer than is read, and was cut off",
    "undecodable": "a template holds bytes of no encoding, or the character U+FFFD",
    "control-character": "a template holds control characters, which XML 1.0 forbids",
    "unknown-template-type": "Template-Type names none that ReDIF 1.0 has, or no version",
    "unknown-attribute": "no template of this type has the attribute, nor has a cluster in it",
    "misplaced-attribute": "an attribute of a cluster stands where none such is open",
    "cannot-repeat": "an attribute stands twice where once is allowed",
    "required-absent": "a template lacks an attribute that it must have",
    "key-empty": "an attribute that opens a cluster has no value",
    "invalid-value": "a value is none of its attribute's kind",
    "url-split": "a URL is broken after a hyphen, so that it cannot be joined safely",
    "url-space": "a URL has white space within, which was removed",
    "too-long": "a value is longer than is usual",
    "too-short": "a value is of one character",
    "deprecated": "an attribute that should no longer be used",
    "repeated-handle": "a handle of an earlier template that was read in the same run",
}
"""The meaning of each code, for people."""


class Diagnostic(NamedTuple):
    """A problem at a line of a file. `suggestion` is the likely meaning, or empty."""

    file: str
    line: int
    """From 1; 0 for the whole file."""
    code: str
    severity: str
    message: str
    suggestion: str = ""
