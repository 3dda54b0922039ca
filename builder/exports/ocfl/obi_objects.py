"""Objects of interest as OCFL objects: each logged version is a version, with its row beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from builder.exports.obi_source import LoggedObject, StoredObject
from builder.exports.ocfl.inventory import OcflInventory
from builder.exports.ocfl.root import ForeignRoot, OcflVersion
from builder.exports.staging import PackageFile
from builder.obi import content
from builder.obi.content import FILE, SOURCE, TEMPLATE
from functions.snapshot.store import Reader

ROW = "version.json"
"""Name of the file beside a version's bytes, with its row in the log of its run."""
NAMES: Mapping[str, str] = {TEMPLATE: "template.rdf", FILE: "file", SOURCE: "source.rdf"}
"""Names of the files with a version's bytes, by class."""


@dataclass(frozen=True, slots=True)
class ObiObject:
    """An object of the obi store; implements builder.exports.ocfl.root.OcflSource."""

    store: Reader
    stored: StoredObject

    @property
    def id(self) -> str:
        """Its id: a handle or a URL."""
        return self.stored.id

    def list_new(self, inventory: OcflInventory, where: Path) -> Sequence[OcflVersion]:
        """Return the versions behind the last one of the inventory. Raises ForeignRoot."""
        versions = self.stored.versions
        if inventory.head > len(versions):
            raise ForeignRoot(f"{where} has more versions of {self.id} than the store")
        stored = inventory.fixity.get("sha256", {})
        for number, noted in enumerate(versions[: inventory.head], 1):
            digest = inventory.state(number).get(NAMES[noted.version.kind], "")
            paths = set(inventory.manifest.get(digest, ()))
            created = inventory.versions[number].get("created")
            if created != noted.when or paths.isdisjoint(stored.get(noted.version.sha256, ())):
                raise ForeignRoot(
                    f"{where}: its version {number} differs from that of {self.id} in the store"
                )
        return [self._version(noted) for noted in versions[inventory.head :]]

    def _version(self, noted: LoggedObject) -> OcflVersion:
        version = noted.version
        row = content.row_line(replace(version, pack=None, start=None))  # not of the object
        files = (
            PackageFile(
                NAMES[version.kind],
                version.bytes,
                version.sha256,
                lambda: content.version_parts(self.store, version),
            ),
            PackageFile(ROW, 0, None, lambda: [row]),
        )
        return OcflVersion(noted.when, noted.what, files)
