"""The schema of figures: counts of the whole archive, and what each publish changed.

All counts of captures are of live ones: neither deleted nor superseded.
"""

from functions.snapshot.item_tables import Column

_CAPTURES = (
    Column("captures", "BIGINT", "live captures with this value", "412"),
    Column("bytes", "BIGINT", "bytes of their payloads", "20110000"),
)
_CHANGES = (
    Column("added", "BIGINT", "items that the publish added; NULL if unknown", "97"),
    Column("changed", "BIGINT", "items that it gave a new version in the same state", "3"),
    Column("deleted", "BIGINT", "items that it deleted, or added as deleted", "1"),
    Column("restored", "BIGINT", "deleted items that it made live again", "0"),
    Column("live", "BIGINT", "live items of the kind after it", "412"),
    Column("gone", "BIGINT", "deleted items of the kind after it", "1"),
)

FIGURES = (
    Column("facet", "VARCHAR", "month, media_type, domain, host, kind or publish", "month"),
    Column("sequence", "INTEGER", "the publish, for the facet publish", "NULL"),
    Column("value", "VARCHAR", "month, media type, domain, host or kind; NULL: others", "2007-11"),
    Column("detail", "VARCHAR", "HTTP status of a media type; empty without one", "200"),
    Column("captures", "BIGINT", "live captures", "412"),
    Column("bytes", "BIGINT", "bytes of their payloads", "20110000"),
    Column("different", "BIGINT", "number of values, in the row of all values of a facet", "NULL"),
    *_CHANGES,
)
"""The most frequent values, and sums of the others.

A facet with many values has a row without value and detail: the sum of all its captures, with the
number of its values. Of media types, rows with a detail and no value sum up the others.
"""

PUBLISHES = (
    Column("sequence", "INTEGER", "number of the publish", "1"),
    Column("kind", "VARCHAR", "kind of item; each that the store had then", "capture"),
    *_CHANGES,
)

TABLES: dict[str, tuple[Column, ...]] = {
    "figures": FIGURES,
    "publishes": PUBLISHES,
    "hosts": (Column("host", "VARCHAR", "host name", "www.a.cz"), *_CAPTURES),
    "domains": (Column("domain", "VARCHAR", "registered domain", "a.cz"), *_CAPTURES),
    "media_types": (
        Column("media_type", "VARCHAR", "declared, else detected; empty if unknown", "text/html"),
        Column("status", "SMALLINT", "HTTP status; NULL if there is none", "200"),
        *_CAPTURES,
    ),
}

ORDER: dict[str, tuple[str, ...]] = {
    "figures": ("facet", "sequence", "value", "detail"),
    "publishes": ("sequence", "kind"),
    "hosts": ("host",),
    "domains": ("domain",),
    "media_types": ("media_type", "status"),
}
"""The columns that each table is sorted by; row groups are bounded by the first."""

COUNTED = {
    # facet: the table with all its values, and their column there
    "host": ("hosts", "host"),
    "domain": ("domains", "domain"),
    "media_type": ("media_types", "media_type"),
}

SHOWN = 100
"""Values of a facet, newest publishes, and earlier publishes that figures always have."""
