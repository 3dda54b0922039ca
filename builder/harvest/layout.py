"""The layout of a folder of harvests: what may be read of it, and by what names.

<name>/harvest.json           what one harvest asks for, what came of it, and its parts; replaced
                              whole, and what it does not name is not there
<name>/part-<run>-<n>.parquet rows of harvest.row.ROW in the order in which they came
<name>/part-<run>-<n>.jsonl   the same as JSON lines, where that was asked for
<name>/part-<run>-<n>.xml     the same as <records> of raw record elements, likewise
<name>/sets.json              [setSpec, setName] of the repository's sets, where it has any
<name>/seen.sqlite            an index of what was seen; it is made again where it is not there

There is one harvest for each base URL, prefix and set. Of rows with one identifier the last counts.
"""

import hashlib
import re
from urllib.parse import urlsplit

STATE = "harvest.json"
SETS = "sets.json"
SEEN = "seen.sqlite"
FORMS = ("parquet", "jsonl", "xml")
_PART = re.compile(r"part-([0-9]{6})-([0-9]{6})\.(parquet|jsonl|xml)")
_ODD = re.compile(r"[^a-z0-9.]+")


def name(base_url: str, prefix: str, set_: str | None) -> str:
    """Return the folder's name of one harvest: readable, and no two harvests have the same."""
    parts = urlsplit(base_url)
    shown = "-".join(filter(None, (parts.netloc, parts.path, prefix, set_ or "")))
    digest = hashlib.sha256("\n".join((base_url, prefix, set_ or "")).encode()).hexdigest()
    return f"{_ODD.sub('-', shown.lower()).strip('-.')[:80]}-{digest[:8]}"


def part(run: int, number: int, form: str) -> str:
    """Return the name of a part of a run; the names of a harvest's parts sort as they came."""
    return f"part-{run:06}-{number:06}.{form}"


def is_part(file: str) -> bool:
    """Tell whether a file of that name is a part."""
    return _PART.fullmatch(file) is not None


def run(file: str) -> int:
    """Return the number of the run that a part is of."""
    match = _PART.fullmatch(file)
    return int(match[1]) if match else 0
