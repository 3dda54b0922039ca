"""What an item holds that was harvested from another repository."""

from functions.snapshot.column import Column

_RECORDS = (
    '[{"prefix": "oai_dc", "schema": "http://...", "namespace": "http://...", "datestamp": '
    '"2026-11-22", "harvested": "2026-11-22T10:00:00Z", "metadata": "<oai_dc:dc ...>", '
    '"about": ["<provenance ...>"]}]'
)

HARVESTED = (
    Column("base_url", "VARCHAR", "the repository that it came from", "http://a.cz/oai"),
    Column("repository", "VARCHAR", "its name, as Identify has it", "Archive A"),
    Column("id", "VARCHAR", "its identifier there", "oai:a.cz:1"),
    Column("specs", "VARCHAR[]", "its setSpecs there, sorted", "[a, b:c]"),
    Column("records", "JSON", "it in each format that was harvested, by prefix", _RECORDS),
)
"""The document of an item of the kind `harvested`."""
