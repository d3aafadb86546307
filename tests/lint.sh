#!/usr/bin/env bash
# Format, clippy, documentation warnings, the types of the fuzz targets, and licences and sources of dependencies; ends with
# a count line.
#
#   tests/lint.sh [quick]      quick: what users get, and licences; without the tests, the documentation, the model and the fuzz targets
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
level=${1:-whole}

passed=0 failed=0 skipped=0

# check NAME COMMAND...: runs it, counts it.
check() {
    local name=$1
    shift
    echo "--- $name"
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAILED lint: $name"; fi
}
# skip NAME REASON
skip() {
    skipped=$((skipped + 1))
    echo "SKIPPED lint: $1: $2"
}

if cargo fmt --version >/dev/null 2>&1; then
    check fmt cargo fmt --all --check
else
    skip fmt "rustfmt is missing (rustup component add rustfmt)"
fi
if cargo clippy --version >/dev/null 2>&1; then
    if [[ $level == quick ]]; then
        check clippy cargo clippy --quiet --workspace --lib --bins -- -D warnings
    else
        check clippy cargo clippy --quiet --workspace --all-targets --features waldio/planted-bugs,waldio/static-link -- -D warnings
        # The model replaces what threads wait on: apart from everything else.
        check clippy-model cargo clippy --quiet -p waldio --features model,planted-bugs --lib --test model_group -- -D warnings
    fi
else
    skip clippy "clippy is missing (rustup component add clippy)"
fi
if [[ $level != quick ]]; then
    check doc env RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps --document-private-items
    # A workspace of its own, which only cargo-fuzz builds, before a release. Nothing is linked here: without libFuzzer, which is
    # half a minute of C++, so its path need not exist.
    check fuzz-types env CUSTOM_LIBFUZZER_PATH=/nowhere/libfuzzer.a cargo check --quiet --locked --manifest-path fuzz/Cargo.toml
fi
if cargo deny --version >/dev/null 2>&1; then
    check deny cargo deny --log-level error check licenses bans sources
else
    skip deny "cargo-deny is missing (cargo install cargo-deny)"
fi

echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
