#!/usr/bin/env bash
# waldio's tests under a sanitizer; needs a nightly toolchain, and counts as skipped without.
#
#   tests/sanitizers.sh address    unit tests and those through SQLite's C interface: every unsafe function is called there
#   tests/sanitizers.sh thread     unit tests and free threads on the simulated disk; needs the toolchain's rust-src, because
#                                  the standard library has to be built with it. SQLite's own C code is not instrumented.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

sanitizer=${1:-}
arguments=(-p waldio --lib)
case $sanitizer in
address) arguments+=(-p blockio --features waldio/planted-bugs,waldio/static-link --test static_link --test crash_planted) ;;
thread) arguments+=(-Zbuild-std --features waldio/planted-bugs --test crash -- group_many) ;;
*) echo "usage: tests/sanitizers.sh address|thread" >&2; exit 2 ;;
esac

skip() {
    echo "SKIPPED $sanitizer sanitizer: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}
rustup toolchain list 2>/dev/null | grep -q '^nightly' || skip "needs a nightly toolchain (rustup toolchain install nightly)"
if [[ $sanitizer == thread ]]; then
    rustup component list --toolchain nightly 2>/dev/null | grep -q '^rust-src.*installed' ||
        skip "needs the standard library's sources (rustup component add rust-src --toolchain nightly)"
fi

export RUSTFLAGS="-Zsanitizer=$sanitizer"
# SQLite and waldio leak what lives as long as the process, on purpose.
export ASAN_OPTIONS="detect_leaks=0"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/sanitizer-$sanitizer"
log=$(mktemp) suppressions=$(mktemp)
trap 'rm -f "$log" "$suppressions"' EXIT
# SQLite compares the wal-index with its copy without a lock, on purpose: memcmp is seen, the rest of its C code is not.
printf 'race:%s\n' walTryBeginRead walIndexTryHdr >"$suppressions"
export TSAN_OPTIONS="suppressions=$suppressions"
status=0
cargo +nightly test --target "$(rustc -vV | sed -n 's/^host: //p')" "${arguments[@]}" 2>&1 | tee "$log" || status=$?
sum() { awk -v what="$1" '/^test result:/ { for (i = 2; i <= NF; i++) if ($i ~ "^" what) n += $(i-1) } END { print n + 0 }' "$log"; }
failed=$(sum failed)
# A race that is reported does not end the test it is in.
if ((failed == 0)) && { ((status != 0)) || grep -q '^WARNING: ThreadSanitizer' "$log"; }; then
    failed=1
    echo "FAILED $sanitizer sanitizer: see its report above"
fi
echo "$(sum passed) passed, $failed failed, $(sum ignored) skipped"
((failed == 0))
