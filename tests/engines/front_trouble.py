#!/usr/bin/env python3
"""`benchsand run` on Docker and Podman when things go wrong: engines that lie, hang and die, signals, gc.

usage: front_trouble.py --engine docker|podman --program BENCHSAND --runtime BENCHSAND-RUNTIME --tools FOLDER [--slow N] [--compiled] [NAME...]
FOLDER has the test program `candidate`.
"""

import argparse
import sys

sys.dont_write_bytecode = True

import front
import front_gc

SCENARIOS = {**front_gc.SCENARIOS}


def main():
    parser = argparse.ArgumentParser()
    front.add_options(parser)
    parser.add_argument("--engine", required=True, choices=("docker", "podman"))
    given = parser.parse_args()
    if (status := front.begin(given, ["crun", {"docker": "dockerd"}.get(given.engine, given.engine)])) is not None:
        return status
    return front.run_all(front.Front(given, [given.engine]), SCENARIOS, given.names)


if __name__ == "__main__":
    sys.exit(main())
