#!/usr/bin/env bash
# Runs each fuzz target for SECONDS_EACH (default 60) and fails with the first that finds something.
# Needs a nightly toolchain and cargo-fuzz; where one is missing it says so and is counted as skipped.
set -euo pipefail
cd "$(dirname "$0")"
seconds=${SECONDS_EACH:-60}
if ! rustup toolchain list 2>/dev/null | grep -q '^nightly'; then
    echo "skipped: fuzzing needs a nightly toolchain (rustup toolchain install nightly)" >&2
    exit 0
fi
if ! cargo fuzz --version >/dev/null 2>&1; then
    cargo install --locked --quiet cargo-fuzz
fi
for target in frame layout recovery; do
    echo "fuzz $target: $seconds s"
    cargo +nightly fuzz run --fuzz-dir . "$target" -- -max_total_time="$seconds" -verbosity=0
    echo "fuzz $target: ok"
done
