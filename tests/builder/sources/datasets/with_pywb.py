"""Replays URLs of a WARC file in pywb, as a browser follows redirects. See test_replay.py.

Argument: the WARC file. Input: a time in 14 digits and URLs, as JSON. Output: for each URL the
statuses on the way, and the SHA-1 of the last body.
"""

from gevent.monkey import patch_all

patch_all()

import hashlib  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
from pathlib import Path  # noqa: E402
from urllib.parse import urlsplit  # noqa: E402

from pywb.apps.frontendapp import FrontEndApp  # noqa: E402
from pywb.manager.manager import main as manage  # noqa: E402
from werkzeug.test import Client  # noqa: E402

path = Path(sys.argv[1]).resolve()
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # pywb writes messages to stdout
answers = []
stamp, urls = json.load(sys.stdin)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    manage(["init", "a"])
    manage(["add", "a", str(path)])
    client = Client(FrontEndApp(config_file=None))
    for url in urls:
        target, statuses = f"/a/{stamp}id_/{url}", []
        for _ in range(5):
            answer = client.get(target)
            statuses.append(answer.status_code)
            location = answer.headers.get("Location")
            if location is None:
                break
            parts = urlsplit(location)
            inside = parts.path.startswith("/a/")
            target = parts.path if inside else f"/a/{stamp}id_/{location}"
            if inside and parts.query:
                target += f"?{parts.query}"
        answers.append({"statuses": statuses, "sha1": hashlib.sha1(answer.data).hexdigest()})
    os.chdir("/")
json.dump(answers, out)
out.close()
