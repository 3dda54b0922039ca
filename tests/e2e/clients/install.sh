#!/bin/sh
# Installs the Perl clients that tests/e2e/test_harvesters.py harvests with, where that can be done.
set -eu

if perl -MHTTP::OAI -MCatmandu::Importer::OAI -e 1 2>/dev/null; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "not installed, for that takes root and apt-get: libhttp-oai-perl libcatmandu-oai-perl" >&2
    exit 0
fi
apt-get update -q
apt-get install -y -q --no-install-recommends libhttp-oai-perl libcatmandu-oai-perl
