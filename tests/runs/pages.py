#!/usr/bin/env python3
"""What `benchsand verdict RECORD --html FILE` and `--plot` make of a record, a hostile one too. Needs no root and runs nothing.

usage: pages.py --program BENCHSAND
"""

import argparse
import copy
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.dont_write_bytecode = True

RECORD = json.loads((Path(__file__).parents[1] / "fixtures/record/succeeded.json").read_text())
# What a page is made of. Nothing here can run, load or lead anywhere.
ELEMENTS = set("html head meta title style body main div h1 h2 p span code table tr th td details summary br strong figure "
               "figcaption svg line path circle text footer".split())
ATTRIBUTES = set("lang charset http-equiv content name class colspan open viewBox role aria-label x y x1 y1 x2 y2 cx cy r d "
                 "text-anchor".split())
HOSTILE = [
    "</script><script>alert(1)</script>", "</style><img src=x onerror=alert(1)>", "\"><svg onload=alert(1)>", "' onclick='x",
    "&lt;b&gt; &amp; &#60;", "]]>", "<!--", "a\nverdict     SCORED\r\x1b[2J\x00\x7f", "\u202egnp.exe", "\u2066\u200b\ufeff\u00ad",
    "\ufffe\uffff", "\\xff", "\U000e0041", "javascript:alert(1)", "x" * 5000,
]


def sealed(record):
    record = {name: value for name, value in record.items() if name != "digest"}
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return {**record, "digest": hashlib.sha256(text.encode()).hexdigest()}


def shown(text):
    """As html_text shows it: what would be hidden is written out as the bytes of its UTF-8."""
    hidden = re.compile("[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
                        "\U000e0000-\U000e007f]")
    return hidden.sub(lambda match: "".join(f"\\x{byte:02x}" for byte in match.group().encode()), text)


def hostile_record(text):
    """The text wherever a candidate, a task or a delegate could have put it."""
    record = copy.deepcopy(RECORD)
    record["outputs"] = [{"path": text, "size": 1, "sha256": "f" * 64}]
    record["outputs_refused"] = [{"path": text, "reason": text}]
    record["evidence"]["refusals"]["by_call"] = [{"call": text, "argument": text, "errno": text, "count": 1}]
    record["evidence"]["established"]["mounts"]["differences"] = {"expected": "none", "observed": text, "source": text}
    record["evidence"]["established"]["rootfs"][text] = {"expected": text, "observed": None, "missing": text, "source": text}
    record["verdict"] = {"scored": False, "outcome": "refused", "tier": None, "failures": [
        {"wall": "mounts", "expected": "none", "observed": text, "source": text}]}
    record["notices"] = [text]
    record["task"]["name"] = record["profile"]["name"] = record["policy"]["workdir"] = record["host"]["kernel"] = text
    record["policy"]["command"] = record["policy"]["env"] = record["policy"]["relaxations"] = [text]
    record["engine"]["delegate"]["version"] = text
    return record


class Pages:
    def __init__(self, program, work):
        self.program, self.work, self.problems = program, Path(work), []

    def check(self, what, holds, seen=""):
        if not holds:
            self.problems.append(f"{what}: {str(seen)[:600]}")

    def verdict(self, record, *more):
        path = self.work / "record.json"
        path.write_text(json.dumps(sealed(record)))
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        return subprocess.run([self.program, "verdict", path, *more], capture_output=True, text=True, timeout=60, env=environment)

    def page(self, record):
        path = self.work / "page.html"
        done = self.verdict(record, "--html", path)
        self.check("status", done.returncode in (0, 3) and not done.stderr, f"{done.returncode} {done.stderr}")
        return path.read_text()

    def tree(self, page):
        """Well-formed XML, and of nothing but the listed elements and attributes."""
        tree = ElementTree.fromstring(page)
        for element in tree.iter():
            name = element.tag.rpartition("}")[2]
            self.check("element", name in ELEMENTS, name)
            self.check("attribute", set(element.attrib) <= ATTRIBUTES, element.attrib)
        return tree

    def plain_record(self):
        tree = self.tree(self.page(RECORD))
        text = "\n".join(tree.itertext())
        for due in ("demo", "SCORED", "own namespace, links lo", "AF_INET", "EACCES", "a & 'b' \"c\".txt", "symbolic link",
                    "limit 256MiB", RECORD["digest"], RECORD["outputs"][0]["sha256"]):
            self.check(f"the page says {due!r}", due in text, text)
        lines = self.verdict(RECORD).stdout.splitlines()
        for wall in ("network", "memory", "syscalls", "teardown"):
            words = next(line for line in lines if line.startswith(wall + " "))[20:]
            self.check(f"the table's line of {wall} stands in the page", words in text, words)
        figures = [e for e in tree.iter() if e.tag.endswith("}figure")]
        self.check("a figure each for memory, CPU, tasks, output and refusals", len(figures) == 5, len(figures))
        broken = copy.deepcopy(RECORD)
        swap = broken["evidence"]["established"]["memory"]["swap"]
        swap["observed"] = "max"  # and at the end as it should be: one line of evidence is at fault, not two
        broken["verdict"] = {"scored": False, "outcome": "refused", "tier": None, "failures": [
            {"wall": "memory", "expected": swap["expected"], "observed": "max", "source": swap["source"]}]}
        rows = [e for e in self.tree(self.page(broken)).iter() if e.attrib.get("class") == "broken" and e.tag.endswith("}tr")]
        self.check("the line of evidence at fault is marked", len(rows) == 1 and "max" in "".join(rows[0].itertext()), len(rows))
        for figure in figures:
            points = [e.attrib["d"] for e in figure.iter() if e.attrib.get("class") == "curve"]
            self.check("a point for each sample", points[0].count("L") == len(RECORD["timeline"]["samples"]) - 1, points)
        plot = self.verdict(RECORD, "--plot")
        self.check("--plot", plot.returncode == 0 and "memory, sampled up to" in plot.stdout and "\u28ff" in plot.stdout, plot.stdout)
        ascii_plot = self.verdict(RECORD, "--plot", "--ascii")
        self.check("--ascii", "memory, sampled up to" in ascii_plot.stdout and ascii_plot.stdout.isascii(), ascii_plot.stdout)

    def hostile_records(self):
        for text in HOSTILE:
            page = self.page(hostile_record(text))
            try:
                tree = self.tree(page)
            except ElementTree.ParseError as error:
                self.check("well-formed", False, f"{error} with {text!r}")
                continue
            self.check("nothing hidden is left", shown(page.replace("\n", "")) == page.replace("\n", ""), ascii(text))
            found = "\n".join(tree.itertext())
            # name, notice, relaxation, observation and its parts, refusals, outputs, policy
            self.check(f"{ascii(text)} is shown everywhere it stands", found.count(shown(text)) >= 15, found.count(shown(text)))

    def no_samples(self):
        for timeline, due in ((None, "takes no samples"), ({"interval_us": 100000, "samples": [], "unread": 0}, "before its first sample")):
            record = {**RECORD, "timeline": timeline}
            self.check("page without samples", due in self.page(record), due)
            plot = self.verdict(record, "--plot").stdout.splitlines()
            self.check("plot without samples is one line", due in plot[-1] and plot[-2] == "", plot[-3:])

    def broken_records(self):
        page = self.work / "none.html"
        for key in ("policy", "verdict", "evidence", "outputs"):
            record = {name: value for name, value in RECORD.items() if name != key}
            done = self.verdict(record, "--html", page)
            self.check(f"without {key}: status 2 and no page", done.returncode == 2 and not page.exists(), done.stderr)
        record = copy.deepcopy(RECORD)
        record["timeline"]["samples"][0]["memory_bytes"] = "many"
        done = self.verdict(record, "--html", page)
        self.check("a sample that is no number: status 2", done.returncode == 2 and not page.exists(), done.stderr)

    def files(self):
        """A page replaces a page, and nothing else."""
        folder = self.work / "files"
        folder.mkdir()
        (folder / "target").write_text("precious")
        (folder / "link").symlink_to("target")
        (folder / "dangling").symlink_to("nowhere")
        (folder / "folder").mkdir()
        os.mkfifo(folder / "fifo")
        before = sorted(os.listdir(folder))
        for name in ("link", "dangling", "folder", "fifo", "missing/page.html"):
            done = self.verdict(RECORD, "--html", folder / name)
            self.check(f"over {name}: status 2", done.returncode == 2 and "make the page" in done.stderr, f"{done.returncode} {done.stderr}")
        self.check("nothing changed", sorted(os.listdir(folder)) == before and (folder / "target").read_text() == "precious",
                   os.listdir(folder))
        done = self.verdict(RECORD, "--html", folder / "target")
        self.check("over a regular file", done.returncode == 0 and (folder / "target").read_text().startswith("<!DOCTYPE html>"), done.stderr)
        self.check("no temporary file is left", sorted(os.listdir(folder)) == before, os.listdir(folder))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    program = str(Path(parser.parse_args().program).resolve())
    with tempfile.TemporaryDirectory() as work:
        pages = Pages(program, work)
        for part in (pages.plain_record, pages.hostile_records, pages.no_samples, pages.broken_records, pages.files):
            part()
    print("\n".join(f"FAIL {problem}" for problem in pages.problems) or f"ok   {len(HOSTILE)} hostile texts, one plain record")
    return 1 if pages.problems else 0


if __name__ == "__main__":
    sys.exit(main())
