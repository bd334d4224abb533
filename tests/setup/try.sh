#!/bin/sh
# From a fresh Debian 12 or Ubuntu 24.04 to the verdict on an example, as root. Can be run again.
# usage: try.sh [ENGINE...]    crun and runc, if none is named
set -eu
cd "$(dirname "$0")/../.."
setup=tests/setup

"$setup/packages.sh"
"$setup/host.sh"
"$setup/build.sh" build packaged  # both programs, and what cmake --install takes beside them
BENCHSAND_CACHE=/var/cache/benchsand "$setup/rootfs.sh" python >/dev/null

task=docs/examples/add/task.yaml
[ $# -gt 0 ] || set -- crun runc
for engine; do
  echo
  echo "== build/benchsand run $task --engine $engine"
  build/benchsand run "$task" --engine "$engine"
done
echo
echo "The records are in benchsand-results/; each folder checks itself with sha256sum -c SHA256SUMS."
