"""Is a state the same after its way through an address, and is everything else refused by name?"""

from __future__ import annotations

import importlib.util
import shlex
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from swizzle_sim import describe
from swizzle_sim.cli.app import app
from swizzle_sim.explore.offered import START, default_sizes, serve, start_sizes
from swizzle_sim.explore.state import MAX_QUERY, SLIDERS, State, changed, read_query, read_sizes, slider_values
from swizzle_sim.language.rules import MAX_TEXT_BYTES
from swizzle_sim.workload.kernels import kernel_names
from xcd_model import gpu
from xcd_model.errors import LanguageError, SizeError, SpecError, SwizzleSimError, UnknownName

NAMES = st.from_regex(r"[A-Z][A-Z_]{0,8}", fullmatch=True)
STATES = st.builds(
    State,
    kernel=st.sampled_from(["gemm", "softmax"]),
    sizes=st.lists(st.tuples(NAMES, st.integers(1, 10**9)), min_size=1, max_size=5, unique_by=lambda one: one[0]).map(
        tuple
    ),
    gpu=st.sampled_from(["mi300x", "mi300x-cpx", "h200"]),
    changes=st.lists(
        st.tuples(st.sampled_from(SLIDERS), st.integers(1, 2**30)), max_size=4, unique_by=lambda one: one[0]
    ).map(lambda found: tuple(sorted(found, key=lambda one: SLIDERS.index(one[0])))),
    swizzle=st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
    | st.text("pid =+\n", min_size=1400, max_size=1700),
    replay=st.sampled_from(["lockstep", "timed"]),
)


@settings(max_examples=25)
@given(STATES)
def test_an_address_gives_its_state_back(state):
    assert read_query(state.query()) == state
    assert read_query("?" + state.query()) == state


def test_every_kernel_has_a_start_that_it_takes():
    start = read_query("")
    assert start.kernel == "gemm" and dict(start.sizes) == start_sizes("gemm")
    start.load_swizzle()
    assert set(START) <= set(kernel_names())
    for name in kernel_names():
        state = read_query(f"kernel={name}")
        assert dict(state.sizes).keys() == default_sizes(name).keys()
        state.load_kernel()


@pytest.mark.parametrize(
    ("query", "error", "words"),
    [
        ("kernel=../../etc/passwd", UnknownName, "no kernel"),
        ("gpu=/tmp/gpu.toml", UnknownName, "no GPU"),
        ("M=1.5", SizeError, "M = '1.5'"),
        ("M=4096&M=8192", SizeError, "M twice"),
        ("M=99999999", SizeError, "at most 2147483647"),
        ("M=" + "9" * 50, SizeError, "a size is an integer"),
        ("<script>=1", SizeError, "a size is an integer"),
        ("Q=7", UnknownName, "size of kernel gemm"),
        ("xcds=65", SizeError, "1 to 64"),
        ("xcds=4,8", SizeError, "one whole number"),
        ("l2.ways=5", SwizzleSimError, "l2"),
        ("swizzle=import os", LanguageError, "language"),
        ("swizzle=" + "x" * (MAX_TEXT_BYTES + 1), LanguageError, "at most"),
        ("replay=fast", SizeError, "timed and lockstep"),
        ("&".join(f"A{i}=1" for i in range(99)), SizeError, "more than 64"),
        ("M=" + "1" * MAX_QUERY, LanguageError, "at most"),
    ],
)
def test_what_is_no_state_is_refused(query, error, words):
    with pytest.raises(error, match=words):
        state = read_query(query)
        state.load_kernel()
        state.load_gpu()
        state.load_swizzle()


def test_a_command_is_quoted_and_says_the_changes():
    state = State(sizes=(("M", 1024),), changes=(("xcds", 4), ("l2.size_bytes", 8 << 20)), swizzle=" group_m(size=2) ")
    assert shlex.split(state.command()) == [
        *("swizzle-sim", "sweep", "gemm", "M=1024", "--gpu", "mi300x", "--replay", "lockstep"),
        *("--set", "xcds=4", "--set", "l2.size_bytes=8MiB", "--swizzle", "group_m(size=2)"),
    ]


def test_no_line_of_a_text_ends_the_here_document_of_its_command():
    lines = State(sizes=(), swizzle="pid = pid\nEND\n# $(rm -rf ~) \x1b[2J\r\n").command().split("\n")
    assert lines[0] == "swizzle-sim score gemm --gpu mi300x --replay lockstep --swizzle - <<'END_'"
    assert lines[1:] == ["pid = pid", "END", "# $(rm -rf ~) ?[2J", "END_"]


def test_only_what_is_not_the_gpus_own_is_a_change():
    own = slider_values(gpu("mi300x"))
    assert own == {"xcds": 8, "cus_per_xcd": 38, "l2.size_bytes": 4 << 20, "l2.ways": 16}
    assert changed(own, own) == ()
    assert changed(own, {**own, "xcds": 4, "l2.ways": 8}) == (("xcds", 4), ("l2.ways", 8))
    assert State(changes=(("xcds", 4),)).load_gpu().xcds == 4


@pytest.mark.parametrize("typed", [None, "", "x", "1e3", "0x10", "٣", "1" * 19, "<b>"])
def test_what_is_typed_for_a_size_is_an_integer(typed):
    with pytest.raises(SizeError, match="a size is an integer"):
        read_sizes([("M", typed)])
    assert read_sizes([("M", " 64 "), ("N", 5)]) == (("M", 64), ("N", 5))


def test_the_page_opens_the_files_that_the_command_line_named_and_no_other(tmp_path, monkeypatch):
    def touches(build, at):
        rows = build.array("rows", rows=64, cols=64, item_bytes=2)
        build.step(build.read(rows, row=at.pid, col=0, rows=1, cols=64))

    figures = {"threads": 64, "vgprs": 32, "lds_bytes": 0}
    for name in ("mine", "other"):
        describe("described", 64, figures, touches, sizes={"M": 64}, file=tmp_path / f"{name}.trace.npz")
        (tmp_path / f"{name}.toml").write_text('base = "mi300x"\nxcds = 4\n')
    for kind in ("KERNEL", "GPU"):
        monkeypatch.setenv(f"SWIZZLE_SIM_EXPLORE_{kind}", "{}")  # and put back what serve changes
    names = serve("kernel", str(tmp_path / "mine.trace.npz")), serve("gpu", str(tmp_path / "mine.toml"))
    state = read_query(State(kernel=names[0], sizes=(("M", 64),), gpu=names[1]).query())
    assert state.load_kernel().name == "described" and state.load_gpu().xcds == 4
    assert start_sizes(names[0]) == {"M": 64}
    assert f"score {tmp_path / 'mine.trace.npz'} M=64 --gpu {tmp_path / 'mine.toml'}" in state.command()
    for kernel, chip in ((str(tmp_path / "mine.trace.npz"), "mi300x"), ("other.trace.npz", "mi300x")):
        with pytest.raises(UnknownName):
            State(kernel=kernel, sizes=(), gpu=chip).load_kernel()
    for chip in ("other.toml", str(tmp_path / "mine.toml")):
        with pytest.raises(UnknownName):
            State(gpu=chip).load_gpu()


# ---- Does the command say what is missing and who can reach the page, and refuse before it serves?
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
