"""Documents: dataclasses are built from JSON, and what does not fit is named by its place."""

import pytest

from builder.sources.webarchives.ingest.splits import Split
from builder.store import documents

FILE = {"path": "/a/\udc80.warc", "label": "a", "bytes": 1, "modified": 2, "later": "ignored"}


@pytest.mark.parametrize(
    ("file", "place"),
    [
        ({**FILE, "bytes": "1"}, r"`\$\[0\]\.file\.bytes`"),
        ({**FILE, "bytes": True}, r"`\$\[0\]\.file\.bytes`"),
        ({**FILE, "path": 1}, r"`\$\[0\]\.file\.path`"),
        ({"path": "/a"}, r"`label` - at `\$\[0\]\.file`"),
        ([], r"`\$\[0\]\.file`"),
    ],
)
def test_what_does_not_fit_is_named(file: object, place: str) -> None:
    with pytest.raises(ValueError, match=place) as caught:
        documents.build(tuple[Split, ...], [{"file": file}])
    assert "\n" not in str(caught.value)
