"""The demo's RePEc archive and dataset are what they say, and are served over real HTTP."""

import hashlib
import json
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from builder.commands.demo import samples
from builder.sources.redif.form.template import read_templates


def templates(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.rglob("*.rdf")):
        with path.open("rb") as file:
            for template in read_templates(file, path.name):
                assert template.valid, template
                assert not template.diagnostics
                assert template.handle is not None
                found[template.handle] = template.text
    return found


def test_it_has_two_series_and_what_changes_is_one_abstract_and_one_template(
    tmp_path: Path,
) -> None:
    samples.write_papers(tmp_path, "http://a.org")
    before = templates(tmp_path)
    assert len(before) == 11
    assert sum("File-URL: http://a.org/0" in text for text in before.values()) == 3
    samples.revise_papers(tmp_path, "http://a.org")
    after = templates(tmp_path)
    assert set(before) - set(after) == {samples.REMOVED_PAPER}
    assert {handle for handle in after if after[handle] != before[handle]} == {
        samples.CHANGED_PAPER
    }


def test_full_texts_are_pdfs_that_say_what_they_are_of() -> None:
    texts = [path.read_bytes() for path in sorted((samples.FILES / "web").glob("*.pdf"))]
    assert [text[:5] for text in texts] == [b"%PDF-"] * 3
    assert b"(Honey Prices after a Late Frost." in texts[1]


def test_each_file_of_the_dataset_is_as_the_record_says() -> None:
    api = samples.FILES / "web" / "api" / "records"
    files = json.loads((api / "hives-2024.json").read_text("utf-8"))["files"]
    assert files["count"] == len(files["entries"]) == 3
    for entry in files["entries"].values():
        path = entry["links"]["content"].removeprefix("@BASE@/")
        data = (samples.FILES / "web" / path).read_bytes()
        assert entry["size"] == len(data)
        assert entry["checksum"] == f"md5:{hashlib.md5(data).hexdigest()}"


def test_the_web_server_serves_changes_and_forgets(tmp_path: Path) -> None:
    with samples.serve_web(tmp_path) as base:
        samples.write_web(tmp_path, base)
        with urlopen(
            f"{base}{samples.DATASET_RECORD.replace('/records', '/api/records')}"
        ) as answer:
            assert json.load(answer)["links"]["self_html"] == f"{base}{samples.DATASET_RECORD}"
        with urlopen(f"{base}/02.pdf") as answer:
            before = answer.read()
            assert answer.headers["Content-Type"] == "application/pdf"
        samples.revise_web(tmp_path, base)
        with urlopen(f"{base}/02.pdf") as answer:
            assert answer.read() != before
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"{base}/03.pdf")
