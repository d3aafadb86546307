#!/usr/bin/env bash
# Builds libwaldio-preload.so, which has to stand beside libwaldio.so.
#
#   packages/preload/build.sh FILE      with the compiler CC, or cc
set -euo pipefail
file=${1:?usage: packages/preload/build.sh FILE}

# A checked `open` of the C library's headers would be another definition of ours.
"${CC:-cc}" -shared -fPIC -fvisibility=hidden -O2 -s -Wall -Wextra -U_FORTIFY_SOURCE -Wl,-z,relro,-z,now,-z,defs \
    -o "$file" "$(dirname "${BASH_SOURCE[0]}")/waldio_preload.c" -ldl -lpthread
