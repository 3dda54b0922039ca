"""Gathering that is killed at random places repeats no request, and loses no file."""

import random
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from builder.obi.history import standing
from builder.obi.run import history
from builder.verify.verify import verify
from tests.builder.http import site as web
from tests.builder.http.site import Site
from tests.builder.obi.test_verify import MEANS
from tests.builder.sources.fulltexts.conftest import until
from tests.builder.sources.fulltexts.test_command import Archive, paper

THREADS = 2


def slow(text: str, seconds: float) -> web.Answer:
    def answer(handler: web.BaseHTTPRequestHandler) -> None:
        time.sleep(seconds)
        web.text(text)(handler)

    return answer


def requests(sites: list[Site]) -> list[tuple[int, str]]:
    """Return all requests for files: the number of the host, and the path."""
    return [(n, p) for n, site in enumerate(sites) for p in site.paths() if p != "/robots.txt"]


@pytest.mark.thorough
def test_kills_repeat_nothing(tmp_path: Path) -> None:
    """test_command.py kills a smaller one once."""
    hosts, files, kills = 20, 2000, 100
    chance = random.Random(files)
    with ExitStack() as stack:
        first = stack.enter_context(web.serving("127.0.0.1"))
        others = [web.serving(f"127.0.0.{n}", first.port) for n in range(2, hosts + 1)]
        sites = [first, *map(stack.enter_context, others)]
        urls = []
        for n in range(files):
            number, path = n % hosts, f"/{n}"
            sites[number].pages[path] = slow(f"file {n}", 0.02)
            if n % 10 == 0:  # two URLs lead to one file
                sites[number].pages[path] = web.redirect(f"/to{n}")
                sites[number].pages[f"/to{n}"] = slow(f"target {n}", 0.02)
                urls.append(sites[number].url(f"/to{n}", f"127.0.0.{number + 1}"))
            urls.append(sites[number].url(path, f"127.0.0.{number + 1}"))
        archive = Archive(tmp_path, first)
        archive.set(concurrent=THREADS, batch={"minutes": 5, "files": files // 2})
        archive.ingest(*(paper(n, *urls[n::10]) for n in range(10)))

        def repeated() -> int:
            return len(requests(sites)) - len(set(requests(sites)))

        for number in range(kills):
            before = requests(sites)
            process = archive.start("gather")
            until(lambda b=before, p=process: len(requests(sites)) > len(b) or p.poll() is not None)
            time.sleep(chance.random() * 2 * files / hosts / kills * 0.03)
            process.kill()
            process.communicate()
            assert repeated() <= THREADS * number
        done = archive("gather", "--json")
        assert done.code == 0, done.err
        # Each thread had one request that was sent and not recorded when it was killed.
        assert repeated() <= THREADS * kills
        assert len(set(requests(sites))) == files + files // 10
        found = {row.id: archive.store.read(row.key) for row in archive.versions()}
        assert len(archive.versions()) == files  # each URL but the redirecting ones
        for n in range(files):
            host = f"127.0.0.{n % hosts + 1}"
            path, text = (f"/to{n}", f"target {n}") if n % 10 == 0 else (f"/{n}", f"file {n}")
            assert found[first.url(path, host)] == text.encode()
        assert len(standing(archive.store)) == len(history(archive.store))
        assert verify(archive.store, MEANS).findings == ()
