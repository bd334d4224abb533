#!/usr/bin/env python3
"""The conformance suite in containers of Docker and Podman: every attempt refused, every control flipped, nothing left behind.

usage: engines.py --program BENCHSAND --runtime BENCHSAND-RUNTIME --tools FOLDER [--slow N] [--compiled] [NAME...]
`comparison` is done when it is named only: it measures, and writes docs/comparison.md anew.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("engines", "runs")]

import engine as engines
import front
from harness import Wrong, equal, names_in

STAGES = "/run/benchsand-conformance"
# All of them are attempted without an engine (suite.py); here one of each kind.
PROGRAMS = ("curl-http", "git-push-ssh", "pip-install", "dig")
# In the guest a container of an engine's takes seconds: the ten, and what is attempted together in one.
GUEST = {"docker": ("ten", "files", "mounts", "namespaces", "privileges", "processes", "kernel", "network"), "podman": ("ten", "files", "privileges")}
PASSES = ("REFUSED", "INAPPLICABLE", "CONFIRMED-LIMIT")


def attempts(bench, engine, least, *words):
    done = subprocess.run([bench.program, "conformance", "--engine", engine, "--format", "json", *words],
                          capture_output=True, text=True, timeout=300 * bench.slow)
    if done.returncode not in (0, 3):
        raise Wrong(f"exit status {done.returncode}: {done.stderr}")
    report = json.loads(done.stdout)
    wrong = [f"{case['id']}: {case['verdict']}: {case['reason']}; inside {case['inside']}, control {case['control']}"
             for case in report["cases"] if case["verdict"] not in PASSES]
    if wrong:
        raise Wrong("\n      ".join(wrong))
    equal("engine, delegate, exit status", (report["about"]["engine"], report["about"]["delegate"], done.returncode), (engine, "crun", 0))
    refused = sum(case["verdict"] == "REFUSED" for case in report["cases"])
    if refused < least:
        raise Wrong(f"only {refused} of {len(report['cases'])} attempts were refused")


def only(*words):
    return [part for word in words for part in ("--only", word)]


def suite_on(engine):
    def check(bench):
        bench.engine = engine
        before = names_in(STAGES)
        if bench.slow > 1:
            attempts(bench, engine, 75, *only(*GUEST[engine]))
        else:
            attempts(bench, engine, 300)
            attempts(bench, engine, len(PROGRAMS), "--programs", f"{bench.cache}/programs-rootfs", *only(*(f"programs.{name}" for name in PROGRAMS)))
        equal("folders that the suite left", sorted(set(names_in(STAGES)) - set(before)), [])
    return check


# What each engine comes to by itself: some stands, some falls, and some cannot be shown.
ALONE = {"ten.credentials": "REFUSED", "ten.left-running": "REFUSED", "ten.processes": "ESCAPED", "ten.disk": "ESCAPED", "kernel.bpf-map": "REFUSED",
         "files.create-root": "ESCAPED", "network.out-tcp": "ESCAPED", "network.multicast": "VACUOUS", "network.neighbour": "REFUSED",
         "limits.processors": "CONFIRMED-LIMIT"}


def alone(bench, engine):
    bench.engine = engine
    return [bench.program, "conformance", "--engine", engine, "--no-shim", "--profile", "engine-defaults"]


def images(bench, engine):
    return bench.engines[engine].must("images", "-q")


def engine_alone(engine):
    """The same attempts in containers as the engine makes them, told as what they are, and nothing left."""
    def check(bench):
        before = images(bench, engine), bench.containers(engine)
        done = subprocess.run([*alone(bench, engine), "--format", "json", "--only", *ALONE], capture_output=True, text=True, timeout=120 * bench.slow)
        if done.returncode != 3:
            raise Wrong(f"exit status {done.returncode}: {done.stderr}")
        report = json.loads(done.stdout)
        told = {case["id"]: (case["verdict"], case["reason"], case["host"]) for case in report["cases"]}
        # Where the engine has no bridge there is no way out, and what is attempted is refused.
        way_out = bench.stage.bridges
        equal("verdicts", {name: verdict for name, (verdict, *_) in told.items()}, ALONE if way_out else {**ALONE, "network.out-tcp": "REFUSED"})
        equal("about", [report["about"][key] for key in ("engine", "profile", "profile_sha256")], [f"{engine} without benchsand", "engine-defaults", ""])
        seen = ("links lo eth0", ", where 1 connections and ") if way_out else ("links lo, routes none",)
        if not all(words in told["network.out-tcp"][2] for words in seen):
            raise Wrong(f"out of the engine's own network: {told['network.out-tcp']}")
        equal("after a suite", (images(bench, engine), bench.containers(engine)), before)
    return check


# What the engine's own runtime makes of a whole policy: the walls stand, /proc is writable, and what cannot be counted is said.
OBSERVED = {"kernel.bpf-map": "REFUSED", "files.open-passwd": "REFUSED", "files.self-comm": "ESCAPED", "ten.processes": "REFUSED", "network.out-tcp": "REFUSED"}


def without_shim(bench):
    bench.engine = "docker"
    strict = (Path(__file__).resolve().parents[2] / "profiles" / "strict.yaml").read_text()
    plain = {"name": "plain", "user_namespace": "host", "without_runtime": "[network, rootfs, privileges, syscalls, evidence]"}
    Path("/etc/benchsand/profiles/plain.yaml").write_text(engines.changed(strict, plain))
    done = subprocess.run([bench.program, "conformance", "--engine", "docker", "--no-shim", "--profile", "plain", "--format", "json", "--only", *OBSERVED],
                          capture_output=True, text=True, timeout=120)
    report = json.loads(done.stdout)
    equal("verdicts", {case["id"]: case["verdict"] for case in report["cases"]}, OBSERVED)
    equal("the ledger", next(case["host"] for case in report["cases"] if case["id"] == "kernel.bpf-map"), "not counted without benchsand's runtime")
    equal("engine, delegate, exit status", (report["about"]["engine"], report["about"]["delegate"], done.returncode), ("docker without benchsand's runtime", "runc", 3))


# gVisor with benchsand's bundle: the output and the network are the policy's, what counts processes is not taken over.
RUNSC = {"ten.disk": "REFUSED", "ten.left-running": "REFUSED", "ten.processes": "ESCAPED", "kernel.bpf-map": "REFUSED", "kernel.eventfd": "ESCAPED",
         "kernel.splice": "VACUOUS", "network.out-tcp": "REFUSED"}


def runsc(bench):
    if not shutil.which("runsc"):
        print("      (no runsc here)")
        return
    done = subprocess.run([bench.program, "conformance", "--engine", "runsc", "--format", "json", "--only", *RUNSC], capture_output=True, text=True, timeout=120)
    if done.returncode != 3:
        raise Wrong(f"exit status {done.returncode}: {done.stderr}")
    report = json.loads(done.stdout)
    equal("verdicts", {case["id"]: case["verdict"] for case in report["cases"]}, RUNSC)
    equal("engine, delegate", (report["about"]["engine"], report["about"]["delegate"]), ("runsc without benchsand's door", "runsc"))


def cgroups_of(container):
    return [path for path, *_ in os.walk("/sys/fs/cgroup") if path.endswith(f"/{container}") and "/benchsand/" in path]


def alone_and_killed(bench):
    """A suite that is killed while a container of the engine's own runs: gc takes the container and its bounds away."""
    docker = bench.engines["docker"]
    suite = subprocess.Popen([*alone(bench, "docker"), "--only", "ten.cpu"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not (running := docker.must("ps", "-q", "--no-trunc").split()):
        if suite.poll() is not None or time.monotonic() > deadline:
            raise Wrong("no container came")
    bounded = cgroups_of(running[0])
    suite.send_signal(signal.SIGKILL)
    suite.wait()
    if not bounded or any(Path(path).parent.joinpath("pids.max").read_text() != "512\n" for path in bounded if "/pids/" in path):
        raise Wrong(f"a container without bounds: {bounded}")
    bench.gc()
    equal("containers and their bounds", (bench.containers("docker"), [path for path in bounded if os.path.exists(os.path.dirname(path))]), (set(), []))


def comparison(bench):
    """docs/comparison.md, from whole suites on what is here."""
    files = []
    bench.engine = "docker"
    suites = {"ours": [bench.program, "conformance", "--engine", "docker"], "docker": alone(bench, "docker"), "podman": alone(bench, "podman")}
    if shutil.which("runsc"):
        suites["runsc"] = [bench.program, "conformance", "--engine", "runsc"]
    for name, command in suites.items():
        files.append(str(bench.stage.work / f"{name}.json"))
        subprocess.run([*command, "--write", f"json={files[-1]}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
    done = subprocess.run([bench.program, "conformance", "--compare", *files], capture_output=True, text=True)
    equal("compare", (done.returncode, done.stderr), (0, ""))
    (Path(__file__).resolve().parents[2] / "docs" / "comparison.md").write_text(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    front.add_options(parser)
    given = parser.parse_args()
    if (status := front.begin(given, ["crun", "dockerd", "podman"])) is not None:
        return status
    bench = front.Front(given, ["docker", "podman"])
    scenarios = {engine: suite_on(engine) for engine in ("docker", "podman")}
    scenarios |= {f"{engine}-alone": engine_alone(engine) for engine in ("docker", "podman")}
    scenarios |= {"without-shim": without_shim, "runsc": runsc, "alone-and-killed": alone_and_killed}
    return front.run_all(bench, {**scenarios, "comparison": comparison}, given.names or list(scenarios))


if __name__ == "__main__":
    sys.exit(main())
