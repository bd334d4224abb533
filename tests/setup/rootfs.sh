#!/bin/sh
# usage: rootfs.sh tiny|python [DIR]
#
# Makes a root file system from the distribution's packages, once, and prints its directory:
#   tiny    a static busybox and its links
#   python  the essential packages and Python with its standard library
# DIR defaults to ${BENCHSAND_CACHE:-/var/cache/benchsand}/KIND-rootfs. An existing one is used as it is: a half-built
# one never bears that name. Remove the directory to have it built again.
set -eu

say() { echo "rootfs: $*" >&2; }

# The container's / is read-only, so every mount point of the examples and tests has to be there before.
mount_points="proc dev sys tmp task tests output submission data"

build_tiny() {
  mkdir -p "$1/bin" "$1/etc"
  cp "$(command -v busybox)" "$1/bin/busybox"
  "$1/bin/busybox" --list | while read -r name; do
    [ "$name" = busybox ] || ln -s busybox "$1/bin/$name"
  done
  mkdir -p "$1/usr"
  ln -s ../bin "$1/usr/bin"
}

# The apt sources of the distribution itself, as this host has them (a mirror stays the mirror), without third parties.
distribution_sources() {
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list.d/ubuntu.sources; do
    if [ -s "$file" ] && grep -q '^[^#]*[a-z]' "$file"; then echo "$file"; fi
  done
}

build_python() {
  # shellcheck disable=SC1091 # VERSION_CODENAME
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  # shellcheck disable=SC2046 # a list of files
  mmdebstrap --quiet --mode=root --variant=essential --include=python3-minimal,libpython3-stdlib \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    "$suite" "$1" $(distribution_sources)
  # The host's own name and resolver, copied in by mmdebstrap, are nothing a candidate has to know.
  rm -rf "${1:?}/dev" "$1/etc/hostname" "$1/etc/resolv.conf"
  mkdir "$1/dev"
}

kind=${1:-}
cache=${BENCHSAND_CACHE:-/var/cache/benchsand}
case $kind in
  tiny | python) ;;
  *)
    say "usage: rootfs.sh tiny|python [DIR]"
    exit 2 ;;
esac
dir=${2:-$cache/$kind-rootfs}
parent=$(dirname "$dir")
mkdir -p "$parent"

# Two builders at once: the second waits and finds it done.
exec 9>"$parent/.lock"
flock 9
if [ ! -d "$dir" ]; then
  say "building $dir"
  new=$(mktemp -d "$parent/.new-XXXXXX")
  trap 'rm -rf "$new"' EXIT
  chmod 755 "$new"
  "build_$kind" "$new"
  for point in $mount_points; do mkdir -p "$new/$point"; done
  mv -T "$new" "$dir"
fi
echo "$dir"
