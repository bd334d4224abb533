"""Walls taken down by name (oci/relaxation.h): the candidate runs without them, and each missing wall is seen and said."""

from harness import Wrong, equal

# What is taken down; the walls that the record must call broken beside `evidence`; a command that works only without it.
TAKEN_DOWN = [
    (["seccomp"], {"network", "syscalls"}, "mkfifo /output/pipe"),
    (["seccomp", "no-new-privs"], {"network", "syscalls", "privileges"}, "grep -q 'NoNewPrivs:.0' /proc/self/status"),
    (["identity"], {"privileges"}, "test $(id -u) = 0"),
    (["user-namespace"], set(), "grep -q '4294967295' /proc/self/uid_map"),
    (["masks"], {"mounts", "rootfs"}, "test -n \"$(head -c 9 /proc/kallsyms)\""),
    (["rootfs"], {"mounts", "rootfs"}, "touch /written"),
    (["devices"], {"mounts", "rootfs"}, "touch /dev/written"),
    (["pid-namespace", "user-namespace"], {"namespaces"}, "test $$ != 1"),
]


def check_noticed(bench):
    for down, walls, command in TAKEN_DOWN:
        task = bench.write_task(["/bin/sh", "-c", command])
        bench.run_task(task).expect(1, "failed", "exited")
        run = bench.run_relaxed(down, task)
        verdict, end = run.record["verdict"], run.record["end"]
        equal(f"outcome, scored, cause, exit code without {down}",
              (verdict["outcome"], verdict["scored"], end["cause"], end["exit_code"]), ("refused", False, "exited", 0))
        equal(f"broken walls without {down}", {failure["wall"] for failure in verdict["failures"]}, walls | {"evidence"})
        said = [failure["observed"] for failure in verdict["failures"] if failure["expected"] == "no wall taken down for a test"]
        if len(said) != 1 or set(said[0].split(", ")) != set(down):
            raise Wrong(f"the record says that {said} were taken down, not {down}")
