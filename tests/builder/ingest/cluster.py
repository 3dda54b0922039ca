"""A cluster of this machine as WebHDFS shows it: a name node, and a data node on another port."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, quote, unquote, urlsplit


@dataclass
class Cluster:
    """Its files by absolute paths, each with a modification time in milliseconds."""

    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    queries: list[dict[str, str]] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)
    """Statuses with which the data node fails next."""
    token: str = ""
    """Without it in a request, the name node refuses."""
    name_port: int = 0
    data_port: int = 0

    def url(self, path: str) -> str:
        return f"webhdfs://127.0.0.1:{self.name_port}{path}"

    def is_folder(self, path: str) -> bool:
        return any(name.startswith(f"{path.rstrip('/')}/") for name in self.files)

    def status(self, path: str, suffix: str) -> dict[str, object]:
        data, modified = self.files.get(path, (b"", 0))
        kind = "FILE" if path in self.files else "DIRECTORY"
        return {
            "pathSuffix": suffix,
            "type": kind,
            "length": len(data),
            "modificationTime": modified,
        }

    def statuses(self, path: str) -> list[dict[str, object]]:
        below = f"{path.rstrip('/')}/"
        names = {n[len(below) :].partition("/")[0] for n in self.files if n.startswith(below)}
        return [self.status(below + name, name) for name in sorted(names, reverse=True)]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    cluster: Cluster


class _Node(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        pass

    def answer(self, code: int, body: bytes, **more: str) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        for name, value in more.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, code: int, exception: str, message: str) -> None:
        found = {"exception": exception, "message": message}
        self.answer(code, json.dumps({"RemoteException": found}).encode())

    def parse(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        return unquote(parts.path.removeprefix("/webhdfs/v1")) or "/", query


class _NameNode(_Node):
    def do_GET(self) -> None:
        cluster, (path, query) = self.server.cluster, self.parse()
        cluster.queries.append(query)
        if cluster.token and query.get("delegation") != cluster.token:
            self.refuse(403, "AccessControlException", "Permission denied: user=dr.who\n\tat a.b")
        elif path not in cluster.files and not cluster.is_folder(path):
            self.refuse(404, "FileNotFoundException", f"File does not exist: {path}")
        elif query["op"] == "GETFILESTATUS":
            self.answer(200, json.dumps({"FileStatus": cluster.status(path, "")}).encode())
        elif query["op"] == "LISTSTATUS":
            found = {"FileStatuses": {"FileStatus": cluster.statuses(path)}}
            self.answer(200, json.dumps(found).encode())
        else:
            rest = f"{quote(path)}?{urlsplit(self.path).query}"
            place = f"http://localhost:{cluster.data_port}/webhdfs/v1{rest}"
            self.answer(307, b"", Location=place)


class _DataNode(_Node):
    def do_GET(self) -> None:
        cluster, (path, query) = self.server.cluster, self.parse()
        if cluster.failures:
            self.refuse(cluster.failures.pop(0), "IOException", "the disk failed")
            return
        start = int(query["offset"])
        self.answer(200, cluster.files[path][0][start : start + int(query["length"])])


@contextmanager
def running() -> Iterator[Cluster]:
    with _Server(("127.0.0.1", 0), _NameNode) as name, _Server(("127.0.0.1", 0), _DataNode) as data:
        cluster = Cluster(name_port=name.server_port, data_port=data.server_port)
        name.cluster = data.cluster = cluster
        threads = [Thread(target=one.serve_forever, args=(0.02,)) for one in (name, data)]
        for thread in threads:
            thread.start()
        try:
            yield cluster
        finally:
            for one in (name, data):
                one.shutdown()
            for thread in threads:
                thread.join()
