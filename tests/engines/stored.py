#!/usr/bin/env python3
"""Images in the stores of Docker and Podman, made without a registry: runs from them with every engine, and what benchsand puts there.

usage: stored.py --runtime BENCHSAND-RUNTIME --program BENCHSAND --importer IMAGE-OF-TASK --tools FOLDER [--engine docker|podman]...
                 [--slow N] [--compiled] [NAME...]
"""

import argparse
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

sys.dont_write_bytecode = True

import engine as engines
import image_files
import plain
import proxy
from harness import Wrong, equal, left_behind

CACHE = Path("/var/lib/benchsand/images")
SCENARIOS = {}
# Two layers over the tiny rootfs: a file hidden, one replaced, a directory that is made anew.
CHANGE = "rm -r /etc/hidden /full && mkdir /full && echo upper > /full/b && echo upper > /etc/kept && ln -s ../etc/kept /full/link"
LOOK = "ls -R /etc/hidden /full; cat /full/link; cat /etc/shadow"
SEEN = "/full:\nb\nlink\nupper\n"


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


class Bench:
    """One engine with an image app:1 in its store, and a folder for tasks."""

    def __init__(self, stage, engine, given):
        self.stage, self.engine, self.slow = stage, engine, given.slow
        self.program, self.importer = stage.program, given.importer
        self.work = stage.work / f"tasks-{engine.name}"
        self.work.mkdir()
        self.make_image()
        # The other engine is not there.
        self.environment = {**os.environ, **engine.environment, "DOCKER_HOST": "unix:///run/no-docker.sock",
                            "CONTAINER_HOST": "unix:///run/no-podman.sock"}
        self.environment[{"docker": "DOCKER_HOST", "podman": "CONTAINER_HOST"}[engine.name]] = self.socket()

    def make_image(self):
        base = self.stage.work / "base.tar"
        with tarfile.open(base, "w") as tar:
            tar.add(self.stage.cache / "tiny-rootfs", ".")
            for name, content in (("./etc/hidden/x", b"lower"), ("./etc/kept", b"lower"), ("./full/a", b"lower")):
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, __import__("io").BytesIO(content))
        self.engine.must("import", base, "base:1")
        run = ["run", "--runtime", "plain-runc", "--net", "none", "--name", "maker", "base:1", "/bin/sh", "-c", CHANGE]
        self.engine.must(*run)
        options = ("ENV PATH=/bin:/opt", "ENTRYPOINT [\"/bin/echo\"]", "CMD [\"hello\"]", "USER 1000", "WORKDIR /full", "VOLUME /data")
        self.engine.must("commit", *(word for option in options for word in ("--change", option)), "maker", "app:1")
        self.engine.must("rm", "maker")
        self.id = "sha256:" + self.engine.must("image", "inspect", "--format", "{{.Id}}", "app:1").removeprefix("sha256:")

    def socket(self):
        if self.engine.name == "docker":
            return self.engine.socket
        path = f"{self.engine.folder}/p.sock"
        command = ["podman", "--runtime", "benchsand", "system", "service", "--time", "0", f"unix://{path}"]
        log = open(self.engine.folder / "service.log", "ab")
        self.service = subprocess.Popen(command, env=self.engine.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 60 * self.slow
        while not os.path.exists(path):
            if time.monotonic() > deadline:
                raise Wrong((self.engine.folder / "service.log").read_text())
            time.sleep(0.05)
        return f"unix://{path}"

    def close(self):
        if self.engine.name == "podman":
            self.service.terminate()
            self.service.wait()

    def task(self, **keys):
        keys = {"name": "stored", "command": ["/bin/sh", "-c", LOOK], "workdir": "/",
                "limits": {"wall_time": f"{20 * self.slow}s", "cpu_time": f"{5 * self.slow}s"}, **keys}
        path = self.work / "task.yaml"
        path.write_text("benchsand: 1\n" + "".join(f"{key}: {json.dumps(value)}\n" for key, value in keys.items() if value is not None))
        return path

    def call(self, *words, environment=None):
        return subprocess.run([self.program, *map(str, words)], capture_output=True, text=True, timeout=300 * self.slow,
                              env={name: value for name, value in {**self.environment, **(environment or {})}.items() if value})

    def run(self, delegate, *more, environment=None, **keys):
        done = self.call("run", self.task(**keys), "--engine", delegate, "--json", "--out", self.work / "out", *more, environment=environment)
        done.record = json.loads(done.stdout) if done.stdout.strip() else None
        if done.record:
            self.stage.run_ids.add(done.record["id"])
        return done

    def expect(self, done, status, outcome):
        if done.record is None:
            raise Wrong(f"status {done.returncode}, no record: {done.stderr}")
        verdict = done.record["verdict"]
        equal("scored, outcome, status", (verdict["scored"], verdict["outcome"], done.returncode), (True, outcome, status)) \
            if verdict["scored"] else self.fail(done)
        return done.record

    def fail(self, done):
        raise Wrong(f"not scored: {done.record['verdict']} {done.record.get('fault', '')} {done.stderr}")

    def stdout(self, record):
        return (self.work / "out" / record["id"] / "stdout").read_text()

    def left(self):
        return left_behind(self.stage.run_ids, self.stage.token + "-nobody") | {
            f"container {name}" for name in self.engine.must("ps", "-aq").split()}


def unpacked():
    return {name.name for name in CACHE.iterdir()} if CACHE.exists() else set()


@scenario
def an_image_of_the_store_runs_on_direct_engines(bench):
    inodes = set()
    for delegate in ("crun", "runc"):
        record = bench.expect(bench.run(delegate, image="app:1"), 1, "failed")  # ls of what is hidden fails
        equal("stdout", bench.stdout(record), SEEN)
        decided = record["policy"]["image"]
        equal("reference", decided["reference"], "app:1")
        digest = decided["digest"]
        if bench.engine.name == "docker":
            equal("digest", digest, bench.id)
        inodes.add(os.stat(CACHE / digest[7:]).st_ino)
        notices = "\n".join(record["notices"])
        for part in ('ENTRYPOINT ["/bin/echo"] and CMD ["hello"]', 'USER "1000"', 'WORKDIR "/full"', 'VOLUME ["/data"]'):
            if part not in notices:
                raise Wrong(f"no notice has {part}: {notices}")
    equal("unpacked once", len(inodes), 1)
    equal("unpacked", unpacked(), {digest[7:]})
    if bench.engine.name == "podman":  # which needs no service of its own
        shutil.rmtree(CACHE / digest[7:])
        bench.expect(bench.run("crun", image="app:1", environment={"CONTAINER_HOST": None}), 1, "failed")
    # By its digest nobody has to be asked.
    nobody = {"DOCKER_HOST": "unix:///run/no.sock", "CONTAINER_HOST": "unix:///run/no.sock"}
    bench.expect(bench.run("crun", image=f"app:1@{digest}", environment=nobody), 1, "failed")
    bench.expect(bench.run("crun", image=f"app@{bench.id}"), 1, "failed")


@scenario
def another_image_than_the_digest_says_is_refused(bench):
    wrong = "sha256:" + "1" * 64
    for name in ("crun", bench.engine.name):
        done = bench.run(name, image=f"app:1@{wrong}")
        equal("status, record", (done.returncode, done.record), (2, None))
        if f"has another digest: expected {wrong}, found {bench.id}" not in done.stderr:
            raise Wrong(done.stderr)
        if f"get it with docker pull app:1@{wrong} or podman pull app:1@{wrong}, or change the digest in the task" not in done.stderr and name == "crun":
            raise Wrong(done.stderr)
        other = {"docker": "podman", "podman": "docker"}[bench.engine.name]
        if name == "crun" and not any(f"{other} {words}" in done.stderr for words in ("does not have it", "cannot be asked")):
            raise Wrong(f"{other} was not asked: {done.stderr}")


def saying(bench, change):
    """An engine that hands out app:1 whatever it is asked for, and of which it says what `change` makes of it."""
    export = bench.work / "export.tar"
    export.unlink(missing_ok=True)
    bench.engine.must("save", *(("--format", "oci-archive") if bench.engine.name == "podman" else ()), "-o", export, "app:1")
    real = json.loads(bench.engine.must("image", "inspect", "app:1"))[0]

    def lie(request, forward):
        if request.is_("GET", "/images/.*/json"):
            return 200, json.dumps({**real, **change}).encode()
        return (200, export.read_bytes()) if request.is_("GET", "/images/.*/get") else forward()
    name = {"docker": "DOCKER_HOST", "podman": "CONTAINER_HOST"}[bench.engine.name]
    return name, lie


@scenario
def an_engine_is_not_believed_that_an_image_has_the_digest(bench):
    pin = "sha256:" + "2" * 64
    for change, status in (({"Id": pin}, 2), ({"RepoDigests": [f"app@{pin}"]}, 1)):
        name, lie = saying(bench, change)
        path = bench.stage.work / "lying.sock"
        with proxy.Proxy(path, bench.environment[name].removeprefix("unix://"), lie):
            done = bench.run("crun", image=f"app@{pin}", environment={name: f"unix://{path}"})
        equal(f"status, {done.stderr}", done.returncode, status)
        if status == 2 and f": expected the digest {pin}, found {bench.id}" not in done.stderr:
            raise Wrong(done.stderr)
        if status == 1 and f"image: that it was pulled by the digest {pin} is the engine's word; {bench.id} is" not in "\n".join(done.record["notices"]):
            raise Wrong(done.record["notices"])


@scenario
def an_id_that_was_only_said_finds_nothing_later(bench):
    pin = "sha256:" + "3" * 64
    name, lie = saying(bench, {"Id": pin})
    path = bench.stage.work / "lying.sock"
    shutil.rmtree(CACHE / bench.id[7:], ignore_errors=True)  # what is unpacked already notes no ids
    with proxy.Proxy(path, bench.environment[name].removeprefix("unix://"), lie):
        bench.expect(bench.run("crun", image="app:1", environment={name: f"unix://{path}"}), 1, "failed")
    equal("ids", json.loads((CACHE / bench.id[7:] / "image.json").read_text())["ids"].count(pin), 0)


@scenario
def what_was_made_of_ours_is_not_pruned(bench):
    bench.engine.must("run", "--runtime", "plain-runc", "--net", "none", "--name", "maker", "base:1", "/bin/sh", "-c", "true")
    bench.engine.must("commit", "--change", "LABEL benchsand.rootfs=inherited", "maker", "theirs:1")
    bench.engine.must("rm", "maker")
    for verb in ("ls", "prune"):
        equal(f"image {verb} names it", "theirs" in bench.call("image", verb, "--engine", bench.engine.name).stdout, False)
    equal("it is there", "theirs" in bench.engine.must("images"), True)
    bench.engine.must("rmi", "theirs:1")


def waits_for_a_lock(process):
    return Path(f"/proc/{process.pid}/syscall").read_text().split()[0] == str(73)


@scenario
def an_unpacking_is_interrupted(bench):
    """It waits for another one here, as long as that takes."""
    bench.expect(bench.run("crun", image="app:1"), 1, "failed")  # then the cache is there
    for number in (signal.SIGINT, signal.SIGTERM):
        shutil.rmtree(CACHE / bench.id[7:], ignore_errors=True)
        with open(bench.work / "said", "w") as said:
            lock = os.open(CACHE, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = subprocess.Popen([bench.program, "run", bench.task(image="app:1"), "--engine", bench.engine.name, "--out", bench.work / "out"],
                                       env=bench.environment, stdout=said, stderr=said)
            try:
                while process.poll() is None and not waits_for_a_lock(process):
                    time.sleep(0.05)
                process.send_signal(number)
                equal("status", process.wait(timeout=20 * bench.slow), -number)
            except subprocess.TimeoutExpired:
                raise Wrong(f"it is not ended by {number!r}")
            finally:
                process.kill()
                process.wait()
                os.close(lock)


@scenario
def an_image_that_nobody_has_is_told(bench):
    done = bench.run("crun", image="example.org/no/such:3")
    equal("status", done.returncode, 2)
    for part in ("find the image example.org/no/such:3: ", f"{bench.engine.name} does not have it", " cannot be asked (",
                 "get it with docker pull example.org/no/such:3 or podman pull example.org/no/such:3"):
        if part not in done.stderr:
            raise Wrong(f"{part!r} is not in {done.stderr}")
    done = bench.run(bench.engine.name, image="no-such")
    equal("status", done.returncode, 2)
    if f"does not have it; get it with {bench.engine.name} pull no-such:latest" not in done.stderr:
        raise Wrong(done.stderr)


@scenario
def an_image_of_the_store_runs_on_its_engine(bench):
    record = bench.expect(bench.run(bench.engine.name, image="app:1"), 1, "failed")
    equal("stdout", bench.stdout(record), SEEN)
    equal("digest", record["policy"]["image"], {"reference": "app:1", "digest": bench.id})
    if 'USER "1000"' not in "\n".join(record["notices"]):
        raise Wrong(record["notices"])


@scenario
def an_image_in_files_runs_on_the_engine(bench):
    archive = bench.work / "saved.tar"
    archive.unlink(missing_ok=True)
    bench.engine.must("save", "-o", archive, "app:1")
    reference = "docker-archive:saved.tar"
    direct = bench.expect(bench.run("crun", image=reference), 1, "failed")
    on_engine = bench.expect(bench.run(bench.engine.name, image=reference), 1, "failed")
    equal("stdout", (bench.stdout(direct), bench.stdout(on_engine)), (SEEN, SEEN))
    equal("image", direct["policy"]["image"], on_engine["policy"]["image"])
    images = [[notice for notice in record["notices"] if notice.startswith("image:")] for record in (direct, on_engine)]
    equal("notices", images[0], images[1])


def imported(bench, **keys):
    done = subprocess.run([bench.importer, bench.engine.name, bench.task(**keys)], capture_output=True, text=True, env=bench.environment,
                          timeout=300 * bench.slow)
    equal(f"status of {done.stdout}", done.returncode, 0)
    return done.stdout.splitlines()[0]


def listing(bench, image, *words):
    return bench.engine.must("run", "--rm", "--runtime", "plain-runc", "--net", "none", image, "/bin/sh", "-c", *words)


@scenario
def a_rootfs_goes_into_the_store_once(bench):
    rootfs = bench.work / "rootfs"
    shutil.copytree(bench.stage.cache / "tiny-rootfs", rootfs, symlinks=True)
    deep = rootfs / ("d" * 90) / ("e" * 90)
    deep.mkdir(parents=True)
    (deep / "long").write_text("deep")
    (rootfs / "odd\udcff").write_bytes(b"odd")
    os.link(deep / "long", rootfs / "linked")
    (rootfs / "to-deep").symlink_to(deep.relative_to(rootfs) / "long")
    (rootfs / "large").write_bytes(os.urandom(3_000_001))
    os.chown(rootfs / "linked", 12, 34)
    os.mkfifo(rootfs / "fifo")
    first = imported(bench, rootfs=str(rootfs))
    equal("again", imported(bench, rootfs=str(rootfs)), first)
    told = listing(bench, first, "cat /to-deep /linked; md5sum < /large; stat -c '%u %g %h' /linked; ls -d /fifo; ls / | tr '\\n' ' '; true").splitlines()
    size = subprocess.run(["md5sum"], stdin=open(rootfs / "large"), capture_output=True, text=True).stdout.strip()
    equal("content", told[:2], [f"deepdeep{size}", "12 34 2"])
    if "odd" not in told[-1] or "fifo" in told[-1]:
        raise Wrong(told)
    (rootfs / "more").write_text("x")
    second = imported(bench, rootfs=str(rootfs))
    equal("a changed one is another", second != first, True)
    archive = imported(bench, rootfs=str(bench.stage.image("tiny")))
    equal("an archive too", imported(bench, rootfs=str(bench.stage.image("tiny"))), archive)
    base = "sha256:" + bench.engine.must("image", "inspect", "--format", "{{.Id}}", "base:1").removeprefix("sha256:")
    equal("one of the store is itself", imported(bench, image="base:1"), base)
    # Of its volume an engine would make a writable place.
    flat = imported(bench, image="app:1")
    equal("volumes of the copy", bench.engine.must("image", "inspect", "--format", "{{len .Config.Volumes}}", flat), "0")
    equal("content of the copy", listing(bench, flat, "cat /full/link"), "upper")
    layered = image_files.Image([image_files.layer(("a", b"1"), folder=bench.stage.cache / "tiny-rootfs"), image_files.layer((".wh.a", b""))])
    image_files.write_layout(bench.work / "layout", {"v1": layered})
    equal("of an image", listing(bench, imported(bench, image="oci:layout"), "ls /a 2>&1; true"), "ls: /a: No such file or directory")
    listed = bench.call("image", "ls", "--engine", bench.engine.name)
    equal("listed", listed.stdout.count("benchsand-rootfs:"), 5 + listed.stdout.count(":empty"))
    pruned = bench.call("image", "prune", "--engine", bench.engine.name, "--unused-for", "1h")
    equal("none is old", (pruned.returncode, "nothing of benchsand" in pruned.stdout), (0, True))
    names = [line.split()[0] for line in listed.stdout.splitlines()]
    none = bench.call("image", "rm", names[0], "nosuch", "--engine", bench.engine.name)
    equal("rm of one that is not there", (none.returncode, "find the image nosuch: benchsand has put none of this name into the store of" in none.stderr), (2, True))
    equal("nothing is removed then", bench.call("image", "ls", "--engine", bench.engine.name).stdout.count("\n"), len(names))
    removed = bench.call("image", "rm", names[0].rpartition(":")[2], names[1], "--engine", bench.engine.name)
    equal("rm", (removed.returncode, removed.stdout), (0, f"removed {names[0]}\nremoved {names[1]}\n"))
    pruned = bench.call("image", "prune", "--engine", bench.engine.name)
    equal("pruned", (pruned.returncode, pruned.stdout.count("removed ")), (0, len(names) - 2))
    equal("nothing is left", "benchsand-rootfs" in bench.engine.must("images"), False)
    equal("the image of the task is", "app" in bench.engine.must("images"), True)


@scenario
def a_rootfs_runs_without_the_runtime(bench):
    for keys in ({"rootfs": str(bench.stage.cache / "tiny-rootfs")}, {"rootfs": str(bench.stage.image("tiny"))}, {"image": "app:1"}):
        done = bench.run(bench.engine.name, "--without-shim", profile="plain", command=["/bin/sh", "-c", "ls /bin/sh; cat /full/link; true"],
                         environment={"CONTAINER_HOST": None}, **keys)
        record = bench.expect(done, 0, "succeeded")
        equal("stdout", bench.stdout(record), "/bin/sh\n" + ("upper\n" if "image" in keys else ""))
    bench.call("image", "prune", "--engine", bench.engine.name)


def main():
    parser = argparse.ArgumentParser()
    for option in ("--runtime", "--program", "--importer", "--tools"):
        parser.add_argument(option, required=True)
    parser.add_argument("--engine", action="append")
    parser.add_argument("--slow", type=int, default=1)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: container engines need root")
        return 77
    missing = [program for program in ("dockerd", "podman", "crun", "runc") if not shutil.which(program)]
    if missing:
        print(f"skipped: no {missing[0]} here")
        return 77
    engines.VARIANTS["plain"] = {**engines.PATIENT, **plain.PLAIN}
    engines.enter()
    given.importer = str(Path(given.importer).resolve())
    stage = engines.Stage(given.runtime, given.program, [Path(given.tools) / "candidate"],
                          os.environ.get("BENCHSAND_CACHE", "/var/cache/benchsand"), given.slow, given.compiled)
    failed = 0
    try:
        stage.delegate("crun")
        for name in given.engine or ["docker", "podman"]:
            with engines.ENGINES[name](stage) as engine:
                bench = Bench(stage, engine, given)
                for scenario_name in given.names or SCENARIOS:
                    begin = time.monotonic()
                    try:
                        SCENARIOS[scenario_name](bench)
                        equal("left behind", bench.left(), set())
                        result = "ok  "
                    except (Wrong, KeyError, TypeError, ValueError, OSError, subprocess.SubprocessError) as error:
                        result = f"FAIL {type(error).__name__}: {error}\n    "
                        failed += 1
                    print(f"{result} {name} {scenario_name} ({time.monotonic() - begin:.1f} s)", flush=True)
                bench.close()
                shutil.rmtree(CACHE, ignore_errors=True)
    finally:
        stage.close()
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
