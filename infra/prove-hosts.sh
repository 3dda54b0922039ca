#!/usr/bin/env bash
# Proves the routers of a site (tests/hosts) in the servers they are for. nginx with njs, Apache and
# Caddy are installed by apt-get where they are missing and that can be done, and Cloudflare's
# simulator into .npm-miniflare, in the versions of tests/hosts/package-lock.json, where node is.
# A host that cannot be had is skipped with the reason. Needs the environment of the tests, .venv.
#
# REQUESTS=... is the number of random requests of each host.
#
#   infra/prove-hosts.sh [what pytest takes, such as -k nginx]
set -euo pipefail
cd "$(dirname "$0")/.."
TOOLS=.npm-miniflare PINS=tests/hosts PYTHON=.venv/bin/python

skip() {
  printf '%s\n' "SKIPPED: the routers are NOT proved here (tests/hosts): $1" >&2
  exit 0
}

# obtain FILE PACKAGE: installs the package of a command or module that is missing
obtain() {
  { command -v "$1" || test -e "$1"; } > /dev/null && return
  command -v apt-get > /dev/null || return 0
  echo "installing $2 ..." >&2
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$2"; } > /dev/null 2>&1 ||
    echo "$2 cannot be installed" >&2
}

[ -x "$PYTHON" ] || skip "there is no $PYTHON, which \`make .venv/.ready\` makes"
obtain nginx nginx-light
obtain /usr/lib/nginx/modules/ngx_http_js_module.so libnginx-mod-http-js
obtain apache2 apache2
obtain caddy caddy
[ -n "$(type -p nginx apache2 caddy node || true)" ] ||
  skip "there is no nginx, apache2, caddy or node, and apt-get cannot install them"
if command -v npm > /dev/null && ! cmp --silent "$PINS/package-lock.json" "$TOOLS/.ready"; then
  echo "installing miniflare into $TOOLS ..." >&2
  mkdir -p "$TOOLS"
  cp "$PINS/package.json" "$PINS/package-lock.json" "$TOOLS/"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  # Bytes that differ from the pinned ones are a failure; otherwise this host is skipped.
  if (cd "$TOOLS" && npm ci --ignore-scripts --no-audit --no-fund --loglevel error) 2> "$log"; then
    cp "$PINS/package-lock.json" "$TOOLS/.ready"
  else
    cat "$log" >&2
    if grep -q EINTEGRITY "$log"; then exit 1; fi
  fi
fi
exec "$PYTHON" -m pytest -rs --durations=5 -o tmp_path_retention_policy=failed "$@" tests/hosts
