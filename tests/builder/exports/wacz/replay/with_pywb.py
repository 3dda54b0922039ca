"""Replays a WACZ file in pywb. See tests/builder/exports/wacz/test_replay.py.

Argument: the WACZ file. Input and output: as of with_wabac.mjs.
"""

from gevent.monkey import patch_all

patch_all()

import hashlib  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
from pathlib import Path  # noqa: E402

from pywb.apps.frontendapp import FrontEndApp  # noqa: E402
from pywb.manager.manager import main as manage  # noqa: E402
from werkzeug.test import Client  # noqa: E402

path = Path(sys.argv[1]).resolve()
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # pywb writes messages to stdout
answers = []
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    manage(["init", "a"])
    manage(["add", "--unpack-wacz", "a", str(path)])
    client = Client(FrontEndApp(config_file=None))
    for stamp, url in json.load(sys.stdin):
        answer = client.get(f"/a/{stamp}id_/{url}")
        sha1 = hashlib.sha1(answer.data).hexdigest()
        answers.append({"status": answer.status_code, "sha1": sha1})
    os.chdir("/")
json.dump(answers, out)
out.close()
