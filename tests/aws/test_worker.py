"""The function that archives datasets, as AWS runs it, over a bucket that checks signatures."""

import json
from contextlib import closing
from pathlib import Path

from builder.sources.datasets.strategies.keys import RECORD
from tests.aws.build import function
from tests.aws.runtime import running
from tests.bucket import fresh
from tests.builder.sources.datasets.invenio import BODIES, Site
from tests.builder.sources.datasets.server import serving, status

HANDLER = "builder.aws.fileset_worker.handler"


def test_it_archives_what_messages_ask_for(
    weed_server: str, artefacts: Path, tmp_path: Path
) -> None:
    with serving() as server, closing(fresh(weed_server)) as bucket:
        site = Site(server)
        good, down = site.record("hives-1"), site.record("hives-2", n0=status(503))
        environment = {
            **bucket.environment,
            "SHEAF_STORE_URI": bucket.uri,
            "SHEAF_REPOSITORY_ADMIN_EMAILS": '["bees@archive.example.org"]',
            "SHEAF_HTTP_ALLOW_NETWORKS": '["127.0.0.0/8"]',
            "SHEAF_HTTP_PORTS": f"[{server.port}]",
            "SHEAF_FILESET_STRATEGY": "s3",
            "SHEAF_HTTP_TRIES": "1",
        }
        bodies = [json.dumps({"base_url": url}) for url in (good, down)]
        records = [{"messageId": str(n), "body": body} for n, body in enumerate(bodies)]
        event = json.dumps({"Records": records}).encode()
        folder = function(artefacts, "FilesetFunction")
        with running(folder, environment, tmp_path / "runtime", 120, HANDLER) as runtime:
            again = {"batchItemFailures": [{"itemIdentifier": "1"}]}
            assert runtime.invoke(event) == again
            server.forget()
            assert runtime.invoke(event) == again
            assert not server.asked(site.content("hives-1", ""))
        kept = {key.rpartition("/")[2]: bucket.read(key) for key in bucket.keys("filesets/")}
        assert kept.pop(RECORD)
        assert {path: kept[path] for path in BODIES} == BODIES
        assert len([key for key in bucket.keys("intake/") if key.endswith("/run.json")]) == 2
