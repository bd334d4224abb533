"""What root on the host can do to a run while it runs, and what must become of the run then."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from harness import Run, Wrong, between, equal

CGROUPS = Path("/sys/fs/cgroup")
SCENARIOS = {}
UNIFIED = CGROUPS / "unified" if (CGROUPS / "unified").is_dir() else CGROUPS


def hierarchies(controller):
    """The cgroup2 tree, and on a hybrid host a v1 hierarchy too."""
    return [UNIFIED] if UNIFIED == CGROUPS else [UNIFIED, CGROUPS / controller]


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
        deadline = time.monotonic() + 20
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
        deadline = time.monotonic() + 30 * self.bench.slow
        while not done():
            if time.monotonic() > deadline:
                raise Wrong(complaint)
            time.sleep(0.02)

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
        enter = f"exec 9>{place}; exec nsenter -t {run.candidates[0]} -m -p -i -u -n -C sh -c 'echo 0 >&9; exec sleep 300'"
        run.process.send_signal(signal.SIGSTOP)  # no look while it is on its way
        with Process(["sh", "-c", enter]):
            run.wait_until(lambda: len(place.read_text().split()) == 2, "the intruder is not in the cgroup")
            run.process.send_signal(signal.SIGCONT)
            run.refused("privileges", "syscalls")
        if "namespaces" in run.walls():
            raise Wrong(f"it is in every namespace of the run, and yet: {run.failure('namespaces')}")


@scenario
def many_tasks_are_all_looked_at(bench):
    """More than one sample looks at; the end looks at every one of them."""
    run = bench.verb("forks", 1, limits={"processes": 200}).expect(0, "succeeded", "exited")
    between("tasks looked at", run.seen("spent", "processes", "tasks_seen"), 200, 100_000)
