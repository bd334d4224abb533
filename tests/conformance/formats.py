#!/usr/bin/env python3
"""The conformance suite's formats, read by readers of others: XML by expat, JSON by Python, YAML, TAP by TAP::Parser, Markdown by
cmark-gfm, metrics and workflow commands by the rules of who reads them. Hostile text must come out as text.

usage: formats.py --writer PROGRAM      PROGRAM DIR writes the reports (write_formats.cc)
"""

import argparse
import html.parser
import json
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

GOOD = {"REFUSED", "INAPPLICABLE", "CONFIRMED-LIMIT", "LIMIT-GONE"}
problems = []
counted = {}


def expect(condition, text):
    if not condition:
        problems.append(text)


def read(path):
    """Strict UTF-8, line ends as they are."""
    return path.read_bytes().decode()


def unprintable(text):
    """The bytes that a text of the JSON report stands for."""
    parts = re.split(r"\\(\\|x[0-9a-f]{2})", text)
    return b"".join(part.encode() if i % 2 == 0 else b"\\" if part == "\\" else bytes([int(part[1:], 16)])
                    for i, part in enumerate(parts))


def check_json(path, due):
    document = json.loads(read(path))
    expect(document["schema"] == "benchsand.conformance/v1", f"{path.name}: schema")
    for case in document["cases"]:
        unprintable(case["inside"])
    return document


def check_junit(path, due):
    root = xml.etree.ElementTree.parse(path).getroot()
    cases = root.findall("./testsuite/testcase")
    if not due["cases"]:
        expect(len(cases) == 1 and cases[0].find("error") is not None, f"{path.name}: an empty report passes")
        return
    expect(len(cases) == len(due["cases"]), f"{path.name}: {len(cases)} test cases")
    expect(not root.findall(".//skipped"), f"{path.name}: something is skipped")
    for element, row in zip(cases, due["cases"]):
        child = "error" if row["verdict"] == "UNKNOWN" else None if row["verdict"] in GOOD else "failure"
        found = [c.tag for c in element if c.tag != "properties"]
        expect(found == ([child] if child else []), f"{path.name}: {row['id']} has {found}")
        verdicts = [p.get("value") for p in element.findall("./properties/property") if p.get("name") == "verdict"]
        expect(verdicts == [row["verdict"]], f"{path.name}: {row['id']} says {verdicts}")
    sums = {key: int(root.get(key)) for key in ("tests", "failures", "errors", "skipped")}
    expect(sums == {"tests": len(cases), "failures": len(root.findall(".//failure")), "errors": len(root.findall(".//error")),
                    "skipped": 0}, f"{path.name}: {sums}")


TAP_READER = r"""
use TAP::Parser; local $/; open(my $in, '<', $ARGV[0]) or die; my $text = <$in>; $text =~ s/^TAP version 14/TAP version 13/ or die;
my $p = TAP::Parser->new({ tap => $text }); $p->run;
print join(' ', scalar $p->passed, scalar $p->failed, scalar $p->skipped, scalar $p->todo, scalar $p->parse_errors,
  $p->tests_planned, $p->has_problems ? 1 : 0), "\n";
"""


def check_tap(path, due):
    text = read(path)
    good = sum(row["verdict"] in GOOD for row in due["cases"])
    bad = len(due["cases"]) - good if due["cases"] else 1
    lines = text.split("\n")
    expect(lines[:2] == ["TAP version 14", f"1..{good + bad}"], f"{path.name}: begins {lines[:2]}")
    # Perl's reader knows versions up to 13, which differ in nothing that stands here.
    if shutil.which("perl"):
        got = subprocess.run(["perl", "-e", TAP_READER, path], capture_output=True, text=True)
        told = f"{good} {bad} 0 0 0 {good + bad} {1 if bad else 0}"
        expect(got.stdout.strip() == told, f"{path.name}: TAP::Parser says {got.stdout!r} {got.stderr!r}, due {told}")
    try:
        import yaml
    except ImportError:
        return
    for block in re.findall(r"^  ---\n(.*?)^  \.\.\.\n", text, re.S | re.M):
        values = yaml.safe_load(block)
        expect(list(values) == ["verdict", "reason", "wall", "asserts", "expected", "inside", "host", "control"],
               f"{path.name}: a block with {list(values)}")
        expect(all(isinstance(v, str) for v in values.values()), f"{path.name}: a block whose values are no texts")
        counted["yaml blocks"] = counted.get("yaml blocks", 0) + 1


SARIF_LEVELS = {"none", "note", "warning", "error"}


def check_sarif(path, due):
    log = json.loads(read(path))
    expect(log["version"] == "2.1.0" and "$schema" in log and len(log["runs"]) == 1, f"{path.name}: head")
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    expect(run["tool"]["driver"]["name"] == "benchsand conformance", f"{path.name}: name")
    failed = [row for row in due["cases"] if row["verdict"] not in GOOD]
    expect(len(run["results"]) == (len(failed) if due["cases"] else 1), f"{path.name}: {len(run['results'])} results")
    expect(len({rule["id"] for rule in rules}) == len(rules), f"{path.name}: a rule stands twice")
    for result in run["results"]:
        place = result["locations"][0]["physicalLocation"]
        expect(rules[result["ruleIndex"]]["id"] == result["ruleId"] and result["level"] in SARIF_LEVELS
               and result["kind"] == "fail" and isinstance(result["message"]["text"], str)
               and place["artifactLocation"]["uri"] and place["region"]["startLine"] == 1,
               f"{path.name}: {result['ruleId']}")


def commands(text):
    """What a runner of GitHub takes for commands: `::name …` at the beginning of a line, `##[name …]` anywhere."""
    for line in re.split(r"\r\n|\r|\n", text):
        if line.lstrip().startswith("::"):
            yield line.lstrip()
        elif "##[" in line:
            yield line[line.index("##["):]


def check_github(path, due):
    found = list(commands(read(path)))
    failed = [row for row in due["cases"] if row["verdict"] not in GOOD]
    expect(len(found) <= 10 and bool(found) == (bool(failed) or not due["cases"]), f"{path.name}: {len(found)} annotations")
    for line in found:
        match = re.fullmatch(r"::error title=([^:,]*)::(.*)", line)
        expect(match, f"{path.name}: {line[:80]!r}")
        expect(match and "%" not in re.sub(r"%(25|0A|3A|2C)", "", line), f"{path.name}: a bare % in {line[:80]!r}")


SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z0-9_]+="(?:[^"\\\n]|\\[\\"n])*",?)+)\})? (-?[0-9.]+)')


def check_metrics(path, due):
    text = read(path)
    expect(text.endswith("\n# EOF\n"), f"{path.name}: end")
    described, types, seen, order = set(), {}, set(), []
    for line in text.split("\n")[:-2]:
        if line.startswith("# HELP "):
            described.add(line.split(" ")[2])
        elif line.startswith("# TYPE "):
            name, kind = line.split(" ")[2:]
            expect(name not in types and kind in ("gauge", "counter", "untyped"), f"{path.name}: {line}")
            types[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            expect(match, f"{path.name}: {line!r}")
            if match:
                expect(match.group(1) in types and match.group(1) in described, f"{path.name}: {line!r} is not described")
                expect(match.group(1, 2) not in seen, f"{path.name}: {line!r} stands twice")
                seen.add(match.group(1, 2))
                order.append(match.group(1))
    expect(all(order[i] == order[i - 1] or order[i] not in order[:i] for i in range(1, len(order))), f"{path.name}: families mixed")
    good = bool(due["cases"]) and all(row["verdict"] in GOOD for row in due["cases"])
    expect(f"\nbenchsand_conformance_passed {int(good)}\n" in text, f"{path.name}: passed")


class Page(html.parser.HTMLParser):
    """Counts what Markdown became."""

    def __init__(self):
        super().__init__()
        self.tags, self.links = {}, []

    def handle_starttag(self, tag, attributes):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.links += [value for name, value in attributes if name in ("href", "src")]


def check_markdown(path, due):
    text = read(path)
    expect(len(text) <= 900 << 10, f"{path.name}: {len(text)} bytes")
    if not shutil.which("cmark-gfm"):
        return
    page = Page()
    page.feed(subprocess.run(["cmark-gfm", "--unsafe", "-e", "table", "-e", "autolink", "-e", "strikethrough", path],
                             capture_output=True, text=True, check=True).stdout)
    allowed = {"h1", "h2", "p", "table", "thead", "tbody", "tr", "th", "td", "code", "strong"}
    expect(set(page.tags) <= allowed, f"{path.name}: became {set(page.tags) - allowed}")
    expect(not page.links, f"{path.name}: links {page.links}")
    failed = sum(row["verdict"] not in GOOD for row in due["cases"])
    further = [row for row in due["cases"] if row["check"] == 0]
    walls = len({row["wall"] for row in further})
    rows = (1 + failed if failed else 0) + 11 + len(further) + walls
    expect(page.tags.get("tr") == rows, f"{path.name}: {page.tags.get('tr')} rows, due {rows}")
    cells = (7 * (1 + failed) if failed else 0) + 5 * 11 + 6 * (len(further) + walls)
    got = page.tags.get("td", 0) + page.tags.get("th", 0)
    expect(got == cells, f"{path.name}: {got} cells, due {cells}")
    expect(page.tags.get("strong", 0) <= 1 + failed + 10 + failed, f"{path.name}: {page.tags.get('strong')} bold")


def check_plain(path, due):
    text = read(path)
    expect(all(c == "\n" or " " <= c <= "~" for c in text), f"{path.name}: is not plain")


CHECKS = {"json": check_json, "junit": check_junit, "tap": check_tap, "sarif": check_sarif, "github": check_github,
          "metrics": check_metrics, "markdown": check_markdown, "table": check_plain, "drift": check_plain}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--writer", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([arguments.writer, folder], check=True)
        for base in sorted({path.stem for path in Path(folder).iterdir()}):
            due = json.loads(read(Path(folder, base + ".json")))
            for kind, check in CHECKS.items():
                path = Path(folder, f"{base}.{kind}")
                before = len(problems)
                try:
                    check(path, due)
                except Exception as error:
                    problems.append(f"{path.name}: {type(error).__name__}: {error}")
                if kind != "github":
                    found = list(commands(read(path)))
                    expect(not found, f"{path.name}: a command for a runner: {found[:1]}")
                counted[kind] = counted.get(kind, 0) + (len(problems) == before)
    if not problems and min(counted.values()) < 10:
        problems.append(f"too few were read: {counted}")
    print("\n".join(problems) or "read: " + ", ".join(f"{n} {kind}" for kind, n in counted.items()))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
