#!/usr/bin/env bash
# Proves that engines read the tables (tests/tables): each is installed into a folder of .tables, as
# requirements-tables.txt says, and Java by apt-get where it is missing. An engine that cannot be
# installed is said to be not proved, with status 0. Needs the environment of the tests.
#
#   infra/prove-tables.sh [what pytest takes, such as -k duckdb]
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=.venv/bin/python PINS=infra/requirements-tables.txt TOOLS=.tables

command -v java > /dev/null || (apt-get update -qq && apt-get install -y -qq \
  --no-install-recommends default-jre-headless) > /dev/null 2>&1 ||
  echo "SKIPPED: Spark is NOT proved here: there is no Java" >&2
for name in $(sed -n 's/^#\[\(.*\)\]$/\1/p' "$PINS"); do
  wanted=$(sed -n "/^#\[$name\]/,/^#\[/{/^#/!p}" "$PINS")
  [ "$(cat "$TOOLS/$name/.ready" 2> /dev/null)" = "$wanted" ] && continue
  rm -rf "${TOOLS:?}/$name"
  # shellcheck disable=SC2086 # each line is a requirement
  if "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-compile \
    --target "$TOOLS/$name" $wanted; then
    echo "$wanted" > "$TOOLS/$name/.ready"
  else
    rm -rf "${TOOLS:?}/$name"
    echo "SKIPPED: $name is NOT proved here (tests/tables): pip cannot install it" >&2
  fi
done
exec "$PYTHON" -m pytest -q -rs tests/tables "$@"
