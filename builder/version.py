"""What `sheaf --version` prints: version, commit, Python and libraries."""

import argparse
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from functions import distribution

_ROOT = Path(__file__).parents[1]


class VersionAction(argparse.Action):
    """Print the versions and exit with 0; nothing is looked up for other commands."""

    def __init__(self, option_strings: Sequence[str], dest: str, **_: Any) -> None:
        help = "show the versions of Sheaf and its libraries, and exit"
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print the versions and exit."""
        parser.exit(message=describe())


def describe() -> str:
    """Return the lines of `sheaf --version`, each with its line end."""
    libraries = [f"{name} {found or 'missing'}" for name, found in distribution.libraries().items()]
    lines = [
        f"sheaf {distribution.version() or 'of a copied folder'}",
        f"commit {distribution.commit() or _checked_out() or 'unknown'}",
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        *libraries,
    ]
    return "".join(f"{line}\n" for line in lines)


def _checked_out() -> str:
    """Return the commit of the checkout that runs, with + if files differ; "" if it is none."""
    if not (_ROOT / ".git").exists():
        return ""
    command = ["git", "-C", str(_ROOT), "describe", "--always", "--abbrev=40", "--dirty=+"]
    try:
        done = subprocess.run([*command, "--exclude=*"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
