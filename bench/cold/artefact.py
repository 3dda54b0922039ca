"""What is deployed, put together for a bench, and packages beside it that are compared with."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

_PACKAGE = Path(__file__).parents[2] / "infra" / "package.py"


class Skipped(Exception):
    """It cannot be measured here, and why."""


def python() -> str:
    """Return an interpreter of the same version as Lambda's. Raises Skipped."""
    found = shutil.which(os.environ.get("PYTHON313") or "python3.13")
    there = found and not subprocess.run([found, "--version"], capture_output=True).returncode
    if not found or not there:
        raise Skipped("there is no python3.13 on PATH (PYTHON313 may name one)")
    return found


def install(interpreter: str, target: Path, *packages: str) -> str | None:
    """Install packages into a folder, with bytecode; return why not, where it fails."""
    command = [interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*command, "--target", str(target), *packages], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    compiled(interpreter, target)
    return None


def compiled(interpreter: str, folder: Path) -> None:
    line = ["-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", str(folder)]
    subprocess.run([interpreter, *line], check=True)


def pack(interpreter: str, target: Path) -> None:
    """Pack the serving function as a deployment does. Raises Skipped."""
    target.mkdir()
    machine = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
    command = [interpreter, str(_PACKAGE), "OaiFunction", machine, str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skipped(f"the function cannot be packed: {done.stderr.strip()[-300:]}")


def megabytes(folder: Path) -> float:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e6
