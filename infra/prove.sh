#!/usr/bin/env bash
# Proves what is deployed, without an account of AWS: the template before AWS's linters, the built
# function in the official emulator of its runtime, the whole stack in an emulated cloud (tests/aws),
# and the suite of the store's seam on the functions' own Python. Everything that takes is installed
# into .venv-aws, once, in the versions of requirements-prove.txt and requirements-ministack.txt.
#
# Needs Python 3.13, that of the functions: PYTHON313=... names it where it is not found. Where it,
# make or a package cannot be had, it says what is not proved and why, and ends with status 0.
#
#   infra/prove.sh [what pytest takes, such as tests/aws/test_deploy.py or -k token]
set -euo pipefail
cd "$(dirname "$0")/.."
TOOLS=.venv-aws
PINS=(pyproject.toml infra/requirements-prove.txt infra/requirements-ministack.txt)

skip() {
  printf '%s\n' "" "======================================================================" \
    "SKIPPED: the deployment to AWS is NOT proved here (tests/aws): $1" \
    "======================================================================" "" >&2
  exit 0
}

fits() { [ -n "$1" ] && "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 13))' 2>/dev/null; }

# A name on the PATH may lead to none: the shims of pyenv do, for versions that are not switched on.
python313() {
  local candidate
  if [ -n "${PYTHON313:-}" ]; then
    fits "$PYTHON313" || { echo "PYTHON313=$PYTHON313 is no Python 3.13 with venv" >&2; exit 2; }
    echo "$PYTHON313"
    return
  fi
  for candidate in $(type -ap python3.13 python3 || true) \
    "$(pyenv root 2>/dev/null || true)"/versions/3.13*/bin/python3.13; do
    if fits "$candidate"; then
      echo "$candidate"
      return
    fi
  done
}

# Installs into the environment of an interpreter. That nothing can be fetched is a reason to skip;
# that what was fetched does not have its hash, or that pip was called wrongly, is a failure.
install() {
  local status=0 log="$TOOLS/pip.log"
  "$TOOLS/bin/python" -m pip --python "$1" install --quiet --disable-pip-version-check --no-compile \
    "${@:2}" 2> "$log" || status=$?
  [ "$status" -ne 0 ] || return 0
  cat "$log" >&2
  if [ "$status" -ne 1 ] || grep -q "DO NOT MATCH THE HASHES" "$log"; then exit 1; fi
  skip "a package cannot be installed; what pip says of it is above"
}

# The pins of some packages.
pins() {
  awk -v names=" $* " '/^[^ #]/ { split($1, part, "=="); wanted = index(names, " " part[1] " ") } wanted' \
    infra/requirements-prove.txt
}

prepare() {
  local python="$1"
  rm -rf "$TOOLS"
  "$python" -m venv "$TOOLS"
  install "$TOOLS/bin/python" --require-hashes --requirement infra/requirements-prove.txt
  install "$TOOLS/bin/python" --no-deps --editable .
  # The function gets an interpreter with awslambdaric and nothing else: what was not packed is missing.
  "$python" -m venv --without-pip "$TOOLS/runtime"
  # boto3 is a part of Lambda's runtime, with what it needs.
  pins awslambdaric simplejson snapshot-restore-py boto3 botocore jmespath python-dateutil \
    s3transfer six urllib3 > "$TOOLS/runtime.txt"
  install "$TOOLS/runtime/bin/python" --no-deps --require-hashes --requirement "$TOOLS/runtime.txt"
  "$python" -m venv --without-pip "$TOOLS/ministack"
  install "$TOOLS/ministack/bin/python" \
    --require-hashes --requirement infra/requirements-ministack.txt
  cat "${PINS[@]}" > "$TOOLS/.ready"
}

# obtain COMMAND: installs the package of a command that is missing; what lacks it is skipped later.
obtain() {
  command -v "$1" > /dev/null && return
  command -v apt-get > /dev/null || return 0
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$1"; } > /dev/null 2>&1 ||
    echo "$1 cannot be installed: the container is not proved" >&2
}

python=$(python313)
[ -n "$python" ] || skip "there is no Python 3.13; PYTHON313=... names one"
command -v make > /dev/null || skip "there is no make, by which the functions are built"
if ! cat "${PINS[@]}" | cmp --silent - "$TOOLS/.ready"; then
  echo "installing what the proofs need into $TOOLS, for some minutes ..." >&2
  prepare "$python"
fi
# Whoever wants the emulator alone (`make emulator`) builds no container.
if [ "${1-}" != --collect-only ]; then
  obtain buildah
  obtain mmdebstrap
fi
# The functions are packed by make: by this Python, and not as a part of a make that runs already.
export PYTHON313="$PWD/$TOOLS/bin/python"
unset MAKEFLAGS MFLAGS MAKELEVEL
# On the functions' own Python the store's seam as well.
export TEST_ALL=1
given=("$@")
[ ${#given[@]} -gt 0 ] || given=(
  tests/aws tests/builder/store/test_store.py tests/builder/verify/test_integrity.py
)
# What was built is hundreds of megabytes, of which only what failed is worth to be looked at.
exec "$TOOLS/bin/python" -m pytest --durations=5 -o tmp_path_retention_policy=failed "${given[@]}"
