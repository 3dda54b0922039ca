"""Checks of configuration values, and of an operator's statements about the repository.

Statements are printed in XML unchanged or as addresses. So values that a schema would reject are
refused here.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any
from xml.parsers import expat

from functions.config.key import Field, Fields, list_of
from functions.snapshot import authority, instant, layout, oai_name

_OWN = frozenset(
    {"http://www.openarchives.org/OAI/2.0/", "http://www.openarchives.org/OAI/2.0/oai-identifier"}
)
"""Namespaces reserved for the descriptions that Identify generates."""

_XSI = "http://www.w3.org/2001/XMLSchema-instance"

_CHARACTER = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})"
_PATH = rf"(?:{_CHARACTER}|/)*"
_REST = rf"(?:\?(?:{_CHARACTER}|[/?])*)?(?:#(?:{_CHARACTER}|[/?])*)?"
_HOST = r"(?:[A-Za-z0-9\-._]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_MEANT_AS_URL = re.compile(r"https?://\S*")
_PROSE = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]+")

LONGEST_NOTICE = 2000
"""Maximum characters of a notice; it adds 2 MB to a page of a thousand records."""
NOTICE = f"a text of up to {LONGEST_NOTICE} characters or an http or https URL"

POLICIES = ("content", "metadata_policy", "data_policy", "submission_policy", "comment")
_ICON = ("icon", "icon_link", "icon_title", "icon_width", "icon_height")
_RENDERING = frozenset({"url", "namespace", "type"})
_ENDPOINT = re.compile(r"https?://[^/?#]*")


def like(pattern: str) -> Callable[[Any], bool]:
    """Return a test for texts that match a regular expression as a whole."""
    compiled = re.compile(pattern)
    return lambda v: isinstance(v, str) and compiled.fullmatch(v) is not None


is_url = like(rf"https?://{_HOST}(?:/{_PATH})?{_REST}")
"""Return whether a value is an http or https URL without user and fully escaped."""
is_email = like(r"[^\s@<>:]+@([^\s@.]+\.)+[^\s@.]+")
"""Return whether a value is an e-mail address."""
is_prefix = like(r"[A-Za-z0-9\-_.!~*'()]+")
"""Return whether a value is a metadata prefix."""
_is_uri = like(rf"[A-Za-z][A-Za-z0-9+.\-]*:(?:{_CHARACTER}|/)+{_REST}")
_is_media_type = like(r"[a-z]+/[a-z]+")
_is_http_or_s3 = like(rf"(?:https?://{_HOST}(?:/{_PATH})?|s3://{_PATH})")


def is_place(value: Any) -> bool:
    """Return whether `value` is a place of files: an http or https URL or s3://bucket/prefix."""
    return _is_http_or_s3(value) and (
        not value.startswith(layout.S3_SCHEME) or layout.is_address(value)
    )


def is_statement(value: Any) -> bool:
    """Return whether `value` is a text, line breaks allowed, or the URL of one."""
    return (_is_prose(value) and _MEANT_AS_URL.fullmatch(value) is None) or is_url(value)


def is_notice(value: Any) -> bool:
    """Return whether `value` is a statement brief enough for every record."""
    return is_statement(value) and len(value) <= LONGEST_NOTICE


def is_friend(value: Any) -> bool:
    """Return whether `value` is a base URL."""
    return is_url(value) and "?" not in value and "#" not in value


def is_branding(value: Any) -> bool:
    """Return whether `value` is a table of an icon, its details and style sheets, or empty."""
    if not isinstance(value, dict) or not value.keys() <= {*_ICON, "rendering"}:
        return False
    rows = value.get("rendering", [])
    return (
        ("icon" in value or not value.keys() & set(_ICON))
        and all(is_url(value[name]) for name in _ICON[:2] if name in value)
        and all(_is_prose(value[name]) for name in _ICON[2:3] if name in value)
        and all(type(value[name]) is int and value[name] > 0 for name in _ICON[3:] if name in value)
        and isinstance(rows, list)
        and all(
            isinstance(row, Mapping)
            and row.keys() == _RENDERING
            and is_url(row["url"])
            and _is_uri(row["namespace"])
            and _is_media_type(row["type"])
            for row in rows
        )
    )


def is_description(value: Any) -> bool:
    """Return whether `value` is an XML text that is a valid description."""
    return isinstance(value, str) and _is_element(value) and _has_schema(value)


def description_problem(value: Any) -> tuple[str, Any, str] | None:
    """Return the fault of a list of descriptions as Fields.problem does; None if unknown.

    A description has to name its schema (OAI-PMH 2.0, section 4.2).
    """
    for number, text in enumerate(value if isinstance(value, list) else ()):
        if isinstance(text, str) and _is_element(text) and not _has_schema(text):
            namespace = _read(text)[0]
            return (
                f"[{number}]",
                text,
                f'the address of its schema: add xmlns:xsi="{_XSI}" '
                f'xsi:schemaLocation="{namespace} https://..." to its first element',
            )
    return None


def _is_element(text: str) -> bool:
    return _read(text)[0] not in {None, "", *_OWN}


def _has_schema(text: str) -> bool:
    """Return whether the element gives an http or https URL for the schema of its namespace."""
    namespace, schemas = _read(text)
    parts = schemas.split()
    if len(parts) % 2:
        return False
    return is_url(dict(zip(parts[::2], parts[1::2], strict=True)).get(namespace or ""))


def _is_prose(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != "" and _PROSE.fullmatch(value) is not None


def _read(text: str) -> tuple[str | None, str]:
    """Return the namespace and the xsi:schemaLocation of an XML element, each "" if missing.

    The namespace is None if `text` is not a valid element. An XML or document type declaration is
    invalid, because only a whole document may have it. A namespace that is not a URI is invalid:
    some parsers refuse a whole answer for it. An element is invalid if it would inherit the
    namespace of the surrounding document.
    """
    namespaces: list[str] = []
    schemas: list[str] = []
    wrong: list[object] = []
    defaults: list[str | None] = []  # default namespaces in scope

    def declare(prefix: str | None, uri: str | None) -> None:
        if uri and not _is_uri(uri):
            wrong.append(uri)
        if prefix is None:
            defaults.append(uri)

    def end(prefix: str | None) -> None:
        if prefix is None:
            defaults.pop()

    def start(name: str, attributes: Mapping[str, str]) -> None:
        namespaces.append(name.rpartition(" ")[0])
        schemas.append(attributes.get(f"{_XSI} schemaLocation", ""))
        if not namespaces[-1] and not defaults:
            wrong.append(name)

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = start
    parser.StartNamespaceDeclHandler = declare
    parser.EndNamespaceDeclHandler = end
    parser.XmlDeclHandler = lambda *declaration: wrong.append(declaration)
    parser.StartDoctypeDeclHandler = lambda *declaration: wrong.append(declaration)
    try:
        parser.Parse(text.strip(), True)
    except (expat.ExpatError, ValueError):
        return None, ""
    return (None, "") if wrong else (namespaces[0], schemas[0])


def is_text(value: Any) -> bool:
    """Return whether the value is a text of one printable line."""
    return isinstance(value, str) and value.strip() != "" and value.isprintable()


def is_store(value: Any) -> bool:
    """Return whether the value names a store: a folder, or the URL of a bucket or a web server."""
    return is_text(value) and (
        "://" not in value or layout.is_address(value) or layout.is_web(value)
    )


def is_second(value: Any) -> bool:
    """Return whether the value is an instant of the protocol, to the second."""
    try:
        return isinstance(value, str) and instant.to_text(instant.from_text(value)) == value
    except ValueError:
        return False


def is_prose(value: Any) -> bool:
    """Return whether the value is a text of one or more lines."""
    return isinstance(value, str) and is_text(" ".join(value.split()))


def is_base_url(value: Any) -> bool:
    """Return whether the value is a server's http or https URL without user, query, fragment."""
    if not is_url(value) or "?" in value or "#" in value:
        return False
    endpoint = _ENDPOINT.match(value)
    return endpoint is not None and authority.is_endpoint(endpoint[0])


def is_namespace(value: Any) -> bool:
    """Return whether the value is a valid namespace of OAI identifiers."""
    return isinstance(value, str) and oai_name.is_namespace(value)


_RESERVED = ("domain", "mime", "collection")
"""First levels of generated sets, not allowed in rules."""

_TYPE = r"[a-z0-9!#$&^_.+\-]+"
_has_scheme = like(r"[A-Za-z][A-Za-z0-9+\-]*:.*")
_CONDITIONS = {
    "hosts": (
        like(r"(?ia)[a-z0-9_]([a-z0-9_.\-]*[a-z0-9_\-])?|[0-9a-f:.]*:[0-9a-f:.]*"),
        "host names such as idnes.cz, internationalized ones as punycode",
    ),
    "url_prefixes": (
        lambda v: _has_scheme(v) and v.isprintable(),
        "URL prefixes with the scheme, such as http://www.idnes.cz/news/",
    ),
    "types": (
        like(rf"(?ia){_TYPE}/(\*|{_TYPE})"),
        "media types such as text/html or image/*",
    ),
    "languages": (
        like(r"(?ia)[a-z]{1,8}"),
        "language codes without a region, such as cs or en",
    ),
    "collections": (
        lambda v: isinstance(v, str) and all(v.split(":")) and v.isprintable(),
        "collections as in `sheaf ingest --collection`, such as serials:novinky",
    ),
}
"""The test of each value of a condition, and the expected values."""

_SPEC = (
    "a setSpec such as topic:news, whose first level is not "
    f"{', '.join(_RESERVED[:-1])} or {_RESERVED[-1]}"
)
_ONE_OR_MORE = f"one or more of {', '.join(_CONDITIONS)}"


SET_RULES = Fields(
    {
        "set": Field(
            None,
            lambda v: (
                isinstance(v, str) and oai_name.is_set(v) and v.partition(":")[0] not in _RESERVED
            ),
            _SPEC,
        ),
        **{name: list_of(*condition, least=1) for name, condition in _CONDITIONS.items()},
    }
).rules(
    f"set and {_ONE_OR_MORE}",
    lambda rule: (
        f"a set: {_SPEC}"
        if "set" not in rule
        else f"{_ONE_OR_MORE} besides the set"
        if len(rule) == 1
        else ""
    ),
)
"""The rules of an operator's own sets: `sets.rules`."""
