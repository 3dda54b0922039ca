"""WebHDFS, the HTTP interface of Hadoop and of HttpFS gateways.

https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/WebHDFS.html

The name node redirects a read to the data node that has the bytes. A cluster with Kerberos needs a
delegation token in the environment.
"""

import errno
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from builder.http.errors import FetchError
from builder.http.ranges import RangeClient
from builder.http.responses import Response, read_body
from builder.ingest.remote.access import SourceAccess
from builder.ingest.remote.hadoop_files import USER, HadoopStatus
from builder.ingest.remote.web_client import connect as connect_web
from builder.ingest.remote.web_client import wrap_failures

T = TypeVar("T")

TOKEN = "WEBHDFS_DELEGATION_TOKEN"
"""The variable of a delegation token, as GETDELEGATIONTOKEN prints it."""
_PORTS = {"webhdfs": ("http", 9870), "swebhdfs": ("https", 9871)}
_LARGEST, _LONGEST = 1 << 28, 1 << 16  # bytes of a listing, and of a refusal
_MISSING = "FileNotFoundException"


@dataclass(frozen=True, slots=True)
class WebHdfs:
    """Implements HadoopClient. `base` is the URL of the root, `user` the query of each request."""

    web: RangeClient
    base: str
    user: Mapping[str, str]

    def status(self, path: str) -> HadoopStatus:
        """Return the status of a path (see HadoopClient)."""

        def take(document: Any) -> HadoopStatus:
            return _describe(path, document["FileStatus"])

        return self._read_document(path, "GETFILESTATUS", take)

    def list(self, path: str) -> list[HadoopStatus]:
        """Return the files and folders in a folder; symbolic links are left out."""

        def take(document: Any) -> list[HadoopStatus]:
            return [
                _describe(f"{path.rstrip('/')}/{one['pathSuffix']}", one)
                for one in document["FileStatuses"]["FileStatus"]
                if one["type"] != "SYMLINK"
            ]

        return self._read_document(path, "LISTSTATUS", take)

    def read(self, path: str, start: int, length: int) -> bytes:
        """Return bytes of a file (see HadoopClient)."""

        def take(response: Response) -> bytes:
            self._check(response)
            data = read_body(response.headers, response.body, length)
            if len(data) != length:
                raise FetchError("cut-short", f"{len(data):,} of {length:,} bytes")
            return data

        with wrap_failures():
            return self.web.ask(self._url(path, "OPEN", offset=start, length=length), take)

    def _read_document(self, path: str, operation: str, take: Callable[[Any], T]) -> T:
        def read(response: Response) -> T:
            self._check(response)
            try:
                return take(json.loads(read_body(response.headers, response.body, _LARGEST)))
            except (ValueError, KeyError, TypeError) as error:
                raise FetchError("bad-answer", f"it is not of WebHDFS: {error!r}") from error

        with wrap_failures():
            return self.web.ask(self._url(path, operation), read)

    def _check(self, response: Response) -> None:
        """Raise FetchError for a refusal, with its reason, or FileNotFoundError."""
        if response.status == 200:
            return
        refusal, reason = self.web.client.refusal(response), ""
        with suppress(FetchError, ValueError, KeyError, TypeError):
            body = json.loads(read_body(response.headers, response.body, _LONGEST))
            found = body["RemoteException"]
            reason = f"{found['exception']}: {str(found['message']).splitlines()[0]}"
        if response.status == 404 and reason.startswith(_MISSING):
            raise FileNotFoundError(errno.ENOENT, reason)
        raise FetchError(refusal.code, reason or refusal.detail, response.status)

    def _url(self, path: str, operation: str, **more: int) -> str:
        query = urlencode({"op": operation, **more, **self.user})
        return f"{self.base}{quote(path)}?{query}"


def connect(place: str, access: SourceAccess, environment: Mapping[str, str]) -> WebHdfs:
    """Return the client of a cluster, such as webhdfs://host:9870 or swebhdfs://host (with TLS)."""
    scheme, _, host = place.partition("://")
    web_scheme, port = _PORTS[scheme]
    has_port = host.rpartition(":")[2].isdecimal() and not host.endswith("]")
    base = f"{web_scheme}://{host if has_port else f'{host}:{port}'}/webhdfs/v1"
    user = {}
    if token := environment.get(TOKEN):
        user = {"delegation": token}
    elif name := environment.get(USER):
        user = {"user.name": name}
    return WebHdfs(connect_web(base, access, environment, trusted=True), base, user)


def _describe(path: str, found: Mapping[str, Any]) -> HadoopStatus:
    modified = int(found["modificationTime"]) * 1_000_000  # it is in milliseconds
    return HadoopStatus(path, found["type"] == "DIRECTORY", int(found["length"]), modified)
