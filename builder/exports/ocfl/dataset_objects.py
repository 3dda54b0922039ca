"""Datasets as OCFL objects, with a version for each version of the dataset."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.exports.dataset_package import PAYLOAD, DatasetPackage
from builder.exports.ocfl.inventory import OcflInventory
from builder.exports.ocfl.root import OcflVersion
from functions.snapshot import instant


@dataclass(frozen=True, slots=True)
class DatasetObject:
    """All versions of a dataset as one object; implements builder.exports.ocfl.root.OcflSource.

    `versions` are identifiers, of which `pack` returns the packages. A version is found by its
    message and its files, because an older one may be archived later.
    """

    id: str
    versions: Sequence[str]
    pack: Callable[[str], DatasetPackage]

    def list_new(self, inventory: OcflInventory, where: Path) -> Sequence[OcflVersion]:
        """Return the versions that no version of the inventory has. Raises StoreError."""
        states = _list_states(inventory)
        new = []
        for package in map(self.pack, self.versions):
            state = {file.path: file.sha256 for file in package.data}
            number = f", version {package.version}" if package.version else ""
            message = f"{package.identifier}{number}"
            if state and (message, state) not in states:
                new.append(OcflVersion(instant.to_text(package.archived), message, package.files))
        return new


def _list_states(inventory: OcflInventory) -> Sequence[tuple[str, Mapping[str, str]]]:
    """Return message, and the SHA-256 of each file of the dataset, of each version."""
    digests = inventory.digests()
    sha256 = {
        digests[path]: digest
        for digest, paths in inventory.fixity.get("sha256", {}).items()
        for path in paths
    }
    return [
        (
            version.get("message", ""),
            {
                name: sha256.get(digest, "")
                for name, digest in inventory.state(number).items()
                if name.startswith(PAYLOAD)
            },
        )
        for number, version in inventory.versions.items()
    ]
