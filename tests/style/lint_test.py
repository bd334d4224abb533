#!/usr/bin/env python3
"""House rules that a compiler does not know, over every text file of the checkout.

usage: lint_test.py [SOURCE_DIR]    Bad samples below must be refused first, so the test is known to be able to fail.
"""

import os
import re
import sys
from pathlib import Path

TOP_LEVEL = {"CMakeLists.txt", "shim", "oci", "profiles", "conformance", "tests", "docs", "Dockerfile", "README.md", "LICENSE"}
SOURCES = (".h", ".cc", ".c")
TEXTS = SOURCES + (".py", ".sh", ".yaml", ".yml", ".md", ".txt", ".cmake")
SELF = "tests/style/lint_test.py"

# (name, pattern, file suffixes, why)
PATTERNS = [
    ("value_or(0)", re.compile(r"value_or\(\s*0\w*\s*\)"), SOURCES, "a missing value is an error, never zero"),
    ("empty catch", re.compile(r"catch\s*\([^)]*\)\s*\{\s*\}"), SOURCES, "an error nobody looks at"),
    ("marker", re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|not implemented"), TEXTS, "finish it or file an issue"),
    ("machine path", re.compile(r"(?<![\w.])/(?!root/(path|readonly)[\"`])(home|work|root|mnt|Users)/\w"), TEXTS, "a path of one machine"),
    ("registry", re.compile(r"\b(ghcr|quay|gcr|mcr|ecr|docker|pkg\.dev|amazonaws)(\.microsoft)?\.(io|com)/"), TEXTS,
     "a registry's host name"),
    ("trailing blank", re.compile(r"[ \t]+$", re.M), SOURCES + (".py", ".sh", ".yaml"), "noise in every diff"),
    ("using namespace std", re.compile(r"\busing namespace std\b"), SOURCES, "names of unknown origin"),
    ("sprintf", re.compile(r"(?<![\w:])(std::)?(sprintf|strcpy|strcat|gets|atoi|atol|atoll)\s*\("), SOURCES,
     "no bound, or no error"),
]


def longest(path):
    if path.startswith(("oci/", "shim/", "conformance/")):
        return 400
    return 600


def check(path, text):
    problems = []
    if path.endswith(SOURCES + (".py", ".sh")):
        lines = text.count("\n")
        if lines > longest(path):
            problems.append(f"{path}: {lines} lines, at most {longest(path)}")
        if text and not text.endswith("\n"):
            problems.append(f"{path}: no newline at the end of the file")
    if path.endswith(".py"):
        try:
            compile(text, path, "exec")
        except SyntaxError as error:
            problems.append(f"{path}:{error.lineno}: {error.msg}")
    for name, pattern, suffixes, why in PATTERNS:
        # Samples of broken input (specs, fixtures) are data.
        if not path.endswith(suffixes) or path == SELF or path.startswith(("tests/fixtures/", "tests/specs/bad/")):
            continue
        for match in pattern.finditer(text):
            problems.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {name}: {why}")
    if path.endswith(".h") and not re.search(r"^#pragma once$", text, re.M):
        problems.append(f"{path}: no #pragma once")
    return problems


def check_links(path, text, exists):
    """Relative links of a page must lead somewhere."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)
    for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)", prose):
        if "://" in target or target.startswith("mailto:"):
            continue
        if not exists(os.path.normpath(os.path.join(os.path.dirname(path), target))):
            yield f"{path}: link to {target}, which is not there"


# (path, text, part of the one message that is due; "" = none is due)
SAMPLES = [
    ("oci/a.cc", "int x = y.value_or(0);\n", "oci/a.cc:1: value_or(0)"),
    ("oci/a.cc", "int x = y.value_or(10);\n", ""),
    ("shim/a.cc", "\ntry { f(); } catch (...) {\n}\n", "shim/a.cc:2: empty catch"),
    ("shim/a.cc", "try { f(); } catch (...) { return fault(x); }\n", ""),
    ("docs/a.md", "this is TO" "DO\n", "docs/a.md:1: marker"),
    ("tests/a.sh", "cd /wo" "rk/main\n", "machine path"),
    ("tests/a.sh", "cd $home/work/main\n", ""),
    ("Dockerfile.md", "FROM gh" "cr.io/x\n", "registry"),
    ("oci/a.cc", "int a;\nint b; \n", "oci/a.cc:2: trailing blank"),
    ("oci/a.cc", "int a;", "no newline at the end"),
    ("oci/a.cc", "a;\n" * 401, "401 lines, at most 400"),
    ("tests/unit/a_test.cc", "a;\n" * 401, ""),
    ("tests/unit/a_test.cc", "a;\n" * 601, "601 lines, at most 600"),
    ("oci/a.h", "int a;\n", "no #pragma once"),
    ("oci/a.cc", "int n = std::atoi(s);\n", "sprintf: no bound"),
    ("oci/a.cc", "std::snprintf(b, n, f);\n", ""),
    ("tests/a.py", "x = (1\n", "tests/a.py:1: '(' was never closed"),
]


def self_test():
    bad = []
    for path, text, due in SAMPLES:
        got = check(path, text)
        if (due and (len(got) != 1 or due not in got[0])) or (not due and got):
            bad.append(f"self-test: {path} {text[:40]!r}: expected {due or 'no message'!r}, got {got}")
    if not list(check_links("docs/a.md", "see [b](b.md)", lambda _: False)):
        bad.append("self-test: a dead link was not seen")
    if list(check_links("docs/a.md", "see [b](../b.md#c)", lambda p: p == "b.md")):
        bad.append("self-test: a good link was refused")
    return bad


def text_files(source):
    for folder, folders, names in os.walk(source):
        relative = Path(folder).relative_to(source)
        folders[:] = sorted(f for f in folders if not (
            f in (".git", "__pycache__") or (relative == Path(".") and f.startswith(("build", "benchsand-results", ".cache")))))
        for name in sorted(names):
            path = (relative / name).as_posix()
            if path.endswith(TEXTS) or name in ("Dockerfile", "run"):
                yield path


def top_level_problems(source):
    for entry in sorted(os.listdir(source)):
        if entry not in TOP_LEVEL and not entry.startswith((".", "build", "benchsand-results")):
            yield f"{entry}: not one of the agreed top-level entries"


def main():
    source = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2])
    problems = self_test() + list(top_level_problems(source))
    pages, count = {}, 0
    for path in text_files(source):
        text = (source / path).read_text(errors="replace")
        problems += check(path, text)
        count += 1
        if path == "README.md" or (path.startswith(("docs/", "profiles/")) and path.endswith(".md")):
            pages[path] = text
            problems += check_links(path, text, lambda p: (source / p).exists())
    if count < 20:
        problems.append(f"only {count} files found under {source}")
    for page in pages:
        name = os.path.basename(page)
        if page.startswith("docs/") and not any(name in text for other, text in pages.items() if other != page):
            problems.append(f"{page}: no other page leads to it")
    print("\n".join(problems) or f"{count} files keep the house rules, {len(SAMPLES) + 2} samples judged right")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
