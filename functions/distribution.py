"""The distribution that Sheaf is installed from; its name differs from the command's."""

from functools import cache
from importlib import metadata

NAME = "sheaf-archive"


@cache
def version() -> str:
    """Return the program's version, "" where it was copied and not installed."""
    try:
        return metadata.version(NAME)
    except metadata.PackageNotFoundError:
        return ""
