"""What else happens on the host while a run runs: root that puts a hand in, others that take what they want, fewer processors."""

import json
import os
import re
import signal
import stat
import subprocess
import time
from pathlib import Path

from harness import MIB, Run, Wrong, between, equal

CGROUPS = Path("/sys/fs/cgroup")
SCENARIOS = {}
UNIFIED = CGROUPS / "unified" if (CGROUPS / "unified").is_dir() else CGROUPS


def hierarchies(controller):
    """The cgroup2 tree, and on a hybrid host a v1 hierarchy too."""
    return [UNIFIED] if UNIFIED == CGROUPS else [UNIFIED, CGROUPS / controller]


def has_controller(name):
    return (CGROUPS / name).is_dir() or name in (UNIFIED / "cgroup.controllers").read_text().split()


def write(path, text):
    with open(path, "w") as file:
        file.write(str(text))


class OwnCgroup:
    """A cgroup of the test's own; what is in it at the end is killed."""

    def __init__(self, hierarchy):
        self.name = f"benchsand-test-{os.getpid()}"
        self.path = hierarchy / self.name

    def __enter__(self):
        self.path.mkdir()
        return self

    def __exit__(self, *_):
        deadline = time.monotonic() + 60
        while True:
            for pid in (self.path / "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
            try:
                return self.path.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def take(self, pid):
        write(self.path / "cgroup.procs", pid)


class Disk:
    """Something to write on that ends on a block device: a file in the folder, or a loop device where that is a tmpfs."""

    def __init__(self, folder):
        self.folder, self.device = folder, None

    def __enter__(self):
        if os.major(os.stat(self.folder).st_dev) != 0:
            return self.folder / "disk"
        module = f"/usr/lib/uml/modules/{os.uname().release}/kernel/drivers/block/loop.ko"
        subprocess.run(["busybox", "insmod", module], capture_output=True)  # it may be there already
        image = self.folder / "disk.image"
        image.write_bytes(bytes(8 << 20))
        device = self.folder / "loop0"
        os.mknod(device, 0o600 | stat.S_IFBLK, os.makedev(7, 0))
        self.device = device
        subprocess.run(["losetup", device, image], check=True, capture_output=True)
        return device

    def __exit__(self, *_):
        if self.device:
            subprocess.run(["losetup", "-d", self.device], check=True, capture_output=True)
            self.device.unlink()


class Process:
    """A process of the test's own; the run may kill it first."""

    def __init__(self, command):
        self.command = command

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL)
        self.pid = self.process.pid
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Running:
    """A run of which the candidate runs already: so the door is behind it."""

    def __init__(self, bench, command, **keys):
        limits = {"wall_time": bench.seconds(60), **keys.pop("limits", {})}
        self.bench, self.task = bench, bench.write_task(command, limits=limits, **keys)

    def __enter__(self):
        self.process = subprocess.Popen(self.bench.arguments(self.task), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.wait_until(self.living, "the candidate did not start")
        self.candidates = self.living()
        self.done = None
        return self

    def __exit__(self, *_):
        self.finish()

    def living(self):
        """The candidate's own processes, the oldest first."""
        return sorted(int(pid) for pid in re.findall(r"process (\d+): b'/task/candidate", " ".join(self.bench.living())))

    def wait_until(self, done, complaint):
        deadline = time.monotonic() + 60 * self.bench.slow
        while not done():
            if time.monotonic() > deadline:
                raise Wrong(complaint)
            time.sleep(0.02)

    def tell(self):
        """Lets the candidate `until-told` end."""
        (Path("/proc") / str(self.candidates[0]) / "root/output/told").touch()

    def wait_until_dead(self):
        self.wait_until(lambda: not self.living(), "the candidate is still alive")

    def finish(self):
        if self.done is None:
            out, err = self.process.communicate(timeout=60 + 30 * self.bench.slow)
            self.done = Run(subprocess.CompletedProcess([], self.process.returncode, out, err), self.bench.work / "out")
            if self.done.record:
                self.bench.run_ids.add(self.done.record["id"])
        return self.done

    def leaf(self, hierarchy):
        """The run's cgroup there."""
        for line in Path(f"/proc/{self.candidates[0]}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == ("" if hierarchy == UNIFIED else hierarchy.name):
                return hierarchy / path.lstrip("/")
        raise Wrong(f"the candidate is in no cgroup of {hierarchy}")

    def walls(self):
        return {failure["wall"] for failure in self.finish().record["verdict"]["failures"]}

    def failure(self, wall):
        return " ".join(f["observed"] for f in self.finish().record["verdict"]["failures"] if f["wall"] == wall)

    def refused(self, *walls):
        """Ended at once and not scored, for these walls at least."""
        run = self.finish()
        if run.record is None:
            raise Wrong(f"no record; exit status {run.status}: {run.stderr}")
        verdict = run.record["verdict"]
        equal("refused", (run.status, verdict["scored"], verdict["outcome"]), (3, False, "refused"))
        equal("cause", run.record["end"]["cause"], "killed")
        if not set(walls) <= self.walls():
            raise Wrong(f"walls {sorted(self.walls())}, expected {sorted(walls)}: {json.dumps(verdict['failures'])}")
        return self


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


@scenario
def a_task_that_leaves_the_cgroup_ends_the_run(bench):
    """Moved out by root in one hierarchy: what it uses is counted nowhere from then on."""
    for place in hierarchies("freezer"):
        for command in (bench.candidate("sleep", 300), ["sh", "-c", " ".join(bench.candidate("sleep", 300)) + " & wait"]):
            with OwnCgroup(place) as own, Running(bench, command) as run:
                own.take(run.candidates[-1])
                observed = run.refused("processes").failure("processes")
                if own.name not in observed:
                    raise Wrong(f"no word of {own.name} in {observed}")


@scenario
def a_process_that_enters_the_pid_namespace_ends_the_run(bench):
    with Running(bench, bench.candidate("sleep", 300)) as run:
        with Process(["nsenter", "-t", str(run.candidates[0]), "-p", "sleep", "300"]):
            observed = run.refused("processes").failure("processes")
    if "pid namespace" not in observed:
        raise Wrong(f"no word of the pid namespace in {observed}")


@scenario
def a_process_of_the_host_in_the_cgroup_ends_the_run(bench):
    for place in hierarchies("freezer"):
        with Running(bench, bench.candidate("sleep", 300)) as run:
            with Process(["sleep", "300"]) as process:
                write(run.leaf(place) / "cgroup.procs", process.pid)
                run.wait_until_dead()  # so that a hierarchy without cgroup.kill can be cleared
            run.refused("namespaces", "privileges", "syscalls")


@scenario
def a_process_with_privileges_in_every_namespace_ends_the_run(bench):
    with Running(bench, bench.candidate("sleep", 300)) as run:
        place = run.leaf(UNIFIED) / "cgroup.procs"
        # Opened on the host, written from inside: nsenter itself stays where it was.
        enter = f"exec 9>{place}; exec nsenter -t {run.candidates[0]} -U -m -p -i -u -n -C --preserve-credentials sh -c 'echo 0 >&9; exec sleep 300'"
        run.process.send_signal(signal.SIGSTOP)  # no look while it is on its way
        with Process(["sh", "-c", enter]):
            run.wait_until(lambda: len(place.read_text().split()) == 2, "the intruder is not in the cgroup")
            run.process.send_signal(signal.SIGCONT)
            run.refused("privileges", "syscalls")
        if "namespaces" in run.walls():
            raise Wrong(f"it is in every namespace of the run, and yet: {run.failure('namespaces')}")


@scenario
def a_link_that_is_moved_in_ends_the_run(bench):
    """As `docker network connect` does it, in the middle of a run."""
    name = f"bs{os.getpid()}"
    made = subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", f"{name}p"], capture_output=True, text=True)
    if made.returncode != 0:
        print(f"     no veth in this kernel: {made.stderr.strip()}")
        return
    try:
        with Running(bench, bench.candidate("sleep", 300)) as run:
            subprocess.run(["ip", "link", "set", name, "netns", str(run.candidates[0])], check=True)
            observed = run.refused("network").failure("network")
        if f"link {name} appeared" not in observed:
            raise Wrong(f"no word of {name} in {observed}")
    finally:
        subprocess.run(["ip", "link", "delete", f"{name}p"], capture_output=True)  # it goes with the run's namespace


@scenario
def an_address_of_lo_alone_is_no_way_out(bench):
    with Running(bench, bench.candidate("until-told")) as run:
        subprocess.run(["nsenter", "-t", str(run.candidates[0]), "-n", "ip", "address", "add", "10.1.2.3/32", "dev", "lo"], check=True)
        run.tell()
        run.finish().expect(0, "succeeded", "exited")


def freeze(run):
    """As a delegate's `pause` does. Returns what thaws it."""
    if (CGROUPS / "freezer").is_dir():
        leaf = run.leaf(CGROUPS / "freezer")
        write(leaf / "freezer.state", "FROZEN")
        run.wait_until(lambda: (leaf / "freezer.state").read_text() == "FROZEN\n", "the run does not freeze")
        return lambda: write(leaf / "freezer.state", "THAWED")
    else:
        leaf = run.leaf(UNIFIED)
        write(leaf / "cgroup.freeze", "1")
        run.wait_until(lambda: "frozen 1" in (leaf / "cgroup.events").read_text(), "the run does not freeze")
        return lambda: write(leaf / "cgroup.freeze", "0")


@scenario
def a_frozen_run_ends_at_its_time(bench):
    """Not scored: the time was not the candidate's alone, also when it was thawed again."""
    for thawed in (False, True):
        with Running(bench, bench.candidate("sleep", 300), limits={"wall_time": bench.seconds(4)}) as run:
            thaw = freeze(run)
            if thawed:
                time.sleep(1 * bench.slow)
                thaw()
            done = run.finish()
            equal("status, scored, cause", (done.status, done.record["verdict"]["scored"], done.record["end"]["cause"]), (3, False, "killed"))
            equal("why", done.record["verdict"]["failures"][0]["observed"],
                  "finish the run: its wall time is over, and somebody had frozen it meanwhile (docker pause?)")


@scenario
def a_run_that_was_frozen_and_ends_by_itself_is_scored(bench):
    with Running(bench, bench.candidate("until-told")) as run:
        thaw = freeze(run)
        time.sleep(0.3 * bench.slow)
        thaw()
        run.tell()
        run.finish().expect(0, "succeeded", "exited")


@scenario
def a_frozen_run_whose_benchsand_is_killed_is_cleared(bench):
    with Running(bench, bench.candidate("sleep", 300)) as run:
        freeze(run)
        run.process.kill()
        run.process.wait()
        subprocess.run([bench.program, "gc"], check=True, capture_output=True)
        run.wait_until_dead()
        run.done = True


@scenario
def many_tasks_are_all_looked_at(bench):
    """More than one sample looks at; the end looks at every one of them."""
    run = bench.verb("forks", 1, limits={"processes": 200}).expect(0, "succeeded", "exited")
    between("tasks looked at", run.seen("spent", "processes", "tasks_seen"), 200, 100_000)


@scenario
def a_write_to_a_disk_breaks_the_output_wall(bench):
    """By the run's cgroup; nothing of the candidate's can, so a process of the host does it in there, while nobody looks."""
    with Disk(bench.work) as disk, Running(bench, bench.candidate("until-told")) as run:
        places = [run.leaf(place) / "cgroup.procs" for place in hierarchies("blkio")]
        join = "".join(f"echo $$ >{place} && " for place in places)
        run.process.send_signal(signal.SIGSTOP)
        try:
            # Opened outside: the run's devices cgroup would refuse it.
            with open(disk, "wb") as file:
                subprocess.run(["sh", "-c", f"{join} exec dd if=/dev/zero bs=1M count=2 oflag=direct"], check=True, stdout=file,
                               stderr=subprocess.DEVNULL)
        finally:
            run.process.send_signal(signal.SIGCONT)
            run.tell()
        record = run.finish().record
        if record["evidence"]["established"]["output"]["device_writes"]["observed"] == "not on this host":
            equal("walls", run.walls(), set())  # this kernel's v1 counter stands still
            return
        equal("walls", (record["verdict"]["scored"], run.walls()), (False, {"output"}))
        between("bytes", int(run.failure("output")), 2 * MIB, 4 * MIB)


@scenario
def others_killed_for_memory_are_a_notice(bench):
    memory = UNIFIED if UNIFIED == CGROUPS else CGROUPS / "memory"
    limit = "memory.max" if memory == CGROUPS else "memory.limit_in_bytes"
    with Running(bench, bench.candidate("until-told")) as run, OwnCgroup(memory) as own:
        write(own.path / limit, 8 * MIB)
        killed = subprocess.run(["sh", "-c", f"echo $$ >{own.path}/cgroup.procs && exec dd if=/dev/zero of=/dev/null bs=64M count=1"],
                                capture_output=True)
        equal("status of the other's process", killed.returncode, -signal.SIGKILL)
        run.tell()
        notices = run.finish().expect(0, "succeeded", "exited").record["notices"]
    if not any(re.fullmatch("host: [0-9]+ process(es)? outside the run killed for memory while it ran", notice) for notice in notices):
        raise Wrong(f"notices: {notices}")
    equal("the run's own", run.finish().seen("spent", "memory", "oom_kills"), 0)


@scenario
def space_that_others_take_is_a_notice(bench):
    size = 512 if bench.slow == 1 else 64  # others on this machine may free some meanwhile; the guest's is memory
    with Running(bench, bench.candidate("until-told")) as run:
        with open(bench.work / "others", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, size * MIB)
        run.tell()
        notices = run.finish().expect(0, "succeeded", "exited").record["notices"]
    lost = [int(found[1]) for found in (re.fullmatch(r"host: the file system of (?:.*)/out/(?:.*) lost (\d+) MiB while the run ran, of which "
                                                    r"benchsand wrote 0 MiB", notice) for notice in notices) if found]
    if len(lost) != 1 or lost[0] < size // 2:
        raise Wrong(f"notices: {notices}")


@scenario
def a_run_stays_on_its_processors(bench):
    profile = (bench.profiles / "strict.yaml").read_text()
    (bench.profiles / "pinned.yaml").write_text(profile.replace("\nseccomp:", "\ncpuset: 0\nseccomp:", 1))
    run = bench.run_task(bench.write_task(["nproc"]), "pinned")
    if not has_controller("cpuset"):
        equal("without a cpuset controller", (run.status, run.record), (3, None))
        if "this host has no cpuset controller" not in run.stderr:
            raise Wrong(f"no word of the controller in {run.stderr!r}")
        return
    equal("processors inside", run.expect(0, "succeeded", "exited").stdout(), "1\n")
    equal("cpuset", [run.seen("established", "cpu-time", name) for name in ("cpuset", "cpuset.end")], ["0", "0"])
    (bench.profiles / "absent.yaml").write_text(profile.replace("\nseccomp:", "\ncpuset: 8000\nseccomp:", 1))
    run = bench.run_task(bench.write_task(["nproc"]), "absent")
    equal("a processor that is not there", (run.status, run.record["verdict"]["outcome"], run.record["end"]["cause"]),
          (3, "fault", "not-started"))


@scenario
def throttling_is_counted(bench):
    limits = {"cpus": 0.2, "cpu_time": "200ms", "wall_time": bench.seconds(20)}
    run = bench.verb("spin", limits=limits).expect(124, "limit", "cpu-time")
    between("throttled periods", run.seen("spent", "cpu-time", "throttled_periods"), 3, 1000)
    between("throttled us", run.seen("spent", "cpu-time", "throttled_us"), 100_000, 20_000_000 * bench.slow)
