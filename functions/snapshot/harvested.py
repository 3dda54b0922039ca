"""Columns of items that were harvested from another repository."""

from functions.snapshot.column import Column

_RECORDS = (
    '[{"prefix": "oai_dc", "schema": "http://...", "namespace": "http://...", "datestamp": '
    '"2026-11-22", "harvested": "2026-11-22T10:00:00Z", "metadata": "<oai_dc:dc ...>", '
    '"about": ["<rights ...>"], "origins": [], "digest": "9f86d081..."}]'
)

HARVESTED = (
    Column("base_url", "VARCHAR", "the repository that it came from", "http://a.cz/oai"),
    Column("repository", "VARCHAR", "its name, as Identify has it", "Archive A"),
    Column("id", "VARCHAR", "its identifier there", "oai:a.cz:1"),
    Column("specs", "VARCHAR[]", "its setSpecs there, sorted", "[a, b:c]"),
    Column("records", "JSON", "it in each format that was harvested, by prefix", _RECORDS),
)
"""The document of an item of the kind `harvested`."""

INTAKE = (
    Column("identifier", "VARCHAR", "the item's identifier, if it can keep it", "oai:a.cz:1"),
    Column("other", "VARCHAR", "its identifier, if it cannot", "oai:b.cz:harvested,a.cz,1"),
    Column("base_url", "VARCHAR", "the repository that it came from", "http://a.cz/oai"),
    Column("repository", "VARCHAR", "its name, as Identify has it", "Archive A"),
    Column("id", "VARCHAR", "its identifier there", "oai:a.cz:1"),
    Column("prefix", "VARCHAR", "the format in which it came", "oai_dc"),
    Column("deleted", "BOOLEAN", "whether the repository says that it is deleted", "false"),
    Column("datestamp", "VARCHAR", "its datestamp there", "2026-11-22"),
    Column("harvested", "VARCHAR", "when it came", "2026-11-22T10:00:00Z"),
    Column("specs", "VARCHAR[]", "its setSpecs there, sorted", "[a, b:c]"),
    Column("sets", "VARCHAR[]", "most specific sets, sorted", "[from:a.cz:a, repository:a.cz]"),
    Column("entry", "VARCHAR", "it in that format, as JSON; NULL for a deleted one", "{...}"),
    Column("digest", "VARCHAR", "SHA-256 of that, but for when it came", "9f86d081..."),
)
"""A record of the intake as it was received; for each item and format, the last one counts."""

NAMES = (
    Column("set_spec", "VARCHAR", "a set of harvested items", "from:a.cz:a"),
    Column("name", "VARCHAR", "its name, as its repository has it", "Theses"),
)
"""Set names from the harvested repositories."""
