"""A plain harvester, as a process of its own: asks, counts records, finds the token, and no more.

    python -m bench.client URL [--pages N] [--gzip] [QUERY...]

Follows the list of each query for N pages (0: to its end) and prints a line of JSON for each:
records, pages, bytes as they came, seconds, and the milliseconds of each page.
"""

import argparse
import gzip
import http.client
import json
import time
from urllib.parse import quote, urlsplit

_TOKEN = b"<resumptionToken"


def follow(address: str, query: str, pages: int, *, compressed: bool) -> dict[str, object]:
    url = urlsplit(address)
    connection = http.client.HTTPConnection(url.hostname or "", url.port)
    headers = {"Accept-Encoding": "gzip"} if compressed else {}
    times: list[float] = []
    records = size = 0
    began = time.perf_counter()
    while query and not (pages and len(times) == pages):
        start = time.perf_counter()
        connection.request("GET", f"{url.path}?{query}", headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (answer.status, body[:300])
        size += len(body)
        if answer.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        assert b"<error " not in body, body[:1000]
        records += body.count(b"<record>")
        token = _token(body)
        query = f"verb=ListRecords&resumptionToken={quote(token)}" if token else ""
        times.append((time.perf_counter() - start) * 1000)
    connection.close()
    seconds = time.perf_counter() - began
    return {
        "records": records,
        "pages": len(times),
        "bytes": size,
        "seconds": seconds,
        "times": times,
    }


def _token(body: bytes) -> str:
    start = body.rfind(_TOKEN)
    if start < 0:
        return ""
    start = body.find(b">", start) + 1
    return (
        body[start : body.find(b"<", start)].strip().decode()
        if body[start - 2 : start] != b"/>"
        else ""
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("queries", nargs="*")
    parser.add_argument("--pages", type=int, default=0)
    parser.add_argument("--gzip", action="store_true")
    arguments = parser.parse_args()
    for query in arguments.queries:
        found = follow(arguments.url, query, arguments.pages, compressed=arguments.gzip)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
