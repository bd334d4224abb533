#!/bin/sh
# usage: rootfs.sh tiny|python|native|node|jvm|build|programs|image [DIR]
#
# Makes a root file system from the distribution's packages, once, and prints its directory:
#   tiny    a static busybox and its links
#   python  the essential packages and Python with its standard library
#   native  the essential packages and programs in C++, Rust and Go
#   node    the essential packages and Node.js
#   jvm     the essential packages and a JDK without graphics
#   build   the essential packages, compilers for C and C++, make, CMake, Ninja, git
#   programs  curl, git, ssh and others that reach out, for benchsand conformance --programs
#   image   what the Dockerfile starts from: apt, and everything that benchsand is built with and runs on
# DIR defaults to ${BENCHSAND_CACHE:-/var/cache/benchsand}/KIND-rootfs. An existing one is used as it is: a half-built
# one never bears that name. Remove the directory to have it built again; image is, when its packages have changed.
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

# usage: from_packages DIR PACKAGES [OPTION...]    The essential packages and these, without documentation.
from_packages() {
  # shellcheck disable=SC1091 # VERSION_CODENAME
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  new_root=$1 packages=$2
  shift 2
  # shellcheck disable=SC2046 # a list of files
  mmdebstrap --quiet --mode=root --variant=essential --include="$packages" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' "$@" \
    "$suite" "$new_root" $(distribution_sources)
  # The host's own name and resolver, copied in by mmdebstrap, are nothing a candidate has to know.
  rm -rf "${new_root:?}/dev" "$new_root/etc/hostname" "$new_root/etc/resolv.conf"
  mkdir "$new_root/dev"
}

build_python() { from_packages "$1" python3-minimal,libpython3-stdlib; }
build_native() { from_packages "$1" ninja-build,ripgrep,fd-find,hyperfine,fzf; }
build_node() { from_packages "$1" nodejs; }
# The modules for making run-time images are half of a JDK. Its package links manual pages and fails without their folder.
build_jvm() {
  # shellcheck disable=SC2016 # expanded by the hook's shell
  from_packages "$1" default-jdk-headless --dpkgopt='path-exclude=/usr/lib/jvm/*/jmods/*' \
    --essential-hook='mkdir -p "$1/usr/share/man/man1"'
}
build_build() { from_packages "$1" gcc,g++,make,cmake,ninja-build,git; }
build_programs() {
  from_packages "$1" apt,bind9-dnsutils,curl,git,iputils-ping,netcat-openbsd,openssh-client,perl-base,python3-pip,python3-requests,wget
}
# Whole packages, with their documentation; the lists of packages.sh, so that nothing is left to be fetched.
image_packages() { "$(dirname "$0")/packages.sh" --list build run | tr '\n' ','; }
build_image() {
  packages=$(image_packages)
  # shellcheck disable=SC1091,SC2046 # VERSION_CODENAME; a list of files
  mmdebstrap --quiet --mode=root --variant=minbase --include="${packages%,}" \
    "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$1" $(distribution_sources)
  rm -rf "${1:?}/dev" "$1/etc/hostname" "$1/etc/resolv.conf"
  mkdir "$1/dev"
  echo "$packages" >"$1/etc/benchsand-packages"
}

kind=${1:-}
cache=${BENCHSAND_CACHE:-/var/cache/benchsand}
case $kind in
  tiny | python | native | node | jvm | build | programs | image) ;;
  *)
    say "usage: rootfs.sh tiny|python|native|node|jvm|build|programs|image [DIR]"
    exit 2 ;;
esac
dir=${2:-$cache/$kind-rootfs}
parent=$(dirname "$dir")
mkdir -p "$parent"

# Two builders of one kind at once: the second waits and finds it done.
exec 9>"$parent/.$kind.lock"
flock 9
# One that was built before benchsand needed another package is none.
if [ "$kind" = image ] && [ -d "$dir" ] && [ "$(cat "$dir/etc/benchsand-packages" 2>/dev/null)" != "$(image_packages)" ]; then
  say "its packages have changed: removing $dir"
  rm -rf --one-file-system "${dir:?}"
fi
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
