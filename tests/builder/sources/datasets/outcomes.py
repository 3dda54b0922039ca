"""Outcomes that tests make: a small dataset, and what came of it."""

from dataclasses import replace

from builder.sources.datasets.item import (
    ArchiveStrategyResult,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
    IngestOutcome,
    IngestRequest,
    Licence,
    Person,
    Related,
)
from builder.sources.datasets.manifest_file import meta
from builder.sources.datasets.strategies import record

URL = "https://data.example/records/41"
AT = "20261122100000"
DESCRIPTION = Description(
    title="Heights of <larches> & firs",
    creators=(
        Person(
            name="Vrba, Eva",
            given="Eva",
            family="Vrba",
            orcid="0000-0002-1825-0097",
            affiliations=("University of Trees",),
        ),
        Person(name="Forest Institute", organisation=True),
    ),
    contributors=(Person(name="Lípa, Jan", given="Jan", family="Lípa", role="DataCollector"),),
    publisher="Data Example",
    published="2024-05-17",
    abstract="Measured by hand.",
    subjects=("larch", "fir"),
    language="en",
    licences=(Licence("CC BY 4.0", "CC-BY-4.0", "https://creativecommons.org/licenses/by/4.0/"),),
    version="1.2",
    doi="10.5072/trees.41",
    url=URL,
    related=(Related("10.5072/paper.7", "DOI", "IsSupplementTo"),),
)


def file(
    path: str, size: int = 5, status: str | None = None, **more: object
) -> FilesetManifestFile:
    """Return a file as its platform lists it or, with a status, as it was kept."""
    found = FilesetManifestFile(
        path=path,
        size=size,
        md5=f"{size:032x}",
        mimetype="text/csv",
        platform_url=f"{URL}/files/{path}",
        status=status,
    )
    if status is not None and status != "withheld":
        found = replace(
            found,
            sha1=f"{size:040x}",
            sha256=f"{size:064x}",
            crc32=f"{size:08x}",
            key=f"filesets/invenio/data.example/41/1.2.0123456789ab/files/{path}",
            terminal_url=found.platform_url,
            terminal_dt=AT,
        )
    return replace(found, **more)  # type: ignore[arg-type]


def item(*paths: str, **more: object) -> FilesetPlatformItem:
    """Return a dataset with files of these paths."""
    found = FilesetPlatformItem(
        platform_name="invenio",
        platform_domain="data.example",
        platform_id="41",
        manifest=tuple(file(path, number + 5) for number, path in enumerate(paths)),
        web_base_url=URL,
        version="1.2",
        description=DESCRIPTION,
    )
    return replace(found, **more)  # type: ignore[arg-type]


def archived(
    of: FilesetPlatformItem, *, existing: bool = False, strategy: str | None = None
) -> ArchiveStrategyResult:
    """Return what came of keeping all files of a dataset."""
    name = strategy or ("s3-file" if len(of.files) == 1 else "s3-fileset")
    state = "exists" if existing else "verified"
    kept = tuple(file(listed.path, listed.size or 0, state) for listed in of.files)
    result = ArchiveStrategyResult(
        ingest_strategy=name,
        status="success-existing" if existing else "success",
        manifest=kept,
        file_file_meta=meta(kept[0]) if name.endswith("-file") else None,
        location="filesets/invenio/data.example/41/1.2.0123456789ab/",
    )
    return record.add_withheld(result, of)


def outcome(of: FilesetPlatformItem, *, existing: bool = False, **more: object) -> IngestOutcome:
    """Return the outcome of a dataset all of whose files were kept."""
    kept = archived(of, existing=existing)
    request = IngestRequest(URL)
    made = IngestOutcome(request=request, status=kept.status, at=AT, item=of, archived=kept)
    return replace(made, **more)  # type: ignore[arg-type]


def failed(status: str, **more: object) -> IngestOutcome:
    """Return an outcome of which no platform told anything."""
    return replace(IngestOutcome(request=IngestRequest(URL), status=status, at=AT), **more)  # type: ignore[arg-type]
