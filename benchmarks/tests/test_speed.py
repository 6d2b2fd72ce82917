"""Does the speed script still know how to ask for its rows?"""

import shutil

import pytest

from swizzle_benchmarks.evidence.speed import commands, peers, suite, threads
from swizzle_benchmarks.evidence.speed.replay import build, own_rows, peer_rows
from swizzle_sim.workload.kernels import kernel
from xcd_model import gpu, replay_lru


def test_rows_of_a_small_size():
    trace = build(512)
    rows = own_rows(trace) + peer_rows(trace)
    assert len({name for name, _, _ in rows}) == len(rows) >= 5
    hits = {name: n for name, _, n in rows}
    replays = {n for name, n in hits.items() if name.startswith(("lockstep", "timed", "pycachesim"))}
    assert len(replays) == 1 and replays.pop() > 0  # no replay, with symmetry or without, counts others
    assert any(name.startswith("replay_lru") for name in hits)


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here")
def test_the_plain_lru_counts_the_hits_of_ours():
    device = gpu("mi300x")
    lines = peers.stream_of_xcd(build(1024), device, 3, 1 << 20)
    assert peers.plain_lru(lines, device.l2)[1] == replay_lru(lines, device.l2).sum() > 0


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here")
def test_a_row_of_the_suite_has_every_stage():
    found = suite.row(kernel("gemm", M=512, N=512, K=128), gpu("mi300x"))
    assert (found.l1, len(found.cells())) == ("tile", len(suite.HEAD))
    assert found.accesses == 4 * 2 * (256 + 64 * 4) + 512 * 8  # 4 workgroups, 2 steps: rows of A, of B, and C


def test_a_stream_has_every_access_of_its_xcd_though_workgroups_differ_in_length():
    trace, device = kernel("attention", B=1, H=8, S=512, D=64, CAUSAL=1).build_trace(128), gpu("mi300x")
    streams = [peers.stream_of_xcd(trace, device, xcd, trace.n_touches, 2) for xcd in range(device.xcds)]
    assert sum(stream.size for stream in streams) == trace.n_touches


def test_candidates_are_timed_by_the_number_of_threads(monkeypatch, capsys):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("sys.argv", ["threads", "smith_waterman"])
    threads.main()
    head, _, row = capsys.readouterr().out.splitlines()
    assert "1 thread [candidates/s] | 2 threads [candidates/s]" in head
    name, *rates = [cell.strip() for cell in row.strip("|").split("|")]
    assert name == "`smith_waterman`" and len(rates) == 3 and all(float(rate) > 0 for rate in rates)


def test_a_command_is_timed_in_a_process_of_its_own_and_one_that_fails_is_no_row(tmp_path):
    seconds, megabytes = commands.taken(["gpus"], tmp_path)
    assert seconds > 0 and megabytes > 10
    with pytest.raises(RuntimeError, match="swizzle-sim score gem: status 2"):
        commands.taken(["score", "gem"], tmp_path)
