"""Two living runs over the same rootfs and input, one of which looks for the other (neighbours.c); a scenario of runs.py."""

import json
import os
import re
import subprocess
import time
from pathlib import Path

from harness import Wrong, between, equal


def output_of(pid):
    """As the candidate sees it, reached from the host."""
    return Path("/proc") / str(pid) / "root" / "output"


def is_init(pid):
    try:
        status = (Path("/proc") / str(pid) / "status").read_text()
    except OSError:
        return False  # it has ended since
    return re.search(r"^NSpid:.*\t1$", status, re.M) is not None


def neighbours_profile(bench, name, *changes):
    """python, with every call by which two processes could find each other: then only namespaces and mounts keep them apart."""
    text = (bench.profiles / "python.yaml").read_text()
    calls = "shmget, mq_open, add_key, keyctl, inotify_init1, inotify_add_watch"
    for old, new in (("  allow:\n", f"  allow:\n{''.join(f'    - {call}' + chr(10) for call in calls.split(', '))}"), *changes):
        if old not in text:
            raise Wrong(f"the profile python has no {old!r} to change")
        text = text.replace(old, new)
    (bench.profiles / f"{name}.yaml").write_text(text)
    return name


def candidate_that_waits(bench, process):
    """The host's number of the candidate that has left its marks."""
    deadline = time.monotonic() + 60 * bench.slow
    while time.monotonic() < deadline and process.poll() is None:
        for pid in re.findall(r"process (\d+): b'/task/candidate", " ".join(bench.living())):
            # Not a child of it, which ends soon.
            if is_init(pid) and (output_of(pid) / "ready").exists():
                return int(pid)
        time.sleep(0.02)
    process.kill()
    raise Wrong(f"the candidate that should leave marks did not: {process.communicate()}")


def two_runs_at_once(bench, profile):
    """What the second finds of the first, and what the host saw of both."""
    marks = bench.write_task(bench.candidate("leave-marks"), folder=bench.folder("marks"), limits={"wall_time": bench.seconds(60)})
    first = subprocess.Popen(bench.arguments(marks, profile), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pid = candidate_that_waits(bench, first)
    spaces = {kind: int(os.readlink(f"/proc/{pid}/ns/{kind}")[len(kind) + 2:-1]) for kind in ("user", "mnt", "pid", "ipc", "uts", "cgroup", "net")}
    locks = {line.split()[-3] for line in open("/proc/locks") if line.split()[-4] == str(pid)}
    second = bench.run_task(bench.write_task(bench.candidate("look-for-marks", pid)), profile)
    (output_of(pid) / "stop").touch()
    out, stderr = first.communicate(timeout=60 * bench.slow)
    bench.run_ids.add(json.loads(out)["id"])
    equal("the run that left marks", (first.returncode, json.loads(out)["verdict"]["scored"], stderr), (0, True, ""))
    second.expect(0, "succeeded", "exited")
    seen = second.record["evidence"]["established"]
    other = {kind: seen["network" if kind == "net" else "namespaces"]["namespace" if kind == "net" else kind]["observed"] for kind in spaces}
    uids = [record["evidence"]["established"]["privileges"]["uid"]["observed"].split()[0] for record in (json.loads(out), second.record)]
    return second.said(), {kind for kind in spaces if spaces[kind] == other[kind]}, uids, locks


def check(bench):
    """Each look works within one run; between two none does, and where the walls are loosened some do again."""
    own = neighbours_profile(bench, "neighbours")
    files = ("input", "rootfs")
    refused = {"vsock": "EACCES", "dev-shm": "ENOENT"}  # by walls that are there within a run too
    alone = bench.verb("meet-yourself", profile=own).expect(0, "succeeded", "exited").said()
    between("processes of one run", int(alone.pop("processes")), 2, 3)
    alone.pop("opened", None)
    found = {"kill": "ok", "kill-all": "ok", "socket": "ok", "shm": "ok", "mq": "ok", "key": "ok", **refused,
             **{f"flock-{f}": "EAGAIN" for f in files}, **{f"record-lock-{f}": "seen" for f in files}, **{f"watch-{f}": "seen" for f in files}}
    equal("within one run", alone, found)

    nothing = {"kill": "ESRCH", "kill-all": "ESRCH", "processes": "1", "socket": "ECONNREFUSED", "shm": "ENOENT", "mq": "ENOENT", "key": "ENOKEY", **refused,
               **{f"flock-{f}": "ok" for f in files}, **{f"record-lock-{f}": "nothing" for f in files}, **{f"watch-{f}": "nothing" for f in files}}
    said, shared, uids, locks = two_runs_at_once(bench, own)
    equal("between two runs", said, nothing)
    equal("namespaces that both are in", shared, set())
    if uids[0] == uids[1]:
        raise Wrong(f"both candidates are user {uids[0]} of the host")
    files_of_the_host = {os.stat(path).st_ino: os.stat(path).st_dev for path in (bench.work / "task/candidate", bench.cache / "tiny-rootfs/bin/busybox")}
    devices = {f"{os.major(device):02x}:{os.minor(device):02x}" for device in files_of_the_host.values()}
    between("locks that the host sees", len(locks), 2, 4)
    equal("locks on the host's own files", {lock for lock in locks if lock.rsplit(":", 1)[0] in devices}, set())

    loose = neighbours_profile(bench, "loose-neighbours", ("rootfs_mount: overlay", "rootfs_mount: bind"), ("user_namespace: own", "user_namespace: host"))
    said, shared, uids, _ = two_runs_at_once(bench, loose)
    equal("between two runs with loosened walls", said, {**nothing, **{name: found[name] for name in found if name.startswith(("key", "flock", "record", "watch"))}})
    equal("namespaces that both are in, with loosened walls", (shared, uids), ({"user"}, ["65534", "65534"]))
