"""Real answers of platforms: each dataset is archived, published, exported and restored whole.

The bytes of most files are made up, because only their digests are at hand.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import bagit
import ocfl
import pytest

from builder.cli import main
from builder.filesets.item import (
    DATASET,
    LEFT_OUT,
    FilesetManifestFile,
    FilesetPlatformItem,
    HttpExchange,
    IngestOutcome,
    IngestRequest,
    PlatformAnswer,
)
from builder.filesets.platforms.archiveorg import ArchiveOrg
from builder.filesets.platforms.ckan import Ckan
from builder.filesets.platforms.dataverse import Dataverse
from builder.filesets.platforms.figshare import Figshare
from builder.filesets.platforms.invenio import Zenodo
from builder.filesets.platforms.mendeley import Mendeley
from builder.filesets.platforms.pangaea import Pangaea
from builder.filesets.strategies.bundled import Bundled
from builder.filesets.strategies.choice import apply_limits
from builder.filesets.strategies.s3 import ObjectStrategy
from builder.filesets.strategies.web import Captured
from functions.oai.repository import RecordSelection
from functions.snapshot.manifest import Span
from functions.snapshot.schema import DATASETS
from tests.builder.conftest import World as Published
from tests.builder.export.test_datasets import content, crate, held, names
from tests.builder.filesets.body import digest
from tests.builder.filesets.pages import REAL, real, told
from tests.builder.filesets.published import publish
from tests.builder.filesets.server import Server, served, serving
from tests.builder.filesets.world import World, fileset_settings, world

AT = "20261122100000"
Documents = dict[str, Any]


def zenodo(name: str) -> tuple[FilesetPlatformItem, Documents]:
    document = real(f"zenodo/{name}.json")
    documents = {f"https://zenodo.org/api/records/{document['id']}": document}
    return told(Zenodo(), f"https://zenodo.org/record/{document['id']}", documents), documents


def dataverse(name: str) -> tuple[FilesetPlatformItem, Documents]:
    document = real(f"dataverse/{name}.json")
    if "datasetVersion" in document:
        newest = document.pop("datasetVersion")
        document = {"status": "OK", "data": document | {"latestVersion": newest}}
    id_ = document["data"]["latestVersion"]["datasetPersistentId"]
    base = "https://dataverse.harvard.edu"
    documents = {f"{base}/api/datasets/:persistentId/?persistentId={id_}": document}
    return told(Dataverse(), f"{base}/dataset.xhtml?persistentId={id_}", documents), documents


def figshare(name: str) -> tuple[FilesetPlatformItem, Documents]:
    document = real(f"figshare/{name}.json")
    documents = {f"https://api.figshare.com/v2/articles/{document['id']}": document}
    page = f"https://figshare.com/articles/dataset/x/{document['id']}"
    return told(Figshare(), page, documents), documents


def ckan(name: str) -> tuple[FilesetPlatformItem, Documents]:
    document = real(f"ckan/{name}.json")
    id_ = document["result"]["id"]
    documents = {f"https://demo.ckan.org/api/3/action/package_show?id={id_}": document}
    return told(Ckan(), f"https://demo.ckan.org/dataset/{id_}", documents), documents


def mendeley(name: str) -> tuple[FilesetPlatformItem, Documents]:
    document = real(f"mendeley/{name}.json")
    api = "https://data.mendeley.com/public-api/datasets/2vkm6k4cfg"
    documents = {
        api: document,
        f"{api}/folders/1": [],
        f"{api}/files?folder_id=root&version=1": document["files"],
    }
    return told(Mendeley(), "https://data.mendeley.com/datasets/2vkm6k4cfg", documents), documents


def pangaea(name: str) -> tuple[FilesetPlatformItem, Documents]:
    """It is a series, read as one dataset."""
    page = "https://doi.pangaea.de/10.1594/PANGAEA.902845"
    documents = {f"{page}?format=metadata_jsonld": real(f"pangaea/{name}.json") | {"size": None}}
    return told(Pangaea(), page, documents), documents


def archiveorg(name: str) -> tuple[FilesetPlatformItem, Documents]:
    documents = {f"https://archive.org/metadata/{name}": real(f"archiveorg/metadata_{name}.json")}
    return told(ArchiveOrg(), f"https://archive.org/details/{name}", documents), documents


Answered = Callable[[str], tuple[FilesetPlatformItem, Documents]]
ANSWERS: tuple[tuple[Answered, str], ...] = (
    (zenodo, "legacy_record_7078725"),
    (zenodo, "legacy_record_7078760"),
    (zenodo, "legacy_record_7078768"),
    (zenodo, "legacy_record_7247979"),
    (zenodo, "legacy_record_3459420"),
    (zenodo, "legacy_record_5015459_15files"),
    (zenodo, "legacy_record_5025230"),
    (zenodo, "post2023_record_5173799"),
    (zenodo, "post2023_record_7085903"),
    (zenodo, "derived_no_size_no_checksum"),
    (dataverse, "harvard_RLMYMR_v2"),
    (dataverse, "harvard_TJCLKP_v3_111files"),
    (dataverse, "harvard_HOLVXA_v4.1"),
    (dataverse, "gdcc_cars"),
    (dataverse, "gdcc_max"),
    (figshare, "article_123456"),
    (figshare, "article_11856180_smithsonian"),
    (figshare, "article_22306426_griffith_trimmed"),
    (ckan, "test_ckan_adapter_read"),
    (ckan, "test_ckan_adapter_read_data_ods"),
    (mendeley, "dataset_shape"),
    (pangaea, "902845_jsonld"),
    (archiveorg, "journalofexpedit00ford"),
)
CASES = [(*one, ("s3", "web", "bundled")[number % 3]) for number, one in enumerate(ANSWERS)]
"""Answers and a backend meet in the item alone: each is tried with some of the others."""


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def with_bodies(
    server: Server, item: FilesetPlatformItem
) -> tuple[FilesetPlatformItem, dict[str, bytes]]:
    """Return a dataset whose files the server has, and their bytes by the platform's paths."""
    bodies, files = {}, []
    for number, file in enumerate(item.manifest or ()):
        if file.status in LEFT_OUT:
            files.append(file)
            continue
        true = REAL / "zenodo" / "bodies" / str(item.version) / file.path
        body = true.read_bytes() if true.is_file() else f"{number} {file.path}\n".encode() * 9
        # One answer has addresses of its author's own machine, which no archive fetches.
        url = (file.platform_url or "").replace("http://localhost:5000", "https://demo.ckan.org")
        server.add(url, served(body))
        file = replace(file, platform_url=url)
        bodies[file.path] = body
        files.append(file if true.is_file() else _describe(file, body))
    return replace(item, manifest=tuple(files)), bodies


def _describe(file: FilesetManifestFile, body: bytes) -> FilesetManifestFile:
    """Return a file whose listed size and digests are those of its made bytes."""
    names = [name for name in ("md5", "sha1", "sha256", "sha512") if getattr(file, name)]
    size = None if file.size is None else len(body)
    return replace(file, size=size, crc32=None, **{name: digest(name, body) for name in names})


def answers(documents: Mapping[str, Any]) -> tuple[PlatformAnswer, ...]:
    return tuple(
        PlatformAnswer(
            last=HttpExchange(
                url=url,
                at=AT,
                status=200,
                reason="OK",
                sent=(("Accept", "application/json"),),
                headers=(("Content-Type", "application/json"),),
            ),
            packed=zlib.compress(json.dumps(document).encode()),
        )
        for url, document in documents.items()
    )


def archive(
    there: World, published: Published, item: FilesetPlatformItem, backend: str
) -> IngestOutcome:
    """Archive a dataset by a strategy of a backend, and return the outcome."""
    settings = fileset_settings(max_files=1000, max_bytes=1 << 40, max_file_bytes=1 << 40)
    item = apply_limits(item, settings)
    kind = "file" if len(item.files) == 1 else "fileset"
    store, loader, scratch = published.store, there.downloader(), there.ways.scratch
    strategy = {
        "s3": ObjectStrategy(f"s3-{kind}", store, loader, settings),
        "web": Captured(f"web-{kind}", store, loader, settings, scratch, there.ways.client.wall),
        "bundled": Bundled(store, loader, settings),
    }[backend]
    done = strategy.process(item)
    request = IngestRequest(item.web_base_url or "https://a.example", DATASET)
    return IngestOutcome(
        request=request,
        status=done.status,
        at=AT,
        item=item,
        archived=done,
        strategy=done.ingest_strategy,
        platform=item.platform_name,
    )


@pytest.mark.sampled(8)
@pytest.mark.skipif(not REAL.is_dir(), reason="the real answers of platforms are not here")
@pytest.mark.parametrize(
    ("answered", "name", "backend"), CASES, ids=[f"{n}-{b}" for _, n, b in CASES]
)
def test_a_real_dataset_comes_out_as_it_went_in(
    server: Server,
    tmp_path: Path,
    answered: Answered,
    name: str,
    backend: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    item, documents = answered(name)
    item, bodies = with_bodies(server, replace(item, sent=answers(documents)))
    published = Published(tmp_path / "store")
    published.clock.now = datetime(2026, 11, 22, 10, tzinfo=UTC)
    publish(published, archive(world(server, tmp_path), published, item, backend))

    def run(*command: str) -> None:
        assert main([*command, "--store", "store"]) == 0

    found = published.repository()
    manifest = found.manifest(found.pointer().entries[-1].snapshot)
    (identifier,) = (
        record.identifier
        for record in found.page(manifest, RecordSelection(DATASETS, Span(1, 9)), 9, headers=True)
    )
    run("restore", identifier, "restored")
    assert content(tmp_path / "restored") == bodies
    for format_ in ("rocrate", "bagit", "ocfl"):
        run("export", format_, format_)
    for one in (tmp_path / "rocrate").iterdir():
        assert names(crate(one), one) == bodies
    (folder,) = (tmp_path / "bagit").iterdir()
    bagit.Bag(str(folder)).validate()
    (sent,) = (folder / "metadata").glob("platform-*")
    kept = gzip.decompress(sent.read_bytes())
    assert all(json.dumps(document).encode() in kept for document in documents.values())
    root = ocfl.StorageRoot(root=str(tmp_path / "ocfl"))
    assert root.validate(log_warnings=True), root.log.status_str()
    assert sorted(held(tmp_path / "ocfl", identifier)[0].values()) == sorted(bodies.values())
