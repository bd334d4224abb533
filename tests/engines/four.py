#!/usr/bin/env python3
"""The same task on crun, runc, docker and podman: the same outcome, outputs, refusals and walls, differences by name.

usage: four.py --program BENCHSAND --runtime BENCHSAND-RUNTIME --tools FOLDER [--slow N] [--compiled] [--engine NAME]... [NAME...]
FOLDER has the test program `candidate`. --slow stretches limits, --compiled is for kernels that cannot hand back a filter (the guest).
"""

import argparse
import re
import subprocess
import sys

sys.dont_write_bytecode = True

import front
from harness import Wrong, equal

ENGINES = ("crun", "runc", "docker", "podman")
# What depends on the moment.
MOMENTS = re.compile(r"\b[0-9a-f]{12}\b|\d+(\.\d+)? ?([KMGT]?i?B|bytes|ms|us|s|m|h)?\b")
ROWS = {}


def row(name, status, outcome, cause, command, profile="strict", python=None, stdout=None, **keys):
    ROWS[name] = (status, outcome, cause, command, profile, python, stdout, keys)


def shell(text):
    return ["sh", "-c", text]


def candidate(verb, number=0):
    return lambda bench: bench.candidate(verb, number)


def seconds(**limits):
    return lambda bench: {name: bench.seconds(number) if name in ("cpu_time", "wall_time") else number for name, number in limits.items()}


row("succeeds", 0, "succeeded", "exited", shell("echo out; echo err >&2; mkdir /output/d; echo 1 >/output/d/a; echo 22 >/output/b"), stdout="out\n")
row("exit-7", 1, "failed", "exited", shell("exit 7"))
row("signal", 1, "failed", "signaled", candidate("crash"))
row("cpu-time", 124, "limit", "cpu-time", candidate("spin"), limits=seconds(cpu_time=1, wall_time=60))
row("wall-time", 124, "limit", "wall-time", candidate("sleep", 300), limits=seconds(wall_time=1))
row("memory", 1, "limit", "memory", candidate("alloc", 120), limits=seconds(memory="96MiB", disk="16MiB"))
row("processes", 0, "succeeded", "exited", candidate("forks", 5), stdout="started=31 failed=5 errno=EAGAIN\n")
row("output-bytes", 0, "succeeded", "exited", candidate("fill", 9), limits=seconds(disk="8MiB"), stdout="written=8388608 errno=ENOSPC\n")
row("output-files", 0, "succeeded", "exited", candidate("files", 5000), limits=seconds(files=100))
row("stdout-cap", 0, "succeeded", "exited", candidate("flood", 32), limits=seconds(cpu_time=20, wall_time=60))
row("stdio-total", 1, "limit", "output", candidate("flood", 100), profile="chatty", limits=seconds(cpu_time=20, wall_time=60))
row("open-files", 0, "succeeded", "exited", shell("ulimit -n; ulimit -Hn"), stdout="64\n64\n", limits=seconds(open_files=64))
row("refused-calls", 0, "succeeded", "exited", candidate("refused-calls", 3))
row("write-outside", 0, "succeeded", "exited", candidate("create-in-root"), stdout="EROFS\n")
row("daemon", 0, "succeeded", "exited", candidate("daemonize"))
row("odd-outputs", 0, "succeeded", "exited", ["python3", "/task/solve.py"], profile="python", python="""
import os
open("/output/plain", "w").write("plain\\n")
for call in (lambda: os.symlink("/etc/passwd", "/output/link"), lambda: os.mkfifo("/output/pipe"), lambda: os.link("/output/plain", "/output/second")):
    try: call(); print("made")
    except OSError as error: print(error.strerror)
""")
row("stdin", 0, "succeeded", "exited", shell("wc -c; head -c 3 /one/file; ls /task"), stdin="./question",
    inputs=[{"source": "./task", "target": "/task"}, {"source": "./question", "target": "/one/file"}])
row("env", 0, "succeeded", "exited", shell("echo $ASKED $(pwd); env | cut -d= -f1 | sort; id -u"), env={"ASKED": "a b"}, workdir="/task")
row("no-such-command", 3, "fault", "not-started", ["/nowhere/program"])
row("python", 0, "succeeded", "exited", ["python3", "/task/solve.py"], profile="python", python="""
import json, sys, threading
thread = threading.Thread(target=lambda: print("thread")); thread.start(); thread.join()
json.dump({"sum": sum(range(1000))}, open("/output/answer.json", "w"))
""", stdout="thread\n")
GUEST = ("succeeds", "exit-7", "wall-time", "memory", "processes", "output-bytes", "refused-calls", "daemon")


def prepare(bench):
    """Profile and mount points that the table wants."""
    bench.profile_with("strict", "stdio_total: 4GiB", "stdio_total: 64MiB")
    made = next(path for path in bench.profiles.iterdir() if path.name.startswith("strict-stdio"))
    made.rename(bench.profiles / "chatty.yaml")
    bench.other_rootfs = bench.rootfs_with("one/file")
    (bench.work / "question").write_text("one two three\n" * 1000)
    (bench.work / "task" / "solve.py").touch()


def start(bench, name):
    _, _, _, command, profile, python, _, keys = ROWS[name]
    keys = dict(keys)
    if callable(keys.get("limits")):
        keys["limits"] = keys["limits"](bench)
    if python:
        (bench.work / "task" / "solve.py").write_text(python)
        keys["rootfs"] = str(bench.cache / "python-rootfs")
    elif "inputs" in keys:
        keys["rootfs"] = bench.other_rootfs
    task = bench.write_task(command(bench) if callable(command) else command, **keys)
    return bench.run_task(task, profile)


def walls(bench, run):
    """The lines of the verdict's table, without what depends on the moment."""
    told = subprocess.run([bench.program, "verdict", str(run.folder / "record.json")], capture_output=True, text=True, timeout=60)
    lines = {}
    for line in told.stdout.splitlines():
        word, rest = line.split(None, 1)
        if rest.startswith(("host: ", "docker: ", "podman: ")):
            continue  # what others did meanwhile; an engine's own warnings
        # A delegate's own words; and an engine's init is held until it was counted, where a direct run's is not.
        rest = re.sub(r"observed start the container with .*", "observed #", rest)
        rest = rest.replace("left-over processes not counted: init ended before", "0 left-over processes killed")
        lines[f"line {word}"] = MOMENTS.sub("#", rest)
    lines.pop("line verdict", None)
    return lines


def seen(bench, name, run):
    """Everything that must not depend on the engine, by name."""
    if run.record is None:
        raise Wrong(f"no record; exit status {run.status}: {run.stderr}")
    record = run.record
    facts = {"exit status": run.status, "outcome": record["verdict"]["outcome"], "scored": record["verdict"]["scored"],
             "tier": record["verdict"]["tier"], "failures": [failure["wall"] for failure in record["verdict"]["failures"]],
             **{f"end {key}": record["end"][key] for key in ("cause", "exit_code", "signal")},
             "outputs": record["outputs"], "outputs refused": record.get("outputs_refused"), "relaxations": record["policy"]["relaxations"],
             "policy limits": record["policy"]["limits"], "task": record["task"], "profile": record["profile"]}
    refusals = record["evidence"].get("refusals") or {}
    facts["refusals"] = {key: value for key, value in refusals.items() if key != "voided"}
    files = sorted(path.name for path in run.folder.rglob("*"))
    facts["files"] = files
    check = subprocess.run(["sha256sum", "--strict", "--quiet", "-c", "SHA256SUMS"], cwd=run.folder, capture_output=True, text=True)
    facts["SHA256SUMS"] = (check.returncode, check.stdout)
    # How much was written before the end came is chance.
    for stream in ("stdout", "stderr"):
        kept = {key: record[stream][key] for key in ("kept", "sha256")} if name == "stdio-total" else record[stream]
        facts[stream] = kept
    facts.update(walls(bench, run))
    return facts


def differences(name, found):
    """Each fact in which an engine differs from the first one, with both values."""
    (first, expected), *others = found.items()
    told = []
    for engine, facts in others:
        for key in expected.keys() | facts.keys():
            if expected.get(key) != facts.get(key):
                told.append(f"{name}: {key}: {engine} has {facts.get(key)!r}, {first} {expected.get(key)!r}")
    return sorted(told)


def scenario(name):
    def check(bench):
        status, outcome, cause, *_, stdout, _ = ROWS[name]
        found = {}
        for engine in bench.names:
            bench.engine = engine
            run = start(bench, name)
            found[engine] = seen(bench, name, run)
            end = (run.status, run.record["verdict"]["outcome"], run.record["end"]["cause"])
            why = (run.record["verdict"]["failures"], run.record["end"], run.stderr) if end != (status, outcome, cause) else ""
            equal(f"{engine} {why}", end, (status, outcome, cause))
            if stdout is not None:
                equal(f"stdout on {engine}", run.stdout(), stdout)
        if told := differences(name, found):
            raise Wrong("\n      ".join(["the engines differ", *told]))
    return check


def main():
    parser = argparse.ArgumentParser()
    front.add_options(parser)
    parser.add_argument("--engine", action="append", choices=ENGINES)
    given = parser.parse_args()
    names = given.engine or list(ENGINES)
    wanted = [{"docker": "dockerd"}.get(name, name) for name in names]
    if (status := front.begin(given, wanted)) is not None:
        return status
    bench = front.Front(given, names)
    bench.names = names
    prepare(bench)
    rows = GUEST if given.slow > 1 else ROWS
    return front.run_all(bench, {name: scenario(name) for name in rows}, given.names)


if __name__ == "__main__":
    sys.exit(main())
