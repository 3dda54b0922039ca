"""Own records: files of metadata that libraries and repositories have."""

from builder.sources.source import Source

RECORDS = Source(
    __name__,
    "files of records: MARC, MARCXML, MODS, Dublin Core, EAD, METS, DataCite, Crossref or any XML, "
    "answers of OAI-PMH, CSV, JSON, Parquet",
    noun=("record",),
    count=lambda run: run.own,
    key="records",
)
