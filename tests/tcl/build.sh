#!/usr/bin/env bash
# Builds SQLite's testfixture for one default page size, with loader.c in it.
#
#   build.sh DIRECTORY PAGE_SIZE        needs DIRECTORY/source (fetch.sh); leaves DIRECTORY/testfixture-PAGE_SIZE
#
# SQLITE_NO_SYNC silences the unix VFS's own syncs (220,000 of them); WALDIO_NO_SYNC=1 does the same for waldio's.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
directory=$(cd "${1:?usage: build.sh DIRECTORY PAGE_SIZE}" && pwd)
page_size=${2:?usage: build.sh DIRECTORY PAGE_SIZE}
fixture=$directory/testfixture-$page_size
[[ $fixture -nt $here/loader.c && $fixture -nt $here/build.sh && $fixture -nt $directory/source.stamp ]] && exit 0

build=$directory/build-$page_size
rm -rf "$build"
mkdir -p "$build"
cd "$build"
{
    # configure looks for tclConfig.sh only in a few places, Debian's among none of them.
    "$directory/source/configure" --with-tcl=/usr/lib/tcl8.6 --enable-threadsafe --enable-load-extension \
        --enable-fts5 --enable-session CFLAGS="-O1 -w"
    sed -i "s/-DSQLITE_DEFAULT_PAGE_SIZE=1024/-DSQLITE_DEFAULT_PAGE_SIZE=$page_size/" Makefile
    cat >>Makefile <<END

# Appended: the recipe of testfixture expands these when it runs.
TESTFIXTURE_FLAGS += -DSQLITE_EXTRA_INIT=load_extension_under_test -DSQLITE_NO_SYNC=1
TESTFIXTURE_SRC += $here/loader.c
END
    make testfixture
} >build.log 2>&1 || { tail -40 build.log >&2; echo "build.sh: see $build/build.log" >&2; exit 1; }
mv testfixture "$fixture"
rm -rf "$build"
