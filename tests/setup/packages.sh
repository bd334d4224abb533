#!/bin/sh
# Installs what building, running and testing benchsand needs, from the distribution's own packages.
# Debian 12 or Ubuntu 24.04, as root. Quiet; does nothing when all is there; can be run again.
# usage: packages.sh [build] [run]          only what building needs, only what running needs
#        packages.sh --list [build] [run]   prints their names
set -eu

build="g++ cmake ninja-build pkg-config libyaml-cpp-dev nlohmann-json3-dev libseccomp-dev libssl-dev libarchive-dev
       libcurl4-openssl-dev file dpkg-dev zlib1g-dev liblzma-dev libzstd-dev libacl1-dev
       libcli11-dev doctest-dev"
tests="python3 iproute2 procps strace openssl openssh-client"
# A program may come from another vendor's package (containerd.io brings its own runc and conflicts with Debian's),
# so these are looked for by command.
programs="crun=crun runc=runc busybox=busybox-static mmdebstrap=mmdebstrap
          dockerd=docker.io docker=docker.io podman=podman containerd=containerd ctr=containerd man=man-db"
# What needs one of these is skipped, and says so, where the distribution does not have it (Ubuntu: User-Mode Linux).
optional="user-mode-linux bubblewrap netavark clang-format-14 clang-tidy-19 clang-16 libclang-rt-16-dev"
# Shells and tools that the package is tried with, and a reader of Markdown.
optional="$optional lintian zsh fish cmark-gfm"
run="crun=crun runc=runc"

list=
[ "${1:-}" != --list ] || { list=yes; shift; }
if [ $# -gt 0 ]; then
  case " $* " in *" build "*) ;; *) build= ;; esac
  case " $* " in *" run "*) programs=$run ;; *) programs= ;; esac
  tests='' optional=''
fi
if [ -n "$list" ]; then
  for package in $build; do echo "$package"; done
  for pair in $programs; do echo "${pair#*=}"; done
  exit 0
fi

say() { echo "packages: $*"; }
installed() { dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }
available() { apt-cache show --no-all-versions "$1" >/dev/null 2>&1; }

missing=
for package in $build $tests; do
  installed "$package" || missing="$missing $package"
done
for pair in $programs; do
  command -v "${pair%%=*}" >/dev/null || missing="$missing ${pair#*=}"
done
wanted=
for package in $optional; do
  installed "$package" || wanted="$wanted $package"
done

if [ -z "$missing$wanted" ]; then
  say "all installed"
  exit 0
fi
if [ "$(id -u)" != 0 ]; then
  say "must be root to install:$missing$wanted" >&2
  exit 1
fi

export DEBIAN_FRONTEND=noninteractive
# A machine that has the required packages is not asked to reach a mirror again for an optional one it cannot have.
lists=/var/lib/apt/lists
if [ -n "$missing" ] || ! ls "$lists"/*_Packages* >/dev/null 2>&1; then
  say "updating the package lists"
  apt-get -qq update
fi
for package in $wanted; do
  if available "$package"; then
    missing="$missing $package"
  else
    say "$package is not in this distribution; the tests that need it are skipped"
  fi
done
[ -n "$missing" ] || exit 0

say "installing:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086 # a list of package names
if ! apt-get -qq -y --no-install-recommends install $missing >"$log" 2>&1; then
  cat "$log" >&2
  say "apt-get could not install them" >&2
  exit 1
fi
say "done"
