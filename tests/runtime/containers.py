#!/usr/bin/env python3
"""Containers made by benchsand-runtime alone, as an engine would call it: create, start, run, exec, update, delete.

usage: containers.py --runtime benchsand-runtime --program benchsand --engine crun|runc [--compiled] [NAME...]

Runs in a mount namespace of its own with records, settings and profiles of its own. --compiled: for a kernel that cannot hand back a filter.
"""

import argparse
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
BASE = Path("/run/benchsand")
PR_SET_CHILD_SUBREAPER = 36
SCENARIOS = []


def scenario(function):
    SCENARIOS.append(function)
    return function


class Wrong(Exception):
    """Something is not as it must be."""


def equal(what, observed, expected):
    if observed != expected:
        raise Wrong(f"{what}: {observed!r}, expected {expected!r}")


def wait_for(what, condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Wrong(f"{what}: not after {seconds} s")
        time.sleep(0.02)


class Containers:
    """A bundle and the calls about it."""

    count = 0

    def __init__(self, given, work):
        self.given, self.work, self.root, self.runs = given, work, str(work / "root"), set()
        self.bundle = work / "bundle"
        rootfs = self.bundle / "rootfs"
        (rootfs / "bin").mkdir(parents=True)
        for name in ("sh", "sleep"):
            shutil.copy(shutil.which("busybox"), rootfs / "bin" / name)
        self.call("spec", "--bundle", self.bundle)
        self.plain = json.loads((self.bundle / "config.json").read_text())

    def call(self, *words, root=None, **more):
        # Files, for a pipe is the container's, and would be open for as long as it lives.
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            done = subprocess.run([self.given.runtime, "--root", root or self.root, *map(str, words)], stdout=out, stderr=err, timeout=200,
                                  stdin=subprocess.DEVNULL, check=False, **more)
            for stream in (out, err):
                stream.seek(0)
            done.stdout, done.stderr = out.read(), err.read()
        return done

    def good(self, *words, **more):
        done = self.call(*words, **more)
        if done.returncode != 0:
            raise Wrong(f"{words}: status {done.returncode}, {done.stderr!r}")
        return done.stdout

    def refused(self, words, *words_of_error, **more):
        done = self.call(*words, **more)
        if done.returncode == 0 or not all(word in done.stderr for word in words_of_error):
            raise Wrong(f"{words}: status {done.returncode}, {done.stderr!r}, expected an error with {words_of_error}")

    def bundle_of(self, script, annotations=None):
        config = json.loads(json.dumps(self.plain))
        config["process"]["args"], config["process"]["terminal"] = ["/bin/sh", "-c", script], False
        # No scenario is about the clock; on a slow machine it must not come first.
        config["annotations"] = annotations or {"benchsand.limits.wall_time": "10m"}
        (self.bundle / "config.json").write_text(json.dumps(config))

    def new(self, script, root=None, annotations=None):
        """The id and init's number of a container that is created."""
        Containers.count += 1
        identity = f"bsc-{os.getpid()}-{Containers.count}"
        self.bundle_of(script, annotations)
        self.good("create", "--bundle", self.bundle, "--pid-file", self.work / "pid", identity, root=root)
        self.runs.add(self.state_file(identity)["run_id"])
        text = (self.work / "pid").read_text()
        if not text.isdigit():
            raise Wrong(f"pid file: {text!r}")
        return identity, int(text)

    def status(self, identity, root=None):
        return json.loads(self.good("state", identity, root=root))["status"]

    def record(self, identity):
        return json.loads(Path(f"/var/lib/benchsand/records/{identity}.json").read_text())

    def wait_for_record(self, identity):
        """The monitor stores the first one when create has ended already."""
        wait_for("record", lambda: Path(f"/var/lib/benchsand/records/{identity}.json").exists())

    def outcome(self, identity):
        record = self.record(identity)
        return record["verdict"]["scored"], record["verdict"]["outcome"], record["end"]["cause"]

    def state_file(self, identity):
        for path in BASE.glob("containers/*/state.json"):
            state = json.loads(path.read_text())
            if state["id"] == identity:
                return state
        raise Wrong(f"{identity} has no state")


def reap(pid):
    """Its wait status. We are the subreaper, as containerd's shim is."""
    return os.waitpid(pid, 0)[1]


@scenario
def a_life(c):
    identity, pid = c.new("echo hello; exit 7")
    equal("status", c.status(identity), "created")
    c.good("start", identity)
    equal("wait status", os.waitstatus_to_exitcode(reap(pid)), 7)
    # The engine has just heard of the end: the record must be there already.
    equal("record", c.outcome(identity), (True, "failed", "exited"))
    equal("exit code", c.record(identity)["end"]["exit_code"], 7)
    equal("status", c.status(identity), "stopped")
    c.good("delete", identity)
    c.refused(["state", identity], "does not exist")
    equal("mode", oct(os.stat(f"/var/lib/benchsand/records/{identity}.json").st_mode & 0o7777), "0o600")


@scenario
def a_signal_of_its_own_is_kept(c):
    for script, expected in (("kill -9 $$; sleep 5", None), ("(kill -SEGV $$); trap '' TERM; kill -TERM $$; exit 3", 3)):
        identity, pid = c.new(script)
        c.good("start", identity)
        status = os.waitstatus_to_exitcode(reap(pid))
        if expected is not None:
            equal("exit code", status, expected)
        end = c.record(identity)["end"]
        equal("the record says what the engine saw", (end["exit_code"], end["signal"]), (status, None) if status >= 0 else (None, -status))
        c.good("delete", identity)


@scenario
def what_cannot_be_made_leaves_a_record(c):
    """And one that is made leaves one from the start."""
    identity, pid = c.new("exit 0")
    c.wait_for_record(identity)
    equal("before its start", c.outcome(identity), (False, "fault", "not-started"))
    c.refused(["create", "--bundle", c.bundle, identity], "already exists")
    c.good("start", identity)
    reap(pid)
    equal("after its end", c.outcome(identity), (True, "succeeded", "exited"))
    c.good("delete", identity)

    def program(config):
        config["process"]["args"] = ["/not/there"]

    def rootfs(config):
        config["root"]["path"] = "elsewhere"

    def version(config):
        config["mounts"] = "none"

    for change, word in ((program, "/not/there"), (rootfs, "elsewhere"), (version, "mounts")):
        c.bundle_of("exit 0")
        config = json.loads((c.bundle / "config.json").read_text())
        change(config)
        (c.bundle / "config.json").write_text(json.dumps(config))
        # Of an id that was scored.
        c.refused(["create", "--bundle", c.bundle, identity], word)
        equal(f"record, {change.__name__}", c.outcome(identity)[0], False)
        if word not in (said := json.dumps(c.record(identity)["verdict"]["failures"])):
            raise Wrong(f"the record does not say what went wrong: {said}")
        c.refused(["state", identity], "does not exist")


@scenario
def an_id_is_taken_once(c):
    identity, pid = c.new("exit 0")
    c.refused(["create", "--bundle", c.bundle, identity], "already exists")
    other = str(c.work / "other-root")
    c.good("create", "--bundle", c.bundle, "--pid-file", c.work / "pid2", identity, root=other)  # another engine's id
    c.good("start", identity)
    c.refused(["start", identity], identity)
    reap(pid)
    c.good("delete", identity)
    c.good("delete", "--force", identity, root=other)
    reap(int((c.work / "pid2").read_text()))


@scenario
def what_never_started_has_no_score(c):
    identity, pid = c.new("exit 0")
    c.good("delete", identity)
    reap(pid)
    equal("record", c.outcome(identity), (False, "fault", "not-started"))


@scenario
def running_ones_are_deleted_by_force_alone(c):
    identity, pid = c.new("sleep 1000")
    c.good("start", identity)
    c.refused(["delete", identity], "running")
    c.good("delete", "--force", identity)
    equal("signal", os.WTERMSIG(reap(pid)), signal.SIGKILL)
    equal("record", c.outcome(identity), (False, "fault", "killed"))


@scenario
def run_returns_what_the_program_returned(c):
    c.bundle_of("echo out; echo err >&2; exit 5")
    done = c.call("run", "--bundle", c.bundle, f"bsc-run-{os.getpid()}")
    equal("run", (done.returncode, done.stdout, done.stderr), (5, "out\n", "err\n"))


@scenario
def exec_and_update_of_one_that_runs(c):
    identity, pid = c.new("while [ ! -e /output/go ]; do sleep 0.05; done; exit 4")
    c.refused(["exec", identity, "/bin/sh", "-c", "exit 0"], "not running")
    c.good("start", identity)
    done = c.call("exec", identity, "/bin/sh", "-c", "read x < /proc/self/status; echo $x; exit 9")
    equal("exec", (done.returncode, done.stdout), (9, "Name: sh\n"))
    c.refused(["update", "--memory", "many", identity], "memory")
    c.good("update", "--memory", 128 << 20, "--memory-swap", "-1", "--pids-limit", 0, identity)
    c.good("exec", identity, "/bin/sh", "-c", ": > /output/go")
    equal("exit code", os.waitstatus_to_exitcode(reap(pid)), 4)
    record = c.record(identity)
    equal("record", c.outcome(identity), (True, "failed", "exited"))
    equal("execs", record["evidence"]["spent"]["evidence"]["execs"]["observed"], 2)
    equal("memory", record["policy"]["limits"]["memory_bytes"], 128 << 20)
    c.good("delete", identity)


@scenario
def an_exec_does_not_take_the_tasks_of_the_candidate(c):
    identity, pid = c.new("trap 'exit 0' TERM; i=0; while [ $i -lt 28 ]; do sleep 1000 & i=$((i+1)); done; wait")
    c.good("start", identity)
    cgroup = f"/benchsand/{c.state_file(identity)['run_id']}/ct"
    tasks = next(path for path in (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")) if Path(f"{path}{cgroup}/pids.current").exists())
    wait_for("29 tasks", lambda: int(Path(f"{tasks}{cgroup}/pids.current").read_text()) >= 29)
    c.refused(["exec", identity, "/bin/sh", "-c", "exit 0"], "of its 32 tasks")
    c.good("kill", identity, "TERM")
    equal("exit code", os.waitstatus_to_exitcode(reap(pid)), 0)
    equal("record", c.outcome(identity), (True, "succeeded", "exited"))
    c.good("delete", identity)


@scenario
def no_container_without_its_monitor(c):
    for started in (False, True):
        identity, pid = c.new("sleep 1000")
        if started:
            c.good("start", identity)
        c.wait_for_record(identity)
        os.kill(c.state_file(identity)["monitor"], signal.SIGKILL)
        if not started:
            c.refused(["start", identity], "its monitor has ended (there is no record yet: ")
        c.good("delete", "--force", identity)
        reap(pid)
        equal("record", c.outcome(identity), (False, "fault", "not-started"))


def killed_in(c, part, *words):
    """A call that is killed when so much of its usual time is over: as when somebody kills the engine's shim, or memory runs out."""
    with open(os.devnull, "w") as nowhere:
        call = subprocess.Popen([c.given.runtime, "--root", c.root, *map(str, words)], stdin=subprocess.DEVNULL, stdout=nowhere, stderr=nowhere)
        time.sleep(part)
        call.kill()
        call.wait()


def reap_all():
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


def all_runs():
    trees = [f"/sys/fs/cgroup/{tree}/benchsand" for tree in os.listdir("/sys/fs/cgroup")] + ["/sys/fs/cgroup/benchsand"]
    return {name for folder in (BASE, *trees) if os.path.isdir(folder) for name in os.listdir(folder) if re.fullmatch("r[0-9a-f]{24}", name)}


def is_of_others(c, run):
    try:
        return str(c.work) not in (BASE / run / "config.json").read_text()
    except OSError:
        return False


def cleared(c, identity, before, when):
    """What an engine does then, and what an operator does: nothing is left, and what did not end by itself has no score."""
    c.good("delete", "--force", identity)
    done = subprocess.run([c.given.program, "gc"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200)
    equal(f"gc after {when}", done.returncode, 0)
    left = set()

    def nothing():
        reap_all()
        left.clear()
        left.update(run for run in all_runs() - before if not is_of_others(c, run))
        return not left
    try:
        wait_for("nothing left", nothing)
    except Wrong as wrong:
        raise Wrong(f"{when}: left {left}; gc said {done.stdout}") from wrong
    # The monitor outlives a create that is killed by the moment in which it finds that out.
    wait_for(f"{when}: no container", lambda: c.call("state", identity).returncode != 0)
    record = Path(f"/var/lib/benchsand/records/{identity}.json")
    return json.loads(record.read_text())["verdict"] if record.exists() else None


def usual_time(call, *words):
    started = time.monotonic()
    call(*words)
    return time.monotonic() - started


@scenario
def a_killed_call_leaves_what_delete_and_gc_clear(c):
    """create, start and delete, each killed at moments all over it."""
    moments = 4 if c.given.compiled else 12
    identity, pid = c.new("exit 0")
    times = {"start": usual_time(c.good, "start", identity)}
    reap(pid)
    times["delete"] = usual_time(c.good, "delete", identity)
    times["create"] = usual_time(c.good, "create", "--bundle", c.bundle, identity)
    c.good("delete", "--force", identity)
    reap_all()
    for name, script in (("create", "exit 0"), ("start", "sleep 1000"), ("delete", "exit 0")):
        for moment in range(moments):
            before, part = all_runs(), times[name] * moment / moments
            if name == "create":
                Containers.count += 1
                identity = f"bsc-{os.getpid()}-{Containers.count}"
                c.bundle_of(script)
                killed_in(c, part, "create", "--bundle", c.bundle, identity)
            else:
                identity, pid = c.new(script)
                if name == "delete":
                    c.good("start", identity)
                    reap(pid)
                killed_in(c, part, name, identity)
            verdict = cleared(c, identity, before, f"{name} was killed at {part * 1000:.0f} ms")
            equal(f"scored, {name} killed at {part * 1000:.0f} ms", verdict is not None and verdict["scored"], name == "delete")


@scenario
def a_pod_s_sandbox_lives_as_long_as_the_pod(c):
    root = str(c.work / "k8s.io")
    identity, pid = c.new("trap 'exit 0' TERM; while :; do sleep 0.05; done", root=root, annotations={"io.kubernetes.cri.container-type": "sandbox"})
    c.good("start", identity, root=root)
    c.refused(["exec", identity, "/bin/sh"], "exec", root=root)
    c.good("kill", identity, "TERM", root=root)
    equal("exit code", os.waitstatus_to_exitcode(reap(pid)), 0)
    equal("profile", c.record(identity)["profile"]["name"], "pod-sandbox")
    equal("wall time", c.record(identity)["policy"]["limits"]["wall_time_us"], 87600 * 3600 * 10**6)
    c.good("delete", identity, root=root)
    # Not for everybody who says so.
    identity, pid = c.new("exit 0", annotations={"io.kubernetes.cri.container-type": "sandbox"})
    c.good("start", identity)
    reap(pid)
    equal("profile", c.record(identity)["profile"]["name"], "strict")
    c.good("delete", identity)


def left_behind(work, runs):
    """Of ours: others may use this host too."""
    states = [json.loads(path.read_text()) for path in BASE.glob("containers/*/state.json")]
    left = [state["id"] for state in states if state["root"].startswith(str(work))]
    left += [path.name for path in BASE.glob("r*") if path.name in runs]
    return left + [str(path) for path in Path("/sys/fs/cgroup").glob("**/benchsand/r*") if path.name in runs]


def clear(containers):
    """After a failure, so that the next scenario starts from nothing."""
    for path in BASE.glob("containers/*/state.json"):
        state = json.loads(path.read_text())
        if state["root"].startswith(str(containers.work)):
            containers.call("delete", "--force", state["id"], root=state["root"])


def own_places(given, work):
    """Nothing of the host's /etc/benchsand and /var/lib/benchsand is used or changed."""
    for place, folder in (("/etc/benchsand", work / "etc"), ("/var/lib/benchsand", work / "var")):
        folder.mkdir(mode=0o755)
        Path(place).mkdir(exist_ok=True)
        subprocess.run(["mount", "--bind", folder, place], check=True)
    (work / "var").chmod(0o700)
    (work / "etc/runtime.yaml").write_text(f"delegate: {given.engine}\n")
    if given.compiled:
        (work / "etc/profiles").mkdir()
        for name in ("strict", "pod-sandbox"):
            text = (Path(__file__).parents[2] / f"profiles/{name}.yaml").read_text()
            (work / f"etc/profiles/{name}.yaml").write_text(text.replace("filter_proof: dump", "filter_proof: compiled"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--engine", choices=("crun", "runc"), required=True)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: needs root")
        return 77
    os.unshare(os.CLONE_NEWNS) if hasattr(os, "unshare") else ctypes.CDLL(None).unshare(0x20000)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="bsc-") as folder:
        work = Path(folder)
        own_places(given, work)
        containers = Containers(given, work)
        wanted = [function for function in SCENARIOS if not given.names or function.__name__ in given.names]
        for function in wanted:
            started = time.monotonic()
            try:
                function(containers)
                equal("left behind", left_behind(work, containers.runs), [])
                print(f"ok   {given.engine} {function.__name__} ({time.monotonic() - started:.1f} s)")
            except (Wrong, OSError, KeyError, subprocess.SubprocessError) as error:
                failed += 1
                print(f"FAIL {type(error).__name__}: {error}\n     {given.engine} {function.__name__}")
                clear(containers)
        for place in ("/etc/benchsand", "/var/lib/benchsand"):
            subprocess.run(["umount", "--lazy", place], check=True)
    print(f"{given.engine}: {len(wanted)} scenarios, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
