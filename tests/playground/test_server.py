"""The server answers its own page on this machine, and nobody else."""

import http.client
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from PIL import Image

import tigra
from tests.cli.running import run


def ask(server, method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    try:
        connection.putrequest(method, path, skip_host=True)
        sent = {"Host": f"127.0.0.1:{server.server_port}"} | headers
        if body is not None and "Content-Length" not in sent:
            sent["Content-Length"] = str(len(body))
        for name, value in sent.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, dict(answer.headers), answer.read()
    finally:
        connection.close()


def own(server):
    return {"Origin": f"http://127.0.0.1:{server.server_port}"}


def png(image, kind="PNG"):
    file = io.BytesIO()
    Image.fromarray(image).save(file, kind)
    return file.getvalue()


def test_every_file_of_the_page_is_served_and_loads_nothing_from_elsewhere(server):
    assert {"/", "/index.html", "/app.js", "/pad.js", "/paint.js", "/style.css", "/equations.html"} == set(server.files)
    for path in server.files:
        status, headers, content = ask(server, "GET", path)
        assert status == 200 and "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff" and len(content) < 20_000
        assert not re.search(rb"https?:|//[a-z]+\.", content), path
        assert not re.search(rb"\son\w+=|\sstyle=", content), f"{path} has what the policy forbids"


def test_links_lead_to_equations(server):
    places = set(re.findall(rb'id="(\w+)"', server.files["/equations.html"][0]))
    links = set(re.findall(rb"equations\.html#(\w+)", server.files["/index.html"][0]))
    (table,) = re.findall(rb"LINKS = \{(.*?)\}", server.files["/app.js"][0])
    links |= set(re.findall(rb'"(\w+)"', table)) | {b"planes"}
    assert len(links) > 6 and links <= places


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", ""])
def test_other_hosts_are_refused(host, server):
    """A name that an attacker points to this machine (DNS rebinding) is another host."""
    status, _, content = ask(server, "GET", "/api/start", Host=host.format(port=server.server_port))
    assert status == 403 and b"The playground is at http://127.0.0.1" in content


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", None])
def test_other_pages_are_refused(origin, server):
    headers = {} if origin is None else {"Origin": origin}
    for path in ("/api/answer", "/api/picture"):
        assert ask(server, "POST", path, b"{}", **headers)[0] == 403


def test_the_page_gets_its_answer_also_as_localhost(server, answers):
    body = json.dumps({"pixels": answers.start()["examples"][0]}).encode()
    for name in ("127.0.0.1", "localhost"):
        host = f"{name}:{server.server_port}"
        status, headers, content = ask(server, "POST", "/api/answer", body, Host=host, Origin=f"http://{host}")
        assert status == 200 and json.loads(content)["tigranet"]["label"] == "2"


@pytest.mark.parametrize(
    "path", ["http://[::1/", "/../answers.py", "/static/app.js", "/%2e%2e/server.py", "//etc/passwd", "/api"]
)
def test_there_is_nothing_else(path, server):
    assert ask(server, "GET", path)[0] == 404 and ask(server, "POST", path, b"", **own(server))[0] == 404
    assert ask(server, "PUT", path, b"")[0] == 501


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b'{"angle": NaN}', b"\xff", b"3"])
def test_what_is_not_json_is_refused(body, server):
    assert ask(server, "POST", "/api/answer", body, **own(server))[0] == 400


def test_the_page_is_told_when_an_answer_fails(server, answers, monkeypatch):
    monkeypatch.setattr(answers, "answer", lambda _: 1 // 0)
    status, _, content = ask(server, "POST", "/api/answer", b"{}", **own(server))
    assert status == 500 and "could not answer (ZeroDivisionError)" in json.loads(content)["error"]


def test_large_requests_are_refused_unread(server):
    for path, length in (
        ("/api/answer", 2**20 + 4 * 28**2 + 1),
        ("/api/picture", 20 * 2**20 + 1),
        ("/api/answer", 10**30),
    ):
        assert ask(server, "POST", path, b"", Content_Length=str(length), **own(server))[0] == 413
    assert ask(server, "POST", "/api/answer", b"", Content_Length="-1", **own(server))[0] == 411


def test_pictures_are_decoded_as_hostile_ones(server):
    digit = np.full((56, 56), 255, np.uint8)
    digit[10:46, 24:32] = 0
    status, _, content = ask(server, "POST", "/api/picture?invert=1", png(digit), **own(server))
    pixels = np.reshape(json.loads(content)["pixels"], (28, 28))
    assert status == 200 and pixels[14, 14] == 255 and pixels[14, 2] == 0
    for wrong in (b"", b"no picture", png(digit)[:60], b"%!PS-Adobe-3.0 EPSF-3.0\n"):
        status, _, content = ask(server, "POST", "/api/picture", wrong, **own(server))
        assert status == 400 and "The picture" in json.loads(content)["error"]


@pytest.mark.slow
def test_the_command_prints_its_address_and_ends_with_ctrl_c(answers):
    code = "from tigra_cli.main import main; main(prog_name='tigra')"
    words = [sys.executable, "-c", code, "playground", "--no-browser", "--port", "0"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as done:
        line = done.stdout.readline()
        assert re.fullmatch(r"The playground is at http://127\.0\.0\.1:\d+/; Ctrl-C ends it\.\n", line)
        done.send_signal(signal.SIGINT)
        try:
            assert done.wait(30) == 0 and done.stderr.read() == "Stopped.\n"
        finally:
            done.kill()  # or the test would wait for ever where SIGINT is ignored


def test_the_command_opens_the_browser(monkeypatch):
    opened = []
    is_opened = threading.Event()
    monkeypatch.setattr("webbrowser.open", lambda address: (opened.append(address), is_opened.set()))
    monkeypatch.setattr("tigra.playground.server.PlaygroundServer.serve_forever", lambda self: is_opened.wait(60))
    shown = run("playground", "mnist-012-achiral").stdout
    assert opened[0] in shown and opened[0].startswith("http://127.0.0.1:")


def test_a_file_is_shown_first_and_not_the_packaged_model_of_its_name(tmp_path, monkeypatch):
    """`tigra train mnist-012` writes mnist-012.npz, which is not the model that comes with tigra."""
    shown = []
    monkeypatch.setattr(
        "tigra.playground.server.PlaygroundServer.serve_forever", lambda self: shown.append(self.answers)
    )
    network = tigra.build_network("SC[2, 1]-S[1]", (28, 28), 3)
    network.class_names = ["0", "1", "2"]
    for name in ("mnist-012.npz", "mnist-012"):
        tigra.save(network, tmp_path / name)
        run("playground", tmp_path / name, "--beside", "mnist-012-achiral", "--no-browser")
        assert next(iter(shown[-1].models)) == name and "mnist-012-achiral" in shown[-1].models
        assert shown[-1].models[name].options.architecture == "SC[2, 1]-S[1]"
        assert shown[-1].start()["beside"] == "mnist-012-achiral"


def test_a_port_that_is_taken_is_named_with_the_remedy(server):
    result = run("playground", "--no-browser", "--port", server.server_port, expect=2)
    assert f"Cannot listen on port {server.server_port}: Address already in use; choose another" in result.stderr


def test_a_network_for_other_images_is_no_comparison(tmp_path):
    tigra.save(tigra.build_network("C[2]-FC[3]", (9, 9), 3), tmp_path / "small.npz")
    result = run("playground", "--beside", tmp_path / "small.npz", expect=2)
    assert "same size and the same classes" in result.stderr
