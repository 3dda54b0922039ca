"""Secrets in URLs: the one decision what of a URL may be stored, published or shown.

What is kept is what is known to be harmless: the address, and parameters whose names say that they
name a document or how it is shown. Signatures and tokens of known names are removed. Every other
value is replaced by a digest of it, so that two documents stay apart and nobody can use it. User
and password are removed.

URLs inside web archives are not treated so: they are the archive's data.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote, unquote_plus

PREFIXES = ("x-amz-", "x-goog-", "x-oss-", "x-cos-", "q-sign-", "temp_url_")
"""Prefixes of signing parameters of Amazon, Google, Alibaba, Tencent and OpenStack."""

SECRETS = frozenset(
    """
    access_key access_token accesskeyid api_key api_token apikey auth auth_token
    authorization awsaccesskeyid client_secret credential delegation googleaccessid hmac
    id_token jsessionid jwt key-pair-id ossaccesskeyid otp pass passcode passwd password
    phpsessid pin pwd q-ak q-header-list q-key-time q-signature q-url-param-list
    refresh_token secret security-token session_token sig signature token
    """.split()  # noqa: SIM905
)
"""Names of secrets, and of parameters that are useless without a secret."""

_AZURE = frozenset(
    """
    se si sip ske skoid sks skt sktid skv sp spr sr srt ss st sv saoid scid sdd suoid
    """.split()  # noqa: SIM905
)
COMPANIONS: Mapping[str, frozenset[str]] = {
    "sig": _AZURE,
    "signature": frozenset(("expires", "policy")),
    "token": frozenset(("expires", "method", "until", "user")),
}
"""Names that belong to a signature only beside a parameter of the given name.

`sig` is of Azure, `policy` of CloudFront, `until` of Dataverse.
"""
_NAMING = frozenset(
    ("access_token", "auth", "auth_token", "delegation", "id_token", "jwt", "token")
)
"""Secrets that may be all that names a file, if nothing else in the query signs its path."""
_BESIDE = frozenset(("api_key", "api_token", "apikey", "jsessionid", "phpsessid", "session_token"))
"""Secrets of a client, which sign no path either."""
_MARK = "sheaf-file"
"""Parameter of our own, in place of such a secret: the beginning of the file's SHA-256."""
_LATER = "pending"
_MARK_DIGITS = 16

DOCUMENT_NAMES = frozenset(
    """
    abstract_id abstractid aid ark arnumber article article_id articleid author bid branch cat
    catalogid category chapter cid col collection collectionid column commit database dataset
    dataset_id datasetid datasetversionid date day db deposit_id dir doc docid document
    document_id documentid doi domain edition entity entity_id entityid eventid family fid
    file file_id fileid filename filepath files folder from fromdate guid handle hdl host id
    identifier ids index information_id isbn issn issue item item_id itemid jid journal
    journal_id journalid kind langid language_id layer layers mandantid md5 month name nid no
    node nodeid num number oai object object_id objectid oid package package_id packageid page
    pages paper paper_id paperid part path persistentid persistentidentifier pid pmcid pmid
    pub pubid publication recid record record_id recordid ref release resource resource_id
    resourceid rev revision row section seq sequence series seriesid set sha sha1 sha256 site
    spid storeid subject table tag title todate topic tree type uid until urn uuid v ver
    version versionid vol volume year
    """.split()  # noqa: SIM905
)
"""Names of parameters that say which document is asked for."""
VIEW_NAMES = frozenset(
    """
    accept action actionmode alt attachment binary charset cmd comp content-disposition
    content-type controller count cursor display disposition do download embed end export
    exporter ext extension feature fields fl flag flow fmt forcedownload format func function
    gbrecs h height hl href inline isallowed l lang language limit link list locale location
    media mediatype metadataprefix method mime mimetype mode module more next num_results
    offset op option order orderby original output outputformat p per_page persist position
    preview print printable q quality query raw redirect relevant_count request
    response-cache-control response-content-disposition response-content-encoding
    response-content-language response-content-type resumptiontoken rows rss save schema
    search service set_language setlanguage show size skip sort sortby start step sub tab task
    template term thumbnail to unzip uri url utm_campaign utm_content utm_medium utm_source
    utm_term verb view viewtype w width wt x y z zip zoom
    """.split()  # noqa: SIM905
)
"""Names of parameters that say how it is shown, sent or found."""
_HARMLESS = DOCUMENT_NAMES.union(VIEW_NAMES, (_MARK,), *COMPANIONS.values())
_SECRET_FIELDS = re.compile(r"auth|cookie|credential|key|passw|secret|session|sign|token", re.I)
"""Header fields whose values may be secrets."""
_NUMBER = re.compile(r"[0-9]{0,12}")
"""A parameter without a value that is too plain to be a secret."""
_DIGEST = re.compile(r"~[0-9a-f]{16}")
_ROUNDS = 4096
"""Rounds of the digest, so that a short secret cannot be found by trying all."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,15}://[^\s\"<>]+(?<!['`.,;:!)}\]])")
_USER = re.compile(r"(?<=://)[^/?#\s]*@")
_SESSION = re.compile(r";([^;/=]*=[^;/]*)")
"""A parameter in a path, such as a session."""


def strip_secrets(url: str, *, marked: bool = False) -> str:
    """Return a URL, absolute or not, without secrets; the rest stays as it was sent. Idempotent.

    Names are compared without regard to case, and unescaped. With `marked`, a place is left for
    `mark_file` if a token was removed that may have named the file.
    """
    plain, mark, fragment = _USER.sub("", url).partition("#")
    root, asks, query = plain.partition("?")
    root = _SESSION.sub(_clean_session, root)
    cleaned = _clean_query(query, marked=marked)
    root += f"?{cleaned}" if cleaned or (asks and not query) else ""
    if "=" in fragment:
        fragment = _clean_query(fragment, marked=False)
        mark = mark if fragment else ""
    return root + mark + fragment


def clean_text(text: str) -> str:
    """Return a text, such as a message, with the secrets removed from each URL in it."""
    return _URL.sub(lambda match: strip_secrets(match[0]), text) if "://" in text else text


def clean_document(document: Any) -> Any:
    """Return a JSON document with `clean_text` applied to its texts, but not to names and paths."""
    if isinstance(document, str):
        return clean_text(document)
    if isinstance(document, Mapping):
        return {
            name: value if name in ("path", "key") else clean_document(value)
            for name, value in document.items()
        }
    if isinstance(document, list | tuple):
        return [clean_document(value) for value in document]
    return document


def clean_fields(fields: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return header fields without cookies and credentials, and with clean URLs in the others."""
    return tuple(
        (name, strip_secrets(value) if name.lower() == "location" else clean_text(value))
        for name, value in fields
        if not _SECRET_FIELDS.search(name)
    )


def is_replaced(url: str) -> bool:
    """Return whether a value in a URL was replaced by its digest."""
    return "~" in url and _DIGEST.search(url) is not None


def name_apart(url: str) -> str:
    """Return a URL without secrets that stands for this URL alone. Idempotent.

    A redirect may lead from a page to the same page with a session: these are two documents.
    """
    cleaned = strip_secrets(url)
    if cleaned == url:
        return url
    return f"{cleaned}{'&' if '?' in cleaned else '?'}{_MARK}={_replace(url)}"


def match_kept(url: str, name: str) -> bool:
    """Return whether two URLs agree in all that may be kept of them; a digest says only "other"."""
    parts = (re.split("[?&;]", strip_secrets(each)) for each in (url, name))
    url_parts, name_parts = ([p for p in each if p and not _DIGEST.search(p)] for each in parts)
    return url_parts == name_parts


def mark_file(url: str, sha256: str) -> str:
    """Complete a URL of `strip_secrets` that is `marked`, by the digest of the file behind it.

    The mark depends on the file alone. So the same file has the same URL each time, another file
    has another, and the mark tells nothing of the secret.
    """
    return url.replace(f"{_MARK}={_LATER}", f"{_MARK}={sha256[:_MARK_DIGITS]}")


def _clean_query(query: str, *, marked: bool) -> str:
    parts = query.split("&")
    names = [unquote_plus(part.partition("=")[0]).strip().lower() for part in parts]
    secrets = {name for name in names if name in SECRETS or name.startswith(PREFIXES)}
    secrets |= {other for name in secrets for other in COMPANIONS.get(name, ())}
    left = [_clean(part, n) for part, n in zip(parts, names, strict=True) if n not in secrets]
    removed = secrets.intersection(names)
    if marked and removed & _NAMING and removed <= _NAMING | _BESIDE:
        left.append(f"{_MARK}={_LATER}")
    return "&".join(left)


def _clean_session(match: re.Match[str]) -> str:
    cleaned = _clean_query(match[1], marked=False)
    return f";{cleaned}" if cleaned else ""


def _clean(part: str, name: str) -> str:
    """Return a parameter with its value or, unless it is known to be harmless, a digest of it."""
    written, equals, value = part.partition("=")
    if not equals:
        plain = name in _HARMLESS or _NUMBER.fullmatch(written) or _DIGEST.fullmatch(written)
        return written if plain else _replace(written)
    if name not in _HARMLESS:
        return part if not value or _DIGEST.fullmatch(value) else f"{written}={_replace(value)}"
    address = unquote(value)
    if not {"?", "@", "&"}.isdisjoint(address):
        cleaned = strip_secrets(address) if "?" in address else clean_text(address)
        part = f"{written}={quote(cleaned, safe='')}" if cleaned != address else part
    return part


@lru_cache(1 << 14)
def _replace(value: str) -> str:
    data = value.encode("utf-8", "surrogatepass")
    return f"~{hashlib.pbkdf2_hmac('sha256', data, _MARK.encode(), _ROUNDS, 8).hex()}"
