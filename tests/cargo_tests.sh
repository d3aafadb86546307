#!/usr/bin/env bash
# Runs `cargo test` with the arguments given and ends with a count line. A test that could not do all its work here prints
# "skipped: REASON", which counts; what else a test prints that passed is left out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# The harness shows what passed tests printed in a section of its own, with the names again.
only_skips() {
    awk '
        /^successes:$/ { within = 1; next }
        /^(test result: |failures:$)/ { within = 0 }
        !within || /^skipped: / { print; fflush() }
    '
}

host=$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)
export "CARGO_TARGET_${host}_RUNNER=$PWD/tests/test_program.sh"

[[ " $* " == *" -- "* ]] || set -- "$@" --
status=0
cargo test --no-fail-fast "$@" --show-output 2>&1 | only_skips | tee "$log" || status=$?

# With its reason, as these lines are all that a long log still shows at its end.
awk -v status="$status" '
    function explain() {
        if (why != "") print "FAILED cargo test: " name ": " substr(why, 1, 1500)
        why = "" }
    /^failures:$/ { failing = 1 }
    /^test result: / { failing = 0 }
    failing && /^(---- .* stdout ----|note: run with .*|failures:)$/ { explain() }
    failing && /^---- .* stdout ----$/ { name = $2 }
    why != "" { why = why " " $0 }
    failing && why == "" && /^thread .* panicked at / { why = $0; sub(/^thread .* panicked at /, "", why) }
    /^test result: / { for (i = 1; i < NF; i++) {
        if ($(i + 1) ~ /^passed/) passed += $i
        if ($(i + 1) ~ /^failed/) failed += $i
        if ($(i + 1) ~ /^ignored/) skipped += $i } }
    /^test .* \.\.\. ignored/ {
        reason = $0; sub(/^test .* \.\.\. ignored,? ?/, "", reason)
        print "SKIPPED cargo test: " $2 ": " (reason == "" ? "marked #[ignore]" : reason) }
    /^skipped: / { skipped += 1; print "SKIPPED cargo test: " substr($0, 10) }
    /^test .* \.\.\. FAILED/ { print "FAILED cargo test: " $2 }
    # A test binary that dies prints no result line of its own.
    END { if (status != 0 && failed == 0) { failed = 1; print "FAILED cargo test: exit status " status }
          printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }
' "$log"
exit "$status"
