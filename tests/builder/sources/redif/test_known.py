"""Files that have not changed since the last ingest of their folder are not read again."""

import errno
import os
import time
from pathlib import Path
from typing import Any

import pytest

from builder.store.workdir import KNOWN_PREFIX
from tests.builder.sources.redif.trees import (
    archive,
    counts,
    documents,
    ingested,
    paper,
    tree,
)
from tests.e2e.conftest import Home

OLD = 1_700_000_000


def aged(folder: Path, seconds: int = OLD) -> Path:
    """Give all files of a tree an old time."""
    for path in folder.rglob("*.rdf"):
        os.utime(path, (seconds, seconds))
    return folder


def test_a_file_of_the_same_size_and_time_is_not_read(home: Home, tmp_path: Path) -> None:
    files = {**archive(), "aaa/wpaper/1.rdf": paper(1, "On Rugs"), "aaa/wpaper/2.rdf": paper(2)}
    source = aged(tree(tmp_path / "RePEc", files))
    assert counts(ingested(home, source)) == (4, 0, 0, 0, 0)
    (source / "aaa/wpaper/1.rdf").write_bytes(paper(1, "On Rags"))
    again = ingested(home, aged(source))
    assert (again["files"], again["templates"], counts(again)) == (4, 4, (0, 0, 0, 0, 4))
    assert again["known_files"] == 4
    read = ingested(home, source, "--again")
    assert (read["known_files"], counts(read)) == (0, (0, 0, 1, 0, 3))
    (source / "aaa/wpaper/1.rdf").write_bytes(paper(1, "On Rugs"))
    aged(source, OLD + 1)
    assert counts(ingested(home, source)) == (0, 0, 1, 0, 3)
    (source / "aaa/wpaper/2.rdf").unlink()
    assert counts(ingested(home, source)) == (0, 0, 0, 1, 3)


@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
def test_a_damaged_cache_is_made_anew(home: Home, tmp_path: Path, damage: str) -> None:
    source = aged(tree(tmp_path / "RePEc", {**archive(), "aaa/wpaper/1.rdf": paper(1)}))
    ingested(home, source)
    (folder,) = (home.folder / "store" / ".tmp").glob(f"{KNOWN_PREFIX}*")
    names = [path.name for path in folder.iterdir() if path.stat().st_size]
    assert len(names) == 4
    for number, name in enumerate(names):
        path = folder / name
        data = path.read_bytes()
        if damage == "remove":
            path.unlink()
        elif damage == "cut":
            path.write_bytes(data[: len(data) // 2])
        else:
            path.write_bytes(data[:40] + bytes([data[40] ^ 1]) + data[41:])
        (source / "aaa/wpaper/1.rdf").write_bytes(paper(1, f"On Rugs {number}"))
        again = ingested(home, aged(source, OLD + number + 1))
        assert (again["known_files"], counts(again)) == (0, (0, 0, 1, 0, 2)), name
    assert ingested(home, source)["known_files"] == 3


def test_a_known_file_is_read_where_its_template_counts_again(home: Home, tmp_path: Path) -> None:
    files = {
        **archive(),
        "aaa/wpaper/1.rdf": paper(1, "In its folder"),
        "aaa/abooks/1.rdf": paper(1, "Elsewhere"),
    }
    source = aged(tree(tmp_path / "RePEc", files))
    ingested(home, source)
    (source / "aaa/wpaper/1.rdf").unlink()
    account = ingested(home, source)
    assert counts(account) == (0, 0, 1, 0, 2)
    assert (account["files"], account["known_files"]) == (3, 2)
    document = documents(home)["RePEc:aaa:wpaper:1"]["document"]
    assert document["fields"]["title"] == ["Elsewhere"]
    assert document["series_name"] == "Working Papers"
    assert home("verify").code == 0


def test_another_source_may_have_changed_the_store_meanwhile(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {**archive(), "aaa/wpaper/1.rdf": paper(1, "Old")}
    source = aged(tree(tmp_path / "RePEc", files))
    ingested(home, source)
    files["aaa/wpaper/1.rdf"] = paper(1, "New")
    assert counts(ingested(home, tree(tmp_path / "other" / "RePEc", files))) == (0, 0, 1, 0, 2)
    assert counts(ingested(home, source)) == (0, 0, 1, 0, 2)
    assert documents(home)["RePEc:aaa:wpaper:1"]["document"]["fields"]["title"] == ["Old"]
    # A disk may have no hard links; and a file that was just written is read again, since a
    # change within the same second would have given it the same time.
    link = os.link

    def refuse(path: Any, target: Any, **more: Any) -> None:
        if KNOWN_PREFIX in str(target):
            raise PermissionError(errno.EPERM, "Operation not permitted")
        link(path, target, **more)

    monkeypatch.setattr(os, "link", refuse)
    again = ingested(home, source)
    assert (again["known_files"], counts(again)) == (3, (0, 0, 0, 0, 3))
    path = source / "aaa/wpaper/1.rdf"
    for title, known in (("New", 2), ("Old", 2)):
        path.write_bytes(paper(1, title))
        seconds = int(time.time()) + 60
        os.utime(path, (seconds, seconds))
        again = ingested(home, source)
        assert (again["known_files"], counts(again)) == (known, (0, 0, 1, 0, 2))
