"""The demo's dataset is a record of InvenioRDM whose files are where it says, as it says."""

import hashlib
import json

from builder.demo import samples

BASE = "http://a.example"


def test_each_file_has_the_size_and_checksum_that_the_record_gives() -> None:
    answers = dict(samples.dataset_answers(BASE))
    _, body = answers.pop(f"/api{samples.DATASET_RECORD}")
    files = json.loads(body)["files"]
    assert files["count"] == len(files["entries"]) == len(answers) == samples.DATASET_FILES
    for name, entry in files["entries"].items():
        media, data = answers[entry["links"]["content"].removeprefix(BASE)]
        assert (entry["key"], entry["mimetype"], entry["size"]) == (name, media, len(data))
        assert entry["checksum"] == f"md5:{hashlib.md5(data).hexdigest()}"
