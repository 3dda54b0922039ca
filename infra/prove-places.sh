#!/usr/bin/env bash
# Proves that stores live at other places that speak S3 (tests/places.py): Ceph, which apt-get
# installs where it can, and ministack and rclone, which are installed into .places. A place that
# cannot be had is skipped with the reason. Needs the environment of the tests, .venv.
#
#   infra/prove-places.sh [what pytest takes, such as -k ceph]
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=.venv/bin/python TOOLS=.places
PINS=(infra/requirements-places.txt infra/requirements-ministack.txt)

skip() {
  echo "SKIPPED: other places are NOT proved here: $1" >&2
  exit 0
}

[ -x "$PYTHON" ] || skip "there is no $PYTHON (make .venv/.ready)"
[ -n "$(type -p radosgw apt-get pip || true)" ] ||
  skip "there is no radosgw, and neither apt-get nor pip, which install places"
if ! command -v radosgw > /dev/null && command -v apt-get > /dev/null; then
  echo "installing Ceph ..." >&2
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends \
    ceph-mon ceph-osd radosgw; } > /dev/null 2>&1 || echo "Ceph cannot be installed" >&2
fi
if ! cat "${PINS[@]}" | cmp --silent - "$TOOLS/.ready"; then
  rm -rf "$TOOLS"
  "$PYTHON" -m venv "$TOOLS"
  for pins in "${PINS[@]}"; do
    "$TOOLS/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
      --require-hashes --requirement "$pins" || echo "$pins cannot be installed" >&2
  done
  cat "${PINS[@]}" > "$TOOLS/.ready"
fi
export PLACES="ceph ministack" TEST_ALL=1
exec "$PYTHON" -m pytest -rs --durations=5 -o tmp_path_retention_policy=failed \
  tests/builder/store/test_store.py tests/builder/store/test_creating.py tests/e2e/test_places.py "$@"
