"""Handles: the names of archives, series, documents, persons and institutions."""

import hashlib
import re

_AUTHORITIES = {"repec": "RePEc", "relis": "ReLIS", "mapin": "mapin"}
_PERSON = re.compile(r"((?:RePEc|ReLIS|mapin):per:\d{4}-\d\d-\d\d:)(.*)", re.DOTALL)

_ARCHIVE = r"(?:RePEc|ReLIS|mapin):[a-z]{3}"
_SERIES = _ARCHIVE + r":[a-z\d]{6}"
_HANDLE_CODE = r"[!\"%&'()*+,\-./:<>=?@\\_`{}~\da-z]+"
HANDLE_FORMS: dict[str, re.Pattern[str]] = {
    "archive": re.compile(_ARCHIVE, re.IGNORECASE),
    "series": re.compile(_SERIES, re.IGNORECASE),
    "document": re.compile(f"{_SERIES}:{_HANDLE_CODE}", re.IGNORECASE),
    "institution": re.compile(_ARCHIVE + r":[a-z\d]{7}", re.IGNORECASE),
    "person": re.compile(_ARCHIVE + r":\d{4}-[01]\d-[0-3]\d:\S+|p[a-z]+\d+", re.IGNORECASE),
}
"""What a whole handle of each kind matches."""


def canonical_handle(handle: str) -> str:
    """Return the form that is the same however a handle is written.

    All of it is in lower case but the authority, which has its own, and the name of a person by
    date (RePEc:per:1974-08-14:...), which is in upper case. White space becomes single spaces: a
    handle with spaces within is no good one, but still this one.
    """
    lower = " ".join(handle.split()).lower()
    head, colon, tail = lower.partition(":")
    if colon and head in _AUTHORITIES:
        lower = f"{_AUTHORITIES[head]}:{tail}"
        if tail.startswith("per:") and (match := _PERSON.fullmatch(lower)):
            return match[1] + match[2].upper()
    return lower


class Handles:
    """The handles that were read so far, each with the place of its first template.

    Of each some two hundred bytes are held, whatever its length.
    """

    def __init__(self) -> None:
        self._files: list[str] = []
        self._places: dict[int, int] = {}

    def add(self, handle: str, file: str, line: int) -> tuple[str, int] | None:
        """Note a canonical handle; return the file and line where it was first, None if it is new.

        Two handles pass for one with a probability of one in 10^19 for each pair.
        """
        key = int.from_bytes(
            hashlib.blake2b(handle.encode("utf-8", "replace"), digest_size=8).digest(), "big"
        )
        earlier = self._places.get(key)
        if earlier is not None:
            return self._files[earlier >> 32], earlier & 0xFFFFFFFF
        if not self._files or self._files[-1] != file:
            self._files.append(file)
        self._places[key] = (len(self._files) - 1) << 32 | line
        return None
