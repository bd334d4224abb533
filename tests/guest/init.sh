#!/bin/sh
# The first process of the User-Mode Linux guest (run.sh): makes a cgroup v2 machine, runs shared/command.sh, stops.
# The root file system is the host's, read-only. `shared` comes as an environment variable from the kernel's command line.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/shared
mount -t hostfs -o "${shared:?}" hostfs /run/shared

# The checkout and the build folder may lie under a folder that is about to be hidden.
mkdir /run/host
mount --bind / /run/host
for folder in /tmp /var/tmp /root; do
  mount -t tmpfs -o mode=1777 tmpfs "$folder"
  for kept in "/run/host$folder"/*/; do
    [ -d "$kept" ] || continue
    name=$(basename "$kept")
    mkdir "$folder/$name" && mount --bind "$kept" "$folder/$name"
  done
done
mount -t tmpfs -o mode=755 tmpfs /var/lib
mkdir -p /dev/shm /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t devpts devpts /dev/pts

# A module here; not where modprobe looks for it.
busybox insmod "/usr/lib/uml/modules/$(uname -r)/kernel/fs/overlayfs/overlay.ko"

mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo "+cpu +memory +pids +io" >/sys/fs/cgroup/cgroup.subtree_control
ip link set lo up
# The one module that the tests need: a pair of links.
busybox insmod "/usr/lib/uml/modules/$(uname -r)/kernel/drivers/net/veth.ko"

sh /run/shared/command.sh </dev/null >/run/shared/stdout 2>/run/shared/stderr
echo $? >/run/shared/status
busybox poweroff -f
