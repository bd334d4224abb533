#!/usr/bin/env python3
"""The conformance suite on this host: every attempt refused, every control flipped, nothing left behind; and that it can fail.

usage: suite.py --program BENCHSAND --engine crun|runc [--only WORD]... [--slow N] [--profile P] [--plain]
With --only nothing but these attempts, and the ten are to be among them."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
STAGES = Path("/run/benchsand-conformance")
TEN = set(range(1, 11))
GOOD = ("REFUSED", "INAPPLICABLE", "CONFIRMED-LIMIT")
LIMITS = 7


class Wrong(Exception):
    pass


def require(claim, what):
    if not claim:
        raise Wrong(what)


def left_behind():
    """Folders of suites, and everything of runs that a later run could trip over."""
    found = [str(path) for path in STAGES.glob("s*")]
    found += [str(path) for path in Path("/run/benchsand").glob("r*") if path.is_dir()]
    for folder, inner, _ in os.walk("/sys/fs/cgroup"):  # which others change meanwhile: no error of that is one here
        if folder.endswith("/benchsand"):
            found += [f"{folder}/{name}" for name in inner if name.startswith("r")]
    return sorted(found)


def nothing_left(before):
    """Others may run something here meanwhile, which ends."""
    until = time.monotonic() + 30
    left = set(left_behind()) - set(before)
    while left and time.monotonic() < until:
        time.sleep(0.5)
        left &= set(left_behind())
    require(not left, f"left behind: {left}")


def whole_suite(args):
    before = left_behind()
    words = [args.program, "conformance", "--engine", args.engine, "--profile", args.profile, "--format", "json"]
    for word in args.only:
        words += ["--only", word]
    started = time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True, timeout=500)
    require(done.returncode in (0, 3), f"exit status {done.returncode}: {done.stderr}")
    report = json.loads(done.stdout)
    cases = report["cases"]
    wrong = [f"{case['id']}: {case['verdict']}: {case['reason']}; inside {case['inside']}, control {case['control']}"
             for case in cases if case["verdict"] not in GOOD]
    require(not wrong, "\n".join(wrong))
    require(done.returncode == 0, f"exit status {done.returncode} although every case passes")
    require({case["check"] for case in cases} >= TEN, "not all of the ten checks were tried")
    refused = sum(case["verdict"] == "REFUSED" for case in cases)
    require(args.only or refused >= 300, f"only {refused} attempts were refused")
    require(all(case["reason"] for case in cases if case["verdict"] == "INAPPLICABLE"), "inapplicable, and no reason")
    nothing_left(before)
    print(f"ok   {args.engine}: {len(cases)} attempts, {refused} refused ({time.monotonic() - started:.0f} s)")


def every_wall_is_noticed(args):
    done = subprocess.run([args.program, "conformance", "--engine", args.engine, "--profile", args.profile, "--matrix"],
                          capture_output=True, text=True, timeout=300)
    require(done.returncode == 0, f"--matrix: exit status {done.returncode}: {done.stderr}")
    walls, limits = (part.count("\n| ") - 1 for part in done.stdout.split("\n## Limits"))
    require((walls, limits) == (11, LIMITS), f"{walls} walls were taken down, {limits} limits raised")
    print(f"ok   {walls} walls taken down and {limits} limits raised in turn, each noticed")


def other_profiles(args):
    """What a profile lets through on purpose is said to be that, and what another wall refuses then is refused."""
    for profile in ("python", "node", "jvm", "native", "build"):
        done = subprocess.run([args.program, "conformance", "--engine", args.engine, "--profile", profile, "--format", "json", "--only", "outputs",
                               "--only", "syscalls"], capture_output=True, text=True, timeout=300)
        cases = {case["id"]: case for case in json.loads(done.stdout)["cases"]}
        wrong = [f"{case['id']}: {case['verdict']}: {case['reason']}" for case in cases.values() if case["verdict"] not in GOOD]
        require(not wrong and done.returncode == 0, f"{profile}: exit status {done.returncode}, {wrong}")
        epoll, link = cases["kernel.epoll"], cases["outputs.symlink"]
        require((epoll["verdict"], epoll["reason"]) == ("CONFIRMED-LIMIT", f"the profile {profile} lets it through on purpose (profiles/README.md)"),
                f"{profile}: {epoll}")
        require((link["verdict"], link["inside"], link["expected"]) == ("REFUSED", "ok", "ok by collection"), f"{profile}: {link}")
        print(f"ok   {profile}: {len(cases)} attempts")


CACHE = Path(os.environ.get("BENCHSAND_CACHE", "/var/cache/benchsand"))
FEW_PROGRAMS = ("programs.curl-name", "programs.git-push-ssh", "programs.python-requests")


def programs_of(args, rootfs, *only):
    """The cases of ordinary programs in that root file system, by id; the exit status; how long it took."""
    words = [args.program, "conformance", "--engine", args.engine, "--profile", args.profile, "--format", "json", "--programs", str(rootfs)]
    for word in only:
        words += ["--only", word]
    started = time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True, timeout=100 * args.slow)
    require(done.returncode in (0, 3), f"--programs: exit status {done.returncode}: {done.stderr}")
    return {case["id"]: case for case in json.loads(done.stdout)["cases"]}, done.returncode, time.monotonic() - started


def ordinary_programs(args):
    rootfs = CACHE / "programs-rootfs"
    require(rootfs.is_dir(), f"there is no {rootfs}: tests/setup/rootfs.sh programs makes it")
    cases, status, seconds = programs_of(args, rootfs, *(FEW_PROGRAMS if args.plain else ("programs",)))
    wrong = [f"{case['id']}: {case['verdict']}: {case['reason']}; inside {case['inside']}, control {case['control']}"
             for case in cases.values() if case["verdict"] not in ("REFUSED", "INAPPLICABLE")]
    require(not wrong, "\n".join(wrong))
    require(status == 0, f"exit status {status} although every program was refused")
    require(len(cases) >= (len(FEW_PROGRAMS) if args.plain else 25), f"only {len(cases)} programs")
    print(f"ok   {args.engine}: {len(cases)} attempts through ordinary programs ({seconds:.0f} s)")


# A curl that ends as if it had been refused; what it did before; what must come of it.
LYING_CURLS = {
    "never tries": ("", "VACUOUS", "without the wall it came to exit-7, where ok would show that it can be done"),
    "tries only where somebody answers": ("grep -q 128.0.0.1 /proc/net/fib_trie && exec wget -q -O - http://192.0.2.1/",
                                          "UNKNOWN", "the host contradicts: refusals/socket AF_INET is 0, not 1"),
}


def lying_programs(args):
    """A root file system of a static busybox, in which curl is a script."""
    with tempfile.TemporaryDirectory() as folder:
        rootfs = Path(folder, "rootfs")
        shutil.copytree(CACHE / "tiny-rootfs", rootfs, symlinks=True)
        (rootfs / "srv").mkdir(exist_ok=True)
        for path in (Path(folder), rootfs):
            path.chmod(0o755)
        for name, (before, verdict, reason) in LYING_CURLS.items():
            curl = rootfs / "bin/curl"
            curl.write_text(f"#!/bin/sh\n{before}\necho \"curl: (7) Couldn't connect to server\" >&2\nexit 7\n")
            curl.chmod(0o755)
            cases, status, _ = programs_of(args, rootfs, "programs.curl-http", "programs.git-clone-git")
            seen = {id: (case["verdict"], case["reason"]) for id, case in cases.items()}
            require(status == 3 and seen == {"programs.curl-http": (verdict, reason),
                                             "programs.git-clone-git": ("UNKNOWN", "the root file system has no program git")},
                    f"a curl that {name}: exit status {status}, {seen}")
            print(f"ok   a curl that {name}: {verdict}; no git: UNKNOWN")


def mistakes(args):
    """Each is told before the attempts, once, with exit status 2; a baseline that is not there yet after them, when there are reports."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkfifo(Path(folder, "fifo"))
        Path(folder, "text").write_text("{}")
        for words, told in (
                (["--write", f"json={folder}/none/x"], f"--write to {folder}/none/x: there is no directory {folder}/none"),
                (["--write", "json=-"], "--write to -: a file is due; what is printed is chosen with --format"),
                (["--write", f"json={folder}/fifo"], f"--write to {folder}/fifo: it is no regular file, and would be replaced by one"),
                (["--write", "table=x"], "--write table=x: the table is printed; see --format"),
                (["--baseline", f"{folder}/fifo"], f"read the report {folder}/fifo: it is no regular file"),
                (["--baseline", f"{folder}/text"], f"read the report {folder}/text"),
                (["--matrix", "--engine", "docker"], "--matrix with docker: walls are taken down with crun and runc"),
                (["--matrix", "--only", "ten"], "--matrix with --only: it makes every attempt"),
                (["--compare", f"{folder}/none"], f"read the report {folder}/none: No such file or directory"),
                (["--no-shim"], "conformance with --no-shim: crun is no engine that runs without benchsand's runtime; say --engine docker or podman")):
            done = subprocess.run([args.program, "conformance", *words], capture_output=True, text=True, timeout=60)
            require(done.returncode == 2 and not done.stdout and done.stderr.startswith(f"benchsand: {told}"), f"{words}: {done}")
        words = [args.program, "conformance", "--only", "ten.processes", "--write", f"json={folder}/first"]
        done = subprocess.run([*words, "--baseline", f"{folder}/none"], capture_output=True, text=True, timeout=60)
        require(done.returncode == 2 and f"there is no {folder}/none yet; to accept this run" in done.stderr, f"no baseline yet: {done}")
        done = subprocess.run([*words, "--baseline", f"{folder}/first"], capture_output=True, text=True, timeout=60)
        require(done.returncode == 0 and "no drift" in done.stderr, f"with what was written then: {done}")
        done = subprocess.run([args.program, "conformance", "--profile", "pod-sandbox"], capture_output=True, text=True, timeout=60)
        require(done.returncode == 3 and done.stdout.count("there was no sandbox") == 1, f"no sandbox at all: {done.stdout[-2000:]}")
    print("ok   mistakes are told first, and once")


def killed_suite(args):
    """Killed in the middle: what is left, gc takes away."""
    before = left_behind()
    suite = subprocess.Popen([args.program, "conformance", "--engine", args.engine, "--profile", args.profile, "--only", "ten.cpu"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 20 * args.slow
    running, wanted = set(), {str(STAGES), "/run/benchsand"}
    while running < wanted and time.monotonic() < until:
        time.sleep(0.01)
        running = {str(Path(path).parent) for path in set(left_behind()) - set(before)} & wanted
    suite.send_signal(signal.SIGKILL)
    suite.wait()
    require(running == wanted, "nothing was there to be cleared")
    done = subprocess.run([args.program, "gc"], capture_output=True, text=True, timeout=60 * args.slow)
    require(done.returncode == 0, f"gc: {done.stderr}")
    nothing_left(before)
    print(f"ok   killed and cleared: {len(done.stdout.splitlines())} lines")


# A probe that answers another thing than what happened: the suite must not believe it. What it does; what may come of it.
LIES = {
    "says that all was refused": ('for (i = 1; i < argc; ++i) say(argv[i], "EPERM"); say("end", "ok");', {"UNKNOWN", "VACUOUS", "LIMIT-GONE"}),
    "says that all worked": ('for (i = 1; i < argc; ++i) say(argv[i], "ok"); say("end", "ok");', {"ESCAPED", "VACUOUS", "CONFIRMED-LIMIT"}),
    "says nothing": ("", {"UNKNOWN", "VACUOUS"}),
    "says the first and no more": ('say(argv[1], "EPERM");', {"UNKNOWN", "VACUOUS", "LIMIT-GONE"}),
    "says one thing twice": ('for (i = 1; i < argc; ++i) say(argv[i], "EPERM"); say(argv[1], "ok"); say("end", "ok");', {"UNKNOWN", "VACUOUS"}),
    "goes on after its end": ('say("end", "ok"); for (i = 1; i < argc; ++i) say(argv[i], "EPERM");', {"UNKNOWN", "VACUOUS"}),
}
PROGRAM = """#include <stdio.h>
static void say(const char* verb, const char* outcome) { printf("%s\\t%s\\n", verb, outcome); }
int main(int argc, char** argv) { int i = argc; (void)i; (void)argv; (void)say; BODY return 0; }
"""


def lying_probes(args):
    """The suite with another probe beside it, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "benchsand")
        shutil.copy(args.program, program)
        for name, (body, verdicts) in LIES.items():
            source = Path(folder, "lie.c")
            source.write_text(PROGRAM.replace("BODY", body))
            subprocess.run(["cc", "-static", "-o", str(Path(folder, "probe")), str(source)], check=True)
            done = subprocess.run([str(program), "conformance", "--engine", args.engine, "--format", "json", "--only", "namespaces"], capture_output=True, text=True, timeout=120)
            require(done.returncode == 3, f"a probe that {name}: exit status {done.returncode}, {done.stderr}")
            seen = {case["verdict"] for case in json.loads(done.stdout)["cases"]}
            require(seen <= verdicts | {"INAPPLICABLE"} and seen & verdicts, f"a probe that {name}: {seen}")
            print(f"ok   a probe that {name}: {', '.join(sorted(seen))}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--engine", choices=("crun", "runc"), required=True)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--slow", type=int, default=1)
    parser.add_argument("--profile", default="strict")
    parser.add_argument("--plain", action="store_true", help="the attempts, few ordinary programs, and nothing about the suite itself: for the guest")
    args = parser.parse_args()
    if os.geteuid() != 0:
        print("SKIP: must be root")
        return 77
    try:
        whole_suite(args)
        if not args.only:
            ordinary_programs(args)
            killed_suite(args)
        if args.engine == "crun" and not args.plain:
            mistakes(args)
            every_wall_is_noticed(args)
            other_profiles(args)
        if not args.plain:
            lying_probes(args)
            lying_programs(args)
    except Wrong as wrong:
        print(f"FAIL {wrong}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
