#!/bin/sh
# The guest runner itself: what the command says comes through, a hang ends by the deadline, nothing is left behind.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
run=$here/run.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR="$work"
fail() { echo "FAIL: $*"; cat "$work/out" "$work/err"; exit 1; }

status=0
"$run" --deadline 60 sh -c 'grep . /sys/fs/cgroup/cgroup.subtree_control; echo "$1"; echo to-stderr >&2; touch "$2"; exit 7' \
  sh "it's a \"word\"; \$HOME" "$here/written" >"$work/out" 2>"$work/err" || status=$?
[ "$status" = 77 ] && { cat "$work/out"; exit 77; }
[ "$status" = 7 ] || fail "status $status, expected the command's own 7"
[ "$(sed -n 1p "$work/out")" = "cpu io memory pids" ] || fail "the guest lacks a controller"
[ "$(sed -n 2p "$work/out")" = "it's a \"word\"; \$HOME" ] || fail "an argument did not arrive as it was"
grep -qx to-stderr "$work/err" || fail "stderr did not come through"
[ ! -e "$here/written" ] || fail "the guest wrote on the host"

status=0
"$run" --deadline 30 sh -c 'echo started; sleep 100' >"$work/out" 2>"$work/err" || status=$?
[ "$status" = 124 ] || fail "status $status of a hanging command, expected 124"
grep -qx started "$work/out" || fail "the output before the hang is lost"
grep -q 'console of the guest' "$work/err" || fail "the console is not shown"
grep -qx 'guest: not done after 30 s, killed' "$work/err" || fail "the deadline is not named"

# The guest's processes name a folder in TMPDIR, which is this test's own.
if pgrep -f "linux.uml .*shared=$work/" >"$work/out"; then fail "processes are left"; fi
echo "ok"
