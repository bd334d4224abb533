#!/bin/sh
# usage: build.sh DIR TARGET [CMAKE_OPTION...]    Configures and builds one target (or "all"), saying little.
set -eu
cd "$(dirname "$0")/../.."
dir=$1 target=$2
shift 2

echo "build: $target in $dir"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { cmake -G Ninja -S . -B "$dir" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON "$@" && cmake --build "$dir" --target "$target"; } >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
