"""Includes: a template with what it includes in its places, line by line."""

import re
from collections.abc import Callable, Iterator

from functions.snapshot.errors import ConfigurationError

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_INCLUDE = re.compile(r'\{% include (?:"([^"]+)"|crosswalk|(abouts)) %\}\n')


def lines(
    read: Callable[[str], tuple[str, str]],
    name: str,
    crosswalk: str,
    abouts: tuple[str, ...],
    above: tuple[str, ...] = (),
) -> Iterator[tuple[str, str, int]]:
    """Yield a template's lines, its includes in their places, with the file and line of each.

    `read` gives a template's text and where it lies, and raises ConfigurationError. `crosswalk` and
    `abouts` are what varies of the includes.
    """
    if name in above:
        raise ConfigurationError(f"{above[-1]} includes {name}, in which it lies itself")
    try:
        source = read(name)[0]
    except ConfigurationError as error:
        raise ConfigurationError(f"{error} ({' in '.join(reversed(above))})") from error
    for number, line in enumerate(_LINE.findall(source), 1):
        include = _INCLUDE.search(line if line.endswith("\n") else line + "\n")
        if include is None:
            yield line if line.endswith("\n") else line + "\n", name, number
            continue
        if line[: include.start()].strip():
            yield line[: include.start()], name, number
        included = [include[1] or crosswalk]
        if include[2]:
            included = [f"about/{about}.xml" for about in abouts]
        for other in included:
            yield from lines(read, other, crosswalk, abouts, (*above, name))
