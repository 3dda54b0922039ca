"""Terminals: what strangers wrote, such as a URL in a template, as a terminal may be given it."""


def visible(text: str) -> str:
    """Return text of one line with escapes for what is not seen of it but may move a terminal.

    That is what Python does not call printable: controls, marks of direction, lone surrogates.
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
