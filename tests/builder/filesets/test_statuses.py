"""Every status of the vocabulary is reached, on the way that a request takes in earnest."""

import io
import re
import struct
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from builder.filesets import wiring
from builder.filesets.item import IngestOutcome, IngestRequest
from builder.filesets.status import BOTH, FILE, RESULT, STATUSES
from builder.filesets.wiring import Materials
from builder.http.limits import Limits
from builder.store.folder import FolderStore
from functions.snapshot.errors import StoreError
from functions.snapshot.store import ListedObject
from tests.builder.filesets import samples
from tests.builder.filesets.body import digest
from tests.builder.filesets.server import (
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
from tests.builder.filesets.world import PLAIN, settings_of, world

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
        named = {name.replace("__", "."): value for name, value in settings.items()}
        materials = Materials(
            store=store or FolderStore(self.folder / "store"),
            settings=settings_of(PLAIN | named),
            ways=there.ways,
            environment={},
            clock=lambda: datetime(2026, 11, 22, 10, tzinfo=UTC),
            scratch=self.folder,
        )
        made = wiring.ingest(materials, self.stop, seconds)
        return made.process(IngestRequest(url, ingest_type), dry=dry)

    def article(self, *bodies: str, answer: Answer | None = None, **more: Any) -> None:
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
        self.server.add(samples.FIGSHARE, json_of(samples.figshare(files=files, size=total) | more))

    def says(self, answer: Answer) -> "Stage":
        """Have Figshare answer so about the article."""
        self.server.add(samples.FIGSHARE, answer)
        return self

    def table(self, answer: Answer) -> str:
        """Have PANGAEA give a table so, and return its page."""
        metadata = f"{samples.PANGAEA}?format=metadata_jsonld"
        self.server.add(metadata, json_of(samples.pangaea()))
        self.server.add(f"{samples.PANGAEA}?format=textfile", answer)
        return samples.PANGAEA

    def bundle(self, data: bytes) -> IngestOutcome:
        """Have Figshare give a zip of an article of two files, and ask for that."""
        self.article()
        self.server.add(BUNDLE, served(data, "application/zip"))
        return self.ask(**IN_A_BUNDLE, fileset__partial=False)

    def objects(self) -> list[Path]:
        """Return the objects that are kept but the records of them, in order."""
        kept = (self.folder / "store" / "filesets").rglob("*")
        records = re.compile(r"fileset\.json|platform-.*")
        return sorted(one for one in kept if one.is_file() and not records.fullmatch(one.name))


@pytest.fixture
def stage(server: Server, tmp_path: Path) -> Stage:
    return Stage(server, tmp_path, threading.Event())


def zipped(members: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return made.getvalue()


CASES: dict[str, Callable[[Stage], IngestOutcome]] = {}


def reaches(
    name: str,
) -> Callable[[Callable[[Stage], IngestOutcome]], Callable[[Stage], IngestOutcome]]:
    """Note a way to a status."""

    def noted(case: Callable[[Stage], IngestOutcome]) -> Callable[[Stage], IngestOutcome]:
        assert name not in CASES
        CASES[name] = case
        return case

    return noted


def answered(answer: Callable[[], Answer]) -> Callable[[Stage], IngestOutcome]:
    return lambda stage: stage.says(answer()).ask()


def described(**more: Any) -> Callable[[Stage], IngestOutcome]:
    return answered(lambda: json_of(samples.figshare(**more)))


def given_as(answer: Callable[[], Answer], **more: Any) -> Callable[[Stage], IngestOutcome]:
    """Have the first of two files be answered so."""

    def case(stage: Stage) -> IngestOutcome:
        stage.article(answer=answer())
        return stage.ask(**more)

    return case


WHOLE: dict[str, Any] = {"fileset__partial": False}

CASES |= {
    "bad-identifier": lambda stage: stage.ask("honey"),
    "blocked-address": lambda stage: stage.ask("http://127.0.0.1/dataset/honey"),
    "skip-url-blocklist": lambda stage: stage.ask(fileset__block=["https://figshare.com/art"]),
    "not-implemented": lambda stage: stage.ask(ingest_type="html"),
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
    "incomplete-manifest": described(size=201),
    "empty-manifest": described(files=[], size=0),
    "metadata-only": described(is_metadata_record=True),
    "error-platform-download": given_as(lambda: status(500), **WHOLE),
    "file-404": given_as(lambda: status(404), **WHOLE),
    "file-forbidden": given_as(lambda: status(403), **WHOLE),
    "truncated": given_as(lambda: served(BODIES["a.csv"], cut=50), **WHOLE),
    "stalled": given_as(silent, limits=Limits(first_byte=3), http__tries=1, **WHOLE),
    "html-decoy": given_as(lambda: html("<!DOCTYPE html><html>Please wait</html>"), **WHOLE),
    "mismatch-size": given_as(lambda: served(BODIES["a.csv"][:-1]), **WHOLE),
    "mismatch-md5": given_as(lambda: served(BODIES["a.csv"], wrong=7), **WHOLE),
    "skipped": given_as(lambda: status(500), **WHOLE),
    "deadline-exceeded": given_as(silent, seconds=0.5),
    "bundle-unreadable": lambda stage: stage.bundle(b"PK no zip"),
    "bundle-missing-member": lambda stage: stage.bundle(zipped({"a.csv": BODIES["a.csv"]})),
    "bundle-extra-member": lambda stage: stage.bundle(zipped({**BODIES, "README": b"bees"})),
    "bundle-unsafe-member": lambda stage: stage.bundle(zipped({**BODIES, "../../a": b""})),
}


@reaches("success")
@reaches("verified")
def two_files(stage: Stage) -> IngestOutcome:
    stage.article()
    return stage.ask()


@reaches("success-file")
def one_file(stage: Stage) -> IngestOutcome:
    stage.article("a.csv")
    return stage.ask()


@reaches("success-existing")
def asked_for_twice(stage: Stage) -> IngestOutcome:
    assert two_files(stage).status == "success"
    return stage.ask()


@reaches("success-partial")
@reaches("withheld")
def one_of_two_is_a_link(stage: Stage) -> IngestOutcome:
    stage.article("a.csv")
    body = BODIES["a.csv"]
    md5 = digest("md5", body)
    file = samples.figshare_file(0, "a.csv", size=len(body), computed_md5=md5)
    link = samples.figshare_file(1, "b.csv", size=0, is_link_only=True)
    given = samples.figshare(files=[file, link], size=len(body))
    return stage.says(json_of(given)).ask()


@reaches("unverified")
def a_table_of_no_digest(stage: Stage) -> IngestOutcome:
    return stage.ask(stage.table(served(b"a\tb\n1\t2\n", "text/tab-separated-values")))


@reaches("no-platform-match")
def a_page_of_nobody(stage: Stage) -> IngestOutcome:
    return stage.ask(stage.server.add("https://data.example.org/honey", html("<html>Honey</html>")))


@reaches("robots-disallowed")
def a_page_that_robots_may_not_see(stage: Stage) -> IngestOutcome:
    rules = text("User-agent: *\nDisallow: /\n", "text/plain")
    stage.server.add("https://data.example.org/robots.txt", rules)
    return a_page_of_nobody(stage)


@reaches("needs-token")
def dryad_without_a_token(stage: Stage) -> IngestOutcome:
    stage.server.add(samples.DRYAD, json_of(samples.dryad()))
    files = samples.dryad_page([samples.dryad_file(1)], 1)
    stage.server.add(samples.DRYAD_FILES, json_of(files))
    return stage.ask(DRYAD_PAGE)


@reaches("platform-timeout")
def a_platform_that_does_not_answer(stage: Stage) -> IngestOutcome:
    return stage.says(silent()).ask(limits=Limits(first_byte=0.5), http__tries=1)


def limited(name: str, value: int) -> Callable[[Stage], IngestOutcome]:
    def case(stage: Stage) -> IngestOutcome:
        stage.article()
        return stage.ask(fileset__limits={name: value})

    return case


CASES["too-many-files"] = limited("files", 1)
CASES["too-large-size"] = limited("bytes", 300)
CASES["too-large-file"] = limited("file_bytes", 100)


@reaches("unsafe-path")
def a_path_that_leads_elsewhere(stage: Stage) -> IngestOutcome:
    files = [samples.figshare_file(1, "../../etc/passwd")]
    return stage.says(json_of(samples.figshare(files=files, size=100))).ask()


@reaches("over-limit-stream")
def a_table_without_an_end(stage: Stage) -> IngestOutcome:
    page = stage.table(endless("text/tab-separated-values"))
    return stage.ask(page, fileset__limits={"file_bytes": 10_000})


@reaches("encoding-ambiguous")
def a_table_that_comes_packed(stage: Stage) -> IngestOutcome:
    packed = served(b"a\tb\n" * 100, "text/tab-separated-values", coding="gzip")
    return stage.ask(stage.table(packed))


@reaches("mismatch-sha1")
def an_item_of_another_sha1(stage: Stage) -> IngestOutcome:
    body = BODIES["a.csv"]
    file = {"name": "a.csv", "source": "original", "size": str(len(body)), "sha1": samples.SHA1}
    item = samples.archiveorg(files=[file], files_count=1)
    stage.server.add(samples.ARCHIVEORG, json_of(item))
    stage.server.add("https://archive.org/download/honey-1903/a.csv", served(body))
    return stage.ask("https://archive.org/details/honey-1903")


@reaches("mismatch-sha256")
def a_dataset_of_another_sha256(stage: Stage) -> IngestOutcome:
    file = samples.mendeley_file("f-1", "a.csv")
    answers = {
        samples.MENDELEY: samples.mendeley(files=[file]),
        f"{samples.MENDELEY}/folders/2": [],
        f"{samples.MENDELEY}/files?folder_id=root&version=2": [file],
    }
    for url, given in answers.items():
        stage.server.add(url, json_of(given))
    stage.server.add(file["content_details"]["download_url"], served(b"a" * 12))
    return stage.ask("https://data.mendeley.com/datasets/h0n3ybees1")


@reaches("mismatch-sha512")
def a_resource_of_another_sha512(stage: Stage) -> IngestOutcome:
    body = BODIES["a.csv"]
    resource = samples.ckan_resource("r-1", hash=samples.SHA256 * 2, size=len(body))
    stage.server.add(samples.CKAN, json_of(samples.ckan(resources=[resource], num_resources=1)))
    stage.server.add(resource["url"], served(body))
    return stage.ask("https://demo.ckan.org/dataset/honey-prices")


@reaches("mismatch-crc32")
def a_bundle_whose_bytes_are_not_its_own(stage: Stage) -> IngestOutcome:
    true = struct.pack("<L", zlib.crc32(BODIES["b.csv"]))
    return stage.bundle(zipped(BODIES).replace(true, b"\0\0\0\0"))


@reaches("bundle-bomb")
def a_bundle_that_inflates(stage: Stage) -> IngestOutcome:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", b"0" * 5_000_000)
    stage.article()
    stage.server.add(BUNDLE, served(made.getvalue(), "application/zip"))
    return stage.ask(**IN_A_BUNDLE, fileset__limits={"bytes": 1_000_000})


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


def kept_in(kind: type[FolderStore]) -> Callable[[Stage], IngestOutcome]:
    def case(stage: Stage) -> IngestOutcome:
        stage.article()
        return stage.ask(store=kind(stage.folder / "store"))

    return case


CASES["error-store-upload"] = kept_in(Full)
CASES["error-store-verify"] = kept_in(Forgetful)
CASES["internal-error"] = kept_in(Faulty)


@reaches("mismatch-existing")
@reaches("exists")
def one_was_altered(stage: Stage) -> IngestOutcome:
    two_files(stage)
    stage.objects()[0].write_bytes(b"wax")
    return stage.ask()


@reaches("pending")
def a_request_to_see_what_would_be(stage: Stage) -> IngestOutcome:
    stage.article()
    return stage.ask(dry=True)


@reaches("changed-during-ingest")
def another_version_came_meanwhile(stage: Stage) -> IngestOutcome:
    stage.article(answer=served(BODIES["a.csv"], wrong=7))
    before = stage.server.find("api.figshare.com", "/v2/articles/4711")
    return stage.says(then(before, json_of(samples.figshare(version=3)))).ask(**WHOLE)


@reaches("cancelled")
def the_run_was_ended(stage: Stage) -> IngestOutcome:
    stage.article()
    stage.stop.set()
    return stage.ask()


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


def test_a_file_that_was_removed_beside_one_that_was_altered_is_pending(stage: Stage) -> None:
    two_files(stage)
    first, second = stage.objects()
    first.write_bytes(b"wax")
    second.unlink()
    found = stage.ask()
    assert found.status == "mismatch-existing"
    assert found.archived is not None
    assert [file.status for file in found.archived.manifest] == ["mismatch-existing", "pending"]
