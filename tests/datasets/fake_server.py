"""A server on loopback that answers 404, lies, cuts, stalls, floods, drips, and behaves."""

import contextlib
import hashlib
import socket
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.datasets.fake_sources import packed, write_tar
from tigra.datasets.sources import SOURCES, SourceFile


class Handler(BaseHTTPRequestHandler):
    """The first part of the path says how to behave, the last one which file is meant."""

    def do_GET(self):
        _, manner, *_, name = self.path.split("/")
        self.server.requests.append((manner, name))
        with contextlib.suppress(ConnectionError):
            getattr(self, manner)(self.server.files.get(name, b""))

    def start(self, length=None, status=200, **headers):
        self.send_response(status)
        for key, value in (headers | ({} if length is None else {"Content-Length": str(length)})).items():
            self.send_header(key, value)
        self.end_headers()

    def good(self, content):
        self.start(len(content))
        self.wfile.write(content)

    def missing(self, content):
        self.start(9, 404)
        self.wfile.write(b"not found")

    def wrong(self, content):
        self.good(bytes(len(content)))

    def short(self, content):
        self.good(content[: len(content) // 2])

    def page(self, content):
        self.good(b"<html>Please log in to the network of this hotel.</html>")

    def cut(self, content):
        self.start(len(content))
        self.wfile.write(content[: len(content) // 2])

    def cut_unseen(self, content):
        self.start()  # no length: the end of the connection is the end of the file
        self.wfile.write(content[: len(content) // 2])

    def hang_up(self, content):
        self.connection.shutdown(socket.SHUT_RDWR)

    def stall(self, content):
        self.start(len(content))
        self.wfile.write(content[: len(content) // 2])
        self.server.over.wait(20)

    def silent(self, content):
        self.server.over.wait(20)

    def endless(self, content):
        self.start()
        while not self.server.over.is_set():
            self.wfile.write(bytes(1 << 16))
            self.server.sent += 1 << 16

    def drip(self, content):
        self.start(len(content))
        step = len(content) // 8 + 1
        for place in range(0, len(content), step):
            self.wfile.write(content[place : place + step])
            time.sleep(0.01)

    def moved(self, content):
        self.start(0, 302, Location=self.path.replace("/moved/", "/good/"))

    def circle(self, content):
        self.start(0, 302, Location=self.path)

    def nonsense(self, content):
        self.start(0, 302, Location="http://[nowhere")

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.requests, server.over, server.sent = {}, [], threading.Event(), 0
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.over.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def source(server, mnist):
    """A function (manners in order) -> MNIST in small, published by servers with these manners."""
    server.files |= packed(mnist)

    def make(*manners):
        mirrors = tuple(f"{server.url}/{manner}/" for manner in manners)
        files = tuple(
            SourceFile(
                file.name, mirrors, len(server.files[file.name]), hashlib.sha256(server.files[file.name]).hexdigest()
            )
            for file in SOURCES["mnist"].files
        )
        return replace(SOURCES["mnist"], files=files)

    return make


@pytest.fixture
def archive(server, eth80, tmp_path):
    """As `source`, for ETH-80 in small, of which neither size nor sum is published."""
    server.files["eth80-cropped-close128.tgz"] = write_tar(tmp_path / "made.tgz", eth80).read_bytes()

    def make(*manners):
        mirrors = tuple(f"{server.url}/{manner}/" for manner in manners)
        return replace(SOURCES["eth80"], files=(SourceFile("eth80-cropped-close128.tgz", mirrors),))

    return make
