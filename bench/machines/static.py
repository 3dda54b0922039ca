"""Harvests of a site through nginx, beside `sheaf serve` and PyPI's `oaipmh` over the same records.

    python -m bench.machines.static [--records 100000] [--seconds 10] [--store FOLDER]

Needs nginx with njs, `wrk` and, for one harvester, HTTP::OAI (Debian: libnginx-mod-http-js, wrk,
libhttp-oai-perl). Each server has two workers. First, harvesters of other people take the list from
each in turn, and a client that only counts. Then 64 clients ask at once, for a page or a record
anywhere, for as long as --seconds; a record counts as one page. Clients need the same cores.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from bench import baseline
from bench.harvest import baseline_token, published, rows, token
from bench.harvester import Measured, measured
from bench.machines.crowd import measure
from bench.server import CONFIGURATION, FIRST, NJS, Server, gunicorn, nginx, sheaf
from builder.serve.routers import write_router
from builder.store.folder import FolderStore
from functions.reading.duck_repository import DuckRepository
from functions.reading.repository import RecordSelection
from functions.snapshot.manifest import Manifest, Span

_WORKERS, _CLIENTS, _PAGE = 2, 64, 1000
_PERL = """
use HTTP::OAI; use HTTP::OAI::Metadata::OAI_DC; my $count = 0;
my $response = HTTP::OAI::Harvester->new(baseURL => $ARGV[0])->ListRecords(
    metadataPrefix => 'oai_dc', handlers => { metadata => 'HTTP::OAI::Metadata::OAI_DC' },
    onRecord => sub { $count++ if shift->metadata->dc->{identifier} });
die $response->message if !$response->is_success;
print qq({"records": $count});
"""


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--store", type=Path)
    arguments = parser.parse_args()
    if not NJS.exists() or shutil.which("wrk") is None:
        print("*** bench.machines.static is SKIPPED: nginx with njs or wrk is not installed ***")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = arguments.store or published(folder, arguments.records, has_sets=False)
        run(folder, store, arguments.seconds)


def run(folder: Path, store: Path, seconds: int) -> None:
    """Print both tables."""
    repository = DuckRepository(FolderStore(store))
    newest = repository.pointer().newest()
    assert newest is not None
    manifest = repository.manifest(newest.snapshot)
    size = manifest.kinds()["capture"]
    places = range(1, size + 1, max(1, size // 500))
    names = [
        record.identifier
        for place in places
        for record in repository.page(
            manifest, RecordSelection(("capture",), Span(place, place)), 1, headers=True
        )
    ]
    baseline.fill(folder / "baseline.db", rows(repository, manifest, size))
    repository.close()
    print("| Server | Harvester | Records/s | Its CPU s per 100,000 |\n|---|---|---|---|")
    with servers(folder, store) as started:
        for name, server in started.items():
            for client, command in harvesters().items():
                cost: Measured = measured(command, server.url)
                assert cost.records == size, (name, client, cost)
                cpu = cost.cpu / cost.records * 100_000
                rate = cost.records / cost.seconds
                print(f"| {name} | {client} | {rate:,.0f} | {cpu:.1f} |", flush=True)
        print("\n| | Clients | Records/s | Slowest, ms | CPU ms per 1,000 | MB | Errors |")
        print("|---|---|---|---|---|---|---|")
        for name, server in started.items():
            for kind, queries in list_queries(name, manifest, size, names).items():
                targets = [f"/oai?{query}" for query in queries]
                label = f"{name}, {kind}"
                measure(label, server.url, targets, [_CLIENTS], seconds, server)


def list_queries(
    server: str, manifest: Manifest, size: int, names: Sequence[str]
) -> dict[str, list[str]]:
    """Return by kind what the clients ask a server for."""
    cursors = range(_PAGE, max(size - _PAGE, _PAGE + 1), _PAGE)
    tokens = {
        "nginx": [f"verb=ListRecords&resumptionToken=r,oai_dc,{n + 1}" for n in cursors],
        "sheaf serve": [token(manifest, size, n) for n in cursors],
        "oaipmh": [baseline_token(n) for n in cursors],
    }
    get = "verb=GetRecord&metadataPrefix=oai_dc&identifier="
    return {
        "pages of tokens": tokens[server],
        "first pages": [FIRST],
        "pages of from and until": [f"{FIRST}&from=2000-01-01&until=2999-01-01"],
        "GetRecord": [get + quote(name) for name in names],
    }


def harvesters() -> dict[str, list[str]]:
    """Return the command of each harvester, with {url} and {folder} to be filled."""
    python = [sys.executable, "-m"]
    commands = {
        name: [*python, "bench.harvester", "--by", name, "{url}", "{folder}/out"]
        for name in ("sickle", "oaipmh-scythe")
    }
    with suppress(OSError):
        if subprocess.run(["perl", "-MHTTP::OAI", "-e", "1"], check=False).returncode == 0:
            commands["HTTP::OAI"] = ["perl", "-e", _PERL.replace("{", "{{").replace("}", "}}")]
            commands["HTTP::OAI"].append("{url}")
    commands["counting only"] = [*python, "bench.client", "{url}", FIRST, "--gzip"]
    return commands


@contextmanager
def servers(folder: Path, store: Path) -> Iterator[dict[str, Server]]:
    """Export the site of a store, and run all servers."""
    (folder / "sheaf.toml").write_text(f"{CONFIGURATION}[site]\npages = 0\n")
    line = [sys.executable, "-m", "builder", "--config", str(folder / "sheaf.toml")]
    line += ["--store", str(store), "export", "site", str(folder / "site")]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)

    def write(port: int) -> str:
        script = folder / "sheaf.js"
        script.write_text(write_router("nginx.js", folder / "site", "", port))
        text = write_router("nginx.conf", folder / "site", "", port)
        return text.replace("/etc/nginx/sheaf.js", str(script))

    with (
        nginx(write, folder, _WORKERS) as files,
        sheaf(store, folder, _WORKERS) as own,
        gunicorn(folder / "baseline.db", "key", _WORKERS) as other,
    ):
        yield {"nginx": files, "sheaf serve": own, "oaipmh": other}


if __name__ == "__main__":
    main()
