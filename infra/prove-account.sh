#!/usr/bin/env bash
# Proves the deployment in an account of yours: deploys a throw-away stack with a bucket of its own,
# publishes into it, harvests it, updates it, and deletes all of it, also after a failure.
#
# Takes the account and the region that the AWS CLI takes (AWS_PROFILE, AWS_REGION), with the rights
# of infra/policies/deploy.json, and to use and to delete what it makes. With AWS_ENDPOINT_URL it does
# the same in an emulator.
set -euo pipefail
cd "$(dirname "$0")/.."
export PROVE_STACK="sheaf-proof-$(od -An -N4 -tx4 /dev/urandom | tr -d ' ')"

cat >&2 <<END
This deploys the stack $PROVE_STACK${AWS_ENDPOINT_URL:+ at $AWS_ENDPOINT_URL}, asks it some hundred times, and deletes it: about
20 minutes. By the list prices of November 2026 it costs less than 0.20 dollars: functions, requests,
a few megabytes for an hour, a secret and alarms for a part of a day. SAM's own bucket
(aws-sam-cli-managed-default) stays.
END

clean() {
  local status=$?
  trap '' INT TERM
  .venv-aws/bin/python -m tests.aws.account "$PROVE_STACK" || {
    echo "$PROVE_STACK is NOT deleted as a whole; delete what the lines above name" >&2
    status=1
  }
  exit "$status"
}
# Installs what the proofs need where it is missing, and runs nothing yet.
infra/prove.sh --collect-only -q tests/aws/test_deploy.py > /dev/null
if [ ! -e .venv-aws/.ready ]; then exit 1; fi
trap clean EXIT
# CloudFront alone takes an hour to come and go, and a new user's keys a minute; what stays of a
# deleted stack, clean() deletes.
infra/prove.sh tests/aws/test_deploy.py \
  -k "not cloudfront and not come_again and not who_ and not without_its_policy" "$@"
