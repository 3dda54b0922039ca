"""Client for items of archive.org. The only module that uses the internetarchive library.

The library does not read the user's configuration, and its own retries are off: its sleep cannot be
interrupted.
"""

import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from builder.filesets.platforms.archiveorg import is_uploaded
from builder.filesets.platforms.json_document import digest, entries, inner, size, text
from builder.filesets.protocols import FilesetError
from builder.http.settings import Settings, http_settings

T = TypeVar("T")
GoOn = Callable[[], None]

_SECONDS = 120  # seconds without data
_STEP = 0.5
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_ONE_LINE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Stored:
    """A file of an item, as archive.org describes it; digests in hexadecimal digits."""

    size: int | None
    md5: str | None
    sha1: str | None
    crc32: str | None = None


@dataclass(frozen=True, slots=True)
class ItemContents:
    """The files of an item by path; empty if the item does not exist.

    `uploaded` are the paths without the files that archive.org made itself. While archive.org is
    processing the item (`busy`), the list may lack files that it has.
    """

    files: Mapping[str, Stored] = field(default_factory=dict)
    uploaded: frozenset[str] = frozenset()
    busy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveClient:
    """A connection to archive.org with an account's keys; without keys it is read-only.

    A request is tried `tries` times, with `rest` seconds between, longer each time. `go_on` is
    called meanwhile and may raise a FilesetError. `adapters` handle the URLs that start with their
    keys.
    """

    access: str | None = None
    secret: str | None = None
    agent: str = ""
    tries: int = 4
    rest: float = 10.0
    go_on: GoOn = lambda: None
    adapters: Mapping[str, Any] = field(default_factory=dict)
    sleep: Callable[[float], None] = time.sleep

    @classmethod
    def of(
        cls, environment: Mapping[str, str], settings: Settings, agent: str, go_on: GoOn
    ) -> "ArchiveClient":
        """Create a client with the keys IA_ACCESS_KEY and IA_SECRET_KEY of an environment."""
        http = http_settings(settings, "fileset")
        return cls(
            access=environment.get("IA_ACCESS_KEY"),
            secret=environment.get("IA_SECRET_KEY"),
            agent=agent,
            tries=http.tries,
            rest=http.backoff_seconds,
            go_on=go_on,
        )

    def check(self) -> None:
        """Raise FilesetError (not-implemented) unless items can be written."""
        if not (self.access and self.secret):
            detail = "to store files at archive.org, set IA_ACCESS_KEY and IA_SECRET_KEY"
            raise FilesetError("not-implemented", detail)
        self._session().close()

    def contents(self, item: str) -> ItemContents:
        """Return the files of an item. Raises FilesetError (error-store-verify)."""

        def ask(session: Any) -> object:
            return session.get_metadata(item, request_kwargs={"timeout": _SECONDS})

        found = self._retry(ask, "error-store-verify")
        if not isinstance(found, Mapping):
            return ItemContents()
        named = {
            name: {**one, "name": name}
            for one in entries(found.get("files"))
            if (name := _name(one))
        }
        files = {name: _parse_file(one) for name, one in named.items()}
        uploaded = frozenset(name for name, one in named.items() if is_uploaded(item, one))
        waiting = found.get("pending_tasks") is True or bool(found.get("tasks"))
        return ItemContents(files, uploaded, waiting)

    def put(self, item: str, path: str, file: Path, metadata: Mapping[str, Any], hint: int) -> None:
        """Upload a file to an item, which is created with the metadata if it does not exist.

        `hint` is the expected size of the item in bytes. archive.org rejects bytes whose MD5
        differs from the declared one. Raises FilesetError (error-store-upload).
        """

        def ask(session: Any) -> object:
            return session.get_item(item, {"metadata": {}, "files": []}).upload_file(
                str(file),
                key=path,
                metadata=dict(metadata),
                headers={"x-archive-size-hint": str(hint), "x-archive-keep-old-version": "0"},
                queue_derive=False,
                verify=True,
                request_kwargs={"timeout": _SECONDS},
            )

        self._retry(ask, "error-store-upload")

    def _retry(self, ask: Callable[[Any], T], status: str) -> T:
        """Return the response of archive.org; retry failures that may pass."""
        for left in reversed(range(self.tries)):
            self.go_on()
            try:
                with closing(self._session()) as session:
                    return ask(session)
            # The library raises other errors anew with one argument, which not all of them take.
            except (OSError, ValueError, TypeError) as error:
                if not left or not _passes(error):
                    detail = f"archive.org: {_line(error)}"
                    raise FilesetError(status, detail) from error
            self._wait(self.rest * (self.tries - left))
        raise AssertionError("unreachable")

    def _wait(self, seconds: float) -> None:
        while seconds > 0:
            self.go_on()
            self.sleep(min(_STEP, seconds))
            seconds -= _STEP

    def _session(self) -> Any:
        try:
            from internetarchive import ArchiveSession
        except ImportError as error:
            detail = (
                "archive.org needs the extra archiveorg: pip install 'sheaf-archive[archiveorg]'"
            )
            raise FilesetError("not-implemented", detail) from error
        given = {
            "s3": {"access": self.access, "secret": self.secret},
            "general": {"user_agent_suffix": self.agent},
        }
        session = ArchiveSession(given, os.devnull, http_adapter_kwargs={"max_retries": 0})
        session.trust_env = False
        for start, adapter in self.adapters.items():
            session.mount(start, adapter)
        return session


def _name(file: Mapping[str, Any]) -> str | None:
    return None if text(file.get("old_version")) else text(file.get("name"))


def _parse_file(file: Mapping[str, Any]) -> Stored:
    return Stored(
        size=size(file.get("size")),
        md5=digest(file.get("md5"), "md5"),
        sha1=digest(file.get("sha1"), "sha1"),
        crc32=digest(file.get("crc32"), "crc32"),
    )


def _passes(error: Exception) -> bool:
    """Return whether a failure may pass: there was no response, or a status that says so."""
    code = inner({"of": vars(error)}, "of").get("response")
    status = getattr(code, "status_code", None)
    return status is None or status in _PASSING


def _line(error: Exception) -> str:
    return _ONE_LINE.sub(" ", str(error)).strip()[:300] or type(error).__name__
