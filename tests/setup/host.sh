#!/bin/sh
# Prepares this host's cgroups for crun and runc. Root. Lasts until the next boot; can be run again.
#
# crun refuses a hybrid host (controllers on v1, a cgroup2 tree beside them) while the cgroup2 tree still holds a
# controller. Mounting that controller's own v1 hierarchy takes it out of the cgroup2 tree.
set -eu

root=/sys/fs/cgroup
say() { echo "host: $*"; }

case $(stat -f -c %T "$root") in
  cgroup2fs)
    say "cgroup v2, nothing to prepare"
    exit 0 ;;
  tmpfs) ;;
  *)
    say "$root is neither cgroup2 nor a tmpfs with cgroup hierarchies; mount cgroups first" >&2
    exit 1 ;;
esac

unified=$root/unified
if ! grep -q " $unified cgroup2 " /proc/self/mounts; then
  say "cgroup v1, nothing to prepare"
  exit 0
fi
left=$(cat "$unified/cgroup.controllers")
if [ -z "$left" ]; then
  say "hybrid cgroups, the cgroup2 tree holds no controller, nothing to prepare"
  exit 0
fi
for controller in $left; do
  say "hybrid cgroups: mounting $controller on v1, so that crun runs"
  mkdir -p "$root/$controller"
  mount -t cgroup -o "$controller" cgroup "$root/$controller"
done
left=$(cat "$unified/cgroup.controllers")
if [ -n "$left" ]; then
  say "the cgroup2 tree still holds: $left" >&2
  exit 1
fi
