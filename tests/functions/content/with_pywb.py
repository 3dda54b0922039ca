"""Asks an index as pywb does where its collection is a remote one. See test_content_pywb.py.

Arguments: the index as pywb's settings name it, a URL, a date in 14 digits or nothing. Output: the
captures, nearest first, as JSON.
"""

import json
import sys

from pywb.warcserver.index.indexsource import RemoteIndexSource, XmlQueryIndexSource

index, url, closest = sys.argv[1:]
source = XmlQueryIndexSource.init_from_string(index) or RemoteIndexSource.init_from_string(index)
params = {"url": url, "closest": closest, "matchType": "exact"}
found = [{name: cdx[name] for name in ("url", "timestamp")} for cdx in source.load_index(params)]
json.dump(found, sys.stdout)
