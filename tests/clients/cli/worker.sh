#!/usr/bin/env bash
# The sqlite3 shell as a client of waldio (the protocol is in ../driver.py).
set -euo pipefail

verb=$1 database=$2 library=$3

open_database() {
    [[ -z $library ]] || echo ".load $library"
    echo ".open $database"
    echo ".timeout 5000"
}

inserts() {
    open_database
    echo "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
    echo "CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, value TEXT);"
    while echo "INSERT INTO t(value) VALUES (hex(randomblob(50))); SELECT 'ack ' || max(n) FROM t;"; do :; done
}

check() {
    open_database
    echo "SELECT 'count ' || count(*) FROM t; SELECT 'max ' || max(n) FROM t;"
    echo "SELECT 'integrity ' || integrity_check FROM pragma_integrity_check;"
    if [[ -n $library ]]; then echo "SELECT 'waldio ' || count(*) FROM waldio_status WHERE name = 'this_connection' AND value LIKE 'active:%';"; else echo ".print waldio 0"; fi
}

# The shell flushes its output before it reads the next line: an "ack" is out before the next INSERT begins.
case $verb in
insert) exec sqlite3 -bail < <(inserts 2>/dev/null) ;;
check) exec sqlite3 -bail < <(check) ;;
esac
