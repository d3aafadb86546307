#!/usr/bin/env bash
# Builds waldio or joj for another machine or another C library than this one's; prints the file's path.
#
#   packages/cross_build.sh waldio aarch64-unknown-linux-gnu|x86_64-unknown-linux-musl|aarch64-unknown-linux-musl
#   packages/cross_build.sh joj aarch64-unknown-linux-gnu
#
# Where a compiler or a library is missing, it prints which one instead, with exit code 3.
set -euo pipefail
crate=${1:?usage: packages/cross_build.sh CRATE TARGET}
target=${2:?usage: packages/cross_build.sh CRATE TARGET}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
machine=${target%%-*}
own=$(uname -m)
missing() { echo "$1"; exit 3; }

case $target in
aarch64-unknown-linux-gnu | aarch64-unknown-linux-musl | "$own-unknown-linux-musl") ;;
*) echo "packages/cross_build.sh: nothing is built for $target here" >&2; exit 2 ;;
esac
compiler=cc prefix=""
if [[ $machine != "$own" ]]; then
    prefix=$machine-linux-gnu- compiler=$machine-linux-gnu-gcc
    command -v "$compiler" >/dev/null || missing "its compiler is missing (packages gcc-aarch64-linux-gnu and libc6-dev-arm64-cross)"
fi
rust=$(rustc --print sysroot)/lib/rustlib/$target/lib
[[ -d $rust ]] || missing "Rust's library for it is missing (rustup target add $target)"
directory=$(realpath -m "${CARGO_TARGET_DIR:-target}")/$target

if [[ $target == *-musl ]]; then
    [[ -e $rust/self-contained/libunwind.a ]] || missing "this Rust has no libunwind.a for it: rustup's has one"
    links=$directory/linked-with
    mkdir -p "$links"
    # For the linker musl is a name: what it has is in the program that loads the library. This one is Alpine's, which musllinux
    # wheels have to use; musl itself takes each name with libc. in front for its own.
    "$compiler" -shared -nostdlib -Wl,-soname,"libc.musl-$machine.so.1" -xc /dev/null -o "$links/libc.so"
    # Rust takes a library's unwinder from libgcc_s.so.1, which a plain Alpine does not have. The one for static programs goes into
    # the library in its place.
    echo "INPUT(\"$rust/self-contained/libunwind.a\")" >"$links/libgcc_s.so"
    flags=(-C target-feature=-crt-static -L "native=$links" -C link-arg=-Wl,--no-as-needed -C link-arg=-lc)
    # Between two of them stands this byte: a path may have spaces.
    CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && echo "${flags[*]}")
    export CARGO_ENCODED_RUSTFLAGS
fi
if [[ $crate == joj ]]; then
    # libbpf, inside joj, reads its programs with these.
    echo 'int main(void) { return 0; }' | "$compiler" -xc - -include libelf.h -include zlib.h -lelf -lz -o /dev/null 2>/dev/null ||
        missing "libelf or zlib for it is missing (after dpkg --add-architecture arm64: packages libelf-dev:arm64 and zlib1g-dev:arm64)"
fi

cargo build --quiet --release --locked --package "$crate" --target "$target" --config "target.$target.linker='$compiler'" >&2
file=$directory/release/joj
[[ $crate == joj ]] || file=$directory/release/libwaldio.so
PREFIX=$prefix packages/separate_debug.sh "$file" >&2
echo "$file"
