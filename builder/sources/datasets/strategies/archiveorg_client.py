"""Client for items of archive.org: reads their metadata, and uploads by its S3 interface (IAS3).

The library of archive.org's own was left for its licence (AGPL), and because its sleep between two
tries cannot be interrupted.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from builder.http.client import FetchRequest
from builder.sources.datasets.download.api import PlatformApi
from builder.sources.datasets.item import FilesetManifestFile
from builder.sources.datasets.platforms.archiveorg import is_uploaded, parse_file
from builder.sources.datasets.platforms.json_document import entries, text
from builder.sources.datasets.protocols import FilesetError

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

    def check(self) -> None:
        """Raise FilesetError (not-implemented) unless items can be written."""
        if not self.has_keys:
            detail = "to store files at archive.org, set IA_ACCESS_KEY and IA_SECRET_KEY"
            raise FilesetError("not-implemented", detail)

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
        headers = {
            "Content-Length": str(file.size),
            "Content-MD5": file.md5 or "",
            "x-archive-auto-make-bucket": "1",
            "x-archive-keep-old-version": "0",
            "x-archive-queue-derive": "0",
            "x-archive-size-hint": str(hint),
            **dict(_metadata_fields(metadata)),
        }
        limits, until = self.api.limits, self.api.until
        request = FetchRequest(
            url=f"https://{S3}/{quote(item)}/{quote(file.path)}",
            limits=replace(limits, total=self.seconds, first_byte=max(_SECONDS, limits.first_byte)),
            headers=headers,
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
            plain = str(entry)
            if plain:
                field_name = f"x-archive-meta{number:02d}-{name.replace('_', '--')}"
                yield field_name, plain if _PLAIN.fullmatch(plain) else f"uri({quote(plain)})"
