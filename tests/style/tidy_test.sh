#!/bin/sh
# usage: tidy_test.sh BUILD_DIR    The checks of .clang-tidy over every source file of oci/, shim/ and conformance/.
set -eu
build=$1
cd "$(dirname "$0")/../.."
if ! command -v clang-tidy-19 >/dev/null; then echo "skipped: no clang-tidy-19"; exit 77; fi

# Known to be able to fail: a use after a move.
sample=$(mktemp -d)
trap 'rm -rf "$sample"' EXIT
cp .clang-tidy "$sample/"
cat >"$sample/sample.cc" <<'SAMPLE'
#include <string>
#include <utility>
std::string f(std::string a) { std::string b = std::move(a); return a + b; }
SAMPLE
if clang-tidy-19 --quiet "$sample/sample.cc" -- -std=c++23 >/dev/null 2>&1; then
  echo "self-test: a use after a move was accepted"
  exit 1
fi
find oci shim conformance -name '*.cc' -print0 | xargs -0 -P 2 -n 8 clang-tidy-19 --quiet -p "$build" --extra-arg=-Wno-error 2>/dev/null
echo "all sources pass .clang-tidy"
