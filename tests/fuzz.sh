#!/usr/bin/env bash
# Runs every target of fuzz/ for FUZZ_SECONDS (default 60) and ends with a count line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

passed=0 failed=0 skipped=0
finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    ((failed == 0))
    exit
}

reason=""
[[ -f fuzz/Cargo.toml ]] || reason="there is no fuzz/ yet"
cargo fuzz --version >/dev/null 2>&1 || reason=${reason:-"cargo-fuzz is missing (cargo install cargo-fuzz)"}
cargo +nightly --version >/dev/null 2>&1 || reason=${reason:-"it needs a nightly toolchain (rustup toolchain install nightly)"}
if [[ -n $reason ]]; then
    skipped=1
    echo "SKIPPED fuzz: $reason"
    finish
fi

while read -r target; do
    echo "--- $target"
    if cargo +nightly fuzz run "$target" -- -max_total_time="${FUZZ_SECONDS:-60}" -print_final_stats=1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED fuzz: $target (input below fuzz/artifacts/$target)"
    fi
done < <(cargo +nightly fuzz list)
finish
