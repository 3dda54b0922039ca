"""Context of a command: configuration, store, clock, and output."""

import argparse
import json
import os
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from builder.errors import UsageError
from builder.progress import ProgressBar
from builder.runtime import Clock, Runtime, draw_id
from builder.store import aws
from builder.store.folder import FolderStore
from builder.store.identity import has_content, read_identity
from builder.store.s3 import S3Store, Store, open_store
from builder.store.suffix_list import suffix_list_version
from builder.store.web_store import WebStore
from functions.config import configuration
from functions.config.configuration import Configuration
from functions.snapshot import instant, layout
from functions.snapshot.errors import DamagedStore, NothingPublished
from functions.snapshot.seal import to_values
from functions.store.catalog import Catalogue


@dataclass(frozen=True)
class Context:
    """A command's arguments and dependencies; `now` returns UTC, `sleep` takes seconds.

    `identity` draws the id of a store that has none.
    """

    arguments: argparse.Namespace
    environment: Mapping[str, str]
    now: Clock = lambda: datetime.now(UTC)
    sleep: Callable[[float], None] = time.sleep
    identity: Callable[[], str] = draw_id

    @cached_property
    def configuration_path(self) -> Path:
        """Path of the configuration, whether it exists or not."""
        return Path(self.arguments.config or configuration.FILE)

    @cached_property
    def configuration(self) -> Configuration:
        """The configuration.

        Raises ConfigurationError, also if it is missing and nothing else names the store.
        """
        is_named = self.arguments.store is not None or configuration.STORE in self.environment
        return self._load(needed=not is_named)

    @cached_property
    def defaults(self) -> Configuration:
        """The configuration, or defaults if it is missing. Raises ConfigurationError."""
        return self._load(needed=False)

    def _load(self, *, needed: bool) -> Configuration:
        remedy = (
            f"run `sheaf init`, name a file with --config, or a store with {configuration.STORE}"
        )
        if not (needed or self.arguments.config):
            remedy = ""
        return configuration.load(self.configuration_path, self.environment, remedy)

    @cached_property
    def store(self) -> Store:
        """The store that the arguments or the configuration name.

        If the command writes, a bucket is tested now, not after hours (S3Store.prove). Raises
        UsageError for a web address then, and for a folder that the arguments name and that does
        not exist, if it only reads.
        """
        store = open_store(*self.store_uri(), self.configuration, self.environment)
        writes = getattr(self.arguments, "writes", False)
        if isinstance(store, WebStore) and writes:
            store.refuse_write()
        if isinstance(store, S3Store) and writes and not getattr(self.arguments, "dry_run", False):
            store.prove()
        is_named = self.arguments.store is not None and not writes
        if is_named and isinstance(store, FolderStore) and not store.root.is_dir():
            raise UsageError(f"{store.address}: there is no such folder, so it is no store")
        return store

    def published_store(self) -> Store:
        """Return the store.

        Raises NothingPublished if it has no more than `sheaf init` writes, or is no store.
        """
        address = self.store.address
        try:
            if Catalogue(self.store).pointer().newest() is not None:
                return self.store
            identity = read_identity(self.store)
            if (identity is not None and identity.is_published) or has_content(self.store):
                return self.store
        except DamagedStore:
            return self.store
        if identity is None and self.store.tag(layout.POINTER) is None and self.store.folders(""):
            raise NothingPublished(
                f"{address} is not a store, so nothing is published: it has neither "
                f"{layout.IDENTITY} nor {layout.POINTER} nor anything else that Sheaf writes"
            )
        if isinstance(self.store, FolderStore) and not self.store.root.is_dir():
            raise NothingPublished(
                f"{address}: there is no such folder: nothing is published yet (`sheaf publish` "
                "makes it), or its disk is not mounted, or it was moved or lost"
            )
        raise NothingPublished(
            f"{address}: nothing is published in this store yet: run `sheaf publish`"
        )

    @cached_property
    def reading_environment(self) -> Mapping[str, str]:
        """The environment with the keys of the AWS profile, for readers that serve."""
        return aws.SessionEnvironment(self.environment)

    def store_uri(self) -> tuple[str, Path]:
        """Return the store's address, and the folder that it is relative to."""
        if self.arguments.store is not None:
            return self.arguments.store, Path.cwd()
        return self.configuration["store.uri"], self.configuration_path.parent

    def scratch(self) -> Path:
        """Return the folder for unfinished files: in a store's folder, else in a cache."""
        if isinstance(self.store, FolderStore):
            return self.store.root / layout.TEMPORARY
        if self.environment.get("XDG_CACHE_HOME"):
            return Path(self.environment["XDG_CACHE_HOME"]) / "sheaf"
        if self.environment.get("HOME"):
            return Path(self.environment["HOME"]) / ".cache" / "sheaf"
        # Its name is the same each time, so that work goes on: nobody else may have made it.
        folder = Path(tempfile.gettempdir()) / f"sheaf-{os.getuid()}"
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        status = folder.lstat()
        if (
            not stat.S_ISDIR(status.st_mode)
            or status.st_uid != os.getuid()
            or status.st_mode & 0o77
        ):
            raise UsageError(
                f"{folder} must be a folder of this user alone: remove it, or set XDG_CACHE_HOME"
            )
        return folder

    def runtime(self) -> Runtime:
        """Return the dependencies for changing a store."""
        return Runtime(
            clock=self.now,
            sleep=self.sleep,
            say=self.say,
            libraries={"publicsuffixlist": suffix_list_version()},
            threads=os.cpu_count() or 1,
            progress=lambda total: ProgressBar("", total, " records"),
            publisher=secrets.token_hex(8),
            identity=self.identity,
        )

    def say(self, text: str) -> None:
        """Print a message for the user on standard error."""
        print(text, file=sys.stderr, flush=True)

    def result(self, text: str, document: Any) -> None:
        """Print the result: `text`, or with --json only `document`.

        A document is of JSON values, dataclasses and instants; these are told to the second.
        """
        if self.arguments.json:
            values, form = to_values(document), instant.to_text
            print(json.dumps(values, indent=1, ensure_ascii=False, default=form), flush=True)
        else:
            print(text, flush=True)


def from_environment(arguments: argparse.Namespace) -> Context:
    """Return a context with the process's environment."""
    return Context(arguments, dict(os.environ))
