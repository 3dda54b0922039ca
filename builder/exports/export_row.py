"""The row of an export format: what is known of it before its code is loaded."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Export:
    """A format: its name, which is that of its folder, a summary, and example commands.

    `faults` says when its command exits with 1; if empty, it never does.
    """

    name: str
    summary: str
    examples: tuple[str, ...]
    faults: str = ""


ELSEWHERE = "files of datasets are at archive.org, and not in the store"
"""`faults` of exports of datasets."""
UNREAD = "some captures could not be read"
"""`faults` of exports of captures."""
