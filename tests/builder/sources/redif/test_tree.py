"""Trees and tarballs: read as streams, in one order, whatever they hold; nothing leads outside."""

import bz2
import gzip
import io
import lzma
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from builder.errors import UsageError
from builder.obi.key import DAY_START, parse_tist
from builder.sources.redif import tarball as tarballs
from builder.sources.redif import tree as trees
from builder.sources.redif.spool import Flaw, RedifFile, Spool
from tests.builder.sources.redif.trees import tarball, tree

FILES = {
    "RePEc/aaa/aaaarch.rdf": b"one",
    "RePEc/aaa/wpaper/a.redif": b"two",
    "RePEc/aaa/wpaper.rdf": b"three",
    "RePEc/aaa/ENV.RDF": b"four",
}
OTHERS = {
    "RePEc/aaa/a.rdf~": b"",
    "RePEc/aaa/a.rdf.bad": b"",
    "RePEc/aaa/a.rdf-2005-03-01": b"",
    "RePEc/aaa/rdf": b"",
    "RePEc/aaa/.hidden.rdf": b"",
    "RePEc/aaa/.git/a.rdf": b"",
}


def content(member: RedifFile) -> bytes:
    with member.opened() as file:
        return file.read()


def split(found: list[RedifFile | Flaw]) -> tuple[list[str], list[tuple[str, str, bool]]]:
    """Return the paths of members, and path, code and whether it hides anything of flaws."""
    return (
        [one.path for one in found if isinstance(one, RedifFile)],
        [(one.path, one.code, one.hides) for one in found if isinstance(one, Flaw)],
    )


def test_a_tree_gives_the_files_with_redifs_suffixes_in_the_order_of_paths(tmp_path: Path) -> None:
    tree(tmp_path, {**FILES, **OTHERS})
    found = list(trees.tree_members(tmp_path / "RePEc"))
    assert [one.path for one in found] == sorted(FILES)
    assert [content(one) for one in found if isinstance(one, RedifFile)] == [
        FILES[name] for name in sorted(FILES)
    ]
    # Names that are no UTF-8 are text all the same.
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/RePEc/\xe9t\xe9.rdf")
    Path(odd).write_bytes(b"x")
    assert "RePEc/\\xe9t\\xe9.rdf" in [one.path for one in trees.tree_members(tmp_path / "RePEc")]


@pytest.mark.parametrize(
    "pack",
    [
        bytes,
        gzip.compress,
        bz2.compress,
        lzma.compress,
        zstandard.compress,
        lambda data: gzip.compress(data[:700]) + gzip.compress(data[700:]),
        lambda data: bz2.compress(data[:700]) + bz2.compress(data[700:]),
        lambda data: lzma.compress(data[:700]) + lzma.compress(data[700:]),
        lambda data: zstandard.compress(data[:700]) + zstandard.compress(data[700:]),
    ],
    ids=["plain", "gzip", "bzip2", "xz", "zstd", "2 gzip", "2 bzip2", "2 xz", "2 zstd"],
)
def test_a_tarball_gives_the_same_whatever_it_is_packed_by(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tarball(tmp_path / "x", {**FILES, **OTHERS}.items(), "")
    path.write_bytes(pack(path.read_bytes()))
    assert tarballs.is_tar(path)
    assert tarballs.holds_redif(path)
    found = {one.path: content(one) for one in tarballs.members(path) if isinstance(one, RedifFile)}
    assert found == FILES
    # Names that begin with a dot and a slash are the same.
    dotted = tarball(tmp_path / "y", [(f"./{name}", data) for name, data in FILES.items()], "")
    dotted.write_bytes(pack(dotted.read_bytes()))
    assert split(list(tarballs.members(dotted))) == (list(FILES), [])


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def test_a_tarballs_links_devices_and_unsafe_names_are_told_of_and_left_out(tmp_path: Path) -> None:
    path = tarball(
        tmp_path / "x.tar.gz",
        [
            ("RePEc/aaa/a.rdf", b"good"),
            (special("RePEc/aaa/b.rdf", tarfile.SYMTYPE, "/etc/passwd"), b""),
            (special("RePEc/aaa/c.rdf", tarfile.LNKTYPE, "RePEc/aaa/a.rdf"), b""),
            (special("RePEc/aaa/wpaper", tarfile.SYMTYPE, "/tmp"), b""),
            (special("RePEc/aaa/index.html", tarfile.SYMTYPE, "/tmp/x"), b""),
            (special("RePEc/aaa/d.rdf", tarfile.CHRTYPE), b""),
            (special("RePEc/aaa/e.rdf", tarfile.FIFOTYPE), b""),
            ("/etc/f.rdf", b"bad"),
            ("RePEc/../../g.rdf", b"bad"),
            ("../h.rdf", b"bad"),
            ("../readme", b"bad"),
            ("RePEc/aaa/z.rdf", b"good as well"),
        ],
    )
    members, flaws = split(list(tarballs.members(path)))
    assert members == ["RePEc/aaa/a.rdf", "RePEc/aaa/z.rdf"]
    assert flaws == [
        ("RePEc/aaa/b.rdf", "link", True),
        ("RePEc/aaa/c.rdf", "link", True),
        ("RePEc/aaa/wpaper", "link", True),
        ("RePEc/aaa/index.html", "link", False),
        ("RePEc/aaa/d.rdf", "not-a-file", True),
        ("RePEc/aaa/e.rdf", "not-a-file", True),
        ("/etc/f.rdf", "path-unsafe", True),
        ("RePEc/../../g.rdf", "path-unsafe", True),
        ("../h.rdf", "path-unsafe", True),
        ("../readme", "path-unsafe", False),
    ]


def with_an_endless_name(data: bytes) -> bytes:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1 << 33
    return data[:1024] + info.tobuf(tarfile.GNU_FORMAT) + data[1024:]


def with_many_names_for_one(data: bytes) -> bytes:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1
    return data[:1024] + (info.tobuf(tarfile.GNU_FORMAT) + b"x" * 512) * 3000 + data[1024:]


def with_a_negative_size(data: bytes) -> bytes:
    info = tarfile.TarInfo("RePEc/aaa/n.rdf")
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\xff" * 12
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return data[:1024] + bytes(header) + data[1024:]


def spooled(path: Path) -> tuple[int, list[Flaw]]:
    """Return how many files of a tarball are read, and the flaws."""
    spool = Spool(path.parent)
    flaws = []
    for one in tarballs.members(path):
        flaw = one if isinstance(one, Flaw) else spool.take(0, one)
        flaws += [flaw] if flaw else []
    spool.close()
    return spool.ordinal, flaws


@pytest.mark.parametrize(
    "defect",
    [
        lambda data: data[:1400],
        lambda data: data.rstrip(b"\x00") + bytes(-len(data.rstrip(b"\x00")) % 512),
        lambda data: data[:1024] + b"junk" * 128 + data[1024 + 512 :],
        with_an_endless_name,
        with_many_names_for_one,
        with_a_negative_size,
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_damaged_tarball_gives_what_is_before_the_damage_and_says_so(
    defect: Callable[[bytes], bytes], pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tarball(tmp_path / "x.tar", FILES.items(), "")
    path.write_bytes(pack(defect(path.read_bytes())))
    count, flaws = spooled(path)
    assert count >= 1
    assert flaws[-1].code == "tarball-damaged"
    assert flaws[-1].hides
    assert flaws[-1].detail.startswith("x.tar: ")


def test_a_packed_tarball_that_is_cut_off_is_damaged(tmp_path: Path) -> None:
    path = tarball(tmp_path / "x.tar.gz", {**FILES, "RePEc/b.rdf": os.urandom(9000)}.items())
    path.write_bytes(path.read_bytes()[:-3000])
    count, flaws = spooled(path)
    assert (count, [flaw.code for flaw in flaws]) == (4, ["unreadable", "tarball-damaged"])


@pytest.mark.parametrize(
    "data", [b"", b"\x00" * 10240, b"Template-Type: x\n" * 99, b"\x1f\x8b\x08"]
)
def test_what_is_no_tarball(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    assert not tarballs.is_tar(tmp_path / "x")


def test_links_of_a_tree_that_lead_out_of_it_are_not_followed(tmp_path: Path) -> None:
    outside = tree(tmp_path / "outside", {"secret.rdf": b"secret", "wpaper/s.rdf": b"secret"})
    root = tree(tmp_path / "RePEc", {"aaa/a.rdf": b"one", "pool/b.txt": b"two", "pool/c.rdf": b"3"})
    (root / "aaa/out.rdf").symlink_to(outside / "secret.rdf")
    (root / "aaa/up.rdf").symlink_to("../../outside/secret.rdf")
    (root / "aaa/readme").symlink_to(outside / "secret.rdf")
    (root / "aaa/wpaper").symlink_to(outside / "wpaper")
    (root / "aaa/gone.rdf").symlink_to("nowhere")
    (root / "aaa/loop.rdf").symlink_to("loop.rdf")
    (root / "aaa/in.rdf").symlink_to("../pool/b.txt")
    (root / "aaa/around").symlink_to("..")
    os.mkfifo(root / "aaa/pipe.rdf")
    members, flaws = split(list(trees.tree_members(root)))
    assert members == ["RePEc/aaa/a.rdf", "RePEc/aaa/in.rdf", "RePEc/pool/c.rdf"]
    assert flaws == [
        ("RePEc/aaa/gone.rdf", "link-outside", True),
        ("RePEc/aaa/loop.rdf", "link-outside", True),
        ("RePEc/aaa/out.rdf", "link-outside", True),
        ("RePEc/aaa/pipe.rdf", "not-a-file", True),
        ("RePEc/aaa/up.rdf", "link-outside", True),
        ("RePEc/aaa/wpaper", "link-outside", True),
    ]


def test_a_file_that_becomes_a_link_once_it_was_found_is_not_followed(tmp_path: Path) -> None:
    tree(tmp_path, {"outside": b"secret", "RePEc/a.rdf": b"one"})
    (member,) = trees.tree_members(tmp_path / "RePEc")
    assert isinstance(member, RedifFile)
    (tmp_path / "RePEc/a.rdf").unlink()
    (tmp_path / "RePEc/a.rdf").symlink_to("../outside")
    spool = Spool(tmp_path)
    flaw = spool.take(0, member)
    assert flaw is not None
    assert flaw.code == "unreadable"


def test_a_file_that_is_too_large_or_changes_is_left_out(tmp_path: Path) -> None:
    spool = Spool(tmp_path, largest=100)
    sizes = {"a.rdf": 100, "b.rdf": 101, "c.rdf": 5}
    for name, size in sizes.items():
        flaw = spool.take(0, RedifFile(name, size, 0, lambda size=size: io.BytesIO(b"x" * size)))
        assert (flaw is not None) == (name == "b.rdf")
    for size, code in ((5000, "file-too-large"), (4, "unreadable"), (2, "unreadable")):
        data = io.BytesIO(b"x" * size)
        flaw = spool.take(0, RedifFile("d.rdf", 3, 0, lambda data=data: data))
        assert flaw is not None
        assert (flaw.code, flaw.hides) == (code, True)
    spool.close()
    (segment,) = spool.segments
    assert [(f.path, f.start, f.bytes) for f in segment.files()] == [
        ("a.rdf", 0, 100),
        ("c.rdf", 100, 5),
    ]
    assert segment.path.stat().st_size == segment.bytes == 105


@pytest.mark.parametrize(
    ("name", "tist"),
    [
        ("RePEc_2025-01-05.tar.gz", 1736035200),
        ("RePEc-all_2017-10-25.tar.gz", 1508889600),
        ("1999-12-31", 946598400),
        ("RePEc.tar", None),
        ("RePEc_12025-01-055.tar", None),
    ],
)
def test_the_time_of_a_tarball_is_the_day_in_its_name(name: str, tist: int | None) -> None:
    assert tarballs.tist_of(name) == tist
    with pytest.raises(UsageError, match="2025-02-30 is not a valid date"):
        tarballs.tist_of("RePEc_2025-02-30.tar.gz")


@pytest.mark.parametrize(
    ("text", "tist"),
    [
        ("1352481230", 1352481230),
        ("2025-01-05", 1736035200),
        ("2025-01-05T00:00:07Z", 1736035207),
        *((text, None) for text in ("", "2025", "2025-13-01", "yesterday")),
        *((text, None) for text in ("12345678", "-1352481230")),
    ],
)
def test_a_time_is_seconds_a_day_or_an_instant(text: str, tist: int | None) -> None:
    if tist is not None:
        assert parse_tist(text, "--tist", DAY_START) == tist
        return
    with pytest.raises(UsageError, match="--tist"):
        parse_tist(text, "--tist", DAY_START)
