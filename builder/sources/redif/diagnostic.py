"""Diagnostics of ReDIF: codes with their meaning, and one diagnostic of a line."""

from typing import NamedTuple

ERROR, WARNING = "error", "warning"

CODES: dict[str, str] = {
    "unreadable": "the file cannot be opened, or cannot be read to its end",
    "empty-file": "the file has no bytes",
    "html": "the file is a page of HTML, which servers often send for a missing file",
    "no-template": "no line of the file begins a template",
    "start-with-template-type": "an attribute is before the first Template-Type",
    "bad-line": "a line before the first template is not ReDIF",
    "template-too-large": "a template exceeds the limit, and was cut off",
    "undecodable": "a template has undecodable bytes, or the character U+FFFD",
    "control-character": "a template has control characters, which XML 1.0 forbids",
    "unknown-template-type": "Template-Type has a type unknown to ReDIF 1.0, or no version",
    "unknown-attribute": "neither this type of template nor its clusters have the attribute",
    "misplaced-attribute": "an attribute of a cluster is where no such cluster is open",
    "cannot-repeat": "an attribute that is allowed once occurs again",
    "required-absent": "a template lacks a required attribute",
    "key-empty": "an attribute that opens a cluster has no value",
    "invalid-value": "a value is invalid for its attribute",
    "url-split": "a URL is broken after a hyphen, so it cannot be joined safely",
    "url-space": "a URL contained white space, which was removed",
    "too-long": "a value is longer than usual",
    "too-short": "a value has one character",
    "deprecated": "an attribute is deprecated",
    "repeated-handle": "an earlier template of the same run has this handle",
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
