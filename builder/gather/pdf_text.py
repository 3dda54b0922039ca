"""The program that reads a PDF: prints the SHA-256 of its text, and how that was got.

The text is that of all pages in NFKC, white space in one form. The only file that imports
pypdfium2, whose parser is told apart from everything else by the process that it runs in.
"""

import hashlib
import resource
import sys
import unicodedata
from collections.abc import Sequence

_MEMORY = 2 << 30
_FOUND, _NO_TEXT, _BROKEN, _ABSENT = 0, 1, 2, 3


def main(arguments: Sequence[str]) -> int:
    """Read the PDF that the first argument names; without one only tell whether that can be."""
    try:
        import pypdfium2
    except ImportError:
        return _ABSENT
    if not arguments:
        return _FOUND
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    digest, some = hashlib.sha256(), False
    try:
        with pypdfium2.PdfDocument(arguments[0]) as document:
            for number in range(len(document)):
                page = document[number]
                words = unicodedata.normalize(
                    "NFKC", page.get_textpage().get_text_bounded()
                ).split()
                page.close()
                some = some or bool(words)
                digest.update((" ".join(words) + "\n").encode("utf-8", "surrogatepass"))
    except (pypdfium2.PdfiumError, MemoryError):
        return _BROKEN
    if not some:
        return _NO_TEXT
    print(digest.hexdigest(), f"pypdfium2/{pypdfium2.version.PYPDFIUM_INFO}/nfkc-ws1")
    return _FOUND


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
