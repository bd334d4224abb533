#!/bin/sh
# usage: run.sh [--deadline SECONDS] COMMAND [ARGUMENT...]
#
# Runs COMMAND on a machine with cgroup v2: a User-Mode Linux guest on this host's own files. The guest sees them
# read-only, with fresh tmpfs on the folders that programs write to (init.sh). stdout, stderr and exit status are the
# command's. Not booted, or not done by the deadline: the console is shown, status 125 or 124. No User-Mode Linux
# here: status 77, which CTest counts as skipped. BENCHSAND_* variables and the working directory go in.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
deadline=300
if [ "${1:-}" = --deadline ]; then
  deadline=$2
  shift 2
fi
[ $# -gt 0 ] || { echo "usage: run.sh [--deadline SECONDS] COMMAND [ARGUMENT...]" >&2; exit 2; }
if [ "$(id -u)" != 0 ]; then echo "skipped: the guest needs root"; exit 77; fi
if ! command -v linux.uml >/dev/null; then echo "skipped: no User-Mode Linux (package user-mode-linux)"; exit 77; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

quote() { printf "'%s' " "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }
{
  echo "cd $(quote "$PWD")"
  env | sed -n 's/^\(BENCHSAND_[A-Z_]*\)=.*/\1/p' | while read -r name; do
    eval "value=\$$name"
    # shellcheck disable=SC2154 # set by eval
    echo "export $name=$(quote "$value")"
  done
  printf 'exec '
  for argument; do quote "$argument"; done
  echo
} >"$work/command.sh"

# The guest's memory is a file in TMPDIR: on a tmpfs, not on the disk. Its own PID namespace, so that killing the one
# process leaves nothing of the guest.
mkdir "$work/memory" "$work/shared"
mv "$work/command.sh" "$work/shared/"
status=0
# shellcheck disable=SC2016 # expanded by the inner shell
timeout --foreground --signal=KILL "$deadline" \
  unshare --mount --pid --fork --kill-child --mount-proc \
  sh -c 'mount -t tmpfs tmpfs "$1/memory" && TMPDIR=$1/memory linux.uml mem=1G root=/dev/root rootfstype=hostfs \
      rootflags=/ ro init="$2" shared="$1/shared" uml_dir="$1/memory" con=null con0=fd:0,fd:1 quiet' \
  guest "$work" "$here/init.sh" </dev/null >"$work/console" 2>&1 || status=$?

for stream in stdout stderr; do [ -e "$work/shared/$stream" ] || : >"$work/shared/$stream"; done
cat "$work/shared/stdout"
cat "$work/shared/stderr" >&2
if [ -s "$work/shared/status" ]; then exit "$(cat "$work/shared/status")"; fi
{
  echo "---- console of the guest ----"
  cat "$work/console"
  echo "------------------------------"
} >&2
if [ "$status" = 137 ]; then
  echo "guest: not done after $deadline s, killed" >&2
  exit 124
fi
echo "guest: ended with status $status and without a result" >&2
exit 125
