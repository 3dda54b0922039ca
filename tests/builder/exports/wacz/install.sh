#!/bin/sh
# Installs py-wacz, by which tests/builder/exports/wacz holds that what is exported is valid, into .venv-wacz: it has
# thirty packages of its own, which nothing else here needs.
set -eu

cd "$(dirname "$0")/../../../.."
if [ ! -x .venv-wacz/bin/wacz ]; then
    "${PYTHON:-python3}" -m venv .venv-wacz
    .venv-wacz/bin/python -m pip install --quiet --disable-pip-version-check wacz==0.6.0
fi
