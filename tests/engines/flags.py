"""Every flag of an engine that could take a wall down: behind every wall all the same, or refused in one clear line."""

import contextlib
import json
import os
import re
import socket
from pathlib import Path

from harness import SOURCE, Wrong, between, equal

WALLS = ("network", "mounts", "rootfs", "output", "memory", "processes", "cpu-time", "wall-time", "stdio", "privileges",
         "syscalls", "namespaces", "teardown", "evidence")
ATTEMPTS = ("write:/created", "write:/etc/hosts", "open:/sys/fs/cgroup/cgroup.procs", "open:/sys/fs/cgroup/pids/cgroup.procs",
            "open:/proc/sys/kernel/core_pattern", "open:/proc/sysrq-trigger", "read:/proc/kcore", "read:/dev/mem", "read:/dev/vda")
REFUSED = {"EPERM", "EACCES", "EROFS", "ENOENT", "ENXIO", "ENOSYS", "ECONNREFUSED", "EBADF", "ENODEV", "nothing"}
DOCUMENT = SOURCE / "docs" / "engine-flags.md"


class Case:
    """One row: what it asks for in each client's words (None: the client has no such flag), and what is tried beside ATTEMPTS."""

    def __init__(self, title, docker, podman="as docker", containerd=None, attempts=(), written=None):
        self.title, self.attempts, self.written = title, attempts, written
        self.flags = {"docker": docker, "podman": docker if podman == "as docker" else podman, "containerd": containerd}


def bind(source, target, *options):
    return ["--mount", ",".join([f"type=bind,src={source},dst={target}", f"options={':'.join(['rbind', *options])}"])]


CASES = (
    Case("nothing", [], containerd=[]),
    Case("--privileged", ["--privileged"], containerd=["--privileged"]),
    Case("--network host", ["--network", "host"], containerd=["--net-host"]),
    Case("--network bridge", ["--network", "bridge"]),
    Case("--network none", ["--network", "none"]),
    Case("--pid host", ["--pid", "host"], containerd=["--with-ns", "pid:/proc/{self}/ns/pid"]),
    Case("--ipc host", ["--ipc", "host"], containerd=["--with-ns", "ipc:/proc/{self}/ns/ipc"]),
    Case("--uts host", ["--uts", "host"], containerd=["--with-ns", "uts:/proc/{self}/ns/uts"]),
    Case("--cgroupns host", ["--cgroupns", "host"]),
    Case("--userns host", ["--userns", "host"]),
    Case("--cgroup-parent /elsewhere", ["--cgroup-parent", "/{cgroup}-elsewhere"], containerd=["--cgroup", "/{cgroup}-elsewhere"]),
    Case("--cap-add ALL", ["--cap-add", "ALL"], containerd=["--cap-add", "CAP_SYS_ADMIN"]),
    Case("--security-opt seccomp=unconfined", ["--security-opt", "seccomp=unconfined"]),
    Case("--security-opt apparmor=unconfined", ["--security-opt", "apparmor=unconfined"]),
    Case("--security-opt no-new-privileges=false", ["--security-opt", "no-new-privileges=false"], containerd=["--allow-new-privs"]),
    Case("--security-opt systempaths=unconfined", ["--security-opt", "systempaths=unconfined"], ["--security-opt", "unmask=ALL"]),
    Case("--device", ["--device", "/dev/null:/dev/other"], containerd=["--device", "/dev/null"]),
    Case("--device-cgroup-rule", ["--device-cgroup-rule", "a *:* rwm"]),
    Case("-v /:/host", ["-v", "/:/host"], containerd=bind("/", "/host", "rw"), attempts=("write:/host{given}/there", "unix:/host{given}/socket")),
    Case("-v /:/host:ro", ["-v", "/:/host:ro"], containerd=bind("/", "/host", "ro"), attempts=("write:/host{given}/there", "unix:/host{given}/socket")),
    Case("-v the engine's socket", ["-v", "{given}/socket:/run/docker.sock"], containerd=bind("{given}/socket", "/run/docker.sock", "rw"),
         attempts=("unix:/run/docker.sock",)),
    Case("-v DIR:/output", ["-v", "{given}:/output"], containerd=bind("{given}", "/output", "rw"), attempts=("unix:/output/socket",), written="/output/there"),
    Case("-v DIR:/made (not in the image)", ["-v", "{given}:/made"], containerd=bind("{given}", "/made", "rw"), attempts=("unix:/made/socket",), written="/made/there"),
    Case("-v DIR:/data:ro", ["-v", "{given}:/data:ro"], containerd=bind("{given}", "/data", "ro"), attempts=("write:/data/there", "unix:/data/socket")),
    Case("two writable mounts", ["-v", "{given}:/data", "-v", "{second}:/output"],
         containerd=[*bind("{given}", "/data", "rw"), *bind("{second}", "/output", "rw")], attempts=("write:/data/there", "write:/output/there")),
    Case("--tmpfs /scratch", ["--tmpfs", "/scratch"], containerd=["--mount", "type=tmpfs,src=tmpfs,dst=/scratch,options=rw"]),
    Case("-v /volume (anonymous)", ["-v", "/volume"], attempts=("write:/volume/there",)),
    Case("-v NAME:/volume", ["-v", "{token}:/volume"]),
    Case("--read-only", ["--read-only"], containerd=["--read-only"]),
    Case("--shm-size 1g", ["--shm-size", "1g"]),
    Case("--memory 128m --memory-swap -1", ["--memory", "128m", "--memory-swap", "-1"], containerd=["--memory-limit", "134217728"]),
    Case("--memory 1000g", ["--memory", "1000g"], containerd=["--memory-limit", "1073741824000"]),
    Case("--pids-limit -1", ["--pids-limit", "-1"]),
    Case("--cpus 2", ["--cpus", "2"], containerd=["--cpus", "2"]),
    Case("--oom-score-adj -1000", ["--oom-score-adj", "-1000"]),
    Case("--oom-kill-disable", ["--oom-kill-disable"]),
    Case("--ulimit nofile=1048576", ["--ulimit", "nofile=1048576:1048576"]),
    Case("--ulimit core=-1", ["--ulimit", "core=-1"]),
    Case("--sysctl", ["--sysctl", "net.ipv4.ip_unprivileged_port_start=0"]),
    Case("--user 0", ["--user", "0"]),
    Case("--user 1000:1000", ["--user", "1000:1000"]),
    Case("--group-add 0", ["--group-add", "0"]),
    Case("--hostname, --dns, --add-host", ["--hostname", "other", "--dns", "192.0.2.1", "--add-host", "there:192.0.2.2"]),
    Case("--init", ["--init"]),
    Case("--annotation run.oci.handler=wasm", None, ["--annotation", "run.oci.handler=wasm"], ["--annotation", "run.oci.handler=wasm"]),
    Case("--env LISTEN_FDS=1", ["--env", "LISTEN_FDS=1"], containerd=["--env", "LISTEN_FDS=1"]),
)
SOME = ("--privileged", "--network host", "-v DIR:/output", "--tmpfs /scratch", "--user 0", "--init")


@contextlib.contextmanager
def given_folders(stage):
    """Two folders of the host's, one with a file and a socket that somebody answers."""
    given, second = stage.work / "given", stage.work / "second"
    for folder in (given, second):
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)
    (given / "there").write_text("there\n")
    (given / "there").chmod(0o666)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(given / "socket"))
    os.chmod(given / "socket", 0o777)
    listener.listen(64)
    try:
        yield {"given": str(given), "second": str(second), "self": str(os.getpid())}
    finally:
        listener.close()
        for path in (*given.iterdir(), *second.iterdir()):
            path.unlink()
        given.rmdir()
        second.rmdir()


def said(text):
    return dict(line.strip().rsplit("=", 1) for line in text.splitlines() if "=" in line)


def behind_every_wall(results, allowed=()):
    """The words of an intruder that got nowhere."""
    words = dict(results)
    equal("the intruder's last word", words.pop("end", None), "reached")
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        equal(name, int(words.pop(name), 16), 0)
    equal("no_new_privs, seccomp, groups", (words.pop("NoNewPrivs"), words.pop("Seccomp"), words.pop("Groups")), ("1", "2", ""))
    if set(words.pop("Uid")) == {"0"}:
        raise Wrong("the intruder was root")
    equal("links", words.pop("links"), "lo,")
    equal("processes of the host", words.pop("strangers"), "0")
    got = {name: result for name, result in words.items() if result not in REFUSED and name not in allowed}
    equal("attempts that succeeded", got, {})


def expect_record(bench, identity, outcome, cause, **end):
    """The record of a container that is scored; the program prints it again and agrees."""
    record = bench.record(identity)
    verdict = record["verdict"]
    if not verdict["scored"]:
        raise Wrong(f"not scored, {verdict['outcome']}, {record.get('fault', '')}: {json.dumps(verdict['failures'])}")
    equal("outcome, cause", (verdict["outcome"], record["end"]["cause"]), (outcome, cause))
    for key, value in end.items():
        equal(key, record["end"][key], value)
    return record


def not_scored(bench, identity):
    """There is a record, and it says so."""
    record = bench.record(identity)
    equal("scored", record["verdict"]["scored"], False)
    return record


REFUSAL = re.compile(r"benchsand refuses this container: (wall .*\(cure: .*\))")


def refusal(done):
    """What benchsand said, in one line, in what a client said: each wall with its cure."""
    found = REFUSAL.findall(done.stderr)
    if len(found) != 1:
        raise Wrong(f"neither ran nor was refused in one line: {done}")
    for part in re.split(r"; (?=wall )", found[0]):
        named = re.match(r"wall ([a-z-]+): \S.*\(cure: \S.*\)$", part)
        if not named or named[1] not in WALLS:
            raise Wrong(f"a refusal without wall or cure: {part!r}")
    return found[0]


def plain_text(line, places):
    """A refusal without what differs from run to run."""
    line = line.replace('\\"', '"')
    if places["id"]:
        line = line.replace(places["id"], "ID").replace(f'"{places["id"][:12]}"', '"ID"')
    for name, word in (("given", "DIR"), ("second", "DIR2"), ("cgroup", "CGROUP"), ("token", "NAME")):
        line = line.replace(places[name], word)
    line = re.sub(r"netns-[0-9a-f-]+", "NETNS", line)
    # Podman's order of mounts is by chance.
    return re.sub(r'"[^"]*"(?:, "[^"]*")+', lambda match: ", ".join(sorted(match[0].split(", "))), line)


def edits_of(record, places):
    """What was changed of what the engine asked for; numbers of list entries differ between engines' versions."""
    return {(re.sub(r"/\d+(?=/|$)", "/*", edit["field"]), plain_text(edit["from"], places), plain_text(edit["to"], places))
            for edit in record["admission"]["edits"]}


def refused(bench, done, places):
    """Nothing ran; the client's user is told once, and the record says the same."""
    if done.status == 0:
        raise Wrong(f"said nothing: {done}")
    line = refusal(done)
    equal("written", (Path(places["given"]) / "there").read_text(), "there\n")
    record = not_scored(bench, done.id)
    equal("outcome of a refusal", record["verdict"]["outcome"], "refused")
    told = [f"wall {entry['wall']}: {entry['what']} (cure: {entry['cure']})" for entry in record["admission"]["refusals"]]
    equal("refusals in the record", len(told), len(re.findall(r"wall [a-z-]+: ", line)))
    return "refused: " + plain_text(line, places)


def outcome_of(bench, case):
    """'behind every wall' or the refusal, and the edits; anything else is Wrong."""
    engine = bench.engine
    with given_folders(bench.stage) as places:
        places |= {"token": bench.stage.token, "cgroup": engine.cgroup}
        flags = [flag.format(**places) for flag in case.flags[engine.name]]
        attempts = [attempt.format(**places) for attempt in (*ATTEMPTS, *case.attempts)]
        written = [f"write:{case.written}"] if case.written else []
        done = engine.run("benchsand", flags, "tiny", "/bin/intruder", *attempts, *written)
        places["id"] = done.id
        try:
            if "links=" not in done.stdout:
                return refused(bench, done, places), set()
            equal("exit status", (done.status, done.stderr), (0, done.stderr))
            behind_every_wall(said(done.stdout), written)
            record = expect_record(bench, done.id, "succeeded", "exited", exit_code=0)
            written_back = "there\nintruder\n" if written else "there\n"
            equal("the host's file", (Path(places["given"]) / "there").read_text(), written_back)
            return "behind every wall", edits_of(record, places)
        finally:
            bench.forget(done, maybe=True)


def table(version, name, outcomes):
    usual = outcomes["nothing"][1]
    lines = [f"## {name}", "", f"With {version}.", "", "| asked for | becomes | changed, beyond what is changed of a plain run |", "|---|---|---|"]
    for title, (outcome, edits) in outcomes.items():
        fields = ", ".join(f"`{field}`" for field in sorted({field for field, _, _ in edits - usual})) if edits else ""
        lines.append(f"| `{title}` | {outcome} | {fields} |".replace("  |", " |"))
    return "\n".join(lines) + "\n"


def comparable(section, version):
    """What other versions of an engine do not change: what each flag becomes, though not in which field it was asked for."""
    rows = [line.split(" | ") for line in (section or "").splitlines() if line.startswith("| `")]
    return rows if f"With {version}.\n" in (section or "") else [row[:2] for row in rows]


def sections(text):
    parts = re.split(r"(?m)^(?=## )", text)
    return {part.split("\n", 1)[0][3:]: part.rstrip("\n") + "\n" for part in parts[1:]}


HEAD = """# What an engine's flags become

Written by the tests of `tests/engines`, which try each with a program that attacks every wall, and read the record. *Behind every wall*: the container
ran, scored, and the flag had loosened nothing. *Refused*: nothing ran, and this is what the engine's client shows. Every change is in
the record, too, under `admission`.

"""


def flags_leave_every_wall(bench):
    """Every case; the results are docs/engine-flags.md."""
    outcomes, wrong = {}, []
    # What is admitted does not depend on the delegate, and podman takes most of a second for each.
    some = bench.titles or (SOME if bench.engine.name == "podman" and bench.delegate == "runc" else None)
    for case in CASES:
        if case.flags[bench.engine.name] is None or (some and case.title not in ["nothing", *some]):
            continue
        try:
            outcomes[case.title] = outcome_of(bench, case)
        except (Wrong, KeyError, ValueError, OSError) as error:
            wrong.append(f"{case.title}: {type(error).__name__} {error}")
    if wrong:
        raise Wrong(f"{len(wrong)} of {len(CASES)}:\n    " + "\n    ".join(wrong))
    tables = sections(DOCUMENT.read_text()) if DOCUMENT.exists() else {}
    name, version = bench.engine.name, bench.engine.version()
    written = table(version, name, outcomes)
    if bench.write_docs and not some:
        tables[name] = written
        DOCUMENT.write_text(HEAD + "\n".join(tables[engine] for engine in sorted(tables)))
    elif not some:
        known = tables.get(name)
        same = known is not None and f"With {version}.\n" in known
        here, there = (comparable(section, version if same else "another") for section in (written, known))
        equal(f"rows of docs/engine-flags.md, {name} (--write-docs writes it)", [row for row in here if row not in there], [])
        equal("rows of that page", len(there), len(here))


def attempts_succeed_without_walls(bench):
    """The control: the same program under the delegate alone gets through, so that its failures mean something."""
    # Not --privileged: docker asks for every capability then, and this machine's root may not have them all.
    added = ("SYS_ADMIN", "NET_ADMIN", "NET_RAW", "MKNOD")
    flags = {"docker": [*(f"--cap-add={name}" for name in added), "--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined",
                        "--security-opt", "systempaths=unconfined", "--network", "host", "--pid", "host", "-v", "{given}:/given"],
             "podman": ["--privileged", "--network", "host", "--pid", "host", "-v", "{given}:/given"],
             "containerd": [*(f"--cap-add=CAP_{name}" for name in added), "--net-host", "--with-ns", "pid:/proc/{self}/ns/pid",
                            *bind("{given}", "/given", "rw")]}
    attempts = ["write:/created", "write:/given/there", "unix:/given/socket"]
    if bench.engine.name != "containerd":  # ctr always write-protects it
        attempts.append("open:/proc/sys/kernel/core_pattern")
    with given_folders(bench.stage) as places:
        wanted = [flag.format(**places) for flag in flags[bench.engine.name]]
        done = bench.engine.run("plain-crun", wanted, "tiny", "/bin/intruder", *attempts)
        try:
            words = said(done.stdout)
            equal(f"the intruder's last word, {done}", words.get("end"), "reached")
            failed = {name for name, result in words.items() if result in REFUSED}
            equal(f"attempts that failed without walls, {done}", failed, set())
            between("processes of the host", int(words["strangers"]), 1, 1000)
            equal("the host's links are seen", "outside" in words["links"], True)
            equal("CAP_SYS_ADMIN", int(words["CapEff"], 16) >> 21 & 1, 1)
            equal("written", (Path(places["given"]) / "there").read_text(), "there\nintruder\n")
        finally:
            bench.forget(done)
