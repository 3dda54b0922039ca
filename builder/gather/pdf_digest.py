"""Documents: a digest of the text of a PDF, got by a process of its own.

It tells people that a file's bytes changed and its text did not, and decides nothing: what is got
out of a PDF differs from one release of the library to the next.
"""

import subprocess
import sys

from builder.errors import UsageError
from builder.gather.incidences import Text
from builder.http.response import Content

_SECONDS = 120.0
_PROGRAM = "builder.gather.pdf_text"
_ABSENT = 3
"""What the program ends with where there is no library."""


def check() -> None:
    """Raise UsageError where no text can be got, for want of the library."""
    done = subprocess.run([sys.executable, "-m", _PROGRAM], check=False, capture_output=True)
    if done.returncode == _ABSENT:
        raise UsageError(
            "gather.pdf_text is true, but pypdfium2 is missing: install sheaf-archive[pdf]"
        )


def text(content: Content) -> Text | None:
    """Return the digest of a PDF's text; None for what is none, has none, or cannot be read.

    A PDF that its reader breaks on, or that takes too long, breaks nothing here.
    """
    if b"%PDF-" not in content.head:
        return None
    command = [sys.executable, "-m", _PROGRAM, str(content.path)]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, timeout=_SECONDS, text=True
        )
    except subprocess.TimeoutExpired:
        return None
    sha256, _, method = done.stdout.strip().partition(" ")
    return Text(sha256, method) if done.returncode == 0 and len(sha256) == 64 else None
