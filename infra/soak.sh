#!/usr/bin/env bash
# Installs servers of S3 for the soak test (tests/soak): ministack into a folder of .soak, with the
# versions named here, and Ceph as packages of Debian, which takes root. One that cannot be installed
# is skipped by the test, and said to be, with status 0.
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

install_ceph() {
  command -v radosgw > /dev/null && command -v ceph-mon > /dev/null &&
    command -v ceph-osd > /dev/null && return
  echo "installing Ceph ..." >&2
  if ! { apt-get update -qq &&
    apt-get install -y -qq --no-install-recommends radosgw ceph-mon ceph-osd; } > /dev/null; then
    echo "SKIPPED: Ceph is NOT tested: apt-get cannot install it" >&2
  fi
}

for store in "$@"; do
  case "$store" in
    ministack | all) install ministack --require-hashes -r infra/requirements-ministack.txt ;;&
    ceph | all) install_ceph ;;
  esac
done
