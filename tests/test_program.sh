#!/usr/bin/env bash
# Runs one of cargo's test programs. One that waits for ever is ended after TEST_SECONDS_MAX (900), and the others are run.
#
#   ELSEWHERE='crash trace_* ..' tests/test_program.sh PROGRAM ARGUMENTS...
#
# Programs that ELSEWHERE names are left out: another suite runs them at the same time.
set -euo pipefail

read -ra elsewhere <<<"${ELSEWHERE:-}"
for pattern in "${elsewhere[@]}"; do
    # cargo puts a number behind the name.
    # shellcheck disable=SC2053 # a pattern
    [[ ${1##*/} != $pattern-* ]] || exit 0
done
exec timeout --foreground --kill-after=10 "${TEST_SECONDS_MAX:-900}" "$@"
