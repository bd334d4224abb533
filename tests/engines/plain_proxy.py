"""Between `benchsand run --without-shim` and a real engine, for plain.py."""

import http.client
import http.server
import json
import os
import socket
import socketserver
import threading


class Upstream(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Proxy:
    """Between benchsand and the engine: `asks` changes the body of a request, `answers` that of an answer, by method and path."""

    def __init__(self, path, engine, asks=None, answers=None):
        self.calls = calls = []
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            address_string = log_message = lambda *_: ""

            def handle_any(self):
                calls.append((self.command, self.path))
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if body and asks and self.headers.get("Content-Type", "").startswith("application/json"):
                    body = json.dumps(asks(self.command, self.path, json.loads(body))).encode()
                upstream = Upstream(engine)
                upstream.request(self.command, self.path, body, {"Host": "localhost", "Content-Type": "application/json"} if body else {"Host": "localhost"})
                answer = upstream.getresponse()
                content = answer.read()
                if answers and content and "json" in (answer.getheader("Content-Type") or ""):
                    content = json.dumps(answers(self.command, self.path, json.loads(content))).encode()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                        self.send_header(name, value)
                if answer.status != 204:
                    self.send_header("Content-Length", str(len(content)))
                try:
                    self.end_headers()
                    self.wfile.write(content)
                except BrokenPipeError:
                    pass  # benchsand was told to stop

            do_GET = do_POST = do_DELETE = do_HEAD = handle_any

        class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            daemon_threads = True

        self.server = Server(path, Handler)
        self.address = f"unix://{path}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        os.unlink(self.server.server_address)
