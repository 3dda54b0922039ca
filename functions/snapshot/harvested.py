"""Columns of items that were harvested from another repository."""

from functions.snapshot.column import Column

_RECORDS = (
    '[{"prefix": "oai_dc", "schema": "http://...", "namespace": "http://...", "datestamp": '
    '"2026-11-22", "harvested": "2026-11-22T10:00:00Z", "metadata": "<oai_dc:dc ...>", '
    '"about": ["<rights ...>"], "origins": [], "digest": "9f86d081..."}]'
)

HARVESTED = (
    Column("base_url", "VARCHAR", "base URL of the repository", "http://a.cz/oai"),
    Column("repository", "VARCHAR", "its repositoryName in Identify", "Archive A"),
    Column("id", "VARCHAR", "its identifier there", "oai:a.cz:1"),
    Column("specs", "VARCHAR[]", "its setSpecs there, sorted", "[a, b:c]"),
    Column("records", "JSON", "its metadata in each harvested format, sorted by prefix", _RECORDS),
)
"""The document of an item of the kind `harvested`."""

INTAKE = (
    Column("identifier", "VARCHAR", "its identifier, if it can be kept", "oai:a.cz:1"),
    Column("other", "VARCHAR", "its identifier, if it cannot be kept", "oai:b.cz:harvested,a.cz,1"),
    Column("base_url", "VARCHAR", "base URL of the repository", "http://a.cz/oai"),
    Column("repository", "VARCHAR", "its repositoryName in Identify", "Archive A"),
    Column("id", "VARCHAR", "its identifier there", "oai:a.cz:1"),
    Column("prefix", "VARCHAR", "metadata prefix", "oai_dc"),
    Column("deleted", "BOOLEAN", "whether the repository declares it deleted", "false"),
    Column("datestamp", "VARCHAR", "its datestamp there", "2026-11-22"),
    Column("harvested", "VARCHAR", "time of the harvest", "2026-11-22T10:00:00Z"),
    Column("specs", "VARCHAR[]", "its setSpecs there, sorted", "[a, b:c]"),
    Column("sets", "VARCHAR[]", "most specific sets, sorted", "[from:a.cz:a, repository:a.cz]"),
    Column("entry", "VARCHAR", "its metadata in that format, as JSON; NULL if deleted", "{...}"),
    Column("digest", "VARCHAR", "SHA-256 of that without the time of the harvest", "9f86d081..."),
)
"""A record of the intake as it was received; for each item and format, the last one counts."""

NAMES = (
    Column("set_spec", "VARCHAR", "a set of harvested items", "from:a.cz:a"),
    Column("name", "VARCHAR", "its name in the repository", "Theses"),
)
"""Set names from the harvested repositories."""
