"""What people do with containers every day: it works under benchsand, and none of it takes a wall down."""

import json
import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

from flags import ATTEMPTS, behind_every_wall, expect_record, not_scored, said
from harness import MIB, Wrong, between, equal

SCENARIOS = {}


def scenario(*engines):
    def keep(function):
        function.engines = engines or ("docker", "podman", "containerd")
        SCENARIOS[function.__name__] = function
        return function
    return keep


def soon(bench, what, look, expected):
    deadline = time.monotonic() + 30 * bench.slow
    while (seen := look()) != expected and time.monotonic() < deadline:
        time.sleep(0.05)
    equal(what, seen, expected)


@scenario()
def a_run_with_no_flag(bench):
    """Only lo, no route, the exit code, both streams, a scored record; also with --rm."""
    engine = bench.engine
    done = engine.run("benchsand", [], "tiny", "sh", "-c", "grep -c : /proc/net/dev; wc -l </proc/net/route; echo err >&2; exit 7")
    equal("docker run", (done.status, done.stdout, done.stderr), (7, "1\n1\n", "err\n"))
    record = expect_record(bench, done.id, "failed", "exited", exit_code=7, signal=None)
    equal("bytes", (record["stdout"]["bytes"], record["stderr"]["bytes"]), (4, 4))
    bench.forget(done)
    gone = engine.run("benchsand", ["--rm"], "tiny", "true")
    equal("--rm", (gone.status, gone.stderr), (0, ""))
    expect_record(bench, gone.id, "succeeded", "exited", exit_code=0)
    mode = os.stat(bench.stage.records / f"{gone.id}.json")
    equal("mode and owner of the record", (oct(mode.st_mode), mode.st_uid), ("0o100600", 0))


def runtime_calls(container):
    """Processes of the runtime that were called for it."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if container in words and "benchsand" in words[0]:
            found.append(" ".join(words))
    return found


def exec_that_may_be_killed(bench, container):
    """Docker's client has been seen to wait for a process that was killed before it began; the runtime's call must have ended."""
    try:
        bench.engine.cli("exec", container, "true", timeout=20)
    except subprocess.TimeoutExpired:
        equal("calls of the runtime while Docker waits", runtime_calls(container), [])


@scenario("docker", "podman")
def an_exec_that_does_not_come_in_ends_nothing(bench):
    """Neither a mistake of an operator's nor a candidate that kills whoever comes costs the run its score."""
    done = bench.engine.run("benchsand", ["-d"], "tiny", "sh", "-c", "sleep 3; exit 4")
    equal("run -d", (done.status, done.stderr), (0, ""))
    mistaken = bench.engine.cli("exec", "-w", "/not/there", done.id, "true")
    equal(f"exec in a folder that is not there, {mistaken}", mistaken.status != 0, True)
    bench.gone(done.id)
    expect_record(bench, done.id, "failed", "exited", exit_code=4)
    bench.forget(done)
    done = bench.engine.run("benchsand", ["-d"], "tiny", "/bin/candidate", "kill-all", "3")
    equal("run -d", (done.status, done.stderr), (0, ""))
    for _ in range(8):
        exec_that_may_be_killed(bench, done.id)
    bench.gone(done.id)
    expect_record(bench, done.id, "failed", "exited", exit_code=4)
    bench.forget(done)


@scenario()
def a_fault_that_is_undone(bench):
    """The record and the engine agree that init died of it, and nothing of it goes on meanwhile."""
    for way in (["crash-of-a-frame"], ["crash-undone"], ["crash-undone"], ["crash-beside-held-threads", "4"]):
        done = bench.engine.run("benchsand", [], "tiny", "/bin/candidate", *way)
        equal(f"{way}: {done}", (done.status in (137, 139), done.stdout), (True, ""))
        expect_record(bench, done.id, "failed", "signaled", signal=11)
        bench.forget(done)
    done = bench.engine.run("benchsand", [], "tiny", "/bin/candidate", "crash-beside-held-threads", "20")
    expect_record(bench, done.id, "limit", "refusals")
    bench.forget(done)


@scenario()
def a_verdict_outlives_the_container(bench):
    """By id, by the beginning of one, and by name."""
    name = f"{bench.stage.token}-named"
    done = bench.engine.run("benchsand", [], "tiny", "sh", "-c", "exit 7", name=name)
    bench.forget(done)
    for known_as in (done.id, done.id[:24], name):
        again = bench.verdict(known_as)
        equal(f"verdict {known_as}, {again.stderr}", (again.returncode, again.stdout.splitlines()[-1:]),
              (1, ["verdict     SCORED (reproducible) failed: exited, exit code 7"]))


@scenario()
def python_answers(bench):
    if bench.slow != 1:
        return  # loading its image takes the guest minutes
    bench.engine.need_image("python")
    code = "import sys; print(6 * 7); open('/output/answer', 'w').write('42'); sys.exit(3)"
    done = bench.engine.run("benchsand-python", [], "python", "python3", "-c", code)
    equal("python3", (done.status, done.stdout, done.stderr), (3, "42\n", ""))
    record = expect_record(bench, done.id, "failed", "exited", exit_code=3)
    equal("outputs", [(output["path"], output["size"]) for output in record["outputs"]], [("answer", 2)])
    bench.forget(done)


@scenario()
def passthrough_is_the_delegate_alone(bench):
    """No wall and no record: what an engine asks for is what it gets."""
    done = bench.engine.run("benchsand-passthrough", [], "tiny", "sh", "-c", "echo in >/created && cat /created; exit 8")
    equal("passthrough", (done.status, done.stdout), (8, "in\n"))
    equal("record", os.path.exists(bench.stage.records / f"{done.id}.json"), False)
    bench.forget(done)


@scenario()
def a_command_that_is_not_there(bench):
    """Nothing ran, so nothing is scored, and docker's user gets the status that says why."""
    done = bench.engine.run("benchsand", [], "tiny", "/no-such-program")
    equal(f"exit status, {done}", done.status, 1 if bench.engine.name == "containerd" else 127)
    record = not_scored(bench, done.id)
    equal("outcome, cause", (record["verdict"]["outcome"], record["end"]["cause"]), ("fault", "not-started"))
    if "no-such-program" not in (why := json.dumps(record["verdict"]["failures"])):
        raise Wrong(f"the record does not say what went wrong: {why}")
    bench.forget(done, maybe=True)


@scenario()
def a_signal_that_ends_it(bench):
    done = bench.engine.run("benchsand", [], "tiny", "sh", "-c", "kill -ABRT $$; sleep 1; exec /bin/candidate exit 5")
    record = bench.record(done.id)
    equal("scored", record["verdict"]["scored"], True)
    bench.forget(done)


@scenario("docker", "podman")
def limits_end_it(bench):
    """Each limit with its outcome in the record, and with an exit status that the engine's user understands."""
    for command, runtime, cause, statuses in (
            (("/bin/candidate", "alloc", "1000"), "benchsand-patient", "memory", (137,)),
            (("/bin/candidate", "spin"), "benchsand-brief", "cpu-time", (137,)),
            (("sleep", "1000"), "benchsand-quick", "wall-time", (137,)),
            (("/bin/candidate", "flood", "1000"), "benchsand-patient", "output", (137,))):
        done = bench.engine.run(runtime, [], "tiny", *command)
        if done.status not in statuses:
            raise Wrong(f"exit status after {cause}: {done}")
        expect_record(bench, done.id, "limit", cause)
        bench.forget(done)
    if bench.engine.name == "podman":  # docker has annotations from version 24 on
        done = bench.engine.run("benchsand", ["--annotation", f"benchsand.limits.wall_time={2 * bench.slow}s"], "tiny", "sleep", "1000")
        expect_record(bench, done.id, "limit", "wall-time")
        bench.forget(done)
    done = bench.engine.run("benchsand", [], "tiny", "/bin/candidate", "forks", "3")
    record = expect_record(bench, done.id, "succeeded", "exited", exit_code=0)
    equal("refused forks", said(done.stdout.replace(" ", "\n"))["errno"], "EAGAIN")
    between("refused forks in the record", record["evidence"]["spent"]["processes"]["refused"]["observed"], 3, 3)
    bench.forget(done)


@scenario("docker", "podman")
def an_exec_is_behind_the_same_walls(bench):
    engine = bench.engine
    done = engine.run("benchsand-patient", ["-d"], "tiny", "sleep", "1000")
    equal("run -d", (done.status, done.stderr), (0, ""))
    for flags in ([], ["--privileged"], ["--user", "0"], ["--user", "0", "--privileged", "--workdir", "/output", "--env", "A=b"]):
        inside = engine.cli("exec", *flags, done.id, "/bin/intruder", *ATTEMPTS)
        equal(f"exec {flags}, {inside}", (inside.status, inside.stderr), (0, ""))
        behind_every_wall(said(inside.stdout))
    code = engine.cli("exec", "--env", "WORD=given", done.id, "sh", "-c", "echo $WORD; echo err >&2; exit 9")
    equal("exec", (code.status, code.stdout, code.stderr.strip()), (9, "given\n", "err"))
    for flags, program in ((["--workdir", "/nope"], "true"), (["--workdir", "/etc/passwd"], "true"), ([], "nosuch"), ([], "/etc")):
        wrong = engine.cli("exec", *flags, done.id, program)
        if wrong.status == 0:
            raise Wrong(f"exec {flags} {program}: {wrong}")
    engine.must("exec", "-d", done.id, "sh", "-c", "echo later >/output/later; sleep 1000")
    soon(bench, "file of exec -d", lambda: engine.cli("exec", done.id, "cat", "/output/later").stdout, "later\n")
    engine.must("kill", done.id)
    engine.must("wait", done.id)
    record = bench.record(done.id)
    equal("outcome of a killed run", (record["verdict"]["scored"], record["end"]["cause"]), (False, "killed"))
    bench.forget(done)


@scenario("docker", "podman")
def a_profile_may_deny_exec(bench):
    done = bench.engine.run("benchsand-closed", ["-d"], "tiny", "sleep", "1000")
    equal("run -d", (done.status, done.stderr), (0, ""))
    inside = bench.engine.cli("exec", done.id, "true")
    if inside.status == 0 or "denies further processes" not in inside.stdout + inside.stderr:
        raise Wrong(f"exec under a profile that denies it: {inside}")
    bench.engine.remove(done.id)
    not_scored(bench, done.id)


def cgroup_value(pid, controller, v1, v2):
    """A file of the container's cgroup as the host has it."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return Path(f"/sys/fs/cgroup/{controller}{path}/{v1}").read_text().strip()
        unified = Path(f"/sys/fs/cgroup{path}/{v2}")
        if number == "0" and os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
            return unified.read_text().strip()
    raise Wrong(f"process {pid} is in no cgroup of {controller}")


def limits_on_the_host(pid):
    return {"memory": cgroup_value(pid, "memory", "memory.limit_in_bytes", "memory.max"),
            "swap": cgroup_value(pid, "memory", "memory.memsw.limit_in_bytes", "memory.swap.max"),
            "processes": cgroup_value(pid, "pids", "pids.max", "pids.max"),
            "cpu": cgroup_value(pid, "cpu", "cpu.cfs_quota_us", "cpu.max")}


def pinned(memory):
    """What the swap file says when memory and swap together are the memory."""
    return "0" if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else str(memory)


@scenario("docker", "podman")
def an_update_cannot_loosen(bench):
    """The host's cgroup is asked, not the engine; and swap is pinned on cgroup v2, where docker leaves it at max."""
    engine = bench.engine
    done = engine.run("benchsand-patient", ["-d", "--memory", "192m"], "tiny", "sleep", "1000")
    equal("run -d", (done.status, done.stderr), (0, done.stderr))
    pid = engine.must("inspect", "--format", "{{.State.Pid}}", done.id)
    before = limits_on_the_host(pid)
    equal("memory, swap", (before["memory"], before["swap"]), (str(192 * MIB), pinned(192 * MIB)))

    def update(processes, *flags):
        engine.must("update", *flags, *(["--pids-limit", processes] if engine.name == "docker" else []), done.id)

    update("0", "--memory", "1g", "--memory-swap", "-1")
    update("-1", "--memory", "1g", "--memory-swap", "2g", "--cpus", str(min(2, os.cpu_count())))
    equal("limits after loosening updates", limits_on_the_host(pid), before)
    update("8", "--memory", "128m", "--memory-swap", "256m")
    after = limits_on_the_host(pid)
    equal("memory, swap, processes after a tightening update", (after["memory"], after["swap"], after["processes"]),
          (str(128 * MIB), pinned(128 * MIB), "8" if engine.name == "docker" else before["processes"]))
    engine.remove(done.id)
    not_scored(bench, done.id)


@scenario("docker", "podman")
def stop_kill_restart_wait(bench):
    engine = bench.engine
    done = engine.run("benchsand-patient", ["-d"], "tiny", "sh", "-c", "trap 'exit 4' TERM; echo up; while :; do sleep 0.1; done")
    soon(bench, "logs", lambda: engine.cli("logs", done.id).stdout, "up\n")
    engine.must("restart", "-t", "60", done.id)
    soon(bench, "logs after the restart", lambda: engine.cli("logs", done.id).stdout, "up\nup\n")
    bench.stage.note_runs()
    waiter = subprocess.Popen([*engine.client, "wait", done.id], stdout=subprocess.PIPE, text=True, env=engine.environment)
    time.sleep(0.3)
    engine.must("stop", "-t", "60", done.id)
    equal("wait", waiter.communicate(timeout=60 * bench.slow)[0].strip(), "4")
    equal("exit code", engine.must("inspect", "--format", "{{.State.ExitCode}} {{.State.Running}}", done.id), "4 false")
    equal("records", bench.record(done.id)["end"]["exit_code"], 4)
    engine.must("start", done.id)
    soon(bench, "logs after the start", lambda: engine.cli("logs", done.id).stdout, "up\nup\nup\n")
    bench.stage.note_runs()
    engine.must("kill", "-s", "KILL", done.id)
    equal("wait", engine.must("wait", done.id), "137")
    record = bench.record(done.id)
    equal("outcome of a killed run", (record["verdict"]["scored"], record["end"]["cause"]), (False, "killed"))
    bench.forget(done)


@scenario("docker", "podman")
def pause_top_stats_events_inspect(bench):
    engine = bench.engine
    since = str(int(time.time()) - 1)
    done = engine.run("benchsand-patient", ["-d"], "tiny", "sleep", "1000")
    equal("run -d", (done.status, done.stderr), (0, ""))
    status = ["inspect", "--format", "{{.State.Status}}", done.id]
    equal("status", engine.must(*status), "running")
    engine.must("pause", done.id)
    equal("status", engine.must(*status), "paused")
    engine.must("unpause", done.id)
    equal("status", engine.must(*status), "running")
    if "sleep" not in (top := engine.must("top", done.id)):
        raise Wrong(f"top: {top}")
    stats = engine.must("stats", "--no-stream", "--format", "{{.MemUsage}} {{.PIDs}}", done.id)
    if stats.startswith("0B") or stats.startswith("--") or not stats.endswith(" 1"):
        raise Wrong(f"stats: {stats}")
    engine.remove(done.id)
    wanted = ["create", "start", "pause", "unpause"]

    def events():
        told = engine.must("events", "--since", since, "--until", str(int(time.time()) + 1), "--filter", f"container={done.id}", "--format", "{{.Status}}")
        return [event for event in told.split() if event in wanted]
    soon(bench, "events", events, wanted)
    not_scored(bench, done.id)


@scenario("docker", "podman")
def outputs_are_copied_out(bench):
    done = bench.engine.run("benchsand", [], "tiny", "sh", "-c", "mkdir /output/made && echo content >/output/made/file")
    expect_record(bench, done.id, "succeeded", "exited", exit_code=0)
    target = bench.stage.work / "copied"
    bench.engine.must("cp", f"{done.id}:/output/made/file", target)
    equal("docker cp", target.read_text(), "content\n")
    target.unlink()
    bench.forget(done)


@scenario("docker", "podman")
def no_name_of_the_host_is_handed_in(bench):
    """Behind a volume that is a bind mount, or a symbolic link, it is the same directory."""
    engine = bench.engine
    engine.must("volume", "create", "--opt", "type=none", "--opt", "o=bind", "--opt", "device=/etc", "aliased")
    links = bench.stage.work / "links"
    links.mkdir()
    (links / "etc").symlink_to("/etc")
    (links / "programs").symlink_to("/usr/local/lib")
    try:
        for mount in ("aliased:/in:ro", "aliased:/output", f"{links}/etc:/in:ro", f"{links}/etc:/output", f"{links}/programs:/output"):
            done = engine.run("benchsand", ["-v", mount], "tiny", "true")
            if done.status == 0 or "benchsand refuses" not in done.stderr:
                raise Wrong(f"-v {mount}: {done}")
            not_scored(bench, done.id)
            bench.forget(done, maybe=True)
    finally:
        shutil.rmtree(links)
        engine.must("volume", "rm", "aliased")


@scenario("docker", "podman")
def output_of_thousands_of_lines(bench):
    done = bench.engine.run("benchsand", [], "tiny", "sh", "-c", "seq 20000; seq 20000 >&2")
    expected = "".join(f"{number}\n" for number in range(1, 20001))
    equal("stdout, stderr", (len(done.stdout), done.stdout == expected, done.stderr == expected), (len(expected), True, True))
    logs = bench.engine.cli("logs", done.id)
    equal("logs", (logs.stdout == expected, logs.stderr == expected), (True, True))
    bench.forget(done)


@scenario("docker", "podman")
def standard_input(bench):
    with subprocess.Popen(["seq", "5000"], stdout=subprocess.PIPE) as lines:
        done = bench.engine.run("benchsand", ["-i"], "tiny", "wc", "-l", stdin=lines.stdout)
    equal("wc", (done.status, done.stdout), (0, "5000\n"))
    expect_record(bench, done.id, "succeeded", "exited", exit_code=0)
    bench.forget(done)


@scenario("docker", "podman")
def a_terminal(bench):
    """With a real one on the outside: it is one inside, it has the size, what is typed arrives, and the end comes."""
    engine = bench.engine
    cidfile = bench.stage.work / "terminal"
    cidfile.unlink(missing_ok=True)
    global_runtime = ["--runtime", "benchsand-patient"]
    command = ["run", "-it", "--cidfile", str(cidfile), "localhost/tiny" if engine.name == "podman" else "tiny", "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && echo three; read line; echo got $line; exit 6"]
    words = [*engine.client, *global_runtime, *command] if engine.name == "podman" else [*engine.client, command[0], *global_runtime, *command[1:]]
    master, slave = pty.openpty()
    process = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, env=engine.environment, start_new_session=True)
    os.close(slave)
    seen, typed, deadline = b"", False, time.monotonic() + 60 * bench.slow
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.2)[0]:
            try:
                seen += os.read(master, 4096)
            except OSError:
                break  # the other end is closed
        if b"three" in seen and not typed:
            typed = True
            os.write(master, b"typed\n")
        if process.poll() is not None and not select.select([master], [], [], 0.2)[0]:
            break
    os.close(master)
    bench.stage.note_runs()
    if process.poll() is None:
        process.kill()
    status = process.wait()
    equal(f"terminal, {seen!r}", (status, b"got typed" in seen), (6, True))
    identity = cidfile.read_text()
    record = bench.record(identity)
    equal("end, scored", (record["end"]["exit_code"], record["verdict"]["scored"]), (6, True))
    engine.remove(identity)


@scenario("containerd")
def tasks_of_ctr(bench):
    """exec, pause, resume, ps, metrics, kill as ctr has them."""
    engine = bench.engine
    done = engine.run("benchsand-patient", ["-d"], "tiny", "sleep", "1000")
    equal("run -d", (done.status, done.stderr), (0, ""))
    inside = engine.cli("task", "exec", "--exec-id", "e1", "--user", "0", done.id, "/bin/intruder", *ATTEMPTS)
    equal("exec", (inside.status, inside.stderr), (0, ""))
    behind_every_wall(said(inside.stdout))
    equal("exit code of exec", engine.cli("task", "exec", "--exec-id", "e2", done.id, "sh", "-c", "exit 9").status, 9)
    engine.must("task", "pause", done.id)
    if "PAUSED" not in (listed := engine.must("task", "ls")):
        raise Wrong(f"task ls: {listed}")
    engine.must("task", "resume", done.id)
    if len(engine.must("task", "ps", done.id).splitlines()) != 2:
        raise Wrong("task ps shows more or less than one process")
    if "memory" not in (metrics := engine.must("task", "metrics", done.id)):
        raise Wrong(f"metrics: {metrics}")
    engine.must("task", "kill", "-s", "SIGKILL", done.id)
    soon(bench, "task", lambda: "STOPPED" in engine.must("task", "ls"), True)
    record = bench.record(done.id)
    equal("outcome of a killed run", (record["verdict"]["scored"], record["end"]["cause"]), (False, "killed"))
    bench.forget(done)
