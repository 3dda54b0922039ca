"""What an interrupted ingest left is read again where it was damaged."""

from pathlib import Path

import pytest

from builder.intake import intake
from functions.snapshot.errors import StoreError
from tests.e2e.conftest import make_home, warc


@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
@pytest.mark.parametrize("name", ["part-*.json", "captures-*.parquet"])
def test_a_damaged_part_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, damage: str
) -> None:
    home = make_home(tmp_path / "home")
    pages = {f"http://a.cz/{n}": f"<title>{n}</title>".encode() for n in range(9)}
    archive = warc(tmp_path / "a.warc.gz", pages)

    def fail(*given: object, **more: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(intake, "commit", fail)
        assert home("ingest", archive).code == 2
    (path,) = (home.folder / "store" / ".tmp").rglob(name)
    data = path.read_bytes()
    if damage == "remove":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    else:
        path.write_bytes(data[:200] + bytes([data[200] ^ 1]) + data[201:])
    assert home("ingest", archive).code == 0
    assert home("publish").code == 0
    titles = home("query", "--json", "SELECT url, title FROM captures").out.splitlines()
    assert len(titles) == 9
