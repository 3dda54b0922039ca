"""Proof of the protocol: walks of the specification, and of variants that lack one rule.

`make prove-protocol` runs it. Seeds of walks that ever broke a promise are in seeds.txt, and are
walked first. A new one is added there.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
QUINT = Path(".npm-quint/node_modules/.bin/quint")
LENGTH = 150  # steps of a walk
RULE_STEPS = 1_000_000
"""Steps within which a missing rule must be found."""
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


def compile_model(folder: Path) -> Path:
    """Let Quint check the specification and flatten it. Raises ProofError."""
    target = folder / "main.json"
    names = ["--main", "main", "--init", "init", "--step", "step", "--invariant", "promises"]
    command = [str(QUINT), "compile", str(HERE / "main.qnt"), *names]
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
    with ThreadPoolExecutor(2) as pool:
        halves = pool.map(lambda start: walk(model, steps // 2, start), (seed, seed + steps))
        results = list(halves)
    for found in results:
        if found.seed is not None:
            with (HERE / "seeds.txt").open("a") as file:
                file.write(f"{found.seed} {LENGTH}\n")
            raise ProofError(
                f"the walk of seed {found.seed} breaks a promise; its states: TRAIL=1 node "
                f"tests/protocol/walk.mjs MODEL.json {LENGTH} {found.seed} {LENGTH}"
            )
    total, longest = sum(r.steps for r in results), max(r.seconds for r in results)
    print(f"{total:,} steps in {longest:.0f} s: no promise is broken")


def find_rules(model: Path, seed: int) -> None:
    """Check that each rule is missed by a walk without it. Raises ProofError."""
    rules = re.findall(r'WITHOUT = "([^"]+)"', (HERE / "variants.qnt").read_text())
    with ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda rule: walk(model, RULE_STEPS, seed, rule=rule), rules)
        for rule, found in zip(rules, results, strict=True):
            if found.seed is None:
                raise ProofError(f"{found.steps:,} steps do not miss the rule: {rule}")
            print(f"without {rule}: broken after {found.steps:,} steps")


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
    parser.add_argument("--steps", type=int, default=2_000_000, help="steps of the walks in all")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--samples", type=int, default=200, help="runs of Quint's simulator")
    given = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="sheaf-protocol-") as folder:
            model = compile_model(Path(folder))
            replay_seeds(model)
            find_rules(model, given.seed)
            walk_model(model, given.steps, given.seed)
        simulate(given.samples)
    except ProofError as error:
        print(f"prove-protocol: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
