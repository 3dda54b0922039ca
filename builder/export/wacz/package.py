"""Package metadata of a WACZ file, and its digest (WACZ 1.1.1, section 5)."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from functions.snapshot import instant

NAME, DIGEST_NAME = "datapackage.json", "datapackage-digest.json"
_VERSION = "1.1.1"
_LABEL = "sha256:"


@dataclass(frozen=True, slots=True)
class PackageResource:
    """A file of the package: its path, SHA-256 in hexadecimal digits, and size."""

    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class About:
    """Metadata of the package. `main` is the URL of the first page to show, if any."""

    title: str
    description: str
    software: str
    created: datetime
    main: str | None = None


def document(about: About, resources: Sequence[PackageResource], main: str | None = None) -> bytes:
    """Return datapackage.json, which is a Frictionless data package as well.

    `main` is the date (RFC 3339) of the page with the URL About.main, if it is in the package.
    """
    told: dict[str, object] = {
        "profile": "data-package",
        "resources": [
            {
                "name": resource.path.rpartition("/")[2],
                "path": resource.path,
                "hash": _LABEL + resource.sha256,
                "bytes": resource.bytes,
            }
            for resource in resources
        ],
        "wacz_version": _VERSION,
        "title": about.title,
        "description": about.description,
        "software": about.software,
        "created": instant.to_text(about.created),
    }
    if main is not None:
        told["mainPageUrl"], told["mainPageDate"] = about.main, main
    return json.dumps(told, indent=1, ensure_ascii=False).encode() + b"\n"


def digest(package: bytes) -> bytes:
    """Return datapackage-digest.json, of the bytes of datapackage.json."""
    told = {"path": NAME, "hash": _LABEL + hashlib.sha256(package).hexdigest()}
    return json.dumps(told, indent=1).encode() + b"\n"
