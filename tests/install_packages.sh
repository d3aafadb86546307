#!/usr/bin/env bash
# Installs the Debian packages that building (`build`), the lab (`lab`) or testing (`test`) needs, when they are missing.
#
#   tests/install_packages.sh build|lab|test
#
# As root it installs them with apt-get; as anyone else it names them, says how to install them, and stops.
set -euo pipefail

# clang compiles joj's eBPF program; libelf and zlib are what loads it.
build_packages=(gcc libc6-dev libsqlite3-0 clang libelf-dev zlib1g-dev pkgconf)
lab_packages=(qemu-system-x86)
test_packages=(
    python3-venv              # where the wheel is installed
    sqlite3 python3 procps    # the stock shell and the stock Python: clients of the extension; kill
    tcl-dev tcl dpkg-dev make # SQLite's own test suite: its source package and what builds it
    libsqlite3-dev            # to build cksumvfs from there
    libsqlcipher0             # an SQLCipher, if one that is too old
    fio                       # load beneath a trace
    apache2-utils             # ab, the load of a Django site (`make soak`)
    musl-tools                # a program with musl that loads waldio (`make soak`)
    e2fsprogs xfsprogs btrfs-progs f2fs-tools nilfs-tools # file systems in image files
    fuse3 bindfs util-linux strace                        # and in user space; looking at system calls
)

case ${1:-} in
build) wanted=("${build_packages[@]}") ;;
lab) wanted=("${build_packages[@]}" "${lab_packages[@]}") ;;
test) wanted=("${build_packages[@]}" "${lab_packages[@]}" "${test_packages[@]}") ;;
*) echo "usage: tests/install_packages.sh build|lab|test" >&2; exit 2 ;;
esac

if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
    missing=()
    for package in "${wanted[@]}"; do
        status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
        [[ $status == installed ]] || missing+=("$package")
    done
    if ((${#missing[@]} > 0)); then
        if ((EUID != 0)); then
            echo "missing packages: ${missing[*]}" >&2
            echo "install them with: sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}" >&2
            exit 1
        fi
        echo "installing: ${missing[*]}"
        export DEBIAN_FRONTEND=noninteractive
        install=(apt-get -q -y install --no-install-recommends "${missing[@]}")
        # The lists of a fresh machine are empty or old: update only then, it is the slow part.
        "${install[@]}" >/dev/null 2>&1 || { apt-get -q update >/dev/null && "${install[@]}"; }
    fi
else
    echo "not a Debian system: nothing installed; needed are the likes of ${wanted[*]}" >&2
fi

# rustup's minimal profile leaves out both tools of `make lint`. A failure is no reason to stop: lint then skips.
if [[ $1 == test ]] && command -v rustup >/dev/null; then
    cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt || true
    cargo clippy --version >/dev/null 2>&1 || rustup component add clippy || true
fi
