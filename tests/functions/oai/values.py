"""Values of arguments that are wrong, hostile or odd, for the space of requests."""

from tests.functions.oai.protocol import FORM
from tests.functions.oai.world import DATESTAMPS


def _words(text: str, *more: str) -> list[str]:
    return [*text.split(), *more]


ALIEN_VERBS = [
    *b"identify IDENTIFY Nope ListRecord ListRecordss getRecord List Verb verb * %49d".split(),
    b"",
    b" ",
    b"Identify ",
    b" Identify",
    b"Identify\n",
    b"Identify\x00",
    b"\xef\xbb\xbfIdentify",
    "Identif\u0443".encode(),
    b"Identify,ListSets",
    b"<Identify/>",
    b"\xff",
    b"Identify\xed\xa0\x80",
    b"A" * 3000,
]
ALIEN_NAMES = [
    b"foo",
    b"",
    b"Verb",
    b"verb ",
    b"metadataprefix",
    b"metadataPrefix ",
    b"resumptiontoken",
    b"From",
    b"url",
    b"verb[]",
    b"<a>",
    b'"onclick=',
    b"xmlns",
    b"xsi:type",
    b"\x00",
    b"\xff",
    "ključ".encode(),
    b"x" * 500,
    b"&",
    b"=",
]
HOSTILE = [
    b"<script>alert(1)</script>",
    b'"><error code="x"/>',
    b"' or ''='",
    b"]]>",
    b"<!--",
    b"&amp;",
    b"&#0;",
    b"&x;",
    b"{{ 7*7 }}",
    b"{% include 'a' %}",
    b"\x00items\x00",
    b"\x00",
    b"\x01",
    b"\x1b[31m",
    b"\x7f",
    b"\t",
    b"\n",
    b"\r\n",
    b" ",
    b"\xc2\x80",
    b"\xc2\xa0",
    b"\xe2\x80\xa8",
    b"\xe2\x80\xae",
    b"\xef\xbf\xbd",
    b"\xef\xbf\xbe",
    b"\xef\xbf\xbf",
    b"\xef\xb7\x90",
    b"\xf0\x9f\x98\x80",
    b"\xf4\x8f\xbf\xbf",
    b"\xf4\x90\x80\x80",
    b"\xed\xa0\x80",
    b"\xed\xb0\x80\xed\xa0\x80",
    b"\xc0\xaf",
    b"\xe0\x80\xaf",
    b"\xc0\x80",
    b"\xff\xfe",
    b"\x80",
    b"\xc3",
    b"%",
    b"%4",
    b"%zz",
    b"%2541",
    b"+",
    b";",
    b"../../etc/passwd",
    b"' UNION SELECT 1--",
    b"$(id)",
    b"\xcc\x81",
    b"\xd9\xa1",
    b"a" * 9000,
    b"'" * 2000,
]
FRAGMENTS = [
    "%",
    "%4",
    "%zz",
    "%%",
    "%u0041",
    "+",
    ";",
    "&",
    "&&",
    "=",
    "==",
    "&=",
    "?",
    "#",
    "%00",
    "%0A",
    "%20",
    "%26",
    "%3D",
    "%2B",
    "%25",
    "%ED%A0%80",
    "%C0%AF",
    "%EF%BF%BE",
    "%EF%BF%BD",
    "%ff",
    "%C3%A9",
    "%c3",
    "é",
    "\ufffe",
    "\ud800",
    "\U0001f600",
    ";verb=Identify",
    "&verb=Identify",
    "&from=2026-03-01",
    "&set",
    "<a>",
    '"',
    "'",
    "\x00",
    "\t",
]
IDENTIFIERS = [
    *(
        b'oai:example.org:none oai:example.org:0 oai:example.org:011 OAI:example.org:01 invalid"id '
        b"01 oai:other.org:01 oai:example.org:%2541b oai:example.org:Ab http://example.org/a "
        b"http://example.org/a?b=c&d=%20 http://user@example.org/ ftp://user:word@example.org:21/x "
        b"http://a.org:99999999/ http://[::1]/ http://a%41.org/ http:// mailto:a@b.cz u:x:1 x: "
        b":x a%zz a% a:% a:b#c#d a/b ?x # //a //a@b/c a:[b] a:b|c a:b^c a:{b} a:<b> a:b\\c a:`b`"
    ).split(),
    b"a:b c",
    "oai:příklad:1".encode(),
    b"a:\xff",
    b"urn:" + b"x" * 5000,
]
ALIEN_PREFIXES = [
    *b"marc ghost OAI_DC oai_dc2 oai-dc oai_d * ( oai:dc oai/dc oai_dc;simple a,oai_dc".split(),
    b"oai dc",
    b"oai_dc ",
    b"\xc3\xa9",
    b"",
    b"\x00",
    b"x" * 3000,
]
ALIEN_SETS = [
    *(
        b"nope mim mime:tex mime:text:html:x mime- mime-y MIME mime:* : :mime mime: mime::text a/b "
        b"mime;text domain.cz collection:(it's collection:(it's)~*!21:x <set> a&b a%41 ! !3A ~"
    ).split(),
    b"mime text",
    b"mime:text ",
    b"\xc3\xa9",
    b"\xef\xbf\xbe",
    b"",
    b"s:" * 999 + b"s",
]


DAYS = [*(d[:10] for d in DATESTAMPS), "2026-03-02", "2026-02-26", "2024-02-29", "2000-02-29"]
TIMES = ["T00:00:00Z", "T23:59:59Z", "T12:00:00Z", "T10:30:00Z", "T10:29:59Z", "T10:30:01Z"]
ODD_DAYS = _words(
    "2026-02-30 2026-02-29 2023-02-29 1900-02-29 2026-13-01 2026-00-01 2026-01-00 2026-04-31 "
    "2026-01-32 0000-01-01 0001-01-01 9999-12-31 10000-01-01 -2026-01-01 +2026-01-01 26-03-01 "
    "2026-3-1 20260301 2026/03/01 2026-03 2026 2026-060 2026-W09-7 01-03-2026 2026-03-01- today "
    "2026-03-0１ ２026-03-01 2026‐03‐01 2026-03-01+00:00 2026-03-01Z x",
    " 2026-03-01",
    "2026-03-01 ",
    "2026-03-01\n",
    "2026-03-01\x00",
    "Mar 1 2026",
)
ODD_TIMES = _words(
    "T24:00:00Z T25:00:00Z T23:60:00Z T23:59:60Z T23:59:61Z T10:30:00z t10:30:00Z T10:30:00 "
    "T10:30:00.0Z T10:30:00,5Z T10:30:00.000Z T10:30Z T10Z TZ T T10:30:00+00:00 T10:30:00-01:00 "
    "T10:30:00+01 T1:30:00Z T103000Z T10:30:0Z T10:30:00ZZ T10:30:00.Z _10:30:00Z T10:30:00Z; "
    "T-1:00:00Z T10:30:٠0Z",
    " 10:30:00Z",
    "T10:30:00 Z",
    "T10:30:00Z ",
    "T 10:30:00Z",
    "T10:30:00Z\n",
)

MEDIA = [
    FORM,
    FORM + ";charset=UTF-8",
    FORM + "; charset=iso-8859-1",
    FORM.upper() + " ; x=y",
    "",
    "text/plain",
    "multipart/form-data; boundary=x",
    "application/json",
    FORM + "x",
    "x" + FORM,
    "text/xml",
]
