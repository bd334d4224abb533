#!/usr/bin/env python3
"""Every kind of place where an engine can be, with real daemons of this test's own: unix sockets, TCP, TLS, ssh, contexts.

usage: endpoints.py --caller ENGINE-VERSION [NAME...]
ENGINE-VERSION is tests/engines/engine_version.cc. Daemons, keys and sockets are in a temporary folder, networks and mounts in namespaces.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True

import engine as engines
from harness import Wrong

SSHD, SSH_CONFIG = "/usr/sbin/sshd", "/etc/ssh/ssh_config"
TLS_PORT, TCP_PORT, SSH_PORT = 2376, 8080, 2222
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Place:
    """The daemons, started when they are first asked for."""

    def __init__(self, caller):
        # Short, because sockets below it have to fit into 107 bytes.
        self.work = Path(tempfile.mkdtemp(prefix="bse-", dir="/tmp"))
        self.work.chmod(0o711)
        self.caller = shutil.copy(caller, self.work / "engine-version")
        for place in engines.FIXED_PLACES:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=711", "tmpfs", place], check=True)
        self.children, self.ready = [], {}

    def close(self):
        for child in reversed(self.children):
            child.terminate()
            child.wait(timeout=60)
        for mounted in (*engines.FIXED_PLACES, SSH_CONFIG, *engines.mounts_below(self.work)):
            subprocess.run(["umount", "--lazy", mounted], stderr=subprocess.DEVNULL)
        if "ssh" in self.ready and self.ready["ssh"]:
            os.rmdir("/run/sshd")
        shutil.rmtree(self.work)

    def start(self, command, ready):
        log = self.work / f"{Path(command[0]).name}-{len(self.children)}.log"
        with open(log, "wb") as output:
            child = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self.children.append(child)
        deadline = time.monotonic() + 60
        while not ready():
            if child.poll() is not None or time.monotonic() > deadline:
                raise Wrong(f"{command[0]} does not start: {log.read_text()[-2000:]}")
            time.sleep(0.05)
        return child

    def once(self, name, make):
        if name not in self.ready:
            self.ready[name] = make()
        return self.ready[name]

    def docker(self):
        """Its socket; it listens on TLS_PORT too."""
        return self.once("docker", self.start_docker)

    def start_docker(self):
        folder, pem = self.work / "docker", self.certificates()
        folder.mkdir(mode=0o711)
        (folder / "daemon.json").write_text("{}")
        socket = folder / "d.sock"
        self.start(["dockerd", "--config-file", folder / "daemon.json", "--data-root", folder / "data", "--exec-root", folder / "exec",
                    "--pidfile", folder / "d.pid", "--bridge", "none", "--iptables=false", "--host", f"unix://{socket}", "--host",
                    f"tcp://127.0.0.1:{TLS_PORT}", "--tlsverify", "--tlscacert", pem / "ca.pem", "--tlscert", pem / "server.pem", "--tlskey",
                    pem / "server-key.pem"], lambda: self.call("docker", DOCKER_HOST=f"unix://{socket}")[0] == 0)
        return socket

    def podman(self, address):
        return self.once(address, lambda: self.start_podman(address))

    def start_podman(self, address):
        folder = self.work / f"podman-{len(self.ready)}"
        folder.mkdir()
        self.start(["podman", "--root", folder / "root", "--runroot", folder / "run", "--tmpdir", folder / "tmp", "system", "service",
                    "--time", "0", address], lambda: self.call("podman", CONTAINER_HOST=address)[0] == 0)
        return address

    def certificates(self):
        return self.once("pem", self.make_certificates)

    def make_certificates(self):
        """An authority, the server's certificate for 127.0.0.1 alone, a client's; and another authority that nobody knows."""
        pem = self.work / "pem"
        pem.mkdir()

        def openssl(*words):
            subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, cwd=pem)
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
        for name in ("ca", "other"):
            openssl("req", "-x509", *key, "-subj", f"/CN=test {name}", "-keyout", f"{name}-key.pem", "-out", f"{name}.pem")
        for name, extensions in (("server", "subjectAltName=IP:127.0.0.1"), ("cert", "extendedKeyUsage=clientAuth")):
            openssl("req", "-x509", *key, "-subj", f"/CN=test {name}", "-addext", extensions, "-addext", "basicConstraints=critical,CA:FALSE",
                    "-CA", "ca.pem", "-CAkey", "ca-key.pem", "-keyout", f"{name}-key.pem", "-out", f"{name}.pem")
        (pem / "cert-key.pem").rename(pem / "key.pem")
        for name, files in (("unknown", ("other.pem ca.pem", "cert.pem cert.pem", "key.pem key.pem")), ("nobody", ("ca.pem ca.pem",))):
            (pem / name).mkdir()
            for source, target in (pair.split() for pair in files):
                shutil.copy(pem / source, pem / name / target)
        return pem

    def ssh(self):
        self.once("ssh", self.start_ssh)

    def start_ssh(self):
        folder = self.work / "ssh"
        folder.mkdir()
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        shutil.copy(folder / "user.pub", folder / "authorized")
        host = (folder / "host.pub").read_text()
        (folder / "known").write_text(f"[127.0.0.1]:{SSH_PORT} {host}")
        (folder / "sshd_config").write_text(f"ListenAddress 127.0.0.1:{SSH_PORT}\nHostKey {folder}/host\nPidFile {folder}/pid\n"
                                            f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\n"
                                            "PermitRootLogin prohibit-password\nAllowStreamLocalForwarding yes\n")
        (folder / "config").write_text(f"Host engine\n HostName 127.0.0.1\n Port {SSH_PORT}\n IdentityFile {folder}/user\n"
                                       f"Host *\n UserKnownHostsFile {folder}/known\n StrictHostKeyChecking yes\n")
        subprocess.run(["mount", "--bind", folder / "config", SSH_CONFIG], check=True)
        made = not os.path.isdir("/run/sshd")
        os.makedirs("/run/sshd", exist_ok=True)
        self.start([SSHD, "-D", "-e", "-f", folder / "sshd_config"],
                   lambda: "Server listening" in "".join(log.read_text() for log in self.work.glob("sshd-*.log")))
        return made

    def call(self, kind, *path, user=None, **environment):
        """(exit status, what it printed)"""
        done = subprocess.run([self.caller, kind, *path], env={"PATH": os.environ["PATH"], **{k: str(v) for k, v in environment.items()}},
                              capture_output=True, text=True, timeout=100, user=user, group=user, extra_groups=None if user is None else [])
        return done.returncode, done.stdout.strip() + done.stderr

    def works(self, kind, due, **environment):
        status, text = self.call(kind, **environment)
        versions = {"docker": "docker ", "podman": "podman "}
        if status != 0 or not text.startswith(versions[kind]) or not text.endswith(due):
            raise Wrong(f"expected {kind} …{due}, got {status}: {text}")

    def fails(self, kind, *parts, user=None, **environment):
        """The parts are those of the one line that is printed, in their order; the first is its beginning."""
        status, text = self.call(kind, user=user, **environment)
        at = 0
        for part in parts:
            found = text.find(part, at)
            if found < 0 or (at == 0 and found != 0):
                raise Wrong(f"expected {' … '.join(parts)}, got {status}: {text}")
            at = found + len(part)
        if status not in (2, 3) or "\n" in text:
            raise Wrong(f"expected one line and exit status 2 or 3, got {status}: {text}")


@case
def unix_sockets(place):
    docker = f"unix://{place.docker()}"
    place.works("docker", f"at {docker} (DOCKER_HOST)", DOCKER_HOST=docker)
    podman = place.podman(f"unix://{place.work}/p.sock")
    place.works("podman", f"at {podman} (CONTAINER_HOST)", CONTAINER_HOST=podman)
    place.fails("docker", f"{podman} (DOCKER_HOST) is Podman's API in Docker's manner, which has no place for a runtime (cure: --engine podman)",
                DOCKER_HOST=podman)
    place.fails("podman", f"ask {docker} (CONTAINER_HOST) for its version: it says: ", "(cure: --engine docker, if it is Docker)", CONTAINER_HOST=docker)
    place.fails("docker", f"GET /version at {docker} (DOCKER_HOST): Permission denied (cure: run it as root)", user=65534, DOCKER_HOST=docker)


@case
def tls(place):
    place.docker()
    pem, address = place.certificates(), f"tcp://127.0.0.1:{TLS_PORT}"
    start = f"GET /version at https://127.0.0.1:{TLS_PORT} (DOCKER_HOST): "
    place.works("docker", f"at https://127.0.0.1:{TLS_PORT} (DOCKER_HOST), not of this host", DOCKER_HOST=address, DOCKER_TLS_VERIFY="1",
                DOCKER_CERT_PATH=pem)
    place.works("docker", f"at https://127.0.0.1:{TLS_PORT} (DOCKER_HOST), not of this host", DOCKER_HOST="tcp://127.0.0.1", DOCKER_CERT_PATH=pem)
    place.fails("docker", start, "certificate", DOCKER_HOST=address, DOCKER_TLS_VERIFY="1", DOCKER_CERT_PATH=pem / "unknown")
    place.fails("docker", start, "certificate", DOCKER_HOST=address, DOCKER_TLS_VERIFY="1", DOCKER_CERT_PATH=pem / "nobody")
    place.fails("docker", f"GET /version at https://localhost:{TLS_PORT} (DOCKER_HOST): ", "localhost", DOCKER_HOST=f"tcp://localhost:{TLS_PORT}",
                DOCKER_TLS_VERIFY="1", DOCKER_CERT_PATH=pem)
    place.fails("docker", f"ask tcp://127.0.0.1:{TLS_PORT} (DOCKER_HOST) for its version: it says: Client sent an HTTP request to an HTTPS server (400) "
                "(cure: DOCKER_TLS_VERIFY=1, and DOCKER_CERT_PATH for the folder of the certificates)",
                DOCKER_HOST=address)


@case
def tcp(place):
    address = place.podman(f"tcp://127.0.0.1:{TCP_PORT}")
    place.works("podman", f"at {address} (CONTAINER_HOST), not of this host", CONTAINER_HOST=address)
    place.fails("docker", f"GET /version at https://127.0.0.1:{TCP_PORT} (DOCKER_HOST): ", "wrong version number", DOCKER_HOST=address,
                DOCKER_TLS_VERIFY="1", DOCKER_CERT_PATH=place.certificates())


@case
def contexts(place):
    """Made by Docker's own client."""
    socket, pem, config = place.docker(), place.certificates(), place.work / "client"
    config.mkdir()
    client = "/usr/bin/docker" if os.path.exists("/usr/bin/docker") else "docker"

    def docker(*words):
        subprocess.run([client, *words], check=True, capture_output=True, env={"PATH": os.environ["PATH"], "DOCKER_CONFIG": str(config)})
    docker("context", "create", "here", "--docker", f"host=unix://{socket}")
    docker("context", "create", "lab", "--docker", f"host=tcp://127.0.0.1:{TLS_PORT},ca={pem}/ca.pem,cert={pem}/cert.pem,key={pem}/key.pem")
    docker("context", "create", "blind", "--docker", f"host=tcp://localhost:{TLS_PORT},cert={pem}/cert.pem,key={pem}/key.pem,skip-tls-verify=true")
    place.works("docker", f"at unix://{socket} (the docker context 'here')", DOCKER_CONFIG=config, DOCKER_CONTEXT="here")
    place.works("docker", "(the docker context 'blind'), not of this host", DOCKER_CONFIG=config, DOCKER_CONTEXT="blind")
    docker("context", "use", "lab")
    place.works("docker", f"at https://127.0.0.1:{TLS_PORT} (the docker context 'lab'), not of this host", DOCKER_CONFIG=config)


@case
def ssh(place):
    place.ssh()
    socket, key = place.docker(), place.work / "ssh" / "user"
    place.works("docker", f"at ssh://engine{socket} (DOCKER_HOST), not of this host", DOCKER_HOST=f"ssh://engine{socket}")
    podman = place.podman(f"unix://{place.work}/p.sock").removeprefix("unix://")
    address = f"ssh://root@127.0.0.1:{SSH_PORT}{podman}"
    place.works("podman", f"at {address} (CONTAINER_HOST), not of this host", CONTAINER_HOST=address, CONTAINER_SSHKEY=key)
    place.fails("docker", "ssh://127.0.0.1:1/var/run/docker.sock (DOCKER_HOST): ssh says: ssh: connect to host 127.0.0.1 port 1: Connection refused",
                DOCKER_HOST="ssh://127.0.0.1:1")
    place.fails("podman", f"ssh://no-such-user@127.0.0.1:{SSH_PORT}{podman} (CONTAINER_HOST): ssh says: ", "Permission denied",
                CONTAINER_HOST=f"ssh://no-such-user@127.0.0.1:{SSH_PORT}{podman}", CONTAINER_SSHKEY=key)
    place.fails("docker", f"ssh://localhost:{SSH_PORT}/var/run/docker.sock (DOCKER_HOST): ssh says: ", "Host key verification failed",
                DOCKER_HOST=f"ssh://localhost:{SSH_PORT}")
    place.fails("docker", f"GET /version at ssh://engine{place.work}/none (DOCKER_HOST): ", " (ssh says: ", "open failed",
                DOCKER_HOST=f"ssh://engine{place.work}/none")
    if ssh_children(place):
        raise Wrong(f"still there: {ssh_children(place)}")


def ssh_children(place):
    """Clients of ssh that forward a socket of this test's."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if words[0].endswith("ssh") and any(str(place.work) in word for word in words):
            found.append(pid)
    return found


@case
def killed_with_ssh(place):
    """Nothing is left of a caller that is killed while it waits."""
    place.ssh()
    socket = place.work / "fake.sock"
    fake = subprocess.Popen([sys.executable, Path(__file__).with_name("fake_engine.py"), "--socket", socket, "--fault", "no_answer@GET:/version"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    place.children.append(fake)
    fake.stdout.readline()
    caller = subprocess.Popen([place.caller, "docker"], env={"PATH": os.environ["PATH"], "DOCKER_HOST": f"ssh://engine{socket}"},
                              stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not ssh_children(place):
        if caller.poll() is not None or time.monotonic() > deadline:
            raise Wrong("the caller did not start ssh")
        time.sleep(0.02)
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    while ssh_children(place):
        if time.monotonic() > deadline:
            raise Wrong("ssh outlives its caller")
        time.sleep(0.02)


NEEDS = {"unix_sockets": ("dockerd", "podman"), "tls": ("dockerd", "openssl"), "tcp": ("podman", "openssl"),
         "contexts": ("dockerd", "docker", "openssl"), "ssh": ("dockerd", "podman", "openssl", SSHD), "killed_with_ssh": (SSHD,)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--caller", required=True)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if not os.path.exists(given.caller):
        parser.error(f"no {given.caller}")
    missing = {name: [program for program in NEEDS[name] if not shutil.which(program)] for name in given.names or CASES}
    if os.geteuid() != 0 or all(missing.values()):
        print("skipped: needs root, and dockerd, podman or sshd")
        return 77
    engines.enter()
    place = Place(given.caller)
    failed = 0
    try:
        for name, absent in missing.items():
            if absent:
                print(f"skipped {name}: no {' and no '.join(absent)}")
                continue
            try:
                CASES[name](place)
                print(f"ok   {name}", flush=True)
            except (Wrong, subprocess.SubprocessError) as error:
                failed += 1
                print(f"FAIL {name}: {error}", flush=True)
    finally:
        place.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
