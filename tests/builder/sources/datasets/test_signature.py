"""What is published of where files were shows nobody the way in."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.http.secrets import DOCUMENT_NAMES, VIEW_NAMES, clean_text, strip_secrets
from tests.builder.sources.datasets.command import Command
from tests.builder.sources.datasets.server import html, redirect, served
from tests.secret_urls import SECRET as HIDDEN
from tests.secret_urls import WAYS

STORE = "https://hives.s3.example.com/11/"
SECRET = "5ecret5ecret"
PRESIGNED = (
    f"?response-content-disposition=attachment&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=2026"
    f"&X-Amz-Credential={SECRET}%2Fs3&X-Amz-Signature={SECRET}&X-Amz-Security-Token={SECRET}"
)


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("", ""),
        ("?v=1&doc", "?v=1&doc"),
        ("?&&", "?&&"),
        (PRESIGNED, "?response-content-disposition=attachment"),
        ("?X-Goog-Signature=0a&X-Goog-Credential=b&X-Goog-Date=c&alt=media", "?alt=media"),
        ("?GoogleAccessId=a&Expires=1&Signature=b%2Bc", ""),
        ("?AWSAccessKeyId=AKIA&Expires=1&Signature=b&versionId=7", "?versionId=7"),
        ("?sv=2023-11-03&st=1&se=2&sr=b&sp=r&sig=x%3D&comp=list", "?comp=list"),
        ("?sp=2&se=Malus&st=open", "?sp=2&se=Malus&st=open"),
        ("?Expires=1&Policy=x&Signature=y&Key-Pair-Id=z&name=a%20b+c", "?name=a%20b+c"),
        ("?until=2026&user=bee&method=GET&token=abc&format=original", "?format=original"),
        ("?until=2026&user=bee", "?until=2026&user=bee"),
        ("?%58-amz-signature=a&x%2DAmz%2DDate=b&download=1", "?download=1"),
        ("?access_token=a&temp_url_sig=b&temp_url_expires=3&JWT=c&name=d", "?name=d"),
        ("?token", ""),
        ("?name=token&size=2", "?name=token&size=2"),
        ("?sig=a#sig=b", ""),
    ],
)
def test_signatures_and_tokens_are_taken_off_and_nothing_else(query: str, left: str) -> None:
    assert strip_secrets(STORE + "a" + query) == STORE + "a" + left


@pytest.mark.parametrize("name", sorted({*DOCUMENT_NAMES, *VIEW_NAMES}))
def test_a_secret_among_harmless_names_goes_alone(name: str) -> None:
    url = f"{STORE}a?{name}=A%20b&{name.upper()}=2"
    assert strip_secrets(url) == url
    assert strip_secrets(f"{url}&X-Amz-Signature={SECRET}") == url


@pytest.mark.parametrize("name", ["key", "private_token", "code", "sessionid", "k", "x_y"])
def test_a_value_of_an_unknown_name_is_replaced_and_documents_stay_apart(name: str) -> None:
    one, other = (strip_secrets(f"{STORE}a?id=7&{name}={SECRET}{n}") for n in (1, 2))
    assert one.startswith(f"{STORE}a?id=7&{name}=~")
    assert one != other
    assert SECRET not in one
    assert strip_secrets(one) == one


@pytest.mark.parametrize(
    ("url", "left"),
    [
        (f"https://user:{SECRET}@x.org/a@b", "https://x.org/a@b"),
        (f"https://{SECRET}@x.org", "https://x.org"),
        (f"s3://{SECRET}:a@x/a", "s3://x/a"),
        (f"https://x.org/a;jsessionid={SECRET}?id=1", "https://x.org/a?id=1"),
        (f"https://x.org/a#access_token={SECRET}", "https://x.org/a"),
        (f"https://x.org/a;jsessionid={SECRET}/b;2-Z?pin=1", "https://x.org/a/b;2-Z"),
        (f"https://x.org/?q=O'{{x}}&token={SECRET}", "https://x.org/?q=O'{x}"),
        (f"https://x.org/?next=%2Fa%3Fv%3D1%26jwt%3D{SECRET}", "https://x.org/?next=%2Fa%3Fv%3D1"),
        ("https://x.org/#/view/7", "https://x.org/#/view/7"),
        ("https://x.org/?237175971", "https://x.org/?237175971"),
        (f"/a?token={SECRET}", "/a"),
        (
            f"https://x.org/?url=https%3A%2F%2Fu%3A{SECRET}%40y.org%2F",
            "https://x.org/?url=https%3A%2F%2Fy.org%2F",
        ),
    ],
)
def test_what_else_of_a_url_may_be_a_secret(url: str, left: str) -> None:
    assert strip_secrets(url) == left
    assert clean_text(f"{url}: no, ({url}).") == f"{left}: no, ({left})." or url[0] == "/"


def objects(command: Command) -> Iterator[bytes]:
    """Give what is kept of datasets, plain."""
    store = command.store
    for key in (*store.keys("filesets/"), *store.keys("warcs/")):
        data = store.read(key)
        yield gzip.decompress(data) if key.endswith(".gz") else data


@pytest.mark.parametrize("backend", ["s3", "web"])
def test_secrets_of_pages_and_their_files_are_written_nowhere(
    command: Command, backend: str, tmp_path: Path
) -> None:
    """Each way of a secret stands in the address of a page, and in that of its file."""
    command.configure(fileset__strategy=f'"{backend}"')
    urls = [f"https://data.example.org/{number}{way}" for number, way in enumerate(WAYS)]
    for number, (url, way) in enumerate(zip(urls, WAYS, strict=True)):
        file = f"https://data.example.org/f/{number}.csv"
        listed = {"@type": "DataDownload", "contentUrl": file}
        document = {"@type": "Dataset", "name": "Hives of a year", "distribution": [listed]}
        page = f'<script type="application/ld+json">{json.dumps(document)}</script>'
        command.server.add(url, html(page, Set_Cookie=f"session={HIDDEN}"))
        command.server.add(file, redirect(f"{STORE}{number}.csv{way}"))
        command.server.add(f"{STORE}{number}.csv{way}", served(b"%d" % number, "text/csv"))
    lost = f"https://data.example.org/lost{WAYS[0]}"
    results = command.results(*urls, lost)
    assert sum(row["status"] == "success-file" for row in results) == len(urls)
    shown = [json.dumps(results), *command("fileset", *urls, lost), *command("publish")]
    tables = ("files", "filesets", "ingest_fileset_platform", "records")
    shown += [command("query", "--json", f"SELECT * FROM {table}")[0] for table in tables]
    assert "Hives of a year" in shown[-1]
    shown += command("export", "rocrate", str(tmp_path / "crates"))
    for path in tmp_path.rglob("*"):
        shown.append(str(path))
        if path.is_file() and "crates" in path.parts:
            shown.append(path.read_text("latin-1"))
    assert [text for text in shown if HIDDEN in text] == []
    assert [data for data in objects(command) if HIDDEN.encode() in data] == []
