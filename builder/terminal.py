"""Escaping of untrusted text, such as a URL in a template, for a terminal."""


def visible(text: str) -> str:
    """Return text of one line with escapes for characters that may control a terminal.

    These are the ones that Python calls not printable: controls, marks of direction, lone
    surrogates.
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
