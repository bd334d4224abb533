#!/bin/sh
# skipped.py: names what did not run, and refuses when one of the tests that must run was skipped or is absent.
set -eu
skipped=$(dirname "$0")/skipped.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/junit.xml" <<'JUNIT'
<testsuite>
  <testcase name="ran" status="run"><system-out>fine</system-out></testcase>
  <testcase name="broke" status="fail"><failure message=""/><system-out>bad</system-out></testcase>
  <testcase name="left-out" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>skipped: no root</system-out></testcase>
</testsuite>
JUNIT
expect() { [ "$1" = "$2" ] || { printf 'got:\n%s\nexpected:\n%s\n' "$1" "$2"; exit 1; }; }

expect "$("$skipped" "$work/junit.xml")" "not run: left-out: skipped: no root"
printf 'ran\nbroke # a comment\nelsewhere another-distribution\n' >"$work/list"
expect "$("$skipped" "$work/junit.xml" "$work/list" && echo accepted)" accepted
printf 'ran\nleft-out\nnever-heard-of\n' >"$work/list"
expect "$("$skipped" "$work/junit.xml" "$work/list" || echo "status $?")" "FAIL: left-out must run here and was skipped
FAIL: never-heard-of must run here and does not exist
status 1"
echo ok
