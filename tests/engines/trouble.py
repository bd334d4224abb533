"""Engines, helpers and disks that fail in the middle: nothing is scored without evidence, and nothing is left after gc."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from flags import behind_every_wall, expect_record, not_scored, said
from harness import Wrong, equal, names_in

SCENARIOS = {}


def scenario(*engines):
    def keep(function):
        function.engines = engines or ("docker", "podman", "containerd")
        SCENARIOS[function.__name__] = function
        return function
    return keep


def pid_of(engine, identity):
    if engine.name == "containerd":
        return int(next(line.split()[1] for line in engine.must("task", "ls").splitlines() if line.split()[0] == identity))
    return int(engine.must("inspect", "--format", "{{.State.Pid}}", identity))


def processes(bench, *words):
    """Those of this test whose command line has all these words."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue  # it has ended since
        if all(word in command for word in (bench.stage.token, *words)):
            found.append(int(pid))
    return found


def run_of(bench, identity):
    pid = pid_of(bench.engine, identity)
    return next(part for part in Path(f"/proc/{pid}/cgroup").read_text().split("/") if len(part) == 25 and part.startswith("r"))


def monitor_of(bench, identity):
    """The process that holds the lock of the container's run."""
    run = run_of(bench, identity)
    lock = os.stat(f"/run/benchsand/{run}/lock")
    device = f"{os.major(lock.st_dev):02x}:{os.minor(lock.st_dev):02x}:{lock.st_ino}"
    holders = [line.split()[4] for line in Path("/proc/locks").read_text().splitlines() if device in line and "FLOCK" in line]
    if len(holders) != 1:
        raise Wrong(f"the lock of {run} has {len(holders)} holders")
    return int(holders[0])


def ended(bench, pid, why):
    deadline = time.monotonic() + 60 * bench.slow
    while os.path.exists(f"/proc/{pid}") and "\nState:\tZ" not in status_of(pid):
        if time.monotonic() > deadline:
            raise Wrong(f"process {pid} lives on after {why}")
        time.sleep(0.05)


def status_of(pid):
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "\nState:\tZ"


def gc(bench):
    cleared = subprocess.run([bench.stage.program, "gc"], capture_output=True, text=True, timeout=60 * bench.slow)
    equal(f"gc, {cleared.stderr}", cleared.returncode, 0)


def sleeper(bench, *flags):
    done = bench.engine.run("benchsand-patient", ["-d", *flags], "tiny", "sleep", "1000")
    equal("run -d", (done.status, done.stderr), (0, ""))
    return done, pid_of(bench.engine, done.id)


# Ends when the test says so, by a file in the output.
WAITS = "while ! test -e /output/go; do sleep 0.05; done"


def waiter(bench, then="true", *flags):
    done = bench.engine.run("benchsand-patient", ["-d", *flags], "tiny", "sh", "-c", f"{WAITS}; {then}")
    equal("run -d", (done.status, done.stderr), (0, ""))
    return done, pid_of(bench.engine, done.id)


def let_go(pid):
    """Nothing to do where it has ended."""
    output = Path("/proc") / str(pid) / "root/output"
    if output.exists():
        (output / "go").touch()


@scenario()
def the_monitor_is_killed(bench):
    """Its container dies with it and has no score."""
    done, pid = sleeper(bench)
    monitor = monitor_of(bench, done.id)
    os.kill(monitor, signal.SIGKILL)
    ended(bench, pid, "SIGKILL of its monitor")
    not_scored(bench, done.id)
    bench.forget(done)
    gc(bench)


@scenario()
def the_monitor_is_killed_while_it_records(bench):
    """Its run is taken down, and the record is not there yet: then there is one that says so, and no older one speaks for it."""
    done, pid = waiter(bench)
    with open(bench.stage.records / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        monitor, run = monitor_of(bench, done.id), run_of(bench, done.id)
        let_go(pid)
        deadline = time.monotonic() + 60 * bench.slow
        while os.path.exists(f"/run/benchsand/{run}") and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(monitor, signal.SIGKILL)
    bench.forget(done)
    equal("scored", bench.record(done.id)["verdict"]["scored"], False)
    gc(bench)


@scenario()
def the_monitor_is_stopped(bench):
    """One that cannot watch cannot be outlived: a container that ends meanwhile is scored on evidence, or not at all."""
    done, pid = waiter(bench)
    monitor = monitor_of(bench, done.id)
    os.kill(monitor, signal.SIGSTOP)
    let_go(pid)
    time.sleep(bench.slow)  # long enough for the container to end, if it could
    not_scored(bench, done.id)
    os.kill(monitor, signal.SIGCONT)
    ended(bench, monitor, "the end of its container")
    bench.gone(done.id)
    expect_record(bench, done.id, "succeeded", "exited", exit_code=0)
    bench.forget(done)


@scenario("docker", "podman")
def a_container_that_runs_again(bench):
    """The score of its first run is not that of the second: not while it runs, not when its monitor is killed, not when it cannot be made."""
    engine, folder = bench.engine, bench.stage.work / "again"
    folder.mkdir()
    profile = Path("/etc/benchsand/profiles/patient.yaml")
    text = profile.read_text()
    done = engine.run("benchsand-patient", ["-v", f"{folder}:/in:ro"], "tiny", "sh", "-c", f"test -e /in/again || exit 0; {WAITS}")
    try:
        expect_record(bench, done.id, "succeeded", "exited", exit_code=0)
        (folder / "again").touch()
        engine.must("start", done.id)
        bench.stage.note_runs()
        no_score(bench, done.id, "no record yet")
        pid = pid_of(engine, done.id)
        os.kill(monitor_of(bench, done.id), signal.SIGKILL)
        ended(bench, pid, "SIGKILL of its monitor")
        bench.gone(done.id)
        no_score(bench, done.id, "no record yet")
        profile.write_text("benchsand_profile: 1\n")
        failed = engine.cli("start", done.id)
        equal(f"start under a profile that does not parse, {failed}", failed.status != 0, True)
        no_score(bench, done.id, "patient")
        bench.forget(done)
        gc(bench)
        no_score(bench, done.id, "patient")
    finally:
        profile.write_text(text)
        shutil.rmtree(folder)
    equal("the earlier ones", [bench.record(f"{done.id}~{number}")["verdict"]["scored"] for number in (1, 2)], [True, False])


def no_score(bench, identity, word):
    shown = bench.verdict(identity)
    if shown.returncode != 3 or "NOT SCORED" not in shown.stdout or word not in shown.stdout:
        raise Wrong(f"verdict: status {shown.returncode}, {shown.stdout!r}, {shown.stderr!r}, expected no score and {word!r}")


@scenario("docker", "containerd")
def the_containerd_shim_is_killed(bench):
    done, pid = sleeper(bench)
    shims = processes(bench, "containerd-shim", "-id", done.id)
    equal("shims", len(shims), 1)
    os.kill(shims[0], signal.SIGKILL)
    ended(bench, pid, "SIGKILL of containerd-shim")
    deadline = time.monotonic() + 60 * bench.slow
    while processes(bench, "benchsand", done.id) and time.monotonic() < deadline:
        time.sleep(0.05)
    not_scored(bench, done.id)
    bench.forget(done)
    gc(bench)


@scenario("docker")
def dockerd_is_killed_and_started_again(bench):
    """dockerd ends what runs when it comes back; that is somebody's kill, and no score."""
    engine = bench.engine
    done, pid = sleeper(bench, "--stop-timeout", "1")
    finished = engine.run("benchsand", [], "tiny", "true")
    engine.daemon.kill()
    engine.daemon.wait()
    engine.start()
    ended(bench, pid, "the restart of dockerd")
    not_scored(bench, done.id)
    expect_record(bench, finished.id, "succeeded", "exited", exit_code=0)
    again = engine.run("benchsand", [], "tiny", "sh", "-c", "exit 3")
    equal("run after the restart", again.status, 3)
    expect_record(bench, again.id, "failed", "exited", exit_code=3)
    for run in (done, finished, again):
        bench.forget(run)
    gc(bench)


@scenario("podman")
def conmon_is_killed(bench):
    done, pid = sleeper(bench)
    conmons = processes(bench, "conmon", done.id)
    equal("conmons", len(conmons), 1)
    os.kill(conmons[0], signal.SIGKILL)
    bench.engine.cli("rm", "-f", "-t", "0", done.id)
    ended(bench, pid, "rm -f")
    not_scored(bench, done.id)
    gc(bench)


def link_into(pid):
    """What an engine does that attaches a network: one end of a pair of links moves into the container's namespace."""
    subprocess.run(["ip", "link", "set", "outside2", "netns", str(pid)], check=True)


def link_again():
    """The pair goes with the namespace that its end was in."""
    deadline = time.monotonic() + 60
    while os.path.exists("/proc/self/net/dev") and "outside:" in Path("/proc/self/net/dev").read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    subprocess.run(["ip", "link", "add", "outside", "type", "veth", "peer", "name", "outside2"], check=True)


def broken_network(bench, identity):
    record = not_scored(bench, identity)
    if "network" not in {failure["wall"] for failure in record["verdict"]["failures"]}:
        raise Wrong(f"the record does not say what happened: {record['verdict']}")


@scenario()
def a_link_appears_while_it_runs(bench):
    """As docker 28 attaches a network: found, ended at once, not scored."""
    done, pid = sleeper(bench)
    link_into(pid)
    ended(bench, pid, "a link that appeared")
    link_again()
    bench.gone(done.id)
    broken_network(bench, done.id)
    equal("the run was ended, not only judged", bench.record(done.id)["end"]["cause"], "killed")
    bench.forget(done)


@scenario("containerd")
def a_link_appears_before_it_starts(bench):
    """Between create and start, where an engine may attach a network: the door does not open."""
    folder, container = bench.stage.work / "bundle", f"{bench.stage.token}-early"
    folder.mkdir()
    subprocess.run(["crun", "spec"], cwd=folder, check=True)
    config = json.loads((folder / "config.json").read_text())
    config["root"]["path"] = str(bench.stage.cache / "tiny-rootfs")
    config["process"].update(terminal=False, args=["true"])
    (folder / "config.json").write_text(json.dumps(config))
    runtime = [bench.stage.bin / "benchsand", "--root", bench.stage.work / "early"]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    subprocess.run([*runtime, "create", "--bundle", folder, container], check=True, **quiet)
    bench.stage.note_runs()
    state = json.loads(subprocess.run([*runtime, "state", container], check=True, capture_output=True).stdout)
    equal("status", state["status"], "created")
    link_into(state["pid"])
    started = subprocess.run([*runtime, "start", container], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    subprocess.run([*runtime, "delete", "--force", container], check=True, **quiet)
    link_again()
    shutil.rmtree(folder)
    equal("start succeeded", started.returncode == 0, False)
    if "network" not in started.stderr:
        raise Wrong(f"start does not say why: {started.stderr}")
    broken_network(bench, container)


@scenario("docker")
def a_network_is_connected_to_it(bench):
    """Either no link comes of it (docker 20.10, whose hook was not run), or the run is ended and not scored."""
    engine = bench.engine
    network = f"{bench.stage.token}-net"
    engine.must("network", "create", "--subnet", "192.0.2.0/24", network)
    try:
        done, pid = waiter(bench, "exec /bin/intruder")
        engine.cli("network", "connect", network, done.id)
        let_go(pid)
        if engine.must("wait", done.id) == "0":
            behind_every_wall(said(engine.cli("logs", done.id).stdout))
            expect_record(bench, done.id, "succeeded", "exited", exit_code=0)
        else:
            broken_network(bench, done.id)
        engine.cli("network", "disconnect", network, done.id)
        bench.forget(done)
        inside = engine.run("benchsand", ["--network", network], "tiny", "/bin/intruder")
        equal("a container in a network of its own", inside.status, 0)
        behind_every_wall(said(inside.stdout))
        expect_record(bench, inside.id, "succeeded", "exited", exit_code=0)
        bench.forget(inside)
    finally:
        bench.clear()
        engine.cli("network", "rm", network)


def room(folder):
    return os.statvfs(folder).f_bfree


@scenario("docker", "podman")
def the_disk_is_full(bench):
    """No room for the record: nothing runs, its user is told, and no half record stands there."""
    records = bench.stage.records
    records.mkdir(mode=0o700, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", records], check=True)
    try:
        with open(records / "full", "wb", buffering=0) as file:
            while room(records):
                file.write(bytes(4096))
        done = bench.engine.run("benchsand", [], "tiny", "sh", "-c", "exit 5")
        if done.status in (0, 5) or "nothing was recorded" not in done.stderr:
            raise Wrong(f"a run without a record: {done}")
        equal("what stands in the full folder", [name for name in names_in(records) if name.endswith(".json")], [])
        bench.forget(done, maybe=True)
    finally:
        subprocess.run(["umount", records], check=True)
    gc(bench)
