"""The schemas of our own metadata formats, as files below the base URL."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.parsers import expat

from functions.http import http_message
from functions.http.http_message import Reply
from functions.oai.format import SCHEMA_PATH
from functions.snapshot.errors import ConfigurationError

_TYPE = "application/xml"


def schema_replies(places: Sequence[Path]) -> Mapping[str, Reply]:
    """Return the replies by path below the base URL: all files under schemas/ of the places.

    Raises ConfigurationError for a file that is unreadable or not XML in UTF-8.
    """
    replies: dict[str, Reply] = {}
    for place in reversed(places):
        for path in sorted((place / "schemas").glob("*.xsd")):
            try:
                data = path.read_bytes()
            except OSError as error:
                raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
            _check(data, path)
            reply = Reply(200, _TYPE, data, digest=http_message.document_digest(data))
            replies[f"/{SCHEMA_PATH}{path.name}"] = reply
    return replies


def _check(data: bytes, path: Path) -> None:
    """Raise ConfigurationError for XML that is not well-formed or not in UTF-8."""
    declared: list[str] = []
    parser = expat.ParserCreate("UTF-8")  # overrides the encoding that the file declares
    parser.XmlDeclHandler = lambda version, encoding, alone: declared.append(encoding or "UTF-8")
    try:
        data.decode("utf-8")
        parser.Parse(data, True)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(
            f"{path}, line {line}: {error.reason}; expected XML in UTF-8"
        ) from error
    except expat.ExpatError as error:
        message = expat.errors.messages[error.code]
        raise ConfigurationError(
            f"{path}, line {error.lineno}: {message}; expected XML in UTF-8"
        ) from error
    if declared and declared[0].upper() != "UTF-8":
        raise ConfigurationError(
            f"{path} declares the encoding {declared[0]}, expected XML in UTF-8"
        )
