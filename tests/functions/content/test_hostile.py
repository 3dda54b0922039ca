"""What an archive holds may be hostile: nothing of it does harm by how it is answered."""

import json
import re
from email.message import Message
from http.client import HTTPConnection
from itertools import product
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.content import header_fields
from tests.functions.content.fakes import ID, Asker, Made, listening

SCRIPT = b"<script>alert(document.domain)</script>"
LINE = re.compile(r"[\x20-\x7e]*")


def answered(made: Made) -> dict[str, Any]:
    return Asker(made).raw()


def check(answer: dict[str, Any]) -> None:
    """Hold what is true of every answer: no header breaks a line, a browser is kept from harm."""
    told = answer["headers"]
    for name, value in told.items():
        assert header_fields._NAME.fullmatch(name), name
        assert LINE.fullmatch(value), (name, value)
    assert sum(len(n) + len(v) + 4 for n, v in told.items()) < 16_000
    assert len(told) < 90
    assert "sandbox" in told["Content-Security-Policy"].split("; ")
    assert "default-src 'none'" in told["Content-Security-Policy"]
    assert "allow-" not in told["Content-Security-Policy"]
    assert told["X-Content-Type-Options"] == "nosniff"
    assert told["Referrer-Policy"] == "no-referrer"
    assert told["Cross-Origin-Resource-Policy"] == "same-origin"
    json.dumps(told)


@pytest.mark.parametrize(
    "media_type",
    [
        *("text/html/x", "application/xhtml+xml", "image/svg+xml"),
        *("text/xml", "application/xml", "application/pdf", "application/javascript", "text/css"),
        *("application/x-shockwave-flash", "text/html+x", "message/rfc822", "multipart/related"),
        *("multipart/byteranges; boundary=x", "multipart/x-mixed-replace", "text/event-stream"),
        *("", " ", "html", "text", "text/", "/plain", "text/plain/x", "text/pl ain", "*/*;q=1"),
        *("text/plain\r\nX-Evil: 1", "text/plain, text/html", "text/html\0", "tèxt/plain"),
    ],
)
def test_what_the_sandbox_may_not_hold_is_saved_and_not_shown(media_type: str) -> None:
    answer = answered(Made(SCRIPT, media_type=media_type))
    check(answer)
    assert answer["headers"]["Content-Disposition"].startswith("attachment; filename=")
    assert not answer["headers"]["Content-Type"].startswith("multipart")
    assert answer["body"] == SCRIPT


@pytest.mark.parametrize(
    ("media_type", "told"),
    [
        ("text/plain; charset=windows-1250", "text/plain; charset=windows-1250"),
        ("text/plain; format=flowed; CHARSET='utf-8'", "text/plain; charset=utf-8"),
        ('text/plain;charset="utf-8', "text/plain; charset=utf-8"),
        ("text/plain; charset=a b\r\nSet-Cookie: c", "text/plain"),
        ("Image/PNG", "image/png"),
        ("TEXT/HTML; charset=utf-8", "text/html; charset=utf-8"),
    ],
)
def test_what_is_shown_has_its_own_type_and_is_never_sniffed(media_type: str, told: str) -> None:
    answer = answered(Made(SCRIPT, media_type=media_type))
    check(answer)
    assert answer["headers"]["Content-Type"] == told
    assert answer["headers"]["Content-Disposition"].startswith("inline; filename=")


@pytest.mark.parametrize("media_type", sorted(header_fields.INLINE))
def test_only_html_among_what_is_shown_can_hold_a_script(media_type: str) -> None:
    """The sandbox, which `check` holds, keeps it from running (see tests/pages/test_copies.py)."""
    kind, _, subtype = media_type.partition("/")
    assert kind in ("image", "audio", "video") or media_type in ("text/plain", "text/html")
    assert not re.search("svg|xml|script|pdf|flash", subtype)


@pytest.mark.parametrize(
    "value",
    [
        "1\r\nSet-Cookie: evil=1",
        "1\nX: 2",
        "1\r",
        "\n",
        "a\0b",
        "\x7f\x1b[31m",
        "caf\xe9",
        "\udce9\udcff",
        "\ud800",
        "\u2028",
        "x" * 100_000,
        "žluťoučký",
        "",
    ],
)
def test_an_archived_header_breaks_no_line(value: str) -> None:
    names = ("Set-Cookie", "Location", "X-Evil", "Content-Type", "Content-Disposition", "Link")
    answer = answered(Made(b"x", headers=tuple(zip(names, [value] * 6, strict=True))))
    check(answer)
    assert not {"Set-Cookie", "Location", "X-Evil"} & {*answer["headers"]}
    assert answer["headers"]["Link"].startswith("<http://a.cz/")


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a:b", "a\r\nb", "a\0", "é", "a" * 200, "(x)", "x\n"]
)
def test_a_name_that_is_none_is_left_out_and_counted(name: str) -> None:
    answer = answered(Made(b"x", headers=((name, "1"), ("Server", "s"))))
    check(answer)
    assert answer["headers"]["X-Archive-Omitted"] == "1"
    assert answer["headers"]["X-Archive-Orig-Server"] == "s"


def test_ten_thousand_headers_are_not_all_told() -> None:
    many = tuple((f"X-{n}", "v" * (n % 40)) for n in range(10_000))
    answer = answered(Made(b"x", headers=many))
    check(answer)
    told = [n for n in answer["headers"] if n.startswith("X-Archive-Orig-")]
    assert len(told) == header_fields.MOST
    assert answer["headers"]["X-Archive-Omitted"] == str(10_000 - header_fields.MOST)
    one = answered(Made(b"x", headers=(("Set-Cookie", "a=1"),) * 10_000))
    check(one)
    assert len(one["headers"]["X-Archive-Orig-Set-Cookie"]) <= header_fields.ALL


def test_no_archived_header_takes_the_place_of_one_of_ours() -> None:
    ours = answered(Made(b"x"))["headers"]
    evil = tuple((name, "evil") for name in ours)
    answer = answered(Made(b"x", headers=evil))
    check(answer)
    assert {name: answer["headers"][name] for name in ours} == ours
    told = {name.removeprefix("X-Archive-Orig-") for name in answer["headers"]}
    assert told - {"Etag"} == {*ours}


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://a.cz/dir/page.html?x=1", "page.html"),
        ("http://a.cz/", "content"),
        ("http://a.cz", "content"),
        ("", "content"),
        ("http://[broken", "[broken"),
        ("a/b/c.csv", "c.csv"),
        ("http://a.cz/..%2f..%2fetc%2fpasswd", "_.._etc_passwd"),
        ("http://a.cz/..", "content"),
        ("http://a.cz/.htaccess", "htaccess"),
        ("http://a.cz/a%0d%0ab%00c%22.exe", "a__b_c_.exe"),
        ("http://a.cz/CON:x|y", "CON_x_y"),
        ("http://a.cz/gpj.%E2%80%AEexe.txt", "gpj._exe.txt"),
        ("http://a.cz/a%5Cb", "a_b"),
        ("http://a.cz/" + "x" * 5000 + ".tar", "x" * 116 + ".tar"),
        ("http://a.cz/%C5%BElu%C5%A5.txt", "žluť.txt"),
        ("http://a.cz/%FF.txt", "\ufffd.txt"),
    ],
)
def test_a_file_is_called_by_what_is_a_name_everywhere(url: str, name: str) -> None:
    assert header_fields.file_name(url) == name
    answer = answered(Made(b"x", url=url or "x:"))
    check(answer)


@given(st.text(max_size=300), st.text(max_size=200))
def test_no_url_and_no_type_breaks_a_header(url: str, media_type: str) -> None:
    found = header_fields.media_type(media_type)
    name = header_fields.file_name(url)
    told = header_fields.disposition(found, name)
    assert LINE.fullmatch(found)
    assert LINE.fullmatch(told)
    assert name
    assert not {*'/\\"\r\n\0:'} & {*name}
    assert not name.startswith(".")
    message = Message()
    message["Content-Disposition"] = told
    assert message.get_content_disposition() in ("inline", "attachment")
    _, extended, coded = told.partition("; filename*=UTF-8''")
    assert name == unquote(coded) if extended else message.get_filename() == name
    assert LINE.fullmatch(header_fields.uri(url))


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=60)), max_size=20))
def test_whatever_was_archived_is_told_in_ascii(archived: list[tuple[str, str]]) -> None:
    found = header_fields.rename_headers(archived)
    assert all(LINE.fullmatch(text) for item in found.items() for text in item)
    assert all(text == text.strip() for text in found.values())
    told = sum(name.startswith(header_fields.ARCHIVED) for name in found)
    assert told <= len(archived)


def test_an_empty_value_joins_nothing() -> None:
    archived = [("Vary", "Accept"), ("vary", ""), ("P3P", ""), ("p3p", "CP"), ("X", "")]
    kept = {"X-Archive-Orig-Vary": "Accept", "X-Archive-Orig-P3p": "CP", "X-Archive-Orig-X": ""}
    assert header_fields.rename_headers(archived) == kept


def test_nothing_that_is_asked_comes_back_as_a_page() -> None:
    asker = Asker(Made(SCRIPT))
    evil = "<script>alert(1)</script>"
    for path, query in product((f"/content/{evil}", "/content"), (f"id={evil}", f"{evil}=1", "")):
        answer = asker.raw(path, query)
        check(answer)
        assert answer["headers"]["Content-Type"] == "text/plain; charset=utf-8"


def test_over_a_real_connection_the_head_is_one() -> None:
    evil = (("X-A", "1\r\nSet-Cookie: evil=1\r\n\r\n<script>"), ("X-B\r\nC: d", "2"))
    asker = Asker(Made(SCRIPT, media_type="text/html\r\nX-Evil: 1", headers=evil))
    with listening(asker.application) as address:
        connection = HTTPConnection(*address, timeout=20)
        connection.request("GET", f"/content/{ID}")
        response = connection.getresponse()
        assert response.read() == SCRIPT
        connection.close()
    assert response.status == 200
    assert response.headers["Set-Cookie"] is None
    assert response.headers["X-Evil"] is None
    assert response.headers["X-Archive-Orig-X-A"] == "1 Set-Cookie: evil=1 <script>"
    assert response.headers["Content-Type"] == "application/octet-stream"


def test_the_application_of_lambda_gives_bytes_as_they_are() -> None:
    payload = bytes(range(256))
    reply = Asker(Made(payload), largest=6_000_000).raw()
    assert reply["body"] == payload
