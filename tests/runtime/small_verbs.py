#!/usr/bin/env python3
"""state, list, ps, events, kill, pause and resume, with a real container of the delegate's.

usage: small_verbs.py --runtime benchsand-runtime --engine crun|runc

The container is made here by the delegate itself, where benchsand would have it, and its state is written as `create` writes it: so
that what is asked afterwards is these verbs and nothing else.
"""

import argparse
import hashlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BASE = Path("/run/benchsand")


class Wrong(Exception):
    """A verb did not do what it must."""


def equal(what, observed, expected):
    if observed != expected:
        raise Wrong(f"{what}: {observed!r}, expected {expected!r}")


def start_time(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


class Container:
    """Made, not started; the id says which root of the engine it has."""

    def __init__(self, given, work):
        self.given, self.run_id, self.root, self.id = given, "r" + secrets.token_hex(12), str(work / "root"), "engine-c1"
        self.bundle, self.state_root = work / "bundle", BASE / f"state-{given.engine}"
        rootfs = self.bundle / "rootfs"
        for folder in ("bin", "proc", "dev", "sys"):
            (rootfs / folder).mkdir(parents=True)
        shutil.copy(shutil.which("busybox"), rootfs / "bin/sleep")
        self.verb("spec", "--bundle", self.bundle)
        config = json.loads((self.bundle / "config.json").read_text())
        config["process"]["args"] = ["/bin/sleep", "1000"]
        config["linux"]["cgroupsPath"] = f"/benchsand/{self.run_id}/ct"
        config["linux"]["resources"] = {"memory": {"limit": 64 << 20}, "pids": {"limit": 32}}
        (self.bundle / "config.json").write_text(json.dumps(config))
        self.delegate("create", "--bundle", self.bundle, "--pid-file", work / "pid", self.run_id)
        self.pid = int((work / "pid").read_text())
        key = hashlib.sha256(f"{self.root}\0{self.id}".encode()).hexdigest()[:32]
        self.folder = BASE / "containers" / key
        self.folder.mkdir(mode=0o700)
        self.state = {"benchsand-container": 1, "root": self.root, "id": self.id, "run_id": self.run_id, "bundle": str(self.bundle),
                      "rootfs": str(rootfs), "delegate": given.engine, "profile": "strict", "oci_version": "1.0.2",
                      "created": "2026-01-02T03:04:05Z", "pid": self.pid, "pid_start_time": start_time(self.pid), "monitor": self.pid,
                      "monitor_start_time": start_time(self.pid), "annotations": {"a": "b"}}
        (self.folder / "state.json").write_text(json.dumps(self.state))

    def delegate(self, *words):
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        subprocess.run([self.given.engine, "--root", self.state_root, *words], check=True, timeout=60, **streams)

    def verb(self, *words, status=0, error=""):
        done = subprocess.run([self.given.runtime, "--root", self.root, *words], capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL)
        if done.returncode != status or (error not in done.stderr if error else done.stderr):
            raise Wrong(f"{words}: status {done.returncode}, stderr {done.stderr!r}, expected {status} and {error!r}")
        return done.stdout

    def remove(self):
        subprocess.run([self.given.engine, "--root", self.state_root, "delete", "--force", self.run_id], check=False, capture_output=True, timeout=60)
        shutil.rmtree(self.folder, ignore_errors=True)
        for outer in Path("/sys/fs/cgroup").glob(f"**/benchsand/{self.run_id}"):
            for folder in (outer / "ct", outer):
                if folder.exists():
                    folder.rmdir()


def status(container):
    return json.loads(container.verb("state", container.id))["status"]


def look(container):
    seen = json.loads(container.verb("state", container.id))
    for key in ("id", "pid", "bundle", "rootfs", "created", "annotations"):
        equal(key, seen[key], container.state[key])
    equal("ociVersion", seen["ociVersion"], "1.0.2")
    listed = json.loads(container.verb("list", "--format", "json"))
    equal("list", listed, [seen])
    equal("list -q", container.verb("list", "-q"), container.id + "\n")
    row = container.verb("list").splitlines()[1].split()
    equal("the table", row, [container.id, str(container.pid), seen["status"], str(container.bundle), seen["created"]])
    equal("ps", json.loads(container.verb("ps", "--format", "json", container.id)), [container.pid])
    equal("ps, table", container.verb("ps", container.id), f"PID\n{container.pid}\n")


def counters(container):
    stats = json.loads(container.verb("events", "--stats", container.id))
    equal("type and id", (stats["type"], stats["id"]), ("stats", container.id))
    data = stats["data"]
    equal("memory limit", data["memory"]["usage"]["limit"], 64 << 20)
    equal("pids", data["pids"], {"current": 1, "limit": 32})
    if not 0 < data["memory"]["usage"]["usage"] < 64 << 20 or data["cpu"]["usage"]["total"] <= 0:
        raise Wrong(f"figures {data}")


def pausing(container):
    container.verb("resume", container.id, status=1, error="it is running, not paused")
    container.verb("pause", container.id)
    equal("status", status(container), "paused")
    container.verb("pause", container.id, status=1, error="it is paused, not running")
    container.verb("resume", container.id)
    equal("status", status(container), "running")


def wait_for(container, wanted):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if status(container) == wanted:
            return
        time.sleep(0.01)
    raise Wrong(f"status {status(container)}, expected {wanted}")


def ending(container):
    container.verb("kill", container.id, "NOSUCH", status=1, error="neither a name of one")
    container.verb("kill", container.id, "0", status=1, error="neither a name of one")
    # The first process of a pid namespace takes no signal that it does not handle, as with every runtime.
    container.verb("kill", container.id, "TERM")
    equal("status", status(container), "running")
    # Also one that is paused can be killed.
    container.verb("pause", container.id)
    container.verb("kill", "--all", container.id, "SIGKILL")
    wait_for(container, "stopped")
    equal("pid", json.loads(container.verb("state", container.id))["pid"], 0)
    container.verb("kill", container.id, "9", status=1, error="container not running")
    container.verb("kill", "--all", container.id, "9")
    for words in (["ps", container.id], ["pause", container.id], ["resume", container.id], ["events", "--stats", container.id]):
        container.verb(*words, status=1, error="container not running")


def unknown(container):
    for words in (["state", "x"], ["kill", "x", "9"], ["kill", "--all", "x", "9"], ["ps", "x"], ["pause", "x"], ["resume", "x"], ["events", "--stats", "x"]):
        container.verb(*words, status=1, error="container x does not exist")
    # The same id with another root is another container.
    root, container.root = container.root, container.root + "/other"
    container.verb("state", container.id, status=1, error="does not exist")
    equal("list", container.verb("list", "-q"), "")
    container.root = root + "/./"
    equal("the same root, written otherwise", status(container), "running")
    container.root = root


def story(container):
    equal("status", status(container), "created")
    look(container)
    container.verb("pause", container.id, status=1, error="it is created, not running")
    container.delegate("start", container.run_id)
    equal("status", status(container), "running")
    for step in (look, counters, pausing, unknown, ending):
        step(container)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", required=True, type=os.path.abspath)
    parser.add_argument("--engine", required=True, choices=("crun", "runc"))
    given = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: needs root")
        return 77
    # Nobody here reaps the container's first process, so that it stays what it is after its end: a zombie at most.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    work = Path(tempfile.mkdtemp(prefix="benchsand-verbs-"))
    subprocess.run([given.runtime, "features"], check=True, stdout=subprocess.DEVNULL)  # makes the folders
    container, problem = None, ""
    try:
        container = Container(given, work)
        story(container)
    except Wrong as wrong:
        problem = str(wrong)
    finally:
        if container:
            container.remove()
        shutil.rmtree(work)
    print(f"FAIL {problem}" if problem else f"ok   every small verb, container of {given.engine}")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
