"""What is published of where files were shows nobody the way in."""

import gzip
import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.http.url import strip_secrets
from tests.builder.filesets.command import Command
from tests.builder.filesets.deposits import content, deposit
from tests.builder.filesets.server import redirect, served

STORE = "https://hives.s3.example.com/11/"
SECRET = "5ecret5ecret"
PRESIGNED = (
    f"?response-content-disposition=attachment&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=2026"
    f"&X-Amz-Credential={SECRET}%2Fs3&X-Amz-Signature={SECRET}&X-Amz-Security-Token={SECRET}"
)
A, B = b"weight,day\n1,2\n", b"price\n3\n"


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("", ""),
        ("?a=1&b", "?a=1&b"),
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
        ("?access_token=a&temp_url_sig=b&temp_url_expires=3&JWT=c&jwtless=d", "?jwtless=d"),
        ("?token", ""),
        ("?a=token&signatures=2", "?a=token&signatures=2"),
        ("?sig=a#sig=b", "#sig=b"),
    ],
)
def test_signatures_and_tokens_are_taken_off_and_nothing_else(query: str, left: str) -> None:
    assert strip_secrets(STORE + "a" + query) == STORE + "a" + left


@given(st.lists(st.tuples(st.text("abxyz-%26._~", max_size=6), st.text(max_size=6)), max_size=5))
def test_a_secret_among_other_names_goes_alone(others: list[tuple[str, str]]) -> None:
    parts = ["=".join(one).replace("#", "").replace("&", "") for one in others]
    query = "&".join(parts)
    assert strip_secrets(f"{STORE}a?{query}") == f"{STORE}a?{query}"
    signed = "&".join([*parts, f"X-Amz-Signature={SECRET}", *parts])
    both = "&".join([*parts, *parts])
    assert strip_secrets(f"{STORE}a?{signed}") == f"{STORE}a" + (
        f"?{both}" if both or parts else ""
    )


def objects(command: Command) -> Iterator[bytes]:
    """Give what is kept of datasets, plain."""
    store = command.store
    for key in (*store.keys("filesets/"), *store.keys("warcs/")):
        data = store.read(key)
        yield gzip.decompress(data) if key.endswith(".gz") else data


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("backend", "files"),
    [("s3", {"a.csv": A, "b.csv": B}), ("web", {"a.csv": A})],
    ids=["objects", "warc"],
)
def test_a_presigned_address_is_led_to_and_told_to_nobody(
    command: Command, backend: str, files: dict[str, bytes]
) -> None:
    command.configure(fileset__strategy=f'"{backend}"')
    url = deposit(
        command.server,
        11,
        files,
        answers={path: redirect(STORE + path + PRESIGNED, 303) for path in files},
    )
    for path, body in files.items():
        command.server.add(STORE + path + PRESIGNED, served(body))
    found = command.results(url)
    command("publish")
    assert command.server.asked(STORE + "a.csv")[0].url.endswith(PRESIGNED)
    plain = f"{STORE}a.csv?response-content-disposition=attachment"
    assert found[0]["manifest"][0]["terminal_url"] == plain
    out, _ = command("query", "SELECT terminal_url FROM files ORDER BY path")
    assert out.splitlines()[1] == plain
    told = [json.dumps(found).encode(), *objects(command)]
    for table in ("files", "filesets", "ingest_fileset_platform", "records"):
        rows, _ = command("query", "--json", f"SELECT * FROM {table}")
        assert rows
        told.append(rows.encode())
    assert any(plain.encode() in some for some in told[1:])
    for some in told:
        assert SECRET.encode() not in some
        assert b"x-amz-" not in some.lower()
    assert command.server.asked(content(11, "a.csv"))
