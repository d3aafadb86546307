#!/usr/bin/env bash
# waldio's unit tests and its tests through SQLite's C interface under AddressSanitizer: every unsafe function is
# called there. Needs a nightly toolchain; where it is missing this says so and counts as skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if ! rustup toolchain list 2>/dev/null | grep -q '^nightly'; then
    echo "SKIPPED asan: needs a nightly toolchain (rustup toolchain install nightly)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
export RUSTFLAGS="-Zsanitizer=address"
# SQLite and waldio leak what lives as long as the process, on purpose.
export ASAN_OPTIONS="detect_leaks=0"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/asan"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
cargo +nightly test --target "$(rustc -vV | sed -n 's/^host: //p')" -p waldio -p blockio \
    --features waldio/planted-bugs,waldio/static-link \
    --lib --test static_link --test crash_planted 2>&1 | tee "$log" || status=$?
sum() { awk -v what="$1" '/^test result:/ { for (i = 2; i <= NF; i++) if ($i ~ "^" what) n += $(i-1) } END { print n + 0 }' "$log"; }
failed=$(sum failed)
if ((status != 0 && failed == 0)); then
    failed=1
fi
echo "$(sum passed) passed, $failed failed, $(sum ignored) skipped"
exit "$status"
