"""Does the command say what is missing and who can reach the page, and refuse before it serves?"""

from __future__ import annotations

import importlib.util
import socket

import pytest
from typer.testing import CliRunner

from swizzle_sim.cli.app import app
from swizzle_sim.explore.state import read_query
from xcd_model.errors import SizeError, SpecError, SwizzleSimError, UnknownName


@pytest.fixture
def served(monkeypatch):
    """Run the command without a server; gives its answer, and what would be served in ``hosts``."""
    for kind in ("KERNEL", "GPU"):
        monkeypatch.setenv(f"SWIZZLE_SIM_EXPLORE_{kind}", "{}")  # and put back what a command serves
    from swizzle_sim.explore import app as page

    class Server:
        def __init__(self, *, host, port):
            served.hosts.append((host, port))
            self.address = f"http://{host}:{port or 8765}/"

        def run(self, *, started):
            started()

    def typed(*words):
        return CliRunner().invoke(app, ["explore", "--no-browser", *words])

    served = typed
    served.hosts = []
    monkeypatch.setattr(page, "Server", Server)
    return typed


def test_it_serves_on_this_machine_alone_and_prints_the_address(served, tmp_path):
    text = tmp_path / "mine.txt"
    text.write_text("pid = num_pids - 1 - pid\n")
    done = served("softmax", "M=512", "N=512", "--swizzle", str(text))
    address, query = done.stdout.splitlines()[0].split("?")
    assert served.hosts == [("127.0.0.1", None)] and address == "http://127.0.0.1:8765/"
    assert "warning" not in done.stderr
    state = read_query(query)
    assert (state.kernel, dict(state.sizes)) == ("softmax", {"M": 512, "N": 512})
    assert state.swizzle == "pid = num_pids - 1 - pid\n"
    assert read_query(served("--swizzle", "row").stdout.splitlines()[0].split("?")[1]).swizzle == "row"


def test_another_host_is_served_with_a_warning(served):
    done = served("--host", "0.0.0.0", "--port", "9000")
    assert served.hosts == [("0.0.0.0", 9000)] and "warning: serving on 0.0.0.0" in done.stderr


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["nope"], UnknownName),
        (["gemm", "M=77777777"], SizeError),
        (["--gpu", "gpu.toml"], SpecError),
        (["--swizzle", "nope"], UnknownName),
    ],
)
def test_what_cannot_be_shown_is_refused_before_it_is_served(served, words, error):
    assert isinstance(served(*words).exception, error) and served.hosts == []


def test_without_the_extra_it_says_what_to_install(served, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    error = served().exception
    assert isinstance(error, SwizzleSimError) and "pip install -e '.[explore]' in the checkout" in str(error)


def test_a_port_that_is_taken_is_said(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        error = CliRunner().invoke(app, ["explore", "--no-browser", "--port", str(port)]).exception
    assert isinstance(error, SwizzleSimError) and f"port {port}" in str(error)
