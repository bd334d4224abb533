#!/usr/bin/env python3
"""usage: skipped.py JUNIT.xml [MUST_RUN.txt]

Lists the tests that CTest skipped, with their reasons. With a list of tests that must run instead (a name a line; a
second word is the distribution, as in /etc/os-release, that the line is for): one skipped or absent is a failure.
"""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def distribution():
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("ID="):
            return line[3:].strip('"')
    return "unknown"


def read_results(path):
    """name -> (ran, reason why not)"""
    results = {}
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        ran = case.get("status") in ("run", "fail")
        output = (case.findtext("system-out") or "").strip().splitlines()
        said = [line for line in output if line.startswith("skipped")]
        results[case.get("name")] = (ran, said[0] if said else case.get("status"))
    return results


def must_run(path, here):
    for line in Path(path).read_text().splitlines():
        words = line.split("#")[0].split()
        if words and (len(words) == 1 or words[1] == here):
            yield words[0]


def main():
    results = read_results(sys.argv[1])
    skipped = {name: reason for name, (ran, reason) in results.items() if not ran}
    problems = []
    if len(sys.argv) == 2:
        for name, reason in skipped.items():
            print(f"not run: {name}: {reason}")
    else:
        for name in must_run(sys.argv[2], distribution()):
            if name not in results:
                problems.append(f"{name} must run here and does not exist")
            elif name in skipped:
                problems.append(f"{name} must run here and was skipped")
    for problem in problems:
        print(f"FAIL: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
