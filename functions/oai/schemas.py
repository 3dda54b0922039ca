"""The schemas of our own formats and containers, published beside the base URL."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from functions.oai import cache
from functions.oai.event import Reply
from functions.oai.format import SCHEMA_PATH
from functions.snapshot.errors import ConfigurationError

_TYPE = "application/xml"


def replies(places: Sequence[Path]) -> Mapping[str, Reply]:
    """Return the answer for each path below the base URL: all files under schemas/ of the places.

    Raises ConfigurationError for a file that cannot be read.
    """
    found: dict[str, Reply] = {}
    for place in reversed(places):
        for path in sorted((place / "schemas").glob("*.xsd")):
            try:
                data = path.read_bytes()
            except OSError as error:
                raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
            reply = Reply(200, _TYPE, data, digest=cache.digest(data))
            found[f"/{SCHEMA_PATH}{path.name}"] = reply
    return found
