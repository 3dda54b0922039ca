"""Text: counts with nouns, escapes for a terminal, and file names that Windows reserves."""

_DEVICES = {"con", "prn", "aux", "nul", "conin$", "conout$"} | {
    head + digit for head in ("com", "lpt") for digit in "123456789¹²³"
}


def tally(number: int, noun: str, plural: str | None = None) -> str:
    """Return the number with its noun; the plural is the noun with an s unless given."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def visible(text: str) -> str:
    """Return text of one line with escapes for characters that may control a terminal.

    These are the ones that Python calls not printable: controls, marks of direction, lone
    surrogates.
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def is_device(name: str) -> bool:
    """Return whether a file's name is a device on Windows; it ignores text after the first dot."""
    return name.partition(".")[0].rstrip(" ").casefold() in _DEVICES
