"""Attempts to reach the network, with all layers up and with one taken down after the other: each layer is shown to refuse by
itself, to answer with its own errno, and to count exactly. runs.py has the scenarios."""

import os

from harness import Wrong, equal, refuse

TCP, UDP = 5, 3
PROBE = """
import errno, socket
def attempt(kind, host):
    try:
        with socket.socket(socket.AF_INET, kind) as s:
            s.connect((host, 53)) if kind == socket.SOCK_STREAM else s.sendto(b"out", (host, 53))
        return "sent"
    except OSError as error:
        return errno.errorcode[error.errno]
for i in range(1, 6): print(f"tcp{i}=" + attempt(socket.SOCK_STREAM, f"192.0.2.{i}"))
for i in range(1, 4): print(f"udp{i}=" + attempt(socket.SOCK_DGRAM, f"198.51.100.{i}"))
"""

# Walls taken down; the errno inside; what is counted as refused in the ledger; as sockets, connects, sends, and without a route.
LAYERS = [
    ((), "EACCES", TCP + UDP, (0, 0, 0, 0)),
    (("bpf-deny",), "EACCES", TCP + UDP, (0, 0, 0, 0)),
    (("seccomp-network",), "EPERM", 0, (TCP + UDP, 0, 0, 0)),
    (("seccomp-network", "bpf-deny"), "ENETUNREACH", 0, (TCP + UDP, TCP, UDP, TCP + UDP)),
]


def run_under(bench, down, task, profile):
    """As `benchsand run` does where nothing is taken down; else the record must say what was, and give no score for it."""
    if not down:
        return bench.run_task(task, profile).expect(0, "succeeded", "exited", exit_code=0)
    run = bench.run_relaxed(down, task, profile)
    verdict, end = run.record["verdict"], run.record["end"]
    equal("status, outcome, scored, tier, end", (run.status, verdict["outcome"], verdict["scored"], verdict["tier"], end["cause"], end["exit_code"]),
          (3, "refused", False, None, "exited", 0))
    equal("failures", [(f["wall"], f["expected"], f["observed"]) for f in verdict["failures"]],
          [("evidence", "no wall taken down for a test", ", ".join(down))])
    for name in down:
        if f"taken down for a test: {name}" not in run.record["policy"]["relaxations"]:
            raise Wrong(f"the record does not name {name} among the relaxations: {run.record['policy']['relaxations']}")
    return run


def counted(run):
    spent = {name: seen["observed"] for name, seen in run.record["evidence"]["spent"]["network"].items()}
    equal("packets and bytes on any link", [spent[name] for name in ("bpf_packets", "bpf_bytes", "egress_bytes")], [0, 0, 0])
    equal("IPv6", [spent[name] for name in ("bpf_ipv6_connects", "bpf_ipv6_sends")], [0, 0])
    return spent["bpf_sockets"], spent["bpf_ipv4_connects"], spent["bpf_ipv4_sends"], spent["ipv4_no_route"]


def ledger(run):
    """{(call, argument): (errno, count)} of the calls that use sockets."""
    return {(entry["call"], entry["argument"]): (entry["errno"], entry["count"])
            for entry in run.record["evidence"]["refusals"]["by_call"] if entry["call"] in ("socket", "connect", "sendto")}


def check_layers(bench, task, profile):
    for down, errno, refused, counts in LAYERS:
        run = run_under(bench, down, task, profile)
        said = run.said()
        equal(f"attempts without {down}", (sorted(said), set(said.values())),
              ([*(f"tcp{i + 1}" for i in range(TCP)), *(f"udp{i + 1}" for i in range(UDP))], {errno}))
        equal(f"ledger without {down}", ledger(run), {("socket", "AF_INET"): ("EACCES", refused)} if refused else {})
        equal(f"sockets, connects, sends, without a route; without {down}", counted(run), counts)


def check_families(bench):
    """AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_VSOCK, AF_ALG: all are the filter's to refuse, the first two BPF's too."""
    others = {"16": "AF_NETLINK", "17": "AF_PACKET", "38": "AF_ALG", "40": "AF_VSOCK"}
    ipv6 = os.path.exists("/proc/net/if_inet6")
    task = bench.write_task(bench.candidate("sockets"))
    for down, inet in [((), "EACCES"), (("seccomp-network",), "EPERM"), (("seccomp-network", "bpf-deny"), "ok")]:
        run = run_under(bench, down, task, "strict")
        said, claimed_open = run.said(), run.seen("established", "network", "open_families").split()
        inet6 = inet if ipv6 or not down else "EAFNOSUPPORT"
        equal(f"AF_UNIX, AF_INET, AF_INET6 without {down}", [said[family] for family in ("1", "2", "10")], ["ok", inet, inet6])
        equal(f"sockets at BPF without {down}", counted(run), (1 + ipv6 if down else 0, 0, 0, 0))
        if down and not {"2", "10"} | others.keys() <= set(claimed_open):
            raise Wrong(f"a filter without its network rules is said to let through only {claimed_open}")
        if not down:
            equal("families that the filter lets through", claimed_open, ["none"])
            equal("other families", {said[family] for family in others}, {"EACCES"})
            equal("ledger", ledger(run), {("socket", family): ("EACCES", 1) for family in ("AF_INET", "AF_INET6", *others.values())})


def profile_with(bench, counters):
    """A copy of strict that asks for these counters; its name."""
    text = (bench.profiles / "strict.yaml").read_text()
    line = next(line for line in text.splitlines() if line.startswith("egress_counters: "))
    (bench.profiles / "counters.yaml").write_text(text.replace(line, f"egress_counters: [{', '.join(counters)}]"))
    return "counters"


def check_missing(bench):
    """bpf(2) cannot attach here, as in a container without privileges; crun and runc attach theirs by another command."""
    bpf_call, link_create = 321, 28
    task = bench.write_task(["touch", "/output/ran"])
    for counters in (["sockets", "connects", "packets"], ["packets"], []):
        run = bench.run_task(task, profile_with(bench, counters), before_exec=refuse(bpf_call, first_argument=link_create))
        verdict = run.record["verdict"]
        missing = [f["observed"] for f in verdict["failures"] if f["wall"] == "network" and f["source"].startswith("BPF_PROG_QUERY")]
        # The filter around benchsand is inherited and breaks the wall syscalls, whatever the counters.
        equal(f"{counters}: status, scored, outputs", (run.status, verdict["scored"], run.record["outputs"]), (3, False, []))
        if not counters:
            equal("missing programs where no counter is asked for", missing, [])
            continue
        equal(f"{counters}: rules of the wall network that are broken by missing programs", len(missing), 1)
        for word in ("BPF_LINK_CREATE", "Operation not permitted", "CAP_BPF", "egress_counters"):
            if word not in missing[0]:
                raise Wrong(f"no word of {word} in {missing[0]}")
    without = {counter: f"egress_counters: without {counter}" for counter in ("sockets", "connects", "packets")}
    for counters in (["packets"], []):
        run = bench.run_task(task, profile_with(bench, counters)).expect(0, "succeeded", "exited")
        named = [text for text in run.record["policy"]["relaxations"] if text.startswith("egress_counters")]
        equal(f"relaxations with {counters}", named, [text for counter, text in without.items() if counter not in counters])
        equal(f"BPF counts with {counters}", sorted(name for name in run.record["evidence"]["spent"]["network"] if name.startswith("bpf")),
              ["bpf_bytes", "bpf_packets"] if counters else [])
