"""Digest of the text of a PDF, which shows that a file changed and its text did not.

It decides nothing, because extracted text differs between releases of the library. This module is
also the program that reads one PDF. It runs in a process of its own, because a parser may crash. It
is the only file that imports pypdfium2.
"""

import hashlib
import resource
import subprocess
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from builder.errors import UsageError
from builder.sources.fulltexts.results import FileContent

_SECONDS = 120.0
_MEMORY = 2 << 30
_READ, _NO_TEXT, _BROKEN, _ABSENT = 0, 1, 2, 3
"""Exit codes of the program; _ABSENT: the library is not installed."""


@dataclass(frozen=True, slots=True)
class PdfText:
    """The digest of the text of a PDF, and the method of extraction."""

    sha256: str
    method: str


def check() -> None:
    """Raise UsageError if the library is not installed."""
    command = [sys.executable, "-m", __name__]
    done = subprocess.run(command, check=False, capture_output=True)
    if done.returncode == _ABSENT:
        raise UsageError(
            "gather.pdf_text is true, but pypdfium2 is missing: install sheaf-archive[pdf]"
        )


def text(file: FileContent) -> PdfText | None:
    """Return the digest of a PDF's text; None for other files, and for PDFs without readable text.

    A PDF that crashes the reader, or takes too long, counts as unreadable.
    """
    if b"%PDF-" not in file.head:
        return None
    command = [sys.executable, "-m", __name__, str(file.path)]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, timeout=_SECONDS, text=True
        )
    except subprocess.TimeoutExpired:
        return None
    sha256, _, method = done.stdout.strip().partition(" ")
    return PdfText(sha256, method) if done.returncode == _READ and len(sha256) == 64 else None


def main(arguments: Sequence[str]) -> int:
    """Print the SHA-256 of the text of the PDF that the argument names, and the method.

    The text is that of all pages in NFKC, with single blanks. Without an argument, the program only
    tries to import the library.
    """
    try:
        import pypdfium2
    except ImportError:
        return _ABSENT
    if not arguments:
        return _READ
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    digest, has_text = hashlib.sha256(), False
    try:
        with pypdfium2.PdfDocument(arguments[0]) as document:
            for number in range(len(document)):
                page = document[number]
                words = unicodedata.normalize(
                    "NFKC", page.get_textpage().get_text_bounded()
                ).split()
                page.close()
                has_text = has_text or bool(words)
                digest.update((" ".join(words) + "\n").encode("utf-8", "surrogatepass"))
    except (pypdfium2.PdfiumError, MemoryError):
        return _BROKEN
    if not has_text:
        return _NO_TEXT
    print(digest.hexdigest(), f"pypdfium2/{pypdfium2.version.PYPDFIUM_INFO}/nfkc-ws1")
    return _READ


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
