#!/bin/sh
# What do.sh promised, looked at after a power cut: exit code 0 all is there, 1 something is gone, 2 something nobody wrote.
set -u
promised=$(cat)

lost() { echo "$1"; exit 1; }
corrupt() { echo "$1"; exit 2; }
bytes() { if [ -e "$1" ]; then stat -c %s "$1"; else echo none; fi; }
# is FILE WORD: its lines are all WORD, and it has 64 KiB.
is() { [ "$(bytes "$1")" = 65536 ] && [ -z "$(head -c 65532 "$1" | tr -d '\n' | sed "s/$2//g")" ]; }

case $1 in
append)
    [ "$(bytes file)" != none ] || corrupt "the file is gone"
    [ "$(bytes file)" -ge 65536 ] || corrupt "the file is shorter than before"
    head -c 65536 file >/tmp/begin && is /tmp/begin old || corrupt "the old part has changed"
    [ -z "$(tail -c +65537 file | tr -d '\nnew')" ] || corrupt "the new part has what nobody wrote"
    if [ -n "$promised" ]; then
        tail -c +65537 file >/tmp/end
        is /tmp/end new || lost "what was appended is gone"
    fi
    ;;
overwrite)
    [ "$(bytes file)" = 65536 ] || corrupt "the file has another size"
    [ -z "$(tr -d '\noldnew' <file)" ] || corrupt "the file has what nobody wrote"
    [ -z "$promised" ] || is file new || lost "what was overwritten is gone"
    ;;
rename | rename-fsync)
    [ "$(bytes file)" != none ] || corrupt "the file is gone"
    [ "$(bytes file)" != 0 ] || corrupt "the file is empty"
    is file old || is file new || corrupt "the file is neither the old one nor the new one"
    [ -z "$promised" ] || is file new || lost "the file is the old one"
    ;;
create | create-fsync)
    [ -z "$promised" ] || [ "$(bytes created)" != none ] || lost "the file is gone"
    [ -z "$promised" ] || is created new || lost "the file is not whole"
    ;;
truncate)
    [ "$(bytes file)" = 65536 ] || [ "$(bytes file)" = 32768 ] || corrupt "the file has another size"
    [ -z "$promised" ] || [ "$(bytes file)" = 32768 ] || lost "the file has its old size"
    ;;
preallocate)
    [ ! -e log ] || [ -z "$(tr -d '\0\nnew' <log)" ] || corrupt "the log has what nobody wrote"
    [ -z "$promised" ] || is log new || lost "what was logged is gone"
    ;;
link)
    is file old || corrupt "the file has changed"
    [ ! -e second ] || is second old || corrupt "the second name is another file"
    [ -z "$promised" ] || [ -e second ] || lost "the second name is gone"
    ;;
*)
    echo "check.sh: no pattern '$1'" >&2
    exit 3
    ;;
esac
