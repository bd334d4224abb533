#!/usr/bin/env python3
"""`benchsand doctor` here, and on the hosts of poor_hosts.py and some more, each of which lacks something: it must name exactly that
and its cure, and leave nothing behind.

usage: doctor.py --program BENCHSAND [--no-dump]    --no-dump: this kernel cannot hand back a filter, and nothing else is missing
"""

import argparse
import glob
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True

import harness
import poor_hosts

WALLS = ["network", "mounts", "rootfs", "output", "memory", "processes", "cpu-time", "wall-time", "stdio", "privileges", "syscalls",
         "namespaces", "teardown", "evidence"]
NO_DUMP = {"filter dump": "CONFIG_CHECKPOINT_RESTORE"}
MOUNT_MEMORY = "mount -t cgroup -o memory cgroup /sys/fs/cgroup/memory"

# name of the host: exit status, {what is missing: a part of its cure}
EXPECTED = {
    "not root": (3, {"root": "sudo benchsand doctor"}),
    "no seccomp notify": (3, {"seccomp notify": "must not itself run under a seccomp filter",
                              "filter dump": "without a seccomp filter of its own"}),
    "no overlay": (3, {"overlay": "modprobe overlay", "mounts without a name": "CONFIG_TMPFS",
                       "filter dump": "without a seccomp filter of its own"}),
    "read-only cgroups": (3, {"writable cgroups": "writable cgroup file system"}),
    "no cgroup2": (3, {"cgroup2 tree": "mount -t cgroup2"}),
    "no memory controller": (3, {"memory limit": MOUNT_MEMORY, "swap limit": MOUNT_MEMORY}),
    "no pids controller": (3, {"limit of tasks": "mount -t cgroup -o pids cgroup /sys/fs/cgroup/pids"}),
    "neither memory nor cpu": (3, {"memory limit": MOUNT_MEMORY, "swap limit": MOUNT_MEMORY,
                                   "CPU quota": "mount -t cgroup -o cpu cgroup /sys/fs/cgroup/cpu"}),
    "no delegate": (0, {"crun": "apt-get install --reinstall crun"}),
    "no delegate at all": (3, {"crun": "apt-get install --reinstall crun", "runc": "apt-get install --reinstall runc"}),
    "no CAP_MKNOD": (3, {"capabilities": "give benchsand these"}),
    "no CAP_SYS_ADMIN": (3, {"capabilities": "give benchsand these", "mount namespace": "CAP_SYS_ADMIN", "pid namespace": "CAP_SYS_ADMIN",
                             "network namespace": "CAP_SYS_ADMIN", "mounts without a name": "CAP_SYS_ADMIN",
                             "read-only copies of mounts": "CAP_SYS_ADMIN"}),
}
# Where one thing is missing, others that rest on it are too; these may be named beside.
BESIDE = {
    "no CAP_SYS_ADMIN": {"filter dump", "ipc namespace", "uts namespace", "cgroup namespace", "overlay", "cgroup BPF", "user namespace"},
    "no cgroup2": {"memory limit", "swap limit", "limit of tasks", "CPU quota", "writable cgroups"},
}


def without_capability(name):
    return lambda words: subprocess.run(["setpriv", f"--bounding-set=-{name}", f"--inh-caps=-{name}", *words],
                                        capture_output=True, text=True, timeout=120)


def more_hosts():
    folders = "/usr/bin /usr/sbin /usr/local/bin /usr/local/sbin"
    yield "no delegate at all", poor_hosts.in_mount_namespace(
        f"for d in {folders}; do for n in crun runc; do [ ! -e $d/$n ] || mount --bind /dev/null $d/$n; done; done"), ""
    yield "no CAP_MKNOD", without_capability("mknod"), ""
    yield "no CAP_SYS_ADMIN", without_capability("sys_admin"), ""


class Doctor:
    def __init__(self, program):
        self.words, self.problems = [program, "doctor", "--json"], []

    def check(self, what, holds, seen):
        if not holds:
            self.problems.append(f"{what}: {str(seen)[:2000]}")

    def examine(self, name, start, status, missing, beside=frozenset()):
        before = standing()
        done = start(self.words)
        self.check(f"{name}: exit status {status}", done.returncode == status and not done.stderr, f"{done.returncode} {done.stderr}")
        document = json.loads(done.stdout) if done.stdout.startswith("{") else {"missing": [], "parts": [], "delegates": []}
        named = {entry["what"]: entry for entry in document["missing"]}
        more = named.keys() - missing.keys()
        self.check(f"{name}: names what is missing", missing.keys() <= named.keys() and (beside is None or more <= set(beside)),
                   document["missing"])
        for what, cure in missing.items():
            seen = named.get(what, {"cure": "", "why": ""})
            self.check(f"{name}: {what} has its cure {cure!r}", cure in seen["cure"] and seen["why"], seen)
        left = left_over(before)
        self.check(f"{name}: nothing is left behind", not left, left)
        print(f"     {name}: {', '.join(named) or 'nothing is missing'}", flush=True)
        return document

    def here(self, loosened):
        plain = lambda words: subprocess.run(words, capture_output=True, text=True, timeout=300)
        document = self.examine("this host", plain, 3 if loosened else 0, NO_DUMP if loosened else {})
        self.check("able", document.get("able") == (not loosened), document.get("able"))
        self.check("both delegates", [run["delegate"] for run in document["delegates"]] == ["crun", "runc"], document["delegates"])
        for run in document["delegates"]:
            self.check("every wall is there", [entry["wall"] for entry in run["walls"]] == WALLS, run["walls"])
            broken = [entry["wall"] for entry in run["walls"] if not entry["held"]]
            self.check("walls that do not hold", broken == (["network", "syscalls"] if loosened else []), broken)
            self.check("each wall has sources", all(entry["sources"] for entry in run["walls"]), run["walls"])
            self.check("with filter_proof: compiled", run["every_wall_with_filter_proof_compiled"] == (True if loosened else None), run)
        for part in document["parts"]:
            self.check("a part works", part["works"] or not part["needed"] or part["part"] in (NO_DUMP if loosened else {}), part)
        table = plain([*self.words[:2]])
        last = table.stdout.splitlines()[-1]
        self.check("the table's last line", last.startswith("NOT ABLE" if loosened else "able "), table.stdout)
        for wall in WALLS:
            self.check(f"the table has {wall}", any(line.startswith(wall + " ") for line in table.stdout.splitlines()), table.stdout)
        self.check("an argument is a usage error", plain([*self.words[:2], "--nonsense"]).returncode == 2, "")

    def poor(self):
        for name, start, said_by_run in [*poor_hosts.poor_hosts(), *more_hosts()]:
            if name in EXPECTED:
                self.examine(name, start, *EXPECTED[name], BESIDE.get(name, frozenset()))
                continue
            # What `benchsand run` says there, as a whole sentence: what is missing and its cure.
            document = self.examine(name, start, 3, {}, None)
            told = [f"{entry['why']}; {entry['cure']}" for entry in document["missing"]]
            self.check(f"{name}: says {said_by_run!r}", any(said_by_run in text for text in told), told)

    def engines(self):
        """What an engine says is shown, and one that talks nonsense, or nothing at all, does no harm."""
        info = {"ServerVersion": "24.0.7", "DefaultRuntime": "runc", "CgroupDriver": "systemd"}
        answers = {"an engine": b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + json.dumps(info).encode(),
                   "nonsense": b"HTTP/1.0 200 OK\r\n\r\n[1, 2", "no HTTP": b"SSH-2.0\r\n", "silence": None,
                   "other types": b"HTTP/1.0 200 OK\r\n\r\n" + json.dumps({"ServerVersion": 7, "DefaultRuntime": None}).encode()}
        for name, answer in answers.items():
            with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
                server.bind(folder + "/socket")
                server.listen()
                threading.Thread(target=answer_once, args=(server, answer), daemon=True).start()
                start = poor_hosts.in_mount_namespace(f"mount -t tmpfs -o mode=755 none /run && ln -s {folder}/socket /run/docker.sock")
                document = self.examine(f"docker is {name}", start, 0, {})
            docker = next((engine for engine in document.get("engines", []) if engine["engine"] == "docker"), {})
            hearsay = {"version": "24.0.7", "default_runtime": "runc", "cgroup_driver": "systemd"} if name == "an engine" else \
                {"version": None, "default_runtime": None, "cgroup_driver": None}
            self.check(f"docker is {name}: hearsay", docker.get("hearsay") == hearsay, docker)
            self.check(f"docker is {name}: reachable", docker.get("reachable") == (name in ("an engine", "other types")), docker)
        with tempfile.TemporaryDirectory() as folder:
            for host, why in ((f"unix://{folder}", f"connect {folder}: it is not a socket"),
                              (f"unix://{folder}/none", f"DOCKER_HOST says unix://{folder}/none, and no socket is there"),
                              ("tcp://127.0.0.1:1", "DOCKER_HOST says tcp://127.0.0.1:1, and doctor asks no engine that is not on a socket here"),
                              ("nonsense", "DOCKER_HOST")):
                pointed = lambda words, host=host: subprocess.run(words, capture_output=True, text=True, timeout=60, env={**os.environ, "DOCKER_HOST": host})
                document = self.examine(f"DOCKER_HOST is {host}", pointed, 0, {})
                docker = next((engine for engine in document.get("engines", []) if engine["engine"] == "docker"), {})
                self.check(f"DOCKER_HOST is {host}: why", (docker.get("why") or "").startswith(why), docker)


def answer_once(server, answer):
    connection, _ = server.accept()
    with connection:
        connection.recv(4096)
        if answer is None:
            time.sleep(10)
        else:
            connection.sendall(answer)


def standing():
    """What a doctor could leave: mounts here, files, and runs or cgroups that no living benchsand holds. Others may run beside."""
    mounts = {line.split(" ", 4)[4] for line in open("/proc/self/mountinfo")}
    cgroups = set(harness.RUN_ID.findall(" ".join(glob.glob("/sys/fs/cgroup/**/benchsand/r*", recursive=True))))
    return (mounts | set(glob.glob("/tmp/rootfs*") + glob.glob("/tmp/results*")) | harness.dead_runs()
            | {run for run in cgroups if not os.path.exists(f"/run/benchsand/{run}")})


def left_over(before):
    """Runs of others come and go between two looks; what a doctor left stays."""
    deadline = time.monotonic() + 30
    while (left := standing() - before) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--no-dump", action="store_true")
    given = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: needs root")
        return 77
    doctor = Doctor(str(Path(given.program).resolve()))
    doctor.here(given.no_dump)
    if not given.no_dump:
        doctor.poor()
        doctor.engines()
    print("\n".join(f"FAIL {problem}" for problem in doctor.problems) or "ok   doctor names what is missing, and its cure")
    return 1 if doctor.problems else 0


if __name__ == "__main__":
    sys.exit(main())
