#!/usr/bin/env python3
"""The dependency rule of docs/architecture.md, read from the source text.

oci/ is pure: it includes only itself, the standard library without clock, file and process, and its document libraries,
each in one place; it calls nothing of the operating system. So is conformance/, which may include oci/ too, but for its hands
(command, default_scene, matrix, runsc_scene, scene, sink, sink_answers, stage, suite) and for the programs that run inside a sandbox (probe/). In shim/, engine_* and host_* never meet outside the files
that tell the story of a run: evidence must not come from the engine's mouth.

usage: includes_test.py [SOURCE_DIR [LIBRARY…]]
A LIBRARY is the compiled oci/ or conformance/: the symbols it asks for tell what a name in the text cannot. Bad samples below must be refused first, so the test is known to be able to fail.
"""

import re
import subprocess
import sys
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
STORY_FILES = {"run", "door", "monitor"}
CONFORMANCE_HANDS = {"command", "default_scene", "matrix", "runsc_scene", "scene", "sink", "sink_answers", "stage", "suite"}

# Third-party and kernel headers of oci/: the only files (stems) that may include each; None = all of oci/.
OCI_LIBRARIES = {
    "nlohmann/": None,
    "yaml-cpp/": {"yaml_tree"},
    "seccomp.h": {"seccomp", "seccomp_names"},
    "openssl/": {"sha256"},
    # libseccomp 2.5 gives a program through a descriptor only, so it writes into an anonymous file of its own.
    "sys/mman.h": {"seccomp"},
    "unistd.h": {"seccomp"},
}
# Of the standard library, what reaches for a clock, a file, a process or a thread.
OCI_BANNED_STD = {
    "atomic", "chrono", "condition_variable", "csetjmp", "csignal", "cstdio", "ctime", "filesystem", "fstream", "future",
    "iostream", "mutex", "random", "semaphore", "shared_mutex", "stop_token", "thread",
}
# Names that nothing else bears, and, written with `::`, names that a class of ours may bear too.
OCI_BANNED_CALLS = re.compile(
    r"(?<![\w.>:])(?:std\s*::\s*|::\s*)?"
    r"(openat|fopen|freopen|popen|fork|vfork|execve?|execvp?|posix_spawnp?|getenv|secure_getenv|setenv|clock_gettime|"
    r"gettimeofday|nanosleep|usleep|syscall|ioctl|prctl|lstat|fstat|statx|statvfs|getpid|getuid|srand|getrandom|readlink|"
    r"opendir|mmap|printf|fprintf|puts)\s*\("
    r"|(?<![\w>])(?:std\s*)?::\s*(open|creat|time|clock|clone|system|socket|connect|stat|kill|rand|sleep)\s*\("
)
OCI_BANNED_WORDS = re.compile(
    r"\b(errno|ifstream|ofstream|fstream|filesystem|system_clock|steady_clock|high_resolution_clock|random_device|jthread|"
    r"cout|cerr|cin|environ)\b"
)


def code_only(text):
    """The text without comments and without the contents of string and character literals; lines keep their numbers."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S
    )
    return token.sub(lambda m: '""' + "\n" * m.group(0).count("\n"), text)


def includes(text):
    without_comments = re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)
    for match in INCLUDE.finditer(without_comments):
        yield without_comments.count("\n", 0, match.start(2)) + 1, match.group(1), match.group(2)


def oci_include_problem(part, stem, quote, name):
    if quote == '"':
        if part == "oci":
            return None if name.startswith("oci/") else "oci includes only oci"
        folder, _, file = name.rpartition("/")
        good = folder == "oci" or (folder == "conformance" and Path(file).stem not in CONFORMANCE_HANDS)
        return None if good else "a document of conformance includes only such, and oci"
    for prefix, stems in OCI_LIBRARIES.items():
        if name.startswith(prefix):
            return None if stems is None or (part == "oci" and stem in stems) else f"<{name}> belongs in {', '.join(f'{s}.cc' for s in sorted(stems))} only"
    if re.fullmatch(r"[a-z_0-9]+", name):
        return f"<{name}> reaches out of the documents" if name in OCI_BANNED_STD else None
    return f"<{name}> is not a document library"


def check_oci(path, text):
    part = path.split("/")[0]
    for line, quote, name in includes(text):
        problem = oci_include_problem(part, Path(path).stem, quote, name)
        if problem:
            yield f"{path}:{line}: {problem}"
    code = code_only(text)
    for pattern in (OCI_BANNED_CALLS, OCI_BANNED_WORDS):
        for match in pattern.finditer(code):
            if re.match(r"\s*#\s*include", code[code.rfind("\n", 0, match.start()) + 1:]):
                continue
            yield f"{path}:{code.count(chr(10), 0, match.start()) + 1}: {part} is pure, no `{next(filter(None, match.groups()))}`"


# What the compiled library asks of libc, whatever it is called in the text.
BANNED_SYMBOLS = {
    "open", "open64", "openat", "openat64", "creat", "fopen", "fopen64", "freopen", "popen", "fork", "vfork", "clone", "execve",
    "execv", "execvp", "posix_spawn", "posix_spawnp", "system", "getenv", "secure_getenv", "setenv", "environ", "time", "clock",
    "clock_gettime", "gettimeofday", "nanosleep", "usleep", "socket", "connect", "syscall", "ioctl", "prctl", "stat", "lstat",
    "fstat", "stat64", "statx", "statvfs", "statvfs64", "getpid", "getuid", "kill", "rand", "srand", "getrandom", "readlink",
    "opendir", "mmap", "mmap64", "printf", "puts", "read", "write", "lseek", "lseek64", "close", "memfd_create",
    "__errno_location",
}
BANNED_IN_SYMBOL = ("basic_ifstream", "basic_ofstream", "basic_fstream", "6chrono", "10filesystem", "6thread", "13random_device")
# Reading a JSON text, the library asks strtoull whether a number was too large; only json_text reads one.
SYMBOL_EXCEPTIONS = {"seccomp": {"memfd_create", "read", "lseek", "lseek64", "close"}, "json_text": {"__errno_location"},
                     # nlohmann's reader, and its pointers into lists, use strtoull.
                     "strict_json": {"__errno_location"}, "admit": {"__errno_location"}, "admit_mounts": {"__errno_location"},
                     "tighten": {"__errno_location"}}


def check_symbols(listing):
    """`listing` is what `nm -A -u` prints: ARCHIVE:MEMBER.cc.o:   U SYMBOL."""
    for archive, member, symbol in re.findall(r"([^/\n]+):(\w+)\.cc\.o:\s+U (\S+)", listing):
        name = symbol.split("@")[0]
        banned = name in BANNED_SYMBOLS or any(part in name for part in BANNED_IN_SYMBOL)
        if banned and name not in SYMBOL_EXCEPTIONS.get(member, ()):
            yield f"{archive}: {member}.cc: asks the system for `{name}`"


def check_shim(path, text):
    stem = Path(path).stem
    kinds = {}
    for line, quote, name in includes(text):
        if name.startswith("curl/") and Path(path).name != "http.cc":
            yield f"{path}:{line}: <{name}> belongs in http.cc only"
        kind = re.match(r"shim/(engine|host)_", name)
        if quote == '"' and kind:
            kinds[kind.group(1)] = line
    own = re.match(r"(engine|host)_", stem)
    if own:
        kinds.setdefault(own.group(1), 1)
    if len(kinds) == 2 and stem not in STORY_FILES:
        yield f"{path}:{max(kinds.values())}: engine_* and host_* meet only in {', '.join(sorted(STORY_FILES))}"


def check(path, text):
    if path.startswith("oci/") or (re.fullmatch(r"conformance/[^/]+", path) and Path(path).stem not in CONFORMANCE_HANDS):
        return list(check_oci(path, text))
    if path.startswith("shim/"):
        return list(check_shim(path, text))
    return []


# (path, text, part of the one message that is due; "" = none is due)
SAMPLES = [
    ("oci/a.cc", '#include "shim/sys.h"\n', "oci/a.cc:1: oci includes only oci"),
    ("oci/a.cc", "#include <string>\n#include <fstream>\n", "oci/a.cc:2: <fstream> reaches out"),
    ("oci/a.cc", "#include <seccomp.h>\n", "<seccomp.h> belongs in seccomp.cc, seccomp_names.cc only"),
    ("oci/seccomp.cc", "#include <seccomp.h>\n", ""),
    ("oci/a.cc", "#include <openssl/sha.h>\n", "<openssl/sha.h> belongs in sha256.cc only"),
    ("oci/a.cc", "#include <yaml-cpp/yaml.h>\n", "<yaml-cpp/yaml.h> belongs in yaml_tree.cc only"),
    ("oci/a.cc", "#include <sys/stat.h>\n", "<sys/stat.h> is not a document library"),
    ("oci/a.cc", "#include <unistd.h>\n", "<unistd.h> belongs in seccomp.cc only"),
    ("oci/a.cc", "#include <nlohmann/json.hpp>\n#include <cerrno>\n", ""),
    ("oci/a.cc", "int f() { return ::open(p, 0); }\n", "no `open`"),
    ("oci/a.cc", "\nauto x = std::getenv(name);\n", "oci/a.cc:2: oci is pure, no `getenv`"),
    ("oci/a.cc", "std::ifstream in(path);\n", "no `ifstream`"),
    ("oci/a.cc", "auto t = std::time(nullptr);\n", "no `time`"),
    ("oci/a.cc", "pid_t p = fork();\n", "no `fork`"),
    ("oci/a.cc", "int e = errno;\n", "no `errno`"),
    ("oci/a.cc", "auto n = std::chrono::steady_clock::now();\n", "no `steady_clock`"),
    ("oci/a.cc", '// open(x), errno, "\n/* fork() */ f("fork()"); open(x); wall_time(3);\n', ""),
    ("conformance/a.cc", '#include "shim/sys.h"\n', "conformance/a.cc:1: a document of conformance includes only such"),
    ("conformance/a.h", '#include "conformance/scene.h"\n', "a document of conformance includes only such"),
    ("conformance/a.cc", '#include "conformance/probe/verbs.h"\n', "a document of conformance includes only such"),
    ("conformance/a.cc", '#include "conformance/b.h"\n#include "oci/c.h"\n#include <nlohmann/json.hpp>\n#include <map>\n', ""),
    ("conformance/a.cc", "#include <fstream>\n", "<fstream> reaches out"),
    ("conformance/sha256.cc", "#include <openssl/sha.h>\n", "<openssl/sha.h> belongs in sha256.cc only"),
    ("conformance/a.cc", "int e = errno;\n", "conformance is pure, no `errno`"),
    ("conformance/scene.cc", '#include "shim/sys.h"\nint e = errno;\n', ""),
    ("conformance/suite.h", '#include "shim/sys.h"\n', ""),
    ("conformance/probe/a.c", "#include <unistd.h>\nint e = errno;\n", ""),
    ("shim/engine_crun.cc", '#include "shim/host_cgroup.h"\n', "engine_* and host_* meet only in"),
    ("shim/host_cgroup.cc", '#include "oci/x.h"\n#include "shim/engine_runtime.h"\n', "shim/host_cgroup.cc:2: engine_*"),
    ("shim/main.cc", '#include "shim/engine_runtime.h"\n#include "shim/host_cgroup.h"\n', "shim/main.cc:2: engine_*"),
    ("shim/run.cc", '#include "shim/engine_runtime.h"\n#include "shim/host_cgroup.h"\n', ""),
    ("shim/run.cc", "#include <curl/curl.h>\n", "<curl/curl.h> belongs in http.cc only"),
    ("shim/http.cc", "#include <curl/curl.h>\n", ""),
]


def self_test():
    bad = []
    for path, text, due in SAMPLES:
        got = check(path, text)
        if (due and (len(got) != 1 or due not in got[0])) or (not due and got):
            bad.append(f"self-test: {path} {text!r}: expected {due or 'no message'!r}, got {got}")
    listing = "l.a:a.cc.o:                 U {}\n"
    for symbol in ("open", "getenv@GLIBC_2.2.5", "_ZNSt6chrono3_V212system_clock3nowEv"):
        if len(list(check_symbols(listing.format(symbol)))) != 1:
            bad.append(f"self-test: the symbol {symbol} was not seen")
    if list(check_symbols(listing.format("_ZNSt6vectorIiE4openEv") + "l.a:seccomp.cc.o:   U memfd_create\n")):
        bad.append("self-test: a good symbol was refused")
    return bad


def main():
    source = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2])
    problems = self_test()
    files = sorted(p for part in ("oci", "shim", "conformance") for p in (source / part).rglob("*") if p.suffix in (".h", ".cc"))
    if len(files) < 10:
        problems.append(f"only {len(files)} source files found under {source}")
    for file in files:
        problems += check(file.relative_to(source).as_posix(), file.read_text())
    for library in sys.argv[2:]:
        listing = subprocess.run(["nm", "-A", "-u", library], check=True, capture_output=True, text=True).stdout
        if " U " not in listing:
            problems.append(f"no symbols in {library}")
        problems += check_symbols(listing)
    print("\n".join(problems) or f"{len(files)} files keep the dependency rule, {len(SAMPLES)} samples judged right")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
