#!/usr/bin/env bash
# Runs each NAME.sql with the stock sqlite3 shell, waldio loaded, and compares its output with NAME.expected.
#
#   run.sh [NAME...]              all, or the ones named
#   run.sh --record NAME...       writes NAME.expected: from stock SQLite, or from waldio for a waldio-only script
#
# The database test.db lies in a fresh directory and is open when the script begins. A script that begins with
# "-- waldio only" speaks of waldio; any other runs on stock SQLite too and must give the same.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
library=$(realpath "${WALDIO_LIBRARY:-${CARGO_TARGET_DIR:-$here/../target}/release/libwaldio.so}")
record=""
if [[ ${1:-} == --record ]]; then
    record=yes
    shift
fi
names=("$@")
if ((${#names[@]} == 0)); then
    for script in "$here"/*.sql; do names+=("$(basename "$script" .sql)"); done
fi

# Not /tmp: it is often a tmpfs, on which there is nothing to preallocate.
work=$(mktemp -d "${JOJ_TEST_DIR:-/var/tmp}/joj-sql.XXXXXX")
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# run NAME stock|waldio: its output, the errors among it.
run() {
    local directory=$work/$1-$2 load=()
    mkdir "$directory"
    [[ $2 == waldio ]] && load=(-cmd ".load $library")
    # SQLite's busy messages and the like carry no path, but the shell prints the script's line numbers: the commands
    # of -cmd do not count as lines, so both sides number alike.
    (cd "$directory" && timeout 120 sqlite3 -batch -init /dev/null "${load[@]}" -cmd ".open test.db" <"$here/$1.sql" 2>&1) ||
        echo "exit status $?"
}

for name in "${names[@]}"; do
    sides=(waldio stock)
    [[ $(head -n 1 "$here/$name.sql") == "-- waldio only"* ]] && sides=(waldio)
    if [[ -n $record ]]; then
        run "$name" "${sides[-1]}" >"$here/$name.expected"
        continue
    fi
    for side in "${sides[@]}"; do
        run "$name" "$side" >"$work/output"
        if diff -u --label "$name.expected" --label "$name on $side" "$here/$name.expected" "$work/output"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED sql: $name on $side"
        fi
    done
done

echo "$passed passed, $failed failed, 0 skipped"
((failed == 0))
