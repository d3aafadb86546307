#!/usr/bin/env bash
# Fetches the source of Debian's sqlite3 package, with its 1,200 TCL test files, into the directory given.
#
#   fetch.sh DIRECTORY        leaves DIRECTORY/source and DIRECTORY/source.stamp
#
# The machine's apt is neither changed nor trusted less: the package lists go to a directory of our own, the
# deb-src lines are derived from the machine's deb lines, and apt checks the signatures as it always does.
set -euo pipefail

directory=${1:?usage: fetch.sh DIRECTORY}
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
[[ -f $directory/source.stamp ]] && exit 0

for tool in apt-get dpkg-source; do
    command -v "$tool" >/dev/null || { echo "fetch.sh: $tool is missing (apt-get install dpkg-dev)" >&2; exit 1; }
done

apt_root=$(mktemp -d "$directory/apt.XXXXXX")
trap 'rm -rf "$apt_root"' EXIT
mkdir -p "$apt_root"/{state/lists/partial,cache/archives/partial,unpack}

# Only the distribution's own suites: third parties' lines (Node, PostgreSQL) carry no sqlite3 source.
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:?no VERSION_CODENAME in /etc/os-release}")
signed_by=""
[[ -r /usr/share/keyrings/debian-archive-keyring.gpg && $(. /etc/os-release && echo "$ID") == debian ]] &&
    signed_by="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' | sort -u |
    while read -r uri suite component; do
        [[ $component == main && ($suite == "$codename" || $suite == "$codename"-updates || $suite == "$codename"-security) ]] || continue
        echo "deb-src $signed_by$uri $suite $component"
    done >"$apt_root/sources.list"
[[ -s $apt_root/sources.list ]] || { echo "fetch.sh: apt knows no $codename package source" >&2; exit 1; }

apt_options=(
    -o "Dir::Etc::sourcelist=$apt_root/sources.list" -o Dir::Etc::sourceparts=-
    -o "Dir::State=$apt_root/state" -o "Dir::Cache=$apt_root/cache"
    -o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none -o Acquire::Retries=3
)
apt-get "${apt_options[@]}" -q update >"$apt_root/log" 2>&1 || { cat "$apt_root/log" >&2; exit 1; }
(cd "$apt_root/unpack" && apt-get "${apt_options[@]}" -q source sqlite3) >>"$apt_root/log" 2>&1 ||
    { cat "$apt_root/log" >&2; exit 1; }

rm -rf "$directory/source"
mv "$apt_root"/unpack/sqlite3-*/ "$directory/source"
cat "$directory/source/VERSION" >"$directory/source.stamp"
echo "sqlite3 $(cat "$directory/source.stamp") unpacked below $directory"
