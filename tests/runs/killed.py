"""benchsand killed or told to stop in the middle of things: no process of it lives on, and gc finds all that is left."""

import glob
import os
import re
import shutil
import signal
import subprocess
import time

from harness import RUN_ID, between, dead_runs, equal

SCENARIOS = {}
MOST_CALLS = 1000


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


def soon_none(bench, look):
    """What is left when nothing more goes away: others work on this machine too, and take away what is theirs."""
    deadline = time.monotonic() + 30 * bench.slow
    left = look()
    while left and time.monotonic() < deadline:
        time.sleep(0.005)
        left &= look()
    return left


def ended(bench, why):
    """No process of the bench may live. One that does would do so for ever, so it is ended here."""
    left = soon_none(bench, bench.living)
    for pid in re.findall(r"process (\d+):", " ".join(left)):
        os.kill(int(pid), signal.SIGKILL)
    equal(f"processes alive after {why}", left, set())


def cleared_by_gc(bench, why):
    dead = dead_runs()
    cleared = subprocess.run([bench.program, "gc"], capture_output=True, text=True, timeout=60)
    equal(f"gc status, {why}, {cleared.stderr}", cleared.returncode, 0)
    equal(f"left after gc, {why}", bench.left_behind(dead), set())


def cgroups_without_a_run():
    made = set(RUN_ID.findall(" ".join(glob.glob("/sys/fs/cgroup/**/benchsand/r*", recursive=True))))
    return {run for run in made if not os.path.exists(f"/run/benchsand/{run}")}


@scenario
def killed_at_a_system_call_leaves_nothing(bench):
    """SIGKILL of benchsand, which alone is traced, at each call of a kind that it makes: while a helper process lives, too."""
    if bench.slow != 1:
        return  # in the guest a traced run takes minutes
    task = bench.write_task(bench.candidate("exit", 0))
    for call in ("clone,clone3,fork,vfork", "open_tree", "wait4", "read", "write"):
        killed = 0
        for when in range(1, MOST_CALLS):
            trace = ["strace", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={when}"]
            done = subprocess.run([*trace, *bench.arguments(task)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
            ended(bench, f"SIGKILL at {call} {when}")
            if done.returncode != -signal.SIGKILL:
                break
            killed += 1
            cleared_by_gc(bench, f"SIGKILL at {call} {when}")
        between(f"runs that were killed at {call}", killed, 1, MOST_CALLS - 2)


@scenario
def stopped_doctor_leaves_nothing(bench):
    """SIGKILL and SIGINT in the first moments of doctor; after SIGINT there is nothing for gc either."""
    program = bench.work / "doctor-of-its-own"  # so that its processes carry the token
    shutil.copy(bench.program, program)
    steps, pause = (40, 0.0007) if bench.slow == 1 else (6, 0.1)
    for number in (signal.SIGKILL, signal.SIGINT):
        for step in range(steps):
            before = dead_runs() | cgroups_without_a_run()
            process = subprocess.Popen([program, "doctor"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(pause * step)
            process.send_signal(number)
            _, said = process.communicate(timeout=60 * bench.slow)
            ended(bench, f"{number!r} to doctor, step {step}")
            notes = subprocess.run(["grep", "-ls", "^/tmp/results/", *glob.glob("/run/benchsand/results-*"), "/dev/null"], capture_output=True, text=True)
            equal(f"notes about a place that only doctor sees, step {step}", notes.stdout, "")
            if number == signal.SIGKILL:
                cleared_by_gc(bench, f"doctor, step {step}")
                continue
            # Before doctor has made anything the signal ends it like any program.
            if process.returncode != -number:
                equal(f"said, step {step}", (process.returncode, said), (3, "benchsand: examine the host: benchsand was told to stop by a signal\n"))
            equal(f"left for gc after SIGINT, step {step}", soon_none(bench, lambda: (dead_runs() | cgroups_without_a_run()) - before), set())


@scenario
def killed_learn_leaves_nothing(bench):
    """Results that nobody asked to keep: none when it ends, and after a kill gc finds them."""
    if bench.engine != "crun":
        return  # learn takes no other
    def unkept():
        return set(glob.glob("/tmp/benchsand-learn-*") + glob.glob("/run/benchsand/.r*.partial")) - before
    before = set()
    before = unkept()
    limits = {"wall_time": bench.seconds(60)}
    learn = [bench.program, "learn", "--profile", str(bench.profiles / "strict.yaml")]
    short = bench.write_task(bench.candidate("exit", 0), folder=bench.folder("short"), limits=limits)
    equal("learn", subprocess.run([*learn, str(short)], capture_output=True, timeout=60 * bench.slow).returncode, 0)
    equal("left by learn", soon_none(bench, unkept), set())
    process = subprocess.Popen([*learn, str(bench.write_task(bench.candidate("sleep", 300), limits=limits))],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60 * bench.slow
    while "b'/task/candidate" not in " ".join(bench.living()) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.wait()
    ended(bench, "SIGKILL of learn")
    between("unfinished results of a killed learn", len([path for path in unkept() if dead_runs().intersection(RUN_ID.findall(path))]), 1, 9)
    cleared_by_gc(bench, "learn")
    equal("left after gc", soon_none(bench, unkept), set())
