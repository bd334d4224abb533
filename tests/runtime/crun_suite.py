#!/usr/bin/env python3
"""crun's own Python test-suite with crun, and with benchsand-runtime in its place; where the results differ.

usage: crun_suite.py --sources DIR --runtime benchsand-runtime [--profile passthrough] [--expect docs/crun-suite.md] [test_NAME…]

DIR is a checkout of crun, of the version that is installed (crun --version names the commit). Nothing is written there. With
--expect the differences must be those of the page's table, no more and no fewer.
"""

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SECONDS = 120
# test_delete leaves a process in a v1 freezer, where nothing can kill it.
FROZEN = Path("/sys/fs/cgroup/freezer/frozen")
THAW = f"cd {FROZEN} 2>/dev/null && echo THAWED > freezer.state"


def thaw():
    """After a test that was killed, too."""
    for _ in range(100):
        if not FROZEN.exists():
            return
        try:
            (FROZEN / "freezer.state").write_text("THAWED")
            FROZEN.rmdir()
        except OSError:
            time.sleep(0.1)


def container_cgroups():
    return set(Path("/sys/fs/cgroup").glob("*/test-tmp*"))


def build_init(sources, work):
    """The suite's program inside containers; crun's configure is not needed for it."""
    (work / "config.h").write_text("#define HAVE_ERROR_H 1\n#define HAVE_SECCOMP 1\n")
    subprocess.run(["gcc", "-static", "-O1", "-I", str(work), "-o", str(work / "tests/init"), str(sources / "tests/init.c"), "-lseccomp"], check=True,
                   stderr=subprocess.DEVNULL)


def run_file(work, file, runtime):
    """Result of each test of one file; a file that hangs is killed with all it started."""
    environment = {**os.environ, "OCI_RUNTIME": str(runtime), "INIT": str(work / "tests/init"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("RUN_TESTS", None)
    # A pid namespace of its own: whatever a test leaves behind ends with it. The shell is its first process and reaps.
    older = container_cgroups()
    words = ["unshare", "-m", "-p", "--fork", "--kill-child", "--mount-proc", "sh", "-c", f'/usr/bin/python3 "$0"; {THAW}', f"tests/{file}"]
    # Not /dev/null: crun gives it to the user of a container in a user namespace.
    with open(work / "stdin", "w+") as stdin, open(work / "output", "w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(words, cwd=work, env=environment, stdin=stdin, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        thaw()
        # crun leaves the cgroups of the frozen container.
        for cgroup in container_cgroups() - older:
            with contextlib.suppress(OSError):
                cgroup.rmdir()
        # What a killed test leaves would stop the next one: its folder is named after a number in a new pid namespace.
        for left in work.glob(".testsuite-run-*"):
            shutil.rmtree(left)
        output.seek(0)
        text = output.read()
    results = {}
    for state, name, skipped in re.findall(r"^(ok|not ok) \d+ - (.+?)(?: (#SKIP))?$", text, re.M):
        results[name] = "skipped" if skipped else "passes" if state == "ok" else "fails"
    planned = re.search(r"^1\.\.(\d+)$", text, re.M)
    if not planned or int(planned[1]) != len(results):
        results["(the rest)"] = "fails"
    return results, text


def suite(work, runtime, files, log):
    results = {}
    for file in files:
        found, text = run_file(work, file, runtime)
        results.update({f"{file.removesuffix('.py')}/{name}": result for name, result in found.items()})
        log.write(f"== {runtime} {file}\n{text}\n")
        log.flush()
    return results


def expected(page):
    """Rows of the page's table: | test | with crun | with benchsand | why |"""
    rows = re.findall(r"^\| `([^`]+)` \| (\w+) \| (\w+) \| .+ \|$", Path(page).read_text(), re.M)
    return {name: (crun, ours) for name, crun, ours in rows}


def report(reference, ours, page):
    differences = {name: (reference[name], ours.get(name, "missing")) for name in sorted(reference) if reference[name] != ours.get(name)}
    count = {word: sum(result == word for result in reference.values()) for word in ("passes", "fails", "skipped")}
    print(f"{len(reference)} tests with crun: {count}; {len(differences)} differ")
    for name, (crun, with_benchsand) in differences.items():
        print(f"| `{name}` | {crun} | {with_benchsand} |")
    if not page:
        return 1 if differences else 0
    due, problems = expected(page), []
    for name in sorted(set(due) | set(differences)):
        if due.get(name) != differences.get(name) and (name in reference or name in differences):
            problems.append(f"{name}: the page says {due.get(name)}, seen {differences.get(name)}")
    print("\n".join(problems) or "as the page says")
    return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sources", required=True, type=Path)
    parser.add_argument("--runtime", required=True, type=Path)
    parser.add_argument("--profile", default="passthrough")
    parser.add_argument("--expect")
    parser.add_argument("--log", default="/dev/null")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: needs root")
        return 77
    work = Path(tempfile.mkdtemp(prefix="benchsand-crun-suite-"))
    os.chmod(work, 0o755)
    shutil.copytree(given.sources / "tests", work / "tests")
    build_init(given.sources, work)
    ours = work / ("benchsand" if given.profile == "strict" else f"benchsand-{given.profile}")
    shutil.copy(given.runtime, ours)
    files = sorted(file.name for file in (work / "tests").glob("test_*.py") if not given.names or file.stem in given.names)
    with open(given.log, "w", encoding="utf-8") as log:
        status = report(suite(work, shutil.which("crun"), files, log), suite(work, ours, files, log), given.expect)
    shutil.rmtree(work)
    return status


if __name__ == "__main__":
    sys.exit(main())
