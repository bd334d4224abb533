"""A run that is told to stop, whose engine is killed, that gets a network, that is one of ten: scenarios of front_trouble.py."""

import json
import os
import shutil
import signal
import subprocess
import time

from front_gc import nothing_runs, soon, start_sleeper
from front_lies import ADDRESS, not_scored, table
from harness import Run, Wrong, equal, names_in
from proxy import Proxy

SCENARIOS = {}
MANY = 10


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


def take(bench, process):
    out, err = process.communicate(timeout=120 * bench.slow)
    run = Run(subprocess.CompletedProcess(process.args, process.returncode, out, err), bench.work / "out")
    if run.record:
        bench.run_ids.add(run.record["id"])
    return run


def signalled(bench, number, phase):
    """The run's end when benchsand gets the signal at the phase's call, which is answered all the same."""
    path, sent = bench.stage.work / "proxy.sock", []

    def lie(request, forward):
        due = phase(request) and not sent
        if due:
            sent.append(number)
            os.kill(process.pid, number)
            time.sleep(0.1)
        return forward()
    with Proxy(path, bench.socket(), lie):
        task = bench.write_task(bench.candidate("sleep", 20), limits={"wall_time": bench.seconds(60)})
        begun = time.monotonic()
        process = subprocess.Popen(bench.arguments(task), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, ADDRESS[bench.engine]: f"unix://{path}"})
        run = take(bench, process)
    equal("signals sent", sent, [number])
    if time.monotonic() - begun > 15 * bench.slow:
        raise Wrong("it went on after the signal")
    return run


PHASES = {"before_create": lambda request: request.is_("GET", "/images/[^/]+/json"), "in_create": lambda request: request.creates,
          "before_start": lambda request: request.inspects, "in_start": lambda request: request.starts}


def add_phase(name):
    def check(bench):
        for number in (signal.SIGINT, signal.SIGTERM):
            run = signalled(bench, number, PHASES[name])
            not_scored(bench, run, "benchsand was told to stop")
            bench.nothing_left(f"{number!r} {name}")
    SCENARIOS[f"a_signal_{name}"] = check


for phase_name in PHASES:
    add_phase(phase_name)


@scenario
def a_signal_while_it_runs(bench):
    """In the words of a direct run, and like there nothing is collected."""
    for number in (signal.SIGINT, signal.SIGTERM):
        process, _ = start_sleeper(bench)
        process.send_signal(number)
        run = take(bench, process)
        equal("failures", [(failure["wall"], failure["expected"], failure["observed"]) for failure in run.record["verdict"]["failures"]],
              [("evidence", "a run without a fault", "finish the run: benchsand was told to stop by a signal")])
        equal("outputs", (run.record["outputs"], names_in(run.folder / "output")), ([], []))
        equal("end", (run.status, run.record["verdict"]["scored"], run.record["verdict"]["outcome"], run.record["end"]["cause"]),
              (3, False, "fault", "killed"))
        bench.nothing_left(f"{number!r}")


@scenario
def a_runtime_that_is_not_benchsands(bench):
    """Registered under its name all the same: what the engine has there is named, with what to do."""
    if bench.engine != "docker":
        return
    engine = bench.engines["docker"]
    config = engine.folder / "daemon.json"
    settings = config.read_text()
    try:
        for path, what in ((shutil.which("runc"), "which is not benchsand's"), ("/nowhere/benchsand", "which is not there")):
            changed = json.loads(settings)
            changed["runtimes"]["benchsand"] = {"path": path}
            config.write_text(json.dumps(changed))
            engine.reload(path)
            run = take(bench, subprocess.Popen(bench.arguments(bench.write_task(bench.candidate("exit", 0))), stdout=subprocess.PIPE,
                                               stderr=subprocess.PIPE, text=True))
            not_scored(bench, run, f"start the container: docker's runtime benchsand is {path}, {what} (cure: take it out of Docker's daemon.json; "
                                   "then benchsand install docker, and systemctl reload docker); ")
            bench.nothing_left(path)
    finally:
        config.write_text(settings)
        engine.reload(str(bench.stage.bin / "benchsand"))


@scenario
def a_record_is_found_by_its_run(bench):
    """By the run's id and by the name that is listed, of a run that succeeded and of one that came to nothing."""
    for command, status in ((bench.candidate("exit", 0), 0), (["/nowhere/program"], 3)):
        run = take(bench, subprocess.Popen(bench.arguments(bench.write_task(command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        identity = run.record["id"]
        equal(f"the run's end, {run.stderr}", (run.status, run.record["verdict"]["failures"] == []), (status, status == 0))
        equal("the folder", run.folder.name, identity)
        for wanted in (identity, f"benchsand-{identity}"):
            told = subprocess.run([bench.program, "verdict", wanted], cwd="/", capture_output=True, text=True, timeout=60)
            equal(f"verdict {wanted}, {told.stderr}", (told.returncode, told.stdout == table(bench, run)), (status, True))
        listed = subprocess.run([bench.program, "records"], capture_output=True, text=True, timeout=60).stdout
        equal(f"the name in {listed}", f" benchsand-{identity} " in listed, True)


@scenario
def memory_ends_where_nobody_stands(bench):
    """conmon leaves an empty file `oom` where it stands: that is not the operator's folder, in which relative paths still mean what they say."""
    folder = bench.stage.work / "operator"
    folder.mkdir()
    environment = {**os.environ}
    if "CONTAINERS_CONF" in environment:
        environment["CONTAINERS_CONF"] = os.path.relpath(environment["CONTAINERS_CONF"], folder)
    task = bench.write_task(bench.candidate("alloc", 120), limits={"memory": "96MiB", "disk": "16MiB"})
    run = take(bench, subprocess.Popen(bench.arguments(task), cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    run.expect(1, "limit", "memory")
    equal("files in the operator's folder", names_in(folder), [])
    folder.rmdir()


@scenario
def a_signal_at_the_end(bench):
    """It is over by then: nothing is left, whatever the verdict."""
    path = bench.stage.work / "proxy.sock"
    for number in (signal.SIGINT, signal.SIGTERM):
        def lie(request, forward):
            if request.removes:
                os.kill(process.pid, number)
            return forward()
        with Proxy(path, bench.socket(), lie):
            process = subprocess.Popen(bench.arguments(bench.write_task(bench.candidate("exit", 0))), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, env={**os.environ, ADDRESS[bench.engine]: f"unix://{path}"})
            run = take(bench, process)
        equal("end", (run.status, run.record["verdict"]["outcome"]), (0, "succeeded"))
        bench.nothing_left(f"{number!r}")


@scenario
def a_link_appears_while_it_runs(bench):
    """As an engine connects a network: found, the run is ended and not scored."""
    process, container = start_sleeper(bench)
    pid = bench.engines[bench.engine].must("inspect", "--format", "{{.State.Pid}}", container)
    begun = time.monotonic()
    subprocess.run(["ip", "link", "set", "outside2", "netns", pid], check=True)
    run = take(bench, process)
    subprocess.run(["ip", "link", "delete", "outside"], stderr=subprocess.DEVNULL)
    subprocess.run(["ip", "link", "add", "outside", "type", "veth", "peer", "name", "outside2"], check=True)
    if time.monotonic() - begun > 20 * bench.slow:
        raise Wrong("the run went on with a link")
    verdict = run.record["verdict"]
    equal("end", (run.status, verdict["scored"], verdict["outcome"], run.record["end"]["cause"]), (3, False, "refused", "killed"))
    equal("the wall network broke", "network" in {failure["wall"] for failure in verdict["failures"]}, True)


@scenario
def ten_side_by_side(bench):
    """Each has its own numbers: stdout, exit code, refusals, outputs."""
    processes = []
    for number in range(1, MANY + 1):
        folder = bench.folder(f"side-{number}")
        code = f"head -c {1000 + number} /dev/zero; for i in $(seq {number}); do echo {number} >/output/$i; mount none /output 2>/dev/null; done; exit {number}"
        task = bench.write_task(["sh", "-c", code], folder=folder, limits={"wall_time": "100s", "cpu_time": "50s"})
        processes.append(subprocess.Popen(bench.arguments(task), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    told = {}
    for number, process in enumerate(processes, 1):
        run = take(bench, process)
        if run.record is None:
            raise Wrong(f"no record: {run.stderr}")
        refusals = run.record["evidence"]["refusals"]
        content = {path.name: path.read_text() for path in (run.folder / "output").iterdir()}
        told[number] = (run.record["end"]["exit_code"], run.record["verdict"]["outcome"], run.record["stdout"]["bytes"], refusals["total"], content)
    every = told[1][3] - 1  # of the shell and its commands, whatever they are about
    if every < 0:
        raise Wrong(f"no call of mount was counted: {told[1]}")
    for number, seen in told.items():
        equal(f"run {number}", seen, (number, "failed", 1000 + number, every + number, {str(i): f"{number}\n" for i in range(1, number + 1)}))


@scenario
def the_engine_is_killed_while_it_runs(bench):
    """dockerd, or the podman service that the run is on; afterwards gc finds the container."""
    engine = bench.engines[bench.engine]
    process, container = start_sleeper(bench, **{ADDRESS[bench.engine]: f"unix://{bench.socket()}"})
    if bench.engine == "docker":
        engine.daemon.kill()
        engine.daemon.wait()
    else:
        bench.end_service()
    process.send_signal(signal.SIGTERM)  # the run would go on to its end, which is no failure yet
    run = take(bench, process)
    equal("end", (run.status, run.record["verdict"]["scored"], run.record["verdict"]["outcome"], run.record["end"]["cause"]), (3, False, "fault", "killed"))
    nothing_runs(bench)
    equal("left on the host", bench.left_behind(), set())
    if bench.engine == "docker":
        (engine.folder / "d.pid").unlink(missing_ok=True)
        engine.start()
    told = bench.gc_on_socket()
    equal("gc removed it", f"removed container {container}" in told, True)


@scenario
def the_engine_is_killed_and_the_run_ends_by_itself(bench):
    """Its last word is missing, so there is no score."""
    engine = bench.engines[bench.engine]
    before = bench.containers(bench.engine)
    task = bench.write_task(bench.candidate("sleep", 3), limits={"wall_time": bench.seconds(20)})
    process = subprocess.Popen(bench.arguments(task), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, ADDRESS[bench.engine]: f"unix://{bench.socket()}"})
    soon(bench, "the candidate runs", lambda: any("b'/task/candidate" in trace for trace in bench.living()), True)
    container = (bench.containers(bench.engine) - before).pop()
    if bench.engine == "docker":
        engine.daemon.kill()
        engine.daemon.wait()
    else:
        bench.end_service()
    run = take(bench, process)
    not_scored(bench, run, "look at the container")
    equal("the record of the store", json.loads((bench.stage.records / f"{container}.json").read_text())["verdict"]["scored"], False)
    equal("left on the host", bench.left_behind(), set())
    if bench.engine == "docker":
        (engine.folder / "d.pid").unlink(missing_ok=True)
        engine.start()
    bench.gc_on_socket()
