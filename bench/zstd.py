"""How fast archives in zstd are read, beside the same records in gzip and beside decoding alone.

    python -m bench.zstd [FILE.warc.gz...] [--mb 30] [--rounds 5]

Without files a crawl is made, as by bench.ingest. Each record is packed anew: in gzip (level 6), in
zstd (level 3, with checksums), and in zstd with a dictionary of 112 KB trained on the records. The
rows of a file take turns; figures are medians of CPU time.
"""

import argparse
import gzip
import io
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import zstandard

from bench.ingest import crawl
from builder.intake.captures import Capture
from builder.sources.webarchives.rules import DocumentRules
from builder.sources.webarchives.webarchive import ArchiveReader
from functions.archive import zstd

_PIECE = 1 << 16
_DICTIONARY = 112_640  # bytes, as the command zstd makes it


def records(path: Path) -> Iterator[bytes]:
    """Return what the members of a gzip file hold, each in one piece."""
    data = path.read_bytes()
    while data:
        inflater = zlib.decompressobj(31)
        yield inflater.decompress(data)
        data = inflater.unused_data


def packed(parts: list[bytes]) -> dict[str, bytes]:
    """Return a file's records in each form."""
    plain = zstandard.ZstdCompressor(3, write_checksum=True)
    made = zstandard.train_dictionary(_DICTIONARY, [*parts])
    trained = zstandard.ZstdCompressor(3, dict_data=made, write_checksum=True)
    frame = plain.compress(made.as_bytes())
    head = b"\x5d\x2a\x4d\x18" + len(frame).to_bytes(4, "little") + frame
    return {
        "gzip": b"".join(gzip.compress(part, 6, mtime=0) for part in parts),
        "zstd": b"".join(map(plain.compress, parts)),
        "zstd with dictionary": head + b"".join(map(trained.compress, parts)),
    }


def _alone(data: bytes) -> int:
    stream = io.BytesIO(data)
    if data.startswith(b"\x1f\x8b"):
        inflater = zlib.decompressobj(31)
        while piece := inflater.unused_data or stream.read(_PIECE):
            if inflater.eof:
                inflater = zlib.decompressobj(31)
            inflater.decompress(piece)
        return 0
    dictionary = zstd.read_dictionary(data)
    made = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
    decoder = zstandard.ZstdDecompressor(made).decompressobj(read_across_frames=True)
    while piece := stream.read(_PIECE):
        decoder.decompress(piece)
    return 0


def _read(data: bytes, titles: bool) -> int:
    rules = DocumentRules(redirects=True, errors=True, titles=titles)
    found = ArchiveReader(io.BytesIO(data), "a", rules)
    return sum(isinstance(event, Capture) for event in found)


ROWS: dict[str, Callable[[bytes], int]] = {
    "decoding alone": _alone,
    "indexing, without titles": lambda data: _read(data, False),
    "reading, with titles": lambda data: _read(data, True),
}


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--mb", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = arguments.files or [Path(folder) / "crawl.warc.gz"]
        if not arguments.files:
            crawl(files[0], arguments.mb * 1_000_000)
        parts = [part for file in files for part in records(file)]
    raw = sum(map(len, parts)) / 1e6
    forms = packed(parts)
    print(f"{len(parts):,} records, {raw:.1f} MB uncompressed")
    print("\n| form | what | MB stored | MB/s uncompressed | captures/s |")
    print("|---|---|---|---|---|")
    for name, data in forms.items():
        times: dict[str, list[float]] = {row: [] for row in ROWS}
        found: dict[str, int] = {}
        for _ in range(arguments.rounds):
            for row, work in ROWS.items():
                before = time.process_time()
                found[row] = work(data)
                times[row].append(time.process_time() - before)
        for row, taken in times.items():
            median = statistics.median(taken)
            rate = f"{found[row] / median:,.0f}" if found[row] else ""
            print(f"| {name} | {row} | {len(data) / 1e6:.1f} | {raw / median:,.0f} | {rate} |")


if __name__ == "__main__":
    main()
