#!/usr/bin/env bash
# Makes everything that people install, from what `make build` left: wheels, npm packages, the Go module, crates, debs, tarballs,
# bills of materials, and the checksums of all of it.
#
#   packages/build.sh BUILT DIRECTORY      BUILT: where libwaldio.so, libwaldio-preload.so and joj are
#
# On x86_64 waldio is compiled for aarch64 as well, where the compiler for that is there; joj is not: it needs that machine's libelf.
# What is left out is said, with the reason.
set -euo pipefail
built=$(realpath "${1:?usage: packages/build.sh BUILT DIRECTORY}")
directory=${2:?usage: packages/build.sh BUILT DIRECTORY}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."

rm -rf "$directory"
mkdir -p "$directory"
directory=$(realpath "$directory")
left_out() { echo "left out: $1: $2" >&2; }

libraries=("$built/libwaldio.so")
preloads=("$built/libwaldio-preload.so")
cross=aarch64-unknown-linux-gnu
if [[ $(uname -m) != x86_64 ]]; then
    left_out "other machines" "that is for x86_64 only"
elif ! command -v aarch64-linux-gnu-gcc >/dev/null; then
    left_out aarch64 "its compiler is missing (packages gcc-aarch64-linux-gnu and libc6-dev-arm64-cross)"
elif [[ ! -d $(rustc --print sysroot)/lib/rustlib/$cross ]]; then
    left_out aarch64 "Rust's library for it is missing (rustup target add $cross)"
else
    out=${CARGO_TARGET_DIR:-target}/$cross/release
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
        cargo build --quiet --release --locked --package waldio --target $cross
    PREFIX=aarch64-linux-gnu- packages/separate_debug.sh "$out/libwaldio.so"
    CC=aarch64-linux-gnu-gcc packages/preload/build.sh "$out/libwaldio-preload.so"
    libraries+=("$(realpath "$out/libwaldio.so")")
    preloads+=("$(realpath "$out/libwaldio-preload.so")")
fi

for index in "${!libraries[@]}"; do
    packages/python/build_wheel.py "${libraries[index]}" "$directory"
    packages/system/build_archives.py waldio "$directory" "${libraries[index]}" "${preloads[index]}"
done
python/build_wheel.py "$directory"
packages/npm/build_npm.py "$directory" "${libraries[@]}"
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
if [[ -e $built/joj ]]; then packages/system/build_archives.py joj "$directory" "$built/joj"; else left_out joj "it is not built"; fi
packages/system/build_sbom.py "$directory" waldio joj
cd "$directory"
find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS
