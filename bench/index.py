"""What reading an index costs, beside a plain loop in Python in the same run.

python -m bench.index [FILE...] [--lines N] [--threads N] [--rounds N]
"""

import argparse
import base64
import json
import multiprocessing
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from builder.intake.captures import Capture
from builder.intake.rows import IntakeWriter
from builder.sources.webarchives.cdx import index_entry, notation, reader
from builder.sources.webarchives.cdx.block import IndexFile
from builder.sources.webarchives.cdx.text import find_form
from builder.sources.webarchives.rules import DocumentRules

LOOP = 20_000  # lines that the plain loop reads
_TYPES = ["text/html"] * 12 + ["image/jpeg"] * 4 + ["image/png", "text/css", "application/pdf"]
_WORDS = ("clanek", "Foto", "galerie", "archiv", "detail", "user", "zpravy", "index", "2007")
_LEGEND = notation.Legend(tuple(notation.FORMS[0].split()))


def entries(count: int, seed: int = 1) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield keys, dates and values of an index's lines, shaped like a national web archive's.

    One line in twenty is a revisit. One URL in five has a query that must be sorted, one in nine
    has escapes, and one in a hundred needs Python instead of SQL.
    """
    draw = random.Random(seed)
    hosts = max(1, count // 40)
    for number in range(count):
        host = f"h{int(hosts * draw.random() ** 2)}"
        path = "/".join(("", *draw.choices(_WORDS, k=draw.randint(0, 3)), f"{number}.html"))
        kind = draw.random()
        if kind < 0.2:
            path += f"?b={number % 97}&a={draw.choice(_WORDS)}&id={number}"
        elif kind < 0.4:
            path += f"?id={number}"
        elif kind < 0.48:
            path += f"?q=%C3%A1{draw.choice(_WORDS)}%20x"
        elif kind < 0.51:
            path += f"?u=http%3A%2F%2Fwww.{host}.cz%2F&x=1"
        elif kind < 0.52:
            path = f"{path}/../x"
        elif kind < 0.53:
            path += ";jsessionid=" + "0a" * 16
        date = f"200711{draw.randint(1, 28):02}{draw.randint(0, 23):02}{number % 3600 // 60:02}"
        is_revisit = draw.random() < 0.05
        said = {
            "url": f"http://www.{host}.cz{path}",
            "mime": "warc/revisit" if is_revisit else draw.choice(_TYPES),
            "status": "-" if is_revisit else "200",
            "digest": base64.b32encode(draw.randbytes(20)).decode(),
            "length": str(draw.randint(300, 99_999)),
            "offset": str(number % 20_000 * 14_000),
            "filename": f"crawl-{number // 20_000:05}-20071105-crawler01.archive.cz.warc.gz",
        }
        yield f"cz,{host}){path.lower()}", f"{date}{number % 60:02}", said


def generate(folder: Path, count: int) -> list[Path]:
    """Write the same lines as CDXJ and as CDX11; return where."""
    paths = [folder / "generated.cdxj", folder / "generated.cdx"]
    with paths[0].open("w") as objects, paths[1].open("w") as fields:
        fields.write(f" CDX {_LEGEND}\n")
        for key, date, said in entries(count):
            objects.write(f"{key} {date} {json.dumps(said)}\n")
            values = [said[name] for name in ("url", "mime", "status", "digest")]
            values += ["-", "-", said["length"], said["offset"], said["filename"]]
            fields.write(" ".join((key, date, *values)) + "\n")
    return paths


def sheaf(path: Path, threads: int, folder: Path) -> int:
    """Read an index as `sheaf ingest` does, and return how many captures it gave."""
    with path.open("rb") as file:
        form = find_form(file.read(1 << 14))
        if form is None:
            raise SystemExit(f"{path} is no index")
        file.seek(0)
        what = IndexFile(path.name, folder, "bench", DocumentRules(redirects=True, errors=True))
        given = reader.read(file, what, form, threads, lambda *_: None)
    return given.captures + given.skips.total()


def loop(path: Path, threads: int, folder: Path) -> int:
    """Read an index's first lines one by one, with the functions that SQL is held against."""
    rules = DocumentRules(redirects=True, errors=True)
    part = IntakeWriter(folder, "bench")
    count = 0
    with path.open("rb") as file:
        for line in islice(file, LOOP):
            read = (
                notation.parse_cdxj_line(line)
                if path.suffix == ".cdxj"
                else notation.parse_cdx_line(line[:-1], _LEGEND)
            )
            if read[0] is not None:
                item = index_entry.build_capture(read[0], rules)[0]
                count += 1
                if isinstance(item, Capture):
                    part.capture(item, item.sets)
    part.close()
    return count


Measured = tuple[int, float, float, int]
"""Lines, seconds, seconds of processor time, and megabytes at the most."""


def measure(what: Callable[[Path, int, Path], int], path: Path, threads: int) -> Measured:
    """Do it once, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, (what, path, threads))


def _measured(what: Callable[[Path, int, Path], int], path: Path, threads: int) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        began, used = time.perf_counter(), time.process_time()
        lines = what(path, threads, Path(folder))
        seconds, processor = time.perf_counter() - began, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return lines, seconds, processor, peak


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="bench.index", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="CDX or CDXJ (default: generated)")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = arguments.files or generate(Path(folder), arguments.lines)
        print("| index | read by | lines | lines/s | µs of processor a line | MB at the most |")
        print("|---|---|---|---|---|---|")
        for path in files:
            ways = [(sheaf, n, f"SQL, {n} threads") for n in {1, arguments.threads}]
            if path.suffix in (".cdxj", ".cdx"):
                ways.append((loop, 1, "a loop in Python"))
            found: dict[str, list[Measured]] = {}
            for _ in range(arguments.rounds):  # in turn, since the machine is shared
                for what, threads, name in ways:
                    found.setdefault(name, []).append(measure(what, path, threads))
            for name, rounds in found.items():
                lines = rounds[0][0]
                rate = statistics.median(lines / seconds for _, seconds, _, _ in rounds)
                used = statistics.median(processor / lines for _, _, processor, _ in rounds)
                peak = max(megabytes for *_, megabytes in rounds)
                print(
                    f"| {path.suffix[1:]} | {name} | {lines:,} | {rate:,.0f} | {used * 1e6:.2f} "
                    f"| {peak:,} |"
                )


if __name__ == "__main__":
    main()
