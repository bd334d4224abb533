#!/usr/bin/env python3
"""Real runs of benchsand on this machine, one scenario after the other, each checked against its record.

usage: runs.py --program BENCHSAND --candidate CANDIDATE --engine crun|runc [--slow N] [--compiled] [NAME...]
--slow stretches time limits, --compiled is for kernels that cannot hand back a filter; both are for the guest.
"""

import argparse
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import attempts
import egress
import images
import intruders
import killed
import neighbours
import relaxations
from harness import MIB, SOURCE, Bench, Wrong, between, dead_runs, equal, run_scenarios

SCENARIOS = {**attempts.SCENARIOS, **intruders.SCENARIOS, **killed.SCENARIOS, **images.SCENARIOS}
LATE = 5  # times a limit: benchsand has to be given a processor to end a run, and on a busy machine waits for it


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


@scenario
def python_answers(bench):
    task = bench.work / "example.yaml"
    text = (SOURCE / "docs/examples/add/task.yaml").read_text()
    for own in ("./question.txt", "./task"):
        text = text.replace(own, str(SOURCE / "docs/examples/add" / own))
    task.write_text(text.replace("/var/cache/benchsand/", f"{bench.cache}/"))
    more = ("--set", f"limits.wall_time={bench.seconds(10)}", "--set", f"limits.cpu_time={bench.seconds(2)}")
    run = bench.run_task(task, "python", *more).expect(0, "succeeded", "exited", exit_code=0, signal=None)
    answer = (run.folder / "output/answer.json").read_bytes()
    equal("answer", answer, b'{"answers": [42, 0, 123456789012345678901234567891]}')
    equal("outputs", run.record["outputs"],
          [{"path": "answer.json", "size": len(answer), "sha256": hashlib.sha256(answer).hexdigest()}])
    again = subprocess.run([bench.program, "verdict", run.folder / "record.json"], capture_output=True, text=True)
    equal("verdict of the record", (again.returncode, again.stdout.splitlines()[-1]),
          (0, "verdict     SCORED (reproducible) succeeded: exited, exit code 0"))
    forged = bench.work / "forged.json"
    forged.write_text((run.folder / "record.json").read_text().replace('"outcome": "succeeded"', '"outcome": "failed"'))
    equal("verdict of a changed record", subprocess.run([bench.program, "verdict", forged], capture_output=True).returncode, 2)
    check = subprocess.run(["sha256sum", "--strict", "-c", "SHA256SUMS"], cwd=run.folder, capture_output=True, text=True)
    equal("sha256sum -c", (check.returncode, check.stderr), (0, ""))
    for wall in ("network", "mounts", "rootfs", "output", "memory", "processes", "cpu-time", "wall-time", "stdio",
                 "privileges", "syscalls", "namespaces"):
        if not run.record["evidence"]["established"].get(wall):
            raise Wrong(f"nothing observed of the wall {wall}")


@scenario
def python_works(bench):
    run = bench.python("""
import asyncio, os, sqlite3, subprocess, sys, tempfile, threading
results = []
thread = threading.Thread(target=lambda: results.append("thread")); thread.start(); thread.join()
results.append(subprocess.run([sys.executable, "-c", "print('child')"], capture_output=True, text=True, check=True).stdout.strip())
with sqlite3.connect("work.db") as db:
    db.execute("create table t (n)"); db.execute("insert into t values (7)")
    results.append(str(db.execute("select n from t").fetchone()[0]))
with tempfile.NamedTemporaryFile("w+") as file:
    file.write("temporary"); file.seek(0); results.append(file.read())
async def main(): await asyncio.sleep(0.01); return "async"
results.append(asyncio.run(main()))
print(" ".join(results))
""").expect(0, "succeeded", "exited", exit_code=0)
    equal("stdout", run.stdout(), "thread child 7 temporary async\n")


LEARNED_FROM = """
import os, socket, subprocess, tempfile, threading
results = []
threads = [threading.Thread(target=lambda: results.append("thread")) for _ in range(4)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
results.append(subprocess.run(["sh", "-c", "echo a b | tr ' ' '-'; (exit 3)"], capture_output=True, text=True).stdout.strip())
child = os.fork()
if child == 0: os._exit(7)
results.append(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
left, right = socket.socketpair(); left.send(b"pair"); results.append(right.recv(9).decode())
for family in (socket.AF_INET, socket.AF_UNIX):
    try: socket.socket(family).close(); results.append("made")
    except OSError as error: results.append(type(error).__name__)
with tempfile.TemporaryFile() as file: file.write(b"x")
print(" ".join(results))
"""


@scenario
def what_was_learned_is_enough(bench):
    """A program learned from runs under the learned profile, and not under one that lacks a call."""
    (bench.work / "task" / "solve.py").write_text(LEARNED_FROM)
    task = bench.write_task(["python3", "/task/solve.py"], rootfs=str(bench.cache / "python-rootfs"),
                            limits={"cpu_time": bench.seconds(10), "wall_time": bench.seconds(60)})
    strict, out = bench.profiles / "strict.yaml", bench.work / "learned"
    learn = [bench.program, "learn", str(task), "--profile", str(strict), "--out", str(out)]
    process = subprocess.run(learn, capture_output=True, text=True, timeout=60 + 30 * bench.slow)
    equal("learn", (process.returncode, "only for a program that you trust" in process.stderr), (0, True))
    (folder,) = out.iterdir()
    said = (folder / "stdout").read_text()
    equal("said while learning", said, "thread thread thread thread a-b 7 pair PermissionError made\n")
    record = json.loads((folder / "record.json").read_text())
    equal("learning has no score", (record["verdict"]["scored"], [failure["wall"] for failure in record["verdict"]["failures"]],
                                    "learn: every call let run" in record["policy"]["relaxations"]), (False, ["syscalls"], True))
    (bench.profiles / "learned.yaml").write_text(process.stdout)
    run = bench.run_task(task, "learned").expect(0, "succeeded", "exited")
    equal("said under what was learned", run.stdout(), said)
    shorter = re.sub(r"    - newfstatat .*\n", "", process.stdout)
    equal("a line is gone", shorter == process.stdout, False)
    (bench.profiles / "learned.yaml").write_text(shorter)
    equal("verdict under one call less", bench.run_task(task, "learned").record["verdict"]["outcome"] == "succeeded", False)
    refused = subprocess.run([*learn, "--engine", "runc"], capture_output=True, text=True)
    equal("learn with runc", (refused.returncode, refused.stdout, "learn with --engine crun" in refused.stderr), (2, "", True))
    failing = bench.write_task(["sh", "-c", "exit 3"])
    process = subprocess.run([bench.program, "learn", str(failing), "--profile", str(strict)], capture_output=True, text=True)
    equal("learn from a failure", (process.returncode, "did not succeed (exited)" in process.stderr), (1, True))


@scenario
def exit_status_is_kept(bench):
    bench.verb("exit", 7).expect(1, "failed", "exited", exit_code=7, signal=None)


@scenario
def signal_is_kept(bench):
    bench.verb("crash").expect(1, "failed", "signaled", exit_code=None, signal=11)


@scenario
def a_kill_from_the_host_is_no_result(bench):
    task = bench.write_task(bench.candidate("sleep", 300), limits={"wall_time": bench.seconds(60)})
    process = subprocess.Popen(bench.arguments(task), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60 * bench.slow
    candidates = set()
    while not candidates and time.monotonic() < deadline:
        time.sleep(0.05)
        candidates = {int(pid) for pid in re.findall(r"process (\d+): b'/task/candidate", " ".join(bench.living()))}
    for pid in candidates:
        os.kill(pid, signal.SIGKILL)
    out, _ = process.communicate(timeout=60)
    record = json.loads(out)
    equal("killed from outside", (process.returncode, record["verdict"]["scored"], record["verdict"]["outcome"], record["end"]["cause"]),
          (3, False, "fault", "killed"))


@scenario
def wall_time_ends_a_sleeper(bench):
    run = bench.verb("sleep", 300, limits={"wall_time": bench.seconds(1)}).expect(124, "limit", "wall-time")
    between("wall time used", run.seen("spent", "wall-time", "used_us"), 1_000_000 * bench.slow, LATE * 1_000_000 * bench.slow)


@scenario
def cpu_time_ends_a_spinner(bench):
    run = bench.verb("spin", limits={"cpu_time": "1s", "wall_time": bench.seconds(60)}).expect(124, "limit", "cpu-time")
    between("CPU time used", run.seen("spent", "cpu-time", "used_us"), 900_000, LATE * 1_000_000)


@scenario
def cpu_time_is_counted_over_children(bench):
    limits = {"cpu_time": "1s", "wall_time": bench.seconds(60)}
    run = bench.verb("spin-in-children", limits=limits).expect(124, "limit", "cpu-time")
    between("CPU time used", run.seen("spent", "cpu-time", "used_us"), 900_000, LATE * 1_000_000)


def past_memory(bench, verb):
    # Touching a page costs the guest twenty times as much, so there it is fewer.
    limit, asked = (256, 300) if bench.slow == 1 else (96, 120)
    run = bench.verb(verb, asked, limits={"memory": f"{limit}MiB"}).expect(1, "limit", "memory")
    between("oom_kills", run.seen("spent", "memory", "oom_kills"), 1, 100)
    return run, limit


@scenario
def a_leader_that_ended_does_not_shield_its_threads(bench):
    """cgroup.kill does not reach a process whose thread-group leader has exited."""
    for processes in (1, 8):
        run = bench.verb("spin-without-leader", processes, limits={"wall_time": bench.seconds(1), "cpu_time": bench.seconds(20), "cpus": 2})
        run.expect(124, "limit", "wall-time")
        between("wall time used", run.seen("spent", "wall-time", "used_us"), 1_000_000 * bench.slow, LATE * 1_000_000 * bench.slow)
    run = bench.verb("spin-without-leader", 1, limits={"cpu_time": "500ms", "wall_time": bench.seconds(60)})
    run.expect(124, "limit", "cpu-time")
    between("CPU time used", run.seen("spent", "cpu-time", "used_us"), 400_000, LATE * 500_000)


@scenario
def record_locks_are_refused(bench):
    """Their memory is charged to no cgroup."""
    equal("errno", bench.verb("record-locks").expect(0, "succeeded", "exited").said(), {"errno": "EPERM"})


@scenario
def memory_kills_init(bench):
    run, limit = past_memory(bench, "alloc")
    between("memory peak", run.seen("spent", "memory", "peak"), limit * MIB * 3 // 4, limit * MIB)


@scenario
def memory_kills_a_child_and_init_exits_0(bench):
    past_memory(bench, "alloc-in-child")


@scenario
def swap_is_pinned(bench):
    run = bench.verb("exit", 0).expect(0, "succeeded", "exited")
    v2 = run.record["host"]["cgroup"] == "v2"
    swap = run.record["evidence"]["established"]["memory"]["swap"]
    equal("memory limit", run.seen("established", "memory", "limit"), 256 * MIB)
    equal("swap", swap["observed"], 0 if v2 else 256 * MIB)
    name = "memory.swap.max" if v2 else "memory.memsw.limit_in_bytes"
    if name not in swap["source"]:
        raise Wrong(f"swap was read from {swap['source']}, not from {name}")


@scenario
def forks_past_the_limit_fail(bench):
    run = bench.verb("forks", 5).expect(0, "succeeded", "exited")
    equal("stdout", run.said(), {"started": "31", "failed": "5", "errno": "EAGAIN"})
    equal("refused forks", run.seen("spent", "processes", "refused"), 5)
    between("processes killed", run.seen("after", "teardown", "processes_killed"), 31, 31)


@scenario
def disk_is_full_at_the_byte(bench):
    before = os.statvfs(bench.work)
    run = bench.verb("fill", 65).expect(0, "succeeded", "exited")
    # What was collected is 64 MiB in the result folder; without that copy the host must have what it had.
    shutil.rmtree(run.folder / "output")
    os.sync()
    after = os.statvfs(bench.work)
    said = run.said()
    equal("errno", said["errno"], "ENOSPC")
    equal("bytes written", int(said["written"]), 64 * MIB)
    between("host MiB gone", max(0, before.f_bfree - after.f_bfree) * before.f_frsize // MIB, 0, 16)


@scenario
def inodes_run_out(bench):
    run = bench.verb("files", 5000, limits={"files": 100}).expect(0, "succeeded", "exited")
    equal("errno", run.said()["errno"], "ENOSPC")
    between("files made", int(run.said()["made"]), 90, 100)


@scenario
def stdout_is_drained_and_capped(bench):
    size = 1024 if bench.slow == 1 else 32
    run = bench.verb("flood", size, limits={"cpu_time": bench.seconds(60), "wall_time": bench.seconds(60)}).expect(0, "succeeded", "exited")
    equal("stdout", (run.record["stdout"]["bytes"], run.record["stdout"]["kept"]), (size * MIB, MIB))
    equal("stdout file", (run.folder / "stdout").stat().st_size, MIB)


@scenario
def daemons_are_killed_and_counted(bench):
    run = bench.verb("daemonize").expect(0, "succeeded", "exited", exit_code=0)
    equal("processes killed", run.seen("after", "teardown", "processes_killed"), 1)
    equal("populated", run.seen("after", "teardown", "populated"), 0)


@scenario
def sockets_are_refused_by_family(bench):
    run = bench.verb("sockets").expect(0, "succeeded", "exited")
    equal("sockets", run.said(), {"1": "ok", **{family: "EACCES" for family in ("2", "10", "16", "17", "40", "38")}})


@scenario
def every_layer_refuses_egress_by_itself(bench):
    """5 TCP and 3 UDP attempts, in C and in Python; without the filter, without BPF's refusal, without both."""
    egress.check_layers(bench, bench.write_task(bench.candidate("reach-out")), "strict")
    egress.check_layers(bench, bench.python_task(egress.PROBE), "python")


@scenario
def families_are_refused_by_the_layers_that_claim_to(bench):
    egress.check_families(bench)


@scenario
def a_wall_that_is_taken_down_is_noticed(bench):
    relaxations.check_noticed(bench)


@scenario
def an_egress_counter_that_is_required_and_missing_refuses_the_run(bench):
    egress.check_missing(bench)


@scenario
def rootfs_is_read_only(bench):
    equal("errno", bench.verb("create-in-root").expect(0, "succeeded", "exited").stdout().strip(), "EROFS")


@scenario
def no_descriptor_is_inherited(bench):
    reading, writing = os.pipe()
    os.set_inheritable(reading, True)
    try:
        equal("descriptors", bench.verb("descriptors").expect(0, "succeeded", "exited").stdout().split(), ["0", "1", "2"])
    finally:
        os.close(reading)
        os.close(writing)


def names_of_the_host(bench, run, more):
    root = next(line.split() for line in open("/proc/self/mountinfo") if line.split()[4] == "/")
    device = root[root.index("-") + 2]
    names = [run.record["id"], str(run.folder), str(bench.work), bench.token, str(bench.cache), "benchsand/", bench.program, *more]
    names += [device] if device.startswith("/dev/") else []
    # A name of two letters, or none, would be found anywhere.
    host = os.uname().nodename
    return names + ([host] if len(host) > 4 and host != "(none)" else [])


def first_found(told, names):
    """Where in what the candidate read the first of the names stands; nothing when none does."""
    heading = b""
    for line in told.split(b"\n"):
        heading = line if line.startswith(b"== ") else heading
        for name in names:
            if name.encode() in line:
                return f"{name!r} in {heading!r}: {line[:200]!r}"
    return None


@scenario
def nothing_inside_names_the_host(bench):
    """A candidate reads all it can; the host looks for itself in what it read. As a control, where the host's own files are bound."""
    (bench.work / "alone").write_text("a single file as input")
    (bench.work / "secret-place").mkdir(exist_ok=True)
    shutil.copy(bench.work / "task/candidate", bench.work / "secret-place")
    inputs = [{"source": "./secret-place", "target": "/task"}, {"source": "./alone", "target": "/data/alone"}]
    rootfs = bench.rootfs_with("data/alone")
    task = bench.write_task(["/task/candidate", "tell-all"], inputs=inputs, rootfs=rootfs, limits={"stdout": "32MiB"})
    for profile in ("strict", bench.profile_with("strict", "rootfs_mount: overlay", "rootfs_mount: bind")):
        run = bench.run_task(task, profile).expect(0, "succeeded", "exited")
        told = (run.folder / "stdout").read_bytes()
        for needed in (b"== /proc/1/mountinfo ", b"== /proc/1/status ", b" /data/alone "):
            if needed not in told:
                raise Wrong(f"the candidate did not read {needed!r}, among {len(told)} bytes")
        between("bytes read", run.record["stdout"]["bytes"], 50_000, run.record["stdout"]["kept"])
        found = first_found(told, names_of_the_host(bench, run, ["secret-place", rootfs]))
        if profile == "strict" and found:
            raise Wrong(f"the candidate read {found}")
        if profile != "strict" and (not found or run.record["policy"]["relaxations"][-1] != "rootfs_mount: bind"):
            raise Wrong(f"the control is no control: {found}, {run.record['policy']['relaxations']}")


@scenario
def two_runs_cannot_reach_each_other(bench):
    neighbours.check(bench)


@scenario
def symlinks_are_not_collected(bench):
    run = bench.verb("odd-outputs", profile="python").expect(0, "succeeded", "exited")
    equal("collected", [file["path"] for file in run.record["outputs"]], ["plain"])
    equal("refused", sorted(file["path"] for file in run.record["outputs_refused"]), ["link", "up"])


@scenario
def odd_paths_stay_data(bench):
    odd = "a 'b' \"c\" $(touch x) `id` ;&|<> \\ \n*"
    folder = bench.work / odd
    (folder / "task" / odd).mkdir(parents=True)
    (folder / "task" / odd / "in").write_text("inside")
    task = bench.write_task(["cat", f"/task/{odd}/in"], folder=folder)
    equal("stdout", bench.run_task(task).expect(0, "succeeded", "exited").stdout(), "inside")


@scenario
def bad_use_is_status_2(bench):
    over = bench.run_task(bench.write_task(["true"], limits={"memory": "64GiB"}))
    equal("exit status over the maximum", (over.status, over.record), (2, None))
    misspelt = bench.run_task(bench.write_task(["true"], rootf="x"))
    equal("exit status of a misspelt key", misspelt.status, 2)
    if "did you mean" not in misspelt.stderr:
        raise Wrong(f"no suggestion in {misspelt.stderr!r}")
    for words, said in ((["run"], "TASK.yaml is required; see benchsand run --help"), (["nosuch"], "unknown command 'nosuch'; "),
                        (["verdict", "x", "--nosuch"], "--nosuch; see benchsand verdict --help"), (["run", "x", "--engine", "y"], "; see benchsand run --help"),
                        (["install", "lxc"], "; see benchsand install --help"), (["completion"], "; see benchsand completion --help"),
                        (["image"], "no command of image was given; there are ls, rm and prune; see benchsand image --help"),
                        (["image", "lss"], "unknown command 'lss' of image; there are ls, rm and prune; see benchsand image --help")):
        done = subprocess.run([bench.program, *words], capture_output=True, text=True)
        equal(f"{words}: status, lines", (done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
        if not done.stderr.startswith("benchsand: ") or said not in done.stderr:
            raise Wrong(f"{words}: {done.stderr!r}, expected {said!r}")


@scenario
def what_is_not_there_is_told_with_its_place(bench):
    gone = "none is not there; make it, or correct the path (a relative one begins at the task's folder)\n"
    for place, said, keys in (("3:9", gone, {"rootfs": "./none"}), ("4:21", gone, {"inputs": [{"source": "./none", "target": "/a"}]}),
                              ("7:8", gone, {"stdin": "./none"}), ("7:10", 'did you mean "python"?\n', {"profile": "pyhton"}),
                              ("4:41", "is not an absolute path", {"inputs": [{"source": "./task", "target": "a"}]})):
        task = bench.write_task(["true"], **keys)
        for verb in ("run", "check"):
            done = subprocess.run([bench.program, verb, str(task)], capture_output=True, text=True, timeout=60 * bench.slow)
            equal(f"{verb} {keys}: status", (done.returncode, done.stdout), (2, ""))
            if not done.stderr.startswith(f"benchsand: {task}:{place}: ") or said not in done.stderr:
                raise Wrong(f"{verb} {keys}: {done.stderr!r}, expected {place} and {said!r}")


@scenario
def a_command_that_is_not_there_leads_with_its_cure(bench):
    run = bench.run_task(bench.write_task(["nosuch"]))
    equal("end", (run.status, run.record["verdict"]["outcome"], run.record["end"]["cause"]), (3, "fault", "not-started"))
    lines = subprocess.run([bench.program, "verdict", str(run.folder)], capture_output=True, text=True).stdout.splitlines()
    lines = [line for line in lines if not line.startswith("loosened")]  # the guest's profile is
    equal("the table", [line.split()[0] for line in lines], ["evidence", "teardown", "the", "verdict"])
    if "one without a slash is looked for along PATH=/usr/local/bin:/usr/bin:/bin)" not in lines[0]:
        raise Wrong(lines[0])


@scenario
def results_are_not_kept_where_the_next_candidate_reads(bench):
    """The default place for results lies in the task's own folder; nothing is made there when that is the input."""
    folder = bench.folder("whole-folder")
    shutil.copy(bench.work / "task" / "candidate", folder / "candidate")
    task = bench.write_task(bench.candidate("exit"), folder, inputs=[{"source": ".", "target": "/task"}])
    arguments = bench.arguments(task)
    at = arguments.index("--out")
    process = subprocess.run(arguments[:at] + arguments[at + 2:], cwd=folder, capture_output=True, text=True,
                             timeout=60 + 30 * bench.slow)
    equal("exit status", (process.returncode, process.stdout), (2, ""))
    if f"it lies in the input {folder}, where the next candidate would read them" not in process.stderr:
        raise Wrong(f"not the reason: {process.stderr!r}")
    equal("made in the input", sorted(os.listdir(folder)), ["candidate", "task", "task.yaml"])
    bench.run_task(task).expect(0, "succeeded", "exited", exit_code=0)


@scenario
def killed_benchsand_leaves_nothing(bench):
    """SIGKILL at many moments of a run: before the container, at the door, while the candidate runs, while it ends."""
    steps, pause = (50, 0.001) if bench.slow == 1 else (12, 0.1)
    task = bench.write_task(bench.candidate("sleep", 300))
    short = bench.write_task(bench.candidate("exit", 0), folder=bench.folder("short"))
    for step in range(steps):
        for which in (task, short):
            process = subprocess.Popen(bench.arguments(which), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            time.sleep(pause * step)
            process.kill()
            out, _ = process.communicate()
            # Nobody has cleared anything yet: the kernel alone has killed the candidate.
            deadline = time.monotonic() + 30 * bench.slow
            while bench.living() and time.monotonic() < deadline:
                time.sleep(0.005)
            equal(f"processes alive after benchsand was killed, step {step}", bench.living(), set())
            if which is task and b'"scored": true' in out:
                raise Wrong(f"a killed run was scored, step {step}")
            dead = dead_runs()
            cleared = subprocess.run([bench.program, "gc"], capture_output=True, text=True, timeout=60)
            equal(f"gc status, step {step}, {cleared.stderr}", cleared.returncode, 0)
            equal(f"left after gc, step {step}", bench.left_behind(dead), set())
            equal(f"unfinished results after gc, step {step}", list((bench.work / "out").glob(".*.partial")), [])


def mount_namespaces():
    for path in glob.glob("/proc/[0-9]*/ns/mnt"):
        try:
            yield os.readlink(path)
        except OSError:
            continue  # the process has ended since


@scenario
def timeline_shows_what_was_used(bench):
    run = bench.verb("stages", 2).expect(0, "succeeded", "exited")
    timeline = run.record["timeline"]
    equal("interval, unread", (timeline["interval_us"], timeline["unread"]), (100_000, 0))
    samples = timeline["samples"]
    between("samples", len(samples), 1, run.seen("spent", "wall-time", "used_us") // 100_000)
    last = max(samples, key=lambda sample: (sample["tasks"], sample["at_us"]))  # the children may end before init
    between("memory", last["memory_bytes"], 48 * MIB, run.seen("spent", "memory", "peak"))
    equal("tasks, output, refusals", (last["tasks"], last["output_bytes"], last["refusals"]), (4, 8 * MIB, 5))
    between("CPU time", last["cpu_us"], 1, run.seen("spent", "cpu-time", "used_us"))
    between("time", last["at_us"], 100_000, run.seen("spent", "wall-time", "used_us"))
    for before, after in zip(samples, samples[1:]):
        if before["at_us"] >= after["at_us"] or before["cpu_us"] > after["cpu_us"]:
            raise Wrong(f"the timeline runs backwards: {before} {after}")
    strict = bench.profiles / "strict.yaml"
    (bench.profiles / "unseen.yaml").write_text(strict.read_text().replace("timeline: 100ms", "timeline: none"))
    equal("timeline: none", bench.verb("stages", 1, profile="unseen").expect(0, "succeeded", "exited").record["timeline"], None)
    (bench.profiles / "rarely.yaml").write_text(strict.read_text().replace("timeline: 100ms", "timeline: 10s"))
    equal("a run shorter than the interval", bench.verb("exit", 0, profile="rarely").expect(0, "succeeded", "exited").record["timeline"],
          {"interval_us": 10_000_000, "samples": [], "unread": 0})


def standing():
    """What could pile up on the machine, as numbers: dying cgroups count until the kernel has let go of them."""
    with open("/proc/cgroups") as table:
        cgroups = sum(int(line.split()[2]) for line in table if not line.startswith("#"))
    with open("/proc/meminfo") as table:
        memory = {line.split(":")[0]: int(line.split()[1]) for line in table}
    return {"mounts": sum(1 for _ in open("/proc/self/mountinfo")), "cgroups": cgroups,
            "shared memory KiB": memory["Shmem"], "kernel memory KiB": memory["SUnreclaim"] + memory["KernelStack"] + memory["Percpu"],
            "namespaces": len(set(mount_namespaces()))}


@scenario
def many_runs_leave_nothing(bench):
    task = bench.write_task(["/task/candidate", "exit", "0"])
    bench.run_task(task).expect(0, "succeeded", "exited")
    before = standing()
    for _ in range(bench.many):
        run = bench.run_task(task).expect(0, "succeeded", "exited")
        shutil.rmtree(run.folder)
    # A leak is what grows with the runs and stays; what others on this machine hold goes away again.
    allowed = {"mounts": 20 + bench.many // 20, "cgroups": 100 + bench.many // 4, "shared memory KiB": 20000 + bench.many,
               "kernel memory KiB": 20000 + 20 * bench.many, "namespaces": 20 + bench.many // 20}
    for _ in range(30):
        grown = {what: after - before[what] for what, after in standing().items()}
        over = {what: growth for what, growth in grown.items() if growth > allowed[what]}
        if not over:
            return
        time.sleep(2)
    raise Wrong(f"grown over {bench.many} runs: {over}, allowed {allowed}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--candidate", required=True)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--slow", type=int, default=1)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--many", type=int, default=50, help="runs in a row of many_runs_leave_nothing")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: real runs need root")
        return 77
    bench = Bench(given.program, given.candidate, given.engine, given.slow, given.compiled,
                  os.environ.get("BENCHSAND_CACHE", "/var/cache/benchsand"))
    bench.many = given.many
    return run_scenarios(bench, SCENARIOS, given.names)


if __name__ == "__main__":
    sys.exit(main())
