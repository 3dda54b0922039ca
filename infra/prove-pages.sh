#!/usr/bin/env bash
# Proves the pages for people in Chromium (tests/pages). Chromium, and Java for the Nu HTML Checker,
# are installed by apt-get where they are missing and that can be done; the rest goes into .pages, in
# the versions of requirements-pages.txt. Needs the environment of the tests, .venv.
#
# What cannot be had is said to be not proved, with status 0. SCREENSHOTS=... names a folder for
# pictures of all pages.
#
#   infra/prove-pages.sh [what pytest takes, such as -k keyboard]
set -euo pipefail
cd "$(dirname "$0")/.."
TOOLS=.pages PINS=infra/requirements-pages.txt PYTHON=.venv/bin/python

skip() {
  printf '%s\n' "SKIPPED: the pages are NOT proved in Chromium here (tests/pages): $1" >&2
  exit 0
}

# obtain COMMAND PACKAGE
obtain() {
  command -v "$1" > /dev/null && return
  command -v apt-get > /dev/null || return
  echo "installing $2 ..." >&2
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$2"; } > /dev/null 2>&1
}

[ -x "$PYTHON" ] || skip "there is no $PYTHON, which \`make .venv/.ready\` makes"
obtain chromium chromium || skip "there is no chromium, and apt-get cannot install it"
obtain java default-jre-headless || echo "no Java: valid HTML is not proved" >&2
if ! cmp --silent "$PINS" "$TOOLS/.ready"; then
  echo "installing what the proof needs into $TOOLS ..." >&2
  rm -rf "$TOOLS"
  # A hash that does not match is a failure, and no reason to skip.
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-compile \
    --require-hashes --target "$TOOLS" --requirement "$PINS" 2> "$log"; then
    cat "$log" >&2
    if grep -q "DO NOT MATCH THE HASHES" "$log"; then exit 1; fi
    skip "a package cannot be installed; what pip says of it is above"
  fi
  cp "$PINS" "$TOOLS/.ready"
fi
export PYTHONPATH="$TOOLS"
exec "$PYTHON" -m pytest --durations=5 -o tmp_path_retention_policy=failed "$@" tests/pages
