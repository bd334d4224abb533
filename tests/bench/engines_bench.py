#!/usr/bin/env python3
"""What benchsand costs under an engine: medians of runs that take turns, so that all contenders see the same machine.

usage: engines_bench.py [--program BENCHSAND] [--runtime BENCHSAND-RUNTIME] [--tools FOLDER] [--runs N] [--engine NAME]... [--json]
As root, after tests/setup/build.sh and rootfs.sh tiny. Numbers are printed beside their targets; nothing is asserted.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
SOURCE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "tests/engines"), str(SOURCE / "tests/runs")]

import engine as engines

CALLS = ("create", "start", "state", "kill", "delete")


def usage(command, **keys):
    """Exit status, and user and system milliseconds of one command and of the children that it waited for."""
    process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **keys)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, (used.ru_utime + used.ru_stime) * 1000


def run_times(engine, runs):
    """Milliseconds of `ENGINE run --rm IMAGE true`, by runtime."""
    times = {name: [] for name in ("benchsand", "plain-runc", "plain-crun")}
    for round_number in range(runs + 1):
        for runtime, taken in times.items():
            # The kernel takes the last container's network namespace down in the background.
            time.sleep(0.1)
            begin = time.perf_counter()
            done = engine.run(runtime, ["--rm"], "tiny", "true")
            took = (time.perf_counter() - begin) * 1000
            if done.status != 0:
                sys.exit(f"{engine.name} run --runtime {runtime}: {done}")
            if round_number:  # the first round warms caches
                taken.append(took)
    return {name: round(statistics.median(taken), 1) for name, taken in times.items()}


def front_times(engine, stage, runs):
    """Milliseconds of `benchsand run --engine ENGINE`, and of the plain client's run of the same program without a network."""
    task = stage.work / "task.yaml"
    task.write_text(f"benchsand: 1\nname: nothing\nrootfs: {stage.cache}/tiny-rootfs\ncommand: [\"true\"]\n")
    command = [stage.program, "run", str(task), "--engine", engine.name, "--quiet", "--out", str(stage.work / "results")]
    environment = {**engine.environment, **({"DOCKER_HOST": engine.socket} if engine.name == "docker" else {})}
    plain = "plain-runc" if engine.name == "docker" else "plain-crun"

    def by_front():
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"benchsand run --engine {engine.name}: {done}")

    def by_client():
        done = engine.run(plain, ["--rm", "--network", "none"], "tiny", "true")
        if done.status != 0:
            sys.exit(f"{engine.name} run --network none: {done}")
    times = {"front": [], "client": []}
    for round_number in range(runs + 1):
        for name, call in (("front", by_front), ("client", by_client)):
            time.sleep(0.1)
            begin = time.perf_counter()
            call()
            if round_number:
                times[name].append((time.perf_counter() - begin) * 1000)
    return {name: round(statistics.median(taken), 1) for name, taken in times.items()}


def bundle(stage, runtime):
    """A bundle that delegate and shim take as it is: a program that sleeps, in the tiny root file system."""
    folder = stage.work / "bundle"
    folder.mkdir(exist_ok=True)
    subprocess.run([runtime, "spec"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    config = json.loads((folder / "config.json").read_text())
    config["root"] = {"path": str(stage.cache / "tiny-rootfs"), "readonly": True}
    config["process"].update(args=["sleep", "100"], terminal=False)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def monitor_of(stage, container):
    """The process that the runtime left behind."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if stage.token.encode() in command and container.encode() in command and int(pid) != os.getpid():
                return int(pid)
        except OSError:
            continue  # it has ended since
    return None


def call_costs(stage, runtime, runs):
    """CPU milliseconds of each OCI call, of the shim and of the delegate alone; the monitor's from its beginning to the open door, without
    the delegate that it calls; and its highest resident KiB."""
    delegate = shutil.which("crun")
    folder = bundle(stage, delegate)
    used = {name: {call: [] for call in CALLS} for name in ("benchsand", "crun")}
    resident, monitor_ms = [], []
    for number in range(runs + 1):
        for name, program in (("benchsand", stage.bin / "benchsand"), ("crun", delegate)):
            container = f"{stage.token}-{name}-{number}"
            root = ["--root", stage.work / f"state-{name}"]
            words = {"create": ["create", "--bundle", folder, container], "start": ["start", container], "state": ["state", container],
                     "kill": ["kill", container, "KILL"], "delete": ["delete", "--force", container]}
            for call in CALLS:
                status, milliseconds = usage([program, *root, *words[call]])
                if status != 0:
                    sys.exit(f"{name} {call} ended with {status}")
                if number:
                    used[name][call].append(milliseconds)
                if call == "state" and name == "benchsand" and (monitor := monitor_of(stage, container)):
                    lines = Path(f"/proc/{monitor}/status").read_text().splitlines()
                    # The first figure of schedstat is exact, where stat counts whole ticks.
                    monitor_ms.append(int(Path(f"/proc/{monitor}/schedstat").read_text().split()[0]) / 1e6)
                    resident += [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
                if call == "kill":
                    time.sleep(0.1)
    medians = {name: {call: round(statistics.median(list_), 2) for call, list_ in calls.items()} for name, calls in used.items()}
    return {"cpu_ms": medians, "monitor_ms": round(statistics.median(monitor_ms), 1) if monitor_ms else None,
            "monitor_kib": max(resident, default=None)}


def table(result):
    rows = []
    for engine, times in result["run"].items():
        plain = times["plain-runc"]  # what an engine takes when nobody says otherwise; podman takes crun
        if engine == "podman":
            plain = times["plain-crun"]
        rows += [(f"{engine} run, {name}", f"{taken} ms", "") for name, taken in times.items()]
        rows.append((f"{engine} run, benchsand against plain", round(times["benchsand"] / plain, 3), "<= 1.00"))
    for engine, times in result["front"].items():
        rows.append((f"benchsand run --engine {engine}, and the client with --network none", f"{times['front']} and {times['client']} ms", ""))
    cpu = result["calls"]["cpu_ms"]
    rows += [(f"CPU of {call}, and of crun's", f"{cpu['benchsand'][call]} and {cpu['crun'][call]} ms", "<= 3 ms more") for call in CALLS]
    rows.append(("CPU of the monitor until the door is open", f"{result['calls']['monitor_ms']} ms", ""))
    rows.append(("monitor, highest resident", f"{result['calls']['monitor_kib']} KiB", "<= 8192 KiB"))
    widths = [max(len(str(row[i])) for row in rows) for i in range(2)]
    for row in rows:
        print(f"{row[0]:<{widths[0]}}  {row[1]!s:<{widths[1]}}  {row[2]}".rstrip())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=SOURCE / "build/benchsand")
    parser.add_argument("--runtime", default=SOURCE / "build/benchsand-runtime")
    parser.add_argument("--tools", default=SOURCE / "build/tests")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--engine", action="append", choices=sorted(engines.ENGINES))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("must be root")
    engines.enter()
    tools = [Path(given.tools) / tool for tool in ("candidate", "intruder")]
    stage = engines.Stage(given.runtime, given.program, tools, os.environ.get("BENCHSAND_CACHE", "/var/cache/benchsand"), 1, False)
    stage.delegate("crun")
    result = {"run": {}, "front": {}}
    try:
        result["calls"] = call_costs(stage, stage.bin / "benchsand", given.runs)
        for name in given.engine or ["docker", "podman"]:
            with engines.ENGINES[name](stage) as engine:
                result["run"][name] = run_times(engine, given.runs)
                result["front"][name] = front_times(engine, stage, given.runs)
    finally:
        stage.close()
    print(json.dumps(result, indent=2)) if given.json else table(result)


if __name__ == "__main__":
    main()
