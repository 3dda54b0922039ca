"""Makes an intake of generated captures, shaped like a national web archive's."""

import hashlib
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from builder import intake
from builder.sources.event import Capture
from functions.snapshot import identifier
from functions.snapshot.store import Writer

_TYPES = (
    ("text", "html", 600),
    ("image", "jpeg", 150),
    ("image", "gif", 80),
    ("image", "png", 60),
    ("text", "css", 40),
    ("application", "javascript", 40),
    ("application", "pdf", 15),
    ("text", "plain", 10),
    ("application", "msword", 4),
    ("video", "mpeg", 1),
)
_START = datetime(2007, 11, 5, tzinfo=UTC)
_WORDS = ("zprávy", "sport", "kultura", "archiv", "obec", "škola", "knihovna", "počasí", "mapa")


def captures(count: int, seed: int = 1) -> Iterator[Capture]:
    """Yield `count` captures of about count / 40 hosts, the same for the same seed."""
    draw = random.Random(seed)
    types = [t for t in _TYPES for _ in range(t[2])]
    hosts = max(1, count // 40)
    for number in range(count):
        host = f"h{int(hosts * draw.random() ** 2)}"
        major, minor, _ = draw.choice(types)
        if number % 10_000 == 5_000:
            major, minor = "model", "vrml"  # rare and scattered: 1 in 10,000
        url = f"http://www.{host}.cz/{draw.choice(_WORDS)[:3]}/{number}.{minor}"
        date = (_START + timedelta(seconds=number // 3)).strftime("%Y-%m-%dT%H:%M:%SZ")
        digest = hashlib.sha1(str(number // 2).encode()).hexdigest()[:32].upper()
        yield Capture(
            identity=identifier.capture_identity(url.encode(), date, 200, digest),
            url=url,
            url_surtkey=f"cz,{host})/{number % 7}/{number}.{minor}",
            sets=(f"domain:cz:{host}:www", f"mime:{major}:{minor}"),
            url_host_name=f"www.{host}.cz",
            url_host_registered_domain=f"{host}.cz",
            fetch_date=date,
            fetch_time=_START + timedelta(seconds=number // 3),
            fetch_status=200,
            content_digest=digest,
            content_length=draw.randrange(200, 90_000),
            content_mime_type=f"{major}/{minor}",
            content_charset="utf-8" if minor == "html" else None,
            content_languages="cs" if minor == "html" else None,
            title=" ".join(draw.choices(_WORDS, k=5)) if minor == "html" else None,
            warc_filename=f"harvest-{number // 30_000:05}.warc.gz",
            warc_record_offset=number % 30_000 * 14_000,
            warc_record_length=14_000,
        )


def fill(store: Writer, count: int, folder: Path, seed: int = 1) -> None:
    """Write an intake run of `count` generated captures into the store."""
    part = intake.Part(folder, "000000")
    for capture in captures(count, seed):
        part.capture(capture, capture.sets)
    part.close()
    source = intake.Source("generated", f"{seed}-{count}", "", "warc.gz", 0, count, 0, 0, {}, {})
    intake.commit(store, intake.Run(f"generated-{seed}", (source,)), folder)
