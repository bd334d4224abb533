#!/usr/bin/env python3
"""`benchsand install` against the engines themselves: what it writes they read, and what it takes out leaves every byte as it was.
In a mount namespace of its own, so that this host's own files are never touched.

usage: install.py --program BENCHSAND
"""

import argparse
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LINKS = Path("/usr/local/lib/benchsand")
PROFILES = Path("/etc/benchsand/profiles")
CONTAINERS = Path("/etc/containers")
USUAL = {"docker": Path("/etc/docker/daemon.json"), "podman": CONTAINERS / "containers.conf.d/benchsand.conf",
         "containerd": Path("/etc/containerd/config.toml")}
OF_THE_HOST = USUAL["containerd"].read_bytes() if USUAL["containerd"].exists() else b""  # read before an empty folder hides it
PRIVATE = ("/usr/local/lib", "/etc/containers", "/etc/benchsand", "/etc/docker", "/etc/containerd")
SOURCE = Path(__file__).parents[2]
BUILT_IN = sorted("benchsand-" + path.stem for path in (SOURCE / "profiles").glob("*.yaml"))
MINE = "benchsand-mine"
NAMES = sorted(["benchsand", MINE, *BUILT_IN])

TESTS = []


class Wrong(Exception):
    pass


class Skipped(Exception):
    pass


def test(function):
    TESTS.append(function)
    return function


def equal(what, observed, expected):
    if observed != expected:
        raise Wrong(f"{what}: expected {expected!r}, observed {observed!r}")


def contains(what, text, part):
    if part not in text:
        raise Wrong(f"{what}: no word of {part!r} in {text!r}")


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skipped(f"{program} is not installed")


def facts(folder):
    """Every file below: its kind, mode, owner and bytes."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        status = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path)] = (stat.filemode(status.st_mode), status.st_uid, status.st_gid, content)
    return found


def profile(name):
    return (SOURCE / "profiles/strict.yaml").read_text().replace("name: strict", f"name: {name}")


class Place:
    """A scratch folder with a runtime in it, and the program to be tested."""

    def __init__(self, program, folder):
        self.program, self.folder = program, Path(folder)
        self.runtime = self.folder / "bin/benchsand-runtime"
        self.runtime.parent.mkdir()
        built = Path(program).with_name("benchsand-runtime")
        if built.exists():
            shutil.copy(built, self.runtime)
        else:
            self.runtime.write_text("#!/bin/sh\nexec crun \"$@\"\n")
        self.runtime.chmod(0o755)

    def run(self, *words, status=0, runtime=None, **options):
        done = subprocess.run([self.program, "install", *map(str, words), "--runtime", str(runtime or self.runtime)],
                              capture_output=True, text=True, timeout=60, **options)
        if done.returncode != status:
            raise Wrong(f"install {words}: status {done.returncode}, expected {status}: {done.stdout}{done.stderr}")
        return done.stdout if status == 0 else done.stderr


class Dockerd:
    """A dockerd of its own: its folders, socket and containerd are apart from those of any other here."""

    def __init__(self, folder, config):
        self.folder = Path(folder)
        self.socket = f"unix://{self.folder}/docker.sock"
        self.log = open(self.folder / "log", "w")
        self.process = subprocess.Popen(
            ["dockerd", "--config-file", str(config), "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec",
             "--pidfile", f"{folder}/pid", "-H", self.socket, "--bridge", "none", "--iptables=false", "--storage-driver", "vfs"],
            stdout=self.log, stderr=self.log)

    def __enter__(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            if self.ask(check=False).returncode == 0:
                return self
            time.sleep(0.2)
        self.__exit__()
        raise Wrong("dockerd did not start: " + (self.folder / "log").read_text()[-600:])

    def ask(self, check=True):
        done = subprocess.run(["docker", "-H", self.socket, "info", "--format", "{{json .Runtimes}}"], capture_output=True,
                              text=True, timeout=60)
        failed = done.returncode != 0 or not done.stdout.startswith("{")
        if check and failed:
            raise Wrong(f"docker info: {done.stdout}{done.stderr}")
        return subprocess.CompletedProcess(done.args, 1 if failed else 0, done.stdout)

    def runtimes(self):
        return json.loads(self.ask().stdout)

    def reload(self):
        os.kill(self.process.pid, signal.SIGHUP)

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def paths_of(runtimes):
    return {name: entry["path"] for name, entry in runtimes.items() if name.startswith("benchsand")}


@test
def dockerd_lists_the_runtimes_and_forgets_them(place):
    need("dockerd", "docker", "containerd")
    config = place.folder / "daemon.json"
    original = b'{\n    "debug": false,\n    "runtimes": {"kata": {"path": "/usr/bin/kata"}},\n  "labels": ["a=b"]\n}'
    config.write_bytes(original)
    config.chmod(0o640)
    contains("the report", place.run("docker", "--config", config), "kill -HUP $(cat /run/docker.pid)")
    with Dockerd(place.folder, config) as engine:
        equal("docker info", paths_of(engine.runtimes()), {name: f"{LINKS}/docker/{name}" for name in NAMES})
        equal("the other runtime", engine.runtimes()["kata"]["path"], "/usr/bin/kata")
        place.run("docker", "--config", config, "--uninstall")
        engine.reload()
        deadline = time.monotonic() + 30
        while paths_of(engine.runtimes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        equal("docker info after the uninstall", paths_of(engine.runtimes()), {})
    equal("the file", (config.read_bytes(), stat.S_IMODE(config.stat().st_mode)), (original, 0o640))


@test
def podman_finds_the_runtimes(place):
    need("podman")
    (CONTAINERS / "containers.conf").write_text('[engine]\nruntime_supports_json = [\n  "crun", # mine\n  "house"\n]\n')
    before = facts(CONTAINERS)
    place.run("podman")
    drop_in = CONTAINERS / "containers.conf.d/benchsand.conf"
    contains("the list", drop_in.read_text(), 'runtime_supports_json = ["crun", "house", "benchsand", ')
    # Podman's own folders are never used: its store is in scratch.
    store = ["--root", f"{place.folder}/store", "--runroot", f"{place.folder}/run", "--storage-driver", "vfs"]
    for name in NAMES:
        done = subprocess.run(["podman", *store, "--runtime", name, "info", "--format", "{{.Host.OCIRuntime.Path}}"],
                              capture_output=True, text=True, timeout=60)
        equal(f"podman --runtime {name}", (done.returncode, done.stdout.strip()), (0, f"{LINKS}/podman/{name}"))
    place.run("podman", "--uninstall")
    (CONTAINERS / "containers.conf.d").rmdir()
    after = {path: what for path, what in facts(CONTAINERS).items() if not path.startswith(f"{CONTAINERS}/networks")}  # Podman's own
    equal("the files", after, before)


@test
def containerd_takes_the_handlers(place):
    need("containerd")
    config = place.folder / "config.toml"
    default = subprocess.run(["containerd", "config", "default"], capture_output=True, check=True).stdout
    for original in (b"", default, OF_THE_HOST,
                     b'version = 2\n# a remark\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]\n'
                     b'  runtime_type = "io.containerd.runc.v2"\n'
                     b'  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]\n    SystemdCgroup = true'):
        config.write_bytes(original)
        place.run("containerd", "--config", config)
        done = subprocess.run(["containerd", "--config", str(config), "config", "dump"], capture_output=True, text=True, timeout=60)
        equal("containerd config dump", done.returncode, 0)
        for name in NAMES:
            # Version 2 of containerd says it in the words of its version 3.
            found = re.search(rf"\.containerd\.runtimes\.{name}\.options\]\n(?:\s+\w+ = .*\n)*?\s+BinaryName = ['\"](.*)['\"]\n", done.stdout)
            equal(f"handler {name}", found and found[1], f"{LINKS}/containerd/{name}")
        place.run("containerd", "--config", config, "--uninstall")
        equal("the file", config.read_bytes(), original)


@test
def twice_is_once_and_dry_is_never(place):
    for engine, config in USUAL.items():
        for _ in range(2):
            before = facts(config.parent), facts(LINKS)
            contains("a dry run", place.run(engine, "--config", config, "--dry-run"), f"would write {config}\n+")
            equal("files after a dry run", (facts(config.parent), facts(LINKS)), before)
            place.run(engine)
            once = facts(config.parent), facts(LINKS)
            equal("what the second says", place.run(engine, "--config", config), f"nothing to do: {config} has it all\n")
            equal("files after the second", (facts(config.parent), facts(LINKS)), once)
            contains("a dry uninstall", place.run(engine, "--config", config, "--uninstall", "--dry-run"), f"would remove {config}\n")
            equal("files after a dry uninstall", (facts(config.parent), facts(LINKS)), once)
            place.run(engine, "--config", config, "--uninstall")
            equal("the file that install made", config.exists(), False)
            contains("a second uninstall", place.run(engine, "--config", config, "--uninstall"), "nothing to do: ")
    equal("links", facts(LINKS), {})


@test
def each_engine_has_its_own_links(place):
    docker, containerd = place.folder / "daemon.json", place.folder / "config.toml"
    docker.touch()
    containerd.touch()
    place.run("docker", "--config", docker)
    place.run("containerd", "--config", containerd)
    place.run("docker", "--config", docker, "--uninstall")
    for name in NAMES:
        equal("a link of the other engine", os.readlink(LINKS / "containerd" / name), str(place.runtime))
    place.run("containerd", "--config", containerd, "--uninstall")
    equal("links", facts(LINKS), {})


@test
def links_that_came_with_the_runtime_are_used(place):
    shipped = place.folder / "lib/benchsand/runtimes"
    shipped.mkdir(parents=True)
    for name in ["benchsand", *BUILT_IN]:
        (shipped / name).symlink_to("../../../bin/benchsand-runtime")
    config = place.folder / "daemon.json"
    config.touch()
    place.run("docker", "--config", config)
    paths = {name: f"{shipped}/{name}" for name in NAMES}
    paths[MINE] = f"{LINKS}/docker/{MINE}"
    equal("paths", paths_of(json.loads(config.read_text())["runtimes"]), paths)
    equal("links", list(facts(LINKS)), [f"{LINKS}/docker", f"{LINKS}/docker/.used-by", paths[MINE]])


@test
def links_stay_as_long_as_a_file_names_them(place):
    one, other = place.folder / "one.json", place.folder / "other.json"
    for config in (one, other):
        config.write_text("{}\n")
        place.run("docker", "--config", config)
    links = facts(LINKS)
    contains("a dry uninstall", place.run("docker", "--config", one, "--uninstall", "--dry-run"), f"would write {one}\n")
    equal("links after a dry uninstall", facts(LINKS), links)
    contains("the report", place.run("docker", "--config", one, "--uninstall"), f"kept      the links in {LINKS}/docker: they stand in {other}\n")
    for path in paths_of(json.loads(other.read_text())["runtimes"]).values():
        equal(path, os.readlink(path), str(place.runtime))
    contains("once more", place.run("docker", "--config", one, "--uninstall"), f"nothing to do: benchsand is not in {one}\n")
    # One that cannot be read may name them; one that is gone does not, and neither does one that somebody else has cleared.
    for text in ('{"debug": true,}', None, "{}"):
        place.run("docker", "--config", one)
        other.write_text(text) if text else other.unlink()
        report = place.run("docker", "--config", one, "--uninstall")
        equal(f"links stay where the other has {text!r}, {report}", bool(facts(LINKS)), text == '{"debug": true,}')
        other.write_text("{}\n")
        place.run("docker", "--config", other)
        equal("nothing to do", place.run("docker", "--config", other), f"nothing to do: {other} has it all\n")
    place.run("docker", "--config", other, "--uninstall")
    equal("links", facts(LINKS), {})
    # The usual file counts though nothing is noted of it.
    place.run("docker")
    place.run("docker", "--config", one)
    (LINKS / "docker/.used-by").unlink()
    place.run("docker", "--config", one, "--uninstall")
    equal("a link of the usual file", os.readlink(LINKS / "docker/benchsand"), str(place.runtime))
    place.run("docker", "--uninstall")
    equal("links", facts(LINKS), {})


@test
def what_was_changed_since_stays(place):
    config = USUAL["docker"]
    config.write_text('{\n  "debug": true\n}\n')
    place.run("docker", "--config", config)
    config.write_text(config.read_text().replace("true", "false"))
    contains("the report", place.run("docker", "--config", config, "--uninstall"), f"kept      {config}.benchsand-backup")
    equal("the file", config.read_text(), '{\n  "debug": false\n}\n')
    # The copy is of no use to a file that install makes: that one goes as it came.
    config.unlink()
    place.run("docker", "--config", config)
    place.run("docker", "--config", config, "--uninstall")
    equal("the file that install made", config.exists(), False)
    config.write_text('{\n  "debug": false\n}\n')
    # The next install starts from what is there now.
    place.run("docker", "--config", config)
    place.run("docker", "--config", config, "--uninstall")
    equal("files", [path.name for path in config.parent.glob("daemon*")], ["daemon.json"])
    config.unlink()


@test
def odd_texts_come_back_by_the_backup(place):
    config = place.folder / "daemon.json"
    for text in ('{ }', '{"runtimes": { } }\n', '\n', '{"runtimes": {}, "debug": true ,  "x": 1}'):
        config.write_text(text)
        place.run("docker", "--config", config)
        equal("the backup", Path(f"{config}.benchsand-backup").read_text(), text)
        place.run("docker", "--config", config)
        equal("the backup after the second", Path(f"{config}.benchsand-backup").read_text(), text)
        place.run("docker", "--config", config, "--uninstall")
        equal("files", {path.name: path.read_text() for path in place.folder.glob("daemon*")}, {"daemon.json": text})


@test
def a_link_to_the_file_stays_a_link(place):
    real, link = place.folder / "real.json", place.folder / "daemon.json"
    real.write_text("{}\n")
    os.chown(real, 0, 42)
    real.chmod(0o604)
    link.symlink_to("real.json")
    before = facts(place.folder)
    place.run("docker", "--config", link)
    contains("what the link names", real.read_text(), "benchsand-python")
    equal("mode and group", (stat.S_IMODE(real.stat().st_mode), real.stat().st_gid), (0o604, 42))
    place.run("docker", "--config", link, "--uninstall")
    equal("files", facts(place.folder), before)


@test
def a_full_disk_loses_nothing(place):
    full = place.folder / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(full)], check=True)
    for engine, name, text in (("docker", "daemon.json", '{"debug": true}\n'), ("containerd", "config.toml", "version = 2\n")):
        config = full / name
        config.write_text(text)
        filler = full / "filler"
        with open(filler, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass
        before = facts(full)
        contains("the message", place.run(engine, "--config", config, status=3), "No space left on device; it is as it was")
        equal("files", facts(full), before)
        filler.unlink()
        # Room for the copy, but not for the file: the same.
        place.run(engine, "--config", config)
        installed = facts(full)
        with open(filler, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass
        place.run(engine, "--config", config, "--uninstall", status=3)
        equal("the file after a failed uninstall", config.read_bytes(), installed[str(config)][3])
        filler.unlink()
        place.run(engine, "--config", config, "--uninstall")
        equal("the file", config.read_text(), text)
        config.unlink()


@test
def what_is_refused_changes_nothing(place):
    config = place.folder / "daemon.json"
    broken, taken = '{"debug": true,}', '{"runtimes": {"benchsand": {"path": "/usr/bin/other"}}}'
    other = place.folder / "other"
    other.write_text("#!/bin/sh\n")
    def refused(text, says, *words, status=2, **options):
        config.write_text(text)
        before = facts(place.folder), facts(LINKS)
        contains("the message", place.run("docker", "--config", config, *words, status=status, **options), says)
        equal(f"files after {says!r}", (facts(place.folder), facts(LINKS)), before)
    refused(broken, "parse error at line 1, column 16")
    refused(broken, "parse error at line 1, column 16", "--uninstall")
    refused(taken, "a runtime of that name is there already")
    refused("{}", "it is not a program", runtime=other)
    refused("{}", "No such file or directory; name benchsand-runtime with --runtime", runtime=place.folder / "absent")
    other.chmod(0o777)
    refused("{}", "others than root may change it", runtime=other)
    place.folder.chmod(0o755)
    refused("{}", "benchsand install must be root", status=3, user=65534, group=65534, extra_groups=[])
    place.folder.chmod(0o700)
    refused("{}", "", "--dry-run", status=0)
    place.run("docker", "--config", config)
    refused(config.read_text().replace('"runtimes"', '"default-runtime": "benchsand",\n  "runtimes"'),
            "it is the default-runtime there", "--uninstall")


@test
def a_profile_that_would_take_the_walls_down_is_left_out(place):
    for name in ("passthrough", "runtime", "Big Name"):
        (PROFILES / f"{name}.yaml").write_text(profile("strict"))
    config = place.folder / "daemon.json"
    config.touch()
    report = place.run("docker", "--config", config)
    contains("the report", report, f"left out  {PROFILES}/passthrough.yaml: by that name the runtime takes every wall down\n")
    contains("the report", report, f"left out  {PROFILES}/runtime.yaml: benchsand-runtime is the runtime's own name")
    contains("the report", report, f"left out  {PROFILES}/Big Name.yaml: ")
    equal("names", sorted(json.loads(config.read_text())["runtimes"]), NAMES)


@test
def a_profile_that_does_not_parse_is_left_out(place):
    (PROFILES / "broken.yaml").write_text("benchsand_profile: 1\nname: broken\n")
    config = place.folder / "daemon.json"
    config.touch()
    contains("the report", place.run("docker", "--config", config), f"left out  profile broken: {PROFILES}/broken.yaml:")
    equal("names", sorted(json.loads(config.read_text())["runtimes"]), NAMES)
    # One that is there in place of a built-in one.
    (PROFILES / "python.yaml").write_text("")
    contains("the report", place.run("docker", "--config", config), "left out  profile python: ")
    equal("names", sorted(json.loads(config.read_text())["runtimes"]), [name for name in NAMES if name != "benchsand-python"])


@test
def a_file_that_is_not_there_is_not_made(place):
    """Unless it is where the engine's package has it."""
    for engine, usual in USUAL.items():
        for typed in (place.folder / "nowhere/file", place.folder / "file"):
            before = facts(place.folder), facts(LINKS)
            for words in ([], ["--dry-run"]):
                said = place.run(engine, "--config", typed, *words, status=2)
                contains("the message", said, f"find {typed}: it is not there; if {engine} reads it, make it first")
                contains("the message", said, f"leave out --config: it is {usual}")
            equal("files", (facts(place.folder), facts(LINKS)), before)
    config = place.folder / "daemon.json"
    config.touch()
    place.run("docker", "--config", config)
    before = facts(place.folder), facts(LINKS)
    # Its links are the other file's.
    place.run("docker", "--config", place.folder / "deamon.json", "--uninstall", status=2)
    equal("files", (facts(place.folder), facts(LINKS)), before)


def private_host():
    """This mount namespace is ours: the folders that install writes to by default are replaced by empty ones."""
    for folder in PRIVATE:
        if not os.path.isdir(folder):
            raise Skipped(f"{folder} is not there to be mounted over")
    policy = (CONTAINERS / "policy.json").read_bytes() if (CONTAINERS / "policy.json").exists() else b"{}"
    for folder in PRIVATE:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", folder], check=True)
    (CONTAINERS / "policy.json").write_bytes(policy)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("tests", nargs="*")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: needs root")
        return 77
    if os.environ.get("BENCHSAND_TEST_PRIVATE") != "1":
        os.environ["BENCHSAND_TEST_PRIVATE"] = "1"
        os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv])
    made = [folder for folder in PRIVATE[1:] if not os.path.isdir(folder)]
    for folder in made:
        os.mkdir(folder)
    try:
        private_host()
        return run_all(arguments)
    finally:
        for folder in made:
            subprocess.run(["umount", "-l", folder], check=False)
            os.rmdir(folder)


def run_all(arguments):
    failed = skipped = 0
    for function in TESTS:
        if arguments.tests and function.__name__ not in arguments.tests:
            continue
        shutil.rmtree(PROFILES, ignore_errors=True)
        shutil.rmtree(LINKS, ignore_errors=True)
        PROFILES.mkdir(parents=True)
        (PROFILES / "mine.yaml").write_text(profile("mine"))
        with tempfile.TemporaryDirectory() as folder:
            try:
                function(Place(str(Path(arguments.program).resolve()), folder))
                print(f"ok   {function.__name__}")
            except Skipped as why:
                skipped += 1
                print(f"skipped: {function.__name__}: {why}")
            except Wrong as why:
                failed += 1
                print(f"FAIL {function.__name__}: {why}")
            finally:
                mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
                for mount in reversed([one for one in mounts if one.startswith(folder + "/")]):
                    subprocess.run(["umount", "-l", mount], check=False)
    return 1 if failed else 77 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
