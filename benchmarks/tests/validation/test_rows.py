"""Are the measured rows read as they were written, and does each become the replay that it stands for?"""

import dataclasses
import json
import math

import numpy as np
import pytest

from benchmarks.tests.validation.tables import lines_of
from swizzle_benchmarks.validation import ablations, contributed
from swizzle_benchmarks.validation.ablations import reuse_counts
from swizzle_benchmarks.validation.published import CASES
from swizzle_benchmarks.validation.rows import DATA, Row, all_rows
from swizzle_benchmarks.validation.variants import predict
from swizzle_benchmarks.validation.workloads import formulas, orders, schedules
from swizzle_benchmarks.validation.workloads.from_row import tiles_of, workload
from tests.machines import gemm_trace, small_gpu
from xcd_model import gpu, workgroups_per_cu
from xcd_model.errors import LanguageError, ReplayError, UnknownName

ROWS = all_rows()
PAPER = [row for row in ROWS if row.table == "paper"]


def tiled(rows, cols, steps):
    """Trace of a GEMM of so many tiles and K steps, 64 x 64 x 64 each."""
    return gemm_trace(64 * rows, 64 * cols, 64 * steps, 64, 64, 64)


def test_every_line_of_the_tables_is_there():
    counts = {name: len(lines_of(DATA / name)) for name in _tables()}
    assert counts == {
        "attention_orders.csv": 56,
        "autotune_h100.csv": 50,
        "explanations.csv": 17,
        "h100_cuda_sources.csv": 30,
        "h100_six_kernels.csv": 132,
        "h200_again.csv": 252,
        "h200_published_kernels.csv": 11,
        "h200_suite_path_recounted.csv": 4,
        "h200_bundles.csv": 21,
        "h200_bundles_predicted.csv": 21,
        "h200_calibration.csv": 126,
        "h200_suite_path.csv": 24,
        "h200_suite_path_counted.csv": 24,
        "h200_suite_path_predicted.csv": 24,
        "held_out_counted.csv": 1315,
        "held_out_predicted.csv": 1315,
        "levers_h100.csv": 50,
        "levers_h200.csv": 16,
        "levers_terms_h100.csv": 17,
        "mi300x_published.csv": 23,
        "mi300x_published_more.csv": 33,
        "mi300x_swizzleperf.csv": 80,
        "mi355x_gemm_shapes.csv": 37,
        "policies_h100.csv": 280,
        "policies_again_h100.csv": 42,
        "policies_more_h200.csv": 200,
        "policies_other_h200.csv": 760,
        "gains_h100.csv": 6,
        "sequences_h100.csv": 6,
        "spellings_h100.csv": 21,
        "spellings_h200.csv": 42,
    }
    assert sum(row.table != "contributed" for row in ROWS) == 80 + 56 + 2 * 37 + 56 + 5 * 126
    assert set(CASES) == {row.id.split("/")[1].split(":")[0] for row in ROWS if row.table == "published"}


def test_no_spelling_takes_longer_than_predicted():
    """Rewritten by orders that leave every program where it is: at most 3 % above its price, outputs equal."""
    rows = lines_of(DATA / "spellings_h200.csv")
    assert all(float(row["measured_ratio"]) < 1.03 * float(row["predicted_ratio"]) for row in rows)
    assert len({row["kernel"] for row in rows}) == 16 and {row["equal_outputs"] for row in rows} == {"True"}


def _tables():
    return sorted(path.name for path in DATA.glob("*.csv") if path.name not in ("contributed.csv", "split.csv"))


def test_formulas_give_the_tiles_that_the_table_counts():
    """The table says how many tiles each formula reaches and whether it is a permutation."""
    lines = {f"paper/{line['formula_id']}": line for line in lines_of(DATA / "mi300x_swizzleperf.csv")}
    for row in PAPER:
        line = lines[row.id]
        grid = [side for side in json.loads(line["grid"]) if side > 1]
        tiles = formulas.tiles_of(row.mapping, tuple(grid), 8)
        reached = np.unique(tiles[tiles != formulas.NOTHING]).size
        assert (tiles.size, reached) == (int(float(line["n_workgroups"])), int(float(line["distinct_tiles"]))), row.id
        assert row.bijective == (reached == tiles.size), row.id


@pytest.mark.parametrize(
    ("name", "naive"),
    [
        ("softmax@8192:chunk", lambda w, n: w % 8 * (n // 8) + w // 8),
        ("softmax@8192:xor_low3", lambda w, n: 8 * (w // 8) + (w ^ w // 8) % 8),
        ("spmv@4096:blk128_halves", lambda w, n: (w // 128 % 2 * (n // 256) + w // 256) * 128 + w % 128),
        ("layer_norm@20480:corner64", lambda w, n: w // 8 % 8 * (n // 8) + w % 8),
    ],
)
def test_formulas_over_ids_agree_with_python(name, naive):
    row = next(row for row in PAPER if row.id == f"paper/{name}")
    n = row.problem["M"]
    got = formulas.tiles_of(row.mapping, (n,), 8)
    assert got.tolist() == [naive(w, n) for w in range(n)]


def test_a_formula_over_tiles_agrees_with_python():
    row = next(row for row in PAPER if row.id == "paper/stencil_2d@256x256:rm_panel8")
    got = formulas.tiles_of(row.mapping, (256, 256), 8)
    for w in range(0, 65536, 97):
        m, n = w % 256, w // 256
        b = m * 256 + n
        b = b // 8 % 256 * 256 + b // 8 // 256 * 8 + b % 8
        assert got[w] == b // 256 + 256 * (b % 256)


@pytest.mark.parametrize(
    "text",
    [
        "def f(pid, n, X=8):\n    return __import__('os').getpid()\n",
        "def f(pid, n, X=8):\n    while True:\n        pass\n    return pid\n",
        "def f(pid, n, X=8):\n    return pid, pid\n",
        "def f(pid, nm, nn, X=8):\n    return pid, pid\n",
        "def f(pid, n, X=8):\n    a, b = pid\n    return a\n",
        "lambda pid: pid",
        "def f(pid, n, X=8) return pid",
    ],
)
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(LanguageError):
        formulas.tiles_of(text, (8,), 8)


def test_named_orders_are_permutations_and_do_as_they_say():
    for name in (*orders.H200_ORDERS, *orders.HEAD_ORDERS, "contiguous+group4", "chunked4+group3", "run4"):
        assert np.unique(orders.tiles_of(name, 32, 32, 8)).size == 1024, name
    assert orders.contiguous(np.arange(11), 4).tolist() == [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8]
    assert orders.chunked(np.arange(9), 2, 2).tolist() == [0, 2, 1, 3, 4, 6, 5, 7, 8]
    assert orders.tiles_of("grp4", 6, 2, 1).tolist() == [0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 9, 11]
    assert orders.tiles_of("swizzled-head-first", 4, 3, 2).tolist() == [0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11]
    assert orders.tiles_of("run2", 2, 5, 1).tolist() == [0, 1, 8, 9, 6, 7, 4, 5, 2, 3]
    assert orders.tiles_of("morton", 4, 4, 1)[:8].tolist() == [0, 1, 4, 5, 2, 3, 6, 7]
    for name in ("diagonal", "run3"):
        with pytest.raises(UnknownName, match=name):
            orders.tiles_of(name, 4, 4, 8)


def test_h200_workgroups_fit_as_the_profiler_says():
    """Occupancy follows from registers and shared memory; the profiler's limits are in the row."""
    device = gpu("h200")
    for row in ROWS:
        if row.table == "h200" and row.quantity == "time_us" and row.order == "row":
            assert workgroups_per_cu(workload(row).resources, device) == row.resources["workgroups_per_cu"], row.id


def test_h200_traces_read_and_write_each_tensor_as_often_as_the_kernel():
    loads = {"gemm": 4096 // 64 * (128 + 128) * 64 * 2 * 1024, "transpose": 16384**2 * 4}
    for kernel, expected in loads.items():
        row = next(row for row in ROWS if row.kernel == f"h200_{kernel}" and row.problem["M"] in (4096, 16384))
        trace = workload(row).build_trace(128)
        read = ~trace.is_write[trace.template]
        assert 128 * trace.entries_per_template[trace.template][read].sum() == expected


def test_placing_skips_what_computes_nothing():
    trace = tiled(4, 4, 2)
    tiles = np.array([3, -1, 0, -1, 3, -1, 5, -1])
    found = schedules.place(trace, tiles, 2)
    assert found.xcds == 1
    size = np.diff(trace.start)
    assert np.diff(found.trace.start).tolist() == size[[3, 0, 3, 5]].tolist()
    first = trace.start[3]
    assert np.array_equal(found.trace.base[: size[3]], trace.base[first : first + size[3]])


def test_placing_several_tiles_runs_them_one_after_the_other():
    trace = tiled(4, 4, 2)
    found = schedules.place(trace, np.array([[0, 7], [2, 1]]), 2).trace
    at = np.concatenate([np.arange(trace.start[t], trace.start[t + 1]) for t in (0, 7, 2, 1)])
    assert np.array_equal(found.base, trace.base[at]) and found.n_workgroups == 2


def test_placing_refuses_shares_that_padding_would_change():
    trace = tiled(4, 4, 2)
    with pytest.raises(ReplayError, match="padded"):
        schedules.place(trace, np.array([0, 1, 2, -1, 3, -1]), 2)
    with pytest.raises(ReplayError, match="no workgroup"):
        schedules.place(trace, np.array([-1, -1]), 2)


def test_the_plain_lru_agrees_with_a_list():
    device = small_gpu()
    trace = tiled(6, 5, 4)
    order = np.random.default_rng(3).permutation(trace.n_workgroups)
    got = ablations.replay_plain(trace, device, order, workgroups_per_cu=2)
    assert got.tolist() == _naive_lru(trace, device, order, 2)
    assert got[0] > 0


def _naive_lru(trace, device, order, per_cu):
    """Lockstep over lists; a cache is a list of lines, oldest first."""
    capacity, counts = device.l2.size_bytes // device.l2.line_bytes, [0, 0]
    for xcd in range(device.xcds):
        queue = [list(range(trace.start[t], trace.start[t + 1])) for t in order[xcd :: device.xcds]]
        slots = [[] for _ in range(device.cus_per_xcd * per_cu)]
        cache: list[int] = []
        while queue or any(slots):
            for slot in slots:
                if not slot and queue:
                    slot.extend(queue.pop(0))
                if not slot:
                    continue
                at = slot.pop(0)
                t = trace.template[at]
                for entry in range(trace.rel_start[t], trace.rel_start[t + 1]):
                    line = int(trace.base[at] + trace.rel[entry])
                    if line in cache:
                        cache.remove(line)
                    else:
                        counts[int(trace.is_write[t])] += 1
                        del cache[: len(cache) + 1 - capacity]
                    cache.append(line)
    return counts


def test_the_analytic_reuse_of_a_window_is_the_formula():
    """A window of r x c tiles of a GEMM reads r row panels and c column panels where it asks r c of each."""
    device = dataclasses.replace(small_gpu(), xcds=1)
    trace = tiled(4, 6, 3)
    slots = device.cus_per_xcd
    reads, _ = reuse_counts(trace, device, np.arange(24), workgroups_per_cu=24 // math.gcd(24, slots))
    a, b = _panel_lines(trace, "A"), _panel_lines(trace, "B")
    assert reads == a + b


def _panel_lines(trace, name):
    return next(tensor.n_lines for tensor in trace.tensors if tensor.name.upper() == name)


GOOD = dict.fromkeys(contributed.COLUMNS, "") | {
    "id": "mine-1",
    "gpu": "mi300x",
    "driver": "6.10",
    "compiler": "triton 3.5",
    "command": "rocprofv3 --pmc TCC_HIT_sum TCC_MISS_sum -- python x.py",
    "kernel": "softmax",
    "problem": '{"M": 64, "N": 1024}',
    "order": "chunk",
    "mapping": "def f(pid, n, X=8):\n    return (pid % X) * (n // X) + pid // X\n",
    "bijective": "True",
    "quantity": "l2_hit_pct",
    "value": "33.4",
}


def test_a_contributed_row_is_read_and_predicted(tmp_path):
    path = tmp_path / "rows.csv"
    contributed.write(path, [GOOD])
    (line,) = contributed.read(path)
    row = Row(**line)
    assert (row.measured, row.low, row.trust) == (33.4, 33.4, "C") and "triton 3.5" in row.source
    by_counting = dataclasses.replace(gpu("mi300x"), l1i=None)  # a miss a line read, a miss and a hit a line written
    assert predict(row, "lockstep", by_counting)["l2_hit_pct"] == pytest.approx(100 / 3)


def test_one_wave_read_each_operand_once_whatever_the_order():
    """What the launches that tested hypotheses say of drift in a single wave; they are contributed rows."""
    reads = {
        (row.problem["K"], row.order): row.measured
        for row in (Row(**line) for line in contributed.read(DATA / "contributed.csv"))
        if row.quantity == "dram_read_bytes" and row.problem.get("M") == 1408
    }
    for (k, _), read in reads.items():
        assert read == pytest.approx(2 * k * (1408 + 1536), rel=0.01)
    assert len(reads) == 4


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [(name, " ", f"{name} is empty") for name in contributed.NEEDED]
    + [
        ("value", "high", "could not convert"),
        ("quantity", "speed", "quantity 'speed'"),
        ("problem", "[1]", "a JSON object"),
        ("problem", '{"M": 1.5}', "integers"),
        ("bijective", "", "True or False"),
    ],
)
def test_a_row_that_cannot_be_checked_is_refused(tmp_path, column, value, says):
    path = tmp_path / "rows.csv"
    with pytest.raises(contributed.ContributionError, match=says):
        contributed.write(path, [GOOD | {column: value}])


def test_tiles_of_a_persistent_kernel():
    """Program p computes tiles p, p + 256 of the order, which gives each XCD a run of 34 of the 272 tiles."""
    row = next(row for row in ROWS if row.id.startswith("published/persist-4352:"))
    work = workload(row)
    tiles = tiles_of(row, work, 8)
    assert work.programs == 256 and sorted(tiles) == list(range(17 * 16))
    grouped = orders.grouped(np.arange(17 * 16), 17, 16, 4)
    for xcd in range(8):
        assert set(tiles[xcd::8]) == set(grouped[34 * xcd : 34 * xcd + 34])


def test_a_persistent_kernel_has_no_more_programs_than_tiles():
    row = next(row for row in ROWS if row.id.startswith("published/persist-3840:"))
    assert row.problem["PROGRAMS"] == 256 and workload(row).programs == 15 * 16


def test_attention_of_flydsl_has_its_heads_side_by_side():
    """A workgroup's keys of one head are 256 B each, 16 KB apart; replayed are all waves of workgroups."""
    row = next(row for row in ROWS if row.kernel == "attention_fly")
    small = {**row.problem, "S": 512, "BM": 256}
    work = workload(dataclasses.replace(row, problem=small))
    trace = work.build_trace(128)
    assert trace.n_workgroups == 64 * 2 and not work.note
    first = trace.base[trace.start[3] + 1]  # head 1, block 1: its first load of K
    template = trace.template[trace.start[3] + 1]
    lines = first + trace.rel[trace.rel_start[template] : trace.rel_start[template + 1]]
    keys = next(tensor for tensor in trace.tensors if tensor.name == "K")
    assert sorted(lines - keys.base_line) == sorted(key * 128 + 2 + half for key in range(64) for half in (0, 1))
