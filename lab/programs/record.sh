#!/bin/sh
# The recordings of lab/recordings, made again: each program runs in the emulated machine, whose clock counts instructions.
#
#   lab/programs/record.sh target/release/joj [NAME...]      all of them, or these; into the current directory
set -eu
joj=$(realpath "$1")
shift
programs=$(dirname "$(realpath "$0")")

# NAME PROGRAM OPTIONS...
record() {
    name=$1 program=$2
    shift 2
    # Python without the user's packages, and from a place that says nothing of this machine.
    python="/usr/bin/python3 -E -s -S -B /tmp/programs/$program.py"
    "$joj" lab exec --device ram --take "/tmp/$name.joj" -- /bin/sh -c "
        mkdir /tmp/programs /data/phone
        cp $programs/*.py /tmp/programs
        $python --prepare /data/phone $*
        sync
        exec $joj record -o /tmp/$name.joj -- $python /data/phone $*"
}

known="
browser browser
browser-usb browser --network usb
installer installer
launch-game launch game
launch-weather launch weather
launch-twitter launch twitter
launch-gmail launch gmail
feed feed
mail mail
maps maps
sql sql
background background --pace 0.02
"
wanted=" $* "
echo "$known" | while read -r name program options; do
    [ -n "$name" ] || continue
    case $wanted in
    "  " | *" $name "*) record "$name" "$program" $options ;;
    esac
done
