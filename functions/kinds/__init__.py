"""Kinds: what an item is to searches, pages and answers, one folder for each kind.

To add a kind is to add a folder with its row, and the row here. What a kind does in a publish is in
builder.kinds.
"""

from collections.abc import Mapping

from functions.kinds.captures import CAPTURE
from functions.kinds.collections import COLLECTION
from functions.kinds.datasets import FILE, FILESET
from functions.kinds.kind import ItemKind as ItemKind
from functions.kinds.records import HARVESTED as HARVESTED
from functions.kinds.records import RECORD
from functions.kinds.templates import TEMPLATE

ROWS: tuple[ItemKind, ...] = (CAPTURE, COLLECTION, TEMPLATE, FILESET, FILE, HARVESTED, RECORD)
"""The kinds, in the order in which reports list them."""
KINDS: Mapping[str, ItemKind] = {kind.name: kind for kind in ROWS}
"""The kinds by their names in the column `kind`."""
CAPTURES = frozenset(kind.name for kind in ROWS if kind.is_capture)
DOCUMENTED = frozenset(kind.name for kind in ROWS if kind.is_documented)
"""Kinds whose own columns are JSON in the column `document` of records."""
WHOLE = CAPTURES | DOCUMENTED
"""Kinds without rows in the table of documents: the table of records has their fields."""
WITH_FILES = tuple(sorted(kind.name for kind in ROWS if kind.has_files))
"""Kinds that list archived files: an item may change from one to another."""
IN_FORMATS = frozenset(kind.name for kind in ROWS if kind.in_format)
"""Kinds whose items are only in the formats in which they came."""
WITH_OFFERS = frozenset(kind.name for kind in ROWS if kind.has_offers)
"""Kinds whose formats the manifest names: `formats.toml` has no crosswalk of them."""
_UNKNOWN = ItemKind("", (), is_documented=False)


def find_kind(name: str) -> ItemKind:
    """Return the kind of that name; a plain one for a name of a newer store."""
    return KINDS.get(name, _UNKNOWN)
