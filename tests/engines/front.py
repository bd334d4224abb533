"""`benchsand run` on direct and on container engines: one bench for all, and what may be left of none."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import engine as engines
import harness
from harness import Wrong, equal, living, locked, names_in

API = {"docker": engines.Docker, "podman": engines.Podman}
ORDERS = "/run/benchsand/orders"


def listens(path):
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(path) == 0


def begin(given, wanted):
    """Continues in a test's own namespaces; the exit status when something is missing."""
    if os.geteuid() != 0:
        print("skipped: container engines need root")
        return 77
    missing = [program for program in wanted if not shutil.which(program)]
    if missing:
        print(f"skipped: no {missing[0]} here")
        return 77
    engines.enter()
    return None


def add_options(parser):
    for option in ("--runtime", "--program", "--tools"):
        parser.add_argument(option, required=True)
    parser.add_argument("--slow", type=int, default=1)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("names", nargs="*")


class Front(harness.Bench):
    """harness.Bench with engines behind it: `engine` is the name of the one that runs go to."""

    def __init__(self, given, names):
        tools, program = Path(given.tools).resolve(), Path(given.program).resolve()
        cache = os.environ.get("BENCHSAND_CACHE", "/var/cache/benchsand")
        self.stage = engines.Stage(given.runtime, program, [tools / "candidate"], cache, given.slow, given.compiled)
        self.stage.delegate("crun")
        super().__init__(program, tools / "candidate", names[0], given.slow, given.compiled, cache)
        self.engines = {name: API[name](self.stage) for name in names if name in API}
        self.service = None
        self.others = set(names_in(ORDERS))  # not of this test
        for engine in self.engines.values():
            engine.start()
        if docker := self.engines.get("docker"):
            os.environ["DOCKER_HOST"] = docker.socket
        if podman := self.engines.get("podman"):
            os.environ.update({name: podman.environment[name] for name in ("CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF")})

    def close(self):
        self.end_service()
        for engine in self.engines.values():
            engine.__exit__()
        super().close()
        self.stage.close()

    def gc(self):
        done = subprocess.run([self.program, "gc"], capture_output=True, text=True, timeout=120 * self.slow)
        equal("gc", (done.returncode, done.stderr), (0, ""))
        return done.stdout

    def socket(self):
        """Of the engine; Podman gets a service of the test's, with benchsand for its runtime."""
        engine = self.engines[self.engine]
        if self.engine == "docker":
            return engine.socket.removeprefix("unix://")
        path = f"{engine.folder}/p.sock"
        if self.service is None:
            command = ["podman", "--runtime", str(self.stage.bin / "benchsand"), "system", "service", "--time", "0", f"unix://{path}"]
            log = open(engine.folder / "service.log", "ab")
            self.service = subprocess.Popen(command, env=engine.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            deadline = time.monotonic() + 60 * self.slow
            while not listens(path):
                if self.service.poll() is not None or time.monotonic() > deadline:
                    raise Wrong("podman system service does not start: " + (engine.folder / "service.log").read_text())
                time.sleep(0.02)
        return path

    def end_service(self):
        if self.service:
            self.service.kill()
            self.service.wait()
        self.service = None

    def gc_on_socket(self):
        variable = {"docker": "DOCKER_HOST", "podman": "CONTAINER_HOST"}[self.engine]
        done = subprocess.run([self.program, "gc"], capture_output=True, text=True, timeout=120 * self.slow,
                              env={**os.environ, variable: f"unix://{self.socket()}"})
        equal("gc", (done.returncode, done.stderr), (0, ""))
        return done.stdout

    def containers(self, engine):
        return set(self.engines[engine].must("ps", "-aq", "--no-trunc").split()) if engine in self.engines else set()

    def left(self):
        """Of the runs that are known, and orders and services of whoever has ended."""
        found = self.left_behind() | engines.null_given_away()
        for run in self.run_ids:
            found |= living(run)
        for name in set(names_in(ORDERS)) - self.others:
            dead = name.endswith((".lock", ".podman.log")) and not locked(f"{ORDERS}/{name}")
            found |= {f"{ORDERS}/{name}"} if dead and os.path.exists(f"{ORDERS}/{name}") else set()
        for folder in self.work.rglob(".r*.partial"):
            found.add(str(folder))
        for engine in self.engines:
            found |= {f"container {name} of {engine}" for name in self.containers(engine)}
        return found

    def nothing_left(self, after):
        deadline = time.monotonic() + 30 * self.slow
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(0.1)
        equal(f"left after {after}", left, set())


def run_all(bench, scenarios, names):
    failed = 0
    try:
        for name in names or scenarios:
            begun = time.monotonic()
            try:
                scenarios[name](bench)
                bench.nothing_left(name)
                result = "ok  "
            except (Wrong, KeyError, TypeError, ValueError, OSError, subprocess.SubprocessError) as error:
                result = f"FAIL {type(error).__name__}: {error}\n    "
                failed += 1
                bench.gc()
                if bench.engine in bench.engines:
                    bench.gc_on_socket()
                bench.run_ids.clear()
            print(f"{result} {name} ({time.monotonic() - begun:.1f} s)", flush=True)
    finally:
        bench.close()
    print(f"{len(names or scenarios)} scenarios, {failed} failed")
    return 1 if failed else 0

