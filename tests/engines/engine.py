"""Container engines of a test's own, with private folders and sockets, which leave nothing when they are stopped.

enter() puts the test into a mount and a network namespace of its own first: bridges, mounts and /etc are then the test's.
Cgroups and /run/benchsand stay the machine's, because benchsand's are."""

import ctypes
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runs"))

from harness import Wrong, names_in

# Where engines keep state that no option moves.
FIXED_PLACES = ("/run/containerd", "/run/docker", "/run/libpod", "/run/netns", "/run/crun", "/run/runc", "/var/lib/cni")
UNUSED = ("./usr/share/", "./var/lib/", "./usr/lib/x86_64-linux-gnu/gconv/", "./usr/lib/x86_64-linux-gnu/perl-base/")  # of an image: seconds to load
PR_SET_CHILD_SUBREAPER = 36
# Profiles like strict in all but this. On a slow machine one limit must not come before another: where a scenario is about one of
# them, or about what is done to a container that lives, the others are out of reach.
PATIENT = {"cpu_time": "{default: 2m, max: 10m}", "wall_time": "{default: 10m, max: 1h}", "stdio_total": "64MiB"}
VARIANTS = {"patient": PATIENT, "closed": {**PATIENT, "exec": "deny"}, "brief": {**PATIENT, "cpu_time": "{default: 1s, max: 10m}"},
            "quick": {**PATIENT, "wall_time": "{default: 1s, max: 1h}"}}


def enter():
    """Continues in namespaces of its own, as the child of a process that reaps whatever is orphaned: an init may be slow at it.

    That parent ends with the child's status, or with 1 and their names when descendants outlive the test."""
    if os.environ.get("BENCHSAND_ENGINES_INSIDE"):
        os.environ.pop("BENCHSAND_ENGINES_INSIDE")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        # What a container in this namespace could see.
        subprocess.run(["ip", "link", "add", "outside", "type", "veth", "peer", "name", "outside2"], check=True)
        return
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    missing = [place for place in (*FIXED_PLACES, "/var/lib/benchsand") if not os.path.isdir(place)]
    for place in missing:
        os.makedirs(place)
    child = os.fork()
    if child == 0:
        os.environ["BENCHSAND_ENGINES_INSIDE"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--net", "--propagation", "private", sys.executable, *sys.argv])
    status = reap(child)
    for place in reversed(missing):
        if not names_in(place):
            os.rmdir(place)
    sys.exit(status)


def reap(child):
    """The child's exit status; then orphans get some seconds to end, and what does not is killed and told."""
    status = None
    deadline = None
    told = set()
    while True:
        try:
            pid, ended = os.waitpid(-1, 0 if status is None else os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == child:
            status, deadline = os.waitstatus_to_exitcode(ended), time.monotonic() + 30
        if pid == 0:
            time.sleep(0.05)
        if deadline and time.monotonic() > deadline:
            children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
            for orphan in set(children) - told:
                told.add(orphan)
                print(f"FAIL: outlives the test: {orphan} {Path(f'/proc/{orphan}/cmdline').read_bytes()!r}", flush=True)
                os.kill(int(orphan), signal.SIGKILL)
            status = status or 1


class Done:
    """What one command of an engine's client said."""

    def __init__(self, process):
        self.status, self.stdout, self.stderr = process.returncode, process.stdout, process.stderr

    def __repr__(self):
        return f"status {self.status}, stdout {self.stdout[-300:]!r}, stderr {self.stderr[-600:]!r}"


def changed(profile, settings):
    """The text of a profile with these keys' values exchanged."""
    for key, value in settings.items():
        profile, count = re.subn(rf"^( *{key}: *)(\{{[^}}]*\}}|\S+)", lambda found: found[1] + value, profile, flags=re.M)
        if count != 1:
            raise Wrong(f"profiles/strict.yaml has {count} lines {key!r} to change")
    return profile


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


class Stage:
    """What all engines share: a scratch folder, the runtime under its names, /etc/benchsand, the records, the images."""

    def __init__(self, runtime, program, tools, cache, slow, compiled):
        self.program, self.slow, self.cache = str(Path(program).resolve()), slow, Path(cache)
        # Short, because sockets below it have to fit into 107 bytes.
        # Of digits and letters alone, not as mkdtemp chooses: it names namespaces of containerd, cgroups and containers, too.
        self.work = Path(f"/tmp/bse-{secrets.token_hex(4)}")
        self.work.mkdir(mode=0o700)
        self.token = self.work.name
        self.bin = self.work / "bin"
        self.bin.mkdir()
        for name in ("benchsand", *(f"benchsand-{name}" for name in ("python", "passthrough", *VARIANTS))):
            (self.bin / name).symlink_to(Path(runtime).resolve())
        for place in FIXED_PLACES:
            mount("-t", "tmpfs", "-o", "mode=711", "tmpfs", place)
        self.private_null()
        self.private_etc(compiled)
        (self.work / "lib").mkdir()
        mount("--bind", self.work / "lib", "/var/lib/benchsand")
        self.records = Path("/var/lib/benchsand/records")
        self.tools = [Path(tool).resolve() for tool in tools]
        self.bridges = not compiled  # the guest's kernel has none
        self.run_ids = set()
        (self.work / "client").mkdir()
        (self.work / "client" / "config.json").write_text("{}")
        os.chdir(self.work)  # where conmon leaves a file when memory runs out
        os.environ.update(HOME=str(self.work), DOCKER_CONFIG=str(self.work / "client"), TMPDIR=str(self.work))

    def private_null(self):
        """Not the host's: crun gives an exec's standard streams to the user of the exec, and `podman exec` has /dev/null for one."""
        folder = self.work / "dev"
        folder.mkdir()
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)
        os.mknod(folder / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        os.chmod(folder / "null", 0o666)
        mount("--bind", folder / "null", "/dev/null")

    def private_etc(self, compiled):
        """An overlay on /etc, for /etc/benchsand: on a read-only host, too, and gone with the namespace."""
        for name in ("etc-upper", "etc-work"):
            (self.work / name).mkdir(mode=0o755)
        mount("-t", "overlay", "-o", f"lowerdir=/etc,upperdir={self.work}/etc-upper,workdir={self.work}/etc-work", "overlay", "/etc")
        shutil.rmtree("/etc/benchsand", ignore_errors=True)
        os.makedirs("/etc/benchsand/profiles", mode=0o755)
        source = Path(__file__).resolve().parents[2] / "profiles"
        for name in ("strict", "python"):
            text = (source / f"{name}.yaml").read_text()
            if compiled:
                # This kernel cannot hand back an attached filter (no CONFIG_CHECKPOINT_RESTORE).
                text = text.replace("filter_proof: dump", "filter_proof: compiled")
                text = text.replace("wall_time:  {default: 10s,", f"wall_time:  {{default: {10 * self.slow}s,")
                Path(f"/etc/benchsand/profiles/{name}.yaml").write_text(text)
            if name == "strict":
                for variant, settings in VARIANTS.items():
                    Path(f"/etc/benchsand/profiles/{variant}.yaml").write_text(changed(text, {"name": variant, **settings}))

    def delegate(self, name):
        Path("/etc/benchsand/runtime.yaml").write_text(f"delegate: {name}\n")

    def image(self, kind):
        """A tar archive of a root file system with the tests' programs, made once; its path."""
        archive = self.work / f"{kind}.tar"
        if not archive.exists():
            with tarfile.open(archive, "w") as tar:
                tar.add(self.cache / f"{kind}-rootfs", ".", filter=lambda entry: None if entry.name.startswith(UNUSED) else entry)
                for tool in self.tools:
                    tar.add(tool, f"./bin/{tool.name}")
                tar.addfile(tarfile.TarInfo("./intruder-image"), io.BytesIO())
        return archive

    def note_runs(self):
        """The runs of this stage that stand now: their config.json names a bundle of an engine of it."""
        for run in names_in("/run/benchsand"):
            try:
                if self.token in Path(f"/run/benchsand/{run}/config.json").read_text():
                    self.run_ids.add(run)
            except OSError:
                continue

    def close(self):
        for place in ("/var/lib/benchsand", "/etc", "/dev/null", *FIXED_PLACES, *mounts_below(self.work)):
            subprocess.run(["umount", "--lazy", place], stderr=subprocess.DEVNULL)  # not there when another test removed the folder
        os.chdir("/")
        shutil.rmtree(self.work)


def null_given_away():
    """The host's /dev/null here, if a container's user has it now."""
    owner = os.stat("/dev/null").st_uid
    return {f"/dev/null of user {owner}"} if owner else set()


def mounts_below(folder):
    """The mount points in a folder, the last ones first."""
    points = [line.split()[4] for line in open("/proc/self/mountinfo")]
    return [point for point in points if point.startswith(f"{folder}/")][::-1]


def own_cgroups(name):
    """The cgroups of this name that an engine made beside benchsand's own, deepest first."""
    found = []
    for folder, folders, _ in os.walk("/sys/fs/cgroup"):
        if name in folders:
            top = os.path.join(folder, name)
            found += [inner for inner, _, _ in os.walk(top)][::-1]
            folders.remove(name)
        folders[:] = [inner for inner in folders if os.path.dirname(folder) in ("/sys/fs", "/sys/fs/cgroup", "/sys")]
    return found


class Engine:
    """One engine: `flags` in its own client's words are the caller's."""

    name = "?"

    def __init__(self, stage):
        self.stage, self.folder = stage, stage.work / self.name
        self.folder.mkdir()
        self.daemon = None
        self.images = set()
        self.environment = dict(os.environ)
        self.cgroup = f"{stage.token}-{self.name}"

    def __enter__(self):
        self.start()
        self.need_image("tiny")
        return self

    def __exit__(self, *_):
        self.stop()
        for cgroup in (*own_cgroups(self.cgroup), *own_cgroups(f"{self.cgroup}-elsewhere")):
            os.rmdir(cgroup)

    def cli(self, *arguments, timeout=60, **keys):
        return Done(subprocess.run([*self.client, *map(str, arguments)], capture_output=True, text=True, env=self.environment,
                                   timeout=timeout * self.stage.slow, stdin=keys.pop("stdin", subprocess.DEVNULL), **keys))

    def must(self, *arguments, **keys):
        done = self.cli(*arguments, **keys)
        if done.status != 0:
            raise Wrong(f"{self.name} {' '.join(map(str, arguments))}: {done}")
        return done.stdout.strip()

    def start_daemon(self, command, ready):
        log = open(self.folder / "daemon.log", "ab")
        self.daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment, start_new_session=True)
        deadline = time.monotonic() + 60 * self.stage.slow
        while self.cli(*ready).status != 0:
            if self.daemon.poll() is not None or time.monotonic() > deadline:
                raise Wrong(f"{command[0]} does not start: {(self.folder / 'daemon.log').read_text()[-2000:]}")
            time.sleep(0.1)

    def need_image(self, kind):
        if kind not in self.images:
            self.load_image(kind)
            self.images.add(kind)

    def stop_daemon(self):
        self.daemon.terminate()
        self.daemon.wait(timeout=60 * self.stage.slow)


class Docker(Engine):
    name = "docker"

    def __init__(self, stage):
        super().__init__(stage)
        self.socket = f"unix://{self.folder}/d.sock"
        # The client that came with the daemon, where another one may come first.
        client = "/usr/bin/docker" if os.path.exists("/usr/bin/docker") else "docker"
        self.client = [client, "--host", self.socket]
        runtimes = {path.name: {"path": str(path)} for path in stage.bin.iterdir()}
        for delegate in ("crun", "runc"):
            if shutil.which(delegate):
                runtimes[f"plain-{delegate}"] = {"path": shutil.which(delegate)}
        # Without iptables: the bridge is all that is wanted of a network.
        settings = {"iptables": False, "ip-masq": False, "ip6tables": False, "storage-driver": "overlay2", "cgroup-parent": f"/{self.cgroup}",
                    "exec-opts": ["native.cgroupdriver=cgroupfs"], "runtimes": runtimes, "userland-proxy": False}
        if not stage.bridges:
            settings["bridge"] = "none"
        (self.folder / "daemon.json").write_text(json.dumps(settings))

    def start(self):
        if shutil.which("dockerd") is None:
            raise FileNotFoundError("dockerd")
        self.start_daemon(["dockerd", "--config-file", str(self.folder / "daemon.json"), "--data-root", str(self.folder / "data"),
                           "--exec-root", str(self.folder / "exec"), "--host", self.socket, "--pidfile", str(self.folder / "d.pid")],
                          ["version"])

    def reload(self, path):
        """Reads its file again, until the runtime benchsand has this path."""
        self.daemon.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 30 * self.stage.slow
        while self.must("info", "--format", "{{.Runtimes.benchsand.Path}}").strip() != path:
            if time.monotonic() > deadline:
                raise Wrong(f"dockerd does not take {path} for the runtime")
            time.sleep(0.05)

    def version(self):
        return f"Docker {self.must('version', '--format', '{{.Server.Version}}')}"

    def stop(self):
        names = self.cli("ps", "-aq").stdout.split()
        if names:
            self.cli("rm", "-f", *names)
        self.stop_daemon()

    def load_image(self, kind):
        with open(self.stage.image(kind), "rb") as archive:
            self.must("import", "-", kind, stdin=archive)

    def run(self, runtime, flags, image, *command, name=None, **keys):
        """docker run, and the container's id: the run is left for the caller to remove, unless a flag says otherwise."""
        cidfile = self.folder / "cid"
        cidfile.unlink(missing_ok=True)
        named = ["--name", name] if name else []
        done = self.cli("run", "--runtime", runtime, "--cidfile", cidfile, *named, *flags, image, *command, **keys)
        done.id = cidfile.read_text().strip() if cidfile.exists() else None
        self.stage.note_runs()
        return done

    def remove(self, identity):
        self.stage.note_runs()
        self.must("rm", "-f", "-v", identity)


class Podman(Engine):
    name = "podman"

    def __init__(self, stage):
        super().__init__(stage)
        self.environment.update(CONTAINERS_CONF=str(self.folder / "containers.conf"), CONTAINERS_STORAGE_CONF=str(self.folder / "storage.conf"))
        self.client = ["podman", "--root", str(self.folder / "root"), "--runroot", str(self.folder / "run"), "--tmpdir", str(self.folder / "tmp"),
                       "--network-config-dir", str(self.folder / "net")]
        runtimes = {path.name: [str(path)] for path in stage.bin.iterdir()}
        for delegate in ("crun", "runc"):
            if shutil.which(delegate):
                runtimes[f"plain-{delegate}"] = [shutil.which(delegate)]
        lines = ["[containers]", *([] if stage.bridges else ['netns="none"']), 'default_ulimits=["nofile=1024:1024","nproc=1000:1000"]', f'cgroup_parent="/{self.cgroup}"', 'log_driver="k8s-file"',
                 f'init_path="{shutil.which("docker-init") or "/usr/libexec/podman/catatonit"}"',
                 "[engine]", 'cgroup_manager="cgroupfs"', 'events_logger="file"', f"runtime_supports_json={json.dumps(sorted(runtimes))}",
                 "[engine.runtimes]", *(f"{json.dumps(name)}={json.dumps(paths)}" for name, paths in runtimes.items())]
        (self.folder / "containers.conf").write_text("\n".join(lines) + "\n")
        (self.folder / "storage.conf").write_text(f'[storage]\ndriver="overlay"\ngraphroot="{self.folder}/root"\nrunroot="{self.folder}/run"\n')

    def start(self):
        if shutil.which("podman") is None:
            raise FileNotFoundError("podman")

    def version(self):
        return f"Podman {self.must('version', '--format', '{{.Client.Version}}')}"

    def stop(self):
        self.must("rm", "-af", "-t", "0")
        for place in ("libpod_parent",):
            for cgroup in own_cgroups(place):
                try:
                    os.rmdir(cgroup)
                except OSError:
                    pass  # another podman of this machine uses it

    def load_image(self, kind):
        self.must("import", self.stage.image(kind), kind)

    def run(self, runtime, flags, image, *command, **keys):
        return Docker.run(self, runtime, flags, f"localhost/{image}", *command, **keys)

    def cli(self, *arguments, **keys):
        if arguments[0] == "run":
            at = arguments.index("--runtime")
            arguments = ("--runtime", arguments[at + 1], *arguments[:at], *arguments[at + 2:])
        return super().cli(*arguments, **keys)

    def remove(self, identity):
        self.stage.note_runs()
        self.must("rm", "-f", "-v", "-t", "0", identity)


class Containerd(Engine):
    name = "containerd"

    def __init__(self, stage):
        super().__init__(stage)
        self.client = ["ctr", "--address", f"{self.folder}/c.sock", "--namespace", self.cgroup]
        (self.folder / "config.toml").write_text(f"""version = 2
root = "{self.folder}/root"
state = "{self.folder}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "{self.folder}/c.sock"
""")
        self.count = 0

    def start(self):
        if shutil.which("containerd") is None or shutil.which("ctr") is None:
            raise FileNotFoundError("containerd and ctr")
        self.start_daemon(["containerd", "--config", str(self.folder / "config.toml")], ["version"])

    def version(self):
        return f"containerd {[line.split()[1] for line in self.must('version').splitlines() if 'Version:' in line][-1]}"

    def stop(self):
        for name in self.cli("containers", "ls", "-q").stdout.split():
            self.remove(name)
        self.stop_daemon()

    def load_image(self, kind):
        layer = self.stage.image(kind).read_bytes()
        digest = hashlib.sha256(layer).hexdigest()
        config = {"architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]},
                  "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}}
        manifest = [{"Config": "config.json", "RepoTags": [f"benchsand.test/{kind}:latest"], "Layers": ["layer.tar"]}]
        archive = self.folder / f"{kind}.tar"
        with tarfile.open(archive, "w") as tar:
            for name, content in (("config.json", json.dumps(config).encode()), ("manifest.json", json.dumps(manifest).encode()), ("layer.tar", layer)):
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
        self.must("image", "import", archive)
        archive.unlink()

    def run(self, runtime, flags, image, *command, name=None, **keys):
        self.count += 1
        identity = name or f"c{self.count}"
        binary = shutil.which(runtime.removeprefix("plain-")) if runtime.startswith("plain-") else self.stage.bin / runtime
        done = self.cli("run", "--runc-binary", binary, *flags, f"benchsand.test/{image}:latest", identity, *command, **keys)
        done.id = identity
        self.stage.note_runs()
        return done

    def remove(self, identity):
        self.stage.note_runs()
        self.cli("task", "kill", "-s", "SIGKILL", identity)
        self.cli("task", "rm", "-f", identity)
        self.must("containers", "rm", identity)


ENGINES = {engine.name: engine for engine in (Docker, Podman, Containerd)}
