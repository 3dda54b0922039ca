"""Demo: a small web site, its crawl, and a harvest of the published result."""

from pathlib import Path
from typing import NamedTuple

from builder.demo.crawl import POLITE, Clock, CrawlSummary, Politeness
from builder.demo.crawl import crawl as _crawl
from builder.demo.site import SEEDS, serve

FILE_NAME = "demo-crawl.warc.gz"


class Recording(NamedTuple):
    """A recorded crawl: the WARC file and its summary."""

    path: Path
    summary: CrawlSummary


def record(folder: Path, clock: Clock, politeness: Politeness = POLITE) -> Recording:
    """Serve the demo's site, crawl it twice and write `folder`/demo-crawl.warc.gz.

    The file has another name until it is complete. An earlier one is replaced. With a fixed clock
    the file is the same every time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE_NAME
    unfinished = folder / f"{FILE_NAME}.part"
    try:
        with serve(clock) as address, unfinished.open("wb") as out:
            summary = _crawl(
                SEEDS, address, out, clock=clock, politeness=politeness, filename=FILE_NAME
            )
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return Recording(path, summary)
