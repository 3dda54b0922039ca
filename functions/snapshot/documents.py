"""Documents: the JSON texts with the fields of items other than captures."""

import json
from typing import Any

from functions.snapshot import markup, obi


def read(kind: str, text: str) -> dict[str, Any]:
    """Return the fields of an item of that kind; values of templates are plain text (markup).

    Raises ValueError or TypeError if the text is no JSON object.
    """
    fields = json.loads(text)
    if not isinstance(fields, dict):
        raise ValueError("a document is no object")
    if kind == "template":
        fields.setdefault(obi.GATHERED)
        if markup.has_markup(text):
            markup.clean_template(fields)
    return fields
