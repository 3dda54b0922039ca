"""Bags (BagIt 1.0, RFC 8493): folders for transfer, with digests of all their files.

The names of files have no `%`: RFC 8493 requires escaped percent signs in manifests, but the
reference implementation in Python does not support this. So only names without `%` are unambiguous.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from builder import distribution
from builder.errors import UsageError
from builder.exports.dataset_package import PAYLOAD
from builder.exports.staging import write_file
from builder.store.durable import digest_file

_ALGORITHMS = ("sha256", "sha512")
_DECLARATION = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"


Payload = Iterable[tuple[str, Iterable[bytes]]]
"""Paths below the bag, each with its bytes in chunks, which are read before the next is requested.
"""


@dataclass(frozen=True, slots=True)
class Bag:
    """A bag to create; implements builder.exports.staging.NewFolder.

    `info` is for its `bag-info.txt`, with the `Bagging-Date`. Paths of the payload are below
    PAYLOAD, and those of further tag files (`tags`) are not. `mark` is a path with its SHA-256,
    which identifies an existing bag.
    """

    name: str
    info: Mapping[str, str]
    payload: Callable[[], Payload]
    mark: tuple[str, str | None]
    tags: Callable[[], Payload] = tuple

    def check(self, folder: Path) -> None:
        """Raise UsageError if the existing bag is a different one."""
        path, digest = self.mark
        try:
            actual = digest_file(folder / path)
        except (FileNotFoundError, NotADirectoryError):
            actual = ""
        if actual != digest:
            raise UsageError(f"{folder} exists and is not the same bag: choose another folder")

    def write(self, folder: Path) -> tuple[int, int]:
        """Create the bag in a new folder; return the number of payload files, and their bytes."""
        (folder / PAYLOAD).mkdir()
        files = size = 0
        with ExitStack() as stack:
            manifests = {
                name: stack.enter_context(
                    (folder / f"manifest-{name}.txt").open("w", encoding="utf-8")
                )
                for name in _ALGORITHMS
            }
            for path, parts in self.payload():
                digests, length = write_file(folder / path, parts, _ALGORITHMS)
                for name, digest in digests.items():
                    manifests[name].write(f"{digest}  {path}\n")
                files, size = files + 1, size + length
        for path, parts in self.tags():
            write_file(folder / path, parts)
        info = {
            "Bag-Software-Agent": f"Sheaf {distribution.version()}",
            "Bagging-Date": self.info["Bagging-Date"],
            "Payload-Oxum": f"{size}.{files}",
            **self.info,
        }
        (folder / "bagit.txt").write_bytes(_DECLARATION)
        lines = (f"{name}: {' '.join(text.split())}\n" for name, text in info.items())
        (folder / "bag-info.txt").write_text("".join(lines), "utf-8")
        _write_tag_manifests(folder)
        return files, size


def _write_tag_manifests(folder: Path) -> None:
    tops = [top for top in folder.iterdir() if top != folder / PAYLOAD]
    tags = sorted(path for top in tops for path in (top, *top.rglob("*")) if path.is_file())
    for name in _ALGORITHMS:
        lines = (
            f"{digest_file(path, name)}  {path.relative_to(folder).as_posix()}\n" for path in tags
        )
        (folder / f"tagmanifest-{name}.txt").write_text("".join(lines), "utf-8")
