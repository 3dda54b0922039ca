"""One suite over the places where a store may live: the commands, publishers at once, refusals."""

import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from functions.snapshot import layout
from tests.bucket import Bucket, fresh
from tests.e2e.conftest import warc
from tests.e2e.test_s3 import PAGES, Bucketed, Served
from tests.extent import PLACES
from tests.proxy import Answer, Fault, Proxy, Seen, Unconditional

NEW = {f"http://novy{n}.cz/": f"<title>New {n}</title>".encode() for n in range(3)}
every_place = pytest.mark.parametrize("place", ["cloudflare", "weed", *PLACES])


def harvest(bucket: Bucket) -> list[str]:
    with closing(Served(bucket, bucket.endpoint)) as served:
        return sorted(served.harvest())


@pytest.mark.sampled(2)
@every_place
def test_an_archive_lives_at_a_place(
    place: str, servers: Callable[[str], str], tmp_path: Path
) -> None:
    """Ingested, published twice, served, harvested, withdrawn from, expired, verified, copied."""
    endpoint = servers(place)
    with closing(fresh(endpoint)) as bucket, closing(fresh(endpoint)) as target:
        home = Bucketed(tmp_path / "home", bucket)
        home.publish_pages(tmp_path / "one.warc.gz", PAGES)
        home.publish_pages(tmp_path / "two.warc.gz", NEW)
        status = home("status", "--json").json
        assert (status["snapshot"]["records"], status["intake"]) == (43, [])
        records = harvest(bucket)
        assert (len(records), any(name.startswith("!") for name in records)) == (43, False)
        withdrawn = home("withdraw", "--url-prefix", "http://a1.cz/", "--reason", "x", "--json")
        assert withdrawn.json["withdrawn"] == 8
        rows = home("query", "SELECT count(*) n, count(DISTINCT warc_filename) f FROM captures")
        assert rows.out == "n,f\n35,2\n"
        expired = home("expire", "--keep", "1", "--json")
        assert expired.code == 0, expired.err
        verified = home("verify")
        assert verified.code == 0, verified.out + verified.err
        copied = home("copy", target.uri, "--json")
        assert copied.code == 0, copied.err
        records = harvest(bucket)
        assert len([name for name in records if name.startswith("!")]) == 8
        assert harvest(target) == records
        assert list(bucket.keys(layout.INTAKE)) == []


@pytest.mark.sampled(2)
@every_place
def test_of_two_publishers_neither_loses_anything(
    place: str, servers: Callable[[str], str], tmp_path: Path
) -> None:
    with closing(fresh(servers(place))) as bucket:
        homes = [Bucketed(tmp_path / name, bucket) for name in ("a", "b")]
        for number, home in enumerate(homes):
            path = warc(tmp_path / f"{number}.warc.gz", {f"http://p{number}.cz/": b"<p>x"})
            assert home("ingest", "--jobs", "1", path).code == 0
        running = [
            subprocess.Popen(
                home.line("publish"), env=home.environment, stderr=subprocess.PIPE, text=True
            )
            for home in homes
        ]
        for process in running:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors
        assert len(harvest(bucket)) == 2
        assert homes[0]("verify").code == 0


def refuse_conditions(seen: Seen) -> Fault | None:
    """Answer as Backblaze B2 does."""
    missing = Answer(501, "NotImplemented", "A header you provided is not implemented")
    return missing if seen.conditional and seen.method == "PUT" else None


@pytest.mark.parametrize(
    "fault", [refuse_conditions, lambda seen: Unconditional()], ids=["refuses", "ignores"]
)
@pytest.mark.parametrize("command", ["init", "ingest", "publish"])
def test_a_place_without_conditional_writes_is_told_at_once(
    command: str,
    fault: Callable[[Seen], Fault | None],
    make_bucket: Callable[..., Bucket],
    proxy: Proxy,
    tmp_path: Path,
) -> None:
    """Before anything is read or written, so that nobody finds out after hours, or never."""
    bucket = make_bucket()
    home = Bucketed(tmp_path / "home", bucket, proxy.url)
    arguments = {
        "init": ["--config", tmp_path / "other.toml", "--store", bucket.uri],
        "ingest": [tmp_path / "no-such.warc.gz"],
        "publish": [],
    }
    proxy.fault = fault
    done = home(command, *arguments[command])
    assert done.code == (0 if command == "init" else 2)  # the file is to be edited
    assert "this server does not honour If-None-Match" in done.err
    assert "docs/operations/places.md" in done.err
    assert done.err.count("\n") == 1
    assert list(bucket.keys("")) == []


@pytest.mark.skipif(not PLACES, reason="make prove-places proves it")
def test_rclone_is_refused(servers: Callable[[str], str], tmp_path: Path) -> None:
    with closing(fresh(servers("rclone"))) as bucket:
        done = Bucketed(tmp_path / "home", bucket)("publish")
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert "this server does not honour If-None-Match" in done.err
