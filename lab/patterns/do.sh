#!/bin/sh
# One of nine ways in which programs change files, with as little synced as some do. Each line printed is a promise.
#
#   joj crash --filesystems ext4,xfs,btrfs,f2fs,nilfs2 --before 'sh lab/patterns/do.sh before' \
#       --check 'sh lab/patterns/check.sh NAME' -- sh lab/patterns/do.sh NAME
#
# `old` has 64 KiB of "old", `new` would have 64 KiB of "new".
set -eu

fill() { yes "$1" | head -c 65536; }

case $1 in
before)
    fill old >file
    sync .
    ;;
append) # to a file that was there, then fdatasync of the file
    fill new >>file
    sync --data file
    echo appended
    ;;
overwrite) # in place, then fdatasync of the file
    fill new | dd of=file conv=notrunc bs=65536 iflag=fullblock status=none
    sync --data file
    echo overwritten
    ;;
rename) # a new file over the old one, nothing synced: the old content or the new one, but whole?
    fill new >file.new
    mv file.new file
    sleep 40
    ;;
rename-fsync) # the same, with an fsync of the new file before, and none of the directory behind
    fill new >file.new
    sync file.new
    mv file.new file
    echo renamed
    ;;
create) # a new file and its fsync, none of its directory
    fill new >created
    sync created
    echo created
    ;;
create-fsync) # the same, and an fsync of its directory
    fill new >created
    sync created
    sync .
    echo created
    ;;
truncate) # to half of its size, then fsync of the file
    truncate -s 32768 file
    sync file
    echo truncated
    ;;
preallocate) # room for a file, its fsync, then data in it and fdatasync
    fallocate -l 65536 log
    sync log .
    fill new | dd of=log conv=notrunc bs=65536 iflag=fullblock status=none
    sync --data log
    echo logged
    ;;
link) # a second name, and an fsync of the file
    ln file second
    sync file
    echo linked
    ;;
*)
    echo "do.sh: no pattern '$1'" >&2
    exit 2
    ;;
esac
