#!/usr/bin/env python3
"""The exact calls of containerd, dockerd, conmon, Podman, CRI-O and buildah, made against a delegate that writes down how it was called.

usage: calls.py --runtime benchsand-runtime --recorder recording_delegate [NAME…]

The recorder takes crun's and runc's place in a mount namespace of the test's own, as in tests/runs/lying_delegate.py.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PLACE = Path("/usr/local/sbin")
GO = ["--log", "{b}/log.json", "--log-format", "json"]
MOBY = ["--root", "/run/docker/runtime-runc/moby", *GO]
K8S = ["--root", "/run/containerd/runc/k8s.io", *GO]
PODMAN = {"XDG_RUNTIME_DIR": "/run"}
HOME = {"PATH": "/usr/bin:/bin", "HOME": "/root"}

# Name: argv, environment, what crun gets when it is not the same ("…" in between: canonical order of flags).
CALLS = {
    "containerd_create": ([*K8S, "--systemd-cgroup", "create", "--bundle", "{b}", "--pid-file", "{b}/init.pid", "c1"], HOME, None),
    "containerd_create_tty": ([*K8S, "create", "--bundle", "{b}", "--pid-file", "{b}/init.pid", "--console-socket", "{b}/s", "c1"], HOME, None),
    "containerd_criu": ([*K8S, "--criu", "/usr/sbin/criu", "start", "c1"], HOME, [*K8S, "start", "c1"]),
    "containerd_cleanup": ([*K8S, "delete", "--force", "c1"], HOME, None),
    "containerd_exec": ([*K8S, "exec", "--process", "{b}/p", "--detach", "--pid-file", "{b}/e.pid", "c1"], HOME,
                        [*K8S, "exec", "--pid-file", "{b}/e.pid", "--detach", "--process", "{b}/p", "c1"]),
    "containerd_update": ([*K8S, "update", "--resources=-", "c1"], HOME, [*K8S, "update", "--resources", "-", "c1"]),
    "containerd_restore": ([*K8S, "restore", "-no-subreaper", "--bundle", "{b}", "c1"], HOME,
                           [*K8S, "restore", "--bundle", "{b}", "--no-subreaper", "c1"]),
    "containerd_rootless": ([*K8S, "--rootless=true", "pause", "c1"], HOME, [*K8S, "--rootless", "true", "pause", "c1"]),
    "dockerd_create": ([*MOBY, "create", "--bundle", "{b}", "--pid-file", "{b}/init.pid", "c1"], HOME, None),
    "dockerd_start": ([*MOBY, "start", "c1"], HOME, None),
    "dockerd_kill": ([*MOBY, "kill", "c1", "15"], HOME, None),
    "dockerd_kill_all": ([*MOBY, "kill", "--all", "c1", "9"], HOME, None),
    "dockerd_top": ([*MOBY, "ps", "--format", "json", "c1"], HOME, None),
    "dockerd_delete": ([*MOBY, "delete", "c1"], HOME, None),
    "conmon_create": (["--systemd-cgroup", "create", "--bundle", "{b}", "--pid-file", "{b}/pidfile", "c1"], PODMAN, None),
    "conmon_create_log": (["--log-format=json", "--log", "{b}/oci-log", "create", "--bundle", "{b}", "--pid-file", "{b}/p", "--console-socket",
                           "{b}/s", "c1"], PODMAN,
                          ["--log", "{b}/oci-log", "--log-format", "json", "create", "--bundle", "{b}", "--pid-file", "{b}/p", "--console-socket",
                           "{b}/s", "c1"]),
    "conmon_exec": (["exec", "--pid-file", "{b}/p", "--process", "{b}/process", "--detach", "c1"], PODMAN,
                    ["exec", "--pid-file", "{b}/p", "--detach", "--process", "{b}/process", "c1"]),
    "podman_start": (["start", "c1"], PODMAN, None),
    "podman_state": (["state", "c1"], PODMAN, None),
    "podman_kill": (["kill", "c1", "15"], {}, None),
    "podman_kill_all": (["kill", "--all", "c1", "9"], {}, None),
    "podman_delete": (["delete", "--force", "c1"], {}, None),
    "podman_pause": (["pause", "c1"], {}, None),
    "podman_resume": (["resume", "c1"], {}, None),
    "podman_update": (["update", "--resources={b}/r", "c1"], {}, ["update", "--resources", "{b}/r", "c1"]),
    "podman_probe": (["checkpoint", "--help"], {}, None),
    "crio_state": (["--root=/run/runc", "--systemd-cgroup", "state", "c1"], PODMAN, ["--root", "/run/runc", "--systemd-cgroup", "state", "c1"]),
    "crio_update": (["--root", "/run/runc", "update", "--resources", "-", "c1"], PODMAN, None),
    "crio_features": (["features"], PODMAN, None),
    "buildah_create": (["create", "--bundle", "{b}", "--pid-file", "{b}/pid", "b1"], HOME, None),
    "buildah_delete": (["delete", "b1"], HOME, None),
}
# Never reach a delegate, whoever calls: name -> argv, what stderr says.
REFUSED = {
    "abbreviation": (["--roo", "/r", "state", "c1"], "abbreviation of --root"),
    "another_config": (["create", "--config", "/tmp/x", "c1"], "--config is refused"),
    "mounts": (["mounts", "add", "c1"], "the verb mounts is refused"),
    "no_pivot": (["create", "--no-pivot", "c1"], "wall mounts"),
    "descriptors": (["create", "--preserve-fds", "3", "c1"], "wall privileges"),
    "two_ids": (["delete", "c1", "c2"], "takes one id"),
    "path_as_id": (["state", "../c1"], "the id"),
    "restore": (["restore", "--bundle", "{b}", "c1"], "restore is refused"),
    "checkpoint": (["checkpoint", "c1"], "checkpoint is refused"),
    "unknown": (["state", "nobody"], "container nobody does not exist"),
}


def fill(words, bundle):
    return [word.replace("{b}", str(bundle)) for word in words]


def recorded():
    calls = PLACE / "calls"
    lines = calls.read_text().splitlines() if calls.exists() else []
    calls.unlink(missing_ok=True)
    return [json.loads(line) for line in lines]


def call(program, words, environment, bundle, descriptors=()):
    return subprocess.run([program, *words], env=environment, cwd=bundle, pass_fds=descriptors, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60)


def passes_through(given, name, bundle):
    words, environment, canonical = CALLS[name]
    # Two descriptors of the caller's, as LISTEN_FDS hands them over.
    held = [os.open("/dev/null", os.O_RDONLY), os.open("/", os.O_RDONLY)]
    done = call(given.passthrough, fill(words, bundle), environment, bundle, held)
    for descriptor in held:
        os.close(descriptor)
    calls = recorded()
    if done.returncode != 0 or done.stderr or len(calls) != 1:
        return f"status {done.returncode}, {len(calls)} calls, stderr {done.stderr!r}"
    seen, expected = calls[0], fill(canonical or words, bundle)
    if seen["argv"] != ["crun", *expected]:
        return f"argv {seen['argv']}, expected {expected}"
    if sorted(seen["environment"]) != sorted(f"{key}={value}" for key, value in environment.items()):
        return f"environment {seen['environment']}"
    if sorted(map(int, seen["descriptors"])) != sorted([0, 1, 2, *held]):
        return f"descriptors {seen['descriptors']}, expected 0 1 2 and {held}"
    return "" if seen["cwd"] == str(bundle) else f"cwd {seen['cwd']}"


def is_refused(given, name, bundle):
    words, why = REFUSED[name]
    log = bundle / "refusals.json"
    done = call(given.runtime, ["--log", str(log), "--log-format", "json", *fill(words, bundle)], {}, bundle)
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    if recorded():
        return "the delegate was called"
    if done.returncode != 1 or done.stdout or done.stderr.count("\n") != 1 or why not in done.stderr:
        return f"status {done.returncode}, stdout {done.stdout!r}, stderr {done.stderr!r}"
    if len(lines) != 1:
        return f"{len(lines)} lines in the log"
    said = json.loads(lines[0])
    if sorted(said) != ["level", "msg", "time"] or said["level"] != "error" or f"benchsand: {said['msg']}\n" != done.stderr:
        return f"log {said}"
    return ""


def settings(given, _, bundle):
    """/etc/benchsand/runtime.yaml chooses the delegate, if nobody but root can write it."""
    house = Path("/etc/benchsand")
    house.mkdir(exist_ok=True)
    for text, mode, owner, expected in (("delegate: runc\n", 0o644, 0, "runc"), ("delegate: crun\n", 0o600, 0, "crun"),
                                        ("delegate: runc\n", 0o666, 0, None), ("delegate: runc\n", 0o644, 1000, None),
                                        ("delegate: youki\n", 0o644, 0, None)):
        file = house / "runtime.yaml"
        file.write_text(text)
        os.chmod(file, mode)
        os.chown(file, owner, owner)
        done = call(given.passthrough, ["state", "c1"], {}, bundle)
        seen = [one["argv"][0] for one in recorded()]
        if seen != ([expected] if expected else []) or (done.returncode != 0) != (expected is None):
            return f"{text!r} with mode {mode:o} of {owner}: {seen}, status {done.returncode}, {done.stderr!r}"
    file.unlink()
    return ""


def other_names(given, _, bundle):
    """The program's name is the profile; an unknown one is no profile at all."""
    for name, words, status in (("benchsand", ["features"], 0), ("benchsand-python", ["features"], 0), ("benchsand-nosuch", ["features"], 1),
                                ("crun", ["features"], 1)):
        program = bundle / name
        shutil.copy(given.runtime, program)
        done = call(program, words, {"BENCHSAND_PROFILE": "python"}, bundle)
        program.unlink()
        if done.returncode != status or (status == 0) == bool(done.stderr):
            return f"{name}: status {done.returncode}, stderr {done.stderr!r}"
        profile = json.loads(done.stdout)["annotations"]["benchsand.profile"] if status == 0 else ""
        if status == 0 and profile != {"benchsand": "strict"}.get(name, name.removeprefix("benchsand-")):
            return f"{name}: profile {profile}"
    recorded()
    return ""


def over_etc(work):
    """A layer of the test's own over /etc, for the house's files."""
    (work / "etc").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(work / "etc")], check=True)
    for part in ("upper", "work"):
        (work / "etc" / part).mkdir()
    options = f"lowerdir=/etc,upperdir={work}/etc/upper,workdir={work}/etc/work"
    subprocess.run(["mount", "-t", "overlay", "-o", options, "overlay", "/etc"], check=True)


def inside(given):
    work = Path(tempfile.mkdtemp(prefix="benchsand-calls-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(PLACE)], check=True)
    for name in ("crun", "runc"):
        shutil.copy(given.recorder, PLACE / name)
    over_etc(work)
    given.passthrough = str(work / "benchsand-passthrough")
    shutil.copy(given.runtime, given.passthrough)
    bundle = work / "bundle"
    bundle.mkdir()
    tests = [(passes_through, name) for name in CALLS] + [(is_refused, name) for name in REFUSED] + [(settings, "settings"), (other_names, "names")]
    failed = 0
    for test, name in tests:
        if given.names and name not in given.names:
            continue
        problem = test(given, name, bundle)
        failed += bool(problem)
        if problem:
            print(f"FAIL {test.__name__} {name}: {problem}", flush=True)
    print(f"{len(tests)} calls, {failed} failed")
    subprocess.run(["umount", "/etc", str(work / "etc")], check=True)
    shutil.rmtree(work)
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser()
    for option in ("--runtime", "--recorder"):
        parser.add_argument(option, required=True, type=os.path.abspath)
    parser.add_argument("--inside", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: needs root")
        return 77
    if given.inside:
        return inside(given)
    return subprocess.run(["unshare", "-m", sys.executable, __file__, *sys.argv[1:], "--inside"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
