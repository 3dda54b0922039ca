"""Dumps of a store in a bucket: exported, published, and cheap for small changes."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from builder.outputs.dumps.update import update_dumps
from builder.runtime import Runtime
from functions.config import configuration
from functions.snapshot import dumps
from tests.builder.outputs.dumps.history import contents, expand
from tests.e2e.conftest import Home, make_home, warc
from tests.e2e.test_s3 import PAGES, Bucketed, Make
from tests.proxy import Proxy
from tests.static import on_the_web


@pytest.mark.thorough
def test_a_bucket_is_exported_and_has_dumps(
    tmp_path: Path, make_bucket: Make, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHEAF_PUBLISH_DUMPS", '["jsonl", "oai_dc"]')
    bucket = make_bucket()
    home = Bucketed(tmp_path / "home", bucket, proxy.url)
    home.publish_pages(tmp_path / "one.warc.gz", PAGES)
    assert home("export", "jsonl", tmp_path / "all").code == 0
    _, parts = contents(tmp_path / "all")
    index = json.loads(bucket.read(dumps.INDEX))
    complete = index["formats"]["jsonl"]["complete"]
    stored = expand(bucket.read(dumps.FOLDER + complete["name"]), complete["name"])
    assert [stored] == parts

    two = warc(tmp_path / "two.warc.gz", {"http://novy.cz/": b"<title>New</title>"})
    assert home("ingest", two).code == 0
    begun = len(proxy.seen)
    assert home("publish").code == 0
    asked = [seen for seen in proxy.seen[begun:] if f"/{dumps.FOLDER}" in seen.path]
    # For each format a part, its keys and the list; the superseded lists; and the index.
    assert len([seen for seen in asked if seen.method == "PUT"]) == 8
    assert len(asked) <= 15
    new = json.loads(bucket.read(dumps.INDEX))["formats"]["oai_dc"]["newest"]
    assert (new["since"], new["records"]) == (1, 1)
    assert home("verify").code == 0
    taken = home("withdraw", "--url-prefix", "http://novy.cz/", "--reason", "x")
    assert taken.code == 0
    for key in bucket.keys(dumps.FOLDER):
        data = bucket.read(key)
        assert b"http://novy" not in (expand(data, key) if key.endswith(".zst") else data)


def test_a_store_at_a_web_address_is_exported_as_its_folder(tmp_path: Path) -> None:
    home: Home = make_home(tmp_path / "home")
    home.publish_pages(tmp_path / "one.warc.gz", PAGES)
    assert home("export", "oai", tmp_path / "here").code == 0
    with on_the_web(home.folder / "store") as site:
        done = home("export", "oai", tmp_path / "there", "--store", site.url)
    assert done.code == 0, done.err
    here, there = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("here", "there")
    )
    assert here == there


def test_without_dumps_a_publish_asks_once(make_bucket: Make, proxy: Proxy) -> None:
    bucket = make_bucket().through(proxy.url)
    runtime = Runtime(lambda: datetime.now(UTC), lambda s: None, lambda text: None, {})
    update_dumps(bucket, configuration.parse('[repository]\nnamespace = "b.cz"\n', {}), runtime)
    assert len(proxy.seen) == 1


def test_without_dumps_a_publish_loads_no_renderer() -> None:
    program = """
import sys
from pathlib import Path
from datetime import UTC, datetime
from builder.outputs.dumps.output import DumpsOutput
from builder.outputs.dumps.update import update_dumps
from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.store.folder import FolderStore
from functions.config import configuration
settings = configuration.parse('[repository]\\nnamespace = "b.cz"\\n', {})
DumpsOutput().check(settings)
runtime = Runtime(lambda: datetime.now(UTC), lambda s: None, print, {})
update_dumps(FolderStore(Path("nowhere")), settings, runtime)
sys.exit("jinja2" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
