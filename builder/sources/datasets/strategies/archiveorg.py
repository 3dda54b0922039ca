"""Strategy that stores files in an archive.org item, one by one or as one zip.

A client reads items' metadata, and uploads by their S3 interface (IAS3). The library of
archive.org's own was left for its licence (AGPL), and because its sleep between two tries cannot be
interrupted.

Each file is first downloaded to a spool, because archive.org requires its size and MD5
before its bytes. The manifest determines the item's name, so an item never mixes two manifests.
Files that archive.org itself hosts are not uploaded again.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from builder.http.client import FetchRequest
from builder.sources.datasets import manifest_file as files
from builder.sources.datasets.download.api import PlatformApi
from builder.sources.datasets.item import (
    ArchiveStrategyResult,
    FileMeta,
    FilesetManifestFile,
    FilesetPlatformItem,
    Terminal,
)
from builder.sources.datasets.platforms.archiveorg import is_uploaded, parse_file
from builder.sources.datasets.platforms.json_document import entries, text
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.strategies import keys, record
from builder.sources.datasets.strategies.bundle import ZIP, pack
from builder.sources.datasets.strategies.choice import ARCHIVEORG
from builder.sources.datasets.strategies.keys import BUNDLE
from builder.sources.datasets.strategies.record import KeepingRecord
from builder.sources.datasets.strategies.strategy import ArchivingStrategy
from builder.sources.datasets.strategies.transfer import FileSpool, Quota, transfer

S3 = "s3.us.archive.org"
_SECONDS = 120.0  # IAS3 answers once it has stored a file, which takes longer than others do
_PLAIN = re.compile(r"(?!uri\()[!-~]([ -~]*[!-~])?")


@dataclass(frozen=True, slots=True)
class ItemContents:
    """The files of an item by path; empty if the item does not exist.

    `uploaded` are the paths without the files that archive.org made itself. While archive.org is
    processing the item (`busy`), the list may lack files that it has.
    """

    files: Mapping[str, FilesetManifestFile] = field(default_factory=dict)
    uploaded: frozenset[str] = frozenset()
    busy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveClient:
    """A connection to archive.org, which reads and, with `has_keys`, writes.

    An upload may take `seconds`.
    """

    api: PlatformApi
    has_keys: bool
    seconds: float

    @classmethod
    def of(
        cls, environment: Mapping[str, str], api: PlatformApi, seconds: float
    ) -> "ArchiveClient":
        """Create a client with the keys IA_ACCESS_KEY and IA_SECRET_KEY of an environment."""
        access, secret = environment.get("IA_ACCESS_KEY"), environment.get("IA_SECRET_KEY")
        others, own = api.client.credentials, {"Authorization": f"LOW {access}:{secret}"}

        def credentials(url: str) -> Mapping[str, str]:
            return own if url.startswith(f"https://{S3}/") else others(url)

        api = replace(api, client=replace(api.client, credentials=credentials), heard=[])
        return cls(api=api, has_keys=bool(access and secret), seconds=seconds)

    def contents(self, item: str) -> ItemContents:
        """Return the files of an item. Raises FilesetError (error-store-verify)."""
        with _errors_as("error-store-verify"):
            document = self.api.document(f"https://archive.org/metadata/{quote(item)}")
        if not isinstance(document, Mapping):
            return ItemContents()
        named = {
            name: file
            for file in entries(document.get("files"))
            if (name := text(file.get("name"))) and not text(file.get("old_version"))
        }
        files = {name: parse_file(item, file) for name, file in named.items()}
        uploaded = frozenset(name for name, file in named.items() if is_uploaded(item, file))
        waiting = document.get("pending_tasks") is True or bool(document.get("tasks"))
        return ItemContents(files, uploaded, waiting)

    def put(
        self,
        item: str,
        file: FilesetManifestFile,
        pieces: Callable[[], Iterable[bytes]],
        metadata: Mapping[str, Any],
        hint: int,
    ) -> None:
        """Upload a file, whose bytes `pieces` opens, to an item, which is created if necessary.

        A new item gets the metadata; `hint` is its expected size in bytes. archive.org rejects
        bytes whose MD5 is not that of the file. Raises FilesetError (error-store-upload).
        """
        limits, until = self.api.limits, self.api.until
        request = FetchRequest(
            url=f"https://{S3}/{quote(item)}/{quote(file.path)}",
            limits=replace(limits, total=self.seconds, first_byte=max(_SECONDS, limits.first_byte)),
            headers={
                "Content-Length": str(file.size),
                "Content-MD5": file.md5 or "",
                "x-archive-auto-make-bucket": "1",
                "x-archive-keep-old-version": "0",
                "x-archive-queue-derive": "0",
                "x-archive-size-hint": str(hint),
                **dict(_metadata_fields(metadata)),
            },
            until=until,
            end=until,
            within=(S3,),
            exact=True,
            upload=pieces,
        )

        def send(rested: float) -> None:
            with self.api.client.fetch(replace(request, rested=rested)) as answer:
                if answer.status // 100 != 2:
                    raise self.api.refusal(answer)

        with _errors_as("error-store-upload"):
            self.api.retry(send)


@contextmanager
def _errors_as(status: str) -> Iterator[None]:
    """Give failures of archive.org the status of a store's."""
    try:
        yield
    except FilesetError as error:
        if error.status in ("deadline-exceeded", "cancelled"):
            raise
        raise FilesetError(status, f"archive.org: {error.detail or error.status}") from error


def _metadata_fields(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the header fields of an item's metadata, one for each value of a list.

    In names, `--` stands for `_`. Values that are no plain ASCII are percent-encoded.
    """
    for name, value in metadata.items():
        for number, entry in enumerate(value if isinstance(value, list | tuple) else [value]):
            if plain := str(entry):
                field_name = f"x-archive-meta{number:02d}-{name.replace('_', '--')}"
                yield field_name, plain if _PLAIN.fullmatch(plain) else f"uri({quote(plain)})"


_MEMORY = 1 << 20
FILE, FILESET, BUNDLED = "archiveorg-file", "archiveorg-fileset", "archiveorg-fileset-bundled"


@dataclass(frozen=True, slots=True)
class Items(ArchivingStrategy):
    """The strategies archiveorg-*, of which `name` is one; `scratch` is a local folder."""

    archive_org: ArchiveClient
    scratch: Path

    def find_existing(self, base: str, item: FilesetPlatformItem) -> ArchiveStrategyResult | None:
        """Return what is archived of the item at archive.org, or by another strategy."""
        earlier = record.read(self.store, base)
        if earlier is None or earlier.archived.ingest_strategy.startswith(ARCHIVEORG):
            name = self.item_name(item, earlier)
            return _existing(earlier, self.archive_org.contents(name), item) if earlier else None
        # Super without arguments does not work in a class with slots.
        return ArchivingStrategy.find_existing(self, base, item)

    def item_name(self, item: FilesetPlatformItem, earlier: KeepingRecord | None) -> str:
        """Return the name of the archive.org item: the recorded one, or the configured one."""
        recorded = earlier.archived.archiveorg_item_name if earlier else None
        return recorded or keys.item_name(item, self.settings["fileset.strategy"])

    def archive(
        self, item: FilesetPlatformItem, base: str, first: KeepingRecord | None
    ) -> KeepingRecord:
        """Archive the files that the record, or the item at archive.org, lacks."""
        return _ArchiveOrgRun(self, item, first).archive()


def _existing(
    earlier: KeepingRecord, contents: ItemContents, item: FilesetPlatformItem
) -> ArchiveStrategyResult | None:
    """Return the recorded result if archive.org has the files, or is still busy with the item."""
    bundle = earlier.archived.bundle_file_meta
    archived = record.archived_files(earlier).values()
    wanted = {file.path: file for file in archived if _place_of(file) == file.path}
    if bundle:
        wanted[BUNDLE] = _bundle_file(bundle)
    same = {path: _is(file, contents.files.get(path)) for path, file in wanted.items()}
    return record.judge(
        earlier,
        item,
        [path for path, is_it in same.items() if is_it is None and not contents.busy],
        [path for path, is_it in same.items() if is_it is False],
        place=_place_of,
        detail="altered at archive.org since it was archived, not overwritten",
    )


def _is(file: FilesetManifestFile, stored: FilesetManifestFile | None) -> bool | None:
    """Return whether archive.org has exactly this file; None if it is missing or has no digests."""
    if stored is None:
        return None
    if file.size is not None and stored.size is not None and file.size != stored.size:
        return False
    pairs = ((file.md5, stored.md5), (file.sha1, stored.sha1))
    matches = [own == other for own, other in pairs if own and other]
    return all(matches) if matches else None


def _place_of(file: FilesetManifestFile) -> str:
    """Return the path in the archive.org item: that of the bundle for a member of it."""
    return file.path if file.offset is None else BUNDLE


def _bundle_file(meta: FileMeta) -> FilesetManifestFile:
    return FilesetManifestFile(
        path=BUNDLE, size=meta.size_bytes, md5=meta.md5hex, sha1=meta.sha1hex, mimetype=ZIP
    )


class _ArchiveOrgRun:
    """One attempt to archive an item; `earlier` is its record, if it was complete before."""

    def __init__(
        self, strategy: Items, item: FilesetPlatformItem, earlier: KeepingRecord | None
    ) -> None:
        self._strategy = strategy
        self._item = item
        self._name = strategy.item_name(item, earlier)
        self._record = earlier
        self._archived = record.archived_files(earlier)
        self._quota = Quota(item.files, strategy.settings)
        self._terminal: Terminal | None = None
        if item.platform_name != ARCHIVEORG and not strategy.archive_org.has_keys:
            detail = "to store files at archive.org, set IA_ACCESS_KEY and IA_SECRET_KEY"
            raise FilesetError("not-implemented", detail)
        self._contents = strategy.archive_org.contents(self._name)
        self._check_owner()

    def _check_owner(self) -> None:
        """Raise FilesetError (mismatch-existing) if the item has files of another manifest.

        Names without a digest can be those of another dataset, or of a changed manifest.
        """
        own = {file.path for file in self._item.manifest or ()} | {BUNDLE}
        others = sorted(self._contents.uploaded - own)
        if others and self._strategy.settings["fileset.strategy"]["item_names"] != "digest":
            detail = f"the item {self._name} has other files, such as {others[0]}"
            raise FilesetError("mismatch-existing", detail)

    def archive(self) -> KeepingRecord:
        """Archive all files and return the record."""
        if self._item.platform_name == ARCHIVEORG:
            return self._result([self._find_hosted(file) for file in self._item.files])
        if self._strategy.name != BUNDLED:
            return self._result(self._keep_all(self._item))
        if not self._archived:
            return self._bundle(self._item)
        within = {p for p, f in self._archived.items() if _place_of(f) == BUNDLE}
        whole, beside = record.split(self._item, within)
        bundle = earlier.archived.bundle_file_meta if (earlier := self._record) else None
        same = _is(_bundle_file(bundle), self._contents.files.get(BUNDLE)) if bundle else None
        if same is False:
            raise self._mismatch(BUNDLE)
        if not same and not self._contents.busy:
            self._bundle(whole)
        return self._result([*self._archived.values(), *self._keep_all(beside)])

    def _keep_all(self, item: FilesetPlatformItem) -> Sequence[FilesetManifestFile]:
        """Upload the files one after the other: archive.org takes one upload at a time."""
        settings = self._strategy.settings
        return list(
            transfer(item, lambda file, stop: file, self._keep, item.files, settings, connections=1)
        )

    def _find_hosted(self, file: FilesetManifestFile) -> FilesetManifestFile:
        """Return a file hosted by archive.org. Raises FilesetError if it changed after listing."""
        stored = self._contents.files.get(file.path)
        if stored is None or _is(file, stored) is False:
            detail = f"{file.path} at archive.org differs from its listing"
            raise FilesetError("changed-during-ingest", detail)
        return _existing_file(file, stored)

    def _keep(self, file: FilesetManifestFile, _: object) -> FilesetManifestFile:
        """Return the file once the item has it; upload it if necessary."""
        earlier = self._archived.get(file.path)
        stored = self._contents.files.get(file.path)
        wanted = files.like(file, earlier) if earlier else file
        same = _is(wanted, stored)
        if stored is not None and same:
            return earlier or _existing_file(file, stored)
        if same is False:
            raise self._mismatch(file.path)
        limit = self._quota.limit(wanted)
        with closing(self._spool()) as spool:
            received = self._strategy.downloader.download(wanted, limit, spool.open)
            self._quota.take(received.size)
            arrived = files.add_received(file, received)
            self._put(arrived, spool)
        self._terminal = files.terminal(received)
        return earlier or arrived

    def _bundle(self, item: FilesetPlatformItem) -> KeepingRecord:
        """Archive all files as one zip."""
        with closing(self._spool()) as spool:
            packed, meta = pack(item, self._strategy, spool.open, BUNDLE, self._record)
            self._put(_bundle_file(meta), spool)
        manifest = [replace(file, key=None) for file in packed]
        return record.of_files(
            self._item, BUNDLED, manifest, bundle=meta, archiveorg_item=self._name
        )

    def _put(self, file: FilesetManifestFile, spool: FileSpool) -> None:
        """Upload a file unless the item has it; check that archive.org did not store another."""
        same = _is(file, self._contents.files.get(file.path))
        if same is False:
            raise self._mismatch(file.path)
        if same:
            return
        archive, item = self._strategy.archive_org, self._item
        hint = sum(listed.size or 0 for listed in item.files)
        collection = self._strategy.settings["fileset.strategy"]["collection"]
        metadata = keys.item_metadata(item, collection)
        archive.put(self._name, file, spool.pieces, metadata, max(hint, file.size or 0))
        if _is(file, archive.contents(self._name).files.get(file.path)) is False:
            detail = f"{file.path} at archive.org differs from the uploaded file"
            raise FilesetError("error-store-verify", detail)

    def _mismatch(self, path: str) -> FilesetError:
        detail = f"the item {self._name} has another {path}; nothing is overwritten"
        return FilesetError("mismatch-existing", detail)

    def _result(self, manifest: Sequence[FilesetManifestFile]) -> KeepingRecord:
        return record.of_files(
            self._item,
            self._strategy.name,
            manifest,
            terminal=self._terminal,
            archiveorg_item=self._name,
        )

    def _spool(self) -> FileSpool:
        return FileSpool(self._strategy.scratch, _MEMORY, self._strategy.go_on)


def _existing_file(file: FilesetManifestFile, stored: FilesetManifestFile) -> FilesetManifestFile:
    """Return a file that archive.org had before this run."""
    return replace(
        file,
        status="exists",
        size=stored.size if file.size is None else file.size,
        md5=file.md5 or stored.md5,
        sha1=file.sha1 or stored.sha1,
        crc32=file.crc32 or stored.crc32,
    )
