"""Runs one task through the benchsand program and hands back its record, for the scenarios in runs.py."""

import fcntl
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
MIB = 1 << 20
RUN_ID = re.compile(r"r[0-9a-f]{24}")


class Wrong(Exception):
    """A scenario did not go as it must."""


def equal(what, observed, expected):
    if observed != expected:
        raise Wrong(f"{what}: {observed!r}, expected {expected!r}")


def between(what, observed, least, most):
    if not isinstance(observed, int) or not least <= observed <= most:
        raise Wrong(f"{what}: {observed!r}, expected {least} to {most}")


class Run:
    """What one `benchsand run` left: status, record, folder."""

    def __init__(self, process, out):
        self.status, self.stderr, self.out = process.returncode, process.stderr, out
        self.record = json.loads(process.stdout) if process.stdout.strip() else None
        self.folder = Path(out) / self.record["id"] if self.record else None

    def seen(self, section, wall, name):
        return self.record["evidence"][section][wall][name]["observed"]

    def stdout(self):
        return (self.folder / "stdout").read_text()

    def said(self):
        """The candidate's stdout "a=1 b=EPERM" as a dictionary."""
        return dict(word.split("=", 1) for word in self.stdout().split())

    def expect(self, status, outcome, cause, **end):
        verdict, observed_end = self.record["verdict"], self.record["end"]
        if not verdict["scored"]:
            failures = "; ".join(f"{f['wall']}: expected {f['expected']}, observed {f['observed']} ({f['source']})"
                                 for f in verdict["failures"])
            raise Wrong(f"not scored, {verdict['outcome']}, {self.record.get('fault', '')} {failures} {self.stderr}")
        equal("outcome", verdict["outcome"], outcome)
        equal("cause", observed_end["cause"], cause)
        equal("exit status", self.status, status)
        equal("tier", verdict["tier"], "reproducible")
        equal("failures", verdict["failures"], [])
        for key, value in end.items():
            equal(key, observed_end[key], value)
        return self


class Bench:
    """benchsand under one engine on this machine. `slow` stretches every time limit, for the guest."""

    def __init__(self, program, candidate, engine, slow, compiled, cache):
        self.program, self.engine, self.slow = str(Path(program).resolve()), engine, slow
        self.cache = Path(cache)
        self.work = Path(tempfile.mkdtemp(prefix="benchsand-runs-"))
        (self.work / "task").mkdir()
        shutil.copy(candidate, self.work / "task" / "candidate")
        self.profiles = self.work / "profiles"
        shutil.copytree(SOURCE / "profiles", self.profiles)
        self.token = self.work.name
        self.before = {where for _, where in traces()}
        if compiled:
            for profile in self.profiles.glob("*.yaml"):
                # This kernel cannot hand back an attached filter (no CONFIG_CHECKPOINT_RESTORE).
                text = profile.read_text()
                if "filter_proof: dump" not in text:
                    raise Wrong(f"{profile} has no line `filter_proof: dump` to change")
                profile.write_text(text.replace("filter_proof: dump", "filter_proof: compiled"))

    def left_behind(self):
        return left_behind(self.token, self.before)

    def close(self):
        shutil.rmtree(self.work)

    def seconds(self, number):
        return f"{number * self.slow}s"

    def write_task(self, command, folder=None, **keys):
        folder = Path(folder or self.work)
        limits = {"cpu_time": self.seconds(2), "wall_time": self.seconds(10), **keys.pop("limits", {})}
        task = {"name": "scenario", "rootfs": str(self.cache / "tiny-rootfs"),
                "inputs": [{"source": "./task", "target": "/task"}], "command": command, "limits": limits, **keys}
        # JSON text is YAML; the version has to come first.
        lines = ["benchsand: 1"] + [f"{key}: {json.dumps(value)}" for key, value in task.items()]
        path = folder / "task.yaml"
        path.write_text("\n".join(lines) + "\n")
        return path

    def arguments(self, task, profile="strict", *more):
        return [self.program, "run", str(task), "--engine", self.engine, "--json", "--out", str(self.work / "out"),
                "--profile", str(self.profiles / f"{profile}.yaml"), *more]

    def run_task(self, task, profile="strict", *more):
        arguments = self.arguments(task, profile, *more)
        process = subprocess.run(arguments, capture_output=True, text=True, timeout=60 + 30 * self.slow)
        return Run(process, self.work / "out")

    def candidate(self, verb, number=0):
        """The program of candidate.c; the token makes its processes known as this bench's."""
        return ["/task/candidate", verb, str(number), self.token]

    def verb(self, *words, profile="strict", **keys):
        return self.run_task(self.write_task(self.candidate(*words), **keys), profile)

    def python(self, code, **keys):
        (self.work / "task" / "solve.py").write_text(code)
        task = self.write_task(["python3", "/task/solve.py"], rootfs=str(self.cache / "python-rootfs"), **keys)
        return self.run_task(task, "python")


def alive(run_id):
    """A run holds the lock in its folder for as long as its benchsand lives."""
    try:
        with open(f"/run/benchsand/{run_id}/lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def traces():
    """What of runs is to be seen on this machine: (run id or token, where)."""
    for place in ["/run/benchsand", *glob.glob("/sys/fs/cgroup/**/benchsand", recursive=True)]:
        names = os.listdir(place) if os.path.isdir(place) else []
        yield from ((name, f"{place}/{name}") for name in names if RUN_ID.fullmatch(name))
    for line in open("/proc/self/mountinfo"):
        for name in RUN_ID.findall(line):
            yield name, f"mount {line.split()[4]}"


def left_behind(token, before):
    """Traces of dead runs, and processes of this bench's candidates. Other runs here may be ending just now: look again."""
    for _ in range(25):
        left = {where for name, where in traces() if where not in before and not alive(name)}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if command.startswith(b"/task/candidate") and token.encode() in command:
                left.add(f"process {pid}: {command!r}")
        if not left:
            break
        time.sleep(0.2)
    return left
