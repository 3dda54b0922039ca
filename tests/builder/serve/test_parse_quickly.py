"""The fast parser of plain requests: what it takes, h11 takes and understands alike."""

import h11
from hypothesis import example, given
from hypothesis import strategies as st

from builder.serve.http_request import make_event
from builder.serve.kept_pages import parse_quickly

_TOKENS = st.text("abcXYZ-_.0189!~:;, \t\r\n\x00é", max_size=12)
_NAMES = st.sampled_from(
    [
        "Host",
        "host",
        "Accept-Encoding",
        "Connection",
        "User-Agent",
        "Content-Length",
        "Expect",
        "Transfer-Encoding",
        "If-None-Match",
        "Range",
        "X-Forwarded-Host",
        "Accept ",
        "",
        "a b",
    ]
)


@given(
    st.sampled_from(["GET", "HEAD", "POST", "get", "GET "]),
    st.tuples(
        st.sampled_from(["/oai", "/a/oai", "//oai", "/", "", "http://a.cz/oai"]),
        st.sampled_from(["?resumptionToken=x", "?verb=x&resumptionToken=", "resumptionToken="]),
        _TOKENS,
    ).map("".join),
    st.sampled_from(["HTTP/1.1", "HTTP/1.0", "HTTP/2", ""]),
    st.lists(st.tuples(_NAMES, st.one_of(st.just("gzip"), st.just("close"), _TOKENS)), max_size=4),
    st.sampled_from(["", "x", "GET / HTTP/1.1\r\n\r\n"]),
)
@example(
    "GET", "/oai?resumptionToken=x", "HTTP/1.1", [("Host", "a.cz"), ("Accept-Encoding", "gzip")], ""
)
@example("GET", "/oai?resumptionToken=x", "HTTP/1.1", [("Host", "a"), ("Connection", "close")], "")
def test_what_is_parsed_quickly_h11_parses_alike(
    method: str, target: str, version: str, headers: list[tuple[str, str]], rest: str
) -> None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    data = f"{method} {target} {version}\r\n{lines}\r\n{rest}".encode()
    found = parse_quickly(data)
    if found is None:
        return
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    request = connection.next_event()
    assert isinstance(request, h11.Request)
    assert isinstance(connection.next_event(), h11.EndOfMessage)
    assert connection.trailing_data == (b"", False)
    made = make_event(request, b"")
    path, _, query = found.target.decode().partition("?")
    assert (made["rawPath"], made["rawQueryString"]) == (path, query)
    assert made["headers"]["host"] == found.host.decode()
    assert made["headers"].get("accept-encoding", "") == found.coding.decode()
    assert made["requestContext"]["http"]["method"] == "GET"
    connection.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
    connection.send(h11.EndOfMessage())
    assert connection.our_state is h11.DONE  # it stays open


def test_the_simple_form_is_parsed_quickly() -> None:
    target, host, coding = b"/oai?resumptionToken=x", b"a.cz:80", b"gzip, br"
    line = b"GET %b HTTP/1.1\r\nHost: %b\r\nAccept-Encoding: %b\r\n\r\n" % (target, host, coding)
    found = parse_quickly(line)
    assert found is not None
    assert (found.target, found.host, found.coding) == (target, host, coding)
    for other in (line[:-1], line + b"x", line.replace(b"GET", b"POST"), line * 2, b""):
        assert parse_quickly(other) is None
