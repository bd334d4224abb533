#!/usr/bin/env python3
"""Real container engines with benchsand as their runtime, one scenario after the other.

usage: engines.py --engine docker|podman|containerd --runtime BENCHSAND-RUNTIME --program BENCHSAND --tools FOLDER
                  [--delegate crun|runc]... [--slow N] [--compiled] [--write-docs] [--flag TITLE]... [NAME...]
FOLDER has the test programs `candidate` and `intruder`. --slow stretches time limits, --compiled is for kernels that cannot
hand back a filter; both are for the guest. --write-docs writes the engine's part of docs/engine-flags.md.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import engine as engines
import flags
import lifecycle
import trouble
from harness import Wrong, equal, left_behind, names_in


def every_engine(function):
    function.engines = ("docker", "podman", "containerd")
    return function


SCENARIOS = {function.__name__: every_engine(function) for function in (flags.attempts_succeed_without_walls, flags.flags_leave_every_wall)}
SCENARIOS = {**lifecycle.SCENARIOS, **SCENARIOS, **trouble.SCENARIOS}
DAEMONS = ("dockerd", "containerd")


class Bench:
    """One engine, as a scenario sees it."""

    def __init__(self, stage, engine, delegate, titles, write_docs):
        self.stage, self.engine, self.slow, self.delegate = stage, engine, stage.slow, delegate
        self.titles, self.write_docs = titles, write_docs

    def record(self, identity):
        return json.loads((self.stage.records / f"{identity}.json").read_text())

    def verdict(self, known_as):
        return subprocess.run([self.stage.program, "verdict", known_as], capture_output=True, text=True, timeout=60)

    def gone(self, identity):
        """Waits until the engine knows that the container has ended: then its record is complete."""
        engine = self.engine
        if engine.name != "containerd":
            return engine.must("wait", identity)
        deadline = time.monotonic() + 60 * self.slow
        while "RUNNING" in engine.must("task", "ls") and time.monotonic() < deadline:
            time.sleep(0.05)
        return None

    def forget(self, done, maybe=False):
        """Removes the container; `maybe`: when there is one."""
        if done.id is None:
            return
        if maybe and done.status != 0 and self.engine.cli("container" if self.engine.name != "containerd" else "containers",
                                                          "inspect" if self.engine.name != "containerd" else "info", done.id).status != 0:
            return
        self.engine.remove(done.id)

    def left(self):
        """What a scenario has left: runs, mounts, containers' cgroups, and processes other than the daemons."""
        left = left_behind(self.stage.run_ids, self.stage.token)
        left = {trace for trace in left if not any(f"b'{daemon}" in trace or f"b'/usr/bin/{daemon}\\" in trace for daemon in DAEMONS)}
        left |= {f"process in {cgroup}" for cgroup in engines.own_cgroups(self.engine.cgroup) if os.path.basename(cgroup) != self.engine.cgroup}
        return left | engines.null_given_away() | {f"container state {name}" for name in names_in("/run/benchsand/containers") if self.mine(name)}

    def mine(self, name):
        try:
            with open(f"/run/benchsand/containers/{name}/state.json") as state:
                return self.stage.token in state.read()
        except OSError:
            return False

    def nothing_left(self):
        deadline = time.monotonic() + 30 * self.slow
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(0.1)
        equal("left behind", left, set())

    def clear(self):
        """After a failure, so that the next scenario starts from nothing."""
        self.stage.note_runs()
        if self.engine.name == "containerd":
            for name in self.engine.cli("containers", "ls", "-q").stdout.split():
                try:
                    self.engine.remove(name)
                except Wrong:
                    continue
        else:
            for name in self.engine.cli("ps", "-aq").stdout.split():
                self.engine.cli("rm", "-f", "-t", "0", name) if self.engine.name == "podman" else self.engine.cli("rm", "-f", name)
        subprocess.run([self.stage.program, "gc"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60 * self.slow)


def run_all(bench, label, names):
    failed = 0
    for name in names:
        begin = time.monotonic()
        try:
            SCENARIOS[name](bench)
            bench.nothing_left()
            result = "ok  "
        except (Wrong, KeyError, TypeError, ValueError, StopIteration, OSError, subprocess.SubprocessError) as error:
            result = f"FAIL {type(error).__name__}: {error}\n    "
            failed += 1
            bench.clear()
            # Told with the scenario that left it, not with every one after it.
            bench.stage.run_ids.clear()
        print(f"{result} {label} {name} ({time.monotonic() - begin:.1f} s)", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser()
    for option in ("--engine", "--runtime", "--program", "--tools"):
        parser.add_argument(option, required=True)
    parser.add_argument("--delegate", action="append")
    parser.add_argument("--slow", type=int, default=1)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--write-docs", action="store_true")
    parser.add_argument("--flag", action="append", help="this row of the flags only")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: container engines need root")
        return 77
    missing = [program for program in {"docker": ["dockerd"], "podman": ["podman"], "containerd": ["containerd", "ctr"]}[given.engine]
               if not shutil.which(program)]
    if missing:
        print(f"skipped: no {missing[0]} here")
        return 77
    engines.enter()
    stage = engines.Stage(given.runtime, given.program, [os.path.join(given.tools, tool) for tool in ("candidate", "intruder")],
                          os.environ.get("BENCHSAND_CACHE", "/var/cache/benchsand"), given.slow, given.compiled)
    names = given.names or [name for name, function in SCENARIOS.items() if given.engine in function.engines]
    failed = 0
    try:
        with engines.ENGINES[given.engine](stage) as engine:
            for delegate in given.delegate or ["crun", "runc"]:
                stage.delegate(delegate)
                failed += run_all(Bench(stage, engine, delegate, given.flag, given.write_docs), f"{given.engine}/{delegate}", names)
    finally:
        stage.close()
    print(f"{given.engine}: {len(names)} scenarios, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
