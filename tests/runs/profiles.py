#!/usr/bin/env python3
"""Real programs of each language under the profile that is made for it, and what each profile must refuse.

usage: profiles.py --program BENCHSAND --programs FOLDER --engine crun|runc [--slow N] [--compiled] [NAME...]
FOLDER holds native-plain, native-threads and refusals, built from programs/native; the root file systems come from
setup/rootfs.sh. --slow and --compiled are for the guest, as in runs.py.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path

sys.dont_write_bytecode = True

from harness import SOURCE, Bench, Wrong, equal, run_scenarios

PROGRAMS = SOURCE / "tests/runs/programs"
SCENARIOS = {}


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


def run(bench, profile, command, **keys):
    """A task in the profile's own root file system, with the profile's programs at /task and its own bounds."""
    limits = {"cpu_time": bench.seconds(60), "wall_time": bench.seconds(90), **keys.pop("limits", {})}
    task = bench.write_task(command, rootfs=str(bench.cache / f"{profile}-rootfs"), limits=limits,
                            inputs=[{"source": str(bench.programs[profile]), "target": "/task"}], **keys)
    return bench.run_task(task, profile)


def succeeds(bench, profile, command, **keys):
    attempt = run(bench, profile, command, **keys)
    if attempt.record and attempt.record["end"]["exit_code"] not in (0, None):
        raise Wrong(f"exit code {attempt.record['end']['exit_code']}: {attempt.stdout()[-600:]}"
                    f"{(attempt.folder / 'stderr').read_text()[-600:]}")
    return attempt.expect(0, "succeeded", "exited", exit_code=0, signal=None)


def says(bench, profile, command, expected, **keys):
    equal("stdout", succeeds(bench, profile, command, **keys).stdout(), expected)


@scenario
def native_c(bench):
    says(bench, "native", ["/task/native-plain"], "all went well\n")


@scenario
def native_cxx(bench):
    says(bench, "native", ["/task/native-threads"],
         "caught part five\nsum 26496500\ntext 9 entries, 2 bytes, 5 removed\nrandom x\nthrown\n")
    # Ninja is C++, and starts processes.
    build = "rule copy\n  command = cp $in $out\nbuild b: copy a\nbuild c: copy b\nbuild d: copy b\n"
    says(bench, "native", ["sh", "-c", f"printf '%s' '{build}' >build.ninja; echo text >a; ninja -j4 >log; cat c d"], "text\ntext\n")


@scenario
def native_rust(bench):
    says(bench, "native", ["sh", "-c", "rg -l --sort path 'GNU LESSER' /usr/share/common-licenses; cat /etc/passwd | rg -c --mmap ^root"],
         "/usr/share/common-licenses/LGPL-2.1\n/usr/share/common-licenses/LGPL-3\n1\n")
    says(bench, "native", ["sh", "-c", "mkdir -p a/b; touch a/b/one.x a/two.x; fdfind -e x -x echo {/} | sort"], "one.x\ntwo.x\n")
    succeeds(bench, "native", ["hyperfine", "--runs", "3", "--export-json", "/output/times.json", "true"])


@scenario
def native_go(bench):
    says(bench, "native", ["sh", "-c", "seq 100000 | fzf --filter 9999 | sort -n | head -2"], "9999\n19999\n")


@scenario
def node_tests(bench):
    said = succeeds(bench, "node", ["node", "--test", "/task/all.test.mjs"]).stdout()
    for line in ("# pass 8", "# fail 0", "# skipped 0"):
        if line not in said.splitlines():
            raise Wrong(f"the test runner did not say {line!r}: {said[-800:]}")


@scenario
def node_from_stdin_and_failing(bench):
    says(bench, "node", ["sh", "-c", "echo 'console.log(6 * 7)' | node"], "42\n")
    run(bench, "node", ["node", "-e", "throw new Error('mine')"]).expect(1, "failed", "exited", exit_code=1)
    run(bench, "node", ["node", "-e", "const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1))"]).expect(1, "limit", "memory")


JAVA = {"JDK_JAVA_OPTIONS": "-XX:MaxRAM=1g -Djava.io.tmpdir=/output"}
JAVA_SAID = "record locks: Operation not permitted\ninet: Permission denied\nall went well\n"


@scenario
def jvm_compiles_and_runs(bench):
    says(bench, "jvm", ["sh", "-c", "javac -J-XX:MaxRAM=1g -d . /task/Main.java && java Main"], JAVA_SAID, env=JAVA)
    says(bench, "jvm", ["java", "/task/Main.java"], JAVA_SAID, env=JAVA)


@scenario
def jvm_collectors(bench):
    collect = "set -e; javac -J-XX:MaxRAM=1g -d . /task/Main.java; for c in Serial Parallel G1; do java -XX:+Use${c}GC Main; done; jar cf a.jar *.class; java -Xint -cp a.jar Main"
    says(bench, "jvm", ["sh", "-c", collect], JAVA_SAID * 4, env=JAVA)


@scenario
def jvm_heap_is_bounded(bench):
    (bench.programs["jvm"] / "Eater.java").write_text(
        "class Eater { public static void main(String[] a) { java.util.List<byte[]> l = new java.util.ArrayList<>(); for (;;) l.add(new byte[1 << 20]); } }")
    end = run(bench, "jvm", ["java", "/task/Eater.java"], env=JAVA).expect(1, "failed", "exited", exit_code=1)
    if "OutOfMemoryError" not in (end.folder / "stderr").read_text():
        raise Wrong("the heap did not end by its own bound")


@scenario
def build_make(bench):
    says(bench, "build", ["sh", "/task/make.sh"], "42 helped\n42 helped\nMakefile\nhelper.cc\nmain.c\npart.c\n")


@scenario
def build_cmake(bench):
    says(bench, "build", ["sh", "/task/cmake.sh"], "42 from a thread\n")


@scenario
def build_shell(bench):
    says(bench, "build", ["bash", "/task/shell.sh"],
         "994 987 980 background\ntwo\ntrapped\nhere substituted\nthrough\n1048576\n4fe7b59a\n1970\na,b\n3\ndone\n")


@scenario
def build_git(bench):
    says(bench, "build", ["sh", "/task/git.sh"], "5\n 1 file changed, 1 insertion(+)\nside:1\n")


FAMILIES = ("inet", "inet6", "netlink", "packet", "alg", "vsock")


@scenario
def what_each_profile_refuses(bench):
    for profile in ("native", "node", "jvm", "build"):
        said = run(bench, profile, ["/task/refusals"]).expect(0, "succeeded", "exited").said()
        answers = {"clone3": "ENOSYS", "io_uring_setup": "ENOSYS", **{family: "EACCES" for family in FAMILIES}}
        equal(f"{profile}: not refused as it must be", {call: answer for call, answer in said.items() if answer != answers.get(call, "EPERM")}, {})
        equal(f"{profile}: asked for", len(said), 34)


def programs_of(bench, built):
    """A folder for each profile: its sources, and the programs that were built of C and C++."""
    folders = {}
    for profile in ("native", "node", "jvm", "build"):
        folder = bench.work / "programs" / profile
        shutil.copytree(PROGRAMS / profile, folder)
        for name in ("native-plain", "native-threads", "refusals"):
            if profile == "native" or name == "refusals":
                shutil.copy(Path(built) / name, folder / name)
        folders[profile] = folder
    return folders


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--slow", type=int, default=1)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: real runs need root")
        return 77
    bench = Bench(given.program, Path(given.programs) / "refusals", given.engine, given.slow, given.compiled,
                  os.environ.get("BENCHSAND_CACHE", "/var/cache/benchsand"))
    bench.programs = programs_of(bench, given.programs)
    return run_scenarios(bench, SCENARIOS, given.names)


if __name__ == "__main__":
    sys.exit(main())
