#!/usr/bin/env python3
"""What benchsand costs: medians of runs interleaved in one go, so that all contenders see the same machine.

usage: bench.py [--program BENCHSAND] [--candidate CANDIDATE] [--runs N] [--json]
As root, after tests/setup/build.sh and rootfs.sh tiny. Numbers are printed beside their targets; nothing is asserted.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("BENCHSAND_CACHE", "/var/cache/benchsand"))


class Bench:
    def __init__(self, program, candidate):
        self.program = str(Path(program).resolve())
        self.work = Path(tempfile.mkdtemp(prefix="benchsand-bench-"))
        (self.work / "task").mkdir()
        self.candidate = self.work / "task" / "candidate"
        shutil.copy(candidate, self.candidate)
        self.count = 0

    def task(self, command, **limits):
        text = {"name": "bench", "rootfs": str(CACHE / "tiny-rootfs"), "command": command,
                "inputs": [{"source": "./task", "target": "/task"}], "limits": limits}
        path = self.work / "task.yaml"
        path.write_text("benchsand: 1\n" + "".join(f"{key}: {json.dumps(value)}\n" for key, value in text.items()))
        return path

    def command(self, engine, task):
        return [self.program, "run", str(task), "--engine", engine, "--json", "--out", str(self.work / "out")]

    def record(self, engine, command, **limits):
        done = subprocess.run(self.command(engine, self.task(command, **limits)), capture_output=True, text=True)
        record = json.loads(done.stdout) if done.stdout else None
        if not record or not record["verdict"]["scored"]:
            sys.exit(f"a run was not scored, nothing to measure: {done.stderr} {record and record['verdict']}")
        return record

    def stdout(self, record):
        return (self.work / "out" / record["id"] / "stdout").read_text()


def milliseconds(command):
    begin = time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    took = (time.perf_counter() - begin) * 1000
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}: {done.stderr}")
    return took


def contenders(bench):
    """name -> function that gives the command of the next run"""
    task = bench.task(["/bin/true"])
    result = {}
    for engine in ("crun", "runc"):
        if not shutil.which(engine):
            continue
        result[f"benchsand run --engine {engine}"] = lambda engine=engine: bench.command(engine, task)
        # The very bundle, without a supervisor: `benchsand bundle` turns the notified calls into allowed ones.
        bundle = bench.work / f"bundle-{engine}"
        subprocess.run([bench.program, "bundle", str(task), str(bundle), "--engine", engine], check=True, stdout=subprocess.DEVNULL)

        def plain(engine=engine, bundle=bundle):
            bench.count += 1
            return [engine, "--root", str(bench.work / "state"), "run", "--bundle", str(bundle), f"bench-{os.getpid()}-{bench.count}"]

        result[f"{engine} run of its bundle"] = plain
    if shutil.which("bwrap"):
        result["bubblewrap"] = lambda: ["bwrap", "--unshare-all", "--ro-bind", str(CACHE / "tiny-rootfs"), "/", "--proc", "/proc",
                                        "--dev", "/dev", "--cap-drop", "ALL", "/bin/true"]
    return result


def start_times(bench, runs):
    commands = contenders(bench)
    times = {name: [] for name in commands}
    for round_number in range(runs + 1):
        for name, command in commands.items():
            # The kernel takes the last contender's network namespace down in the background, and a new one has to wait for that.
            time.sleep(0.05)
            took = milliseconds(command())
            if round_number:  # the first round warms caches
                times[name].append(took)
    return {name: {"median_ms": round(statistics.median(list_), 2), "min_ms": round(min(list_), 2)} for name, list_ in times.items()}


def resident_memory(bench, engine):
    """Highest resident KiB of the supervisor while a candidate sleeps."""
    process = subprocess.Popen(bench.command(engine, bench.task(["sleep", "1"])), stdout=subprocess.DEVNULL)
    time.sleep(0.6)
    status = Path(f"/proc/{process.pid}/status").read_text()
    process.wait()
    return {key: int(line.split()[1]) for line in status.splitlines() for key in ("VmHWM", "VmRSS") if line.startswith(key)}


def overshoot(bench, engine, repeats):
    result = {}
    for wall, command, limits in (("cpu-time", "spin", {"cpu_time": "1s", "wall_time": "10s"}),
                                  ("wall-time", "sleep", {"cpu_time": "1s", "wall_time": "1s"})):
        over = []
        for _ in range(repeats):
            record = bench.record(engine, ["/task/candidate", command, "100"], **limits)
            if record["end"]["cause"] != wall:
                sys.exit(f"the cap that ended the run was {record['end']['cause']}, not {wall}")
            over.append(record["evidence"]["spent"][wall]["used_us"]["observed"] - 1_000_000)
        result[wall] = {"median_us": statistics.median(over), "max_us": max(over)}
    return result


def supervisor_time(bench, engine, rounds):
    """CPU seconds of benchsand and the delegate in a run with 32 refused calls a round."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    bench.record(engine, ["/task/candidate", "refused-calls", str(rounds)], cpu_time="10s")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(getattr(after, f"ru_{kind}time") - getattr(before, f"ru_{kind}time") for kind in "us")


def counted_call_supervisor_us(bench, engine, repeats, rounds=300):
    """The candidate is nobody's child here and does not count: what a counted call costs benchsand itself."""
    extra = [supervisor_time(bench, engine, rounds) - supervisor_time(bench, engine, 0) for _ in range(repeats)]
    return round(statistics.median(extra) * 1e6 / (32 * rounds), 1)


def numbers(text):
    return {key: float(value) for key, value in (word.split("=") for word in text.split())}


def call_costs(bench, engine, repeats):
    """Refused and allowed calls and plain work, inside against outside; medians of interleaved repeats."""
    command = ["measure", "1000000"]
    inside, outside = [], []
    for _ in range(repeats):
        outside.append(numbers(subprocess.run([bench.candidate, *command], capture_output=True, text=True, check=True).stdout))
        inside.append(numbers(bench.stdout(bench.record(engine, ["/task/candidate", *command]))))

    def median(runs, key):
        return statistics.median(run[key] for run in runs)

    return {"counted_call_ns": median(inside, "counted_ns"), "refused_call_ns": median(inside, "refused_ns"), "native_call_ns": median(outside, "refused_ns"),
            "allowed_call_ns": median(inside, "allowed_ns"), "allowed_call_native_ns": median(outside, "allowed_ns"),
            # Somebody else's load only ever makes work slower, so the fastest of each tell the difference best.
            "speed_inside": round(min(run["work_ms"] for run in outside) / min(run["work_ms"] for run in inside), 3)}


def measure(bench, runs):
    engine = "crun" if shutil.which("crun") else "runc"
    result = {"start": start_times(bench, runs)}
    times = result["start"]
    result["ratio"] = {e: round(times[f"benchsand run --engine {e}"]["median_ms"] / times[f"{e} run of its bundle"]["median_ms"], 3)
                       for e in ("crun", "runc") if f"{e} run of its bundle" in times}
    result["supervisor_kib"] = resident_memory(bench, engine)
    result["overshoot"] = overshoot(bench, engine, 5)
    result["counted_call_supervisor_us"] = counted_call_supervisor_us(bench, engine, 5)
    result["calls"] = call_costs(bench, engine, 5)
    return result


def table(result):
    rows = [(name, f"{t['median_ms']} ms (fastest {t['min_ms']})", "") for name, t in result["start"].items()]
    rows += [(f"benchsand against {engine}", ratio, "<= 1.10") for engine, ratio in result["ratio"].items()]
    rows.append(("supervisor, highest resident", f"{result['supervisor_kib']['VmHWM']} KiB", "<= 8192 KiB"))
    for wall, over in result["overshoot"].items():
        rows.append((f"{wall} overshoot at 1 s", f"median {over['median_us']} us, max {over['max_us']} us", "<= 10000 us"))
    calls = result["calls"]
    rows.append(("refused call", f"{calls['refused_call_ns']:.0f} ns (unfiltered {calls['native_call_ns']:.0f})", "<= 40000 ns"))
    rows.append(("refused and counted call", f"{calls['counted_call_ns']:.0f} ns", "<= 40000 ns"))
    rows.append(("supervisor's CPU for one of them", f"{result['counted_call_supervisor_us']} us", ""))
    rows.append(("allowed call", f"{calls['allowed_call_ns']:.0f} ns (unfiltered {calls['allowed_call_native_ns']:.0f})", ""))
    rows.append(("speed inside against outside", calls["speed_inside"], ">= 0.98"))
    widths = [max(len(str(row[i])) for row in rows) for i in range(2)]
    for row in rows:
        print(f"{row[0]:<{widths[0]}}  {row[1]!s:<{widths[1]}}  {row[2]}".rstrip())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=SOURCE / "build/benchsand")
    parser.add_argument("--candidate", default=SOURCE / "build/tests/candidate")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("must be root")
    bench = Bench(given.program, given.candidate)
    try:
        result = measure(bench, given.runs)
    finally:
        shutil.rmtree(bench.work)
    if given.json:
        print(json.dumps(result, indent=2))
    else:
        table(result)


if __name__ == "__main__":
    main()
