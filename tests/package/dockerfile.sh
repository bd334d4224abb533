#!/bin/bash
# The Dockerfile, built by a dockerd of its own from a base image that is made of the distribution's packages: no registry.
# usage: dockerfile.sh    Root. Some minutes: the programs are compiled once more, inside.
set -eu
source=$(realpath "$(dirname "$0")/../..")
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAIL $*"; exit 1; }
ok() { echo "ok   $*"; }

[ "$(id -u)" = 0 ] || skip "needs root"
for program in dockerd docker containerd mmdebstrap; do
  command -v $program >/dev/null || skip "$program is not installed"
done
image=$("$source/tests/setup/rootfs.sh" image)
work=$(mktemp -d /var/tmp/benchsand-docker-XXXXXX)
daemon=
# shellcheck disable=SC2329 # called by the trap
clear() {
  [ -z "$daemon" ] || { kill "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null; } || true
  grep -o " $work/[^ ]*" /proc/self/mounts | sort -r | while read -r mount; do umount -l "$mount" || true; done
  rm -rf "$work"
}
trap clear EXIT

echo '{}' >"$work/daemon.json"
dockerd --config-file "$work/daemon.json" --data-root "$work/data" --exec-root "$work/exec" --pidfile "$work/pid" \
  -H "unix://$work/docker.sock" --bridge none --iptables=false >"$work/log" 2>&1 &
daemon=$!
export DOCKER_HOST=unix://$work/docker.sock DOCKER_BUILDKIT=0 DOCKER_CONFIG=$work/client
for _ in $(seq 300); do
  docker version >/dev/null 2>&1 && break
  kill -0 "$daemon" 2>/dev/null || { tail -5 "$work/log"; fail "dockerd did not start"; }
  sleep 0.2
done
tar -C "$image" --one-file-system -c . | docker import - benchsand-base >/dev/null
ok "base image from $image"

# Everything that is needed is in the base, so a build that reaches for a network fails. Debug: it compiles in half the time.
docker build --network none --build-arg BASE=benchsand-base --build-arg BUILD_TYPE=None -t benchsand "$source" >"$work/build.log" 2>&1 ||
  { tail -40 "$work/build.log"; fail "docker build"; }
version=$(sed -n 's/^project(benchsand VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
said=$(docker run --rm --network none benchsand --version)
[ "$said" = "benchsand $version" ] || fail "benchsand --version in the image: $said"
for program in benchsand-runtime crun runc; do
  docker run --rm --network none --entrypoint $program benchsand --version >/dev/null || fail "$program in the image"
done
mkdir -p "$work/task/rootfs/proc" "$work/task/rootfs/dev" "$work/task/rootfs/output"
printf 'benchsand: 1\nname: in-an-image\nrootfs: ./rootfs\ncommand: [/bin/true]\n' >"$work/task/task.yaml"
docker run --rm --network none -v "$work/task:/task:ro" benchsand check /task/task.yaml >"$work/policy" || fail "benchsand check in the image"
grep -q '"name": "in-an-image"' "$work/policy" || fail "no policy from benchsand check"
left=$(docker run --rm --network none --entrypoint sh benchsand -c 'ls -d /packages.sh /benchsand_*.deb /source /build 2>/dev/null' || true)
[ -z "$left" ] || fail "left in the image: $left"
ok "image: $said, check, both delegates"
