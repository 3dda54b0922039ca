"""Soak test: python -m tests.soak [--minutes M] [--store all|NAME...] [--seed N] [--keep FOLDER].

Exit status: 0 all promises were kept; 1 one was broken, and the seed is printed; 2 usage, or
no store could be had.
"""

import argparse
import secrets
import sys
import tempfile
from pathlib import Path

from tests.soak.process import SkipError
from tests.soak.report import Report, table
from tests.soak.soak import soak
from tests.soak.stores import STORES, open_place


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0, help="for each store (3)")
    parser.add_argument("--store", nargs="+", choices=("all", *STORES), default=["folder"])
    parser.add_argument("--seed", type=int, help="repeat the plan of operations of a run")
    parser.add_argument("--keep", type=Path, help="folder that keeps stores, copies and logs")
    return parser.parse_args()


def main() -> int:
    """Run one store after the other, and print the table."""
    arguments = _parse()
    names = STORES if "all" in arguments.store else tuple(arguments.store)
    seed = secrets.randbelow(1_000_000) if arguments.seed is None else arguments.seed
    print(f"seed {seed}; {arguments.minutes:g} minutes for each of {', '.join(names)}", flush=True)
    reports: dict[str, Report] = {}
    for name in names:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            folder = (arguments.keep or Path(scratch)).absolute() / name
            folder.mkdir(parents=True)
            try:
                with open_place(name, folder) as place:
                    reports[name] = soak(place, folder, arguments.minutes * 60, seed)
            except SkipError as error:
                print(f"SKIPPED: {name} was NOT tested: {error}", file=sys.stderr, flush=True)
                continue
        for promise in reports[name].broken:
            print(f"BROKEN on {name}: {promise}", file=sys.stderr, flush=True)
        print(f"{name}: {reports[name].seconds:.0f} s", flush=True)
    if not reports:
        print("nothing was tested", file=sys.stderr)
        return 2
    print(f"\n{table(reports)}")
    if any(report.broken for report in reports.values()):
        print(f"a promise was broken; repeat the plan with SEED={seed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
