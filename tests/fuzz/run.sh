#!/bin/sh
# usage: run.sh NAME SECONDS BUILD_DIR    Builds fuzz_NAME with clang and lets it run, from the corpus that is kept here.
# What it finds new stays in BUILD_DIR/new-NAME; an input that fails, in BUILD_DIR. Exit 77 without clang or its libFuzzer.
set -eu
name=$1 seconds=$2
mkdir -p "$3"
build=$(cd "$3" && pwd)
cd "$(dirname "$0")"

for version in 19 18 17 16; do
  compiler=$(command -v clang++-$version) || continue
  # Found as long as its runtime is installed too, which is a package of its own.
  if printf 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
    "$compiler" -x c++ -fsanitize=fuzzer - -o "$build/probe" 2>/dev/null; then
    break
  fi
  compiler=
done
if [ -z "${compiler:-}" ]; then
  echo "skipped: no clang with libFuzzer (apt-get install clang-16 libclang-rt-16-dev)"
  exit 77
fi

launcher=
if command -v ccache >/dev/null; then launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
cmake -G Ninja -S ../.. -B "$build" -DBENCHSAND_FUZZ=ON -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_C_COMPILER="${compiler%++*}-${compiler##*-}" $launcher >"$build/log"
cmake --build "$build" --target "fuzz_$name" >>"$build/log" || { cat "$build/log"; exit 1; }
mkdir -p "$build/new-$name"
# What engines really wrote is where these two start.
seeds=corpus/$name
case $name in admit | exec) seeds="$seeds ../fixtures/oci" ;; esac
# A fixed first seed would try the same each time.
"$build/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=65536 -print_final_stats=1 \
  -artifact_prefix="$build/" "$build/new-$name" $seeds 2>"$build/log-$name" || { tail -40 "$build/log-$name"; exit 1; }
grep -E '^(Done|stat::number_of_executed_units)' "$build/log-$name"
