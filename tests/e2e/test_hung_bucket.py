"""A bucket that takes requests and never answers: who needs none of it is served at once."""

import json
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.bucket import fresh
from tests.e2e.test_s3 import PREFIX, TOKEN, Bucketed
from tests.e2e.test_server import running
from tests.proxy import Proxy, Slow, always

pytestmark = [pytest.mark.shared(2), pytest.mark.flaky(reruns=2)]

PAGES = {f"http://a{n % 5}.cz/{n}": f"<title>Page {n}</title>".encode() for n in range(40)}
AT_ONCE = 2.0
"""Seconds, on a machine that does other things too."""
BOUND = 20.0
"""Seconds within which each answer comes: a turn (10), and a request that fails (5)."""


def ask(url: str) -> tuple[int, float, str]:
    """Return status, seconds and body of an answer."""
    begun = time.monotonic()
    try:
        with urllib.request.urlopen(url, timeout=4 * BOUND) as answer:
            status, body = answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        status, body = refused.code, refused.read().decode()
    return status, time.monotonic() - begun, body


def test_a_hung_bucket_delays_no_cached_page(
    moto_server: str, proxy: Proxy, tmp_path: Path
) -> None:
    home = Bucketed(tmp_path / "home", fresh(moto_server))
    home.publish_pages(tmp_path / "one.warc.gz", PAGES)
    home.variables["SHEAF_STORE_ENDPOINT"] = proxy.url
    settings = {
        "SHEAF_PAGES_RECORDS": "10",
        "SHEAF_SERVE_WORKERS": "2",
        "SHEAF_SERVE_CONCURRENT": "4",
    }
    with running(home, **home.variables, **settings) as (oai, log, _):
        url = oai.removesuffix("/oai")
        first = f"{oai}?verb=ListRecords&{PREFIX}"
        address = ""
        for _ in range(8):  # each worker answers some of them
            status, _, body = ask(first)
            assert status == 200
            token = TOKEN.search(body)
            assert token is not None
            address = f"{oai}?verb=ListRecords&resumptionToken={quote(token[1])}"
            assert ask(address)[0] == ask(f"{oai}?verb=Identify")[0] == 200
        time.sleep(2.5)  # the pointer is to be read anew
        proxy.fault = always(Slow(600))
        with ThreadPoolExecutor(40) as pool:
            health = pool.submit(ask, f"{url}/health")
            # More than have turns and may wait for one, of sets that no worker has read.
            others = [
                pool.submit(ask, f"{first}&set=domain:cz:a{n % 5}&until=2099-01-{n + 1:02}")
                for n in range(30)
            ]
            time.sleep(0.5)
            for _ in range(20):
                status, seconds, _ = ask(address)
                assert status == 200
                assert seconds < AT_ONCE
            assert [each.done() for each in others].count(False) > 2  # while others wait
            assert health.result()[0] == 503
            assert health.result()[1] < BOUND
            for each in others:
                assert each.result()[0] == 503
                assert each.result()[1] < BOUND
        # What the workers have in memory serves on.
        assert ask(f"{oai}?verb=Identify")[0] == 200
        proxy.fault = lambda seen: None
        end = time.monotonic() + BOUND
        while ask(f"{url}/health")[0] != 200 and time.monotonic() < end:
            time.sleep(0.2)
        assert ask(f"{first}&set=domain:cz:a1")[0] == 200
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    errors = [row["message"] for row in rows if row.get("level") == "error"]
    assert any(message.startswith("StoreUnavailable: ") for message in errors)
