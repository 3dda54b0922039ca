#!/usr/bin/env bash
# Proves the protocol of a store (tests/protocol): walks the specification at random, looks whether
# each rule is needed, and whether recorded runs of Sheaf are runs of the specification. Quint is
# installed into .npm-quint, in the versions of tests/protocol/package-lock.json.
#
#   infra/prove-protocol.sh [--steps N] [--seed N] [--samples N] [--runs N] [--recorded FILE]
set -euo pipefail
cd "$(dirname "$0")/.."
TOOLS=.npm-quint PINS=tests/protocol PYTHON=.venv/bin/python

skip() {
  printf '%s\n' "SKIPPED: the protocol is NOT proved here (tests/protocol): $1" >&2
  exit 0
}

[ -x "$PYTHON" ] || skip "there is no $PYTHON, which \`make .venv/.ready\` makes"
command -v node > /dev/null || skip "there is no node"
command -v npm > /dev/null || skip "there is no npm"
mkdir -p "$TOOLS"
if ! cmp --silent "$PINS/package-lock.json" "$TOOLS/.ready"; then
  echo "installing Quint into $TOOLS ..." >&2
  cp "$PINS/package.json" "$PINS/package-lock.json" "$TOOLS/"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  # Bytes that differ from the pinned ones are a failure, and no reason to skip.
  if ! (cd "$TOOLS" && npm ci --ignore-scripts --no-audit --no-fund --loglevel error) 2> "$log"; then
    cat "$log" >&2
    if grep -q EINTEGRITY "$log"; then exit 1; fi
    skip "Quint cannot be installed; what npm says of it is above"
  fi
  cp "$PINS/package-lock.json" "$TOOLS/.ready"
fi
exec "$PYTHON" -u -m tests.protocol.prove "$@"
