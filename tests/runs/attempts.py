"""What a candidate tries that it may not, and what the ledger says of it; scenarios of runs.py."""

import json
import subprocess

from harness import Wrong, between, equal

SCENARIOS = {}


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


def ledger(run):
    """The host's counts as {"call:argument": (errno, count)}."""
    return {f"{row['call']}:{row.get('argument', '')}": (row["errno"], row["count"])
            for row in run.record["evidence"]["refusals"]["by_call"]}


@scenario
def the_ledger_agrees_with_the_candidate(bench):
    for rounds in (1, 7):
        run = bench.verb("refused-calls", rounds).expect(0, "succeeded", "exited")
        said = {}
        for line in run.stdout().splitlines():
            name, errno, count = line.split("\t")
            said[name] = (errno, int(count))
        equal("calls", len(said), 32)
        equal("ledger", ledger(run), said)
        equal("errnos", {name: errno for name, (errno, _) in said.items() if errno != ("EACCES" if "socket" in name else "EPERM")}, {})
        refusals = run.record["evidence"]["refusals"]
        equal("total", (refusals["total"], refusals["sockets"]), (32 * rounds, 7 * rounds))
        equal("judged", run.seen("spent", "syscalls", "refused_calls"), 32 * rounds)


@scenario
def ten_thousand_refusals_are_counted(bench):
    run = bench.python("""
import socket
refused = 0
for _ in range(10000):
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    except PermissionError:
        refused += 1
print(refused)
""", limits={"cpu_time": bench.seconds(30), "wall_time": bench.seconds(60)}).expect(0, "succeeded", "exited")
    equal("said", run.stdout(), "10000\n")
    equal("ledger", ledger(run), {"socket:AF_INET": ("EACCES", 10000)})


@scenario
def refusals_that_a_signal_voids_are_not_counted(bench):
    # Whether a signal hits one of them is up to the scheduler: on a quiet machine a whole run can go without.
    for _ in range(10):
        run = bench.verb("refused-under-signals", 3000, limits={"cpu_time": bench.seconds(20), "wall_time": bench.seconds(30)})
        said = run.expect(0, "succeeded", "exited").said()
        equal("other errnos", said["other"], "0")
        if int(said["interrupted"]) > 0:
            break
    else:
        raise Wrong("no call was interrupted in ten runs, so nothing was tested")
    # A signal between the answer and the task's waking discards the answer in the kernel, and nobody is told.
    errno, count = ledger(run).get("socket:AF_INET", ("EACCES", 0))
    equal("errno", errno, "EACCES")
    between("ledger", count, int(said["refused"]), int(said["refused"]) + int(said["interrupted"]) - 1)


@scenario
def a_flood_of_refusals_ends_the_run(bench):
    """And a run beside it keeps its timing."""
    task = bench.write_task(bench.candidate("refused-flood", 31), limits={"wall_time": bench.seconds(60), "cpu_time": bench.seconds(60)})
    flood = subprocess.Popen(bench.arguments(task), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    beside = bench.verb("sleep", 1, folder=bench.folder("beside")).expect(0, "succeeded", "exited")
    out, errors = flood.communicate(timeout=60 * bench.slow)
    if not out.strip():
        raise Wrong(f"no record of the flood; exit status {flood.returncode}: {errors}")
    record = json.loads(out)
    bench.run_ids.add(record["id"])
    equal("flood", (flood.returncode, record["verdict"]["scored"], record["verdict"]["outcome"], record["end"]["cause"]),
          (1, True, "limit", "refusals"))
    between("refused before the end", record["evidence"]["refusals"]["total"], 1000, 150000)
    between("time of the run beside", beside.seen("spent", "wall-time", "used_us"), 990_000, 1_000_000 + bench.slow * 1_000_000)


@scenario
def a_candidate_that_executes_the_delegate_has_executed(bench):
    """The image of init is then the delegate's program again: by that alone it would look as if nothing had been executed."""
    script = bench.work / "task" / "again"
    script.write_text("#!/proc/self/exe\n")
    script.chmod(0o755)
    run = bench.run_task(bench.write_task(["/task/again"], rootfs=str(bench.cache / "python-rootfs")), "python")
    equal("cause", (run.record["end"]["cause"], run.record["verdict"]["outcome"]), ("exited", "failed"))
    missing = bench.run_task(bench.write_task(["/task/missing"]))
    equal("cause", (missing.record["end"]["cause"], missing.record["verdict"]["outcome"]), ("not-started", "fault"))


@scenario
def a_candidate_cannot_start_programs_of_the_host(bench):
    """At a core limit of 0, unlike 1, the kernel pipes every crash into the host's core_pattern program, as root."""
    for profile in sorted(path.stem for path in bench.profiles.glob("*.yaml")):
        said = bench.verb("own-limits", profile=profile).expect(0, "succeeded", "exited").said()
        refused = {name for name, errno in said.items() if errno in ("EPERM", "EACCES")}
        if not {"core", "cpu", "setrlimit-core", "setrlimit-cpu", "socket-filter"} <= refused or {"stack", "files"} & refused:
            raise Wrong(f"under {profile} the candidate could set {said}")


@scenario
def the_end_of_a_process_by_any_thread_counts(bench):
    for status, outcome in ((0, "succeeded"), (9, "failed")):
        bench.verb("exit-of-a-thread", status).expect(1 if status else 0, outcome, "exited", exit_code=status)


@scenario
def an_end_that_never_comes_is_cut(bench):
    for _ in range(20):  # the signals may also come too late, and then it ends like any other
        run = bench.verb("endless-ending", limits={"wall_time": bench.seconds(60), "cpu_time": bench.seconds(60), "processes": 200})
        if run.record["end"]["cause"] != "exited":
            break
    run.expect(1, "limit", "refusals")


@scenario
def the_callers_limits_are_not_the_candidates(bench):
    task = bench.write_task(["sh", "-c", "grep -e 'address space' -e 'file size' /proc/self/limits; grep Cpus_allowed_list /proc/self/status; cut -d' ' -f41 /proc/self/stat"])
    words = " ".join(f"'{word}'" for word in bench.arguments(task))
    seen = []
    for before in ("", "ulimit -S -v 300000; ulimit -S -f 100; ulimit -S -n 64; exec chrt -i 0 taskset -c 0 "):
        done = subprocess.run(["bash", "-c", before + words], capture_output=True, text=True, timeout=60)
        if not done.stdout.strip():
            raise Wrong(f"no record: {done.stderr}")
        record = json.loads(done.stdout)
        bench.run_ids.add(record["id"])
        seen.append((bench.work / "out" / record["id"] / "stdout").read_text())
    equal("limits, processors and scheduling class inside", seen[1], seen[0])
