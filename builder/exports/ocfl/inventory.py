"""OCFL 1.1 (Oxford Common File Layout): contents of the files of a storage root and its objects.

Layout extension 0003 names an object's folder by its id, below three folders of a digest. So a
paper can be found by its handle, and a dataset by its identifier, even if only the disk is left.
The bare digests of extension 0004 would not allow this.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from builder.obi.history import write_json
from functions.snapshot.errors import DamagedStore

ROOT_MARK, OBJECT_MARK = "0=ocfl_1.1", "0=ocfl_object_1.1"
INVENTORY, SIDECAR = "inventory.json", "inventory.json.sha512"
EXTENSION = "0003-hash-and-id-n-tuple-storage-layout"

_LONGEST = 100  # characters of an escaped id, as in the extension
_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def root_files() -> dict[str, bytes]:
    """Return the files of an empty storage root by path."""
    layout = {
        "extension": EXTENSION,
        "description": "Hashed Truncated N-tuple Trees with Object ID Encapsulating Directory",
    }
    config = {
        "extensionName": EXTENSION,
        "digestAlgorithm": "sha256",
        "tupleSize": 3,
        "numberOfTuples": 3,
    }
    return {
        ROOT_MARK: b"ocfl_1.1\n",
        "ocfl_layout.json": write_json(layout),
        f"extensions/{EXTENSION}/config.json": write_json(config),
    }


def place(identifier: str) -> str:
    """Return the path of an object below the root, by the layout extension."""
    digest = hashlib.sha256(identifier.encode()).hexdigest()
    name = "".join(chr(b) if b in _KEPT else f"%{b:02x}" for b in identifier.encode())
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}-{digest}"
    return "/".join((digest[:3], digest[3:6], digest[6:9], name))


@dataclass(slots=True)
class OcflInventory:
    """An object's inventory: every file by its SHA-512, and the state of every version.

    `manifest` and the values of `fixity` map digests to paths of files; `versions` are by number
    from 1.
    """

    id: str
    manifest: dict[str, list[str]] = field(default_factory=dict)
    versions: dict[int, dict[str, Any]] = field(default_factory=dict)
    fixity: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    @property
    def head(self) -> int:
        """The number of the last version, 0 without versions."""
        return max(self.versions, default=0)

    def state(self, number: int) -> dict[str, str]:
        """Return the SHA-512 of each file of a version by its name."""
        by_digest: Mapping[str, list[str]] = self.versions[number]["state"]
        return {name: digest for digest, names in by_digest.items() for name in names}

    def digests(self) -> dict[str, str]:
        """Return the SHA-512 of each stored file by its path."""
        return {path: digest for digest, paths in self.manifest.items() for path in paths}

    def to_json(self) -> bytes:
        """Return the inventory as JSON."""
        document = {
            "id": self.id,
            "type": "https://ocfl.io/1.1/spec/#inventory",
            "digestAlgorithm": "sha512",
            "head": f"v{self.head}",
            "contentDirectory": "content",
            "manifest": self.manifest,
            "versions": {f"v{number}": version for number, version in self.versions.items()},
            "fixity": self.fixity,
        }
        return write_json(document)


def parse(data: bytes, sidecar: bytes, where: str) -> OcflInventory:
    """Parse the inventory in `data` and verify its digest in `sidecar`. Raises DamagedStore."""
    if sidecar.split()[:1] != [hashlib.sha512(data).hexdigest().encode()]:
        raise DamagedStore(f"{where}: its inventory does not match its digest")
    try:
        document = json.loads(data)
        versions = {int(name.removeprefix("v")): v for name, v in document["versions"].items()}
        fixity = document.get("fixity", {})
        return OcflInventory(document["id"], document["manifest"], versions, fixity)
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise DamagedStore(f"{where}: its inventory cannot be read") from error


def sidecar(inventory: bytes) -> bytes:
    """Return the content of the sidecar file with an inventory's digest."""
    return f"{hashlib.sha512(inventory).hexdigest()} {INVENTORY}\n".encode()
