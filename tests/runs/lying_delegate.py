#!/usr/bin/env python3
"""A real delegate that was given another config.json than benchsand wrote, one lie at a time: the kernel then holds something
else than the policy, and benchsand must see it at the door and name the wall. The candidate never runs.

usage: lying_delegate.py --program BENCHSAND --trampoline PROGRAM --engine crun|runc [--compiled] [NAME...]

The lie takes place in a mount namespace of its own, where /usr/local/sbin/ENGINE, the first place benchsand looks, is a trampoline to
this file; there it is called as lie.py, edits the bundle as /usr/local/sbin/lie says, and executes the real delegate.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True

LIES = {}
ROOTFS = Path(os.environ.get("BENCHSAND_CACHE", "/var/cache/benchsand")) / "tiny-rootfs"


def lie(*walls):
    def register(function):
        LIES[function.__name__] = (function, set(walls))
        return function
    return register


def mount_at(config, destination):
    return next(mount for mount in config["mounts"] if mount["destination"] == destination)


@lie("memory")
def swap_is_not_pinned(config):
    memory = config["linux"]["resources"]["memory"]
    memory["swap"] = 2 * memory["limit"]
    config["linux"]["resources"].get("unified", {}).pop("memory.swap.max", None)


@lie("memory")
def memory_is_doubled(config):
    memory = config["linux"]["resources"]["memory"]
    memory["limit"] *= 2
    memory["swap"] *= 2


@lie("processes")
def more_processes(config):
    config["linux"]["resources"]["pids"]["limit"] += 1


@lie("cpu-time")
def more_processors(config):
    config["linux"]["resources"]["cpu"]["quota"] *= 2


@lie("rootfs", "mounts")
def root_is_writable(config):
    config["root"]["readonly"] = False


@lie("mounts")
def a_further_mount(config):
    config["mounts"].append({"destination": "/etc", "type": "bind", "source": "/etc", "options": ["bind", "ro"]})


@lie("mounts", "rootfs")
def input_is_writable(config):
    mount_at(config, "/task")["options"] = ["bind", "rw", "nosuid", "nodev"]


@lie("mounts")
def output_takes_devices(config):
    mount_at(config, "/output")["options"] = ["bind", "rw"]


@lie("output")
def output_is_another_file_system(config):
    mount_at(config, "/output").update({"type": "tmpfs", "source": "tmpfs", "options": ["rw", "nosuid", "nodev", "size=1g", "mode=1777"]})


@lie("mounts")
def input_is_another_directory(config):
    mount_at(config, "/task")["source"] = "/usr/share/doc"


@lie("mounts", "rootfs")
def the_root_is_the_hosts_directory(config):
    config["root"]["path"] = str(ROOTFS)


@lie("mounts")
def nothing_is_masked(config):
    config["linux"]["maskedPaths"] = []


@lie("mounts")
def nothing_is_write_protected(config):
    config["linux"]["readonlyPaths"] = []


@lie("mounts")
def another_working_directory(config):
    config["process"]["cwd"] = "/task"


@lie("privileges")
def another_user(config):
    config["process"]["user"]["uid"] = 65533


@lie("privileges")
def a_further_group(config):
    config["process"]["user"]["additionalGids"] = [1]


@lie("network", "privileges")
def a_socket_comes_along(config):
    """Made on the host, so in its network namespace and outside the run's cgroup. Tells the delegate by what it returns."""
    os.dup2(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).detach(), 3)
    os.set_inheritable(3, True)  # it may have been number 3 before
    return ["--preserve-fds", "1"]


@lie("privileges")
def a_capability(config):
    for name in ("bounding", "permitted", "effective"):
        config["process"]["capabilities"][name] = ["CAP_NET_RAW"]


def own_dev(config):
    """A /dev that the delegate makes and can add to, in the place of benchsand's."""
    mount_at(config, "/dev").update({"type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "noexec", "ro", "mode=755"]})


@lie("privileges")
def a_device(config):
    own_dev(config)
    config["linux"]["devices"] = [{"path": "/dev/fuse", "type": "c", "major": 10, "minor": 229, "fileMode": 0o666}]
    config["linux"]["resources"]["devices"] = [{"allow": True, "access": "rwm"}]


@lie("mounts", "rootfs")
def a_writable_place_in_dev(config):
    own_dev(config)
    config["mounts"].append({"destination": "/dev/shm", "type": "tmpfs", "source": "tmpfs", "options": ["rw"]})


@lie("privileges")
def more_open_files(config):
    config["process"]["rlimits"][0].update({"soft": 512, "hard": 512})


@lie("privileges")
def core_dumps(config):
    config["process"]["rlimits"][1].update({"soft": 1 << 20, "hard": 1 << 20})


@lie("cpu-time")
def no_backstop(config):
    config["process"]["rlimits"][2].update({"soft": 10000, "hard": 10000})


@lie("privileges")
def survives_an_oom(config):
    config["process"]["oomScoreAdj"] = 100


def without_namespace(kind):
    def drop(config):
        config["linux"]["namespaces"] = [n for n in config["linux"]["namespaces"] if n["type"] != kind]
    return drop


for kind, wall in (("network", "network"), ("ipc", "namespaces"), ("cgroup", "namespaces")):
    LIES[f"no_{kind}_namespace"] = (without_namespace(kind), {wall})


@lie("namespaces")
def no_uts_namespace(config):
    without_namespace("uts")(config)
    config.pop("hostname")


def without(rules, call):
    for rule in rules:
        if call in rule["names"]:
            rule["names"].remove(call)
    rules[:] = [rule for rule in rules if rule["names"]]


def user_namespace(config, mapping):
    """Another than benchsand made: {id inside: id of the host}; none at all when the mapping is empty."""
    without_namespace("user")(config)
    for kind in ("uidMappings", "gidMappings"):
        config["linux"].pop(kind, None)
        if mapping:
            config["linux"][kind] = [{"containerID": inside, "hostID": host, "size": 1} for inside, host in mapping.items()]
    if mapping:
        config["linux"]["namespaces"].append({"type": "user"})
    config["process"]["cwd"] = "/"  # the output belongs to the ids of the run


@lie("namespaces", "privileges")
def no_user_namespace(config):
    user_namespace(config, {})


@lie("namespaces", "privileges")
def other_ids_of_the_host(config):
    user_namespace(config, {0: 1000000, 65534: 1000001})


@lie("namespaces", "privileges")
def the_hosts_root_is_mapped(config):
    user_namespace(config, {0: 0, 65534: 65534})


@lie("namespaces", "privileges")
def more_ids_are_mapped(config):
    user_namespace(config, {0: 1000000, 65534: 1000001, 1000: 1000})


@lie("syscalls")
def one_more_call(config):
    rules = config["linux"]["seccomp"]["syscalls"]
    without(rules, "mount")
    rules.append({"names": ["mount"], "action": "SCMP_ACT_ALLOW"})


@lie("syscalls")
def refused_and_not_counted(config):
    without(config["linux"]["seccomp"]["syscalls"], "mount")


@lie("syscalls")
def one_more_question(config):
    """A call that is allowed is asked about: the supervisor would refuse it."""
    rules = config["linux"]["seccomp"]["syscalls"]
    without(rules, "getppid")
    rules.append({"names": ["getppid"], "action": "SCMP_ACT_NOTIFY"})


@lie("syscalls", "network")
def every_socket(config):
    rules = config["linux"]["seccomp"]["syscalls"]
    rules[:] = [rule for rule in rules if "socket" not in rule["names"]]
    rules.append({"names": ["socket"], "action": "SCMP_ACT_ALLOW"})


# Seen on the attached filter alone, so not where a kernel cannot hand it back.
ON_THE_FILTER = {"one_more_call", "every_socket", "refused_and_not_counted", "one_more_question"}
# runc mounts anew what it is told to make read-only or nodev, and leaves the rest as it finds it: benchsand's own mount, which is.
CRUN_ONLY = {"root_is_writable", "output_takes_devices"}
# What a user namespace of its own makes impossible, for it can neither loosen a mount that it did not make nor become who does not
# exist in it: told under a profile that says `user_namespace: host`. And rlimits, which runc may not be able to set in another.
IN_THE_HOSTS_USER_NAMESPACE = {"root_is_writable", "input_is_writable", "output_takes_devices", "another_user", "a_further_group", "a_device",
                               "more_open_files", "core_dumps", "no_backstop"}


def tell_the_lie(words):
    """In the place of the delegate: edits a copy of the bundle, then becomes the delegate."""
    engine, name = Path("/usr/local/sbin/lie").read_text().split()
    if "--bundle" in words:
        at = words.index("--bundle") + 1
        bundle = Path(words[at])
        config = json.loads((bundle / "config.json").read_text())
        if name != "the_truth":
            more = LIES[name][0](config) or []
            words[words.index("run") + 1:words.index("run") + 1] = more
            at += len(more)
        words[at] = str(bundle / "lie")
        os.mkdir(words[at])
        (bundle / "lie" / "config.json").write_text(json.dumps(config))
    real = next(path for path in (f"/usr/sbin/{engine}", f"/usr/bin/{engine}") if os.path.exists(path))
    os.execv(real, [engine, *words])


def run(given, work, name):
    profile = Path(__file__).resolve().parents[2] / "profiles/strict.yaml"
    text = profile.read_text()
    text = text.replace("filter_proof: dump", "filter_proof: compiled") if given.compiled else text
    if name in IN_THE_HOSTS_USER_NAMESPACE:
        text = text.replace("user_namespace: own ", "user_namespace: host ")
    (work / "strict.yaml").write_text(text)
    (work / "lie").write_text(f"{given.engine} {name}")
    stage = ('mount -t tmpfs -o mode=755 tmpfs /usr/local/sbin && cp "$1" "/usr/local/sbin/$2" && cp "$3" /usr/local/sbin/lie.py && '
             'cp "$4" /usr/local/sbin/lie && shift 4 && exec "$@"')
    words = ["unshare", "-m", "sh", "-c", stage, "sh", given.trampoline, given.engine, __file__, str(work / "lie"), given.program, "run",
             str(work / "task.yaml"), "--engine", given.engine, "--json", "--out", str(work / "out"), "--profile", str(work / "strict.yaml")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=200)
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else None, done.stderr


def problem_with(name, status, record, stderr):
    if record is None:
        return f"no record, exit status {status}: {stderr}"
    verdict, walls = record["verdict"], {failure["wall"] for failure in record["verdict"]["failures"]}
    if name == "the_truth":
        return "" if status == 0 and verdict["scored"] else f"the control was not scored: {verdict['failures']}"
    if status != 3 or verdict["scored"] or verdict["outcome"] != "refused" or record["end"]["cause"] != "not-started":
        return f"status {status}, {record['end']}, {verdict}"
    if record["outputs"]:
        return "the candidate ran"
    expected = LIES[name][1]
    if not expected <= walls:
        return f"the broken walls are {sorted(walls)}, expected {sorted(expected)}"
    return ""


def main():
    parser = argparse.ArgumentParser()
    for option in ("--program", "--trampoline", "--engine"):
        parser.add_argument(option, required=True)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    given.program, given.trampoline = os.path.abspath(given.program), os.path.abspath(given.trampoline)
    if os.geteuid() != 0:
        print("skipped: needs root")
        return 77
    work, failed = Path(tempfile.mkdtemp(prefix="benchsand-lies-")), 0
    (work / "in").mkdir()
    (work / "task.yaml").write_text(f"benchsand: 1\nname: lie\nrootfs: {ROOTFS}\ncommand: [touch, /output/ran]\n"
                                    "inputs: [{source: ./in, target: /task}]\nlimits: {wall_time: 60s}\n")
    names = given.names or ["the_truth", *[name for name in LIES if not (given.compiled and name in ON_THE_FILTER)
                                            and not (given.engine != "crun" and name in CRUN_ONLY)]]
    for name in names:
        status, record, stderr = run(given, work, name)
        problem = problem_with(name, status, record, stderr)
        failed += bool(problem)
        seen = "" if problem or name == "the_truth" else "; ".join(sorted({f["wall"] for f in record["verdict"]["failures"]}))
        print(f"{'FAIL' if problem else 'ok  '} {name}: {problem or seen}", flush=True)
    shutil.rmtree(work)
    print(f"{given.engine}: {len(names)} lies, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if os.path.basename(__file__) == "lie.py":
        tell_the_lie(sys.argv[1:])
    sys.exit(main())
