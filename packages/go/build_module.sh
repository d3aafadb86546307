#!/usr/bin/env bash
# Makes the Go module from its source and built libraries: Go takes both from one folder.
#
#   packages/go/build_module.sh DIRECTORY LIBRARY...      libwaldio.so for x86_64, aarch64 or both
set -euo pipefail
directory=${1:?usage: packages/go/build_module.sh DIRECTORY LIBRARY...}
shift
here=$(dirname "${BASH_SOURCE[0]}")

mkdir -p "$directory"
cp "$here"/{go.mod,go.sum,README.md,waldio.go,waldio_test.go} "$here"/library*.go "$here"/../../LICENSE-* "$directory"
for library in "$@"; do
    case $(readelf --file-header --wide "$library" | awk -F ': *' '$1 ~ /Class|Machine/ { printf "%s ", $2 }') in
    "ELF64 Advanced Micro Devices X86-64 ") machine=amd64 ;;
    "ELF64 AArch64 ") machine=arm64 ;;
    *) echo "$library is no library for linux/amd64 or linux/arm64" >&2; exit 1 ;;
    esac
    cp "$library" "$directory/libwaldio_linux_$machine.so"
done
# An empty one is refused by Register, with the machine's name.
for machine in amd64 arm64; do
    [[ -e $directory/libwaldio_linux_$machine.so ]] || : >"$directory/libwaldio_linux_$machine.so"
done
