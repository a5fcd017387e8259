"""The server of the playground: the page, its answers, and nothing else, on loopback only.

Other pages in the same browser must not reach it. So the Host header must be an address of loopback with the right
port (against DNS rebinding), and requests with a body must have the page's own Origin. The content security policy
allows the page to load and to ask this server only.
"""

from __future__ import annotations

import json
import math
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from tigra.errors import TigraError
from tigra.playground.answers import Answers

LARGEST_REQUEST, LARGEST_PICTURE = 2**20, 20 * 2**20  # bytes
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Refused(Exception):
    """A request that is not answered: status and a sentence."""

    def __init__(self, status: HTTPStatus, reason: str):
        super().__init__(reason)
        self.status = status


class PlaygroundServer(ThreadingHTTPServer):
    """Serves the page and its answers until `shutdown` or Ctrl-C.

    Parameters
    ----------
    answers : Answers
        What the page can ask.
    port : int
        Port on 127.0.0.1; 0 picks a free one.

    Attributes
    ----------
    address : str
        Address for the browser.
    """

    daemon_threads = True

    def __init__(self, answers: Answers, port: int = 0):
        super().__init__(("127.0.0.1", port), _Handler)
        self.answers = answers
        self.files = _static_files()
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}

    @property
    def address(self) -> str:
        """Address for the browser."""
        return f"http://127.0.0.1:{self.server_port}/"

    def handle_error(self, request, client_address) -> None:
        """Stay silent when a browser closes a connection; the library never prints."""


def _static_files() -> dict[str, tuple[bytes, str]]:
    """Path -> (content, type) of everything in static/; no other file can be asked for."""
    folder = resources.files("tigra.playground").joinpath("static")
    found = {}
    for entry in folder.iterdir():
        kind = TYPES.get(entry.name.rpartition(".")[2])
        if kind:
            found[f"/{entry.name}"] = entry.read_bytes(), f"{kind}; charset=utf-8"
    found["/"] = found["/index.html"]
    return found


class _Handler(BaseHTTPRequestHandler):
    server: PlaygroundServer
    protocol_version = "HTTP/1.1"  # one connection for all answers
    server_version, sys_version = "tigra", ""
    timeout = 60  # seconds without a request

    def do_GET(self) -> None:
        """A file of the page, or what the page needs at first."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """An answer to a request of the page."""
        self._answer(self._post)

    def _get(self) -> tuple[bytes, str]:
        path = self._address().path
        if path == "/api/start":
            return _json(self.server.answers.start())
        if path not in self.server.files:
            raise Refused(HTTPStatus.NOT_FOUND, "There is no such page.")
        return self.server.files[path]

    def _post(self) -> tuple[bytes, str]:
        parts = self._address()
        if self.headers.get("Origin") not in {f"http://{host}" for host in self.server.hosts}:
            raise Refused(HTTPStatus.FORBIDDEN, "Only the page of the playground may ask.")
        if parts.path == "/api/answer":
            return _json(self.server.answers.answer(_parsed(self._body(self._largest_request()))))
        if parts.path == "/api/picture":
            invert = parse_qs(parts.query).get("invert") == ["1"]
            return _json(self.server.answers.pixels(self._body(LARGEST_PICTURE), invert))
        raise Refused(HTTPStatus.NOT_FOUND, "There is no such page.")

    def _largest_request(self) -> int:
        return LARGEST_REQUEST + 4 * math.prod(self.server.answers.shape)  # "255,"

    def _address(self) -> SplitResult:
        try:
            return urlsplit(self.path)
        except ValueError as error:  # such as http://[
            raise Refused(HTTPStatus.NOT_FOUND, "There is no such page.") from error

    def _body(self, most: int) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "The request must say how long it is.")
        if len(length) > 12 or int(length) > most:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"At most {most // 2**20} MB are taken.")
        return self.rfile.read(int(length))

    def _answer(self, work) -> None:
        try:
            if self.headers.get("Host") not in self.server.hosts:
                raise Refused(HTTPStatus.FORBIDDEN, f"The playground is at {self.server.address}")
            status, (content, kind) = HTTPStatus.OK, work()
        except Refused as error:
            status, (content, kind) = error.status, _json({"error": str(error)})
            self.close_connection = True  # a body may not have been read
        except TigraError as error:
            status, (content, kind) = HTTPStatus.BAD_REQUEST, _json({"error": str(error)})
        except OSError:  # the browser has gone
            raise
        except Exception as error:  # the page must be told
            reason = f"The playground could not answer ({type(error).__name__}); change something, or reload the page."
            status, (content, kind) = HTTPStatus.INTERNAL_SERVER_ERROR, _json({"error": reason})
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format, *args) -> None:
        """Log nothing; the library never prints."""


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Refused(HTTPStatus.BAD_REQUEST, "The request must be JSON.") from error


def _refuse_constant(name: str):
    raise ValueError(name)


def _json(content: Any) -> tuple[bytes, str]:
    return json.dumps(content, allow_nan=False).encode(), "application/json"
