"""`benchsand gc` in the stores of Docker and Podman, and a benchsand that is killed: scenarios of front_trouble.py."""

import itertools
import os
import signal
import subprocess
import time
from pathlib import Path

from harness import RUN_ID, Wrong, equal, names_in

SCENARIOS = {}


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


def soon(bench, what, look, expected):
    deadline = time.monotonic() + 60 * bench.slow
    while (seen := look()) != expected and time.monotonic() < deadline:
        time.sleep(0.02)
    equal(what, seen, expected)


def start_sleeper(bench, **environment):
    """A run whose candidate sleeps by now, and the container's id."""
    before = bench.containers(bench.engine)
    task = bench.write_task(bench.candidate("sleep", 300), limits={"wall_time": bench.seconds(100)})
    process = subprocess.Popen(bench.arguments(task), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
    soon(bench, "the candidate runs", lambda: any("b'/task/candidate" in trace for trace in bench.living()), True)
    made = bench.containers(bench.engine) - before
    equal("containers made", len(made), 1)
    bench.run_ids |= set(RUN_ID.findall(" ".join(names_in("/run/benchsand")))) & runs_of(bench)
    return process, made.pop()


def runs_of(bench):
    """The runs that note their results below the bench's folder."""
    noted = set()
    for name in names_in("/run/benchsand"):
        if name.startswith("results-") and str(bench.work) in Path(f"/run/benchsand/{name}").read_text():
            noted.add(name.removeprefix("results-"))
    return noted


def nothing_runs(bench):
    soon(bench, "the candidate is gone", lambda: {trace for trace in bench.living() if "b'/task/candidate" in trace}, set())


@scenario
def a_killed_benchsand_leaves_what_gc_clears(bench):
    process, container = start_sleeper(bench)
    process.kill()
    process.wait()
    nothing_runs(bench)
    equal("containers", bench.containers(bench.engine), {container})
    told = bench.gc()
    if f"removed container {container} from {bench.engine}" not in told or f"cleared the order for container {container}" not in told:
        raise Wrong(f"gc says {told!r}")


@scenario
def a_living_owner_keeps_its_container(bench):
    process, container = start_sleeper(bench)
    process.send_signal(signal.SIGSTOP)
    told = bench.gc()
    equal("gc touches it", container in told, False)
    equal("containers", bench.containers(bench.engine), {container})
    equal("it runs", any("b'/task/candidate" in trace for trace in bench.living()), True)
    process.send_signal(signal.SIGCONT)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60 * bench.slow)
    equal("exit status", process.returncode, 3)


NUMBERS = itertools.count()


def named(flags):
    """As a run names its container."""
    run = [word.removeprefix("benchsand.run=") for word in flags if word.startswith("benchsand.run=")]
    return "--name", "benchsand-" + (run[0] if run else f"r{next(NUMBERS):024}"), *flags


def labels(**changed):
    child = subprocess.Popen(["true"])
    child.wait()
    of_the_dead = {"run": f"r{next(NUMBERS):024}", "owner": str(child.pid), "owner_start": "12345",
                   "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(), **changed}
    return [word for name, value in of_the_dead.items() if value for word in ("--label", f"benchsand.{name}={value}")]


@scenario
def labels_decide(bench):
    """What is not wholly ours stays, whoever made it; containers and volumes alike."""
    engine = bench.engines[bench.engine]
    engine.need_image("tiny")
    image = "tiny" if engine.name == "docker" else "localhost/tiny"
    start = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19]
    for what, make, remove in (("container", lambda *flags: engine.must("create", *named(flags), image, "true"), ("rm",)),
                               ("volume", lambda *flags: engine.must("volume", "create", *flags), ("volume", "rm"))):
        dead = {make(*labels()), make(*labels(boot="another"))}
        kept = {make(), make(*labels(owner_start="")), make(*labels(boot="")), make(*labels(owner="x")), make(*labels(run="")),
                make(*labels(owner=str(os.getpid()), owner_start=start))}
        # Podman is asked on a socket: no run of its own service was killed here.
        told = bench.gc_on_socket()
        removed = {name for name in dead | kept if f"removed {what} {name} from {bench.engine}" in told}
        engine.must(*remove, *kept)
        equal(f"each {what} removed by gc", removed, dead)


@scenario
def labels_of_an_image_make_nobody_s_container_ours(bench):
    """Its author chose them, and whoever starts a container of it has them too."""
    engine = bench.engines[bench.engine]
    engine.need_image("tiny")
    image = "tiny" if engine.name == "docker" else "localhost/tiny"
    containers = {engine.must("create", "--name", name, *labels(), image, "true") for name in ("precious", "benchsand-r1")}
    told = bench.gc_on_socket()
    left = bench.containers(bench.engine)
    engine.must("rm", *containers)
    equal("left", (containers - left, any(name in told for name in containers)), (set(), False))


@scenario
def an_engine_that_does_not_answer_is_a_line(bench):
    done = subprocess.run([bench.program, "gc"], capture_output=True, text=True, timeout=60 * bench.slow,
                          env={**os.environ, "DOCKER_HOST": "unix:///nowhere/docker.sock", "CONTAINER_HOST": "unix:///nowhere/podman.sock"})
    equal("gc", (done.returncode, done.stderr), (0, ""))
    lines = [line for line in done.stdout.splitlines() if "there is no such socket" in line]
    equal("engines that did not answer", [line.split(":")[0] for line in lines], ["did not look into docker", "did not look into podman"])
