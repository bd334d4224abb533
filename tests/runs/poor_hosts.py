#!/usr/bin/env python3
"""Hosts that cannot do it: each lacks one thing, in a mount namespace or process of its own. benchsand must say what is missing
in one message, end with status 3, and leave nothing.

usage: poor_hosts.py --program BENCHSAND
"""

import argparse
import errno
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True

from harness import refuse

CGROUPS = Path("/sys/fs/cgroup")
HYBRID = (CGROUPS / "unified").is_dir()


def in_mount_namespace(change):
    return lambda words: subprocess.run(["unshare", "-m", "sh", "-c", f'{change} && exec "$@"', "sh", *words],
                                        capture_output=True, text=True, timeout=60)


def as_nobody(words):
    return subprocess.run(words, capture_output=True, text=True, timeout=60, user=65534, group=65534, extra_groups=[])


def where_fails(call, error):
    return lambda words: subprocess.run(words, capture_output=True, text=True, timeout=60, preexec_fn=refuse(call, error))


def poor_hosts():
    """name, how to start a command there, what stderr must say."""
    yield "not root", as_nobody, "benchsand must be root"
    seccomp_call, fsopen_call = 317, 430
    yield "no overlay", where_fails(fsopen_call, errno.ENODEV), "fsopen overlay: No such device; load the file system: modprobe overlay, or use a profile"
    # In the place of the kernel's own file: a user namespace in which it is 0 would have no root of the host.
    yield "no user namespaces", in_mount_namespace("mount -t tmpfs none /usr/local/sbin && echo 0 >/usr/local/sbin/0 && mount --bind /usr/local/sbin/0 /proc/sys/user/max_user_namespaces"), \
        "max_user_namespaces is 0; allow some: sysctl user.max_user_namespaces=1000, or use a profile that says user_namespace: host"
    yield "all ids given away", in_mount_namespace("mount -t tmpfs none /usr/local/sbin && echo somebody:2013265920:131072 >/usr/local/sbin/ids && mount --bind /usr/local/sbin/ids /etc/subgid"), \
        "none is free from 2013265920 up"
    yield "all ids somebody's", in_mount_namespace("mount -t tmpfs none /usr/local/sbin && seq 2013265920 2 2013396990 | sed 's/.*/ann:x:&:&:::/' >/usr/local/sbin/ids && mount --bind /usr/local/sbin/ids /etc/passwd"), \
        "none is free from 2013265920 up"
    yield "a passwd file that nobody understands", in_mount_namespace("mount -t tmpfs none /usr/local/sbin && echo ann:x >/usr/local/sbin/ids && mount --bind /usr/local/sbin/ids /etc/passwd"), \
        "parse /etc/passwd: an id is due in the third field: 'ann:x'"
    yield "no seccomp notify", where_fails(seccomp_call, errno.EPERM), "must not itself run under a seccomp filter"
    yield "read-only cgroups", in_mount_namespace(
        "for m in $(awk '$3 ~ /^cgroup/ {print $2}' /proc/mounts); do mount -o remount,bind,ro $m; done"), "needs a writable cgroup file system"
    yield "no cgroup2", in_mount_namespace(f"umount -l {CGROUPS / 'unified' if HYBRID else CGROUPS}"), "find a cgroup2 hierarchy"
    if HYBRID:
        yield "no memory controller", in_mount_namespace(f"umount {CGROUPS}/memory"), "this host has no memory"
        yield "no pids controller", in_mount_namespace(f"umount {CGROUPS}/pids"), "this host has no pids"
        yield "neither memory nor cpu", in_mount_namespace(f"umount {CGROUPS}/memory {CGROUPS}/cpu"), "this host has no memory, cpu"
    yield "no delegate", in_mount_namespace("for d in /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin; do "
                                            "[ ! -e $d/crun ] || mount --bind /dev/null $d/crun; done"), "/crun: not a regular file"


def traces():
    runs = [entry.name for entry in Path("/run/benchsand").glob("*") if re.fullmatch("r[0-9a-f]{24}", entry.name)]
    return set(runs) | {str(path) for path in CGROUPS.glob("**/benchsand/*/")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    program = str(Path(parser.parse_args().program).resolve())
    if os.geteuid() != 0:
        print("skipped: needs root")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        task = Path(work) / "task.yaml"
        rootfs = Path(os.environ.get("BENCHSAND_CACHE", "/var/cache/benchsand")) / "tiny-rootfs"
        task.write_text(f"benchsand: 1\nname: poor\nrootfs: {rootfs}\ncommand: [\"true\"]\n")
        words = [program, "run", str(task), "--out", work + "/out"]
        before = traces()
        control = subprocess.run(words, capture_output=True, text=True, timeout=60)
        if os.environ.get("BENCHSAND_TEST_PROFILE") is None and control.returncode != 0:
            print(f"FAIL this host itself cannot run the task: {control.stdout} {control.stderr}")
            return 1
        results = set(os.listdir(work + "/out")) if os.path.exists(work + "/out") else set()
        for name, start, expected in poor_hosts():
            done = start(words)
            left = traces() - before
            new = (set(os.listdir(work + "/out")) if os.path.exists(work + "/out") else set()) - results
            problems = []
            if done.returncode != 3:
                problems.append(f"status {done.returncode}, expected 3")
            if expected not in done.stderr or done.stdout:
                problems.append(f"no word of {expected!r} in {done.stderr!r}, or on stdout: {done.stdout!r}")
            if left or new:
                problems.append(f"left behind: {left | new}")
            print(f"{'FAIL' if problems else 'ok  '} {name}: {'; '.join(problems) or done.stderr.strip()}")
            failed += bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
