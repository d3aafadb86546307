#!/usr/bin/env bash
# Makes everything that people install, from what `make build` left: wheels, npm packages, the Go module, crates, debs, tarballs,
# bills of materials, and the checksums of all of it.
#
#   packages/build.sh BUILT DIRECTORY      BUILT: where libwaldio.so, libwaldio-preload.so and joj are
#
# waldio is built for musl as well, and on x86_64 waldio and joj for aarch64, where the compilers for that are there
# (packages/cross_build.sh). What is left out is said, with the reason.
set -euo pipefail
built=$(realpath "${1:?usage: packages/build.sh BUILT DIRECTORY}")
directory=${2:?usage: packages/build.sh BUILT DIRECTORY}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."

rm -rf "$directory"
mkdir -p "$directory"
directory=$(realpath "$directory")
left_out() { echo "left out: $1: $2" >&2; }
# cross CRATE TARGET: sets `file` to what was built for it, or says why it is left out and fails.
cross() {
    local status=0
    file=$(packages/cross_build.sh "$1" "$2") || status=$?
    ((status != 3)) || left_out "$1 for $2" "$file"
    ((status == 0 || status == 3)) || exit "$status"
    return "$status"
}

libraries=("$built/libwaldio.so")
preloads=("$built/libwaldio-preload.so")
musl_libraries=()
own=$(uname -m)
targets=("$own-unknown-linux-musl")
if [[ $own == x86_64 ]]; then
    targets+=(aarch64-unknown-linux-gnu aarch64-unknown-linux-musl)
else
    left_out "waldio and joj for other machines" "that is for x86_64 only"
fi
for target in "${targets[@]}"; do
    cross waldio "$target" || continue
    if [[ $target == *-musl ]]; then
        musl_libraries+=("$file")
    else
        libraries+=("$file")
        preloads+=("$(dirname "$file")/libwaldio-preload.so")
        CC=aarch64-linux-gnu-gcc packages/preload/build.sh "${preloads[-1]}"
    fi
done

for index in "${!libraries[@]}"; do
    packages/system/build_archives.py waldio "$directory" "${libraries[index]}" "${preloads[index]}"
done
for library in "${musl_libraries[@]}"; do packages/system/build_archives.py waldio "$directory" "$library"; done
for library in "${libraries[@]}" "${musl_libraries[@]}"; do packages/python/build_wheel.py "$library" "$directory"; done
python/build_wheel.py "$directory"
packages/npm/build_npm.py "$directory" "${libraries[@]}" "${musl_libraries[@]}"
packages/go/build_module.sh "$directory/go" "${libraries[@]}"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
tar --sort=name --owner=0 --group=0 --mtime=@499162500 -C "$directory" -cf - go | gzip -n >"$directory/waldio-go-$version.tar.gz"
echo "$directory/waldio-go-$version.tar.gz"
# The crates are for who links waldio. What is not committed yet is packed as well.
if cargo package --quiet --offline --no-verify --allow-dirty -p blockio -p waldio 2>"$directory/said"; then
    cp "${CARGO_TARGET_DIR:-target}/package/"{blockio,waldio}-"$version".crate "$directory"
    ls "$directory"/*.crate
else
    left_out crates "$(tail -n 1 "$directory/said")"
fi
rm -f "$directory/said"
if [[ -e $built/joj ]]; then
    packages/system/build_archives.py joj "$directory" "$built/joj"
    if [[ $own == x86_64 ]] && cross joj aarch64-unknown-linux-gnu; then
        # This machine's joj writes the pages for man.
        packages/system/build_archives.py joj "$directory" "$file" "$built/joj"
    fi
else
    left_out joj "it is not built"
fi
packages/system/build_sbom.py "$directory" waldio joj
cd "$directory"
find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS
