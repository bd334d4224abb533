"""Engines that lie, hang, cut their answers off: a proxy before a real one exchanges one answer. Scenarios of front_trouble.py."""

import hashlib
import json
import os
import subprocess
import time

from harness import Run, Wrong, equal
from proxy import Cut, Hang, Proxy, changed, honest

SCENARIOS = {}
LIES = {}
PLACES = {}
ADDRESS = {"docker": "DOCKER_HOST", "podman": "CONTAINER_HOST"}
BOUND = 60  # seconds; the deadlines themselves are not tested


def run_through(bench, lie, verb=("exit", 0), bound=BOUND):
    """One run whose engine is behind the proxy; and how often its messages name a text."""
    path = bench.stage.work / "proxy.sock"
    PLACES["out"] = bench.work / "out"
    with Proxy(path, bench.socket(), lie):
        task = bench.write_task(bench.candidate(*verb), limits={"wall_time": bench.seconds(20)})
        begun = time.monotonic()
        process = subprocess.run(bench.arguments(task), capture_output=True, text=True, timeout=(bound + 120) * bench.slow,
                                 env={**os.environ, ADDRESS[bench.engine]: f"unix://{path}"})
        took = time.monotonic() - begun
    run = Run(process, bench.work / "out")
    if run.record:
        bench.run_ids.add(run.record["id"])
    if took > bound * bench.slow:
        raise Wrong(f"it took {took:.0f} s")
    return run


def table(bench, run):
    told = subprocess.run([bench.program, "verdict", str(run.folder / "record.json")], capture_output=True, text=True, timeout=60)
    return told.stdout


def not_scored(bench, run, message):
    equal(f"exit status, {run.stderr}", run.status, 3)
    said = run.stderr
    if run.record:
        equal("scored", run.record["verdict"]["scored"], False)
        said = table(bench, run)
        stored = bench.stage.records / f"{run.record['container']['id']}.json"
        if stored.exists():
            equal("scored in the store", json.loads(stored.read_text())["verdict"]["scored"], False)
    equal(f"how often {message!r} stands in {said}", said.count(message), 1)


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


def lie(name, message, verb=("exit", 0), bound=BOUND, after=None):
    def add(function):
        LIES[name] = function

        def check(bench):
            not_scored(bench, run_through(bench, function, verb, bound), message)
            if after:
                after(bench)
        SCENARIOS[name] = check
        return function
    return add


def on(asked, answer):
    return lambda request, forward: answer(request, forward) if getattr(request, asked) else forward()


def inspected(change):
    """Every inspect answers with the change."""
    def answer(_, forward):
        status, content = forward()
        return (status, changed(content, change)) if status == 200 else (status, content)
    return on("inspects", answer)


def set_in(*places):
    def change(document):
        for pointer, value in places:
            *folders, name = pointer.split("/")
            inner = document
            for folder in folders:
                inner = inner[folder]
            inner[name] = value
    return change


SCENARIOS["a_proxy_that_changes_nothing"] = lambda bench: run_through(bench, honest).expect(0, "succeeded", "exited")

for name, pointer, value, _ in (("memory", "HostConfig/Memory", 1 << 20, "memory"), ("swap", "HostConfig/MemorySwap", -1, "memory"),
                                   ("processes", "HostConfig/PidsLimit", 0, "processes"), ("network", "HostConfig/NetworkMode", "bridge", "network"),
                                   ("privileged", "HostConfig/Privileged", True, "privileges"), ("rootfs", "HostConfig/ReadonlyRootfs", False, "rootfs"),
                                   ("mounts", "Mounts", [{"Source": "/etc", "Destination": "/in"}], "mounts"), ("exit_code", "State/ExitCode", 9, "evidence"),
                                   ("oom", "State/OOMKilled", True, "memory"), ("id", "Id", "e" * 64, "evidence")):
    lie(f"inspect_lies_about_{name}", f"/{pointer}, at the end")(inspected(set_in((pointer, value))))

lie("inspect_lies_about_networks", "inspect: /NetworkSettings")(inspected(set_in(("NetworkSettings/Networks", {"bridge": {"IPAddress": "172.17.0.2"}}))))
lie("inspect_lies_about_the_pid", "/State/Pid, while it ran", verb=("sleep", 2))(inspected(set_in(("State/Pid", 1))))
lie("create_answers_with_a_wrong_id", "look at the container")(
    on("creates", lambda _, forward: (lambda status, content: (status, changed(content, set_in(("Id", "f" * 64)))))(*forward())))
@lie("wait_is_over_at_once_and_it_runs_for_ever", "/State/Running, at the end")
def it_runs_for_ever(request, forward):
    """Half a minute, which is what the engine is given to see the end."""
    if request.is_("POST", "/containers/[^/]+/wait"):
        return 200, b'{"StatusCode": 0}'
    return inspected(set_in(("State/Running", True)))(request, forward)


GONE = b'{"cause": "no such process", "message": "read /proc/7264/cgroup: no such process", "response": 500}'


@scenario
def an_inspect_that_meets_the_end_is_made_again(bench):
    """As Podman answers when the process ends while it looks: no run loses its score by that. Each look fails twice."""
    looks = []

    def unlucky(_, forward):
        looks.append(1)
        return (500, GONE) if len(looks) % 3 else forward()
    run_through(bench, on("inspects", unlucky)).expect(0, "succeeded", "exited")
    if len(looks) < 3:
        raise Wrong(f"only {len(looks)} looks")


lie("every_inspect_fails", "no such process (500)")(on("inspects", lambda request, forward: (500, GONE)))


@scenario
def wait_is_over_at_once(bench):
    """Nobody relies on it: the end is the monitor's word."""
    def at_once(request, forward):
        return (200, b'{"StatusCode": 0}') if request.is_("POST", "/containers/[^/]+/wait") else forward()
    run_through(bench, at_once, ("exit", 7)).expect(1, "failed", "exited", exit_code=7)


@lie("the_record_is_exchanged_in_the_results", "it is not the record that the monitor wrote", verb=("exit", 7))
def exchanged(request, forward):
    """By whoever owns the folder of the results, after the monitor and before the front end, as one with the right digest."""
    for path in PLACES["out"].glob(".r*.partial/record.json") if request.inspects else ():
        record = json.loads(path.read_text())
        del record["digest"]
        record["notices"] = ["forged"]
        record["digest"] = hashlib.sha256(json.dumps(record, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        path.unlink()
        path.write_text(json.dumps(record))
    return forward()


@scenario
def create_answers_with_the_id_of_another(bench):
    """It is neither started nor removed, and its record, if it had one, is its own."""
    engine = bench.engines[bench.engine]
    engine.need_image("tiny")
    other = engine.must("create", "tiny" if bench.engine == "docker" else "localhost/tiny", "true")
    def foreign(_, forward):
        status, content = forward()
        return status, changed(content, set_in(("Id", other)))
    try:
        run = run_through(bench, on("creates", foreign))
        not_scored(bench, run, "which is another container's")
        equal("containers", bench.containers(bench.engine), {other})
        equal("the other is", engine.must("inspect", "--format", "{{.State.Status}}", other), "created")
        equal("a record of the other", (bench.stage.records / f"{other}.json").exists(), False)
    finally:
        engine.must("rm", other)


lie("create_answers_with_half_an_id", "answers with no id of 64 hexadecimal digits")(
    on("creates", lambda _, forward: (lambda status, content: (status, changed(content, set_in(("Id", "f" * 12)))))(*forward())))
lie("start_says_yes_and_does_nothing", "says that it has started, and benchsand-runtime was not called for it")(on("starts", lambda *_: (204, b"")))
lie("start_fails", "out of luck today")(on("starts", lambda *_: (500, b'{"message": "out of luck today", "cause": "luck"}')))
lie("remove_fails", "not today, sorry", after=lambda bench: bench.gc_on_socket())(on("removes", lambda *_: (500, b'{"message": "not today, sorry"}')))


@lie("create_is_cut_off", "create the container")
def create_is_cut_off(request, forward):
    if request.creates:
        forward()
        raise Cut
    return forward()


@lie("inspect_is_cut_off", "look at the container")
def inspect_is_cut_off(request, forward):
    if request.inspects:
        raise Cut
    return forward()


class AfterStart:
    """What becomes of each call after the start, which is real."""

    def __init__(self, trouble):
        self.trouble, self.started = trouble, False

    def __call__(self, request, forward):
        if self.started:
            raise self.trouble
        answer = forward()
        self.started = self.started or request.starts
        return answer


@scenario
def every_answer_after_the_start_is_cut_off(bench):
    run = run_through(bench, AfterStart(Cut), ("sleep", 10))
    not_scored(bench, run, "look at the container")
    equal("cause", run.record["end"]["cause"], "killed")
    bench.gc_on_socket()


# Each waits for deadlines: named, or with --long.
LONG = {}


def long(function):
    LONG[function.__name__] = function
    return function


@long
def no_answer_after_the_start(bench):
    not_scored(bench, run_through(bench, AfterStart(Hang), ("sleep", 10), bound=120), "look at the container")
    bench.gc_on_socket()


@long
def start_never_answers(bench):
    def hang(*_):
        raise Hang
    not_scored(bench, run_through(bench, on("starts", hang), bound=150), "start the container")
