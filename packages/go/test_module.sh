#!/usr/bin/env bash
# Makes the Go module in a new folder and runs its tests there; ends with a count line.
#
#   packages/go/test_module.sh      with the library WALDIO_LIBRARY, or target/release/libwaldio.so
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
library=$(realpath "${WALDIO_LIBRARY:-${CARGO_TARGET_DIR:-$here/../../target}/release/libwaldio.so}")

skip() {
    echo "SKIPPED go: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}
command -v go >/dev/null || skip "go is missing"
command -v gcc >/dev/null || skip "gcc is missing, which cgo needs"
# Not /tmp, which is often memory.
work=$(mktemp -d "${JOJ_TEST_DIR:-/var/tmp}/waldio-go.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$here/build_module.sh" "$work/module" "$library"
cd "$work/module"
go mod download 2>"$work/download" || skip "mattn/go-sqlite3 cannot be fetched here: $(tail -n 1 "$work/download")"

export CGO_ENABLED=1 TMPDIR=$work
failed=0
holds() {
    local name=$1
    shift
    if "$@"; then echo "--- PASS: $name"; else echo "--- FAIL: $name"; fi
}
{
    holds format test -z "$(gofmt -l .)"
    holds vet go vet -mod=readonly .
    go test -mod=readonly -count=1 -v . || true
} >"$work/log" 2>&1
passed=$(grep -c '^--- PASS: ' "$work/log" || true)
failed=$(grep -c '^--- FAIL: ' "$work/log" || true)
# What does not compile, or ends before its time, has no such line.
grep -q '^ok ' "$work/log" || failed=$((failed + 1))
if ((failed > 0)); then
    cat "$work/log"
    echo "FAILED go: see above"
fi
echo "$passed passed, $failed failed, 0 skipped"
((failed == 0))
