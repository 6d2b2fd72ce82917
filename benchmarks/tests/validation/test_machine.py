"""What micro-benchmarks of an H200 say, and that its description says the same."""

import csv
import dataclasses
from math import exp, factorial, log
from statistics import mean, median

import numpy as np
import pytest

from swizzle_benchmarks.evidence import PAGES
from swizzle_benchmarks.lab import hbm_rows, operands, passes, power, steps, walks
from swizzle_benchmarks.lab.caches import CARVE_OUT_COUNTERS, carve_outs, most_held, words_of
from swizzle_benchmarks.lab.memory import fills, middles, turnarounds
from swizzle_benchmarks.suite.flash_attention import softmax_ops
from swizzle_benchmarks.validation.rows import DATA
from swizzle_benchmarks.validation.workloads import h200
from swizzle_sim.hardware.node.counted_launch import CountedLaunch
from xcd_model import gpu
from xcd_model.trace.coalesce import passes_of


def table():
    with (DATA / "machine" / "h200.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("what", "size", "level"),
    [
        ("latency through the L1", 16 << 10, "l1"),
        ("latency past the L1", 16 << 20, "l2"),
        ("latency past the L1", 256 << 20, "hbm"),
    ],
)
def test_latencies_of_the_description_are_the_measured_ones(what, size, level):
    values = [
        float(line["value"])
        for line in table()
        if (line["what"], line["bytes"], line["unit"]) == (what, str(size), "ns")
    ]
    assert len(values) == 24  # three runs on eight SMs
    assert getattr(gpu("h200"), level).latency_ns == pytest.approx(median(values), rel=0.005)


def test_rates_of_the_description_are_those_of_ten_profiled_launches():
    """A dense fp16 matrix unit does 4096 flop a clock; the L2's clock is not the SMs', which power slows down."""
    with (DATA / "machine" / "h200_ncu.csv").open(encoding="utf-8", newline="") as file:
        launches = list(csv.DictReader(file))
    h200, sm_ghz = gpu("h200"), [float(line["sm_ghz"]) for line in launches]
    assert len(launches) == 10 and min(sm_ghz) > 1.29 and max(sm_ghz) < 1.6
    assert h200.sustained_tflops("fp16") == pytest.approx(4.096e-3 * h200.cus * h200.sustained_clock_mhz, rel=0.005)
    most = mean(float(line["l2_ghz"]) * float(line["l2_out_peak_bytes_per_clock"]) for line in launches)
    seen = max(float(line["l2_out_tb_per_s"]) for line in launches)
    assert 1e3 * seen < h200.l2.read_bytes_per_cycle * h200.clock_mhz / 1e3 < most


def test_energy_of_the_description_is_what_the_board_counted():
    found, stated = power.rates(), gpu("h200").energy
    for name in ("static_w", "l2_pj_per_byte", "hbm_pj_per_byte"):
        assert getattr(stated, name).value == pytest.approx(getattr(found, name), rel=0.005)
    assert stated.static_w.low < found.static_w < found.waiting_w < stated.static_w.high
    assert stated.flop_pj["fp32"].value == pytest.approx(found.fp32_pj, rel=0.005)
    fp16 = stated.flop_pj["fp16"]
    assert (fp16.low, fp16.value, fp16.high) == pytest.approx(
        (found.fp16_pj.low, found.fp16_pj.value, found.fp16_pj.high), rel=0.005
    )
    assert (stated.power_w.value, stated.power_w.high) == pytest.approx(
        (found.power_w.value, found.power_w.high), rel=0.005
    )


def test_a_second_run_gives_the_same_rates():
    first, second = power.rates(), power.rates(power.SECOND)
    for name, share in (("static_w", 0.05), ("l2_pj_per_byte", 0.05), ("hbm_pj_per_byte", 0.1), ("fp32_pj", 0.05)):
        assert getattr(second, name) == pytest.approx(getattr(first, name), rel=share)
    for name in ("fp16_pj", "power_w"):
        assert getattr(second, name).value == pytest.approx(getattr(first, name).value, rel=0.1)


def test_memory_gives_as_much_in_pieces_of_256_bytes_as_in_large_ones_and_halves_of_lines_to_smaller():
    for what in ("read memory", "write memory"):
        found = power.pieces(what)
        assert found[256] == pytest.approx(found[2048], rel=0.02)
        assert found[64] < 0.65 * found[256] and found[32] == pytest.approx(found[64] / 2, rel=0.05)


def test_a_line_of_words_has_the_middle_and_the_ends():
    lines = [{"what": "reads", "bytes": str(1 << 20), "together": "2", "value": v, "unit": "GB/s"} for v in "315"]
    assert middles(lines) == ["reads, 1 MiB, 2 SMs at one place: 3.0 GB/s (1.0 to 5.0)"]


def rings():
    with (DATA / "machine" / "h200_l1.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_what_an_l1_holds_is_what_a_carve_out_leaves_less_six_kilobytes():
    """Of the most shared memory, 228 KB, these shares ask for these sizes; the least for one workgroup is 32 KB."""
    l1, held = gpu("h200").l1, most_held(rings())
    for percent, taken_kb in ((0, 32), (5, 32), (20, 64), (40, 100), (50, 132), (60, 164), (75, 196), (100, 228)):
        left_bytes = l1.size_bytes - 1024 * taken_kb
        assert taken_kb * 1024 in l1.lds_carve_outs
        assert 4096 <= left_bytes - 128 * held[percent, 128] <= 8192, percent


def test_loads_pass_an_l1_by_the_words_on_one_bank_and_a_third_of_their_lines():
    """3806 patterns of a warp's lanes. Where banks say more than lines, little but the noise of a clock is left."""
    with (DATA / "machine" / "h200_l1_passes.csv").open(encoding="utf-8", newline="") as file:
        patterns = list(csv.DictReader(file))
    off, by_line, of_banks = [], [], []
    for one in patterns:
        size, lanes, step, pitch, shift = (int(one[name]) for name in list(one)[:5])
        lane = np.arange(32)
        address = lane // lanes * pitch + lane % lanes * step + shift
        _, (passes,) = passes_of(0 * lane, lane, address, 0 * lane + 1, 0 * lane + 1, size)
        off.append(log(float(one["cycles"]) / passes))
        by_line.append(log(float(one["cycles"]) / np.unique(address // 128).size))
        lines = sum(-(-np.unique(some // 128).size // 3) for some in address.reshape(max(1, size // 4), -1))
        of_banks += [off[-1]] if passes > lines else []
    assert (len(off), len(of_banks)) == (3806, 1506)
    off, of_banks = np.abs(off), np.abs(of_banks)
    assert of_banks.mean() < 0.015 and np.quantile(of_banks, 0.99) < 0.05
    assert np.median(off) < 0.03 and off.mean() < 0.08
    assert np.abs(by_line).mean() > 0.6


def test_lines_any_power_of_two_apart_find_the_same_room():
    held = most_held(rings())
    strides = [1 << bit for bit in range(7, 17)]
    assert {held[0, stride] for stride in strides} == {held[0, 128]}
    assert len(words_of(rings())) == 9 + 11


@pytest.mark.parametrize("percent", ["0", "20"])
def test_drawn_lines_miss_as_512_sets_of_4_tags_would(percent):
    """Whatever the carve-out leaves of the array; the model has no such tags (decision 0022)."""
    with (DATA / "machine" / "h200_l1_drawn.csv").open(encoding="utf-8", newline="") as file:
        rings = [one for one in csv.DictReader(file) if one["carve_out_pct"] == percent]
    hit, miss = 45.0, 280.0  # cycles, see `swizzle_benchmarks.lab.caches`
    found = {
        int(one["lines"]): (float(one["cycles"]) - hit) / (miss - hit) for one in rings if int(one["lines"]) <= 1472
    }

    def off(sets, ways):
        """Root mean square beside the share of lines in sets that have too many of them."""
        left = []
        for lines, missed in found.items():
            load = lines / sets
            left.append(missed - 1 + sum(exp(-load) * load**k / factorial(k) for k in range(ways)))
        return float(np.sqrt(np.mean(np.square(left))))

    assert len(found) == 23 and off(512, 4) < 0.03
    assert min(off(256, 8), off(1024, 2), off(384, 4), off(768, 4)) > 1.5 * off(512, 4)


def test_rows_that_writes_open_come_in_the_order_of_the_times_they_took():
    """Measured write times of tiles a line wide, by order; reads take nearly the same time in all.

    One order of eleven is out of place: `band8` opens as many rows as `morton` and takes a tenth less time.
    """
    lines = [one for one in passes.measured_passes() if (one["rows"], one["cols"]) == ("32", "32")]
    reads = [float(one["time_us"]) for one in lines if one["kernel"] == "read"]
    assert max(reads) < 1.05 * min(reads)
    orders = ("row", "run512", "morton", "run2", "scatter")
    writes = [one for name in orders for one in lines if one["kernel"] == "write" and one["order"] == name]
    measured = [float(one["time_us"]) for one in writes]
    assert measured == sorted(measured) and measured[-1] > 1.3 * measured[0]
    found = list(passes.replayed(writes))
    opened = [one.opened for one in found]
    assert opened == sorted(opened) and opened[0] < 0.2 and opened[-1] > 0.9
    for one in found:
        assert one.simulated_us == pytest.approx(one.measured_us, rel=0.15), one.order


def test_narrow_passes_cost_by_their_order_what_the_rows_say():
    """Half lines read, whole ones written: constants saw none of them. Not written down by halves: 40 % too fast."""
    cases = {("read", "64"): 1.3, ("write", "128"): 1.2}
    lines = [one for one in walks.measured_walks() if one["pitch_bytes"] == "32768" and one["order"] != "down"]
    chosen = [one for one in lines if (one["what"], one["width_bytes"]) in cases]
    found = {(one.what, str(one.width_bytes), one.order): one for one in walks.replayed(chosen, gpu("h200"))}
    for case, least in cases.items():
        across, drawn = (found[(*case, order)] for order in ("across", "drawn"))
        assert drawn.measured_ps > least * across.measured_ps and drawn.opening_ps > 4 * across.opening_ps
        assert drawn.simulated_ps == pytest.approx(drawn.measured_ps, rel=0.1)
        assert across.simulated_ps == pytest.approx(across.measured_ps, rel=0.15)


def test_copies_of_half_lines_take_what_the_rows_say_and_written_down_a_tenth_less():
    """What a transpose of small tiles does, as launched (read down, written across) and by rows: launched is right."""
    lines = [one for one in walks.measured_copies() if one["width_bytes"] == "64" and one["pitch_bytes"] == "13248"]
    found = {one.order: one for one in walks.replayed(lines, gpu("h200"))}
    error = {order: one.simulated_ps / one.measured_ps - 1 for order, one in found.items()}
    assert max(abs(error["across-across"]), abs(error["down-across"])) < 0.02
    assert -0.12 < error["across-down"] < -0.08 and -0.12 < error["down-down"] < -0.08
    assert found["across-across"].measured_ps < found["across-down"].measured_ps < found["down-across"].measured_ps


def test_pieces_at_drawn_places_gain_from_the_rest_of_their_block_and_from_no_other_that_far_away():
    with (DATA / "machine" / "h200_memory_rows.csv").open(encoding="utf-8", newline="") as file:
        lines = [one for one in csv.DictReader(file) if one["what"] == "read pairs"]
    pairs = {int(one["apart_bytes"]): float(one["ps"]) for one in lines}
    usual = median(pairs.values())
    assert pairs.pop(128) < 0.85 * usual and gpu("h200").hbm_rows.block_bytes == 256
    assert len(pairs) > 500 and min(pairs.values()) > 0.98 * usual


def test_reads_in_drawn_order_open_the_rows_that_their_times_say():
    """A line through the shares that open a row: 64 B alone take 15 ps, one that opens a row what `read_ps` says."""
    device, measured = gpu("h200"), hbm_rows.measured_stretches()
    drawn = [one.lines(device.l2.line_bytes, pieces=1 << 16) for one in measured]
    ps = np.array([one.ps for one in measured])

    def through(**kwargs):
        rows = dataclasses.replace(device.hbm_rows, **kwargs)
        return hbm_rows.line_through(hbm_rows.shares(rows, drawn, device.l2.line_bytes), ps)

    open_ps, slope, left = through()
    assert left < 0.65 and max(ps) - min(ps) > 10 * left
    assert open_ps == pytest.approx(64e3 / device.hbm.bandwidth_gbps, rel=0.1)
    assert open_ps + slope == pytest.approx(device.hbm_rows.read_ps, rel=0.07)
    assert through(stretch_blocks=24, blocks=4)[2] > 3 * left  # what decision 0022 assumed
    assert min(through(stretch_blocks=512)[2], through(stretch_blocks=8192)[2]) > 1.5 * left


def test_openings_of_the_description_are_those_of_small_pieces_in_a_drawn_order():
    """Time of a piece of 32 and of 64 B, in the middle: what opening a row takes."""
    with (DATA / "machine" / "h200_power.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    for what, stated in (("read", gpu("h200").hbm_rows.read_ps), ("write", gpu("h200").hbm_rows.write_ps)):
        pieces = [one for one in lines if one["what"] == f"{what} memory" and one["together_bytes"] in ("32", "64")]
        took_ps = [1e12 * float(one["seconds"]) * int(one["together_bytes"]) / float(one["bytes"]) for one in pieces]
        assert len(took_ps) == 2 and stated == pytest.approx(mean(took_ps), rel=0.01)


def test_reads_between_writes_wait_as_the_description_says_and_reads_alone_hardly():
    with (DATA / "machine" / "h200_waits.csv").open(encoding="utf-8", newline="") as file:
        found = turnarounds(csv.DictReader(file))
    stated = gpu("h200").hbm.turnaround_ns
    alone = [wait for (_, stores, _), wait in found.items() if stores == 0]
    mixed = [wait for (loads, stores, _), wait in found.items() if loads <= 2 * stores]
    assert len(alone) == 2 and max(map(abs, alone)) < 0.2 * stated
    assert len(mixed) == 10 and stated == pytest.approx(median(mixed), rel=0.05)
    assert 0.7 * stated < min(mixed) < max(mixed) < 2 * stated


def test_the_gap_between_workgroups_is_the_median_of_what_was_measured():
    with (DATA / "machine" / "h200_starts.csv").open(encoding="utf-8", newline="") as file:
        cycles = [float(line["gap_cycles"]) for line in csv.DictReader(file)]
    found = gpu("h200")
    assert found.limits.workgroup_gap_ns == pytest.approx(median(cycles) / found.clock_mhz * 1e3, rel=0.01)
    assert max(cycles) < 1.15 * min(cycles)  # whatever a workgroup takes


def test_what_copies_to_shared_memory_take_is_what_was_measured():
    with (DATA / "machine" / "h200_fill.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    device, rates = gpu("h200"), fills(lines)
    clocks = {tuple(list(one.values())[:-1]): float(one["clocks"]) for one in lines}
    assert device.limits.fill_bytes_per_cycle == pytest.approx(
        rates["cg", "132 SMs", "1 workgroups an SM", "256 threads", "0 ahead"][1], rel=1e-2
    )
    besides = [
        clocks[copies, "1", "1", "128", "0", "2048"] - ns * device.clock_mhz / 1e3
        for copies, ns in (("ca", device.l1.latency_ns), ("cg", device.l2.latency_ns))
    ]
    assert [device.limits.copy_ns * device.clock_mhz / 1e3] * 2 == pytest.approx(besides, rel=0.05)


def test_steps_of_a_product_are_those_that_were_measured():
    """Clock, L2 and issue of the description are from this table; what a step of 48 KiB takes is not."""
    device, lines = gpu("h200"), steps.measured_steps()
    ns = {(one["tile"], one["what"], int(one["workgroups_per_sm"])): float(one["ns"]) for one in lines}
    small, large = dict.fromkeys(tile for tile, *_ in ns)
    mhz = [1e3 * float(one["clocks"]) / float(one["ns"]) for one in lines if one["what"] == "products"]
    assert max(mhz) == pytest.approx(device.sustained_clock_mhz, rel=1e-3) and min(mhz) > 0.99 * max(mhz)
    both = 132 * 2 * 32768e3 / ns[small, "copies", 2]  # bytes a microsecond
    assert device.l2.read_bytes_per_cycle == pytest.approx(both / device.clock_mhz, rel=1e-3)
    waits = [(ns[tile, "beside", 1] - ns[tile, "copies", 1]) / ns[tile, "products", 1] for tile in (small, large)]
    assert device.limits.products_before_loads == pytest.approx(mean(waits), rel=0.1)
    for one in steps.replayed([one for one in lines if one["tile"] == small], device):
        assert one.simulated == pytest.approx(one.measured, rel=0.1), one
    chosen = [one for one in lines if one["tile"] == large and one["what"] == "beside"]
    (beside,) = steps.replayed(chosen, device)
    assert 0.75 * beside.measured < beside.simulated < beside.measured


def test_a_step_waits_longer_when_its_last_operand_comes_from_memory():
    """As measured, where the first does hardly; and the laboratory's table is what the command prints."""
    lines = [one for one in operands.measured_operands() if one.a_lies_in == "rows" and one.first == "A"]
    chosen = [one for one in lines if one.products and one.order == "row"]
    none, first, last, both = operands.replayed(chosen, gpu("h200"))
    assert [one.from_memory for one in chosen] == ["none", "A", "B", "both"]
    assert first.ns - none.ns < 60 and min(last.ns, both.ns) - none.ns > 250
    assert first.simulated - none.simulated < 60 and min(last.simulated, both.simulated) - none.simulated > 150
    text = (PAGES / "laboratory/h200-sm.md").read_text(encoding="utf-8")
    for one in (none, first, last, both):
        error = 100 * (one.simulated / one.ns - 1)
        assert f"| yes | row | {one.from_memory} | {one.ns:.0f} | {one.simulated:.0f} | {error:+.0f} % |" in text
    for one in lines:
        assert f"| {'yes' if one.products else 'no'} | {one.order} | {one.from_memory} | {one.ns:.0f} |" in text


def test_a_remaps_instructions_take_the_uniform_datapath_as_long_as_was_counted():
    with (DATA / "machine" / "h200_remap_instructions.csv").open(encoding="utf-8", newline="") as file:
        found = {one["order"]: one for one in csv.DictReader(file)}
    launched, hilbert = found["launch order"], found["hilbert"]
    partitions = 132 * gpu("h200").limits.simds_per_cu
    more = (int(hilbert["warp_instructions"]) - int(launched["warp_instructions"])) / partitions
    busy = float(hilbert["uniform_pipe_pct"]) / 100 * int(hilbert["sm_clocks"])
    assert gpu("h200").limits.scalar_cycles == pytest.approx(busy / more, rel=0.02)


def test_what_attention_issues_between_its_products_is_what_was_counted():
    """With one workgroup an SM the matrix unit is busy or instructions are issued, hardly ever both."""
    with (DATA / "machine" / "h200_attention.csv").open(encoding="utf-8", newline="") as file:
        launches = list(csv.DictReader(file))
    limits, scores = gpu("h200").limits, 64 * 8192**2
    for one in launches:
        issued = float(one["issued_pct"]) / 100
        assert 0.9 < issued + float(one["matrix_unit_pct"]) / 100 < 1
        lanes = limits.simds_per_cu * limits.lanes_per_simd * gpu("h200").cus
        assert softmax_ops(128, 64) == pytest.approx(issued * float(one["cycles"]) * lanes / scores, rel=0.005)


def _attention_shapes():
    """Each launch that was counted: its sizes, how many waves compute each score, and the line of the table."""
    with (DATA / "machine" / "h200_attention_shapes.csv").open(encoding="utf-8", newline="") as file:
        for one in csv.DictReader(file):
            size = {name: int(value) for name, value in (word.split("=") for word in one["problem"].split())}
            yield size, max(1, int(one["waves"]) * 16 // size["BQ"]), one


def test_workgroups_of_an_sm_hardly_multiply_and_take_exponentials_at_once():
    """The shares of matrix unit and issue add up to about all cycles, with one workgroup an SM and with five."""
    launches = list(_attention_shapes())
    for _, _, one in launches:
        assert 88 < float(one["matrix_unit_pct"]) + float(one["issued_pct"]) < 108
    assert {one["workgroups_per_sm"] for _, _, one in launches} == {"1", "2", "3", "4", "5"}
    assert gpu("h200").limits.matrix_beside_vector is False


def test_waves_without_queries_of_their_own_repeat_the_first_product_and_the_softmax():
    """The matrix unit is busy for both products at its peak, the instructions are those of the law."""
    found = gpu("h200")
    flops_a_cycle = found.peak_tflops["fp16"] * 1e12 / (found.cus * 1.83e9)  # the boost clock that the peak is of
    repeated = set()
    for size, copies, one in _attention_shapes():
        scores = size["H"] * size["S"] ** 2
        busy = float(one["cycles"]) * float(one["matrix_unit_pct"]) / 100
        assert busy == pytest.approx(2 * (1 + copies) * scores * size["D"] / found.cus / flops_a_cycle, rel=0.06)
        issued = 32 * float(one["instructions"]) / scores
        assert issued == pytest.approx(copies * softmax_ops(size["D"], size["BK"]), rel=0.07)
        repeated.add(copies)
    assert repeated == {1, 2}


def test_attention_of_the_table_has_its_own_queries_and_smaller_tiles_repeat():
    wide, narrow = ({"H": 32, "S": 8192, "D": 128, "BQ": queries, "BK": 64} for queries in (128, 64))
    shape = h200.KERNELS["attention"]
    assert shape.repeated_flops(wide) == 0 and shape.repeated_flops(narrow) == shape.flops(wide) / 2
    assert shape.vector_ops(narrow) == 2 * shape.vector_ops(wide) and shape.flops(narrow) == shape.flops(wide)


def test_a_line_of_carve_outs_is_what_the_profiler_counted_of_a_launch():
    counted = dict(zip(CARVE_OUT_COUNTERS.values(), (128.0, 40.0, 50176.0, 102400.0), strict=True)) | {
        "sm__cycles_elapsed.max": 7.0
    }
    assert list(carve_outs([CountedLaunch(number=0, kernel="k", counters=counted)])) == [[128, 40, 50176, 102400]]
    with (DATA / "machine" / "h200_carve_outs.csv").open(encoding="utf-8", newline="") as file:
        assert next(csv.reader(file)) == list(CARVE_OUT_COUNTERS)


def passes_of_all_sms(order):
    """Part of a buffer that memory answers, by its MiB, where all SMs read it pass after pass and nothing is stored."""
    with (DATA / "machine" / "h200_l2.csv").open(encoding="utf-8", newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["order"] == order and line["stored_mib"] == "0"]
    most = max(int(line["readers"]) for line in lines)
    assert most == gpu("h200").cus
    shared = [line for line in lines if int(line["readers"]) == most]
    return {int(line["read_mib"]): float(line["memory_mib"]) / int(line["read_mib"]) for line in shared}


def test_the_l2_holds_what_all_sms_read_up_to_its_size_and_little_beyond():
    """The same order in every pass: an LRU answers all of it or nothing."""
    held = gpu("h200").l2.size_bytes / 2**20
    for read, missed in passes_of_all_sms("same").items():
        if read < 0.95 * held:
            assert missed < 0.03, read
        elif read > 1.1 * held:
            assert missed > 0.85, read


def test_the_l2_replaces_what_was_used_least_recently():
    """Another order in every pass: of u = 1 - size / buffer an LRU misses u (1 - ln u)."""
    held = gpu("h200").l2.size_bytes / 2**20
    beyond = {read: missed for read, missed in passes_of_all_sms("drawn").items() if 1.1 * held < read <= 64}
    assert len(beyond) >= 8
    for read, missed in beyond.items():
        u = 1 - held / read
        assert missed == pytest.approx(u * (1 - log(u)), abs=0.055), read
