#!/usr/bin/env bash
# Takes the debug information out of programs and libraries, and puts it into FILE.debug beside each.
#
#   packages/separate_debug.sh FILE...
#
# What is left names that file. A debugger and a Rust program's backtrace find it in the same directory, in .debug below it, or
# below /usr/lib/debug. Messages of panics have their file and line without it. cargo's own copy below deps/ stays as it is.
set -euo pipefail

# Of another machine's files: PREFIX=aarch64-linux-gnu-
objcopy=${PREFIX:-}objcopy strip=${PREFIX:-}strip readelf=${PREFIX:-}readelf
for program in "$objcopy" "$strip" "$readelf"; do
    if ! command -v "$program" >/dev/null; then
        echo "packages/separate_debug.sh: $program is missing (package binutils): debug information stays in $*" >&2
        exit 1
    fi
done

for file in "$@"; do
    # Stripped before, and not linked anew since.
    "$readelf" --section-headers --wide "$file" | grep -q ' \.debug_line ' || continue
    directory=$(dirname "$file") name=$(basename "$file")
    # In new files: cargo's copy is a link to the same one.
    work=$(mktemp -d "$directory/.separate.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    "$objcopy" --only-keep-debug "$file" "$work/$name.debug"
    chmod -x "$work/$name.debug"
    "$strip" --strip-all -o "$work/$name" "$file"
    # objcopy reads the debug file for its checksum, and writes its bare name.
    (cd "$work" && "$objcopy" --add-gnu-debuglink="$name.debug" "$name")
    mv "$work/$name.debug" "$directory/"
    mv "$work/$name" "$file"
    rmdir "$work"
    trap - EXIT
done
