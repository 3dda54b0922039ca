"""Hugging Face: datasets at a commit, files in pages, and those that need a token."""

from typing import Any

import pytest

from builder.sources.datasets.item import Related
from builder.sources.datasets.platforms.hubs.huggingface import HuggingFace
from builder.sources.datasets.protocols import ApiAnswer
from tests.builder.sources.datasets.pages import Pages, Site, cases, real
from tests.builder.sources.datasets.samples import SHA256

COMMIT = "0123456789abcdef0123456789abcdef01234567"
URL = "https://huggingface.co/datasets/bees/honey"
API = "https://huggingface.co/api/datasets/bees/honey"
TREE = f"{API}/tree/{COMMIT}?recursive=true"


def about(**more: Any) -> dict[str, Any]:
    return {
        "id": "bees/honey",
        "author": "bees",
        "sha": COMMIT,
        "createdAt": "2024-03-04T10:00:00.000Z",
        "description": "What honey cost.",
        "disabled": False,
        "gated": False,
        "private": False,
        "cardData": {"pretty_name": "Honey", "license": "cc-by-4.0", "language": ["cs", "en"]},
        "tags": ["honey", "license:cc-by-4.0", "doi:10.57967/hf/4711", "arxiv:2401.01234"],
        **more,
    }


def entry(path: str, **more: Any) -> dict[str, Any]:
    return {"type": "file", "path": path, "size": 7, "oid": "ab" * 20, **more}


def large(path: str, size: int = 4096, sha256: str = SHA256) -> dict[str, Any]:
    return entry(path, size=131, lfs={"oid": sha256, "size": size, "pointerSize": 131})


def dataset(**more: Any) -> dict[str, Any]:
    tree = [
        {"type": "directory", "path": "data", "size": 0, "oid": "x"},
        entry("README.md"),
        large("data/a b.parquet"),
    ]
    return {API: about(**more), TREE: tree}


SITE = Site(HuggingFace(), URL, whole=dataset())


def test_a_dataset_is_taken_at_its_newest_commit() -> None:
    api = Pages(SITE.whole)
    found = SITE.ask(api)
    assert (found.platform_id, found.version) == ("bees/honey", COMMIT)
    assert [(f.path, f.size, f.sha256, f.platform_url) for f in found.files] == [
        ("README.md", 7, None, f"{URL}/resolve/{COMMIT}/README.md"),
        ("data/a b.parquet", 4096, SHA256, f"{URL}/resolve/{COMMIT}/data/a%20b.parquet"),
    ]
    assert found.files[0].extra == {"git_oid": "ab" * 20}
    assert api.asked == [API, TREE]


def test_git_s_digest_of_a_pointer_is_none_of_its_file() -> None:
    """Without rights, the digest of a large file is masked; git's is that of its pointer."""
    (file,) = SITE.item(dataset() | {TREE: [large("a.bin", sha256="*" * 64)]}).files
    assert (file.size, file.sha256, file.extra) == (4096, None, {})


def test_a_dataset_is_described_by_its_card() -> None:
    said = SITE.item().description
    assert (said.title, said.doi, said.published) == ("Honey", "10.57967/hf/4711", "2024-03-04")
    assert [one.spdx for one in said.licences] == ["CC-BY-4.0"]
    assert (said.subjects, said.language) == (("honey",), "cs")
    assert said.related == (Related("arXiv:2401.01234", "arXiv", "References"),)


@pytest.mark.parametrize(
    ("url", "id_", "revision"),
    [
        (f"{URL}/tree/v1.0/data", "bees/honey", "v1.0"),
        (f"{URL}/tree/refs%2Fpr%2F1", "bees/honey", "refs%2Fpr%2F1"),
        (f"{URL}/commit/{COMMIT}", "bees/honey", COMMIT),
        ("https://hf.co/datasets/honey/tree/main", "honey", "main"),
    ],
)
def test_a_revision_may_be_a_tag_a_branch_or_a_commit(url: str, id_: str, revision: str) -> None:
    api = f"https://huggingface.co/api/datasets/{id_}"
    documents = {
        f"{api}/revision/{revision}": about(id=id_),
        f"{api}/tree/{COMMIT}?recursive=true": [entry("a.csv")],
    }
    found = SITE.item(documents, url)
    assert (found.platform_id, found.version) == (id_, COMMIT)
    assert found.web_base_url == f"https://huggingface.co/datasets/{id_}/tree/{COMMIT}"


def test_files_in_pages_are_gathered() -> None:
    pages = dict(dataset())
    following = f"{TREE}&cursor=2"
    pages[TREE] = ApiAnswer(
        url=TREE,
        status=200,
        body=b'[{"type": "file", "path": "a", "size": 1}]',
        headers={"link": f'<{following}>; rel="next"'},
    )
    pages[following] = [entry("b")]
    assert [f.path for f in SITE.item(pages).files] == ["a", "b"]
    assert SITE.refused({**pages, following: 404})[0] == "incomplete-manifest"
    assert SITE.refused({**pages, following: {}})[0] == "platform-bad-response"


@pytest.mark.parametrize("gated", ["auto", "manual", True])
def test_files_behind_terms_need_a_token(gated: Any) -> None:
    found = SITE.item(dataset(gated=gated))
    assert (found.platform_status, found.files, len(found.withheld)) == ("needs-token", (), 2)
    api = Pages(dataset(gated=gated), frozenset(("huggingface.co",)))
    assert SITE.ask(api).platform_status == "success"


CLOSED = cases(
    "given",
    [(row,) for row in [{"private": True}, {"disabled": True}]],
    status="platform-restricted",
    make=lambda given: {API: about(**given)},
)


REFUSED = cases(
    "url code",
    [
        (f"{URL}/blob/main/a.csv", "file-level"),
        (f"{URL}/resolve/main/a.csv", "file-level"),
        ("https://huggingface.co/bees/model", "no-dataset"),
        ("https://huggingface.co/datasets", "no-dataset"),
        (f"{URL}/tree/v9", "wrong-version"),
        (f"{URL}/commit/{'f' * 40}", "wrong-version"),
    ],
    status="platform-scope",
    documents=dataset() | {f"{API}/revision/{'f' * 40}": about()},
)


REFUSED += cases("documents status", [(dataset(sha=None), "platform-bad-response")])


def test_real_answers_are_read() -> None:
    document = real("huggingface/dataset_info_SROIE.json")
    root = f"https://huggingface.co/api/datasets/{document['id']}"
    tree = real("huggingface/tree_main_example.json")
    documents = {root: document, f"{root}/tree/{document['sha']}?recursive=true": tree}
    found = SITE.item(documents, f"https://huggingface.co/datasets/{document['id']}")
    assert [(f.path, f.sha256 is not None) for f in found.files] == [
        (".gitattributes", False),
        ("ggml-base.bin", True),
    ]
