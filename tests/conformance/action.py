#!/usr/bin/env python3
"""The step of the GitHub action, .github/actions/conformance/attempts.sh, called as a runner calls it.

usage: action.py --program BENCHSAND"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
STEP = Path(__file__).resolve().parents[2] / ".github/actions/conformance/attempts.sh"
KINDS = {"json": "json", "sarif": "sarif", "junit": "xml"}
failed = 0


def step(folder, program, only, **more):
    """Exit status, log, outputs and summary of one step, in a folder of its own or that of an earlier one."""
    folder.mkdir(exist_ok=True)
    for name in ("output", "summary"):
        (folder / name).unlink(missing_ok=True)
    environment = {**os.environ, "ENGINE": "crun", "PROFILE": "strict", "ONLY": only, "BASELINE": "", "REPORTS": "the reports", "BENCHSAND": str(program),
                   "GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary"), **more}
    done = subprocess.run([STEP], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    outputs = dict(line.split("=", 1) for line in (folder / "output").read_text().splitlines())
    summary = folder / "summary"
    return done.returncode, done.stdout + done.stderr, outputs, summary.read_text() if summary.exists() else ""


def expect(name, claim, seen):
    global failed
    failed += not claim
    print(f"{'ok  ' if claim else 'FAIL'} {name}" + ("" if claim else f": {seen}"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    program = Path(parser.parse_args().program).resolve()
    if os.geteuid() != 0:
        print("SKIP: must be root")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        status, log, outputs, summary = step(folder / "good", program, "namespaces ten.processes")
        there = {kind: str(folder / "good/the reports" / f"conformance.{end}") for kind, end in KINDS.items()}
        expect("all stand", status == 0 and "::error" not in log and "REFUSED" in summary and outputs == {"passed": "true", **there}
               and all(Path(path).stat().st_size > 0 for path in there.values()), (status, log, outputs, summary))

        baseline = there["json"]
        copy = folder / "program"
        copy.mkdir()
        shutil.copy(program, copy / "benchsand")
        (copy / "lie.c").write_text('#include <stdio.h>\nint main(int argc, char** argv) { for (int i = 1; i < argc; ++i) '
                                    'printf("%s\\tok\\n", argv[i]); puts("end\\tok"); return 0; }\n')
        subprocess.run(["cc", "-static", "-o", copy / "probe", copy / "lie.c"], check=True)
        status, log, outputs, summary = step(folder / "bad", copy / "benchsand", "namespaces", BASELINE=baseline)
        expect("one falls", status == 3 and "::error" in log and "REGRESSION" in log and outputs["passed"] == "false" and "ESCAPED" in summary,
               (status, log, outputs, summary))

        status, log, outputs, summary = step(folder / "shell", program, "$(touch$IFS/hit) `touch hit` --help; touch hit")
        expect("an input is no command", status == 2 and outputs == {"passed": "false"} and "made no report: exit status 2" in summary and not list(folder.rglob("hit")),
               (status, log, outputs, summary))
        status, log, outputs, summary = step(folder / "good", program, "no-such-case")
        left = sorted(path.name for path in (folder / "good/the reports").iterdir())
        expect("no report of an earlier run", status == 2 and outputs == {"passed": "false"} and "made no report: exit status 2" in summary and left == [], (status, left, summary))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
