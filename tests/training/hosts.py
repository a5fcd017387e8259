"""Two network namespaces joined by a cable, which stand in for two machines; Linux, as root."""

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

SSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done  # options of ssh
place="NAME${1##*.}"; shift
exec ip netns exec "$place" sh -c "$*"
"""
CABLE = "cable"  # its device, on either host
BY_TCP = "FI_PROVIDER=tcp", "UCX_TLS=tcp,self"  # for the two libraries that MPICH may use
PATIENCE = 10.0  # seconds for a cable to carry


class Hosts:
    """The hosts 10.77.0.1 and 10.77.0.2, and `mpiexec` options that start processes there."""

    def __init__(self, folder: Path):
        self.names = [f"tigra-{os.getpid()}-{number}" for number in (1, 2)]
        self.ssh = folder / "ssh"
        self.ssh.write_text(SSH.replace("NAME", self.names[0][:-1]))
        self.ssh.chmod(0o755)

    def start(self, launcher: str) -> list:
        """The words before those of a program; MPICH is to talk by TCP, even though memory could be shared."""
        addresses = "10.77.0.1,10.77.0.2"
        options = ["-localhost", "10.77.0.1", "-hosts", addresses, "-launcher", "ssh", "-launcher-exec", self.ssh]
        return ["ip", "netns", "exec", self.names[0], "env", *BY_TCP, launcher, *options, "-n", "2"]

    def sent(self) -> int:
        """Bytes that the first host has sent."""
        return int(self._read(self.names[0], "statistics/tx_bytes"))

    def connect(self) -> None:
        """Make the namespaces and the cable."""
        for name in self.names:
            _run("ip", "netns", "add", name)
        one, other = self.names
        _run("ip", "link", "add", CABLE, "netns", one, "type", "veth", "peer", "name", CABLE, "netns", other)
        for number, name in enumerate(self.names, start=1):
            _run("ip", "-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", CABLE)
            _run("ip", "-n", name, "link", "set", CABLE, "up")
            _run("ip", "-n", name, "link", "set", "lo", "up")
        end = time.monotonic() + PATIENCE
        # Linux takes up to a second to report a new cable as running, and MPICH ignores it until then
        while time.monotonic() < end and any(self._read(name, "operstate") != "up" for name in self.names):
            time.sleep(0.01)

    def _read(self, name: str, about: str) -> str:
        return _run("ip", "netns", "exec", name, "cat", f"/sys/class/net/{CABLE}/{about}").stdout.strip()

    def remove(self) -> None:
        """Remove the namespaces, and the cable with them."""
        for name in self.names:
            with contextlib.suppress(subprocess.CalledProcessError):
                _run("ip", "netns", "del", name)


def _run(*words) -> subprocess.CompletedProcess:
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)


@contextlib.contextmanager
def two_hosts(folder: Path):
    """Yield connected hosts; skip the test where that is not allowed."""
    if shutil.which("ip") is None:
        pytest.skip("no network namespaces without the program ip (package iproute2)")
    hosts = Hosts(folder)
    try:
        hosts.connect()
    except subprocess.CalledProcessError as error:
        hosts.remove()
        pytest.skip(f"network namespaces are not allowed here: {error.stderr.strip()}")
    try:
        yield hosts
    finally:
        hosts.remove()
