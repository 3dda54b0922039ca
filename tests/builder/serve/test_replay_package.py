"""Packages of ReplayWeb.page: what is taken of one, and why others are refused."""

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from builder.errors import UsageError
from builder.serve import replay_package
from builder.serve.replay_package import install, read_package
from builder.store.folder import FolderStore

ABOUT = {"name": "replaywebpage", "version": "2.5.3", "license": "AGPL-3.0-or-later"}
WORKER = b"/* remotewarcproxy */"
WHOLE = (
    ("package/package.json", json.dumps(ABOUT).encode()),
    ("package/sw.js", WORKER),
)


def pack(path: Path, *members: tuple[str, bytes], links: tuple[str, ...] = ()) -> Path:
    """Write a tarball with these members in order, and links of these names to a password file."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for name in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(member)
    path.write_bytes(gzip.compress(data.getvalue()))
    return path


def test_the_worker_is_written_and_nothing_beside(tmp_path: Path) -> None:
    outside = (("../../out.js", b"x"), ("/tmp/out.js", b"x"), ("package/../sw.js", b"x"))
    path = pack(tmp_path / "p.tgz", *outside, *WHOLE, ("package/dist/sw.js", b"x"))
    package = read_package(path)
    assert (package.version, package.licence) == ("2.5.3", "AGPL-3.0-or-later")
    store = FolderStore(tmp_path / "store")
    install(store, package)
    install(store, package)  # again, as a newer one is
    assert {key: store.read(key) for key in store.keys("")} == {"replay/sw.js": WORKER}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("package/sw.js", b"", "has 0 bytes"),
        ("package/sw.js", b"x", "its service worker has no remotewarcproxy"),
        ("package/sw.js", bytes(replay_package._LARGEST + 1), "4,194,305 bytes"),
        ("package/sw.js", None, "has no file package/sw.js"),
        ("package/package.json", b"[" * 100_000, "does not say"),
        ("package/package.json", json.dumps({**ABOUT, "version": "\x1b[2J"}).encode(), "not say"),
        ("package/package.json", json.dumps({**ABOUT, "name": "x"}).encode(), "not say"),
    ],
)
def test_other_packages_are_refused(
    name: str, content: bytes | None, message: str, tmp_path: Path
) -> None:
    members = {**dict(WHOLE), name: content}
    rows = [(key, data) for key, data in members.items() if data is not None]
    with pytest.raises(UsageError, match=message.replace("[", r"\[")):
        read_package(pack(tmp_path / "p.tgz", *rows))


def test_hostile_tarballs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.tgz"
    with pytest.raises(UsageError, match="twice"):
        read_package(pack(path, *WHOLE, WHOLE[1]))
    with pytest.raises(UsageError, match=r"has no file package/sw\.js"):
        read_package(pack(path, WHOLE[0], links=("package/sw.js",)))
    whole = pack(path, *WHOLE).read_bytes()
    cut = gzip.compress(gzip.decompress(whole)[:1036])
    for data in (b"", b"x", whole[:-20], b"\x1f\x8b" + bytes(40), gzip.compress(b"x" * 999), cut):
        path.write_bytes(data)
        with pytest.raises(UsageError, match=r"p\.tgz"):
            read_package(path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_package(tmp_path / "none.tgz")
    monkeypatch.setattr(replay_package, "_WHOLE", 1000)
    with pytest.raises(UsageError, match="more than 1,000 bytes unpacked"):
        read_package(pack(path, *WHOLE))
