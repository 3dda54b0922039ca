"""Criteria as an operator types them, and what they mean for captures of every exactness."""

import pytest

from builder.publish import selection
from builder.publish.selection import Selection
from functions.store import engine

SECOND = "2007-11-05T12:30:15Z"


@pytest.mark.parametrize(
    "text",
    ["2007", "2007-11", "2008-02-29", "2007-11-05T12:30Z", SECOND, "2007-11-05T12:30:15.25Z"],
)
def test_dates_of_the_calendar_are_taken(text: str) -> None:
    assert selection.parse_date(text) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("yesterday", "expected a date such as"),
        ("2007-11-05T12Z", "expected a date such as"),
        ("2007-11-05T12:30:15+01:00", "expected a date such as"),
        ("2013-02-30", "does not exist"),
        ("2007-02-29", "does not exist"),
        ("2014-99", "does not exist"),
        ("0000", "does not exist"),
        ("2014-01-27T99:99:99Z", "does not exist"),
        ("2014-01-26T20:06:24", "ends with Z: expected 2014-01-26T20:06:24Z"),
    ],
)
def test_what_is_no_date_says_why(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        selection.parse_date(text)


@pytest.mark.parametrize(
    ("start", "end", "is_reversed"),
    [
        ("2015", "2014", True),
        ("2014-03", "2014-02-28", True),
        ("2007-11-05T12:30:16Z", "2007-11-05T12:30:15Z", True),
        ("2007-11-05T12:31:00Z", "2007-11-05T12:30Z", True),
        ("2014", "2014", False),
        ("2014-03", "2014", False),
        ("2014", "2014-03", False),
        ("2007-11-05T12:30:15Z", "2007-11-05T12:30Z", False),
    ],
)
def test_a_range_is_reversed_if_it_is_empty(start: str, end: str, is_reversed: bool) -> None:
    assert selection.is_reversed(start, end) == is_reversed


@pytest.mark.parametrize(
    ("date", "start", "end", "is_met"),
    [
        # known as well as what is asked for
        ("2007-11-05", "2007-11-05", "2007-11-05", True),
        ("2007-11-05", "2007-11-06", None, False),
        ("2007-11-05", None, "2007-11-04", False),
        # known better: the end includes all of the day, month or year
        (SECOND, "2007-11-05T12:30Z", "2007-11-05T12:30Z", True),
        (SECOND, "2007-11-05T12:31Z", None, False),
        (SECOND, None, "2007-11-05T12:29Z", False),
        (SECOND, "2007", "2007", True),
        (SECOND, "2008", None, False),
        (SECOND, None, "2006", False),
        ("2007-11-05T12:30:15.25Z", SECOND, SECOND, True),
        ("2007-11-05T12:30:15.25Z", "2007-11-05T12:30:16Z", None, False),
        # known less well: what may lie between them does
        ("2007", "2007-03", None, True),
        ("2007", None, "2007-03", True),
        ("2007", "2007-03", "2007-04", True),
        ("2007", "2008-03", None, False),
        ("2007", None, "2006-12", False),
        ("2007-11-05T12:30Z", SECOND, SECOND, True),
        ("2007-11-05T12:30Z", "2007-11-05T12:31:00Z", None, False),
        # not known at all
        (None, "2007", None, False),
        (None, None, "2007", False),
    ],
)
def test_dates_are_compared_as_far_as_the_less_exact_one_says(
    date: str | None, start: str | None, end: str | None, is_met: bool
) -> None:
    condition, values = Selection(start=start, end=end).tombstone_condition()
    with engine.connect() as connection:
        sql = f"SELECT coalesce({condition}, false) FROM (SELECT $date::VARCHAR AS fetch_date)"
        assert connection.execute(sql, {**values, "date": date}).fetchone() == (is_met,)


BASE32 = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
HEXADECIMAL = "da39a3ee5e6b4b0d3255bfef95601890afd80709"


@pytest.mark.parametrize(
    ("text", "column"),
    [
        (BASE32, BASE32),
        (BASE32.lower(), BASE32),
        (f"sha1:{BASE32}", BASE32),
        (f"SHA-1:{BASE32.lower()}", BASE32),
        (HEXADECIMAL, BASE32),
        (HEXADECIMAL.upper(), BASE32),
        (f"sha1:{HEXADECIMAL}", BASE32),
        ("md5:D41D8CD98F00B204E9800998ECF8427E", "md5:d41d8cd98f00b204e9800998ecf8427e"),
    ],
)
def test_a_digest_is_taken_in_every_form_that_crawlers_write(text: str, column: str) -> None:
    assert selection.parse_digest(text) == column


@pytest.mark.parametrize(
    "text", ["A", BASE32[:-1], HEXADECIMAL + "0", "sha1:", f"sha0:{BASE32}", "ž" * 32, "0" * 64]
)
def test_what_is_no_digest_says_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match="32 characters in base32 or 40 hexadecimal"):
        selection.parse_digest(text)


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("http://www.", "http://www."),
        ("HTTP://WWW.Iana.ORG/Domains", "http://www.iana.org/Domains"),
        ("https://A.cz?Q=B", "https://a.cz?Q=B"),
        ("http://a.cz/žluť a", "http://a.cz/%C5%BElu%C5%A5%20a"),
        ("urn:uuid:AB", "urn:uuid:AB"),
        ("http:", "http:"),
    ],
)
def test_the_beginning_of_a_url_is_as_the_column_has_it(text: str, prefix: str) -> None:
    assert selection.parse_url_prefix(text) == prefix


@pytest.mark.parametrize("text", ["www.iana.org", "//www.iana.org", "www.iana.org:80/", "/a", "ž:"])
def test_a_url_without_a_scheme_says_how_it_begins(text: str) -> None:
    with pytest.raises(ValueError, match=f"as http://{text.lstrip('/')}$"):
        selection.parse_url_prefix(text)


@pytest.mark.parametrize(
    ("url", "is_met"),
    [
        ("http://www.iana.org/Domains", True),
        ("HTTP://www.IANA.org/Domains/x", True),
        ("http://www.iana.org/domains", False),
        ("http://www.iana.org.cz/Domains", False),
        ("https://www.iana.org/Domains", False),
        (None, False),
    ],
)
def test_scheme_and_host_are_compared_in_any_case(url: str | None, is_met: bool) -> None:
    condition, values = Selection(url_prefix="http://www.iana.org/Domains").tombstone_condition()
    with engine.connect() as connection:
        sql = f"SELECT coalesce({condition}, false) FROM (SELECT $url::VARCHAR AS url)"
        assert connection.execute(sql, {**values, "url": url}).fetchone() == (is_met,)
