#!/usr/bin/env bash
# Builds what a release consists of from a commit: sdist, wheel, SBOM and their digests.
#
#   infra/release.sh [COMMIT] [FOLDER]      (HEAD and dist)
#
# It builds twice, from two copies of the commit, and fails if the bytes differ. Anybody can build the
# same bytes from the same commit. Tools go into .release, as infra/requirements-release.txt has them.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3} PINS=infra/requirements-release.txt TOOLS=.release
COMMIT=$(git rev-parse --verify "${1:-HEAD}^{commit}") OUT=${2:-dist}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$COMMIT")
export SOURCE_DATE_EPOCH
umask 022

if ! cmp --silent "$PINS" "$TOOLS/.ready"; then
  rm -rf "$TOOLS"
  "$PYTHON" -m venv "$TOOLS"
  "$TOOLS/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$PINS"
  cp "$PINS" "$TOOLS/.ready"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for round in one two; do
  mkdir -p "$work/$round/source"
  git archive "$COMMIT" | tar -x -C "$work/$round/source"
  "$TOOLS/bin/python" -m build --no-isolation --outdir "$work/$round/dist" "$work/$round/source" \
    > "$work/log" || { cat "$work/log" >&2; exit 1; }
done
for file in "$work/one/dist/"*; do
  cmp "$file" "$work/two/dist/$(basename "$file")" ||
    { echo "two builds of $COMMIT differ" >&2; exit 1; }
done

# The SBOM lists what the wheel needs, without extras, in the versions of requirements.lock.
"$PYTHON" -m venv "$work/installed"
sed -n 's/^\([A-Za-z0-9._-]*==[^ ]*\).*/\1/p' requirements.lock > "$work/constraints.txt"
"$work/installed/bin/python" -m pip install --quiet --disable-pip-version-check \
  --constraint "$work/constraints.txt" "$work/one/dist/"*.whl
"$work/installed/bin/python" -m pip uninstall --quiet --yes --disable-pip-version-check \
  pip setuptools
version=$("$work/installed/bin/python" -c 'from builder.distribution import *; print(version())')
"$TOOLS/bin/cyclonedx-py" environment --output-reproducible --mc-type application \
  --pyproject "$work/one/source/pyproject.toml" --output-format JSON \
  --output-file "$work/one/dist/sheaf_archive-$version.cdx.json" "$work/installed/bin/python"

(cd "$work/one/dist" && sha256sum -- * > SHA256SUMS)
mkdir -p "$OUT"
cp "$work/one/dist/"* "$OUT"
cat "$OUT/SHA256SUMS"
