#!/bin/sh
# All tests, from a fresh Debian 12 or Ubuntu 24.04, as root. Can be run again.
# What is skipped on this machine is listed with its reason; arguments go to ctest (-R NAME, -V, ...).
set -eu
cd "$(dirname "$0")/../.."
setup=tests/setup
BENCHSAND_CACHE=${BENCHSAND_CACHE:-/var/cache/benchsand}
export BENCHSAND_CACHE

"$setup/packages.sh"
"$setup/host.sh"
# Two at a time, and while the compiler works: they wait for the mirror as often as for the processor.
printf '%s\n' build image jvm node native programs python tiny | xargs -P 2 -n 1 "$setup/rootfs.sh" >/dev/null &
systems=$!
trap 'kill "$systems" 2>/dev/null || true' EXIT
for tests in unit_tests host_tests; do
  # Of debug information the lines alone, which is what a sanitizer's report names.
  "$setup/build.sh" build-sanitized $tests -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-g1 -DBENCHSAND_SANITIZE=ON
done
"$setup/build.sh" build all -DBENCHSAND_SANITIZED_BUILD="$PWD/build-sanitized"
wait "$systems"
trap - EXIT

status=0
ctest --test-dir build -j 2 --timeout 900 --output-on-failure --output-junit junit.xml "$@" || status=$?
"$setup/skipped.py" build/junit.xml
exit "$status"
