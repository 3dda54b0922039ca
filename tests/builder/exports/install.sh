#!/bin/sh
# Installs what reads and validates RO-Crates for tests/builder/exports into .venv-crate: it has forty
# packages of its own, which nothing else here needs.
set -eu

cd "$(dirname "$0")/../../.."
if [ ! -x .venv-crate/bin/rocrate-validator ]; then
    "${PYTHON:-python3}" -m venv .venv-crate
    .venv-crate/bin/python -m pip install --quiet --disable-pip-version-check \
        rocrate==0.16.0 roc-validator==0.13.0
fi
