"""Prints what ro-crate-py finds in a crate; it runs in an environment of its own (.venv-crate)."""

import json
import sys

from rocrate.rocrate import ROCrate  # type: ignore[import-not-found]

crate = ROCrate(sys.argv[1])
files = {
    entity["name"]: [entity["sha256"], str(entity.source)]
    for entity in crate.data_entities
    if entity.type == "File"
}
print(json.dumps({"name": crate.name, "files": files}))
