"""The SHA-256 that a JSON object of the store has of itself, as its last member; and its values.

Data files and leaves are named by their content. A manifest, an index of dumps and a report of a
check are not: their own digest shows that a bit of them was changed.
"""

import hashlib
import re
from typing import Any, TypeVar

T = TypeVar("T")

_SEAL = re.compile(rb',"sha256":"([0-9a-f]{64})"}\s*\Z')
_LONGEST = 99  # bytes of a seal, and more


def seal(document: bytes) -> bytes:
    """Return a JSON object with its digest; it has other members, and ends with its brace."""
    digest = hashlib.sha256(document).hexdigest()
    return b'%b,"sha256":"%b"}' % (document.removesuffix(b"}"), digest.encode())


def check_seal(data: bytes) -> None:
    """Raise ValueError if `data` does not match its digest; Sheaf 0.2.0 wrote none."""
    match = _SEAL.search(data, max(0, len(data) - _LONGEST))
    if match and hashlib.sha256(data[: match.start()] + b"}").hexdigest() != match[1].decode():
        raise ValueError(f"its content does not match its sha256, {match[1].decode()}")


def build(kind: type[T], document: Any) -> T:
    """Return the dataclass `kind` of a document, as json.loads returns it.

    Nested dataclasses and tuples are built too. Members that are no fields are ignored. Raises
    ValueError with the place in the document: "... - at `$.sources[3].bytes`".
    """
    import msgspec

    return msgspec.convert(document, kind)
