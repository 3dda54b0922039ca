"""One execution environment of the function, for bench.cold: begun, asked, and gone.

    PYTHONPATH=ARTEFACT python3.13 invoke.py READER QUERY...

It prints as JSON when its handler was ready and each answer there (seconds since 1970), the CPU
that each took, and the lines of the access log. `alone` in place of a reader is DuckDB with no
Sheaf: a row group fetched and a thousand rows read.
"""

import io
import json
import os
import sys
import time
from typing import Any


def function(reader: str) -> Any:
    if reader != "obstore":
        import types

        import readers  # type: ignore[import-not-found] # beside this file

        client: Any = types.ModuleType("functions.store.client")
        # A store on a web server has no client to compare, but `slice` imports one by name.
        client.Client = client.WebClient = readers.READERS[reader]
        sys.modules["functions.store.client"] = client
    from functions.site import function as serving

    return serving.handler


_CLIENT = {"path": "/oai", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"}


def event(query: str) -> dict[str, Any]:
    return {
        "version": "2.0",
        "rawPath": "/oai",
        "rawQueryString": query,
        "headers": {"host": "bench.example.org", "accept-encoding": "gzip"},
        "requestContext": {"stage": "$default", "http": {"method": "GET", **_CLIENT}},
    }


def alone(address: str) -> None:
    """Read a thousand rows of the bytes at URL#offset-size with DuckDB alone."""
    import http.client
    from urllib.parse import urlsplit

    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    ready = time.time()
    parts = urlsplit(address)
    offset, size = map(int, parts.fragment.split("-"))
    server = http.client.HTTPConnection(parts.netloc)
    server.request("GET", parts.path, headers={"Range": f"bytes={offset}-{offset + size - 1}"})
    data = server.getresponse().read()
    # Nothing more than it needs is imported.
    path = f"{os.environ['TMPDIR']}/bench-alone-{os.getpid()}.parquet"
    with open(path, "wb") as file:  # noqa: PTH123
        file.seek(offset)
        file.write(data)
    columns = (
        "position, identifier, sets, url, fetch_date, content_digest, content_mime_type, title"
    )
    rows = connection.execute(
        f"SELECT {columns} FROM read_parquet(?) LIMIT 1000", [path]
    ).fetchall()
    assert len(rows) == 1000
    os.remove(path)  # noqa: PTH107
    print(
        json.dumps({"ready": ready, "answers": [{"at": time.time(), "cpu": time.process_time()}]})
    )


def main() -> None:
    reader, *queries = sys.argv[1:]
    if reader == "alone":
        alone(queries[0])
        return
    out, sys.stdout = sys.stdout, io.StringIO()
    handler = function(reader)
    ready, cpu = time.time(), time.process_time()
    told: dict[str, Any] = {"ready": ready, "cpu": cpu, "answers": []}
    for query in queries:
        if query.startswith("sleep="):
            time.sleep(float(query[6:]))
            continue
        before, begun = time.process_time(), time.time()
        answer = handler(event(query), None)
        now = time.time()
        log = sys.stdout.getvalue().splitlines()[-1]
        told["answers"].append(
            {
                "at": now,
                "seconds": now - begun,
                "cpu": time.process_time() - before,
                "status": answer["statusCode"],
                "log": json.loads(log),
            }
        )
    print(json.dumps(told), file=out)


if __name__ == "__main__":
    main()
