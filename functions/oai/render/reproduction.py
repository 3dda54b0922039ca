"""Settings and digests with which another program can render the same records.

Identify has both beside the addresses of the data files. A harvester with the same program computes
the digest of its own rendering with these settings. Equal digests mean equal XML, so it may take
data files instead of pages.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from functions.config import configuration as configurations
from functions.config.configuration import Configuration
from functions.config.keys import KEYS
from functions.oai.format import Format, Formats
from functions.oai.render.render import Renderer
from functions.snapshot.errors import ConfigurationError

_NAMES = (
    "repository.name",
    "repository.base_url",
    "content.address",
    "rights.statement",
    "rights.sets",
    "provenance.origin",
    "redif.origin",
)
"""The keys that determine how records are rendered, besides the templates. All are public: records
and Identify show them."""
_CODE = ("oai/render", "oai/repository_duckdb", "oai", "database", "snapshot")
"""Folders of the code that makes records of the rows of data files."""
_KEYS = {key.name: key for key in KEYS if key.name in _NAMES}


def settings_text(configuration: Configuration) -> str:
    """Return the settings that are not defaults, as JSON."""
    told = {name: configuration[name] for name in _NAMES}
    other = {name: v for name, v in told.items() if v != configurations.default(name)}
    return json.dumps(other, ensure_ascii=False, sort_keys=True)


def read_settings(text: str) -> Configuration:
    """Return a configuration with the settings of another repository, which are not trusted.

    Raises ConfigurationError for unknown keys and invalid values.
    """
    found = configurations.parse("", {})
    try:
        told = json.loads(text)
        for name, value in told.items():
            if name not in _KEYS or not _KEYS[name].test(value):
                raise ConfigurationError(f"the settings have an unknown value of {name[:60]!r}")
            found = found.having(name, value)
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ConfigurationError("the settings are not a JSON object") from error
    return found


def digests(
    configuration: Configuration, formats: Formats, renderer: Renderer, base_url: str
) -> Mapping[str, str]:
    """Return by prefix a digest of everything that the XML of records depends on."""
    told = [_code(), base_url, settings_text(configuration)]
    return {row.prefix: digest(renderer, row, told) for row in formats.rows}


@cache
def _code() -> str:
    """Return a digest of the code of filters and columns: a copied program has no version."""
    root = Path(__file__).parents[2]
    paths = (path for folder in _CODE for path in sorted((root / folder).glob("*.py")))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()


def digest(renderer: Renderer, row: Format, told: list[str]) -> str:
    """Return a digest of the templates of a format, the XML around them, and `told`."""
    made = [*told, renderer.digest(row), row.schema, *renderer.frames(row)]
    return hashlib.sha256(json.dumps(made).encode()).hexdigest()[:32]
