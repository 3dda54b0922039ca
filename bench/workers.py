"""Pages a second of `sheaf serve` with one worker and with several, in turn.

    python -m bench.workers [--captures N] [--workers N] [--clients N] [--pages N] [--runs N]
        [--gzip]

Each client is a process that walks the whole list again and again. The clients need the same cores:
their share of CPU is printed, since it limits the ratio on a machine without idle cores.
"""

import argparse
import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.harvest import published
from bench.server import FIRST, Server, sheaf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--captures", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--pages", type=int, default=100, help="pages of each client")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--gzip", action="store_true")
    arguments = parser.parse_args()
    counts = (1, arguments.workers)
    rates: dict[int, list[float]] = {count: [] for count in counts}
    costs: dict[int, list[float]] = {count: [] for count in counts}
    shares: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        store = published(Path(name), arguments.captures)
        for _ in range(arguments.runs):
            for count in counts:
                with sheaf(store, Path(name), workers=count) as server:
                    measure(server, arguments.clients, 5, compressed=arguments.gzip)
                    rate, cost, share = measure(
                        server, arguments.clients, arguments.pages, compressed=arguments.gzip
                    )
                rates[count].append(rate)
                costs[count].append(cost)
                shares.append(share)
    print("| workers | pages/s | ratio | server's CPU, ms a page |")
    print("|---|---|---|---|")
    for count in counts:
        ratio = statistics.median(b / a for a, b in zip(rates[1], rates[count], strict=True))
        rate, cost = statistics.median(rates[count]), statistics.median(costs[count])
        print(f"| {count} | {rate:.1f} | {ratio:.2f} | {cost:.1f} |")
    print(f"\nclients: {statistics.median(shares):.0%} of all CPU that was used")


def measure(
    server: Server, clients: int, pages: int, *, compressed: bool
) -> tuple[float, float, float]:
    """Return pages a second, the server's CPU in ms a page, and the clients' share of all CPU."""
    before, own, start = server.cpu(), _children_cpu(), time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        walks = [
            pool.submit(server.walk, FIRST, pages, compressed=compressed) for _ in range(clients)
        ]
        done = sum(walk.result()[0]["pages"] for walk in walks)
    seconds = time.perf_counter() - start
    used, others = server.cpu() - before, _children_cpu() - own
    return done / seconds, used / done * 1000, others / (used + others)


def _children_cpu() -> float:
    """Return the CPU seconds of the processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


if __name__ == "__main__":
    main()
