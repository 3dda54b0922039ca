"""Bags of datasets: a package with its files as the payload."""

from collections.abc import Mapping

from builder.exports.bagit.bag import Bag
from builder.exports.dataset_package import DatasetPackage


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
