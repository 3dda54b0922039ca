"""The one name that an installation adds to Python's packages; its packages lie below it.

`builder` and `functions` are names that others use too. So they are found only in a process that
imported this package. In a checkout they lie beside it.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_OWN = Path(__file__).parent
_HOME = str(_OWN if (_OWN / "builder").is_dir() else _OWN.parent)
if _HOME not in sys.path:
    sys.path.insert(0, _HOME)


def main() -> int:
    """Run the command line and return its exit status."""
    from builder.__main__ import main as run

    return run()


def call(work: Callable[[int], T], number: int) -> T:
    """Return `work(number)` in a process that need not know Sheaf yet, such as one of a cluster.

    Pickle names the function before its arguments, so this package is imported before they are.
    """
    return work(number)
