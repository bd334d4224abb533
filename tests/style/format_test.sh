#!/bin/sh
# clang-format 14 on every source file: other versions lay out the same .clang-format differently.
set -eu
cd "$(dirname "$0")/../.."
if ! command -v clang-format-14 >/dev/null; then echo "skipped: no clang-format-14"; exit 77; fi

# Known to be able to fail: a line that the style would change.
if echo 'int  main( ){return 0 ;}' | clang-format-14 --dry-run --Werror --assume-filename=oci/sample.cc 2>/dev/null; then
  echo "self-test: a badly laid out line was accepted"
  exit 1
fi
find oci shim conformance tests \( -name '*.h' -o -name '*.cc' -o -name '*.c' \) -print0 |
  xargs -0 clang-format-14 --dry-run --Werror
echo "all sources are laid out by .clang-format"
