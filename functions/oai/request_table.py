"""The table of verbs and arguments as data, for routers in other languages (static hosting).

Its regular expressions mean the same in Python, JavaScript, PCRE and RE2, so they look neither
ahead nor behind. They fit a whole value.
"""

from typing import Any

from functions.oai.request import VERBS

_CONTROLS = "\\x00-\\x1f\\x7f\u0080-\u009f\ufffd-\uffff"
"""Characters that no argument has; those above ASCII are literal, as each language escapes them
otherwise."""
_ESCAPED = "%[0-9A-Fa-f]{2}"
_TEXT = rf"(?:[^#%\[\]{_CONTROLS}]|{_ESCAPED})*"
_END = rf"(?:#{_TEXT})?"
_NO_SLASH = rf"(?:[^/#%\[\]{_CONTROLS}]|{_ESCAPED})"
_NO_COLON = rf"(?:[^:/?#%\[\]{_CONTROLS}]|{_ESCAPED})"
_AUTHORITY = (
    r"//(?:[A-Za-z0-9\-._~!$&'()*+,;=:]*@)?"
    rf"[^/?#@:\[\]%\s{_CONTROLS}]*(?::[0-9]{{1,5}})?(?:[/?]{_TEXT})?{_END}"
)
_PATH = rf"/?(?:{_NO_SLASH}{_TEXT})?{_END}"
"""A path that does not begin with two slashes."""
_RELATIVE = (
    # Blanks alone are no URI (functions.snapshot.oai_name.is_uri).
    rf" *(?:[^ :/?#%\[\]{_CONTROLS}]|{_ESCAPED}){_NO_COLON}*(?:[/?]{_TEXT})?{_END}"
    rf"| +[/?]{_TEXT}{_END}| +#{_TEXT}|/(?:{_NO_SLASH}{_TEXT})?{_END}|\?{_TEXT}{_END}|#{_TEXT}"
)
_URI = rf"[A-Za-z][A-Za-z0-9+.\-]*:(?:{_AUTHORITY}|{_PATH})|{_AUTHORITY}|{_RELATIVE}"
_LEVEL = r"[A-Za-z0-9\-_.!~*'()]+"
_YEAR = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DAY = (
    f"(?:{_LEAP}-02-29|{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8])))"
)
_DATE = rf"{_DAY}(?:T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)?"
_A_DATE = "a date YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ"


def request_table() -> dict[str, Any]:
    """Return `verbs`, with their arguments, and `forms`: by argument, its pattern and its noun."""
    return {
        "verbs": {
            name: {
                "required": [*verb.required],
                "optional": [*verb.optional],
                "exclusive": verb.exclusive,
            }
            for name, verb in VERBS.items()
        },
        "forms": {
            "identifier": [_URI, "a URI"],
            "metadataPrefix": [_LEVEL, "a metadata prefix"],
            "set": [f"{_LEVEL}(?::{_LEVEL})*", "a setSpec"],
            "from": [_DATE, _A_DATE],
            "until": [_DATE, _A_DATE],
            "resumptionToken": [f"[^{_CONTROLS}]*", "a resumption token"],
        },
    }
