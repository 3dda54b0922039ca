"""Cost of own records: a file of MARC ingested and published, beside others over the same file.

    python -m bench.records [--records 20000] [--changed 100] [--folder /tmp]

The records are generated: 22 fields in 1.1 KB of UTF-8, one in five beyond ASCII, one in ten with
`&`. Sheaf gives each of them as MARCXML, Dublin Core and MODS. Baselines: a reader of directory and
fields only, which writes MARCXML; pymarc and its `record_to_xml`; and the table of bench.baseline
for `oaipmh` over SQLite, filled by pymarc. All figures are CPU time and peak memory of a process of
its own. The last rows are the same file once more, and the file after some records have changed.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from pymarc import MARCReader, record_to_xml

from bench import baseline
from bench.server import CONFIGURATION

_TABLE = """
[[records]]
name = "catalogue"
files = "records.mrc"
identifier = "001"
formats = { marc21 = "as-is", oai_dc = "marc21-oai_dc", mods = "marc21-mods" }
complete = true
"""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Cost:
    """CPU seconds, and megabytes at most."""

    cpu: float
    peak: float


def records(count: int, changed: int) -> Iterator[bytes]:
    """Yield generated records; with `changed`, as many of them are others."""
    draw = random.Random(1)
    known = ["".join(draw.choices(_LETTERS, k=draw.randint(3, 9))) for _ in range(5000)]
    for number in range(count):
        draw.seed(number + (10**9 if number < changed else 0))
        yield _record(number, lambda many: " ".join(draw.choices(known, k=many)))


def _record(number: int, words: Callable[[int], str]) -> bytes:
    name = ("Müller, " if number % 5 == 0 else "Smith, ") + words(1).title()
    place = "Smith & Sons," if number % 10 == 3 else words(2).title() + ","
    fields = [
        ("001", f"ocm{number:09}"),
        ("003", "OCoLC"),
        ("005", "20240101000000.0"),
        ("008", "960314s1997    nyua     b    001 0 eng  "),
        ("010", f"  \x1fa  {number:08} "),
        ("020", f"  \x1fa0{number:09}"),
        ("040", "  \x1faDLC\x1fcDLC\x1fdDLC"),
        ("050", "00\x1faQA76.73\x1fb.P98 1997"),
        ("082", "00\x1fa005.13/3\x1f220"),
        ("100", f"1 \x1fa{name},\x1fd1960-"),
        ("245", f"10\x1fa{words(5)} :\x1fb{words(6)} /\x1fc{words(3)}."),
        ("250", "  \x1fa2nd ed."),
        ("260", f"  \x1faNew York :\x1fb{place}\x1fcc1997."),
        ("300", "  \x1faxii, 451 p. :\x1fbill. ;\x1fc24 cm."),
        ("500", f"  \x1fa{words(8)}."),
        ("504", "  \x1faIncludes bibliographical references (p. 445) and index."),
        ("520", f"  \x1fa{words(25)}."),
        *(("650", f" 0\x1fa{words(2).capitalize()}\x1fx{words(1)}.") for _ in range(3)),
        ("700", f"1 \x1fa{words(2).title()}."),
        ("856", f"42\x1fuhttp://example.org/{number}"),
    ]
    directory, body = "", b""
    for tag, text in fields:
        data = text.encode() + b"\x1e"
        directory += f"{tag}{len(data):04}{len(body):05}"
        body += data
    base = 25 + len(directory)
    leader = f"{base + len(body) + 1:05}cam a22{base:05} a 4500"
    return f"{leader}{directory}\x1e".encode() + body + b"\x1d"


def read_plainly(source: Path, target: Path) -> None:
    """Read directory and fields and write MARCXML, without any check."""
    with target.open("w") as file:
        for data in source.read_bytes().split(b"\x1d")[:-1]:
            base = int(data[12:17])
            parts = [f"<record><leader>{data[:24].decode()}</leader>"]
            for at in range(24, base - 1, 12):
                tag, start = data[at : at + 3].decode(), base + int(data[at + 7 : at + 12])
                text = data[start : start + int(data[at + 3 : at + 7]) - 1].decode()
                if tag < "010":
                    parts.append(f'<controlfield tag="{tag}">{escape(text)}</controlfield>')
                    continue
                marks, *texts = text.split("\x1f")
                parts.append(f'<datafield tag="{tag}" ind1="{marks[0]}" ind2="{marks[1]}">')
                parts += [f'<subfield code="{t[0]}">{escape(t[1:])}</subfield>' for t in texts]
                parts.append("</datafield>")
            file.write("".join(parts) + "</record>\n")


def read_by_pymarc(source: Path, target: Path) -> None:
    """Read by pymarc and write MARCXML."""
    with source.open("rb") as stream, target.open("wb") as file:
        for record in MARCReader(stream):
            file.write(record_to_xml(record, namespace=True) + b"\n")  # type: ignore[no-untyped-call]


def fill_baseline(source: Path, target: Path) -> None:
    """Fill the table of `oaipmh`, which has fewer fields of a record."""
    with source.open("rb") as stream:
        baseline.fill(target, (_row(record) for record in MARCReader(stream)))


def _row(record: object) -> tuple[str | None, ...]:
    values = {
        "identifier": f"oai:bench.example.org:{record['001'].data}",  # type: ignore[index]
        "datestamp": "2026-11-22T10:00:00",
        "sets": "",
        "url": record["856"]["u"],  # type: ignore[index]
        "title": record.title,  # type: ignore[attr-defined]
        "url_host_registered_domain": record.publisher,  # type: ignore[attr-defined]
        "fetch_date": record.pubyear,  # type: ignore[attr-defined]
    }
    return tuple(values.get(name) for name in baseline.COLUMNS)


_BASELINES = {
    "directory and fields only": read_plainly,
    "pymarc, record_to_xml": read_by_pymarc,
    "oaipmh over SQLite, filled by pymarc": fill_baseline,
}


def measure(*line: str, folder: Path) -> Cost:
    """Run a command of Python in the folder to its end; CPU includes that of its children."""
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    process = subprocess.Popen(  # wait4 below gives what it took
        [sys.executable, "-m", *line], cwd=folder, env=environment, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, line
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def _print_row(what: str, cost: Cost, count: int, against: Cost | None = None) -> None:
    ratio = f"{cost.cpu / against.cpu:.2f}" if against else ""
    each = cost.cpu / count * 1e6
    print(f"| {what} | {cost.cpu:,.1f} | {each:,.0f} | {ratio} | {cost.peak:,.0f} |", flush=True)


def compare(folder: Path, count: int, changed: int) -> None:
    """Measure everything in turn and print the table."""
    source = folder / "records.mrc"
    with source.open("wb") as file:
        file.writelines(records(count, 0))
    (folder / "sheaf.toml").write_text(CONFIGURATION + _TABLE)
    print("| what | CPU s | µs a record | to pymarc | MB at most |\n|---|---|---|---|---|")
    costs = {name: measure("bench.records", "--part", name, folder=folder) for name in _BASELINES}
    against = costs["pymarc, record_to_xml"]
    for name, cost in costs.items():
        _print_row(f"{name} (baseline)", cost, count, against)

    def run(what: str) -> None:
        both = [measure("builder", command, folder=folder) for command in ("ingest", "publish")]
        _print_row(f"ingest, {what}", both[0], count, against)
        _print_row(f"publish, {what}", both[1], count, against)
        total = Cost(sum(cost.cpu for cost in both), max(cost.peak for cost in both))
        _print_row(f"both, {what}", total, count, against)

    run("all new")
    run("nothing new")
    with source.open("wb") as file:
        file.writelines(records(count, changed))
    run(f"{changed:,} changed")


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--changed", type=int, default=100)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--part", choices=_BASELINES, help="one baseline, in this folder")
    arguments = parser.parse_args()
    if arguments.part:
        with tempfile.TemporaryDirectory(dir=".") as name:
            _BASELINES[arguments.part](Path("records.mrc"), Path(name) / "target")
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        compare(Path(name), arguments.records, arguments.changed)


if __name__ == "__main__":
    main()
