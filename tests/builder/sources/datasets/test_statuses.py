"""Every status of the vocabulary is reached, on the way that a request takes in earnest."""

import re
import struct
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from builder.http.limits import Limits
from builder.sources.datasets import wiring
from builder.sources.datasets.item import IngestOutcome, IngestRequest
from builder.sources.datasets.status import BOTH, FILE, RESULT, STATUSES
from builder.store.folder import FolderStore
from functions.snapshot.errors import StoreError
from functions.snapshot.store import ListedObject
from tests.builder.sources.datasets import samples
from tests.builder.sources.datasets.body import digest, zipped
from tests.builder.sources.datasets.server import (
    Answer,
    Server,
    bot_wall,
    endless,
    html,
    json_of,
    login,
    served,
    silent,
    status,
    text,
    then,
)
from tests.builder.sources.datasets.world import world

PAGE = "https://figshare.com/articles/4711"
BUNDLE = "https://ndownloader.figshare.com/articles/4711/versions/2"
BODIES = {"a.csv": b"honey,price\n" * 20, "b.csv": b"bees,hives\n" * 20}
DRYAD_PAGE = "https://datadryad.org/dataset/doi:10.5061/dryad.h0n3y"
IN_A_BUNDLE = {"fileset__strategy": {"backend": "s3", "bundle": "always", "platform_bundle": True}}


@dataclass
class Stage:
    """A server, and a store that lasts from one request to the next."""

    server: Server
    folder: Path
    stop: threading.Event

    def ask(
        self,
        url: str = PAGE,
        *,
        ingest_type: str = "dataset",
        dry: bool = False,
        seconds: float = 60,
        limits: Limits | None = None,
        store: FolderStore | None = None,
        **given: Any,
    ) -> IngestOutcome:
        """Carry out a request with all of Sheaf's own parts, and return what came of it."""
        settings = {"fileset__strategy": "s3", "http__tries": 2, **given}
        there = world(self.server, self.folder, **settings)
        there = there.paced(limits) if limits else there
        materials = there.materials(
            store or FolderStore(self.folder / "store"),
            clock=lambda: datetime(2026, 11, 22, 10, tzinfo=UTC),
        )
        made = wiring.ingest(materials, self.stop, seconds)
        return made.process(IngestRequest(url, ingest_type), dry=dry)

    def article(self, *bodies: str, answer: Answer | None = None, **more: Any) -> "Stage":
        """Have Figshare give an article of files; the first as `answer` says."""
        files = []
        for number, name in enumerate(bodies or BODIES):
            body = BODIES[name]
            md5 = digest("md5", body)
            told = {"size": len(body), "computed_md5": md5, "supplied_md5": md5}
            files.append(samples.figshare_file(number, name, **told))
            given = answer if answer and not number else served(body)
            self.server.add(f"https://ndownloader.figshare.com/files/{number}", given)
        total = sum(file["size"] for file in files)
        return self.says(json_of(samples.figshare(files=files, size=total) | more))

    def says(self, answer: Answer) -> "Stage":
        """Have Figshare answer so about the article."""
        self.server.add(samples.FIGSHARE, answer)
        return self

    def archived(self) -> "Stage":
        """Archive an article of two files."""
        assert self.article().ask().status == "success"
        return self

    def table(self, answer: Answer, **more: Any) -> IngestOutcome:
        """Have PANGAEA give a table so, and ask for it."""
        answers = {"metadata_jsonld": json_of(samples.pangaea()), "textfile": answer}
        return self.site(
            {f"{samples.PANGAEA}?format={name}": one for name, one in answers.items()},
            samples.PANGAEA,
            **more,
        )

    def site(self, answers: Mapping[str, Answer], url: str, **more: Any) -> IngestOutcome:
        """Have answers by their URLs, and ask for one."""
        for address, answer in answers.items():
            self.server.add(address, answer)
        return self.ask(url, **more)

    def bundle(self, data: bytes, **more: Any) -> IngestOutcome:
        """Have Figshare give a zip of an article of two files, and ask for that."""
        self.article()
        self.server.add(BUNDLE, served(data, "application/zip"))
        return self.ask(**IN_A_BUNDLE, fileset__partial=False, **more)

    def objects(self) -> list[Path]:
        """Return the objects that are kept but the records of them, in order."""
        kept = (self.folder / "store" / "filesets").rglob("*")
        records = re.compile(r"fileset\.json|platform-.*")
        return sorted(one for one in kept if one.is_file() and not records.fullmatch(one.name))


@pytest.fixture
def stage(server: Server, tmp_path: Path) -> Stage:
    return Stage(server, tmp_path, threading.Event())


def answered(answer: Callable[[], Answer]) -> Callable[[Stage], IngestOutcome]:
    return lambda stage: stage.says(answer()).ask()


def described(**more: Any) -> Callable[[Stage], IngestOutcome]:
    return answered(lambda: json_of(samples.figshare(**more)))


def given_as(answer: Callable[[], Answer], **more: Any) -> Callable[[Stage], IngestOutcome]:
    """Have the first of two files be answered so."""
    return lambda stage: stage.article(answer=answer()).ask(**more)


def limited(name: str, value: int) -> Callable[[Stage], IngestOutcome]:
    return lambda stage: stage.article().ask(fileset__limits={name: value})


def kept_in(kind: type[FolderStore]) -> Callable[[Stage], IngestOutcome]:
    return lambda stage: stage.article().ask(store=kind(stage.folder / "store"))


class Full(FolderStore):
    """A store on a disk that is full."""

    def create_all(self, objects: Iterable[tuple[str, bytes]]) -> Iterator[bool]:
        raise StoreError("no space left")


class Forgetful(FolderStore):
    """A store that has one byte more of each object than was written."""

    def entries(self, prefix: str) -> Iterator[ListedObject]:
        for entry in super().entries(prefix):
            yield replace(entry, bytes=entry.bytes + 1)


class Faulty(FolderStore):
    """A store with a fault of our own in it."""

    def create_all(self, objects: Iterable[tuple[str, bytes]]) -> Iterator[bool]:
        raise ZeroDivisionError


def one_of_two_is_a_link(stage: Stage) -> IngestOutcome:
    stage.article("a.csv")
    body = BODIES["a.csv"]
    file = samples.figshare_file(0, "a.csv", size=len(body), computed_md5=digest("md5", body))
    link = samples.figshare_file(1, "b.csv", size=0, is_link_only=True)
    return stage.says(json_of(samples.figshare(files=[file, link], size=len(body)))).ask()


def a_page_of_nobody(stage: Stage, robots: Answer | None = None) -> IngestOutcome:
    host = "https://data.example.org/"
    answers = {f"{host}x": html("<html>Honey")} | ({f"{host}robots.txt": robots} if robots else {})
    return stage.site(answers, f"{host}x")


def dryad_without_a_token(stage: Stage) -> IngestOutcome:
    files = samples.dryad_page([samples.dryad_file(1)], 1)
    answers = {samples.DRYAD: json_of(samples.dryad()), samples.DRYAD_FILES: json_of(files)}
    return stage.site(answers, DRYAD_PAGE)


def an_item_of_another_sha1(stage: Stage) -> IngestOutcome:
    body = BODIES["a.csv"]
    file = {"name": "a.csv", "source": "original", "size": str(len(body)), "sha1": samples.SHA1}
    answers = {
        samples.ARCHIVEORG: json_of(samples.archiveorg(files=[file], files_count=1)),
        "https://archive.org/download/honey-1903/a.csv": served(body),
    }
    return stage.site(answers, "https://archive.org/details/honey-1903")


def a_dataset_of_another_sha256(stage: Stage) -> IngestOutcome:
    file = samples.mendeley_file("f-1", "a.csv")
    answers = {
        samples.MENDELEY: json_of(samples.mendeley(files=[file])),
        f"{samples.MENDELEY}/folders/2": json_of([]),
        f"{samples.MENDELEY}/files?folder_id=root&version=2": json_of([file]),
        file["content_details"]["download_url"]: served(b"a" * 12),
    }
    return stage.site(answers, "https://data.mendeley.com/datasets/h0n3ybees1")


def a_resource_of_another_sha512(stage: Stage) -> IngestOutcome:
    body = BODIES["a.csv"]
    resource = samples.ckan_resource("r-1", hash=samples.SHA256 * 2, size=len(body))
    dataset = samples.ckan(resources=[resource], num_resources=1)
    answers = {samples.CKAN: json_of(dataset), resource["url"]: served(body)}
    return stage.site(answers, "https://demo.ckan.org/dataset/honey-prices")


def one_was_altered(stage: Stage) -> IngestOutcome:
    stage.archived().objects()[0].write_bytes(b"wax")
    return stage.ask()


def another_version_came_meanwhile(stage: Stage) -> IngestOutcome:
    stage.article(answer=served(BODIES["a.csv"], wrong=7))
    before = stage.server.find("api.figshare.com", "/v2/articles/4711")
    return stage.says(then(before, json_of(samples.figshare(version=3)))).ask(**WHOLE)


def the_run_was_ended(stage: Stage) -> IngestOutcome:
    stage.stop.set()
    return stage.article().ask()


CRC = struct.pack("<L", zlib.crc32(BODIES["b.csv"]))
TABS = "text/tab-separated-values"
NO_ROBOTS = text("User-agent: *\nDisallow: /\n", "text/plain")
WHOLE: dict[str, Any] = {"fileset__partial": False}
CASES: dict[str, Callable[[Stage], IngestOutcome]] = {
    "bad-identifier": lambda stage: stage.ask("honey"),
    "blocked-address": lambda stage: stage.ask("http://127.0.0.1/dataset/honey"),
    "skip-url-blocklist": lambda stage: stage.ask(fileset__block=["https://figshare.com/art"]),
    "not-implemented": lambda stage: stage.ask(ingest_type="html"),
    "no-platform-match": a_page_of_nobody,
    "robots-disallowed": lambda stage: a_page_of_nobody(stage, NO_ROBOTS),
    "needs-token": dryad_without_a_token,
    "platform-scope": lambda stage: stage.ask("https://figshare.com/collections/Bees/4711"),
    "platform-restricted": described(is_confidential=True),
    "platform-embargoed": described(is_embargoed=True, embargo_date="2031-01-02", files=None),
    "platform-gone": answered(lambda: status(410)),
    "platform-404": answered(lambda: status(404)),
    "platform-login-wall": answered(login),
    "platform-bot-wall": answered(bot_wall),
    "platform-rate-limited": answered(lambda: status(429)),
    "platform-http-error": answered(lambda: status(500)),
    "platform-error": described(id=4712),
    "platform-bad-response": answered(lambda: text(b"{honey", "application/json")),
    "platform-timeout": lambda stage: stage.says(silent()).ask(
        limits=Limits(first_byte=0.5), http__tries=1
    ),
    "incomplete-manifest": described(size=201),
    "empty-manifest": described(files=[], size=0),
    "metadata-only": described(is_metadata_record=True),
    "too-many-files": limited("files", 1),
    "too-large-size": limited("bytes", 300),
    "too-large-file": limited("file_bytes", 100),
    "unsafe-path": described(files=[samples.figshare_file(1, "../../etc/passwd")], size=100),
    "error-platform-download": given_as(lambda: status(500), **WHOLE),
    "file-404": given_as(lambda: status(404), **WHOLE),
    "file-forbidden": given_as(lambda: status(403), **WHOLE),
    "truncated": given_as(lambda: served(BODIES["a.csv"], cut=50), **WHOLE),
    "stalled": given_as(silent, limits=Limits(first_byte=3), http__tries=1, **WHOLE),
    "html-decoy": given_as(lambda: html("<!DOCTYPE html><html>Please wait</html>"), **WHOLE),
    "encoding-ambiguous": lambda stage: stage.table(served(b"a\tb\n" * 100, TABS, coding="gzip")),
    "over-limit-stream": lambda stage: stage.table(
        endless(TABS), fileset__limits={"file_bytes": 10_000}
    ),
    "mismatch-size": given_as(lambda: served(BODIES["a.csv"][:-1]), **WHOLE),
    "mismatch-md5": given_as(lambda: served(BODIES["a.csv"], wrong=7), **WHOLE),
    "mismatch-sha1": an_item_of_another_sha1,
    "mismatch-sha256": a_dataset_of_another_sha256,
    "mismatch-sha512": a_resource_of_another_sha512,
    "mismatch-crc32": lambda stage: stage.bundle(
        zipped(BODIES, zipfile.ZIP_STORED).replace(CRC, b"\0\0\0\0")
    ),
    "skipped": given_as(lambda: status(500), **WHOLE),
    "deadline-exceeded": given_as(silent, seconds=0.5),
    "cancelled": the_run_was_ended,
    "changed-during-ingest": another_version_came_meanwhile,
    "bundle-unreadable": lambda stage: stage.bundle(b"PK no zip"),
    "bundle-missing-member": lambda stage: stage.bundle(zipped({"a.csv": BODIES["a.csv"]})),
    "bundle-extra-member": lambda stage: stage.bundle(zipped({**BODIES, "README": b"bees"})),
    "bundle-unsafe-member": lambda stage: stage.bundle(zipped({**BODIES, "../../a": b""})),
    "bundle-bomb": lambda stage: stage.bundle(
        zipped({"a.csv": b"0" * 5_000_000}), fileset__limits={"bytes": 1_000_000}
    ),
    "error-store-upload": kept_in(Full),
    "error-store-verify": kept_in(Forgetful),
    "internal-error": kept_in(Faulty),
    "success": lambda stage: stage.article().ask(),
    "verified": lambda stage: stage.article().ask(),
    "success-file": lambda stage: stage.article("a.csv").ask(),
    "success-existing": lambda stage: stage.archived().ask(),
    "success-partial": one_of_two_is_a_link,
    "withheld": one_of_two_is_a_link,
    "unverified": lambda stage: stage.table(served(b"a\tb\n1\t2\n", TABS)),
    "mismatch-existing": one_was_altered,
    "exists": one_was_altered,
    "pending": lambda stage: stage.article().ask(dry=True),
}


def test_every_status_has_a_way_to_it() -> None:
    assert set(CASES) == set(STATUSES)


AS_A_WHOLE = {"pending", "mismatch-crc32"}
"""Statuses of files that here are those of all of them: a dry run's, and a damaged bundle's."""


@pytest.mark.parametrize("name", sorted(STATUSES))
def test_each_status_is_reached(name: str, stage: Stage) -> None:
    found = CASES[name](stage)
    known, of_result = STATUSES[name], STATUSES[found.status]
    manifest = found.archived.manifest if found.archived else (found.item and found.item.manifest)
    of_files = {file.status for file in manifest or ()}
    if known.scope in (RESULT, BOTH):
        assert (found.status, found.detail) == (name, found.detail)
    if known.scope == FILE or (known.family == "file" and name not in AS_A_WHOLE):
        assert name in of_files
    records = list((stage.folder / "store").rglob("fileset.json"))
    if of_result.hit:
        assert found.archived is not None
        assert len(records) == 1
        assert stage.objects()
    elif found.status != "mismatch-existing":
        assert not records
