#!/usr/bin/env python3
"""An engine's API that misbehaves in named ways, on a unix socket or on TCP. Bytes are written by hand: a server of a library
would not let half of these happen.

usage: fake_engine.py --socket PATH | --port 0 [--fault NAME@METHOD:REGEX]...

Prints `ready` (and the port) once it listens; ends with its standard input, or when told to. GET /fault/NAME misbehaves as FAULTS[NAME]; --fault
puts that in the place of an answer whose method and whole path match. An endpoint is a function of (connection, request) in
ENDPOINTS; another engine is made by adding to a copy of that list: see FakeEngine.
"""

import argparse
import json
import os
import re
import socket
import struct
import sys
import threading
import time
from urllib.parse import parse_qs, unquote, urlsplit

REASONS = {100: "Continue", 101: "UPGRADED", 200: "OK", 201: "Created", 204: "No Content", 302: "Found", 304: "Not Modified",
           400: "Bad Request", 404: "Not Found", 409: "Conflict", 500: "Internal Server Error"}


class Gone(Exception):
    """The other side closed the connection, or this one has."""


class Request:
    def __init__(self, method, target, headers):
        self.method, self.target, self.headers = method, target, headers
        split = urlsplit(target)
        self.path, self.query = split.path, {key: values[-1] for key, values in parse_qs(split.query).items()}
        self.body = b""

    def json(self):
        return json.loads(self.body)


class Connection:
    """One connection: `raw` sends bytes as they are, `answer` a whole answer as an engine does."""

    def __init__(self, sock):
        self.sock, self.reader = sock, sock.makefile("rb")

    def raw(self, data):
        try:
            self.sock.sendall(data.encode() if isinstance(data, str) else data)
        except OSError as error:
            raise Gone from error

    def head(self, status, *headers):
        self.raw(f"HTTP/1.1 {status} {REASONS[status]}\r\n" + "".join(f"{header}\r\n" for header in headers) + "\r\n")

    def answer(self, status=200, body=None, kind="application/json"):
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        if status == 204:
            return self.head(status)
        self.head(status, f"Content-Type: {kind}", f"Content-Length: {len(data)}")
        self.raw(data)

    def chunk(self, data):
        self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    def close(self):
        raise Gone

    def wait(self):
        """Says nothing more until the other side is gone."""
        while self.reader.read1(65536):
            pass
        raise Gone

    def request(self):
        line = self.reader.readline(65536).decode("latin-1")
        if not line:
            raise Gone
        method, target, _ = line.split(" ", 2)
        headers = {}
        while (line := self.reader.readline(65536).decode("latin-1").strip()):
            name, value = line.split(":", 1)
            headers[name.strip().lower()] = value.strip()
        return Request(method, target, headers)

    def body(self, request):
        """The parts of the request's body as they come."""
        if request.headers.get("transfer-encoding", "").lower() == "chunked":
            while (size := int(self.reader.readline(100) or b"0", 16)):
                yield self.reader.read(size)
                self.reader.readline(2)
            self.reader.readline(2)
        else:
            yield self.reader.read(int(request.headers.get("content-length", 0)))


# What goes wrong. Each is one answer; what does not close or wait leaves the connection for the next call.

FAULTS = {}


def fault(function):
    FAULTS[function.__name__] = function
    return function


@fault
def late(c, request):
    time.sleep(float(request.query.get("after", 0.2)))
    c.answer(200, {"late": True})


@fault
def no_answer(c, _):
    c.wait()


@fault
def closed(c, _):
    c.close()


@fault
def half_closed(c, _):
    """It will say nothing more, but still listens."""
    c.sock.shutdown(socket.SHUT_WR)
    c.wait()


@fault
def broken_in_the_head(c, _):
    c.raw("HTTP/1.1 200 OK\r\nContent-Ty")
    c.close()


@fault
def broken_after_the_length(c, _):
    c.raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 0\r\n")
    c.close()


@fault
def reset(c, _):
    """On TCP."""
    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    c.raw("HTTP/1.1 200 OK\r\n")
    c.close()


@fault
def error_json(c, _):
    c.answer(500, {"message": "the disk is full."})


@fault
def error_podman(c, _):
    c.answer(404, {"cause": "no such container", "message": "looking up \"x\"", "response": 404})


@fault
def error_text(c, _):
    c.answer(500, b"<h1>oh\x1b[2J no</h1>\n", "text/html")


@fault
def error_empty(c, _):
    c.answer(500)


@fault
def garbage(c, _):
    c.raw(b"\x00\x16\x03\x01 SSH-2.0 220 hello\r\n\r\n")
    c.close()


@fault
def not_even_a_head(c, _):
    c.raw('{"ID": "1"}\n')
    c.close()


@fault
def status_of_letters(c, _):
    c.raw("HTTP/1.1 abc OK\r\nContent-Length: 2\r\n\r\n{}")
    c.close()


@fault
def length_too_long(c, _):
    c.head(200, "Content-Type: application/json", "Content-Length: 100")
    c.raw('{"Id": "1"}')
    c.close()


@fault
def length_too_long_and_waits(c, _):
    c.head(200, "Content-Type: application/json", "Content-Length: 100")
    c.raw('{"Id": "1"}')
    c.wait()


@fault
def length_too_short(c, _):
    c.head(200, "Content-Type: application/json", "Content-Length: 5")
    c.raw('{"Id": "1"}')


@fault
def length_negative(c, _):
    c.head(200, "Content-Type: application/json", "Content-Length: -1")
    c.raw("{}")
    c.close()


@fault
def no_length(c, _):
    c.head(200, "Content-Type: application/json")
    c.raw("{}")
    c.close()


@fault
def huge(c, _):
    c.head(200, "Content-Type: application/json", "Content-Length: 1000000000000")
    while True:
        c.raw(b" " * 65536)


@fault
def huge_chunked(c, _):
    c.head(200, "Content-Type: application/json", "Transfer-Encoding: chunked")
    while True:
        c.chunk(b" " * 65536)


@fault
def endless_head(c, _):
    c.raw("HTTP/1.1 200 OK\r\n")
    while True:
        c.raw("X-Header: value\r\n" * 100)


@fault
def endless_header(c, _):
    c.raw("HTTP/1.1 200 OK\r\nX-Header: ")
    while True:
        c.raw("x" * 10000)


@fault
def endless_continue(c, _):
    while True:
        c.raw("HTTP/1.1 100 Continue\r\n\r\n" * 100)


@fault
def trickle(c, _):
    c.head(200, "Content-Type: application/json", "Content-Length: 1000000")
    while True:
        c.raw(" ")
        time.sleep(0.02)


@fault
def wrong_type(c, _):
    c.answer(200, {"ApiVersion": "1.41", "Version": "20.10.24"}, "text/html; charset=utf-8")


@fault
def no_json(c, _):
    c.answer(200, b'{"ApiVersion": "1.41", "Versi')


@fault
def key_twice(c, _):
    c.answer(200, b'{"ApiVersion": "1.41", "ApiVersion": "1.40", "Version": "1"}')


@fault
def chunk_cut(c, _):
    c.head(200, "Content-Type: application/json", "Transfer-Encoding: chunked")
    c.raw("100\r\n{}")
    c.close()


@fault
def last_chunk_missing(c, _):
    c.head(200, "Content-Type: application/json", "Transfer-Encoding: chunked")
    c.chunk(b"{}")
    c.close()


@fault
def chunk_garbage(c, _):
    c.head(200, "Content-Type: application/json", "Transfer-Encoding: chunked")
    c.raw("zz\r\n{}\r\n0\r\n\r\n")
    c.close()


@fault
def redirect(c, _):
    c.raw("HTTP/1.1 302 Found\r\nLocation: /version\r\nContent-Length: 0\r\n\r\n")


@fault
def upgraded_unasked(c, _):
    c.head(101, "Connection: Upgrade", "Upgrade: tcp")
    c.raw("{}")
    c.wait()


@fault
def stream_then_silence(c, _):
    c.head(200, "Content-Type: application/octet-stream", "Transfer-Encoding: chunked")
    c.chunk(b"one ")
    c.chunk(b"two")
    c.wait()


# What is right.

def version(c, _):
    c.answer(200, {"Platform": {"Name": "Fake"}, "Components": [{"Name": "Engine", "Version": "20.10.24", "Details": {}}],
                   "Version": "20.10.24", "ApiVersion": "1.41", "MinAPIVersion": "1.12"})


def podman_version(c, _):
    details = {"APIVersion": "4.3.1", "MinAPIVersion": "4.0.0"}
    c.answer(200, {"Components": [{"Name": "Podman Engine", "Version": "4.3.1", "Details": details},
                                  {"Name": "Conmon", "Version": "2.1.6", "Details": {}}],
                   "Version": "4.3.1", "ApiVersion": "1.41", "MinAPIVersion": "1.24"})


def stream(c, _):
    """A body of 1 MiB in chunks of many sizes."""
    c.head(200, "Content-Type: application/octet-stream", "Transfer-Encoding: chunked")
    left, size = 1 << 20, 1
    while left:
        size = min(left, size * 3 % 65521 + 1)
        c.chunk(b"x" * size)
        left -= size
    c.raw("0\r\n\r\n")


def upload(c, request):
    c.answer(200, {"bytes": sum(len(part) for part in c.body(request)), "coding": request.headers.get("transfer-encoding", ""),
                   "type": request.headers.get("content-type", "")})


def upload_refused(c, _):
    c.answer(500, {"message": "the disk is full"})
    c.close()


def echo(c, request):
    """How it was called."""
    c.answer(200, {"method": request.method, "target": request.target, "headers": request.headers, "body": request.body.decode()})


def hijack(status, *headers):
    """What comes with the head, then what is said to it, and the end when the other side ends."""
    def answer(c, _):
        c.raw(f"HTTP/1.1 {status} {REASONS[status]}\r\n" + "".join(f"{header}\r\n" for header in headers) + "\r\nbegun ")
        while (data := c.reader.read1(65536)):
            c.raw(data)
        c.close()
    return answer


RAW = "Content-Type: application/vnd.docker.raw-stream"
ENDPOINTS = [
    ("GET", "/version", version),
    ("GET", "/v4.0.0/libpod/version", podman_version),
    ("GET", "(/v[0-9.]+)?(/libpod)?/_ping", lambda c, _: c.answer(200, b"OK", "text/plain")),
    ("GET", "/stream", stream),
    ("POST|PUT", "/upload", upload),
    ("POST|PUT", "/upload/refused", upload_refused),
    (".*", "/echo.*", echo),
    ("POST", "/hijack/101", hijack(101, RAW, "Connection: Upgrade", "Upgrade: tcp")),
    ("POST", "/hijack/200", hijack(200, RAW)),
    ("POST", "/hijack/404", lambda c, _: c.answer(404, {"message": "No such container: x"})),
    ("POST", "/hijack/document", lambda c, _: c.answer(200, {})),
    ("POST", "/hijack/(.*)", lambda c, request: FAULTS[request.path.split("/")[2]](c, request)),
    (".*", "/fault/(.*)", lambda c, request: FAULTS[request.path.split("/")[2]](c, request)),
]
STREAMED = ("/upload", "/hijack/")  # these read what comes after the head themselves


class FakeEngine:
    """`endpoints` are asked first to last, before ENDPOINTS; `faults` (METHOD, REGEX, NAME) before them all."""

    def __init__(self, endpoints=(), faults=()):
        self.calls = []
        self.endpoints = [(method, path, FAULTS[name]) for method, path, name in faults] + [*endpoints, *ENDPOINTS]
        self.endpoints.append(("GET", "/calls", lambda c, _: c.answer(200, self.calls)))

    def endpoint(self, request):
        for method, path, function in self.endpoints:
            if re.fullmatch(method, request.method) and re.fullmatch(path, unquote(request.path)):
                return function
        return lambda c, _: c.answer(404, {"message": "page not found"})

    def serve(self, sock):
        with sock:
            c = Connection(sock)
            try:
                while True:
                    request = c.request()
                    self.calls.append(f"{request.method} {request.path}")
                    if not request.path.startswith(STREAMED):
                        request.body = b"".join(c.body(request))
                    self.endpoint(request)(c, request)
            except (Gone, ValueError, OSError):
                pass

    def listen(self, listener):
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket")
    parser.add_argument("--port", type=int)
    parser.add_argument("--fault", action="append", default=[])
    options = parser.parse_args()
    faults = []
    for text in options.fault:
        name, _, place = text.partition("@")
        method, _, path = place.partition(":")
        faults.append((method, path, name))
    if options.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(options.socket)
    else:
        listener = socket.create_server(("127.0.0.1", options.port))
    listener.listen(100)
    threading.Thread(target=FakeEngine(faults=faults).listen, args=(listener,), daemon=True).start()
    print("ready", *([] if options.socket else [listener.getsockname()[1]]), flush=True)
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
