"""Packages of datasets as folders, as bags, and as OCFL objects with a version for each version."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.errors import UsageError
from builder.export.bagit import PAYLOAD, Bag
from builder.export.dataset_package import DatasetPackage, PackageFile
from builder.export.ocfl.inventory import OcflInventory
from builder.export.ocfl.root import OcflFile, OcflVersion
from functions.snapshot import instant


@dataclass(frozen=True, slots=True)
class CrateFolder:
    """A package as a folder; implements builder.export.staging.NewFolder."""

    package: DatasetPackage

    @property
    def name(self) -> str:
        """Its name, which depends on the files."""
        return self.package.name

    def check(self, folder: Path) -> None:
        """Raise UsageError if a file of the dataset is missing, or has another size."""
        for file in self.package.data:
            path = folder / file.path
            if not path.is_file() or path.stat().st_size != file.size:
                raise UsageError(f"{folder} exists and has no intact {file.path}: remove it")

    def write(self, folder: Path) -> tuple[int, int]:
        """Write the files; return the number of those of the dataset, and their bytes."""
        for file in self.package.files:
            path = folder / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as out:
                out.writelines(file.read())
        return len(self.package.data), sum(file.size for file in self.package.data)


def bag_of_dataset(package: DatasetPackage, sender: Mapping[str, str]) -> Bag:
    """Return a package as a bag; `sender` is the part of `bag-info.txt` about the sender."""
    least = min(package.data, key=lambda file: file.size)
    info = {
        **sender,
        "External-Identifier": f"doi:{package.doi}" if package.doi else package.identifier,
        "Internal-Sender-Identifier": package.identifier,
        "External-Description": (
            f"{package.title}. ro-crate-metadata.json describes it, and metadata/ has "
            "what its platform sent. The names of files have = for %."
        ),
    }
    return Bag(
        package.name,
        info,
        lambda: ((file.path, file.read()) for file in package.data),
        (least.path, least.sha256),
        lambda: ((file.path, file.read()) for file in package.tags),
    )


@dataclass(frozen=True, slots=True)
class DatasetObject:
    """All versions of a dataset as one object; implements builder.export.ocfl.root.OcflSource.

    `versions` are identifiers, of which `pack` returns the packages. A version is found by its
    message and its files, because an older one may be archived later.
    """

    id: str
    versions: Sequence[str]
    pack: Callable[[str], DatasetPackage]

    def list_new(self, inventory: OcflInventory, where: Path) -> Sequence[OcflVersion]:
        """Return the versions that no version of the inventory has. Raises StoreError."""
        known = [*_list_states(inventory)]
        packages = map(self.pack, self.versions)
        return [
            _version(package)
            for package in packages
            if package.data and (_message(package), _state(package.data)) not in known
        ]


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


def _state(files: Sequence[PackageFile]) -> Mapping[str, str]:
    return {file.path: file.sha256 for file in files}


def _message(package: DatasetPackage) -> str:
    version = f", version {package.version}" if package.version else ""
    return f"{package.identifier}{version}"


def _version(package: DatasetPackage) -> OcflVersion:
    files = tuple(OcflFile(f.path, f.size, f.sha256, f.read) for f in package.files)
    return OcflVersion(instant.to_text(package.archived), _message(package), files)
