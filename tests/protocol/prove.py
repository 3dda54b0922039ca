"""Proof of the protocol: walks of the specification and of variants, and recorded runs of Sheaf.

`make prove-protocol` runs it. Seeds of walks that ever broke a promise are in seeds.txt, and are
walked first. A new one is added there.
"""

import argparse
import json
import logging
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.protocol import machine_runs
from tests.protocol.recorder import to_quint
from tests.protocol.runs import record
from tests.protocol.spoil import spoil

HERE = Path(__file__).parent
QUINT = Path(".npm-quint/node_modules/.bin/quint")
LENGTH = 150  # steps of a walk
SLICE = 500_000
"""Steps of a slice of the walks, which also sets the seeds of two slices apart."""
RULE_STEPS = 1_000_000
"""Steps within which a missing rule must be found."""
MACHINE = 5
"""One of so many recorded runs is of the machine of tests/interleaving; others have no rows."""
KINDS = {"manifest", "pointer", "remove", "look", "read"}
"""Kinds of events that recorded runs must have: what is not recorded proves nothing."""
PROMISES = (
    "faultless",
    "pointerNamesWholeSnapshots",
    "keptSnapshotsAreWhole",
    "readingsAreWhole",
    "nothingIsMissed",
)


class ProofError(Exception):
    """The proof failed; the message says where."""


@dataclass(frozen=True)
class Walked:
    """The result of walks: steps and seconds, and the seed of the one that broke a promise."""

    steps: int
    seconds: float
    seed: int | None


def walk(model: Path, steps: int, seed: int, length: int = LENGTH, rule: str = "") -> Walked:
    """Walk a compiled specification, without `rule` if it is given. Raises ProofError."""
    command = ["node", str(HERE / "walk.mjs"), str(model), *map(str, (steps, seed, length)), rule]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ProofError(f"the walk from seed {seed} ended: {done.stderr.strip()[-2000:]}")
    found = json.loads(done.stdout)
    broken = found["violation"]
    return Walked(found["steps"], found["seconds"], broken["seed"] if broken else None)


def compile_model(folder: Path, name: str, init: str, step: str, holds: str) -> Path:
    """Let Quint check a module and flatten it. Raises ProofError."""
    target = folder / f"{name}.json"
    names = ["--main", name, "--init", init, "--step", step, "--invariant", holds]
    command = [str(QUINT), "compile", str(HERE / f"{name}.qnt"), *names]
    with target.open("w") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise ProofError(f"Quint refuses the specification:\n{done.stderr}")
    return target


def replay_seeds(model: Path) -> None:
    """Walk every seed that ever found something. Raises ProofError."""
    for line in (HERE / "seeds.txt").read_text().splitlines():
        seed, length = map(int, line.split())
        if walk(model, length + 1, seed, length).seed is not None:
            raise ProofError(f"the walk of seed {seed} with {length} steps breaks a promise again")


def walk_model(model: Path, steps: int, seed: int) -> None:
    """Walk in two processes; keep the seed of a walk that breaks a promise. Raises ProofError."""
    began, total = time.monotonic(), 0
    slices = range(seed, seed + max(1, steps // SLICE) * SLICE, SLICE)
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda start: walk(model, min(steps, SLICE), start), slices):
            if found.seed is not None:
                pool.shutdown(wait=False, cancel_futures=True)
                with (HERE / "seeds.txt").open("a") as file:
                    file.write(f"{found.seed} {LENGTH}\n")
                raise ProofError(
                    f"the walk of seed {found.seed} breaks a promise; its states: TRAIL=1 node "
                    f"tests/protocol/walk.mjs MODEL.json {LENGTH} {found.seed} {LENGTH}"
                )
            total += found.steps
            spent = time.monotonic() - began
            print(f"{total:,} steps in {spent:.0f} s: no promise is broken")


def find_rules(model: Path, seed: int) -> None:
    """Check that each rule is missed by a walk without it. Raises ProofError."""
    rules = re.findall(r'WITHOUT = "([^"]+)"', (HERE / "variants.qnt").read_text())
    with ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda rule: walk(model, RULE_STEPS, seed, rule=rule), rules)
        for rule, found in zip(rules, results, strict=True):
            if found.seed is None:
                raise ProofError(f"{found.steps:,} steps do not miss the rule: {rule}")
            print(f"without {rule}: broken after {found.steps:,} steps")


def check_runs(model: Path, runs: Path) -> dict[str, Any]:
    """Return what the specification says of recorded runs. Raises ProofError."""
    command = ["node", str(HERE / "check.mjs"), str(model), str(runs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ProofError(f"the check of runs ended: {done.stderr.strip()[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def record_runs(model: Path, folder: Path, count: int, seed: int) -> None:
    """Record runs and check them, then spoilt ones, which must be refused. Raises ProofError."""
    began = time.monotonic()
    shares = machine_runs.split(seed, -(-count // MACHINE))
    with ProcessPoolExecutor(2, initializer=logging.disable) as pool:
        small = list(pool.map(record, range(seed, seed + count - count // MACHINE), chunksize=50))
        _check_recorded(model, folder, "commits and expiries", small, began)
        began = time.monotonic()
        machine = [run for some in pool.map(machine_runs.record, shares) for run in some]
    _check_recorded(model, folder, "tests/interleaving", machine, began)
    _ask_quint(folder, [*small[:2], machine[0]])


def _check_recorded(model: Path, folder: Path, what: str, runs: list[Any], began: float) -> None:
    """Check that runs are accepted, and spoilt copies of some are not. Raises ProofError."""
    if missing := KINDS - {event["kind"] for run in runs for event in run}:
        raise ProofError(f"the runs of {what} have no event of the kinds {sorted(missing)}")
    _write_lines(folder / "runs.jsonl", runs)
    accept_runs(model, folder / "runs.jsonl", began, what)
    spoilt = [bad for run in runs[:300] for bad in spoil(run)]
    _write_lines(folder / "spoilt.jsonl", spoilt)
    refused = {one["run"] for one in check_runs(model, folder / "spoilt.jsonl")["refused"]}
    if passed := sorted({*range(len(spoilt))} - refused):
        raise ProofError(f"{len(passed)} of {len(spoilt)} spoilt runs are accepted: {passed[:9]}")
    print(f"{len(spoilt):,} spoilt runs: all are refused")


def accept_runs(model: Path, runs: Path, began: float, what: str) -> None:
    """Check a file of runs. Raises ProofError."""
    found = check_runs(model, runs)
    if found["refused"]:
        raise ProofError(f"runs are refused: {found['refused'][:5]}")
    spent = time.monotonic() - began
    count = f"{found['runs']:,} runs of {what}, {found['events']:,} events"
    print(f"{count}, in {spent:.0f} s: all are accepted")


def _write_lines(path: Path, values: list[Any]) -> None:
    with path.open("w") as file:
        file.writelines(json.dumps(value) + "\n" for value in values)


def _ask_quint(folder: Path, runs: list[Any]) -> None:
    """Let Quint itself check some runs. Raises ProofError."""
    tests = "\n".join(
        f'  run run{i}Test = assert(check({to_quint(run)}) == "")' for i, run in enumerate(runs)
    )
    for name in ("sheaf.qnt", "recorded.qnt"):
        (folder / name).write_text((HERE / name).read_text())
    text = f'module sample {{\n  import recorded.* from "./recorded"\n{tests}\n}}\n'
    (folder / "sample.qnt").write_text(text)
    command = [str(QUINT), "test", str(folder / "sample.qnt"), "--main", "sample"]
    command += ["--backend", "typescript", "--max-samples", "1", "--match", "run.*Test"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or f"{len(runs)} passing" not in done.stdout:
        raise ProofError(f"Quint refuses runs:\n{done.stdout}{done.stderr}")
    print(f"{len(runs)} runs are accepted by Quint's own evaluator")


def simulate(samples: int) -> None:
    """Run Quint's own simulator, on the backend that needs no download. Raises ProofError."""
    began = time.monotonic()
    command = [str(QUINT), "run", str(HERE / "main.qnt"), "--main", "main", "--verbosity", "1"]
    command += ["--backend", "typescript", "--max-samples", str(samples)]
    command += ["--max-steps", str(LENGTH), "--invariants", *PROMISES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ProofError(f"Quint's simulator:\n{done.stdout}{done.stderr}")
    spent = time.monotonic() - began
    print(f"Quint's simulator: {samples * LENGTH:,} steps in {spent:.0f} s: no promise is broken")


def main() -> int:
    """Prove the protocol; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000, help="steps of the walks in all")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--samples", type=int, default=100, help="runs of Quint's simulator")
    parser.add_argument("--runs", type=int, default=1000, help="runs of Sheaf that are recorded")
    parser.add_argument("--recorded", type=Path, help="a file that PROTOCOL_RUNS named")
    given = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="sheaf-protocol-") as name:
            folder = Path(name)
            model = compile_model(folder, "main", "init", "step", "promises")
            replay_seeds(model)
            find_rules(model, given.seed)
            checker = compile_model(folder, "recorded", "start", "stay", "fine")
            with ThreadPoolExecutor(1) as pool:  # Quint's simulator takes one processor
                simulation = pool.submit(simulate, given.samples)
                record_runs(checker, folder, given.runs, given.seed)
                if given.recorded:
                    accept_runs(checker, given.recorded, time.monotonic(), str(given.recorded))
                walk_model(model, given.steps, given.seed)
                simulation.result()
    except ProofError as error:
        print(f"prove-protocol: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
