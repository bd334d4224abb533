#!/bin/sh
# usage: install.sh ENGINE    As root, on a fresh Debian 12 or Ubuntu 24.04: benchsand from this checkout, and its runtime in the engine.
set -eu
engine=$1
cd "$(dirname "$0")/../../.."
tests/setup/packages.sh build run
tests/setup/host.sh
tests/setup/build.sh build packaged
cmake --install build --prefix /usr/local >/dev/null
case $engine in
  docker) benchsand install docker && systemctl reload docker ;;
  podman) benchsand install podman ;;
esac
benchsand --version
