#!/bin/sh
# Installs the players that tests/builder/exports/wacz/test_replay.py replays with: pywb into .venv-pywb, and
# wabac.js into .npm-wabac where node and npm are installed.
set -eu

cd "$(dirname "$0")/../../../../.."
if [ ! -x .venv-pywb/bin/wb-manager ]; then
    "${PYTHON:-python3}" -m venv .venv-pywb
    .venv-pywb/bin/python -m pip install --quiet --disable-pip-version-check pywb==2.10.0
fi
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    echo "wabac.js is not installed: it needs node and npm" >&2
    exit 0
fi
mkdir -p .npm-wabac
if [ ! -d .npm-wabac/node_modules/fake-indexeddb ] ||
    ! cmp -s tests/builder/exports/wacz/replay/package-lock.json .npm-wabac/package-lock.json; then
    cp tests/builder/exports/wacz/replay/package.json tests/builder/exports/wacz/replay/package-lock.json .npm-wabac/
    (cd .npm-wabac && npm ci --ignore-scripts --no-audit --no-fund --loglevel error)
fi
