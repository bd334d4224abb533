#!/usr/bin/env python3
"""The conformance suite in containers of Docker and Podman: every attempt refused, every control flipped, nothing left behind.

usage: engines.py --program BENCHSAND --runtime BENCHSAND-RUNTIME --tools FOLDER [--slow N] [--compiled] [NAME...]
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("engines", "runs")]

import front
from harness import Wrong, equal, names_in

STAGES = "/run/benchsand-conformance"
PASSES = ("REFUSED", "INAPPLICABLE", "CONFIRMED-LIMIT")


def suite_on(engine):
    def check(bench):
        bench.engine = engine
        before = names_in(STAGES)
        done = subprocess.run([bench.program, "conformance", "--engine", engine, "--format", "json"],
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
        if refused < 300:
            raise Wrong(f"only {refused} of {len(report['cases'])} attempts were refused")
        equal("folders of the suite", names_in(STAGES), before)
    return check


def main():
    parser = argparse.ArgumentParser()
    front.add_options(parser)
    given = parser.parse_args()
    if (status := front.begin(given, ["crun", "dockerd", "podman"])) is not None:
        return status
    bench = front.Front(given, ["docker", "podman"])
    return front.run_all(bench, {engine: suite_on(engine) for engine in ("docker", "podman")}, given.names)


if __name__ == "__main__":
    sys.exit(main())
