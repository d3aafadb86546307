#!/usr/bin/env bash
# Builds, then runs one level of test suites and sums their counts.
#
#   tests/suites.sh smoke|test|soak
#
# A build that fails stops everything; a suite that fails does not stop the next one. Each suite ends with a line
# "N passed, N failed, N skipped" and prints FAILED and SKIPPED lines, which are repeated at the end. The sum is the
# last line, alone; the exit status is non-zero when anything failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

level=${1:?usage: tests/suites.sh smoke|test|soak}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
export WALDIO_LIBRARY=$CARGO_TARGET_DIR/release/libwaldio.so
# What makes the next build quicker makes the first one a fifth slower.
[[ -d $CARGO_TARGET_DIR/debug/incremental ]] || export CARGO_INCREMENTAL=0

logs=$(mktemp -d)
preparing="" mounted=""
declare -A behind=()
clean_up() {
    for group in $preparing "${behind[@]}"; do kill -- -"$group" 2>/dev/null || true; done
    [[ -z $mounted ]] || umount --lazy "$mounted" || true
    rm -rf "$logs"
}
trap clean_up EXIT
passed=0 failed=0 skipped=0
started=$SECONDS

# suite NAME COMMAND...: runs it, adds its count line.
suite() {
    local name=$1 log=$logs/$1.log status=0 begun=$SECONDS counts
    shift
    echo "=== $name: $*"
    "$@" 2>&1 | tee "$log" || status=$?
    counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1) || true
    if [[ -z $counts ]]; then
        counts="0 passed, 1 failed, 0 skipped"
        echo "FAILED $name: ended with status $status before it counted" | tee -a "$log"
    fi
    read -r suite_passed _ suite_failed _ suite_skipped _ <<<"$counts"
    if ((status != 0 && suite_failed == 0)); then
        suite_failed=1
        echo "FAILED $name: exit status $status" | tee -a "$log"
    fi
    passed=$((passed + suite_passed)) failed=$((failed + suite_failed)) skipped=$((skipped + suite_skipped))
    echo "=== $name: $suite_passed passed, $suite_failed failed, $suite_skipped skipped in $((SECONDS - begun)) s"
}

# Waits for what is built beside everything else. Who has ended is not killed at the end: its number may be another's.
prepared() {
    wait "$preparing" || cat "$logs/prepare"
    preparing=""
}

# behind NAME COMMAND...: a suite that runs while others do; it is shown and counted where `finish` names it.
behind() {
    local name=$1
    shift
    set -m
    ended "$logs/ended-$name" "$@" >"$logs/behind-$name" 2>&1 &
    behind[$name]=$!
    set +m
}
# ended FILE COMMAND...: runs it, and leaves the file behind.
ended() {
    local file=$1 status=0
    shift
    "$@" || status=$?
    touch "$file"
    return "$status"
}
# after NAME COMMAND...: runs it once the suite of that name has ended behind the others.
after() {
    local name=$1
    shift
    until [[ -e $logs/ended-$name ]]; do sleep 1; done
    "$@"
}
finish() {
    behind_status=0
    # In this shell, whose child it is.
    wait "${behind[$1]}" || behind_status=$?
    unset "behind[$1]"
    suite "$1" show_behind "$1"
}
show_behind() {
    cat "$logs/behind-$1"
    return "$behind_status"
}

tests/install_packages.sh test
# Most systems mount it at boot; where none did and the kernel has it, the tests that need it would all be skipped.
tracing=/sys/kernel/tracing
if ((EUID == 0)) && [[ -d $tracing && ! -e $tracing/trace ]] && mount -t tracefs nodev "$tracing" 2>/dev/null; then
    mounted=$tracing
fi
# SQLite's suite is built beside everything else; what goes wrong there is said when it is needed.
# real_cksumvfs.rs builds one of SQLite's shims from the same source, which is there in seconds.
if [[ $level != smoke ]]; then
    tests/tcl/fetch.sh "$CARGO_TARGET_DIR/sqlite-suite" >"$logs/fetch" 2>&1 || true
    set -m
    tests/tcl/run.py prepare >"$logs/prepare" 2>&1 &
    preparing=$!
    set +m
fi
# What users load: the extension alone, as they get it.
cargo build --release -p waldio
# Bugs are planted behind a feature that users do not have. `static-link` is apart: a library built with it leaves
# SQLite's names undefined, which a shell that loads it does not provide.
features=(--features waldio/planted-bugs)
profile=()
[[ $level != soak ]] || profile=(--profile soak)
cargo test --no-run --workspace "${profile[@]}" "${features[@]}" --quiet

case $level in
smoke)
    suite lint tests/lint.sh
    suite rust tests/cargo_tests.sh --workspace "${features[@]}" --lib --bins
    suite tidy tests/cargo_tests.sh -p tidy --test tidy
    suite sql sql/run.sh
    ;;
test)
    # The emulated machine computes on one processor for minutes. What its tests cannot bear is no load: their clock is the
    # guest's. Of the same features as the other tests: else cargo builds joj a second time. The tests `in_the_lab` of other
    # files (lab_exec, record_lab, replay_lab, whatif_lab and more) would take four minutes more: `make soak` has them.
    # So would those that measure the same cells twice, and what F2FS and a write buffer do besides.
    behind lab tests/cargo_tests.sh --workspace "${features[@]}" --test lab --test lab_crash \
        -- --test-threads=1 --skip an_array_of_four_jobs --skip threads_that_share_a_database_are_as_fast \
        --skip atomic_writes_of_f2fs --skip a_log_that_grows_beside_its_syncs --skip a_persistent_write_buffer_keeps
    # These only compute as well, and no clock is part of what they check.
    behind crash after lab tests/cargo_tests.sh --workspace "${features[@]}" --test crash --test crash_planted
    # The other suites are not done when these are: two minutes of joj's own tests go here.
    behind units after crash tests/cargo_tests.sh --workspace "${features[@]}" --bin joj
    # And four minutes of Python.
    behind fleet after units python/tests/test_fleet.py
    suite lint tests/lint.sh quick
    suite self tests/self_tests.py
    prepared
    # It leaves a third of two processors idle, waiting for the disk.
    behind tcl tests/tcl/run.py test
    ELSEWHERE='crash crash_planted joj' \
        suite rust tests/cargo_tests.sh --workspace "${features[@]}" -- --skip in_the_lab
    suite model tests/cargo_tests.sh -p waldio --features model,planted-bugs --test model_group
    suite static tests/cargo_tests.sh -p waldio --features static-link --test static_link
    suite sql sql/run.sh
    suite debug packages/test_separate_debug.sh
    suite wheel packages/python/test_wheel.py
    suite preload packages/preload/test_preload.py
    suite npm packages/npm/test_npm.py test
    suite archives packages/system/test_archives.py test
    suite clients tests/clients/run.sh test
    finish tcl
    finish lab
    finish crash
    finish units
    finish fleet
    ;;
soak)
    export JOJ_SOAK_SECONDS=${JOJ_SOAK_SECONDS:-600} JOJ_SEEDS=${JOJ_SEEDS:-1000}
    export JOJ_NAME_SEEDS=${JOJ_NAME_SEEDS:-40}
    export CRASH_LENGTH=${CRASH_LENGTH:-2} CRASH_EXTRA=${CRASH_EXTRA:-300} CRASH_SAMPLES=${CRASH_SAMPLES:-24}
    export JOJ_CRASH_STATES=${JOJ_CRASH_STATES:-1000}
    # Each of the generator's two suites takes so long.
    export GENERATOR_SECONDS=${GENERATOR_SECONDS:-3600}
    export CRASH_AGAIN=${CRASH_AGAIN:-400} CRASH_FAULTS=${CRASH_FAULTS:-5}
    export CRASH_GROUP_LENGTH=${CRASH_GROUP_LENGTH:-4}
    export TEST_SECONDS_MAX=${TEST_SECONDS_MAX:-36000}
    export MODEL_SCHEDULES=${MODEL_SCHEDULES:-30000} MODEL_PREEMPTIONS=${MODEL_PREEMPTIONS:-6}
    suite lint tests/lint.sh
    suite rust tests/cargo_tests.sh --workspace "${profile[@]}" "${features[@]}"
    suite model tests/cargo_tests.sh -p waldio --features model,planted-bugs --test model_group
    suite asan tests/sanitizers.sh address
    suite tsan tests/sanitizers.sh thread
    suite fleet python/tests/test_fleet.py
    suite go packages/go/test_module.sh
    suite npm packages/npm/test_npm.py soak
    suite archives packages/system/test_archives.py soak
    suite clients tests/clients/run.sh soak
    suite frameworks packages/python/test_frameworks.py
    suite django tests/applications/django_requests.py --quick
    suite kine tests/applications/kine_puts.py --quick
    suite recorder tests/applications/recorder_events.py --quick --joj "$CARGO_TARGET_DIR/soak/joj"
    suite fuzz tests/fuzz.sh
    prepared
    suite tcl tests/tcl/run.py soak
    ;;
*) echo "tests/suites.sh: no level '$level'" >&2; exit 2 ;;
esac

echo
grep -h '^SKIPPED ' "$logs"/*.log || true
grep -h '^FAILED ' "$logs"/*.log || true
echo "$level took $((SECONDS - started)) s"
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
