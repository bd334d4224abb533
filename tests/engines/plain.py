#!/usr/bin/env python3
"""Tasks on real engines that do not know benchsand's runtime: `benchsand run --engine docker|podman --without-shim`.

usage: plain.py --engine docker|podman --program BENCHSAND --runtime BENCHSAND-RUNTIME --tools FOLDER [--slow N] [--compiled] [NAME...]
FOLDER has the test program `candidate`. --slow stretches limits, --compiled is for kernels that cannot hand back a filter (the guest).
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True

import engine as engines
from harness import Run, Wrong, equal, left_behind, names_in
from plain_proxy import Proxy

WALLS = ["network", "rootfs", "privileges", "syscalls", "evidence"]
# What the profile gives away, and one who gives it away must say so: strict says no to all of it.
PLAIN = {"without_runtime": f"[{', '.join(WALLS)}]", "user_namespace": "host"}
SCENARIOS = {}


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


class Bench:
    def __init__(self, stage, engine):
        self.stage, self.engine, self.slow = stage, engine, stage.slow
        self.out = stage.work / "results"
        self.runs = set()
        self.tasks = 0
        self.socket = engine.socket.removeprefix("unix://") if engine.name == "docker" else str(engine.folder / "p.sock")
        self.service = None
        if engine.name == "podman":
            self.start_service()

    def start_service(self):
        self.service = subprocess.Popen([*self.engine.client, "system", "service", "--time", "0", f"unix://{self.socket}"],
                                        env=self.engine.environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + 60 * self.slow
        while not os.path.exists(self.socket):
            if time.monotonic() > deadline or self.service.poll() is not None:
                raise Wrong("podman system service does not start")
            time.sleep(0.05)

    def close(self):
        if self.service:
            self.service.terminate()
            self.service.wait(60)

    def arguments(self, command, profile="plain", stdin=None, limits=None, socket_path=None, more=None, flags=("--without-shim",)):
        limits = {"wall_time": f"{60 * self.slow}s", "cpu_time": f"{30 * self.slow}s", **(limits or {})}
        image = "tiny" if self.engine.name == "docker" else "localhost/tiny"
        lines = ["benchsand: 1", "name: plain", f"profile: {profile}", f"image: {image}", f"command: {json.dumps(command)}", "output: /output",
                 f"limits: {json.dumps(limits)}"]
        lines += [f"{key}: {json.dumps(value)}" for key, value in (more or {}).items()]
        if stdin is not None:
            (self.stage.work / "stdin").write_text(stdin)
            lines.append("stdin: ./stdin")
        self.tasks += 1
        task = self.stage.work / f"task-{self.tasks}.yaml"
        task.write_text("\n".join(lines) + "\n")
        os.environ["DOCKER_HOST" if self.engine.name == "docker" else "CONTAINER_HOST"] = socket_path or f"unix://{self.socket}"
        return [self.stage.program, "run", str(task), "--engine", self.engine.name, *flags, "--json",
                "--out", str(self.out)]

    def run(self, command, patience=None, **keys):
        """`patience`: seconds after which it is told to stop, where a container never comes to the gate."""
        stop = ["timeout", "--preserve-status", "--signal=TERM", str(patience * self.slow)] if patience else []
        process = subprocess.run([*stop, *self.arguments(command, **keys)], capture_output=True, text=True, timeout=180 * self.slow)
        run = Run(process, self.out)
        if run.record is None:
            raise Wrong(f"no record: status {process.returncode} {process.stderr}")
        self.runs.add(run.record["id"])
        return run

    def left(self):
        left = {trace for trace in left_behind(self.runs, self.stage.token)
                if not any(word in trace for word in ("dockerd", "containerd", "system", "podman.sock"))}
        names = self.engine.cli("ps", "-aq").stdout.split()
        return left | {f"container {name}" for name in names} | {f"mount {point}" for point in engines.mounts_below("/run/benchsand")}

    def nothing_left(self):
        deadline = time.monotonic() + 30 * self.slow
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(0.1)
        equal("left behind", left, set())


def failures(run):
    return [(failure["wall"], failure["expected"], failure["observed"]) for failure in run.record["verdict"]["failures"]]


def said(run):
    return json.dumps({"failures": run.record["verdict"]["failures"], "end": run.record["end"], "notices": run.record["notices"]}, indent=1)


def scored(run, outcome, cause, **end):
    if not run.record["verdict"]["scored"]:
        raise Wrong(f"not scored: {said(run)} {run.stderr}")
    run.expect(run.status, outcome, cause, **end)


def refused(run, wall):
    equal("scored", run.record["verdict"]["scored"], False)
    equal("exit status", run.status, 3)
    found = [failure for failure in failures(run) if failure[0] == wall]
    if not found:
        raise Wrong(f"no failure of {wall}: {said(run)}")
    return found


@scenario
def a_run_with_what_it_needs(bench):
    command = ["sh", "-c", "read line; echo got $line; echo to stderr >&2; echo 42 >/output/answer; id -u; pwd; ls -A /.benchsand /sys /sys/fs/cgroup"]
    run = bench.run(command, stdin="a question\n")
    scored(run, "succeeded", "exited", exit_code=0)
    equal("stdout", run.stdout(), "got a question\n65534\n/output\n/.benchsand:\n\n/sys:\nfs\n\n/sys/fs/cgroup:\n")
    equal("stderr", (run.folder / "stderr").read_text(), "to stderr\n")
    equal("outputs", [output["path"] for output in run.record["outputs"]], ["answer"])
    equal("engine", run.record["engine"]["name"], bench.engine.name)
    relaxations = run.record["policy"]["relaxations"]
    for words in ("without_runtime: what only benchsand's runtime can observe of network, rootfs, privileges, syscalls, evidence",
                  "without_runtime: /proc is writable, and the engine's files may stand in /etc and /run", "user_namespace: host"):
        if words not in relaxations:
            raise Wrong(f"relaxations: {relaxations}")
    equal("refused sockets", run.record["evidence"]["spent"]["network"]["refused_sockets"],
          {"expected": "a count", "missing": "not observable without benchsand's runtime", "forgiven": "the profile's without_runtime",
           "observed": None, "source": bench.engine.name})
    checked = subprocess.run([bench.stage.program, "verdict", str(run.folder / "record.json")], capture_output=True, text=True)
    equal("verdict", checked.returncode, 0)
    for words in ("SCORED", "attempts not counted", "evidence    held    all but what the profile's without_runtime forgives"):
        if words not in checked.stdout:
            raise Wrong(checked.stdout)


@scenario
def inputs_and_a_long_environment(bench):
    folder = bench.stage.work / "inputs"
    folder.mkdir(exist_ok=True)
    (folder / "a").write_text("in a directory\n")
    (bench.stage.work / "single").write_text("a file\n")
    inputs = [{"source": str(folder), "target": "/task"}, {"source": str(bench.stage.work / "single"), "target": "/data/single"}]
    run = bench.run(["sh", "-c", "cat /task/a /data/single; echo x >/task/b || echo refused; echo ${#LONG} $0 [$1]; env | sort", "name", ""],
                    more={"inputs": inputs, "env": {"LONG": "x" * 100_000, "EMPTY": ""}})
    scored(run, "succeeded", "exited", exit_code=0)
    lines = run.stdout().replace("x" * 100_000, "…").splitlines()
    equal("stdout", lines, ["in a directory", "a file", "refused", "100000 name []", "EMPTY=", "HOME=/output", "LONG=…",
                            "PATH=/usr/local/bin:/usr/bin:/bin", "PWD=/output", "SHLVL=1", "TMPDIR=/output"])


@scenario
def a_podman_service_of_ours(bench):
    if bench.engine.name != "podman":
        return
    arguments = bench.arguments(["sh", "-c", "echo ran"])
    environment = {name: value for name, value in {**os.environ, **bench.engine.environment}.items() if name != "CONTAINER_HOST"}
    process = subprocess.run(arguments, capture_output=True, text=True, env=environment, timeout=180 * bench.slow)
    run = Run(process, bench.out)
    bench.runs.add(run.record["id"])
    scored(run, "succeeded", "exited", exit_code=0)
    equal("stdout", run.stdout(), "ran\n")


def nobody_else(bench):
    """The engine's socket, behind which nobody knows benchsand's runtime, and what was asked there."""
    def answers(method, path, body):
        if path.endswith("/info") and "Runtimes" in body:
            body["Runtimes"].pop("benchsand", None)
        return body

    return Proxy(str(bench.stage.work / "proxy.sock"), bench.socket, answers=answers)


@scenario
def strict_says_no(bench):
    """Before anything is made in the engine, and in one line that says what to do."""
    cures = {("docker", False): "benchsand install docker", ("podman", False): "unset CONTAINER_HOST"}
    for flags in (["--without-shim"], []):
        with nobody_else(bench) as proxy:
            run = bench.run(["sh", "-c", "echo ran >/output/ran; echo ran"], profile="strict", socket_path=proxy.address, flags=flags)
        equal("changed in the engine", [call for call in proxy.calls if call[0] != "GET"], [])
        (wall, expected, observed), = failures(run)
        equal("refused", (run.status, run.record["verdict"]["outcome"], wall, expected), (3, "refused", "evidence", "benchsand's runtime"))
        for words in ("says without_runtime: refuse", cures.get((bench.engine.name, bool(flags)), "leave out --without-shim"), "docs/without-runtime.md"):
            equal(f"{words!r} in {observed!r}", words in observed, True)
        equal("stdout", run.stdout(), "")
        equal("outputs", run.record["outputs"], [])
        equal("the folder", sorted(names_in(run.folder)), ["SHA256SUMS", "output", "record.json", "stderr", "stdout"])
        shown = subprocess.run([bench.stage.program, "verdict", str(run.folder)], capture_output=True, text=True)
        equal("the table", (shown.returncode, [line.split()[0] for line in shown.stdout.splitlines() if not line.startswith("loosened")]),
              (3, ["evidence", "the", "verdict"]))


@scenario
def only_missing_observations_are_forgiven(bench):
    """A profile that goes without the runtime in some walls only is refused, too."""
    run = bench.run(["true"], profile="partly")
    (wall, _, observed), = failures(run)
    equal("refused", (wall, "--without-shim: without it syscalls, evidence cannot be observed whole, and the profile partly does not" in observed),
          ("evidence", True))


@scenario
def how_it_ends(bench):
    scored(bench.run(["sh", "-c", "exit 7"]), "failed", "exited", exit_code=7)
    scored(bench.run(["candidate", "crash"]), "failed", "signaled", signal=11)
    scored(bench.run(["sh", "-c", "sleep 100 & exec candidate crash"]), "failed", "signaled", signal=11)
    scored(bench.run(["candidate", "sleep", "600"], limits={"wall_time": "2s"}), "limit", "wall-time")
    scored(bench.run(["candidate", "spin"], limits={"cpu_time": "1s"}), "limit", "cpu-time")
    memory = bench.run(["candidate", "alloc", "400"], limits={"memory": "128MiB"})
    scored(memory, "limit", "memory")
    forks = bench.run(["candidate", "forks", "100"], limits={"processes": 16})
    scored(forks, "succeeded", "exited")
    equal("peak", forks.seen("spent", "processes", "peak") in (16, "not in this kernel"), True)


@scenario
def a_program_that_is_not_there(bench):
    run = bench.run(["no-such-program"])
    refused(run, "evidence")
    equal("outcome", run.record["verdict"]["outcome"], "fault")
    equal("why", "execute no-such-program: No such file or directory" in said(run), True)


@scenario
def an_engine_that_gives_more_memory(bench):
    def asks(method, path, body):
        if method == "POST" and path.endswith("/start") is False and "/containers/create" in path:
            if "HostConfig" in body:
                body["HostConfig"]["Memory"] *= 2
                body["HostConfig"]["MemorySwap"] *= 2
            else:
                body["resource_limits"]["memory"]["limit"] *= 2
                body["resource_limits"]["memory"]["swap"] *= 2
        return body

    with Proxy(str(bench.stage.work / "proxy.sock"), bench.socket, asks=asks) as proxy:
        run = bench.run(["sh", "-c", "echo ran"], socket_path=proxy.address, limits={"memory": "128MiB"})
    equal("failures", ("memory", str(128 << 20), str(256 << 20)) in refused(run, "memory"), True)
    equal("stdout", run.stdout(), "")


@scenario
def an_engine_that_lies_about_the_process(bench):
    def answers(method, path, body):
        if method == "GET" and path.endswith("/json") and isinstance(body, dict) and body.get("State", {}).get("Pid"):
            body["State"]["Pid"] = 1
        return body

    with Proxy(str(bench.stage.work / "proxy.sock"), bench.socket, answers=answers) as proxy:
        run = bench.run(["sh", "-c", "echo ran"], socket_path=proxy.address)
    equal("failures", ("evidence", "same as evidence.init", "1") in refused(run, "evidence"), True)
    equal("stdout", run.stdout(), "")


@scenario
def an_engine_that_answers_with_anothers_id(bench):
    bench.engine.need_image("tiny")
    other = bench.engine.must("create", "tiny" if bench.engine.name == "docker" else "localhost/tiny", "true")

    def answers(method, path, body):
        if method == "POST" and "/containers/create" in path:
            body["Id"] = other
        return body

    try:
        with Proxy(str(bench.stage.work / "proxy.sock"), bench.socket, answers=answers) as proxy:
            run = bench.run(["sh", "-c", "echo ran"], socket_path=proxy.address)
        equal("end", (run.status, run.record["verdict"]["scored"], "which is another container's" in str(run.record["verdict"]["failures"])),
              (3, False, True))
        equal("containers", bench.engine.must("ps", "-aq", "--no-trunc").split(), [other])
        equal("the other is", bench.engine.must("inspect", "--format", "{{.State.Status}}", other), "created")
    finally:
        bench.engine.must("rm", other)


@scenario
def an_engine_that_gives_another_network(bench):
    if not bench.stage.bridges:
        return

    def asks(method, path, body):
        if method == "POST" and "/containers/create" in path:
            if "HostConfig" in body:
                body["HostConfig"]["NetworkMode"] = "host"
                body["NetworkDisabled"] = False
            else:
                body["netns"] = {"nsmode": "host"}
        return body

    with Proxy(str(bench.stage.work / "proxy.sock"), bench.socket, asks=asks) as proxy:
        run = bench.run(["sh", "-c", "echo ran"], socket_path=proxy.address)
    refused(run, "network")
    equal("stdout", run.stdout(), "")


def into(body, pointer, value):
    """Sets what a path like HostConfig.Memory names."""
    *parents, last = pointer.split(".")
    for name in parents:
        body = body.setdefault(name, {})
    body[last] = value


# What an engine makes of what it was asked for, and the wall that it cannot stand behind. One of each kind of observation.
LIES = {
    "docker": [
        ("processes", "HostConfig.PidsLimit", 500), ("cpu-time", "HostConfig.CpuQuota", 400_000), ("rootfs", "HostConfig.ReadonlyRootfs", False),
        ("privileges", "HostConfig.CapDrop", []), ("privileges", "User", "0:0"), ("privileges", "HostConfig.OomScoreAdj", 0),
        ("privileges", "HostConfig.SecurityOpt", ["seccomp=unconfined"]), ("syscalls", "HostConfig.SecurityOpt", ["no-new-privileges", "seccomp=unconfined"]),
        ("syscalls", "HostConfig.SecurityOpt", ["no-new-privileges"]), ("mounts", "HostConfig.MaskedPaths", []),
        ("mounts", "HostConfig.Binds", ["/etc:/task:ro"]), ("privileges", "HostConfig.Ulimits", []), ("evidence", "HostConfig.CgroupParent", "/elsewhere"),
        ("namespaces", "HostConfig.PidMode", "host"), ("namespaces", "HostConfig.CgroupnsMode", "host"),
        ("mounts", "WorkingDir", "/tmp"), ("evidence", "HostConfig.Init", True), ("evidence", "Cmd", ["sleep", "60"]),
    ],
    "podman": [
        ("processes", "resource_limits.pids.limit", 500), ("cpu-time", "resource_limits.cpu.quota", 400_000), ("rootfs", "read_only_filesystem", False),
        ("privileges", "user", "0:0"), ("syscalls", "seccomp_profile_path", "unconfined"),
        ("privileges", "oom_score_adj", 0), ("evidence", "cgroup_parent", "/elsewhere"), ("namespaces", "pidns", {"nsmode": "host"}),
        ("mounts", "mask", []), ("mounts", "work_dir", "/tmp"), ("evidence", "command", ["sleep", "60"]),
    ],
}


@scenario
def an_engine_that_does_something_else(bench):
    """An engine that is asked for one thing and does another: the candidate never runs, and the wall is named."""
    wrong = []
    for wall, pointer, value in LIES[bench.engine.name]:
        def asks(method, path, body):
            if method == "POST" and "/containers/create" in path:
                into(body, pointer, value)
            return body

        with Proxy(str(bench.stage.work / "proxy.sock"), bench.socket, asks=asks) as proxy:
            run = bench.run(["sh", "-c", "echo ran"], socket_path=proxy.address, patience=3)
        if run.record["verdict"]["scored"] or run.status != 3 or run.stdout():
            wrong.append(f"{pointer} = {value}: it ran: {said(run)} {run.stdout()}")
        elif wall not in {failure[0] for failure in failures(run)}:
            wrong.append(f"{pointer} = {value}: no failure of {wall}: {failures(run)}")
    equal("lies", wrong, [])


@scenario
def ten_at_once(bench):
    processes = [subprocess.Popen(bench.arguments(["sh", "-c", f"echo {i}; echo {i} >/output/it"]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                 for i in range(10)]
    for i, process in enumerate(processes):
        run = ended(bench, process)
        scored(run, "succeeded", "exited", exit_code=0)
        equal("stdout", (run.stdout(), (run.folder / "output" / "it").read_text()), (f"{i}\n", f"{i}\n"))


def start(bench, command, **keys):
    """A run in the background, once its candidate runs: the process, its run id and the number of its init."""
    before = set(names_in("/run/benchsand"))
    process = subprocess.Popen(bench.arguments(command, **keys), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60 * bench.slow
    while time.monotonic() < deadline:
        for name in set(names_in("/run/benchsand")) - before:
            stdout = bench.out / f".{name}.partial" / "stdout"
            if name.startswith("r") and stdout.exists() and stdout.read_text().startswith("ready"):
                bench.runs.add(name)
                ids = [line for folder, _, files in os.walk("/sys/fs/cgroup") if f"/benchsand/{name}/" in folder and "conmon" not in folder
                       for line in open(f"{folder}/cgroup.procs")]
                return process, name, int(ids[0])
        if process.poll() is not None:
            raise Wrong(f"ended: {process.communicate()}")
        time.sleep(0.05)
    process.kill()
    raise Wrong(f"did not come to run: {process.communicate()}")


def ended(bench, process):
    out, err = process.communicate(timeout=120 * bench.slow)
    process.stdout_text = out
    return Run(subprocess.CompletedProcess([], process.returncode, out, err), bench.out)


READY = ["sh", "-c", "echo ready; sleep 600"]


@scenario
def a_link_appears_while_it_runs(bench):
    process, _, pid = start(bench, READY)
    subprocess.run(["ip", "link", "add", "guest0", "type", "veth", "peer", "name", "guest1"], check=True)
    subprocess.run(["ip", "link", "set", "guest0", "netns", str(pid)], check=True)
    run = ended(bench, process)
    equal("failures", ("network", "nothing appeared", "link guest0 appeared") in refused(run, "network"), True)


@scenario
def another_process_with_more_rights(bench):
    process, _, _ = start(bench, READY)
    subprocess.Popen([*bench.engine.client, "exec", "-u", "0", *bench.engine.must("ps", "-q").split(), "sleep", "600"], env=bench.engine.environment,
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run = ended(bench, process)
    # It may be seen before it is in the cgroup.
    refused(run, "processes" if any(failure[0] == "processes" for failure in failures(run)) else "privileges")


@scenario
def another_process_with_the_same_rights(bench):
    process, _, _ = start(bench, READY, limits={"wall_time": f"{10 * bench.slow}s"})
    subprocess.Popen([*bench.engine.client, "exec", *bench.engine.must("ps", "-q").split(), "sleep", "600"], env=bench.engine.environment,
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = ended(bench, process)
    if not any(wall in ("privileges", "processes") for wall, _, _ in failures(found)):
        raise Wrong(said(found))
    # docs/without-runtime.md: what an exec of crun's takes when its stdin is /dev/null; the test's own here.
    os.chown("/dev/null", 0, 0)


@scenario
def it_is_paused(bench):
    process, _, _ = start(bench, READY, limits={"wall_time": f"{3 * bench.slow}s"})
    bench.engine.must("pause", *bench.engine.must("ps", "-q").split())
    run = ended(bench, process)
    if "somebody had frozen it meanwhile" not in json.dumps(refused(run, "evidence")):
        raise Wrong(said(run))


@scenario
def benchsand_is_killed_while_it_starts(bench):
    """The mounts that the engine was to find are attached then; gc takes them away."""
    held = threading.Event()

    def asks(method, path, body):
        if "/containers/create" in path:
            held.wait(60 * bench.slow)
        return body

    with Proxy(str(bench.stage.work / "proxy.sock"), bench.socket, asks=asks) as proxy:
        process = subprocess.Popen(bench.arguments(["true"], socket_path=proxy.address), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60 * bench.slow
        while not (attached := engines.mounts_below("/run/benchsand")) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
        process.wait()
        if not any(point.endswith("/output") for point in attached):
            attached = engines.mounts_below("/run/benchsand")
        equal("mounts of a run that was killed", any(point.endswith("/output") for point in attached), True)
        subprocess.run([bench.stage.program, "gc"], check=True, stdout=subprocess.DEVNULL, timeout=60 * bench.slow)
        held.set()
        time.sleep(1)  # the engine may make the container now
    for container in bench.engine.cli("ps", "-aq").stdout.split():
        bench.engine.remove(container)


@scenario
def the_daemon_is_killed(bench):
    if bench.engine.name != "docker":
        return
    process, name, pid = start(bench, READY, limits={"wall_time": f"{3 * bench.slow}s"})
    bench.engine.daemon.kill()
    bench.engine.daemon.wait()
    run = ended(bench, process)
    equal("scored", run.record["verdict"]["scored"], False)
    equal("exit status", run.status, 3)
    equal("outcome", run.record["verdict"]["outcome"], "fault")
    equal("init is there", os.path.exists(f"/proc/{pid}"), False)
    equal("cgroups", [folder for folder, _, _ in os.walk("/sys/fs/cgroup") if f"/benchsand/{name}" in folder], [])
    (bench.engine.folder / "d.pid").unlink(missing_ok=True)
    bench.engine.start()
    subprocess.run([bench.stage.program, "gc"], check=True, stdout=subprocess.DEVNULL, timeout=60 * bench.slow)


@scenario
def it_is_told_to_stop(bench):
    process, _, _ = start(bench, READY)
    process.send_signal(signal.SIGTERM)
    run = ended(bench, process)
    equal("outcome", run.record["verdict"]["outcome"], "fault")
    equal("cause", run.record["end"]["cause"], "killed")


@scenario
def benchsand_is_killed(bench):
    process, name, pid = start(bench, READY)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 30 * bench.slow
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        time.sleep(0.05)
    equal("init is there", os.path.exists(f"/proc/{pid}"), False)
    for container in bench.engine.cli("ps", "-aq").stdout.split():
        bench.engine.remove(container)
    subprocess.run([bench.stage.program, "gc"], check=True, stdout=subprocess.DEVNULL, timeout=60 * bench.slow)


@scenario
def the_container_is_removed_by_another(bench):
    process, _, _ = start(bench, READY)
    remover = subprocess.Popen([*bench.engine.client, "rm", "-f", *bench.engine.must("ps", "-q").split()], env=bench.engine.environment,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run = ended(bench, process)
    remover.wait(60 * bench.slow)
    equal("scored", run.record["verdict"]["scored"], False)
    equal("exit status", run.status, 3)


@scenario
def swap_is_not_pinned(bench):
    """On cgroup v2, of a dockerd in the root cgroup: it believes that there is no swap limit, and sets none."""
    run = bench.run(["sh", "-c", "echo ran"])
    found = [failure for failure in run.record["verdict"]["failures"] if failure["wall"] == "memory" and "memory.swap.max" in failure["source"]]
    if not found or (found[0]["expected"], found[0]["observed"]) != ("0", "max"):
        raise Wrong(said(run))
    equal("exit status", run.status, 3)
    equal("outcome", run.record["verdict"]["outcome"], "refused")
    equal("stdout", run.stdout(), "")


def run_all(bench, names):
    failed = 0
    for name in names:
        begin = time.monotonic()
        try:
            SCENARIOS[name](bench)
            bench.nothing_left()
            result = "ok  "
        except (Wrong, KeyError, TypeError, ValueError, IndexError, OSError, subprocess.SubprocessError) as error:
            result = f"FAIL {type(error).__name__}: {error}\n    "
            failed += 1
            for container in bench.engine.cli("ps", "-aq").stdout.split():
                bench.engine.cli("rm", "-f", container)
            subprocess.run([bench.stage.program, "gc"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60 * bench.slow)
            bench.runs.clear()
        print(f"{result} {bench.engine.name} {name} ({time.monotonic() - begin:.1f} s)", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser()
    for option in ("--engine", "--runtime", "--program", "--tools"):
        parser.add_argument(option, required=True)
    parser.add_argument("--slow", type=int, default=1)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: container engines need root")
        return 77
    program = {"docker": "dockerd", "podman": "podman"}[given.engine]
    if not shutil.which(program):
        print(f"skipped: no {program} here")
        return 77
    engines.VARIANTS["plain"] = {**engines.PATIENT, **PLAIN}
    engines.VARIANTS["partly"] = {**engines.PATIENT, **PLAIN, "without_runtime": f"[{', '.join(WALLS[:3])}]"}
    engines.enter()
    stage = engines.Stage(given.runtime, given.program, [os.path.join(given.tools, "candidate")],
                          os.environ.get("BENCHSAND_CACHE", "/var/cache/benchsand"), given.slow, given.compiled)
    names = given.names or [name for name in SCENARIOS if name != "swap_is_not_pinned"]
    failed = 0
    try:
        with engines.ENGINES[given.engine](stage) as engine:
            bench = Bench(stage, engine)
            try:
                failed = run_all(bench, names)
            finally:
                bench.close()
    finally:
        stage.close()
    print(f"{given.engine} without the runtime: {len(names)} scenarios, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
