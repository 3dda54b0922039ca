"""What web strategies capture is a web archive: `sheaf ingest` reads it like any other."""

import base64
import hashlib
import json

from tests.builder.filesets.command import Command
from tests.builder.filesets.deposits import content, deposit

FILES = {"a.csv": b"day,kg\n1,2\n", "b.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9}


def test_captured_files_are_published_as_captures_too(command: Command) -> None:
    """And lie where the table of files says, by the digest and the time that it tells."""
    command.configure(fileset__strategy='"web"')
    page = deposit(command.server, 11, FILES)
    (result,) = command.results(page)
    assert (result["status"], result["ingest_strategy"]) == ("success", "web-fileset")
    (key,) = command.store.keys("warcs/")
    command("ingest", str(command.folder / "store" / key))
    command("publish")

    def asked(sql: str) -> list[list[object]]:
        out, _ = command("query", "--json", sql)
        return [list(json.loads(line).values()) for line in out.splitlines()]

    captures = (
        "SELECT url, fetch_status, content_digest, content_length, content_digest_declared, "
        "'warcs/' || warc_filename, warc_record_offset, strftime(fetch_time, '%Y%m%d%H%M%S') "
        "FROM captures ORDER BY url"
    )
    files = "SELECT key, place, terminal_dt FROM files ORDER BY path"
    digests = [base64.b32encode(hashlib.sha1(data).digest()).decode() for data in FILES.values()]
    assert asked(captures) == [
        [content(11, path), 200, digest, len(data), None, *place]
        for (path, data), digest, place in zip(FILES.items(), digests, asked(files), strict=True)
    ]
    assert asked("SELECT * FROM faults") == []
