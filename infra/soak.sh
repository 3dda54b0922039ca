#!/usr/bin/env bash
# Installs servers of S3 for the soak test (tests/soak), each into a folder of .soak with the versions
# named here. One that cannot be installed is skipped by the test, and said to be, with status 0.
#
#   infra/soak.sh STORE...   stores of tests/soak/stores.py, or all
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=.venv/bin/python TOOLS=.soak

install() {  # NAME REQUIREMENTS...
  local name="$1"
  shift
  [ "$(cat "$TOOLS/$name/.ready" 2> /dev/null)" = "$*" ] && return
  echo "installing $name into $TOOLS ..." >&2
  rm -rf "${TOOLS:?}/$name"
  if "$PYTHON" -m venv "$TOOLS/$name" &&
    "$TOOLS/$name/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; then
    echo "$*" > "$TOOLS/$name/.ready"
  else
    rm -rf "${TOOLS:?}/$name"
    echo "SKIPPED: $name is NOT tested: pip cannot install it" >&2
  fi
}

for store in "$@"; do
  case "$store" in
    ministack | all) install ministack --require-hashes -r infra/requirements-ministack.txt ;;
  esac
done
