"""Speed of reading ReDIF, compared with reading the lines and with a public Python parser.

    python -m bench.redif [FILE...] [--templates 20000] [--rounds 5]

Without files some are made: papers of 1.4 KB on average with two authors, an abstract of several
lines and two full texts, half of them one a file and half 500 a file, one in ten in UTF-8 beyond
ASCII. Figures are medians of CPU time in rounds in which the rows take turns. The other parser is
PyPI's `repec` (0.0.1rc3, GPL-3; `pip install --no-deps repec`), where it is installed. It decodes,
splits and groups, but has no byte positions, digests and diagnostics, and omits bytes that it
cannot decode. The last lines are the memory that a process takes for one file of many templates.
"""

import argparse
import importlib
import io
import json
import random
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from builder.commands.make import redif as command
from builder.sources.redif.form.template import Template, read_templates
from builder.sources.redif.form.template_text import split_templates

_WORDS = re.findall(
    r"\w+",
    """growth labour market evidence policy rate of the and in a model with panel data from trade
    capital income risk price money bank public choice an optimal dynamic effect on wages""",
)


def paper(number: int, draw: random.Random) -> bytes:
    """Return a template."""

    def words(count: int) -> str:
        return " ".join(draw.choices(_WORDS, k=count))

    name = draw.choice(["Dupont", "Smith", "Rossi", "Novak"] + ["Müller"] * (number % 10 == 0))
    abstract = "\n".join(f" {words(11)}" for _ in range(draw.randint(6, 16)))
    text = f"""Template-Type: ReDIF-Paper 1.0
Author-Name: {name}, Anne
Author-Name-First: Anne
Author-Name-Last: {name}
Author-Email: anne{number % 97}@example.org
Author-WorkPlace-Name: University of {words(2)}
Author-Name: Jones, Tom
Author-Name-First: Tom
Author-Name-Last: Jones
Title: {words(9)}
Abstract: {words(10)}
{abstract}
Classification-JEL: E{number % 60}, J{number % 33}
Keywords: {words(2)}; {words(2)}; {words(1)}
Length: {number % 60} pages
Creation-Date: 20{number % 24:02}-{number % 12 + 1:02}
Number: {number}
File-URL: https://example.org/repec/wp{number}.pdf
File-Format: application/pdf
File-Function: Full text
File-URL: https://example.org/repec/wp{number}.html
File-Format: text/html
Handle: RePEc:aaa:wpaper:{number}

"""
    return text.encode()


def corpus(count: int) -> list[bytes]:
    """Return files with so many templates together."""
    draw = random.Random(1)
    made = [paper(number, draw) for number in range(count)]
    half = count // 2
    together = [b"".join(made[at : min(at + 500, count)]) for at in range(half, count, 500)]
    return made[:half] + together


def _lines(files: list[bytes]) -> int:
    found = 0
    for data in files:
        for line in io.BytesIO(data):
            text = line.decode("latin-1").rstrip()
            found += text[:14].lower() == "template-type:"
    return found


def _borders(files: list[bytes]) -> int:
    return sum(
        stretch.template for data in files for _, stretch in split_templates(io.BytesIO(data))
    )


def _templates(files: list[bytes]) -> Iterator[Template]:
    for data in files:
        for event in read_templates(io.BytesIO(data)):
            if isinstance(event, Template):
                yield event


def _read(files: list[bytes]) -> int:
    return sum(1 for _ in _templates(files))


def _written(files: list[bytes]) -> int:
    encoder = json.JSONEncoder(ensure_ascii=False)
    return sum(bool(encoder.encode(command.document(t, [], False))) for t in _templates(files))


def _of(other: ModuleType) -> Callable[[list[bytes]], int]:
    def work(files: list[bytes]) -> int:
        found = 0
        for data in files:
            try:
                records = other.load(other.decode(data))
            except RuntimeError:
                continue  # it decodes no file without a template
            found += sum(bool(other.collect(record)) for record in records)
        return found

    return work


def rows() -> dict[str, Callable[[list[bytes]], int]]:
    """Return what is measured."""
    found: dict[str, Callable[[list[bytes]], int]] = {
        "lines alone": _lines,
        "borders alone": _borders,
        "templates, whole": _read,
        "templates, as JSON lines": _written,
    }
    try:
        found["repec 0.0.1rc3"] = _of(importlib.import_module("repec.redif"))
    except ImportError:
        print("repec is not installed, and so has no row\n")
    return found


class _Endless(io.RawIOBase):
    """One file of so many templates, made as it is read."""

    def __init__(self, count: int) -> None:
        draw = random.Random(1)
        self._pages = [b"".join(paper(number, draw) for number in range(200))] * (count // 200)

    def read(self, size: int = -1) -> bytes:
        return self._pages.pop() if self._pages else b""


def peak(count: int) -> int:
    """Return the MB that a process takes at most to read one file of so many templates."""
    line = [sys.executable, "-m", "bench.redif", "--peak", str(count)]
    return int(subprocess.run(line, capture_output=True, check=True, text=True).stdout)


def _measure(files: list[bytes], rounds: int) -> None:
    total = sum(map(len, files))
    works = rows()
    times: dict[str, list[float]] = {row: [] for row in works}
    found: dict[str, int] = {}
    for _ in range(rounds):
        for row, work in works.items():
            before = time.process_time()
            found[row] = work(files)
            times[row].append(time.process_time() - before)
    many = found["templates, whole"]
    print(f"{many:,} templates in {len(files):,} files, {total / 1e6:.1f} MB")
    print("\n| what | templates found | µs a template | templates/s | MB/s |")
    print("|---|---|---|---|---|")
    for row, taken in times.items():
        median = statistics.median(taken)
        print(
            f"| {row} | {found[row]:,} | {median / many * 1e6:.1f} | {many / median:,.0f} "
            f"| {total / median / 1e6:,.0f} |"
        )


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--templates", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak:
        for _ in read_templates(_Endless(arguments.peak)):  # type: ignore[arg-type]
            pass
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
        return
    # First, for a process begins with what the one that starts it has held.
    peaks = {count: peak(count) for count in (arguments.templates // 10, arguments.templates * 5)}
    files = [path.read_bytes() for path in arguments.files] or corpus(arguments.templates)
    _measure(files, arguments.rounds)
    for count, most in peaks.items():
        print(f"\n{count:,} templates in one file: {most:,} MB at most", end="")
    print()


if __name__ == "__main__":
    main()
