"""Between benchsand and a real engine: everything passes, but what a lie exchanges."""

import http.client
import http.server
import json
import os
import re
import socket
import socketserver
import threading


class Hang(Exception):
    """The request is read, and nothing is answered until the end of the test."""


class Cut(Exception):
    """An answer that ends in its middle, with the connection half-closed."""


class Upstream(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=300)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Request:
    def __init__(self, method, path):
        self.method, self.path = method, re.sub(r"^/v[0-9.]+(/libpod)?", "", path)

    def is_(self, method, path):
        return self.method == method and re.fullmatch(path, self.path.partition("?")[0]) is not None

    @property
    def creates(self):
        return self.is_("POST", "/containers/create")

    @property
    def starts(self):
        return self.is_("POST", "/containers/[^/]+/start")

    @property
    def inspects(self):
        return self.is_("GET", "/containers/[^/]+/json")

    @property
    def removes(self):
        return self.is_("DELETE", "/containers/[^/]+")


def honest(_, forward):
    return forward()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def address_string(self):
        return ""

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def forward(self, body):
        upstream = Upstream(self.server.engine)
        headers = {"Host": "localhost", "Content-Type": self.headers.get("Content-Type", "application/json")} if body else {"Host": "localhost"}
        upstream.request(self.command, self.path, body, headers)
        answer = upstream.getresponse()
        self.content_type = answer.getheader("Content-Type") or self.content_type
        content = answer.read()
        upstream.close()
        return answer.status, content

    def handle_any(self):
        body, self.content_type = self.body(), "application/json"
        self.close_connection = True
        try:
            status, content = self.server.lie(Request(self.command, self.path), lambda: self.forward(body))
        except Hang:
            self.server.ended.wait()
            return
        except Cut:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n\r\n{\"Id\": ")
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            return
        self.send_response(status)
        self.send_header("Content-Type", self.content_type)
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if status != 204:
            self.wfile.write(content)

    do_GET = do_POST = do_DELETE = do_HEAD = handle_any


class Proxy(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path, engine, lie):
        super().__init__(str(path), Handler)
        self.engine, self.lie, self.path, self.ended = engine, lie, str(path), threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, *_):
        pass  # benchsand has hung up

    def __exit__(self, *_):
        self.ended.set()
        self.shutdown()
        self.server_close()
        os.unlink(self.path)


def changed(content, change):
    document = json.loads(content)
    change(document)
    return json.dumps(document).encode()
