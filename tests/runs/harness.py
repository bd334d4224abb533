"""Runs one task through the benchsand program and hands back its record, for the scenarios in runs.py."""

import ctypes
import errno
import fcntl
import glob
import json
import os
import re
import shutil
import struct
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


def refuse(call, error=errno.EPERM, first_argument=None):
    """For a child before its exec: a filter as a container engine would attach it, under which the call fails."""
    def instruction(code, jt, jf, k):
        return struct.pack("HBBI", code, jt, jf, k)
    number, argument, fail, allow = 0, 16, 0x00050000 | error, 0x7FFF0000
    program = [instruction(0x20, 0, 0, number), instruction(0x15, 0, 1 if first_argument is None else 3, call)]
    if first_argument is not None:
        program += [instruction(0x20, 0, 0, argument), instruction(0x15, 0, 1, first_argument)]
    program += [instruction(0x06, 0, 0, fail), instruction(0x06, 0, 0, allow)]

    def attach():
        buffer = ctypes.create_string_buffer(b"".join(program))
        fprog = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
        if ctypes.CDLL(None, use_errno=True).prctl(22, 2, fprog, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl PR_SET_SECCOMP")
    return attach


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
        if self.record is None:
            raise Wrong(f"no record; exit status {self.status}: {self.stderr}")
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
        self.relaxed = str(Path(candidate).resolve().parent / "relaxed")
        self.cache = Path(cache)
        self.work = Path(tempfile.mkdtemp(prefix="benchsand-runs-"))
        (self.work / "task").mkdir()
        shutil.copy(candidate, self.work / "task" / "candidate")
        self.profiles = self.work / "profiles"
        shutil.copytree(SOURCE / "profiles", self.profiles)
        self.token = self.work.name
        self.run_ids = set()
        if compiled:
            for profile in self.profiles.glob("*.yaml"):
                # This kernel cannot hand back an attached filter (no CONFIG_CHECKPOINT_RESTORE).
                text = profile.read_text()
                if "filter_proof: dump" not in text:
                    raise Wrong(f"{profile} has no line `filter_proof: dump` to change")
                profile.write_text(text.replace("filter_proof: dump", "filter_proof: compiled"))

    def left_behind(self, more_ids=frozenset()):
        return left_behind(self.run_ids | more_ids, self.token)

    def close(self):
        shutil.rmtree(self.work)

    def folder(self, name):
        """A folder beside the usual one, for a second task; its inputs are the same."""
        folder = self.work / name
        if not folder.exists():
            folder.mkdir()
            (folder / "task").symlink_to(self.work / "task")
        return folder

    def profile_with(self, name, text, other):
        """A profile with one text exchanged; its name."""
        profile = (self.profiles / f"{name}.yaml").read_text()
        if text not in profile:
            raise Wrong(f"the profile {name} has no {text!r} to change")
        changed = f"{name}-{re.sub('[^a-z]+', '-', other)}"
        (self.profiles / f"{changed}.yaml").write_text(profile.replace(text, other))
        return changed

    def rootfs_with(self, *files):
        """A copy of the tiny rootfs in a folder of its own, with more files as mount points."""
        rootfs = self.work / "rootfs-of-its-own"
        shutil.copytree(self.cache / "tiny-rootfs", rootfs, symlinks=True, dirs_exist_ok=True)
        for name in files:
            (rootfs / name).parent.mkdir(parents=True, exist_ok=True)
            (rootfs / name).touch()
        return str(rootfs)

    def living(self):
        """Processes of this bench's candidates and keepers, whoever their parent is now."""
        return living(self.token)

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

    def run_task(self, task, profile="strict", *more, before_exec=None):
        arguments = self.arguments(task, profile, *more)
        process = subprocess.run(arguments, capture_output=True, text=True, timeout=60 + 30 * self.slow,
                                 preexec_fn=before_exec)
        run = Run(process, self.work / "out")
        if run.record:
            self.run_ids.add(run.record["id"])
        return run

    def run_relaxed(self, relaxations, task, profile="strict"):
        """With walls taken down (tests/runs/relaxed.cc): the candidate runs and is counted, and is never scored."""
        arguments = [self.relaxed, str(task), "--engine", self.engine, "--out", str(self.work / "out"),
                     "--profile", str(self.profiles / f"{profile}.yaml")]
        for relaxation in relaxations:
            arguments += ["--relax", relaxation]
        run = Run(subprocess.run(arguments, capture_output=True, text=True, timeout=60 + 30 * self.slow), self.work / "out")
        if run.record is None:
            raise Wrong(f"no record; exit status {run.status}: {run.stderr}")
        self.run_ids.add(run.record["id"])
        return run

    def candidate(self, verb, number=0):
        """The program of candidate.c; the token makes its processes known as this bench's."""
        return ["/task/candidate", verb, str(number), self.token]

    def verb(self, *words, profile="strict", **keys):
        return self.run_task(self.write_task(self.candidate(*words), **keys), profile)

    def python_task(self, code, **keys):
        (self.work / "task" / "solve.py").write_text(code)
        return self.write_task(["python3", "/task/solve.py"], rootfs=str(self.cache / "python-rootfs"), **keys)

    def python(self, code, **keys):
        return self.run_task(self.python_task(code, **keys), "python")


def run_scenarios(bench, scenarios, names):
    """The exit status. After each one nothing of it may be left."""
    failed = 0
    for name in names or scenarios:
        begin = time.monotonic()
        try:
            scenarios[name](bench)
            equal("left behind", bench.left_behind(), set())
            result = "ok  "
        except (Wrong, KeyError, TypeError, ValueError, OSError, subprocess.SubprocessError) as error:
            result = f"FAIL {type(error).__name__}: {error}\n    "
            failed += 1
        print(f"{result} {name} ({time.monotonic() - begin:.1f} s)", flush=True)
    bench.close()
    print(f"{bench.engine}: {len(names or scenarios)} scenarios, {failed} failed")
    return 1 if failed else 0


def names_in(folder):
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def locked(path):
    try:
        with open(path) as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def dead_runs():
    """The runs of this machine, whoever started them, that no living benchsand holds: what `benchsand gc` has to clear."""
    base = "/run/benchsand"
    names = set(RUN_ID.findall(" ".join(names_in(base))))
    return {name for name in names if not locked(f"{base}/{name}/lock") and not locked(f"{base}/results-{name}")}


def living(token):
    """The candidates' processes that carry the token, whoever their parent is now."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue  # it has ended since
        # The token stands in a candidate's arguments and in the paths of benchsand's own, so of a keeper's too.
        if token.encode() in command:
            found.add(f"process {pid}: {command!r}")
    return found


def left_behind(run_ids, token):
    """Traces of these runs: folders, cgroups, mounts; and processes that carry the token."""
    left = living(token)
    for place in ["/run/benchsand", *glob.glob("/sys/fs/cgroup/**/benchsand", recursive=True)]:
        left |= {f"{place}/{name}" for name in names_in(place) if run_ids.intersection(RUN_ID.findall(name))}
    for line in open("/proc/self/mountinfo"):
        left |= {f"mount {line.split()[4]}" for name in RUN_ID.findall(line) if name in run_ids}
    return left
