#!/usr/bin/env bash
# Shows that packages/separate_debug.sh makes a library smaller, and that a backtrace through it has files and lines all the same;
# ends with a count line.
#
# The library is a small one of its own, in Rust as waldio is, which panics in a program that loads it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
# holds NAME COMMAND...: counts whether the command succeeds.
holds() {
    local name=$1
    shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAILED separate debug: $name"; fi
}
not() { ! "$@"; }

cat >"$work/library.rs" <<'END'
#[inline(never)]
fn inner(number: u32) -> u32 {
    assert!(number > 7, "too small");
    number
}
#[unsafe(no_mangle)]
pub extern "C" fn begin(number: u32) -> u32 {
    std::panic::catch_unwind(|| inner(number)).unwrap_or(0)
}
END
cat >"$work/program.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **arguments) {
    void *library = dlopen(arguments[count - 1], RTLD_NOW);
    if (library == NULL) return puts(dlerror()), 2;
    unsigned (*begin)(unsigned) = (unsigned (*)(unsigned))dlsym(library, "begin");
    return begin == NULL ? 3 : (int)begin(8) - 8 + (int)begin(1);
}
END
built=$work/library.so
rustc --edition 2024 --crate-type cdylib -C opt-level=1 -C debuginfo=line-tables-only -o "$built" "$work/library.rs"
cc -o "$work/program" "$work/program.c" -ldl
ln "$built" "$work/cargos_copy.so"
size() { stat -c %s "$1"; }
backtrace() { RUST_BACKTRACE=1 "$work/program" "$built" >"$work/told" 2>&1 || true; }
has_lines() { backtrace && grep -q '^ *at .*library\.rs:3' "$work/told"; }
panic_has_its_place() { backtrace && grep -q 'panicked at .*library\.rs:3:' "$work/told"; }
mode() { stat -c %a "$1"; }

before=$(size "$built") rights=$(mode "$built")
holds "the backtrace has lines before" has_lines
./separate_debug.sh "$built"
after=$(size "$built")
holds "it is a third at most: $before, $after bytes" test "$after" -lt $((before / 3))
holds "the rights stay" test "$(mode "$built")" = "$rights"
holds "the backtrace has lines with the debug file beside it" has_lines
holds "cargo's copy is whole" test "$(size "$work/cargos_copy.so")" = "$before"
cp "$built" "$work/once.so"
./separate_debug.sh "$built"
holds "a second time changes nothing" cmp "$built" "$work/once.so"
mv "$built.debug" "$work/elsewhere"
holds "without the debug file there are none" not has_lines
holds "a panic has its file and line" panic_has_its_place
holds "nothing else is left" test -z "$(find "$work" -name '.separate*')"

echo "$passed passed, $failed failed, 0 skipped"
((failed == 0))
