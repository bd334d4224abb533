#!/usr/bin/env python3
"""`benchsand run` on Docker and Podman when things go wrong: engines that lie, hang and die, signals, gc.

usage: front_trouble.py --engine docker|podman --program BENCHSAND --runtime BENCHSAND-RUNTIME --tools FOLDER [--slow N] [--compiled] [--long] [NAME...]
FOLDER has the test program `candidate`.
"""

import argparse
import sys

sys.dont_write_bytecode = True

import front
import front_ends
import front_gc
import front_lies

SCENARIOS = {**front_gc.SCENARIOS, **front_lies.SCENARIOS, **front_ends.SCENARIOS}


def main():
    parser = argparse.ArgumentParser()
    front.add_options(parser)
    parser.add_argument("--engine", required=True, choices=("docker", "podman"))
    parser.add_argument("--long", action="store_true", help="what waits for deadlines of minutes, too")
    given = parser.parse_args()
    if (status := front.begin(given, ["crun", {"docker": "dockerd"}.get(given.engine, given.engine)])) is not None:
        return status
    names = given.names or [*SCENARIOS, *(front_lies.LONG if given.long else ())]
    return front.run_all(front.Front(given, [given.engine]), {**SCENARIOS, **front_lies.LONG}, names)


if __name__ == "__main__":
    sys.exit(main())
